/* END: what an attempt's end makes of its records (ledger.md 3.4.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/task.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

/* A follow-up that waits on the attempt's task, unexposed. */
static void
join(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_JOIN};

	(void)record_event(f, id);
	(void)admit_event(f, id, "k");
	m.join = (struct msg_join){ATT_1, 1};
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_JOINED);
	assert_string_equal("dispatched", state_of(f, id));
}

static const char *
row(struct fixture *f, int64_t task_id, int64_t id)
{
	return sql_get(f,
	    "SELECT delivery || ' ' || outcome || ' ' ||"
	    " (withdrawn_at IS NOT NULL) FROM task_events"
	    " WHERE task_id = %lld AND event_id = %lld",
	    (long long)task_id, (long long)id);
}

static void
unreported_work_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct msg *ended;

	(void)launch_new(f, 101, ATT_1);
	run_attempt(f, ATT_1, 4242);
	fixture_forget(f);
	ended = end_attempt(f, ATT_1, "lost");
	assert_string_equal("lost", ended->ended.stop_reason);
	assert_int_equal(1, ended->ended.unknown);
	assert_int_equal(0, ended->ended.withdrawn);
	assert_int_equal(101, ended->ended.first_unknown);
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("completed unknown 0", row(f, 1, 101));
	assert_int_equal(1,
	    sql_int(f,
		"SELECT COUNT(*) FROM tasks"
		" WHERE ended_at = superseded_at"));
	assert_string_equal("{\"type\":\"dispatch\",\"task_id\":1,"
			    "\"attempt_id\":\"" ATT_1 "\",\"state\":"
			    "\"ended\",\"stop_reason\":\"lost\"}",
	    f->lines[0]);
}

/* I11: nor does anything of it start again by itself, now or later. */
static void
unknown_work_does_not_start_again(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_NEXT_STARTABLE}, again;

	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	fixture_restart(f);
	fixture_wait(INT64_C(86400000) * 30);
	m.next_startable.generation = 1;
	assert_false(fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_STARTABLE)
			 ->startable.found);
	again = launch_of(101, ATT_2);
	assert_failed(fixture_ask(f, &again, ROLE_DISPATCHER, ""), "refused");
	assert_false(record_event(f, 101));
	assert_string_equal("completed", state_of(f, 101));
}

/* T27: it was there, whatever it then failed at. */
static void
a_process_that_failed_its_handshake_is_not_tried_again(void **state)
{
	struct fixture *f = *state;
	struct msg *ended;

	(void)launch_new(f, 101, ATT_1);
	ended = end_attempt(f, ATT_1, "failed"); /* not spawn_failed */
	assert_int_equal(0, ended->ended.withdrawn);
	assert_int_equal(1, ended->ended.unknown);
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("completed unknown 0", row(f, 1, 101));
}

/* I8: ended, hence superseded, hence retired: nothing of it is live. */
static void
an_end_leaves_nothing_live(void **state)
{
	static const char *const ends[] = {"finished", "lost", "failed"};
	struct fixture *f = *state;
	char attempt[ATTEMPT_ID_LEN + 1];
	size_t i;

	for (i = 0; i < 3; i++) {
		(void)snprintf(attempt, sizeof(attempt), "att_%024zu", i);
		(void)launch_new(f, 101 + (int64_t)i, attempt);
		(void)record_event(f, 201 + (int64_t)i);
		(void)admit_event(f, 201 + (int64_t)i, "k");
		if (i == 2)
			(void)spawn_failed(f, attempt);
		else
			(void)end_attempt(f, attempt, ends[i]);
		assert_int_equal(0,
		    sql_int(f,
			"SELECT (SELECT COUNT(*) FROM tasks WHERE ended_at"
			" IS NULL OR superseded_at IS NULL) +"
			" (SELECT COUNT(*) FROM task_events WHERE retired_at"
			" IS NULL) + (SELECT COUNT(*) FROM attempts WHERE"
			" state <> 'ended') + (SELECT COUNT(*) FROM events"
			" WHERE state = 'dispatched')"));
	}
}

static void
a_reported_outcome_stands(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);
	struct msg *ended;

	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_1);
	assert_string_equal("completed", state_of(f, 101));
	ended = end_attempt(f, ATT_1, "lost");
	assert_int_equal(0, ended->ended.unknown);
	assert_string_equal("completed succeeded 0", row(f, 1, 101));
}

