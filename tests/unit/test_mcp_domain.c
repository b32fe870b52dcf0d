/* The two tools (ledger.md 6, design 6 and L8): what goes to the ledger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base64.h"
#include "common/digest.h"
#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/fit.h"
#include "mcpd/instruction.h"
#include "mcpd/markup.h"
#include "mcpd/tools.h"

#define CONNECT "basecamp_connect"
#define THREAD "basecamp_thread"

static struct world *
opened(void)
{
	struct world *w = world_new();

	world_initialize(w, "2025-11-25");
	return w;
}

/* The request that the call brought, or NULL and its refusal's text. */
static const struct msg *
asked(struct world *w, const char *tool, const char *arguments,
    const char **refusal)
{
	size_t before = w->asked_count;
	bool is_error = false;

	*refusal = world_call(w, tool, arguments, &is_error);
	if (*refusal == NULL) {
		assert_int_equal(before + 1, w->asked_count);
		return w->asked[before];
	}
	assert_true(is_error);
	assert_int_equal(before, w->asked_count);
	return NULL;
}

static void
reply(struct world *w, struct msg *m)
{
	peer_reply(&w->to[w->asked_count - 1], m);
	world_turn(w);
}

/* The text of the answer that comes now. */
static json_t *
answer_json(struct world *w, bool *is_error)
{
	const char *line = world_hear(w);
	json_t *answer, *json;
	const char *text;
	int failed;

	assert_non_null(line);
	answer = json_loads(line, 0, NULL);
	assert_int_equal(0,
	    json_unpack(answer, "{s:{s:[{s:s}],s:b}}", "result", "content",
		"text", &text, "isError", &failed));
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	*is_error = failed != 0;
	json_decref(answer);
	return json;
}

static const char *
member(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text == NULL ? "" : text;
}

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
	struct world *w = opened();
	const char *refusal;
	size_t i;

	for (i = 0; i < sizeof(refused_rows) / sizeof(refused_rows[0]); i++) {
		const struct refused_row *row = &refused_rows[i];

		assert_null(asked(w, row->tool, row->arguments, &refusal));
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
	struct world *w = opened();
	const struct msg *m;
	const char *refusal;
	size_t i;

	for (i = 0; i < sizeof(id_rows) / sizeof(id_rows[0]); i++) {
		m = asked(w, CONNECT, id_rows[i].arguments, &refusal);
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
	struct world *w = opened();
	const char *refusal;
	const struct msg *m;

	m = asked(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	    "\"ack_id\":null}}",
	    &refusal);
	assert_int_equal(MSG_ACK_DISPATCH, m->type);
	assert_false(m->ack_dispatch.ack_id.has);
	m = asked(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1,"
	    "\"ack_id\":\"77\"}}",
	    &refusal);
	assert_int_equal(77, m->ack_dispatch.ack_id.value);
	m = asked(w, CONNECT,
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
	m = asked(w, CONNECT,
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
	struct world *w = opened();
	struct buffer arguments = {0};
	const char *refusal, *links;
	const struct msg *m;
	json_t *list;
	int i;

	m = asked(w, CONNECT,
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
	m = asked(w, CONNECT, arguments.bytes, &refusal);
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
	m = asked(w, CONNECT, arguments.bytes, &refusal);
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
	assert_int_equal(5, json_object_size(body));
	assert_string_equal("https://x.test/8", member(body, "url"));
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
	assert_string_not_equal("", member(json, "message"));
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
	    want, member(json_object_get(json, "instruction"), "content"));
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
	    "", member(json_object_get(json, "instruction"), "content"));
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
	text = fit_text(json, &len);
	assert_int_equal(strlen(text), len);
	assert_in_range(len, FIT_TEXT_MAX * 7 / 8 - 400, FIT_TEXT_MAX);
	back = json_loads(text, 0, NULL);
	assert_non_null(back);
	cut = member(json_object_get(back, "instruction"), "content");
	assert_int_equal(0, strlen(cut) % 3);
	assert_true(json_is_true(json_object_get(
	    json_object_get(back, "instruction"), "content_truncated")));
	assert_string_equal(
	    "kept", member(json_object_get(back, "instruction"), "title"));
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
	struct world *w = opened();
	const char *refusal, *text;
	bool is_error;
	json_t *json;
	size_t i;

	for (i = 0; i < sizeof(failed_rows) / sizeof(failed_rows[0]); i++) {
		const struct failed_row *row = &failed_rows[i];

		assert_non_null(asked(
		    w, CONNECT, "{\"action\":\"get_dispatch\"}", &refusal));
		peer_fail(&w->to[w->asked_count - 1], row->reason, 0, "%s",
		    row->text);
		world_turn(w);
		json = answer_json(w, &is_error);
		assert_true(is_error);
		assert_int_equal(2, json_object_size(json));
		assert_string_equal(row->kind, member(json, "error"));
		text = member(json, "message");
		assert_non_null(strstr(text, row->has));
		assert_null(strstr(text, row->has_not));
		json_decref(json);
	}
	world_free(w);
}

static void
a_receipt_says_what_stands(void **state)
{
	static const char links[] = "[\"https://x/1\"]";
	struct world *w = opened();
	struct msg m = {.type = MSG_REPORT_IS};
	const char *refusal;
	bool is_error;
	json_t *json;

	(void)asked(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1}}",
	    &refusal);
	m.report_is.event_id = 1;
	m.report_is.delivery = "completed";
	m.report_is.ack_id = (struct opt){true, 4};
	m.report_is.outcome = "failed";
	m.report_is.links = (struct blob){links, sizeof(links) - 1};
	reply(w, &m);
	json = answer_json(w, &is_error);
	assert_false(is_error);
	assert_int_equal(5, json_object_size(json));
	assert_int_equal(1, json_array_size(json_object_get(json, "links")));
	json_decref(json);
	(void)asked(w, CONNECT,
	    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":1}}",
	    &refusal);
	m = (struct msg){.type = MSG_REPORT_IS};
	m.report_is.event_id = 1;
	m.report_is.delivery = "delivered";
	m.report_is.links = (struct blob){"[]", 2};
	reply(w, &m);
	json = answer_json(w, &is_error);
	assert_int_equal(2, json_object_size(json));
	json_decref(json);
	world_free(w);
}

