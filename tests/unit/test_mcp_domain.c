/* What the tools take and give (ledger.md 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base64.h"
#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/fit.h"
#include "mcpd/instruction.h"
#include "mcpd/tools.h"

#define CONNECT "basecamp_connect"
#define THREAD "basecamp_thread"

/* ---- parameters ------------------------------------------------------- */

/* T44 and the rest of ledger.md 6.1; the text names what is wrong. */
static const struct refused_row {
	const char *tool, *arguments, *names;
} refused_rows[] = {
    {CONNECT, "{}", "action"},
    {CONNECT, "{\"action\":7}", "action"},
    {CONNECT, "{\"action\":\"take\"}", "take"},
    {CONNECT, "{\"action\":\"get_dispatch\\u0000\"}", "get_dispatch"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":[]}", "params"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"event_id\":1}", "event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"id\":1}}", "id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":null}}",
	"event_id"},
    {CONNECT,
	"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
	"9007199254740993}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":1.5}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":0}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":-1}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":true}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":[1]}}",
	"event_id"},
    {CONNECT, "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":\"1x\"}}",
	"event_id"},
    {CONNECT,
	"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
	"\"9223372036854775808\"}}",
	"event_id"},
    {CONNECT, "{\"action\":\"ack_dispatch\"}", "event_id"},
    {CONNECT, "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":null}}",
	"event_id"},
    {CONNECT,
	"{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	"\"ack_id\":0}}",
	"ack_id"},
    {CONNECT,
	"{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	"\"outcome\":\"succeeded\"}}",
	"outcome"},
    {CONNECT, "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1}}",
	"outcome"},
    {CONNECT,
	"{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	"\"outcome\":\"\"}}",
	"outcome"},
    {CONNECT,
	"{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	"\"outcome\":1}}",
	"outcome"},
    {CONNECT,
	"{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	"\"outcome\":\"failed\",\"links\":\"https://x\"}}",
	"links"},
    {CONNECT,
	"{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	"\"outcome\":\"failed\",\"links\":[\"https://x\",3]}}",
	"links[1]"},
    {THREAD, "{\"action\":\"read\"}", "event_id"},
    {THREAD, "{\"action\":\"read\",\"params\":{\"event_id\":1,\"cursor\":7}}",
	"cursor"},
    {THREAD,
	"{\"action\":\"read\",\"params\":{\"event_id\":1,\"cursor\":"
	"\"a\\u0000\"}}",
	"cursor"},
    {THREAD,
	"{\"action\":\"boost\",\"params\":{\"event_id\":1,\"content\":"
	"\" \\n\"}}",
	"content"},
    {THREAD,
	"{\"action\":\"boost\",\"params\":{\"event_id\":1,\"content\":"
	"\"01234567890123456789012345678901234567890123456789012345678901"
	"234\"}}",
	"content"},
    {THREAD, "{\"action\":\"reply\",\"params\":{\"event_id\":1}}", "content"},
    {THREAD,
	"{\"action\":\"reply\",\"params\":{\"event_id\":1,\"content\":"
	"\"\\t\"}}",
	"content"},
    {THREAD,
	"{\"action\":\"reply\",\"params\":{\"event_id\":1,\"content\":\"x\","
	"\"format\":\"html\"}}",
	"format"},
};

static void
wrong_parameters_are_named(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	size_t i;

	for (i = 0; i < sizeof(refused_rows) / sizeof(refused_rows[0]); i++) {
		const struct refused_row *row = &refused_rows[i];

		assert_null(world_ask(w, row->tool, row->arguments, &refusal));
		if (strstr(refusal, row->names) == NULL ||
		    strstr(refusal, "invalid_params") == NULL)
			fail_msg("%s: %s", row->arguments, refusal);
	}
	world_free(w);
}

