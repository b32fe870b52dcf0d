/*
 * What a tool says, from its call to its response: how long that may be is
 * known only when its line is written (mcp.md 7).
 */
#ifndef MCPD_RESULT_H
#define MCPD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/buffer.h"
#include "common/json.h"

struct result {
	struct json_span id; /* raw token */
	bool is_modern;
	json_t *json;
	bool is_error;
	bool is_whole; /* nothing of it is cut */
};

/*
 * Append the response, in at most ROOM bytes, which are some thousand at the
 * least; its JSON is cut to them (mcpd/fit.h). What cannot be is refused.
 */
void result_write(struct buffer *out, const struct result *r, size_t room);

#endif
