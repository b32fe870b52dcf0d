/* What a worker reports, and what it is refused (ledger.md 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/xmalloc.h"
#include "ledger/record.h"
#include "ledger/task.h"
#include "tests/unit/domain_scene.h"
#include "tests/unit/trap.h"

/* ---- reports ------------------------------------------------------------- */

#define RECEIPT(delivery, more) \
	"{\n  \"event_id\": 101,\n  \"delivery\": \"" delivery "\"" more "\n}"
#define ACK_CONFLICT "another acknowledgement of event 101 stands"
#define REPORT_CONFLICT "another report of event 101 stands"

static void
an_acknowledgement_is_given_once(void **state)
{
	static const char *const same[] = {ACK(",\"ack_id\":7"),
	    ACK(",\"ack_id\":\"7\""), ACK(""), ACK(",\"ack_id\":null")};
	static const char *const other[] = {
	    ACK(",\"ack_id\":8"), ACK(",\"ack_id\":\"9007199254740993\"")};
	size_t i;

	domain_pull();
	(void)domain_call(false, "%s", same[0]);
	domain_writes_nothing(same, COUNT(same), false);
	for (i = 0; i < COUNT(same); i++)
		domain_answers(
		    same[i], RECEIPT("delivered", ",\n  \"ack_id\": 7"));
	domain_writes_nothing(other, COUNT(other), true);
	for (i = 0; i < COUNT(other); i++)
		domain_refuses(other[i], "report_conflict", ACK_CONFLICT);
	assert_int_equal(
	    7, sql_int(domain.f, "SELECT ack_id FROM task_events"));
}

static void
an_acknowledgement_without_an_id_stays_so(void **state)
{
	domain_pull();
	domain_answers(ACK(""), RECEIPT("delivered", ""));
	domain_refuses(ACK(",\"ack_id\":7"), "report_conflict", ACK_CONFLICT);
	assert_string_equal(
	    "1", sql_get(domain.f, "SELECT ack_id IS NULL FROM task_events"));
}

static void
no_acknowledgement_is_named_after_completion(void **state)
{
	static const char *const late = ACK(",\"ack_id\":7");

	domain_pull();
	(void)domain_call(false, COMPLETE("succeeded", ""));
	domain_writes_nothing(&late, 1, true);
	domain_refuses(late, "report_conflict", ACK_CONFLICT);
	domain_answers(
	    ACK(""), RECEIPT("completed", ",\n  \"outcome\": \"succeeded\""));
}

static void
to_complete_is_to_acknowledge(void **state)
{
	const char *at;

	domain_pull();
	fixture_wait(1000);
	(void)domain_call(false, COMPLETE("succeeded", ""));
	assert_string_equal("1",
	    sql_get(domain.f,
		"SELECT delivered_at = completed_at AND"
		" delivered_at > pulled_at FROM task_events"));
	domain_teardown(NULL);
	domain_setup(NULL);
	domain_pull();
	fixture_wait(1000);
	(void)domain_call(false, ACK(",\"ack_id\":7"));
	at = sql_get(domain.f, "SELECT delivered_at FROM task_events");
	fixture_wait(1000);
	(void)domain_call(false, COMPLETE("failed", ""));
	assert_string_equal(
	    at, sql_get(domain.f, "SELECT delivered_at FROM task_events"));
	assert_string_equal("1",
	    sql_get(domain.f,
		"SELECT completed_at > delivered_at FROM task_events"));
}

#define LINKS ",\"links\":[\"https://a.test/1\",\"HTTP://b.test\"]"