static void
pulled_and_acknowledged_work_is_unknown_too(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);

	(void)get_dispatch(f, token, 0, ATT_1);
	(void)ack_dispatch(f, token, 101, 7, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("completed unknown 0", row(f, 1, 101));
}

static void
what_nobody_saw_goes_back(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	join(f, 102);
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("admitted", state_of(f, 102));
	assert_string_equal("admitted  0", row(f, 1, 102));
}

static void
a_tagged_sibling_that_goes_back_is_held(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	join(f, 102);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 102");
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("held", state_of(f, 102));
}

/* A redispatch has retired the rows already; all of them come out. */
static void
retired_rows_are_settled_as_well(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	join(f, 102);
	/* A supersession by half: the rows retire, no record comes back. */
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("completed unknown 0", row(f, 1, 101));
	assert_string_equal("admitted", state_of(f, 102));
}

static void
a_failed_start_is_tried_once_more(void **state)
{
	struct fixture *f = *state;
	struct msg *ended;

	(void)launch_new(f, 101, ATT_1);
	ended = spawn_failed(f, ATT_1);
	assert_int_equal(1, ended->ended.withdrawn);
	assert_int_equal(0, ended->ended.unknown);
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_equal("exposed  1", row(f, 1, 101));
	fixture_restart(f);
	assert_string_not_equal("", launch(f, 101, ATT_2));
	ended = spawn_failed(f, ATT_2);
	assert_int_equal(1, ended->ended.withdrawn);
	assert_string_equal("blocked spawn_failed",
	    sql_get(f,
		"SELECT state || ' ' || reason FROM events"
		" WHERE snapshot IS NULL"));
}

static void
no_retry_blocks_at_once(void **state)
{
	struct fixture *f = *state;
	struct msg m = end_of(ATT_1, "failed");

	(void)launch_new(f, 101, ATT_1);
	m.end.spawn_failed = m.end.no_retry = true;
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ENDED);
	assert_string_equal("blocked", state_of(f, 101));
}

/* A newer configuration refused it, as END says. */
static void
uncharged(struct fixture *f, const char *attempt)
{
	struct msg m = end_of(attempt, "failed");

	m.end.spawn_failed = m.end.uncharged = true;
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ENDED);
}

/* No retry is spent by it, before one or after one. */
static void
an_uncharged_withdrawal_costs_nothing(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	uncharged(f, ATT_1);
	assert_string_equal("admitted", state_of(f, 101));
	(void)launch(f, 101, ATT_2);
	(void)spawn_failed(f, ATT_2);
	assert_string_equal("admitted", state_of(f, 101));
	(void)launch(f, 101, ATT_3);
	uncharged(f, ATT_3);
	assert_string_equal("admitted", state_of(f, 101));
	(void)launch(f, 101, ATT_4);
	(void)spawn_failed(f, ATT_4);
	assert_string_equal("blocked", state_of(f, 101));
}

/* What a worker pulled was seen, whatever the driver says of its process. */
static void
pulled_work_is_never_withdrawn(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);

	(void)get_dispatch(f, token, 0, ATT_1);
	(void)spawn_failed(f, ATT_1);
	assert_string_equal("completed unknown 0", row(f, 1, 101));
}

static void
an_end_returns_what_the_rows_say(void **state)
{
	struct fixture *f = *state;
	struct msg m = end_of(ATT_1, "finished"), *ended;

	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	fixture_forget(f);
	ended = end_attempt(f, ATT_1, "finished"); /* the first one stands */
	assert_string_equal("lost", ended->ended.stop_reason);
	assert_int_equal(1, ended->ended.unknown);
	assert_int_equal(0, f->line_count);
}

static void
an_end_of_another_form_is_refused(void **state)
{
	struct fixture *f = *state;
	struct msg m = end_of(ATT_1, "canceled");

	(void)launch_new(f, 101, ATT_1);
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	m.end.stop_reason = "lost";
	m.end.spawn_failed = true;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	m.end.stop_reason = "failed";
	m.end.spawn_failed = false;
	m.end.no_retry = true;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal(
	    "launching", sql_get(f, "SELECT state FROM attempts"));
}

/* A settlement is whole or it is not. */
static void
a_notice_that_cannot_be_written_undoes_the_end(void **state)
{
	struct fixture *f = *state;
	struct msg m = end_of(ATT_1, "lost");

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal("dispatched", state_of(f, 101));
	assert_string_equal(
	    "launching", sql_get(f, "SELECT state FROM attempts"));
	sql_ok(f, "DROP TRIGGER spoil");
	(void)end_attempt(f, ATT_1, "lost");
}