/* ---- posting ---------------------------------------------------------- */

#define REPLY                                                           \
	"{\"action\":\"reply\",\"params\":{\"event_id\":1,\"content\":" \
	"\"**Done**, see <b>it</b>\"}}"

static void
post_stands(
    struct world *w, const char *standing, int64_t receipt, bool is_refused)
{
	struct msg m = {.type = MSG_POST_IS};

	m.post_is.intent_id = 33;
	m.post_is.state = standing;
	m.post_is.message_kind = "comment";
	m.post_is.refused = is_refused;
	m.post_is.receipt_id = (struct opt){receipt != 0, receipt};
	reply(w, &m);
}

static void
settle(struct world *w, int64_t intent_id)
{
	struct msg m = {.type = MSG_POST_SETTLED};

	m.post_settled.intent_id = intent_id;
	peer_notice(w->ledger, &m);
	world_turn(w);
}

static void
a_reply_is_rendered_hashed_and_waited_for(void **state)
{
	static const char content[] = "**Done**, see <b>it</b>";
	struct world *w = opened();
	char hash[DIGEST_HEX_SIZE];
	const struct msg *m;
	const char *refusal;
	bool is_error;
	json_t *json;

	m = asked(w, THREAD, REPLY, &refusal);
	assert_int_equal(MSG_POST, m->type);
	assert_string_equal("worker_reply", m->post.kind);
	digest_sha256_hex(content, sizeof(content) - 1, hash);
	assert_string_equal(hash, m->post.hash);
	assert_string_equal("<p><strong>Done</strong>, see "
			    "&lt;b&gt;it&lt;/b&gt;</p>",
	    m->post.comment.bytes);
	assert_memory_equal(content, m->post.line.bytes, m->post.line.len);
	post_stands(w, "pending", 0, false);
	world_expect_silence(w);
	settle(w, 32);
	assert_int_equal(1, w->asked_count);
	settle(w, 33);
	assert_int_equal(2, w->asked_count);
	assert_string_equal(hash, w->asked[1]->post.hash);
	assert_int_equal(
	    w->asked[0]->post.comment.len, w->asked[1]->post.comment.len);
	post_stands(w, "sent", 4711, false);
	json = answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("sent", member(json, "state"));
	assert_int_equal(4711, json_integer_value(json_object_get(json, "id")));
	json_decref(json);
	world_free(w);
}

