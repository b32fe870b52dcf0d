/* A worker's actions by delivery, and their errors (ledger.md 3.4.1, 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "ledger/task.h"
#include "tests/unit/trap.h"
#include "tests/unit/worker_scene.h"

static struct msg *
complete_with(
    struct fixture *f, const char *outcome, const char *links, int64_t reply_id)
{
	struct msg m = {.type = MSG_COMPLETE_DISPATCH};

	m.complete_dispatch =
	    (struct msg_complete_dispatch){.token = worker_token,
		.event_id = 101,
		.outcome = outcome,
		.links = {links, strlen(links)},
		.reply_id = {reply_id != 0, reply_id}};
	return fixture_ask(f, &m, ROLE_MCPD, ATT_1);
}

/* ---- the matrix -------------------------------------------------------- */

static void
on_admitted(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	join_event(f, 102);
	assert_failed(
	    ack_dispatch(f, worker_token, 102, 0, ATT_1), "not_exposed");
	assert_failed(complete_dispatch(f, worker_token, 102, "failed", ATT_1),
	    "not_exposed");
	assert_string_equal(
	    "exposed", worker_get(f, 102)->instruction.delivery);
}

/* An exposure nobody pulled is none. */
static void
on_exposed_but_not_pulled(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	assert_failed(worker_ack(f, 7), "not_exposed");
	assert_failed(worker_complete(f, "succeeded"), "not_exposed");
	assert_string_equal("exposed", worker_delivery(f));
}

static void
on_exposed(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	worker_launch(f);
	(void)worker_get(f, 0);
	r = worker_ack(f, 7);
	assert_int_equal(MSG_REPORT_IS, r->type);
	assert_string_equal("delivered", r->report_is.delivery);
	assert_true(r->report_is.ack_id.has);
	assert_int_equal(7, r->report_is.ack_id.value);
	assert_string_equal("delivered", worker_delivery(f));
}

static void
on_exposed_complete_acknowledges_as_well(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	worker_launch(f);
	(void)worker_get(f, 0);
	r = complete_with(f, "succeeded", "[\"https://x.example/1\"]", 9);
	assert_string_equal("completed", r->report_is.delivery);
	assert_string_equal("succeeded", r->report_is.outcome);
	assert_int_equal(9, r->report_is.reply_id.value);
	assert_memory_equal("[\"https://x.example/1\"]",
	    r->report_is.links.bytes, r->report_is.links.len);
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("1",
	    sql_get(f,
		"SELECT delivered_at = completed_at FROM"
		" task_events"));
}

static void
on_delivered(void **state)
{
	struct fixture *f = *state;
	const char *before, *at;

	worker_launch(f);
	(void)worker_get(f, 0);
	(void)worker_ack(f, 7);
	before = worker_rows(f);
	fixture_wait(1000);
	assert_int_equal(7, worker_ack(f, 7)->report_is.ack_id.value);
	assert_int_equal(7, worker_ack(f, 0)->report_is.ack_id.value);
	assert_failed(worker_ack(f, 8), "report_conflict");
	assert_string_equal(before, worker_rows(f));
	at = sql_get(f, "SELECT delivered_at FROM task_events");
	assert_string_equal(
	    "completed", worker_complete(f, "failed")->report_is.delivery);
	assert_string_equal(
	    at, sql_get(f, "SELECT delivered_at FROM task_events"));
}

static void
on_delivered_without_an_id_none_comes_later(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	(void)worker_ack(f, 0);
	assert_failed(worker_ack(f, 7), "report_conflict");
	assert_string_equal(
	    "1", sql_get(f, "SELECT ack_id IS NULL FROM task_events"));
}