static const struct id_row {
	const char *arguments;
	int64_t event_id;
} id_rows[] = {
    {"{\"action\":\"get_dispatch\"}", 0},
    {"{\"action\":\"get_dispatch\",\"params\":null}", 0},
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":101}}", 101},
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":101.0}}", 101},
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
     "9007199254740991}}",
	9007199254740991},
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
     "\"9007199254740993\"}}",
	9007199254740993},
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
     "\"9223372036854775807\"}}",
	INT64_MAX},
};

static void
ids_are_never_rounded(void **state)
{
	struct world *w = world_open();
	const struct msg *m;
	const char *refusal;
	size_t i;

	for (i = 0; i < sizeof(id_rows) / sizeof(id_rows[0]); i++) {
		m = world_ask(w, CONNECT, id_rows[i].arguments, &refusal);
		assert_non_null(m);
		assert_int_equal(MSG_GET_DISPATCH, m->type);
		assert_int_equal(id_rows[i].event_id, m->get_dispatch.event_id);
		assert_string_equal(w->server.token, m->get_dispatch.token);
	}
	world_free(w);
}

static void
reports_go_to_the_ledger_as_given(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	const struct msg *m;

	m = world_ask(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	    "\"ack_id\":null}}",
	    &refusal);
	assert_int_equal(MSG_ACK_DISPATCH, m->type);
	assert_false(m->ack_dispatch.ack_id.has);
	m = world_ask(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	    "\"ack_id\":\"77\"}}",
	    &refusal);
	assert_int_equal(77, m->ack_dispatch.ack_id.value);
	m = world_ask(w, CONNECT,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	    "\"outcome\":\"succeeded\",\"links\":[\"https://x/\\u00e4\"],"
	    "\"reply_id\":9}}",
	    &refusal);
	assert_int_equal(MSG_COMPLETE_DISPATCH, m->type);
	assert_string_equal("succeeded", m->complete_dispatch.outcome);
	assert_int_equal(9, m->complete_dispatch.reply_id.value);
	assert_int_equal(16, m->complete_dispatch.links.len);
	assert_memory_equal(
	    "[\"https://x/\xc3\xa4\"]", m->complete_dispatch.links.bytes, 16);
	m = world_ask(w, CONNECT,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	    "\"outcome\":\"failed\",\"links\":null,\"reply_id\":null}}",
	    &refusal);
	assert_memory_equal("[]", m->complete_dispatch.links.bytes, 2);
	assert_false(m->complete_dispatch.reply_id.has);
	world_free(w);
}

/* A superseded worker must hear of that first: so it reaches the ledger. */
static void
what_only_the_ledger_may_judge_reaches_it(void **state)
{
	struct world *w = world_open();
	struct buffer arguments = {0};
	const char *refusal, *links;
	const struct msg *m;
	json_t *list;
	int i;

	m = world_ask(w, CONNECT,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	    "\"outcome\":\"succeeded\\u0000\"}}",
	    &refusal);
	assert_non_null(m);
	assert_string_not_equal("succeeded", m->complete_dispatch.outcome);
	buffer_add_text(&arguments,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	    "\"outcome\":\"");
	for (i = 0; i < 100; i++)
		buffer_add_text(&arguments, "succeeded");
	buffer_add_text(&arguments, "\",\"links\":[");
	for (i = 0; i < 500; i++)
		buffer_printf(
		    &arguments, "%s\"https://x/%d\"", i == 0 ? "" : ",", i);
	buffer_add_text(&arguments, "]}}");
	m = world_ask(w, CONNECT, arguments.bytes, &refusal);
	assert_non_null(m);
	assert_string_not_equal("succeeded", m->complete_dispatch.outcome);
	links = xstrndup(
	    m->complete_dispatch.links.bytes, m->complete_dispatch.links.len);
	list = json_loads(links, 0, NULL);
	assert_int_equal(21, json_array_size(list));
	json_decref(list);
	free((char *)links);

	arguments.len = 0;
	buffer_add_text(&arguments,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":1,"
	    "\"outcome\":\"failed\",\"links\":[\"https://x/");
	for (i = 0; i < 500000; i++)
		buffer_add_text(&arguments, "\xc3\xa4");
	buffer_add_text(&arguments, "\"]}}");
	m = world_ask(w, CONNECT, arguments.bytes, &refusal);
	assert_non_null(m);
	links = xstrndup(
	    m->complete_dispatch.links.bytes, m->complete_dispatch.links.len);
	list = json_loads(links, 0, NULL);
	assert_in_range(
	    json_string_length(json_array_get(list, 0)), 2049, 2100);
	json_decref(list);
	free((char *)links);
	buffer_free(&arguments);
	world_free(w);
}

