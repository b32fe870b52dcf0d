#include <stddef.h>
#include <string.h>

#include "mcpd/revision.h"

/* Newest first. */
static const struct revision revisions[] = {
    {"2025-11-25", true, false},
    {"2025-06-18", false, false},
    {"2025-03-26", false, true},
    {"2024-11-05", false, false},
};

const char revisions_json[] = "[\"" MODERN_VERSION "\",\"2025-11-25\","
			      "\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]";

const struct revision *
revision_negotiate(const char *version, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(revisions) / sizeof(revisions[0]); i++) {
		if (strlen(revisions[i].version) == len &&
		    memcmp(revisions[i].version, version, len) == 0)
			return &revisions[i];
	}
	return &revisions[0];
}