static void
an_end_frees_conversation_and_directory(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	fixture_forget(f);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(MSG_WORK_WAITS, f->notices[f->notice_count - 1].type);
	assert_string_not_equal("", launch(f, 102, ATT_2));
}

static struct msg *
settle_as(struct fixture *f, const char *nonce, const char *attempt)
{
	struct msg m = {.type = MSG_SETTLE};

	m.settle = (struct msg_settle){nonce, "local:ann", attempt};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

/* How often the dispatcher was told to let ATTEMPT go. */
static int
told_of_end(const struct fixture *f, const char *attempt)
{
	int count = 0;
	size_t i;

	for (i = 0; i < f->notice_count; i++)
		count += f->notices[i].type == MSG_ATTEMPT_OVER &&
		    strcmp(f->notices[i].attempt, attempt) == 0;
	return count;
}

/* Nobody can identify it; a person has looked: lost, and its work unknown. */
static void
a_person_settles_what_nobody_can(void **state)
{
	struct fixture *f = *state;
	struct msg *is;

	(void)launch_new(f, 101, ATT_1);
	fixture_forget(f);
	is = settle_as(f, NONCE_1, ATT_1);
	assert_int_equal(MSG_ATTEMPT_SETTLED, is->type);
	assert_int_equal(1, is->attempt_settled.task_id);
	assert_int_equal(1, is->attempt_settled.unknown);
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("ended lost 0",
	    sql_get(f,
		"SELECT state || ' ' || stop_reason || ' ' || spawn_failed"
		" FROM attempts"));
	assert_string_equal("settle local:ann launching ended " ATT_1,
	    sql_get(f,
		"SELECT action || ' ' || decided_by || ' ' || from_state ||"
		" ' ' || to_state || ' ' || attempt_id FROM decisions"));
	assert_int_equal(1,
	    sql_int(
		f, "SELECT COUNT(*) FROM outbox WHERE kind = 'completion'"));
	assert_int_equal(1, told_of_end(f, ATT_1));
	/* The same decision again, and another one. */
	is = settle_as(f, NONCE_1, ATT_1);
	assert_int_equal(MSG_ATTEMPT_SETTLED, is->type);
	assert_int_equal(1, is->attempt_settled.unknown);
	assert_failed(settle_as(f, NONCE_2, ATT_1), "refused");
	assert_failed(settle_as(f, NONCE_2, ATT_2), "not_found");
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* Whatever it decided: in words, and nothing ends. */
static void
a_nonce_of_another_decision_settles_nothing(void **state)
{
	struct fixture *f = *state;
	struct msg *reply, m = {.type = MSG_HOLD};

	(void)launch_new(f, 101, ATT_1);
	m.hold = (struct msg_hold){NONCE_1, "local:ann", "hold"};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_HOLD_IS);
	reply = settle_as(f, NONCE_1, ATT_1);
	assert_failed(reply, "refused");
	assert_string_equal(
	    "this nonce is of another decision, 1", reply->failed.text);
	assert_string_equal("dispatched", state_of(f, 101));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    T("I11", unreported_work_is_unknown),
	    T("I11", unknown_work_does_not_start_again),
	    T("T27", a_process_that_failed_its_handshake_is_not_tried_again),
	    T("I8", an_end_leaves_nothing_live),
	    TEST(a_person_settles_what_nobody_can),
	    TEST(a_reported_outcome_stands),
	    T("I11", pulled_and_acknowledged_work_is_unknown_too),
	    TEST(what_nobody_saw_goes_back),
	    TEST(a_tagged_sibling_that_goes_back_is_held),
	    TEST(retired_rows_are_settled_as_well),
	    T("T26 I10", a_failed_start_is_tried_once_more),
	    T("I10", no_retry_blocks_at_once),
	    T("I10", an_uncharged_withdrawal_costs_nothing),
	    TEST(pulled_work_is_never_withdrawn),
	    TEST(an_end_returns_what_the_rows_say),
	    TEST(an_end_of_another_form_is_refused),
	    T("I15", a_notice_that_cannot_be_written_undoes_the_end),
	    TEST(an_end_frees_conversation_and_directory),
	    TEST(a_nonce_of_another_decision_settles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