/* ---- results ---------------------------------------------------------- */

/* A mention of the agent as Basecamp writes it: an unsigned envelope. */
static char *
mention_of(int64_t person)
{
	char *json, *mention, sgid[200];

	(void)xasprintf(&json,
	    "{\"gid\":\"gid://bc3/Person/%lld\",\"purpose\":\"attachable\"}",
	    (long long)person);
	assert_true(strlen(json) < 100);
	base64url_encode(json, strlen(json), sgid);
	(void)xasprintf(
	    &mention, "<bc-attachment sgid=\"%s--x\"></bc-attachment>", sgid);
	free(json);
	return mention;
}

static struct msg_instruction
instruction_with(const char *snapshot, size_t len)
{
	return (struct msg_instruction){.found = true,
	    .event_id = 101,
	    .event_type = "comment.created",
	    .trigger = "mentioned",
	    .class = "web",
	    .bucket_id = 7,
	    .recording_id = 8,
	    .recording_url = "https://x.test/8",
	    .reply_kind = "comment",
	    .reply_recording_id = 6,
	    .requester_id = 9,
	    .delivery = "exposed",
	    .snapshot = {snapshot, len}};
}

static void
an_instruction_has_these_keys_and_no_other(void **state)
{
	static const char *const keys[] = {"event_id", "event_type", "trigger",
	    "class", "recording", "reply_to", "requester_id", "acknowledge",
	    "guard_acknowledged", "delivery", "content", "content_updated_at"};
	static const char *const recording_keys[] = {
	    "bucket_id", "recording_id", "type", "title", "url"};
	static const char snapshot[] =
	    "{\"type\":\"Comment\",\"title\":\"T\","
	    "\"app_url\":\"https://x.test/app\",\"content\":\"c\","
	    "\"updated_at\":\"u\",\"role\":\"operator\"}";
	struct msg_instruction in =
	    instruction_with(snapshot, sizeof(snapshot) - 1);
	json_t *json = instruction_json(&in, 52007412), *body;
	const char *key;
	json_t *value;
	size_t i = 0;

	body = json_object_get(json, "instruction");
	json_object_foreach (body, key, value)
		assert_string_equal(keys[i++], key);
	assert_int_equal(12, i);
	body = json_object_get(body, "recording");
	i = 0;
	json_object_foreach (body, key, value)
		assert_string_equal(recording_keys[i++], key);
	assert_int_equal(5, i);
	assert_string_equal("https://x.test/8", member_text(body, "url"));
	json_decref(json);
	in.class = "";
	in.reply_kind = "";
	json = instruction_json(&in, 52007412);
	body = json_object_get(json, "instruction");
	assert_null(json_object_get(body, "class"));
	assert_true(json_is_null(json_object_get(body, "reply_to")));
	json_decref(json);
	in.found = false;
	json = instruction_json(&in, 52007412);
	assert_true(json_is_null(json_object_get(json, "instruction")));
	assert_string_not_equal("", member_text(json, "message"));
	json_decref(json);
}

