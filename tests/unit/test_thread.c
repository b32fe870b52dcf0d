/*
 * Threads for workers: cursors, cutting, and the reads behind a page, against
 * a scripted Basecamp.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/utf8.h"
#include "intake/thread.h"
#include "tests/unit/intake_stage.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* ---- cursors and pages --------------------------------------------------- */

static void
test_cursors(void **state)
{
	static const char *const good[] = {"", "t.1.2", "r.0", "r.2000",
	    "c.3.4.5",
	    "c.9223372036854775807.9223372036854775807.9223372036854775807"};
	static const char *const foul[] = {"t", "t.", "t.1", "t.1.", "t.0.1",
	    "t.1.0", "t.-1.1", "t.1.2.3", "x.1.2", "r", "r.x", "r.1.2", "r.-1",
	    "r. 1", "c.1.2", "c.1.2.", "t.1.99999999999999999999", " t.1.2",
	    "T.1.2", "t.1.2 "};
	char printed[THREAD_CURSOR_SIZE];
	struct thread_cursor c;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(thread_cursor_parse(good[i], &c), 0);
		thread_cursor_print(&c, printed);
		assert_string_equal(printed, good[i]);
	}
	for (i = 0; i < COUNT(foul); i++) {
		print_message("%s\n", foul[i]);
		assert_int_equal(thread_cursor_parse(foul[i], &c), -1);
	}
}

static void
test_last_page(void **state)
{
	static const int64_t t[][2] = {{0, 1}, {1, 1}, {15, 1}, {16, 2},
	    {45, 2}, {46, 3}, {95, 3}, {96, 4}, {195, 4}, {196, 5}, {295, 5},
	    {296, 6}};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++)
		assert_int_equal(thread_last_page(t[i][0]), t[i][1]);
}

/* Asking for what is more, piece by piece, gives the whole text. */
static void
test_rest_of_content(void **state)
{
	struct thread_cursor c = {.want = WANT_COMMENT};
	struct buffer text = {0}, got = {0};
	struct thread_page page;
	json_t *comment, *json;
	const char *more;
	int i;

	(void)state;
	for (i = 0; i < 2000; i++)
		buffer_add_text(&text, i % 3 == 0 ? "x" : "\xe2\x82\xac");
	comment = json_pack("{s:i,s:s}", "id", 7, "content", text.bytes);
	for (i = 0;; i++) {
		page = (struct thread_page){0};
		assert_int_equal(
		    thread_page_add(&page, comment, 2, c.offset), 0);
		json = json_loads(page.comments[0], 0, NULL);
		assert_non_null(json);
		buffer_add_text(
		    &got, json_string_value(json_object_get(json, "content")));
		more = json_string_value(json_object_get(json, "more"));
		assert_int_equal(more != NULL,
		    json_is_true(json_object_get(json, "content_truncated")));
		if (more != NULL)
			assert_int_equal(thread_cursor_parse(more, &c), 0);
		thread_page_free(&page);
		json_decref(json);
		if (more == NULL)
			break;
		assert_int_equal(c.page, 2);
		assert_int_equal(c.id, 7);
	}
	assert_true(i >= 2);
	assert_string_equal(got.bytes, text.bytes);
	json_decref(comment);
	buffer_free(&text);
	buffer_free(&got);
}

static void
test_page_bound(void **state)
{
	struct thread_page page = {0};
	struct buffer b = {0}, text = {0};
	json_t *comment;
	int i;

	(void)state;
	for (i = 0; i < 1500; i++)
		buffer_add_char(&text, '"'); /* twice as long in JSON */
	for (i = 30; i > 0 && thread_page_has_room(&page); i--) {
		comment =
		    json_pack("{s:i,s:s}", "id", i, "content", text.bytes);
		assert_int_equal(thread_page_add(&page, comment, 1, 0), 0);
		json_decref(comment);
	}
	assert_true(page.is_full);
	assert_true(page.count >= 1 && page.count < 5);
	thread_write_comments(&b, &page, true);
	assert_true(b.len < THREAD_PAGE_BYTES + 100);
	thread_page_free(&page);
	buffer_free(&b);
	buffer_free(&text);
}