static void
a_report_is_given_once(void **state)
{
	static const char *const same =
	    COMPLETE("succeeded", LINKS ",\"reply_id\":9");
	static const char *const others[] = {
	    COMPLETE("failed", LINKS ",\"reply_id\":9"),
	    COMPLETE("succeeded", LINKS ",\"reply_id\":8"),
	    COMPLETE("succeeded", LINKS),
	    COMPLETE("succeeded", ",\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"HTTP://b.test\",\"https://a.test/1\"],"
		"\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"https://a.test/1\"],\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"https://a.test/1\",\"http://b.test\"],"
		"\"reply_id\":9"),
	};
	size_t i;

	domain_pull();
	(void)domain_call(false, ACK(",\"ack_id\":7"));
	for (i = 0; i < 2; i++) {
		domain_answers(same,
		    RECEIPT("completed",
			",\n  \"ack_id\": 7,\n  \"outcome\": \"succeeded\","
			"\n  \"reply_id\": 9,\n  \"links\": [\n    "
			"\"https://a.test/1\",\n    \"HTTP://b.test\"\n  ]"));
		domain_writes_nothing(&same, 1, false);
	}
	domain_writes_nothing(others, COUNT(others), true);
	for (i = 0; i < COUNT(others); i++)
		domain_refuses(others[i], "report_conflict", REPORT_CONFLICT);
}

/* By what they say, in their order; none at all is one report with []. */
static void
links_compare_by_content_and_order(void **state)
{
	static const char *const none[] = {COMPLETE("succeeded", ""),
	    COMPLETE("succeeded", ",\"links\":null"),
	    COMPLETE("succeeded", ",\"links\":[]")};
	static const char *const spelled[] = {
	    COMPLETE("failed", ",\"links\":[\"https://x.test/\\u00e4\"]"),
	    COMPLETE(
		"failed", ",\"links\":[ \"https:\\/\\/x.test/\xc3\xa4\" ]"),
	};
	size_t i;

	domain_pull();
	(void)domain_call(false, "%s", none[0]);
	domain_writes_nothing(none, COUNT(none), false);
	for (i = 0; i < COUNT(none); i++)
		domain_answers(none[i],
		    RECEIPT("completed", ",\n  \"outcome\": \"succeeded\""));
	domain_teardown(NULL);
	domain_setup(NULL);
	domain_pull();
	(void)domain_call(false, "%s", spelled[0]);
	domain_writes_nothing(spelled, COUNT(spelled), false);
}

/*
 * The settlement writes the record before the row, and then supersedes, all in
 * one transaction: what a report can meet is a record that is completed
 * already. It is kept, and the record stays.
 */
static void
a_report_behind_the_settlement_is_kept(void **state)
{
	const struct move settle = {.event_id = 101,
	    .to = RECORD_COMPLETED,
	    .from = RECORD_SET(RECORD_DISPATCHED)};
	int64_t revision;

	domain_pull();
	assert_int_equal(MOVED, record_move(&domain.f->l, &settle));
	sql_reset_all(&domain.f->l);
	revision = sql_int(domain.f, "SELECT revision FROM events");
	domain_answers(COMPLETE("failed", ",\"reply_id\":9"),
	    RECEIPT("completed",
		",\n  \"outcome\": \"failed\",\n  \"reply_id\": 9"));
	assert_string_equal("completed failed completed",
	    sql_get(domain.f,
		"SELECT delivery || ' ' || outcome || ' ' || state FROM"
		" task_events t JOIN events e ON e.id = t.event_id"));
	assert_int_equal(
	    revision, sql_int(domain.f, "SELECT revision FROM events"));
	/* After END nothing can be reported any more. */
	(void)end_attempt(domain.f, ATT_1, "finished");
	domain_refuses(COMPLETE("failed", ",\"reply_id\":9"),
	    "task_token_refused", NOT_CURRENT);
}