static void
the_agent_is_not_mentioned_to_itself(void **state)
{
	char *own = mention_of(52007412), *other = mention_of(5), *want;
	json_t *snapshot, *json;
	struct msg_instruction in;
	char *text;

	(void)xasprintf(&text, "<div>%s and %s do it</div>", own, other);
	snapshot = json_pack("{s:s}", "content", text);
	free(text);
	text = json_dumps(snapshot, 0);
	in = instruction_with(text, strlen(text));
	json = instruction_json(&in, 52007412);
	(void)xasprintf(&want, "<div>  and %s do it</div>", other);
	assert_string_equal(
	    want, member_text(json_object_get(json, "instruction"), "content"));
	json_decref(json);
	json_decref(snapshot);
	free(want);
	free(text);
	free(own);
	free(other);
}

/* The worker has the event now: the answer is poorer, and no error. */
static void
a_broken_snapshot_is_no_error_after_the_pull(void **state)
{
	struct msg_instruction in = instruction_with("{\"content\":", 11);
	json_t *json = instruction_json(&in, 52007412);

	assert_string_equal(
	    "", member_text(json_object_get(json, "instruction"), "content"));
	assert_int_equal(101,
	    json_integer_value(json_object_get(
		json_object_get(json, "instruction"), "event_id")));
	json_decref(json);
}

static void
only_content_is_cut_and_at_a_character(void **state)
{
	struct buffer content = {0};
	json_t *json, *back;
	const char *cut;
	size_t len;
	char *text;

	while (content.len < 100000)
		buffer_add_text(&content, "\xe2\x82\xac");
	json = json_pack("{s:{s:s, s:s}, s:[{s:s}]}", "instruction", "title",
	    "kept", "content", content.bytes, "comments", "content", "short");
	text = fit_text(json, LINES_MCPD_MAX, &len);
	assert_int_equal(strlen(text), len);
	assert_in_range(len, FIT_TEXT_MAX * 7 / 8 - 400, FIT_TEXT_MAX);
	back = json_loads(text, 0, NULL);
	assert_non_null(back);
	cut = member_text(json_object_get(back, "instruction"), "content");
	assert_int_equal(0, strlen(cut) % 3);
	assert_true(json_is_true(json_object_get(
	    json_object_get(back, "instruction"), "content_truncated")));
	assert_string_equal(
	    "kept", member_text(json_object_get(back, "instruction"), "title"));
	assert_null(json_object_get(
	    json_array_get(json_object_get(back, "comments"), 0),
	    "content_truncated"));
	json_decref(back);
	json_decref(json);
	free(text);
	buffer_free(&content);
}

/* ledger.md 6.4: a kind for programs, a text for the model, nothing else. */
static const struct failed_row {
	const char *reason, *text, *kind, *has, *has_not;
} failed_rows[] = {
    {"task_token_refused", "sql", "task_token_refused", "not current", "sql"},
    {"not_on_task", "", "not_on_task", "not on this task", "\\"},
    {"not_exposed", "", "not_exposed", "get_dispatch", "\\"},
    {"report_conflict", "", "report_conflict", "different", "\\"},
    {"not_dispatchable", "", "not_dispatchable", "no longer", "\\"},
    {"invalid_report", "outcome must be succeeded or failed", "invalid_report",
	"outcome must be", "\\"},
    {"held", "", "held", "hold", "\\"},
    {"cancelled", "", "cancelled", "cancelled", "\\"},
    {"not_on_task", "event 7 is not on this task", "not_on_task", "event 7",
	"\\"},
    {"unusable", "this cursor was never given", "invalid_params", "cursor",
	"\\"},
    {"refused", "disk I/O error at /var", "unavailable", "Try again", "disk"},
    {"busy", "SQLITE_BUSY", "unavailable", "Try again", "SQLITE"},
};

