#include <stdlib.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "mcpd/answer.h"
#include "mcpd/lines.h"
#include "mcpd/origin.h"
#include "mcpd/stream.h"

struct batch {
	struct stream *stream;
	struct buffer line;
	size_t share; /* of the line, for each response */
	size_t holders;
};

struct batch *
batch_new(struct stream *stream, size_t count)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->stream = stream;
	/* Two brackets, and a comma for each. */
	batch->share = (LINES_MCPD_MAX - 2) / count - 1;
	batch->holders = 1;
	return batch;
}

void
batch_hold(struct batch *batch)
{
	batch->holders++;
}

static void
batch_add(struct batch *batch, const struct buffer *response)
{
	buffer_add_char(&batch->line, batch->line.len == 0 ? '[' : ',');
	buffer_add(&batch->line, response->bytes, response->len);
}

void
batch_release(struct batch *batch)
{
	if (--batch->holders != 0)
		return;
	if (batch->line.len != 0) {
		buffer_add_char(&batch->line, ']');
		stream_send(batch->stream, batch->line.bytes, batch->line.len);
	}
	buffer_free(&batch->line);
	free(batch);
}

size_t
origin_room(const struct origin *o)
{
	return o->batch != NULL ? o->batch->share : LINES_MCPD_MAX;
}

void
origin_send(const struct origin *o, const struct buffer *response)
{
	if (o->batch != NULL)
		batch_add(o->batch, response);
	else
		stream_send(o->stream, response->bytes, response->len);
}

void
origin_result(const struct origin *o, const struct buffer *body)
{
	struct buffer out = {0};

	answer_result(
	    &out, &o->id, o->is_modern, body == NULL ? "" : body->bytes);
	origin_send(o, &out);
	buffer_free(&out);
}

void
origin_error(const struct origin *o, int code, const char *text,
    const struct json_span *name, const char *data)
{
	struct buffer out = {0};

	answer_error(&out, &o->id, code, text, name, data);
	origin_send(o, &out);
	buffer_free(&out);
}

/* Older schemas know no error without an id, and so has a batch no place. */
static bool
may_lack_id(const struct origin *o)
{
	return o->batch == NULL &&
	    (o->stream->revision == NULL ||
		o->stream->revision->has_errors_without_id);
}

void
origin_refuse(const struct origin *o, int code, const char *text)
{
	if (o->id.len != 0 || may_lack_id(o))
		origin_error(o, code, text, NULL, NULL);
	else
		log_debug("a line was not answered: %s", text);
}