/* ---- the reads ------------------------------------------------------------
 */

static void
answered(struct peer *intake, struct msg *reply, void *arg)
{
	struct stage *s = arg;

	(void)intake;
	if (reply->type == MSG_FAILED)
		stage_note(s, "FAILED %s %d", reply->failed.reason,
		    (int)reply->failed.wait_ms);
	else
		stage_note(s, "THREAD %.*s", (int)reply->thread.json.len,
		    (const char *)reply->thread.json.bytes);
}

static void
ask(struct stage *s, const char *cursor)
{
	struct msg m = {.type = MSG_READ_THREAD};

	m.read_thread.event_id = 101;
	m.read_thread.cursor = cursor;
	(void)peer_request(s->mcpd, &m, answered, s);
}

static struct stage *
stage_of(const char *type, const char *reply_kind)
{
	struct stage *s = stage_new();

	s->in.policy = policy_new(s->config);
	s->in.api.account_id = 999;
	s->in.api.timeout_ms = 2000;
	s->thread = (struct msg_thread_is){.event_type = type,
	    .bucket_id = STAGE_PROJECT,
	    .recording_id = 5,
	    .reply_kind = reply_kind,
	    .reply_recording_id = 4};
	return s;
}

/* What was asked of Basecamp and what came, without token and ledger. */
static void
expect(struct stage *s, const char *text)
{
	static const char *const about[] = {"token = waiting\n", "TOKEN 0\n",
	    "token = held\n", "THREAD_OF att_0123456789abcdef01234567 101\n"};
	char *at;
	size_t i;

	for (i = 0; i < COUNT(about); i++) {
		at = strstr(s->journal.bytes, about[i]);
		if (at != NULL)
			memmove(at, at + strlen(about[i]),
			    strlen(at + strlen(about[i])) + 1);
	}
	stage_expect(s, text);
}

#define BODY(id, more)                                                        \
	"{\"id\":" #id ",\"bucket\":{\"id\":48699913},\"creator\":{\"id\":9," \
	"\"name\":\"Ann\",\"personable_type\":\"User\"}," more "}"
#define SAID(id, text)                                                    \
	"{\"id\":" #id ",\"created_at\":\"t" #id "\",\"content\":\"" text \
	"\",\"creator\":{\"id\":9,\"name\":\"Ann\"}}"
#define OUT(id, text)                                                         \
	"{\"id\":" #id ",\"creator\":{\"id\":9,\"name\":\"Ann\",\"is_agent\"" \
	":false},\"created_at\":\"t" #id "\",\"content\":\"" text "\"}"

static void
test_comment(void **state)
{
	struct stage *s = stage_of("comment.created", "comment");

	(void)state;
	/* Of a comment the thread is what it is on. */
	stage_answer(s, "comments/5", 200, NULL,
	    BODY(5,
		"\"content\":\"hi\",\"parent\":{\"id\":4,\"type\":"
		"\"Todo\",\"title\":\"T\",\"app_url\":\"u4\"}"));
	stage_answer(s, "todos/4", 200, NULL,
	    BODY(4,
		"\"type\":\"Todo\",\"title\":\"T\",\"app_url\":\"u4\","
		"\"updated_at\":\"now\",\"description\":\"long\""));
	stage_answer(s, "recordings/4/comments.json?page=1", 200, NULL,
	    "[" SAID(1, "one") "," SAID(5, "two") "]");
	ask(s, "");
	stage_await(s, "THREAD {");
	expect(s,
	    "GET comments/5\nGET todos/4\n"
	    "GET recordings/4/comments.json?page=1\n"
	    "THREAD {\"recording\":{\"id\":4,\"type\":\"Todo\","
	    "\"title\":\"T\",\"url\":\"u4\",\"creator\":{\"id\":9,"
	    "\"name\":\"Ann\",\"is_agent\":false},\"updated_at\":"
	    "\"now\",\"content\":\"long\"},\"comments\":[" OUT(
		1, "one") "," OUT(5, "two") "],\"older\":null}\n");
	stage_free(s);
}

