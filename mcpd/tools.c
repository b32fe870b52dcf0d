#include <string.h>

#include "common/log.h"
#include "mcpd/tools.h"

const char tools_instructions[] =
    "You work for a Basecamp agent. Call basecamp_connect get_dispatch first: "
    "its instruction is the request. Acknowledge and answer with "
    "basecamp_thread boost and reply, then report with basecamp_connect "
    "ack_dispatch and complete_dispatch.";

#define ID_SCHEMA "{\"type\":[\"integer\",\"string\"],\"description\":"
#define ALWAYS_LOAD "\"_meta\":{\"anthropic/alwaysLoad\":true}"
/*
 * Both tools write, never destroy, say the same thing twice without harm, and
 * reach no further than this task's own events.
 */
#define ANNOTATIONS                                         \
	"\"readOnlyHint\":false,\"destructiveHint\":false," \
	"\"idempotentHint\":true,\"openWorldHint\":false"

static const char connect_json[] =
    "{\"name\":\"basecamp_connect\",\"title\":\"Basecamp dispatch\","
    "\"description\":\"The work that was dispatched to you. Actions: "
    "get_dispatch (event_id; without it the earliest that is not "
    "acknowledged) returns the instruction. ack_dispatch (event_id, ack_id: "
    "the id of your boost or comment) reports that you acknowledged it. "
    "complete_dispatch (event_id, outcome: succeeded or failed, reply_id: "
    "the id of your reply, links) reports how it ended. All may be repeated."
    "\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"action\":{\"type\":\"string\",\"enum\":[\"ack_dispatch\","
    "\"complete_dispatch\",\"get_dispatch\"]},"
    "\"params\":{\"type\":\"object\",\"properties\":{"
    "\"event_id\":" ID_SCHEMA "\"The event. A string of digits is always "
    "right; a number only below 2^53.\"},"
    "\"ack_id\":" ID_SCHEMA "\"ack_dispatch: what you acknowledged with.\"},"
    "\"outcome\":{\"type\":\"string\",\"enum\":[\"succeeded\",\"failed\"]},"
    "\"reply_id\":" ID_SCHEMA "\"complete_dispatch: your reply.\"},"
    "\"links\":{\"type\":\"array\",\"maxItems\":20,\"items\":{\"type\":"
    "\"string\",\"maxLength\":2048},\"description\":\"complete_dispatch: "
    "http or https URLs of what you made.\"}},"
    "\"additionalProperties\":false}},\"required\":[\"action\"],"
    "\"additionalProperties\":false},\"annotations\":{\"title\":"
    "\"Basecamp dispatch\"," ANNOTATIONS "}," ALWAYS_LOAD "}";

static const char thread_json[] =
    "{\"name\":\"basecamp_thread\",\"title\":\"Basecamp thread\","
    "\"description\":\"The place an event that you pulled came from. "
    "Actions: read (event_id, cursor) returns the recording and its last "
    "comments; with cursor, older ones (`older`) or the rest of a content that "
    "was cut (`more`). boost (event_id, content: a "
    "few words or an emoji, at most 16 characters) acknowledges. reply "
    "(event_id, content, format: markdown, which is assumed, or plain) "
    "answers. boost and reply return the id once it is posted; the same "
    "content posts once, however often you ask.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"action\":{\"type\":\"string\",\"enum\":[\"boost\",\"read\",\"reply\"]},"
    "\"params\":{\"type\":\"object\",\"properties\":{"
    "\"event_id\":" ID_SCHEMA "\"The event. A string of digits is always "
    "right; a number only below 2^53.\"},"
    "\"content\":{\"type\":\"string\"},"
    "\"format\":{\"type\":\"string\",\"enum\":[\"markdown\",\"plain\"]},"
    "\"cursor\":{\"type\":\"string\",\"maxLength\":64}},"
    "\"required\":[\"event_id\"],\"additionalProperties\":false}},"
    "\"required\":[\"action\",\"params\"],"
    "\"additionalProperties\":false},\"annotations\":{\"title\":"
    "\"Basecamp thread\"," ANNOTATIONS "}," ALWAYS_LOAD "}";

static const struct tool tools[] = {
    {"basecamp_connect", DOMAIN_CONNECT, connect_actions, CONNECT_ACTIONS,
	connect_json},
    {"basecamp_thread", DOMAIN_THREAD, thread_actions, THREAD_ACTIONS,
	thread_json},
};

#define TOOL_COUNT (sizeof(tools) / sizeof(tools[0]))

void
tools_render(unsigned int domains, struct buffer *out)
{
	size_t i;

	for (i = 0; i < TOOL_COUNT; i++) {
		if ((tools[i].domain & domains) == 0)
			continue;
		buffer_add_char(out, out->len == 0 ? '[' : ',');
		buffer_add_text(out, tools[i].json);
	}
	buffer_add_char(out, ']');
}

const struct tool *
tool_find(unsigned int domains, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < TOOL_COUNT; i++) {
		if ((tools[i].domain & domains) != 0 &&
		    strlen(tools[i].name) == len &&
		    memcmp(tools[i].name, name, len) == 0)
			return &tools[i];
	}
	return NULL;
}

/* The gateway's own two arguments. */
static const struct action *
action_read(const struct tool *tool, const json_t *arguments,
    const json_t **params, struct error *e)
{
	struct json_text name;
	json_t *found = NULL, *value;
	const char *key;
	size_t i;

	json_object_foreach ((json_t *)arguments, key, value) {
		if (strcmp(key, "action") == 0 || strcmp(key, "params") == 0)
			continue;
		(void)error_set(e,
		    "unknown argument: %s (what an action takes "
		    "goes into params)",
		    log_safe(key));
		return NULL;
	}
	if (json_member_string(arguments, "action", JSON_REQUIRED, &name, e) ==
		-1 ||
	    json_member_object(
		arguments, "params", JSON_MAY_BE_NULL, &found, e) == -1)
		return NULL;
	*params = found;
	for (i = 0; i < tool->action_count; i++) {
		if (!name.has_nul &&
		    strcmp(tool->actions[i].name, name.bytes) == 0)
			return &tool->actions[i];
	}
	(void)error_set(e, "%s has no action %s", tool->name,
	    log_safe_n(name.bytes, name.len));
	return NULL;
}

void
tool_start(const struct tool *tool, struct call *call, const json_t *arguments)
{
	const struct action *action;
	const json_t *params = NULL;
	struct arguments args;
	struct error e = {0, ""};

	action = action_read(tool, arguments, &params, &e);
	if (action == NULL ||
	    params_read(
		params, action->params, action->param_count, &args, &e) == -1) {
		call_refuse_params(call, "%s", e.text);
		return;
	}
	action->start(call, &args);
}
