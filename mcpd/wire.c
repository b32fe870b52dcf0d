#include <string.h>

#include "common/utf8.h"
#include "mcpd/batch.h"
#include "mcpd/call.h"
#include "mcpd/id.h"
#include "mcpd/method.h"
#include "mcpd/wire.h"

#define BATCH_MAX 32
#define META "io.modelcontextprotocol/"

static void
refuse_method(const struct origin *o, const struct message *m)
{
	struct json_span name = {m->method, m->method_len};

	origin_error(o, RPC_METHOD_NOT_FOUND, "Method not found", &name, NULL);
}

/* ---- eras ------------------------------------------------------------- */

/* A request that names its own revision stands alone (mcp.md 0, 3.6). */
static bool
is_claim(const struct message *m)
{
	return json_object_get(m->meta, META "protocolVersion") != NULL ||
	    json_object_get(m->meta, META "clientCapabilities") != NULL ||
	    json_object_get(m->meta, META "clientInfo") != NULL;
}

static bool
is_modern(const struct message *m)
{
	return is_claim(m) || method_is(m, "server/discover") ||
	    method_is(m, "subscriptions/listen");
}

static bool
text_is(const json_t *json, const char *text)
{
	return json_is_string(json) &&
	    json_string_length(json) == strlen(text) &&
	    memcmp(json_string_value(json), text, strlen(text)) == 0;
}

static bool
has_version(const struct origin *o, const struct message *m)
{
	if (json_is_string(json_object_get(m->meta, META "protocolVersion")))
		return true;
	origin_refuse(o, RPC_INVALID_PARAMS,
	    "Missing _meta[\"" META "protocolVersion\"]");
	return false;
}

static bool
has_served_version(const struct origin *o, const struct message *m)
{
	const json_t *asked = json_object_get(m->meta, META "protocolVersion");
	const char *name = json_string_value(asked);
	struct buffer data = {0};

	if (text_is(asked, MODERN_VERSION))
		return true;
	buffer_add_text(
	    &data, "{\"supported\":[\"" MODERN_VERSION "\"],\"requested\":");
	json_write_string(&data, name,
	    utf8_cut(name, json_string_length(asked), MESSAGE_NAME_MAX));
	buffer_add_char(&data, '}');
	origin_error(o, RPC_VERSION_NOT_SERVED, "Unsupported protocol version",
	    NULL, data.bytes);
	buffer_free(&data);
	return false;
}

static bool
has_capabilities(const struct origin *o, const struct message *m)
{
	if (json_is_object(json_object_get(m->meta, META "clientCapabilities")))
		return true;
	origin_refuse(o, RPC_INVALID_PARAMS,
	    "Missing _meta[\"" META "clientCapabilities\"]");
	return false;
}

static bool
has_log_level(const struct origin *o, const struct message *m)
{
	static const char *const levels[] = {"debug", "info", "notice",
	    "warning", "error", "critical", "alert", "emergency"};
	const json_t *level = json_object_get(m->meta, META "logLevel");
	size_t i;

	if (level == NULL)
		return true;
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (text_is(level, levels[i]))
			return true;
	}
	origin_refuse(
	    o, RPC_INVALID_PARAMS, "Invalid _meta[\"" META "logLevel\"]");
	return false;
}

/* In this order; each answers for itself when it fails (mcp.md 3.2). */
static bool (*const modern_checks[])(
    const struct origin *o, const struct message *m) = {
    has_version,
    has_served_version,
    has_capabilities,
    has_log_level,
};

static void
serve_modern(struct origin *o, const struct message *m)
{
	const struct method *method;
	size_t i;

	for (i = 0; i < sizeof(modern_checks) / sizeof(modern_checks[0]); i++) {
		if (!modern_checks[i](o, m))
			return;
	}
	method = method_find(modern_methods, m);
	if (method == NULL)
		refuse_method(o, m);
	else
		method->serve(o, m);
}

/* Neither a session nor a claim: name both ways in. */
static void
refuse_session(const struct origin *o)
{
	struct buffer data = {0};

	buffer_printf(&data, "{\"supported\":%s}", revisions_json);
	origin_error(o, RPC_INVALID_PARAMS,
	    "Send initialize first, or name the protocol version in _meta",
	    NULL, data.bytes);
	buffer_free(&data);
}

static void
serve_legacy(struct origin *o, const struct message *m)
{
	const struct method *method = method_find(legacy_methods, m);

	if (method == NULL)
		refuse_method(o, m);
	else if (method->needs_session && o->stream->revision == NULL)
		refuse_session(o);
	else
		method->serve(o, m);
}

/* ---- lines ------------------------------------------------------------ */

/*
 * Cancelling is the only notification that does something. A client sends one
 * for its initialize as well; that is answered already.
 */
static void
take_notification(struct stream *stream, const struct message *m,
    const struct json_span *text)
{
	struct json_span id;

	if (method_is(m, "notifications/cancelled") &&
	    json_span(text->bytes, text->len, "params/requestId", &id) == 0 &&
	    id_ok(&id))
		call_cancel(stream, &id);
}

static void take_message(struct origin *o, const struct json_span *text);

static void
take_batch(struct stream *stream, const struct message *m,
    const struct json_span *text)
{
	struct origin o = {.stream = stream};
	struct json_span element;
	size_t at = 0;

	if (stream->revision == NULL || !stream->revision->has_batches) {
		origin_refuse(&o, RPC_INVALID_REQUEST,
		    "Batches are not supported in this protocol version");
		return;
	}
	if (json_array_size(m->tree) == 0 ||
	    json_array_size(m->tree) > BATCH_MAX) {
		origin_refuse(
		    &o, RPC_INVALID_REQUEST, "A batch holds 1 to 32 messages");
		return;
	}
	o.batch = batch_new(stream);
	while (json_span_next(text, &at, &element))
		take_message(&o, &element);
	batch_release(o.batch);
}

/* O says where the message came from; its id is filled in here. */
static void
take_message(struct origin *o, const struct json_span *text)
{
	struct message m;

	message_read(&m, text);
	o->id = m.id;
	o->is_modern = m.kind == MESSAGE_REQUEST && is_modern(&m);
	if (m.kind == MESSAGE_WRONG)
		origin_refuse(o, m.code, m.text);
	else if (m.kind == MESSAGE_NOTIFICATION)
		take_notification(o->stream, &m, text);
	else if (m.kind == MESSAGE_BATCH && o->batch == NULL)
		take_batch(o->stream, &m, text);
	else if (m.kind == MESSAGE_REQUEST && o->is_modern)
		serve_modern(o, &m);
	else if (m.kind == MESSAGE_REQUEST)
		serve_legacy(o, &m);
	message_clear(&m);
}

void
wire_take(struct stream *stream, const struct json_span *line)
{
	struct origin o = {.stream = stream};

	take_message(&o, line);
}

void
wire_take_cut(struct stream *stream, const struct json_span *start)
{
	struct origin o = {.stream = stream};
	struct message m;

	message_read_cut(&m, start);
	o.id = m.id;
	if (m.kind == MESSAGE_WRONG)
		origin_refuse(&o, m.code, m.text);
	message_clear(&m);
}