static void
test_parent_without_read(void **state)
{
	struct stage *s = stage_of("comment.created", "comment");

	(void)state;
	stage_answer(s, "comments/5", 200, NULL,
	    BODY(5,
		"\"content\":\"hi\",\"parent\":{\"id\":4,\"type\":"
		"\"Document\",\"title\":\"T\",\"app_url\":\"u4\"}"));
	stage_answer(s, "recordings/4/comments.json", 200, NULL, "[]");
	ask(s, "");
	stage_await(s, "THREAD {");
	expect(s,
	    "GET comments/5\nGET recordings/4/comments.json?page=1\n"
	    "THREAD {\"recording\":{\"id\":4,\"type\":\"Document\","
	    "\"title\":\"T\",\"url\":\"u4\"},\"comments\":[],"
	    "\"older\":null}\n");
	stage_free(s);
}

static void
test_message(void **state)
{
	struct stage *s = stage_of("message.created", "comment");

	(void)state;
	stage_answer(s, "messages/5", 200, NULL, BODY(5, "\"subject\":\"S\""));
	stage_answer(s, "recordings/4/comments.json", 200, NULL, "[]");
	ask(s, "");
	stage_await(s, "\"title\":\"S\"");
	stage_free(s);
}

/* From the end, which the total tells; then on with the cursor. */
static void
test_from_the_end(void **state)
{
	struct stage *s = stage_of("comment.created", "comment");
	struct buffer b = {0};
	int i;

	(void)state;
	stage_answer(s, "comments/5", 200, NULL,
	    BODY(5, "\"parent\":{\"id\":4,\"type\":\"Document\"}"));
	stage_answer(s, "recordings/4/comments.json?page=1", 200,
	    "X-Total-Count: 47\nLink: <@/recordings/4/comments.json?page=2>;"
	    " rel=\"next\"",
	    "[" SAID(1, "x") "]");
	stage_answer(s, "recordings/4/comments.json?page=3", 200, NULL,
	    "[" SAID(46, "x") "," SAID(47, "y") "]");
	for (i = 16; i <= 45; i++)
		buffer_printf(&b,
		    "%s{\"id\":%d,\"content\":\"c%d\",\"creator\":{\"id\":9}}",
		    i == 16 ? "[" : ",", i, i);
	buffer_add_char(&b, ']');
	stage_answer(s, "recordings/4/comments.json?page=2", 200,
	    "Link: <@/recordings/4/comments.json?page=3>; rel=\"next\"",
	    b.bytes);
	ask(s, "");
	stage_await(s, "THREAD {");
	/* Twenty: 47 and 46, then 45 down to 28 of the page before. */
	assert_non_null(strstr(s->journal.bytes, "\"comments\":[{\"id\":28,"));
	assert_non_null(strstr(s->journal.bytes, "\"older\":\"t.2.28\""));
	assert_int_equal(stage_count(s, "GET recordings"), 3);
	stage_answer(
	    s, "recordings/4/comments.json?page=2", 200, NULL, b.bytes);
	stage_answer(s, "recordings/4/comments.json?page=1", 200, NULL,
	    "[" SAID(1, "one") "]");
	buffer_free(&s->journal);
	s->journal = (struct buffer){0};
	ask(s, "t.2.28");
	stage_await(s, "THREAD {\"recording\":null");
	assert_non_null(strstr(
	    s->journal.bytes, "\"comments\":[" OUT(1, "one") ",{\"id\":16,"));
	assert_non_null(strstr(s->journal.bytes, "\"content\":\"c27\"}]"));
	assert_null(strstr(s->journal.bytes, "c28"));
	assert_non_null(strstr(s->journal.bytes, "\"older\":null"));
	buffer_free(&b);
	stage_free(s);
}