static void
failures_have_their_kind(void **state)
{
	struct world *w = world_open();
	const char *refusal, *text;
	bool is_error;
	json_t *json;
	size_t i;

	for (i = 0; i < sizeof(failed_rows) / sizeof(failed_rows[0]); i++) {
		const struct failed_row *row = &failed_rows[i];

		assert_non_null(world_ask(
		    w, CONNECT, "{\"action\":\"get_dispatch\"}", &refusal));
		peer_fail(&w->to[w->asked_count - 1], row->reason, 0, "%s",
		    row->text);
		world_turn(w);
		json = world_answer_json(w, &is_error);
		assert_true(is_error);
		assert_int_equal(2, json_object_size(json));
		assert_string_equal(row->kind, member_text(json, "error"));
		text = member_text(json, "message");
		assert_non_null(strstr(text, row->has));
		assert_null(strstr(text, row->has_not));
		json_decref(json);
	}
	world_free(w);
}

/* Whatever it sent, it hears that it is out, and nobody else is asked. */
static void
who_was_taken_over_hears_that_alone(void **state)
{
	static const struct {
		const char *tool, *arguments;
	} calls[] = {
	    {THREAD, "{\"action\":\"read\",\"params\":{\"event_id\":101}}"},
	    {THREAD,
		"{\"action\":\"read\",\"params\":{\"event_id\":101,"
		"\"cursor\":\"a\\u0000\"}}"},
	    {THREAD,
		"{\"action\":\"boost\",\"params\":{\"event_id\":101,"
		"\"content\":\" \"}}"},
	    {CONNECT,
		"{\"action\":\"complete_dispatch\",\"params\":{"
		"\"event_id\":101}}"},
	    {CONNECT, "{\"action\":\"nonsense\"}"},
	};
	struct world *w = world_open();
	const char *refusal;
	size_t i;

	w->is_taken_over = true;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_null(
		    world_ask(w, calls[i].tool, calls[i].arguments, &refusal));
		assert_non_null(strstr(refusal, "task_token_refused"));
	}
	assert_int_equal(0, (int)w->asked_count);
	world_free(w);
}

static void
a_receipt_says_what_stands(void **state)
{
	static const char links[] = "[\"https://x/1\"]";
	struct world *w = world_open();
	struct msg m = {.type = MSG_REPORT_IS};
	const char *refusal;
	bool is_error;
	json_t *json;

	(void)world_ask(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1}}",
	    &refusal);
	m.report_is.event_id = 1;
	m.report_is.delivery = "completed";
	m.report_is.ack_id = (struct opt){true, 4};
	m.report_is.outcome = "failed";
	m.report_is.links = (struct blob){links, sizeof(links) - 1};
	world_reply(w, &m);
	json = world_answer_json(w, &is_error);
	assert_false(is_error);
	assert_int_equal(5, json_object_size(json));
	assert_int_equal(1, json_array_size(json_object_get(json, "links")));
	json_decref(json);
	(void)world_ask(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1}}",
	    &refusal);
	m = (struct msg){.type = MSG_REPORT_IS};
	m.report_is.event_id = 1;
	m.report_is.delivery = "delivered";
	m.report_is.links = (struct blob){"[]", 2};
	world_reply(w, &m);
	json = world_answer_json(w, &is_error);
	assert_int_equal(2, json_object_size(json));
	json_decref(json);
	world_free(w);
}

/* ---- tools/list ------------------------------------------------------- */

