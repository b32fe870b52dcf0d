/*
 * Where a response goes: to a stream, as a line of its own or as part of a
 * batch's (mcp.md 1.4, 1.5), in the words of its request's era.
 */
#ifndef MCPD_ORIGIN_H
#define MCPD_ORIGIN_H

#include <stdbool.h>

#include <jansson.h>

#include "common/buffer.h"
#include "common/json.h"

struct batch;
struct stream;

struct origin {
	struct stream *stream;
	struct batch *batch; /* NULL: a line of its own */
	struct json_span id; /* raw token; len 0: none */
	bool is_modern;
};

/* One whole response, without LF. */
void origin_send(const struct origin *o, const struct buffer *response);
/*
 * What a tool says, JSON being taken over: cut to its room, unless it
 * IS_WHOLE, which is then refused.
 */
void origin_tool(
    const struct origin *o, json_t *json, bool is_error, bool is_whole);
/* The members of a result; NULL: none. */
void origin_result(const struct origin *o, const struct buffer *body);
/* The arguments are those of answer_error(). */
void origin_error(const struct origin *o, int code, const char *text,
    const struct json_span *name, const char *data);
/* An error that is left out where it would need an id and has none. */
void origin_refuse(const struct origin *o, int code, const char *text);

#endif