static void
test_chat(void **state)
{
	struct stage *s = stage_of("chat.line.created", "chat_line");

	(void)state;
	stage_answer(s, "chats/4/lines/5", 200, NULL,
	    BODY(5, "\"type\":\"Chat::Lines::RichText\",\"content\":\"q\""));
	stage_answer(s,
	    "chats/4/lines.json?sort=created_at&direction=desc&"
	    "page=1",
	    200, NULL, "[" SAID(5, "q") "," SAID(3, "p") "]");
	ask(s, "");
	stage_await(s, "THREAD {");
	assert_non_null(strstr(s->journal.bytes,
	    "\"comments\":[" OUT(3, "p") "," OUT(5, "q") "],\"older\":null}"));
	stage_answer(s,
	    "chats/4/lines.json?sort=created_at&direction=desc&"
	    "page=2",
	    200, NULL, "[" SAID(3, "p") "," SAID(2, "o") "]");
	ask(s, "t.2.3"); /* a new line has moved them on */
	stage_await(s, "\"comments\":[" OUT(2, "o") "]");
	stage_free(s);
}

static void
test_rest(void **state)
{
	struct stage *s = stage_of("message.created", "comment");

	(void)state;
	stage_answer(
	    s, "messages/5", 200, NULL, BODY(5, "\"content\":\"abcdef\""));
	ask(s, "r.4");
	stage_await(s, "\"content\":\"ef\"},\"comments\":[],\"older\":null}");
	stage_answer(s, "recordings/4/comments.json?page=3", 200, NULL,
	    "[" SAID(1, "one") "," SAID(2, "abcdef") "]");
	ask(s, "c.3.2.4");
	stage_await(s,
	    "THREAD {\"recording\":null,\"comments\":[" OUT(
		2, "ef") "],\"older\":null}");
	stage_free(s);
}

static void
test_failures(void **state)
{
	static const struct {
		int status;
		const char *headers, *body, *want;
	} t[] = {
	    {404, NULL, "", "FAILED not_found 0"},
	    {403, NULL, "", "FAILED refused 0"},
	    {401, NULL, "", "FAILED transient 0"},
	    {429, "Retry-After: 9", "", "FAILED throttled 9000"},
	    {500, NULL, "", "FAILED transient 0"},
	    {302, "Location: /", "", "FAILED transient 0"},
	    {200, NULL, "half", "FAILED transient 0"},
	    {200, NULL, "[]", "FAILED transient 0"},
	    {200, NULL, "{\"id\":5,\"bucket\":{\"id\":1}}",
		"FAILED not_found 0"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%d %s\n", t[i].status, t[i].want);
		s = stage_of("message.created", "comment");
		stage_answer(
		    s, "messages/5", t[i].status, t[i].headers, t[i].body);
		ask(s, "");
		stage_await(s, t[i].want);
		assert_int_equal(stage_count(s, "GET"), 1);
		stage_free(s);
	}
}

static void
test_refused(void **state)
{
	struct stage *s = stage_of("message.created", "comment");
	int i;

	(void)state;
	ask(s, "t.1");
	stage_await(s, "FAILED unusable");
	assert_int_equal(stage_count(s, "THREAD_OF"), 0);
	/* The ledger's word is passed on. */
	s->thread.recording_id = 0;
	ask(s, "");
	stage_await(s, "FAILED not_exposed");
	/* A task may not have more than a few under way. */
	s->thread.recording_id = 5;
	for (i = 0; i < 5; i++)
		ask(s, "");
	stage_await(s, "FAILED busy");
	assert_int_equal(stage_count(s, "FAILED busy"), 1);
	/* Its death ends them: the next one's are not too many. */
	threads_forget(s->in.threads, s->mcpd_here);
	ask(s, "");
	stage_linger(s, 30);
	assert_int_equal(stage_count(s, "FAILED"), 3);
	stage_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cursors),
	    cmocka_unit_test(test_last_page),
	    cmocka_unit_test(test_rest_of_content),
	    cmocka_unit_test(test_page_bound),
	    cmocka_unit_test(test_comment),
	    cmocka_unit_test(test_parent_without_read),
	    cmocka_unit_test(test_message),
	    cmocka_unit_test(test_from_the_end),
	    cmocka_unit_test(test_chat),
	    cmocka_unit_test(test_rest),
	    cmocka_unit_test(test_failures),
	    cmocka_unit_test(test_refused),
	};
	struct error e;

	log_init("test_thread", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