static void
tools_are_described_truly(void **state)
{
	struct buffer text = {0};
	json_t *tools, *tool, *hints;
	size_t i;

	tools_render(DOMAINS_ALL, &text);
	tools = json_loads(text.bytes, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(2, json_array_size(tools));
	json_array_foreach (tools, i, tool) {
		hints = json_object_get(tool, "annotations");
		assert_true(
		    json_is_false(json_object_get(hints, "readOnlyHint")));
		assert_true(
		    json_is_false(json_object_get(hints, "destructiveHint")));
		assert_true(
		    json_is_false(json_object_get(hints, "openWorldHint")));
		assert_true(json_is_true(json_object_get(
		    json_object_get(tool, "_meta"), "anthropic/alwaysLoad")));
		assert_string_equal("object",
		    member_text(json_object_get(tool, "inputSchema"), "type"));
		assert_string_not_equal("", member_text(tool, "description"));
	}
	json_decref(tools);
	text.len = 0;
	tools_render(DOMAIN_CONNECT, &text);
	tools = json_loads(text.bytes, 0, NULL);
	assert_int_equal(1, json_array_size(tools));
	json_decref(tools);
	buffer_free(&text);
	assert_null(tool_find(DOMAIN_CONNECT, THREAD, strlen(THREAD)));
}

/* The parameters that a tool's schema knows, and that some action reads. */
static void
assert_same_parameters(const struct tool *tool, const json_t *properties)
{
	json_t *left = json_deep_copy(properties);
	const struct action *action;
	size_t i, j;

	for (i = 0; i < tool->action_count; i++) {
		action = &tool->actions[i];
		for (j = 0; j < action->param_count; j++) {
			assert_non_null(json_object_get(
			    properties, action->params[j].name));
			(void)json_object_del(left, action->params[j].name);
		}
	}
	assert_int_equal(0, json_object_size(left));
	json_decref(left);
}

/* Its schema lists what is read, in the alphabet's order, and no more. */
static void
assert_schema(const char *name, const json_t *schema)
{
	const struct tool *tool = tool_find(DOMAINS_ALL, name, strlen(name));
	json_t *list, *params;
	size_t i;

	assert_int_equal(0,
	    json_unpack((json_t *)schema, "{s:{s:{s:o},s:o}}", "properties",
		"action", "enum", &list, "params", &params));
	assert_true(
	    json_is_false(json_object_get(schema, "additionalProperties")));
	assert_true(
	    json_is_false(json_object_get(params, "additionalProperties")));
	assert_int_equal(tool->action_count, json_array_size(list));
	for (i = 0; i < tool->action_count; i++) {
		assert_string_equal(tool->actions[i].name,
		    json_string_value(json_array_get(list, i)));
		if (i > 0)
			assert_true(strcmp(tool->actions[i - 1].name,
					tool->actions[i].name) < 0);
	}
	assert_same_parameters(tool, json_object_get(params, "properties"));
}

static void
schemas_say_what_is_read(void **state)
{
	struct buffer text = {0};
	json_t *tools, *tool, *links;
	int most, longest;
	size_t i;

	tools_render(DOMAINS_ALL, &text);
	tools = json_loads(text.bytes, 0, NULL);
	json_array_foreach (tools, i, tool)
		assert_schema(member_text(tool, "name"),
		    json_object_get(tool, "inputSchema"));
	assert_int_equal(0,
	    json_unpack(json_array_get(tools, 0), "{s:{s:{s:{s:{s:o}}}}}",
		"inputSchema", "properties", "params", "properties", "links",
		&links));
	assert_int_equal(0,
	    json_unpack(links, "{s:i,s:{s:i}}", "maxItems", &most, "items",
		"maxLength", &longest));
	assert_int_equal(20, most);
	assert_int_equal(2048, longest);
	json_decref(tools);
	buffer_free(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(wrong_parameters_are_named),
	    cmocka_unit_test(ids_are_never_rounded),
	    cmocka_unit_test(reports_go_to_the_ledger_as_given),
	    cmocka_unit_test(what_only_the_ledger_may_judge_reaches_it),
	    cmocka_unit_test(an_instruction_has_these_keys_and_no_other),
	    cmocka_unit_test(the_agent_is_not_mentioned_to_itself),
	    cmocka_unit_test(a_broken_snapshot_is_no_error_after_the_pull),
	    cmocka_unit_test(only_content_is_cut_and_at_a_character),
	    cmocka_unit_test(failures_have_their_kind),
	    cmocka_unit_test(who_was_taken_over_hears_that_alone),
	    cmocka_unit_test(a_receipt_says_what_stands),
	    cmocka_unit_test(tools_are_described_truly),
	    cmocka_unit_test(schemas_say_what_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
