#include "common/log.h"
#include "mcpd/answer.h"
#include "mcpd/batch.h"
#include "mcpd/lines.h"
#include "mcpd/origin.h"
#include "mcpd/stream.h"

void
origin_send(const struct origin *o, const struct buffer *response)
{
	if (o->batch != NULL)
		batch_add(o->batch, response);
	else
		stream_send(o->stream, response->bytes, response->len);
}

void
origin_tool(const struct origin *o, json_t *json, bool is_error, bool is_whole)
{
	const struct result r = {.id = o->id,
	    .is_modern = o->is_modern,
	    .json = json,
	    .is_error = is_error,
	    .is_whole = is_whole};
	struct buffer out = {0};

	if (o->batch != NULL) {
		batch_add_result(o->batch, &r);
		return;
	}
	result_write(&out, &r, LINES_MCPD_MAX);
	stream_send(o->stream, out.bytes, out.len);
	buffer_free(&out);
	json_decref(json);
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