static void
a_boost_is_one_line_of_plain_text(void **state)
{
	struct world *w = opened();
	const struct msg *m;
	const char *refusal;
	bool is_error;
	json_t *json;

	m = asked(w, THREAD,
	    "{\"action\":\"boost\",\"params\":{\"event_id\":\"1\",\"content\":"
	    "\" On\\n it \\ud83d\\udc40\"}}",
	    &refusal);
	assert_string_equal("worker_ack", m->post.kind);
	assert_int_equal(0, m->post.comment.len);
	assert_memory_equal(
	    "On it \xf0\x9f\x91\x80", m->post.line.bytes, m->post.line.len);
	post_stands(w, "sent", 5, false);
	json = answer_json(w, &is_error);
	assert_int_equal(5, json_integer_value(json_object_get(json, "id")));
	json_decref(json);
	world_free(w);
}

static const struct stands_row {
	const char *state;
	bool is_refused;
	const char *word;
	bool is_error;
} stands_rows[] = {
    {"indeterminate", false, "in_doubt", false},
    {"abandoned", false, "in_doubt", false},
    {"canceled", false, "canceled", true},
    {"canceled", true, "refused", true},
};

static void
what_is_final_is_said_at_once(void **state)
{
	struct world *w = opened();
	const char *refusal;
	bool is_error;
	json_t *json;
	size_t i;

	for (i = 0; i < sizeof(stands_rows) / sizeof(stands_rows[0]); i++) {
		(void)asked(w, THREAD, REPLY, &refusal);
		post_stands(
		    w, stands_rows[i].state, 0, stands_rows[i].is_refused);
		json = answer_json(w, &is_error);
		assert_string_equal(stands_rows[i].word, member(json, "state"));
		assert_int_equal(stands_rows[i].is_error, is_error);
		assert_null(json_object_get(json, "id"));
		json_decref(json);
	}
	world_free(w);
}

static void
waiting_for_a_post_has_its_bound(void **state)
{
	struct world *w = opened();
	const char *refusal;
	bool is_error;
	json_t *json;

	w->server.post_wait_ms = 30;
	(void)asked(w, THREAD, REPLY, &refusal);
	post_stands(w, "sending", 0, false);
	event_base_loop(w->base, EVLOOP_ONCE);
	json = answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("pending", member(json, "state"));
	json_decref(json);
	assert_int_equal(0, w->server.call_count);
	/* No waiting at all. */
	w->server.post_wait_ms = 0;
	(void)asked(w, THREAD, REPLY, &refusal);
	post_stands(w, "pending", 0, false);
	json = answer_json(w, &is_error);
	assert_string_equal("pending", member(json, "state"));
	json_decref(json);
	world_free(w);
}

/* Nobody tells what settled while there was no link: it is asked again. */
static void
a_new_ledger_is_asked_how_a_post_stands(void **state)
{
	struct world *w = opened();
	const char *refusal;
	bool is_error;
	json_t *json;

	(void)asked(w, THREAD, REPLY, &refusal);
	post_stands(w, "pending", 0, false);
	world_relink(w);
	assert_int_equal(2, w->asked_count);
	post_stands(w, "sent", 8, false);
	json = answer_json(w, &is_error);
	assert_string_equal("sent", member(json, "state"));
	json_decref(json);
	world_free(w);
}

static void
a_call_has_its_deadline(void **state)
{
	struct world *w = opened();
	const char *refusal;
	bool is_error;
	json_t *json;

	w->server.call_deadline_ms = 30;
	(void)asked(w, CONNECT, "{\"action\":\"get_dispatch\"}", &refusal);
	event_base_loop(w->base, EVLOOP_ONCE);
	json = answer_json(w, &is_error);
	assert_true(is_error);
	assert_string_equal("cancelled", member(json, "error"));
	assert_non_null(strstr(member(json, "message"), "30 ms"));
	json_decref(json);
	/* Its answer, when it comes, is nobody's. */
	assert_int_equal(1, w->server.call_count);
	peer_fail(&w->to[0], "held", 0, "%s", "");
	world_turn(w);
	world_expect_silence(w);
	assert_int_equal(0, w->server.call_count);
	world_free(w);
}

/* ---- reading ---------------------------------------------------------- */

