/*
 * Responses that share a line (mcp.md 1.5). Their line has its bound, and what
 * a tool says can be cut: so that is written at the end, when it is known what
 * there is, and those who need more share what the others leave.
 */
#ifndef MCPD_BATCH_H
#define MCPD_BATCH_H

#include "common/buffer.h"
#include "mcpd/result.h"

struct batch;
struct stream;

/*
 * A batch lives until everyone who holds it has let go; then its line is
 * written, if there is one. Its stream outlives it.
 */
struct batch *batch_new(struct stream *stream);
void batch_hold(struct batch *batch);
void batch_release(struct batch *batch);

/* One whole response, without LF. */
void batch_add(struct batch *batch, const struct buffer *response);
/* The JSON is taken over. */
void batch_add_result(struct batch *batch, const struct result *r);

#endif
