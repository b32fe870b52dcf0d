/*
 * What the server writes: each function appends one whole JSON-RPC object,
 * without the LF, to a buffer. Member order is that of mcp.md 4.
 */
#ifndef MCPD_ANSWER_H
#define MCPD_ANSWER_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/json.h"

#define SERVER_INFO \
	"{\"name\":\"basecamp\",\"version\":\"" CONNECTD_VERSION "\"}"

/*
 * ID may be empty: then it is left out. NAME, cut at its bound, follows TEXT
 * after ": " unless it is NULL; DATA is JSON or NULL.
 */
void answer_error(struct buffer *out, const struct json_span *id, int code,
    const char *text, const struct json_span *name, const char *data);
/* BODY is the members of the result, without braces, or "". */
void answer_result(struct buffer *out, const struct json_span *id,
    bool is_modern, const char *body);
/* The result of a tool: one block of text. */
void answer_tool(struct buffer *out, const struct json_span *id, bool is_modern,
    const struct json_span *text, bool is_error);

#endif
