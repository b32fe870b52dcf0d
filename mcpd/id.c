#include <string.h>

#include "common/json_scan.h"
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

bool
id_equal(const struct json_span *a, const struct json_span *b)
{
	struct json_name left, right;

	if (a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0)
		return true;
	if (a->bytes[0] != '"' || b->bytes[0] != '"')
		return false;
	left = (struct json_name){a->bytes + 1, a->len - 2};
	right = (struct json_name){b->bytes + 1, b->len - 2};
	return json_name_compare(&left, &right) == 0;
}

bool
id_of_start(const struct json_span *text, struct json_span *id)
{
	struct json_span found;

	if (json_span(text->bytes, text->len, "id", &found) == -1 ||
	    !id_ok(&found) ||
	    found.bytes + found.len == text->bytes + text->len)
		return false;
	*id = found;
	return true;
}

static bool
has_member(const struct json_span *text, const char *name)
{
	struct json_span found;

	return json_span(text->bytes, text->len, name, &found) == 0;
}

bool
id_of_response(const struct json_span *text)
{
	return !has_member(text, "method") &&
	    (has_member(text, "result") || has_member(text, "error"));
}