static void
on_completed(void **state)
{
	struct fixture *f = *state;
	const char *before;

	worker_launch(f);
	(void)worker_get(f, 0);
	(void)complete_with(f, "succeeded", "[\"http://x.example/1\"]", 9);
	before = worker_rows(f);
	fixture_wait(1000);
	assert_string_equal("completed", worker_ack(f, 0)->report_is.delivery);
	assert_failed(worker_ack(f, 7), "report_conflict");
	assert_int_equal(MSG_REPORT_IS,
	    complete_with(f, "succeeded", "[\"http://x.example/1\"]", 9)->type);
	assert_int_equal(MSG_REPORT_IS, /* content counts, not spelling */
	    complete_with(f, "succeeded", " [ \"http:\\/\\/x.example/1\" ] ", 9)
		->type);
	assert_failed(complete_with(f, "failed", "[\"http://x.example/1\"]", 9),
	    "report_conflict");
	assert_failed(
	    complete_with(f, "succeeded", "[]", 9), "report_conflict");
	assert_failed(
	    complete_with(f, "succeeded", "[\"http://x.example/1\"]", 0),
	    "report_conflict");
	assert_string_equal(before, worker_rows(f));
}

static void
no_links_and_empty_links_are_one_report(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	assert_int_equal(
	    0, worker_complete(f, "succeeded")->report_is.links.len);
	assert_int_equal(
	    MSG_REPORT_IS, complete_with(f, "succeeded", "[]", 0)->type);
}

static void
the_order_of_links_counts(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	(void)complete_with(
	    f, "succeeded", "[\"http://a.example\",\"http://b.example\"]", 0);
	assert_failed(complete_with(f, "succeeded",
			  "[\"http://b.example\",\"http://a.example\"]", 0),
	    "report_conflict");
}

/* Whatever it sends, it hears of its token first. */
static void
on_a_superseded_task(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_failed(worker_get(f, 101), "task_token_refused");
	assert_failed(worker_get(f, 404), "task_token_refused");
	assert_failed(worker_ack(f, 7), "task_token_refused");
	assert_failed(worker_complete(f, "nonsense"), "task_token_refused");
	assert_failed(
	    worker_bind(f, worker_token, ATT_1), "task_token_refused");
	assert_string_equal("exposed", worker_delivery(f));
}

/* ---- reports ----------------------------------------------------------- */