static void
a_page_of_the_thread_comes_from_intake(void **state)
{
	static const char page[] = "{\"recording\":{\"content\":\"r\"},"
				   "\"comments\":[],\"older\":\"t.1.2\"}";
	struct world *w = opened();
	struct msg m = {.type = MSG_THREAD};
	const struct msg *question;
	const char *refusal;
	bool is_error;
	json_t *json;

	question = asked(w, THREAD,
	    "{\"action\":\"read\",\"params\":{\"event_id\":5,\"cursor\":"
	    "\"c1\"}}",
	    &refusal);
	assert_int_equal(MSG_READ_THREAD, question->type);
	assert_int_equal(5, question->read_thread.event_id);
	assert_string_equal("c1", question->read_thread.cursor);
	m.thread.json = (struct blob){page, sizeof(page) - 1};
	reply(w, &m);
	json = answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("t.1.2", member(json, "older"));
	json_decref(json);
	(void)asked(w, THREAD,
	    "{\"action\":\"read\",\"params\":{\"event_id\":5}}", &refusal);
	peer_fail(&w->to[1], "not_exposed", 0, "%s", "");
	world_turn(w);
	json = answer_json(w, &is_error);
	assert_true(is_error);
	assert_string_equal("not_exposed", member(json, "error"));
	json_decref(json);
	world_free(w);
}

/* ---- markup ----------------------------------------------------------- */

static const struct markup_row {
	const char *text, *html, *plain_html;
} markup_rows[] = {
    {"plain", "<p>plain</p>", "<div>plain</div>"},
    {"a\nb", "<p>a\nb</p>", "<div>a<br>\nb</div>"},
    {"use `Vec<u8>`", "<p>use <code>Vec&lt;u8&gt;</code></p>",
	"<div>use `Vec&lt;u8&gt;`</div>"},
    {"a <b>x</b>", "<p>a &lt;b&gt;x&lt;/b&gt;</p>",
	"<div>a &lt;b&gt;x&lt;/b&gt;</div>"},
    {"<bc-attachment sgid=\"x\">\n",
	"<p>&lt;bc-attachment sgid=&quot;x&quot;&gt;\n</p>",
	"<div>&lt;bc-attachment sgid=&quot;x&quot;&gt;</div>"},
    {"<div>\n*x*\n</div>\n\n*y*",
	"<p>&lt;div&gt;\n*x*\n&lt;/div&gt;\n</p>\n<p><em>y</em></p>",
	"<div>&lt;div&gt;<br>\n*x*<br>\n&lt;/div&gt;<br>\n<br>\n*y*</div>"},
    {"[x](javascript:alert)", "<p><a href=\"\">x</a></p>",
	"<div>[x](javascript:alert)</div>"},
    {"# H\n\n- a\n- b", "<h1>H</h1>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>",
	"<div># H<br>\n<br>\n- a<br>\n- b</div>"},
};

static void
no_markup_of_a_worker_passes(void **state)
{
	const struct markup_row *row;
	size_t i, len;
	char *html;

	for (i = 0; i < sizeof(markup_rows) / sizeof(markup_rows[0]); i++) {
		row = &markup_rows[i];
		html = markup_markdown_html(row->text, strlen(row->text), &len);
		assert_string_equal(row->html, html);
		assert_int_equal(strlen(html), len);
		free(html);
		html = markup_plain_html(row->text, strlen(row->text), &len);
		assert_string_equal(row->plain_html, html);
		assert_int_equal(strlen(html), len);
		free(html);
	}
	html = markup_plain_text(" a\0b\xff \n", 7, &len);
	assert_string_equal("a\xef\xbf\xbd"
			    "b\xef\xbf\xbd",
	    html);
	free(html);
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
		    member(json_object_get(tool, "inputSchema"), "type"));
		assert_string_not_equal("", member(tool, "description"));
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
	    cmocka_unit_test(a_receipt_says_what_stands),
	    cmocka_unit_test(a_reply_is_rendered_hashed_and_waited_for),
	    cmocka_unit_test(a_boost_is_one_line_of_plain_text),
	    cmocka_unit_test(what_is_final_is_said_at_once),
	    cmocka_unit_test(waiting_for_a_post_has_its_bound),
	    cmocka_unit_test(a_new_ledger_is_asked_how_a_post_stands),
	    cmocka_unit_test(a_call_has_its_deadline),
	    cmocka_unit_test(a_page_of_the_thread_comes_from_intake),
	    cmocka_unit_test(no_markup_of_a_worker_passes),
	    cmocka_unit_test(tools_are_described_truly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