/* What is wrong is said in the domain's words, and nothing was written. */
static void
an_invalid_report_says_what_is_wrong(void **state)
{
	static const struct {
		const char *arguments, *text;
	} rows[] = {
	    {COMPLETE("unknown", ""), "outcome is succeeded or failed"},
	    {COMPLETE("Succeeded", ""), "outcome is succeeded or failed"},
	    {COMPLETE("succeeded\\u0000", ""),
		"outcome is succeeded or failed"},
	    {COMPLETE("failed",
		 ",\"links\":[\"https://x.test\","
		 "\"ftp://x.test\"]"),
		"link 2 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"//x.test\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"https:///path\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"javascript:x\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"http://x.test/\\u0000\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("nonsense", ",\"links\":[\"ftp://x.test\"]"),
		"outcome is succeeded or failed"},
	};
	struct buffer many = {0}, longest = {0};
	char *before, *after;
	size_t i;

	domain_pull();
	before = domain_everything();
	for (i = 0; i < COUNT(rows); i++)
		domain_refuses(
		    rows[i].arguments, "invalid_report", rows[i].text);
	buffer_add_text(&many,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":101,"
	    "\"outcome\":\"failed\",\"links\":[\"http://x.test\"");
	buffer_add(&longest, many.bytes, many.len - 1);
	for (i = 1; i < 21; i++)
		buffer_add_text(&many, ",\"http://x.test\"");
	buffer_add_text(&many, "]}}");
	domain_refuses(many.bytes, "invalid_report", "at most 20 links");
	for (i = strlen("http://x.test"); i < 2049; i++)
		buffer_add_char(&longest, i == 13 ? '/' : 'a');
	buffer_add_text(&longest, "\"]}}");
	domain_refuses(
	    longest.bytes, "invalid_report", "link 1 is over 2048 bytes");
	after = domain_everything();
	assert_string_equal(before, after);
	/* At its bounds it is fine. */
	memmove(longest.bytes + 150, longest.bytes + 151, longest.len - 150);
	(void)domain_call(false, "%s", longest.bytes);
	free(before);
	free(after);
	buffer_free(&many);
	buffer_free(&longest);
}

/* ---- the token ----------------------------------------------------------- */

static const char *const all_calls[] = {
    GET,
    "{\"action\":\"get_dispatch\"}",
    "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":404}}",
    ACK(""),
    ACK(",\"ack_id\":7"),
    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":404}}",
    COMPLETE("succeeded", ""),
    COMPLETE("nonsense", ""),
    COMPLETE("failed", ",\"links\":[\"ftp://x.test\"]"),
    ACT("complete_dispatch", ",\"outcome\":\"failed\",\"links\":[\"\"]"),
};

/*
 * Valid exactly while the task is not superseded, and asked for inside each
 * call's own transaction: the very next call hears it, whatever it says.
 */
static void
a_superseded_worker_hears_that_first(void **state)
{
	size_t i;

	domain_pull();
	assert_non_null(
	    strstr(domain_call(true, "%s", COMPLETE("nonsense", "")),
		"invalid_report"));
	assert_int_equal(1, task_supersede(&domain.f->l, 1));
	sql_reset_all(&domain.f->l);
	domain_writes_nothing(all_calls, COUNT(all_calls), true);
	for (i = 0; i < COUNT(all_calls); i++)
		domain_refuses(all_calls[i], "task_token_refused", NOT_CURRENT);
	/* What was handed over stays so: the settlement says how it ended. */
	assert_string_equal("dispatched exposed",
	    sql_get(domain.f,
		"SELECT state || ' ' || delivery FROM task_events t"
		" JOIN events e ON e.id = t.event_id"));
	/* A token that never was reads the same. */
	memset(domain.w->server.token, 'A', TOKEN_LEN);
	for (i = 0; i < COUNT(all_calls); i++)
		domain_refuses(all_calls[i], "task_token_refused", NOT_CURRENT);
}

/* Superseded while the call waits in the ledger's own turn. */
static void
the_token_is_asked_for_in_the_calls_transaction(void **state)
{
	struct msg end, get = {.type = MSG_GET_DISPATCH};
	size_t at;

	domain_launch();
	end = end_of(ATT_1, "finished");
	get.get_dispatch.token = domain.w->server.token;
	get.get_dispatch.event_id = 101;
	at = domain.f->reply_count;
	fixture_add(domain.f, &end, ROLE_DISPATCHER, "");
	fixture_add(domain.f, &get, ROLE_MCPD, ATT_1);
	fixture_turn(domain.f); /* one group, one COMMIT */
	assert_int_equal(MSG_ENDED, domain.f->replies[at]->type);
	assert_failed(domain.f->replies[at + 1], "task_token_refused");
	assert_string_equal("0",
	    sql_get(domain.f, "SELECT pulled_at IS NOT NULL FROM task_events"));
}