static void
a_malformed_report_changes_nothing(void **state)
{
	struct fixture *f = *state;
	char many[1024] = "[", longest[2200];
	int i;

	worker_launch(f);
	assert_failed(
	    worker_complete(f, "nonsense"), "not_exposed"); /* first */
	(void)worker_get(f, 0);
	for (i = 0; i < 21; i++)
		(void)strncat(many,
		    i == 20 ? "\"http://x.example\"]" : "\"http://x.example\",",
		    sizeof(many) - strlen(many) - 1);
	(void)snprintf(longest, sizeof(longest), "[\"http://x.example/%*d\"]",
	    2048 - 16, 1);
	for (i = 0; longest[i] != '\0'; i++)
		longest[i] = longest[i] == ' ' ? '0' : longest[i];
	assert_failed(worker_complete(f, "unknown"), "invalid_report");
	assert_failed(complete_with(f, "failed", many, 0), "invalid_report");
	assert_failed(complete_with(f, "failed", longest, 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[\"ftp://x.example\"]", 0),
	    "invalid_report");
	assert_failed(
	    complete_with(f, "failed", "[\"http://\"]", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[1]", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "{}", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[", 0), "invalid_report");
	assert_string_equal("exposed", worker_delivery(f));
	assert_string_equal("dispatched", state_of(f, 101));
	/* Exactly at its bounds it is fine. */
	memmove(longest + 2000, longest + 2001, sizeof(longest) - 2001);
	assert_int_equal(
	    MSG_REPORT_IS, complete_with(f, "failed", longest, 0)->type);
}

/* Whatever became of the record since, the report is kept. */
static void
a_report_behind_the_settlement_is_kept(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_int_equal(MSG_REPORT_IS, worker_complete(f, "failed")->type);
	assert_string_equal("completed failed",
	    sql_get(f, "SELECT delivery || ' ' || outcome FROM task_events"));
	assert_string_equal("completed", state_of(f, 101));
}

/* ---- stamps ------------------------------------------------------------ */

#define DIGIT "[0-9]"
#define DIGITS_3 DIGIT DIGIT DIGIT
#define STAMP_GLOB                                                     \
	DIGIT DIGITS_3 "-" DIGIT DIGIT "-" DIGIT DIGIT "T" DIGIT DIGIT \
		       ":" DIGIT DIGIT ":" DIGIT DIGIT                 \
		       "." DIGITS_3 DIGITS_3 DIGITS_3 "Z"

/* Every column that is called *_at, of every row, has the one form. */
static int64_t
assert_stamps(struct fixture *f)
{
	sqlite3_stmt *columns;
	const char *table, *column;
	int64_t count = 0;

	assert_int_equal(SQLITE_OK,
	    sqlite3_prepare_v2(f->l.db,
		"SELECT t.name, c.name FROM sqlite_schema t,"
		" pragma_table_info(t.name) c WHERE t.type = 'table'"
		" AND c.name LIKE '%\\_at' ESCAPE '\\'",
		-1, &columns, NULL));
	while (sqlite3_step(columns) == SQLITE_ROW) {
		table = row_text(columns, 0);
		column = row_text(columns, 1);
		if (sql_int(f, "SELECT COUNT(*) FROM %s WHERE %s NOT GLOB '%s'",
			table, column, STAMP_GLOB) != 0)
			fail_msg("%s.%s: %s", table, column,
			    sql_get(
				f, "SELECT MIN(%s) FROM %s", column, table));
		count += sql_int(f, "SELECT COUNT(%s) FROM %s", column, table);
	}
	(void)sqlite3_finalize(columns);
	return count;
}

/* As text they sort as time, ours and those that triggers write. */
static void
stamps_sort_as_text(void **state)
{
	struct fixture *f = *state;
	char whole[CLOCK_STAMP_SIZE], half[CLOCK_STAMP_SIZE];

	clock_stamp_ns(INT64_C(1767603600000000000), whole);
	clock_stamp_ns(INT64_C(1767603600500000000), half);
	assert_string_equal("2026-01-05T09:00:00.000000000Z", whole);
	assert_string_equal("2026-01-05T09:00:00.500000000Z", half);
	assert_true(strcmp(whole, half) < 0);
	worker_launch(f);
	(void)worker_get(f, 101); /* a trigger stamps the guard's intent */
	fixture_wait(500);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	worker_hold(f);
	sql_put(f,
	    "UPDATE generations SET opened_at = seen_at FROM events;"
	    "UPDATE hold_marker SET held_at = seen_at FROM events");
	/* Another trigger stamps the event, a third its guard's intent. */
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 102");
	assert_string_equal("held", state_of(f, 102));
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE state = 'canceled' AND"
		" finished_at IS NOT NULL"));
	assert_string_equal("101,102",
	    sql_get(f,
		"SELECT group_concat(id) FROM (SELECT id FROM events"
		" ORDER BY seen_at)"));
	assert_string_equal(
	    whole, sql_get(f, "SELECT seen_at FROM events WHERE id = 101"));
	assert_string_equal(
	    half, sql_get(f, "SELECT seen_at FROM events WHERE id = 102"));
	assert_true(assert_stamps(f) > 15);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(on_admitted),
	    TRAP("I7", on_exposed_but_not_pulled, fixture_setup,
		fixture_teardown),
	    TEST(on_exposed),
	    TEST(on_exposed_complete_acknowledges_as_well),
	    TEST(on_delivered),
	    TEST(on_delivered_without_an_id_none_comes_later),
	    TRAP("I7", on_completed, fixture_setup, fixture_teardown),
	    TEST(no_links_and_empty_links_are_one_report),
	    TEST(the_order_of_links_counts),
	    TRAP("I7", on_a_superseded_task, fixture_setup, fixture_teardown),
	    TEST(a_malformed_report_changes_nothing),
	    TEST(a_report_behind_the_settlement_is_kept),
	    TRAP("T89", stamps_sort_as_text, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
