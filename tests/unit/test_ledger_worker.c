/* A worker's actions by delivery, and their errors (ledger.md 3.4.1, 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "ledger/task.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static char token[TOKEN_LEN + 1]; /* of the task under test */

/* Event 101 launched; its token in `token`. */
static void
launched(struct fixture *f)
{
	(void)snprintf(token, sizeof(token), "%s", launch_new(f, 101, ATT_1));
	assert_int_equal(TOKEN_LEN, strlen(token));
}

static void
hold(struct fixture *f)
{
	sql_ok(f,
	    "INSERT OR IGNORE INTO generations (id, cause, opened_by,"
	    " opened_at) VALUES (1, 'hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
}

static struct msg *
get(struct fixture *f, int64_t id)
{
	return get_dispatch(f, token, id, ATT_1);
}

static struct msg *
ack(struct fixture *f, int64_t ack_id)
{
	return ack_dispatch(f, token, 101, ack_id, ATT_1);
}

static struct msg *
complete(struct fixture *f, const char *outcome)
{
	return complete_dispatch(f, token, 101, outcome, ATT_1);
}

static struct msg *
complete_with(
    struct fixture *f, const char *outcome, const char *links, int64_t reply_id)
{
	struct msg m = {.type = MSG_COMPLETE_DISPATCH};

	m.complete_dispatch = (struct msg_complete_dispatch){.token = token,
	    .event_id = 101,
	    .outcome = outcome,
	    .links = {links, strlen(links)},
	    .reply_id = {reply_id != 0, reply_id}};
	return fixture_ask(f, &m, ROLE_MCPD, ATT_1);
}

static struct msg *
bind_to(struct fixture *f, const char *with, const char *attempt)
{
	struct msg m = {.type = MSG_BIND};

	m.bind.token = with;
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

static const char *
delivery(struct fixture *f)
{
	return sql_get(f,
	    "SELECT delivery FROM task_events"
	    " WHERE event_id = 101");
}

/* Everything of the row and the record's revision: nothing may change. */
static const char *
rows(struct fixture *f)
{
	return sql_get(f,
	    "SELECT group_concat(delivery || ',' || guard || ','"
	    " || exposed_at || ',' || COALESCE(pulled_at, '-') || ','"
	    " || COALESCE(delivered_at, '-') || ','"
	    " || COALESCE(completed_at, '-') || ',' || COALESCE(ack_id, '-')"
	    " || ',' || outcome || ',' || links || ','"
	    " || COALESCE(reply_id, '-') || ',' || e.revision)"
	    " FROM task_events t JOIN events e ON e.id = t.event_id");
}

/* ---- binding ----------------------------------------------------------- */

static void
a_token_binds_to_its_own_attempt(void **state)
{
	struct fixture *f = *state;
	struct msg *bound;
	char other[TOKEN_LEN + 1];

	launched(f);
	bound = bind_to(f, token, ATT_1);
	assert_int_equal(MSG_BOUND, bound->type);
	assert_int_equal(1, bound->bound.task_id);
	assert_int_equal(AGENT, bound->bound.agent_id);
	assert_failed(bind_to(f, token, ATT_2), "task_token_refused");
	memset(other, 'A', TOKEN_LEN);
	other[TOKEN_LEN] = '\0';
	assert_failed(bind_to(f, other, ATT_1), "task_token_refused");
}

/* It comes without an attempt, and has nothing before its token gave it one. */
static void
a_guest_is_led_to_its_attempt_by_its_token(void **state)
{
	struct fixture *f = *state;
	struct msg *bound;
	char other[TOKEN_LEN + 1];

	launched(f);
	assert_failed(get_dispatch(f, token, 0, ""), "task_token_refused");
	assert_failed(ack_dispatch(f, token, 101, 0, ""), "task_token_refused");
	memset(other, 'A', TOKEN_LEN);
	other[TOKEN_LEN] = '\0';
	assert_failed(bind_to(f, other, ""), "task_token_refused");
	bound = bind_to(f, token, "");
	assert_int_equal(MSG_BOUND, bound->type);
	assert_string_equal(ATT_1, bound->bound.attempt);
	assert_int_equal(1, bound->bound.task_id);
	(void)end_attempt(f, ATT_1, "finished");
	assert_failed(bind_to(f, token, ""), "task_token_refused");
}

static struct msg *
check_token(struct fixture *f, const char *of, const char *attempt)
{
	struct msg m = {.type = MSG_CHECK_TOKEN};

	m.check_token.token = of;
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

static void
a_token_is_good_until_its_task_has_another(void **state)
{
	struct fixture *f = *state;

	launched(f);
	assert_int_equal(MSG_DONE, check_token(f, token, ATT_1)->type);
	assert_failed(check_token(f, token, ATT_2), "task_token_refused");
	sql_put(f, "UPDATE tasks SET token_sha256 = 'another'");
	assert_failed(check_token(f, token, ATT_1), "task_token_refused");
}

/* Another task's token over this task's link is refused, not answered. */
static void
a_link_answers_for_its_own_task_only(void **state)
{
	struct fixture *f = *state;
	const char *second;

	launched(f);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id ="
	    " 11 WHERE id = 102");
	second = launch(f, 102, ATT_2);
	assert_failed(get_dispatch(f, second, 0, ATT_1), "task_token_refused");
	assert_failed(get_dispatch(f, token, 0, ATT_2), "task_token_refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, second, 0, ATT_2)->type);
	/* An event of another task and one that is none read the same. */
	assert_failed(get(f, 102), "not_on_task");
	assert_failed(get(f, 404), "not_on_task");
	assert_failed(ack_dispatch(f, token, 102, 0, ATT_1), "not_on_task");
	assert_failed(
	    complete_dispatch(f, token, 404, "failed", ATT_1), "not_on_task");
}

/* ---- get --------------------------------------------------------------- */

static void
an_instruction_is_what_was_decided(void **state)
{
	struct fixture *f = *state;
	struct msg_instruction *i;

	launched(f);
	i = &get(f, 0)->instruction;
	assert_true(i->found);
	assert_int_equal(101, i->event_id);
	assert_string_equal("comment.created", i->event_type);
	assert_string_equal("mentioned", i->trigger);
	assert_string_equal("web", i->class);
	assert_int_equal(PROJECT, i->bucket_id);
	assert_int_equal(RECORDING(101), i->recording_id);
	assert_string_equal("comment", i->reply_kind);
	assert_int_equal(REPLY_TO(101), i->reply_recording_id);
	assert_int_equal(OPERATOR, i->requester_id);
	assert_true(i->acknowledge);
	assert_false(i->guard_acknowledged);
	assert_string_equal("exposed", i->delivery);
	assert_int_equal(strlen(SNAPSHOT), i->snapshot.len);
	assert_memory_equal(SNAPSHOT, i->snapshot.bytes, i->snapshot.len);
}

static void
the_first_get_pulls_and_stands_the_guard_down(void **state)
{
	struct fixture *f = *state;

	launched(f);
	fixture_forget(f);
	(void)get(f, 0);
	assert_string_equal("exposed canceled 1",
	    sql_get(f,
		"SELECT delivery || ' ' || guard || ' ' ||"
		" (pulled_at IS NOT NULL) FROM task_events"));
	assert_string_equal("canceled get_dispatch",
	    sql_get(f, "SELECT state || ' ' || note FROM outbox"));
	assert_string_equal("{\"type\":\"outbox\",\"intent_id\":1,"
			    "\"kind\":\"guard_ack\",\"state\":\"canceled\","
			    "\"event_id\":101}",
	    f->lines[0]);
}

static void
a_second_get_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const char *before;

	launched(f);
	(void)get(f, 0);
	before = rows(f);
	fixture_wait(1000);
	fixture_forget(f);
	assert_true(get(f, 0)->instruction.found);
	assert_true(get(f, 101)->instruction.found);
	assert_string_equal(before, rows(f));
	assert_int_equal(0, f->line_count);
}

static void
get_exposes_what_no_launch_did(void **state)
{
	struct fixture *f = *state;

	launched(f);
	join_event(f, 102);
	assert_string_equal("exposed", get(f, 102)->instruction.delivery);
	assert_string_equal("exposed 1 0",
	    sql_get(f,
		"SELECT delivery || ' ' || (pulled_at IS NOT NULL) ||"
		" ' ' || (exposed_attempt_id IS NOT NULL)"
		" FROM task_events WHERE event_id = 102"));
}

static void
the_earliest_unacknowledged_comes_first(void **state)
{
	struct fixture *f = *state;

	launched(f);
	join_event(f, 102);
	assert_int_equal(101, get(f, 0)->instruction.event_id);
	assert_int_equal(101, get(f, 0)->instruction.event_id);
	(void)ack(f, 0);
	assert_int_equal(102, get(f, 0)->instruction.event_id);
	(void)ack_dispatch(f, token, 102, 0, ATT_1);
	assert_false(get(f, 0)->instruction.found);
	/* By its id it is still served. */
	assert_string_equal("delivered", get(f, 101)->instruction.delivery);
	(void)complete(f, "succeeded");
	assert_string_equal("completed", get(f, 101)->instruction.delivery);
}

/* One event that left the path does not hide the rest. */
static void
what_is_gone_is_skipped_and_refused(void **state)
{
	struct fixture *f = *state;

	launched(f);
	join_event(f, 102);
	sql_put(f,
	    "UPDATE events SET content_dropped = 1, snapshot = NULL"
	    " WHERE id = 101");
	assert_failed(get(f, 101), "not_dispatchable");
	assert_int_equal(102, get(f, 0)->instruction.event_id);
}

/* Finished work is not handed out for a first time, by neither form. */
static void
finished_work_never_pulled_is_not_served(void **state)
{
	struct fixture *f = *state;

	launched(f);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_failed(get(f, 101), "not_dispatchable");
	assert_false(get(f, 0)->instruction.found);
}

static void
finished_work_that_was_pulled_is_served(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get(f, 0);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_true(get(f, 101)->instruction.found);
	assert_true(get(f, 0)->instruction.found);
}

static void
under_a_hold_nothing_new_is_handed_over(void **state)
{
	struct fixture *f = *state;

	launched(f);
	join_event(f, 102);
	(void)get(f, 101);
	hold(f);
	assert_failed(get(f, 102), "held");
	assert_true(get(f, 101)->instruction.found); /* a repeat */
	(void)ack(f, 0);
	assert_failed(get(f, 0), "held"); /* 102 is the earliest now */
	assert_int_equal(MSG_REPORT_IS, complete(f, "succeeded")->type);
	sql_ok(f, "DELETE FROM hold_marker");
	assert_true(get(f, 0)->instruction.found);
}

static void
a_launch_exposure_unpulled_is_held_too(void **state)
{
	struct fixture *f = *state;

	launched(f);
	hold(f);
	assert_failed(get(f, 0), "held");
	assert_string_equal(
	    "0", sql_get(f, "SELECT pulled_at IS NOT NULL FROM task_events"));
}

/* ---- the matrix -------------------------------------------------------- */

static void
on_admitted(void **state)
{
	struct fixture *f = *state;

	launched(f);
	join_event(f, 102);
	assert_failed(ack_dispatch(f, token, 102, 0, ATT_1), "not_exposed");
	assert_failed(
	    complete_dispatch(f, token, 102, "failed", ATT_1), "not_exposed");
	assert_string_equal("exposed", get(f, 102)->instruction.delivery);
}

/* An exposure nobody pulled is none. */
static void
on_exposed_but_not_pulled(void **state)
{
	struct fixture *f = *state;

	launched(f);
	assert_failed(ack(f, 7), "not_exposed");
	assert_failed(complete(f, "succeeded"), "not_exposed");
	assert_string_equal("exposed", delivery(f));
}

static void
on_exposed(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	launched(f);
	(void)get(f, 0);
	r = ack(f, 7);
	assert_int_equal(MSG_REPORT_IS, r->type);
	assert_string_equal("delivered", r->report_is.delivery);
	assert_true(r->report_is.ack_id.has);
	assert_int_equal(7, r->report_is.ack_id.value);
	assert_string_equal("delivered", delivery(f));
}

static void
on_exposed_complete_acknowledges_as_well(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	launched(f);
	(void)get(f, 0);
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

	launched(f);
	(void)get(f, 0);
	(void)ack(f, 7);
	before = rows(f);
	fixture_wait(1000);
	assert_int_equal(7, ack(f, 7)->report_is.ack_id.value);
	assert_int_equal(7, ack(f, 0)->report_is.ack_id.value);
	assert_failed(ack(f, 8), "report_conflict");
	assert_string_equal(before, rows(f));
	at = sql_get(f, "SELECT delivered_at FROM task_events");
	assert_string_equal(
	    "completed", complete(f, "failed")->report_is.delivery);
	assert_string_equal(
	    at, sql_get(f, "SELECT delivered_at FROM task_events"));
}

static void
on_delivered_without_an_id_none_comes_later(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get(f, 0);
	(void)ack(f, 0);
	assert_failed(ack(f, 7), "report_conflict");
	assert_string_equal(
	    "1", sql_get(f, "SELECT ack_id IS NULL FROM task_events"));
}

static void
on_completed(void **state)
{
	struct fixture *f = *state;
	const char *before;

	launched(f);
	(void)get(f, 0);
	(void)complete_with(f, "succeeded", "[\"http://x.example/1\"]", 9);
	before = rows(f);
	fixture_wait(1000);
	assert_string_equal("completed", ack(f, 0)->report_is.delivery);
	assert_failed(ack(f, 7), "report_conflict");
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
	assert_string_equal(before, rows(f));
}

static void
no_links_and_empty_links_are_one_report(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get(f, 0);
	assert_int_equal(0, complete(f, "succeeded")->report_is.links.len);
	assert_int_equal(
	    MSG_REPORT_IS, complete_with(f, "succeeded", "[]", 0)->type);
}

static void
the_order_of_links_counts(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get(f, 0);
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

	launched(f);
	(void)get(f, 0);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_failed(get(f, 101), "task_token_refused");
	assert_failed(get(f, 404), "task_token_refused");
	assert_failed(ack(f, 7), "task_token_refused");
	assert_failed(complete(f, "nonsense"), "task_token_refused");
	assert_failed(bind_to(f, token, ATT_1), "task_token_refused");
	assert_string_equal("exposed", delivery(f));
}

/* ---- reports ----------------------------------------------------------- */

static void
a_malformed_report_changes_nothing(void **state)
{
	struct fixture *f = *state;
	char many[1024] = "[", longest[2200];
	int i;

	launched(f);
	assert_failed(complete(f, "nonsense"), "not_exposed"); /* first */
	(void)get(f, 0);
	for (i = 0; i < 21; i++)
		(void)strncat(many,
		    i == 20 ? "\"http://x.example\"]" : "\"http://x.example\",",
		    sizeof(many) - strlen(many) - 1);
	(void)snprintf(longest, sizeof(longest), "[\"http://x.example/%*d\"]",
	    2048 - 16, 1);
	for (i = 0; longest[i] != '\0'; i++)
		longest[i] = longest[i] == ' ' ? '0' : longest[i];
	assert_failed(complete(f, "unknown"), "invalid_report");
	assert_failed(complete_with(f, "failed", many, 0), "invalid_report");
	assert_failed(complete_with(f, "failed", longest, 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[\"ftp://x.example\"]", 0),
	    "invalid_report");
	assert_failed(
	    complete_with(f, "failed", "[\"http://\"]", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[1]", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "{}", 0), "invalid_report");
	assert_failed(complete_with(f, "failed", "[", 0), "invalid_report");
	assert_string_equal("exposed", delivery(f));
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

	launched(f);
	(void)get(f, 0);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_int_equal(MSG_REPORT_IS, complete(f, "failed")->type);
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
	launched(f);
	(void)get(f, 101); /* a trigger stamps the guard's intent */
	fixture_wait(500);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	hold(f);
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

/* ---- the thread -------------------------------------------------------- */

static struct msg *
thread_of(struct fixture *f, int64_t id, const char *attempt)
{
	struct msg m = {.type = MSG_THREAD_OF};

	m.thread_of.attempt = attempt;
	m.thread_of.event_id = id;
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static void
a_thread_is_read_for_pulled_events_only(void **state)
{
	struct fixture *f = *state;
	struct msg *is;

	launched(f);
	join_event(f, 102);
	assert_failed(thread_of(f, 101, ATT_1), "not_exposed");
	(void)get(f, 101);
	is = thread_of(f, 101, ATT_1);
	assert_int_equal(MSG_THREAD_IS, is->type);
	assert_int_equal(RECORDING(101), is->thread_is.recording_id);
	assert_int_equal(REPLY_TO(101), is->thread_is.reply_recording_id);
	assert_failed(thread_of(f, 102, ATT_1), "not_exposed");
	assert_failed(thread_of(f, 101, ATT_2), "not_on_task");
	assert_failed(thread_of(f, 404, ATT_1), "not_on_task");
	(void)end_attempt(f, ATT_1, "finished");
	assert_failed(thread_of(f, 101, ATT_1), "not_on_task");
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_token_binds_to_its_own_attempt),
	    TEST(a_guest_is_led_to_its_attempt_by_its_token),
	    TEST(a_token_is_good_until_its_task_has_another),
	    TRAP("I7", a_link_answers_for_its_own_task_only, fixture_setup,
		fixture_teardown),
	    TEST(an_instruction_is_what_was_decided),
	    TEST(the_first_get_pulls_and_stands_the_guard_down),
	    TEST(a_second_get_changes_nothing),
	    TEST(get_exposes_what_no_launch_did),
	    TEST(the_earliest_unacknowledged_comes_first),
	    TEST(what_is_gone_is_skipped_and_refused),
	    TEST(finished_work_never_pulled_is_not_served),
	    TEST(finished_work_that_was_pulled_is_served),
	    TEST(under_a_hold_nothing_new_is_handed_over),
	    TEST(a_launch_exposure_unpulled_is_held_too),
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
	    TEST(a_thread_is_read_for_pulled_events_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
