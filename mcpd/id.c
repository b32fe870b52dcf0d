#include "mcpd/id.h"

bool
id_ok(const struct json_span *id)
{
	size_t i;

	if (id->len == 0 || id->len > ID_MAX)
		return false;
	if (id->bytes[0] == '"')
		return true;
	for (i = id->bytes[0] == '-'; i < id->len; i++) {
		if (id->bytes[i] < '0' || id->bytes[i] > '9')
			return false;
	}
	return true;
}
