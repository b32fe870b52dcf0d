#include <string.h>

#include "mcpd/answer.h"
#include "mcpd/call.h"
#include "mcpd/method.h"
#include "mcpd/stream.h"
#include "mcpd/tools.h"

static void
add_instructions(struct buffer *b)
{
	buffer_add_text(b, "\"instructions\":");
	json_write_string(b, tools_instructions, strlen(tools_instructions));
}

static bool
is_client_info(const json_t *info)
{
	return json_is_object(info) &&
	    json_is_string(json_object_get(info, "name")) &&
	    json_is_string(json_object_get(info, "version"));
}

static void
serve_initialize(const struct origin *o, const struct message *m)
{
	const json_t *version = json_object_get(m->params, "protocolVersion");
	struct buffer body = {0};

	if (o->batch != NULL) {
		origin_refuse(o, RPC_INVALID_REQUEST,
		    "initialize may not be part of a batch");
		return;
	}
	if (!json_is_string(version) ||
	    !json_is_object(json_object_get(m->params, "capabilities")) ||
	    !is_client_info(json_object_get(m->params, "clientInfo"))) {
		origin_refuse(o, RPC_INVALID_PARAMS,
		    "initialize needs protocolVersion, capabilities and "
		    "clientInfo");
		return;
	}
	o->stream->revision = revision_negotiate(
	    json_string_value(version), json_string_length(version));
	buffer_printf(&body,
	    "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},"
	    "\"serverInfo\":" SERVER_INFO ",",
	    o->stream->revision->version);
	add_instructions(&body);
	origin_result(o, &body);
	buffer_free(&body);
}

static void
serve_ping(const struct origin *o, const struct message *m)
{
	origin_result(o, NULL);
}

static void
serve_discover(const struct origin *o, const struct message *m)
{
	struct buffer body = {0};

	buffer_add_text(&body,
	    "\"supportedVersions\":[\"" MODERN_VERSION
	    "\"],\"capabilities\":{\"tools\":{}},");
	add_instructions(&body);
	buffer_add_text(&body, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
	origin_result(o, &body);
	buffer_free(&body);
}

static void
serve_tools_list(const struct origin *o, const struct message *m)
{
	const struct buffer *tools = &o->stream->server->tools;
	struct buffer body = {0};

	/* There is one page, so no cursor was ever given out. */
	if (json_object_get(m->params, "cursor") != NULL) {
		origin_refuse(o, RPC_INVALID_PARAMS, "Invalid cursor");
		return;
	}
	buffer_add_text(&body, "\"tools\":");
	buffer_add(&body, tools->bytes, tools->len);
	if (o->is_modern)
		buffer_add_text(
		    &body, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
	origin_result(o, &body);
	buffer_free(&body);
}

static void
begin_call(
    const struct origin *o, const struct tool *tool, const json_t *arguments)
{
	struct call *call = call_new(o);

	if (call == NULL)
		origin_refuse(
		    o, RPC_INTERNAL_ERROR, "Too many requests in flight");
	else
		tool_start(tool, call, arguments);
}

static void
serve_tools_call(const struct origin *o, const struct message *m)
{
	const json_t *name = json_object_get(m->params, "name");
	const json_t *arguments = json_object_get(m->params, "arguments");
	struct json_span span = {
	    json_string_value(name), json_string_length(name)};
	const struct tool *tool;

	if (!json_is_string(name) ||
	    (arguments != NULL && !json_is_object(arguments))) {
		origin_refuse(o, RPC_INVALID_PARAMS,
		    "tools/call needs a name, and arguments that are an "
		    "object");
		return;
	}
	tool = tool_find(o->stream->server->domains, span.bytes, span.len);
	if (tool == NULL)
		origin_error(
		    o, RPC_INVALID_PARAMS, "Unknown tool", &span, NULL);
	else
		begin_call(o, tool, arguments);
}

const struct method legacy_methods[] = {
    {"initialize", serve_initialize, false},
    {"ping", serve_ping, false},
    {"tools/list", serve_tools_list, true},
    {"tools/call", serve_tools_call, true},
    {NULL, NULL, false},
};

const struct method modern_methods[] = {
    {"server/discover", serve_discover, false},
    {"tools/list", serve_tools_list, false},
    {"tools/call", serve_tools_call, false},
    {NULL, NULL, false},
};

bool
method_is(const struct message *m, const char *name)
{
	return m->method_len == strlen(name) &&
	    memcmp(m->method, name, m->method_len) == 0;
}

const struct method *
method_find(const struct method *table, const struct message *m)
{
	for (; table->name != NULL; table++) {
		if (method_is(m, table->name))
			return table;
	}
	return NULL;
}