/* Another task's event and one that is none read the same, three times. */
static void
what_is_not_on_the_task_reads_the_same(void **state)
{
	static const char *const actions[] = {
	    "get_dispatch", "ack_dispatch", "complete_dispatch"};
	char *want;
	size_t i, j;
	int ids_tried[] = {102, 404};

	domain_pull();
	(void)record_event(domain.f, 102);
	(void)admit_event(domain.f, 102, "another");
	sql_ok(domain.f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id = 11"
	    " WHERE id = 102");
	assert_int_equal(TOKEN_LEN, strlen(launch(domain.f, 102, ATT_2)));
	for (i = 0; i < COUNT(actions); i++) {
		for (j = 0; j < COUNT(ids_tried); j++) {
			(void)xasprintf(&want,
			    "{\n  \"error\": \"not_on_task\",\n  \"message\": "
			    "\"event %d is not on this task\"\n}",
			    ids_tried[j]);
			assert_string_equal(want,
			    domain_call(true,
				"{\"action\":\"%s\",\"params\":{\"event_id\":"
				"%d%s}}",
				actions[i], ids_tried[j],
				i == 2 ? ",\"outcome\":\"failed\"" : ""));
			free(want);
		}
	}
}

/* ---- what the model must not see ----------------------------------------- */

static int
interrupt(void *arg)
{
	int *left = arg;

	return (*left)-- > 0;
}

/* The ledger's own troubles are one generic text; a bad link's are not. */
static void
a_fault_of_the_storage_stays_inside(void **state)
{
	static const char *const calls[] = {
	    GET, ACK(""), COMPLETE("succeeded", "")};
	int left = 1, tries;
	const char *line = NULL;
	size_t i;

	domain_pull();
	sql_ok(domain.f,
	    "CREATE TRIGGER broken BEFORE UPDATE ON task_events BEGIN SELECT"
	    " RAISE(ABORT, 'disk I/O error at /var/lib/x'); END");
	for (i = 1; i < COUNT(calls); i++)
		domain_refuses(calls[i], "unavailable", GENERIC);
	sql_ok(domain.f, "DROP TRIGGER broken");
	/* What may pass is asked again, and the model hears none of it. */
	sqlite3_progress_handler(domain.f->l.db, 1, interrupt, &left);
	world_say(domain.w,
	    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"" CONNECT "\",\"arguments\":" ACK("") "}}");
	world_expect_silence(domain.w);
	assert_string_equal("BEGIN: interrupted", domain.f->trouble);
	for (tries = 0; line == NULL && tries < 100; tries++) {
		fixture_wait(1000);
		(void)event_base_loop(domain.w->base, EVLOOP_ONCE);
		line = world_hear(domain.w);
	}
	assert_non_null(line);
	assert_non_null(strstr(line, "delivered"));
	assert_null(strstr(line, "interrupted"));
	sqlite3_progress_handler(domain.f->l.db, 0, NULL, NULL);
	domain_refuses(COMPLETE("failed", ",\"links\":[\"ftp://x\"]"),
	    "invalid_report", "link 1 is not an http or https URL");
}

int
main(void)
{
#define T(traps, name) TRAP(traps, name, domain_setup, domain_teardown)
	static const struct CMUnitTest tests[] = {
	    T("T31", an_acknowledgement_is_given_once),
	    T("T31", an_acknowledgement_without_an_id_stays_so),
	    T("T32", no_acknowledgement_is_named_after_completion),
	    T("T34", to_complete_is_to_acknowledge),
	    T("T35", a_report_is_given_once),
	    T("T90", links_compare_by_content_and_order),
	    T("T36", a_report_behind_the_settlement_is_kept),
	    T("T37", an_invalid_report_says_what_is_wrong),
	    T("T38 I3", a_superseded_worker_hears_that_first),
	    T("I3", the_token_is_asked_for_in_the_calls_transaction),
	    T("T39", what_is_not_on_the_task_reads_the_same),
	    T("T43", a_fault_of_the_storage_stays_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
