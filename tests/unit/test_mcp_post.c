/* Posting, waiting, reading: the thread of an event (design 6, L8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/digest.h"
#include "mcp_world.h"
#include "mcpd/markup.h"

#define CONNECT "basecamp_connect"
#define THREAD "basecamp_thread"

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
	world_reply(w, &m);
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
	struct world *w = world_open();
	char hash[DIGEST_HEX_SIZE];
	const struct msg *m;
	const char *refusal;
	bool is_error;
	json_t *json;

	m = world_ask(w, THREAD, REPLY, &refusal);
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
	json = world_answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("sent", member_text(json, "state"));
	assert_int_equal(4711, json_integer_value(json_object_get(json, "id")));
	json_decref(json);
	world_free(w);
}

static void
a_boost_is_one_line_of_plain_text(void **state)
{
	struct world *w = world_open();
	const struct msg *m;
	const char *refusal;
	bool is_error;
	json_t *json;

	m = world_ask(w, THREAD,
	    "{\"action\":\"boost\",\"params\":{\"event_id\":\"1\",\"content\":"
	    "\" On\\n it \\ud83d\\udc40\"}}",
	    &refusal);
	assert_string_equal("worker_ack", m->post.kind);
	assert_int_equal(0, m->post.comment.len);
	assert_memory_equal(
	    "On it \xf0\x9f\x91\x80", m->post.line.bytes, m->post.line.len);
	post_stands(w, "sent", 5, false);
	json = world_answer_json(w, &is_error);
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

/* Its worker can do something about it, other than about a refusal. */
static void
what_holds_a_credential_is_said_to_hold_one(void **state)
{
	struct msg m = {.type = MSG_POST_IS};
	struct world *w = world_open();
	const char *refusal;
	bool is_error;
	json_t *json;

	(void)world_ask(w, THREAD, REPLY, &refusal);
	m.post_is = (struct msg_post_is){.intent_id = 33,
	    .state = "canceled",
	    .message_kind = "comment",
	    .refused = true,
	    .note = "refused; it holds a credential"};
	world_reply(w, &m);
	json = world_answer_json(w, &is_error);
	assert_true(is_error);
	assert_string_equal("refused", member_text(json, "state"));
	assert_non_null(strstr(member_text(json, "message"), "credential"));
	assert_null(strstr(member_text(json, "message"), "Basecamp"));
	json_decref(json);
	world_free(w);
}

static void
what_is_final_is_said_at_once(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	bool is_error;
	json_t *json;
	size_t i;

	for (i = 0; i < sizeof(stands_rows) / sizeof(stands_rows[0]); i++) {
		(void)world_ask(w, THREAD, REPLY, &refusal);
		post_stands(
		    w, stands_rows[i].state, 0, stands_rows[i].is_refused);
		json = world_answer_json(w, &is_error);
		assert_string_equal(
		    stands_rows[i].word, member_text(json, "state"));
		assert_int_equal(stands_rows[i].is_error, is_error);
		assert_null(json_object_get(json, "id"));
		json_decref(json);
	}
	world_free(w);
}

static void
waiting_for_a_post_has_its_bound(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	bool is_error;
	json_t *json;

	w->server.post_wait_ms = 30;
	(void)world_ask(w, THREAD, REPLY, &refusal);
	post_stands(w, "sending", 0, false);
	event_base_loop(w->base, EVLOOP_ONCE);
	json = world_answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("pending", member_text(json, "state"));
	json_decref(json);
	assert_int_equal(0, w->server.call_count);
	/* No waiting at all. */
	w->server.post_wait_ms = 0;
	(void)world_ask(w, THREAD, REPLY, &refusal);
	post_stands(w, "pending", 0, false);
	json = world_answer_json(w, &is_error);
	assert_string_equal("pending", member_text(json, "state"));
	json_decref(json);
	world_free(w);
}

/* Nobody tells what settled while there was no link: it is asked again. */
static void
a_new_ledger_is_asked_how_a_post_stands(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	bool is_error;
	json_t *json;

	(void)world_ask(w, THREAD, REPLY, &refusal);
	post_stands(w, "pending", 0, false);
	world_relink(w);
	assert_int_equal(2, w->asked_count);
	post_stands(w, "sent", 8, false);
	json = world_answer_json(w, &is_error);
	assert_string_equal("sent", member_text(json, "state"));
	json_decref(json);
	world_free(w);
}

static void
a_call_has_its_deadline(void **state)
{
	struct world *w = world_open();
	const char *refusal;
	bool is_error;
	json_t *json;

	w->server.call_deadline_ms = 30;
	(void)world_ask(w, CONNECT, "{\"action\":\"get_dispatch\"}", &refusal);
	event_base_loop(w->base, EVLOOP_ONCE);
	json = world_answer_json(w, &is_error);
	assert_true(is_error);
	assert_string_equal("cancelled", member_text(json, "error"));
	assert_non_null(strstr(member_text(json, "message"), "30 ms"));
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
	struct world *w = world_open();
	struct msg m = {.type = MSG_THREAD};
	const struct msg *question;
	const char *refusal;
	bool is_error;
	json_t *json;

	question = world_ask(w, THREAD,
	    "{\"action\":\"read\",\"params\":{\"event_id\":5,\"cursor\":"
	    "\"c1\"}}",
	    &refusal);
	assert_int_equal(MSG_READ_THREAD, question->type);
	assert_int_equal(5, question->read_thread.event_id);
	assert_string_equal("c1", question->read_thread.cursor);
	m.thread.json = (struct blob){page, sizeof(page) - 1};
	world_reply(w, &m);
	json = world_answer_json(w, &is_error);
	assert_false(is_error);
	assert_string_equal("t.1.2", member_text(json, "older"));
	json_decref(json);
	(void)world_ask(w, THREAD,
	    "{\"action\":\"read\",\"params\":{\"event_id\":5}}", &refusal);
	peer_fail(&w->to[1], "not_exposed", 0, "%s", "");
	world_turn(w);
	json = world_answer_json(w, &is_error);
	assert_true(is_error);
	assert_string_equal("not_exposed", member_text(json, "error"));
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_reply_is_rendered_hashed_and_waited_for),
	    cmocka_unit_test(a_boost_is_one_line_of_plain_text),
	    cmocka_unit_test(what_is_final_is_said_at_once),
	    cmocka_unit_test(what_holds_a_credential_is_said_to_hold_one),
	    cmocka_unit_test(waiting_for_a_post_has_its_bound),
	    cmocka_unit_test(a_new_ledger_is_asked_how_a_post_stands),
	    cmocka_unit_test(a_call_has_its_deadline),
	    cmocka_unit_test(a_page_of_the_thread_comes_from_intake),
	    cmocka_unit_test(no_markup_of_a_worker_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
