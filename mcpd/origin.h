/*
 * Where a response goes: to a stream, as a line of its own or as part of a
 * batch's (mcp.md 1.4, 1.5), in the words of its request's era.
 */
#ifndef MCPD_ORIGIN_H
#define MCPD_ORIGIN_H

#include <stdbool.h>

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

/*
 * How many bytes its response may have, so that no line is longer than
 * LINES_MCPD_MAX: a batch's is shared out evenly.
 */
size_t origin_room(const struct origin *o);
/* One whole response, without LF. */
void origin_send(const struct origin *o, const struct buffer *response);
/* The members of a result; NULL: none. */
void origin_result(const struct origin *o, const struct buffer *body);
/* The arguments are those of answer_error(). */
void origin_error(const struct origin *o, int code, const char *text,
    const struct json_span *name, const char *data);
/* An error that is left out where it would need an id and has none. */
void origin_refuse(const struct origin *o, int code, const char *text);

/*
 * Responses, at most COUNT, that share a line. A batch lives until everyone who
 * holds it has let go; then its line is written, if there is one. Its stream
 * outlives it.
 */
struct batch *batch_new(struct stream *stream, size_t count);
void batch_hold(struct batch *batch);
void batch_release(struct batch *batch);

#endif
