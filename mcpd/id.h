/*
 * The id of a JSON-RPC request as its line has it, a raw token (mcp.md 1.3):
 * mcpd echoes what is one, and the bridge awaits it. Needs libc only.
 */
#ifndef MCPD_ID_H
#define MCPD_ID_H

#include <stdbool.h>

#include "common/json.h"

#define ID_MAX 1024 /* raw bytes, quotes included */

/* A string or an integer, of a length that is echoed. ID is a JSON value. */
bool id_ok(const struct json_span *id);
/* The same type and value; escapes do not count. Both are ok. */
bool id_equal(const struct json_span *a, const struct json_span *b);

/*
 * Of a text that is not read to its end: its id, unless the cut goes through
 * that one; and whether it is a response, which earns no answer.
 */
bool id_of_start(const struct json_span *text, struct json_span *id);
bool id_of_response(const struct json_span *text);

#endif
