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

#endif
