/*
 * REDISPATCH of what a live task carries (design L7, ledger.md 3.2 and 3.6):
 * its token is retired at once, its records come out of it, and what was
 * redispatched runs when the task has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static char token[TOKEN_LEN + 1];

/* Event 105 reported as failed; its task goes on. */
static void
reported(struct fixture *f)
{
	(void)snprintf(token, sizeof(token), "%s", launch_new(f, 105, ATT_1));
	run_attempt(f, ATT_1, 4242);
	(void)get_dispatch(f, token, 105, ATT_1);
	(void)complete_dispatch(f, token, 105, "failed", ATT_1);
	assert_string_equal("completed", state_of(f, 105));
}

static const struct told *
told(struct fixture *f, enum msg_type type)
{
	size_t i;

	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == type)
			return &f->notices[i];
	}
	return NULL;
}

static struct msg_live
live(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_LIVE};

	return fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_LIVE)->live;
}

static void
it_waits_for_its_tasks_end(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	reported(f);
	assert_false(live(f).superseded);
	fixture_wait(1000);
	fixture_forget(f);
	is = &redispatch_event(f, 105)->decided;
	assert_true(is->pending);
	assert_string_equal("completed", is->state);
	assert_string_equal("failed", is->from_outcome);
	assert_int_equal(1, is->superseded_task_id);
	assert_string_equal(ATT_1, is->attempt);
	assert_string_equal("completed 1",
	    sql_get(f,
		"SELECT to_state || ' ' || superseded_task_id"
		" FROM decisions"));
	assert_string_equal(ATT_1, told(f, MSG_SUPERSEDED)->attempt);
	assert_true(live(f).superseded);
	/* The worker's next call is refused, whichever it is. */
	assert_failed(get_dispatch(f, token, 105, ATT_1), "task_token_refused");
	assert_failed(
	    ack_dispatch(f, token, 105, 7, ATT_1), "task_token_refused");
	assert_failed(redispatch_event(f, 105), "refused");
	assert_int_equal(0, next_startable(f));
	/* The end admits it, in its own transaction. */
	fixture_restart(f);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("admitted -",
	    sql_get(f,
		"SELECT state || ' ' || COALESCE(redispatch_decision, '-')"
		" FROM events"));
	assert_int_equal(105, next_startable(f));
	assert_string_not_equal("", launch(f, 105, ATT_2));
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

/* A settlement that fails leaves the redispatch waiting, and comes again. */
static void
the_end_and_the_admission_are_one(void **state)
{
	struct fixture *f = *state;
	struct msg m = end_of(ATT_1, "lost");

	reported(f);
	(void)redispatch_event(f, 105);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE OF ended_at ON tasks BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal("completed", state_of(f, 105));
	sql_ok(f, "DROP TRIGGER spoil");
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("admitted", state_of(f, 105));
}

/* Unexposed siblings go back at once, exposed ones at the end, unknown. */
static void
every_sibling_comes_out(void **state)
{
	struct fixture *f = *state;

	reported(f);
	join_event(f, 106);
	join_event(f, 107);
	join_event(f, 108);
	join_event(f, 109);
	(void)get_dispatch(f, token, 107, ATT_1);
	(void)get_dispatch(f, token, 108, ATT_1);
	(void)ack_dispatch(f, token, 108, 7, ATT_1);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 109");
	(void)redispatch_event(f, 105);
	assert_string_equal("admitted", state_of(f, 106));
	assert_string_equal("dispatched", state_of(f, 107));
	assert_string_equal("dispatched", state_of(f, 108));
	assert_string_equal("held", state_of(f, 109));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT COUNT(*) FROM task_events"
		" WHERE retired_at IS NULL"));
	assert_int_equal(0, next_startable(f));
	assert_int_equal(2, end_attempt(f, ATT_1, "lost")->ended.unknown);
	assert_string_equal("completed", state_of(f, 107));
	assert_string_equal("completed", state_of(f, 108));
	assert_string_equal("unknown",
	    sql_get(f, "SELECT outcome FROM task_events WHERE event_id = 107"));
	/* And nothing is in the way of the conversation any more. */
	assert_int_equal(105, next_startable(f));
	assert_string_not_equal("", launch(f, 105, ATT_2));
	(void)end_attempt(f, ATT_2, "lost");
	assert_string_equal("held", state_of(f, 109));
}

/* Another one on the same task: it waits as well, nothing is superseded. */
static void
a_second_record_of_the_task_waits_too(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;
	struct msg m = {.type = MSG_REDISPATCH};
	int i;

	reported(f);
	join_event(f, 106);
	(void)get_dispatch(f, token, 106, ATT_1);
	(void)complete_dispatch(f, token, 106, "failed", ATT_1);
	(void)redispatch_event(f, 105);
	fixture_wait(1000);
	fixture_forget(f);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 106};
	for (i = 0; i < 2; i++) {
		is = &fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED)
			  ->decided;
		assert_true(is->pending);
		assert_int_equal(1, is->superseded_task_id);
		assert_string_equal(ATT_1, is->attempt);
	}
	assert_null(told(f, MSG_SUPERSEDED));
	assert_string_equal("2026-01-05T09:00:00.000000000Z",
	    sql_get(f, "SELECT superseded_at FROM tasks"));
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("admitted", state_of(f, 105));
	assert_string_equal("admitted", state_of(f, 106));
}

/* One of the conversation, for another directory. */
static const char *
admit_elsewhere(struct fixture *f, int64_t id, const char *key)
{
	struct msg m;

	(void)record_event(f, id);
	sql_ok(f, "UPDATE events SET bucket_id = 11 WHERE id = %lld",
	    (long long)id);
	m = verdict_of(f, id, "admitted");
	m.verdict.conversation_key = key;
	m.verdict.route = OTHER_ROUTE;
	return fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS)
	    ->verdict_is.state;
}

/* The event is admitted, not queued, and starts with the next task. */
static void
a_superseded_task_takes_nothing_more(void **state)
{
	struct fixture *f = *state;

	reported(f);
	(void)redispatch_event(f, 105);
	assert_string_equal("admitted", admit_elsewhere(f, 103, "k"));
	assert_int_equal(0, next_startable(f));
	assert_string_equal("", launch(f, 103, ATT_2));
	sql_refused(f,
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (1, 103, 'k')");
	assert_string_equal("admitted", state_of(f, 103));
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(103, next_startable(f));
	assert_string_not_equal("", launch(f, 103, ATT_2));
	assert_string_equal("2",
	    sql_get(f, "SELECT task_id FROM task_events WHERE event_id = 103"));
}

/*
 * An outcome that is unknown while its task goes on is nothing that the ledger
 * writes; were it there, its discard would end the wait.
 */
static void
a_discard_withdraws_a_redispatch(void **state)
{
	struct fixture *f = *state;

	reported(f);
	(void)redispatch_event(f, 105);
	sql_ok(f, "UPDATE task_events SET outcome = 'unknown'");
	assert_string_equal("discarded", discard_event(f, 105)->decided.state);
	assert_string_equal("-",
	    sql_get(
		f, "SELECT COALESCE(redispatch_decision, '-') FROM events"));
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("discarded", state_of(f, 105));
}

/* It stays completed and waits no more; the end goes through. */
static void
end_spoilt(const char *spoiler)
{
	struct fixture *f;
	void *state;

	(void)fixture_setup(&state);
	f = state;
	reported(f);
	(void)redispatch_event(f, 105);
	sql_put(f, "UPDATE events SET %s", spoiler);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed -",
	    sql_get(f,
		"SELECT state || ' ' || COALESCE(redispatch_decision, '-')"
		" FROM events"));
	assert_int_equal(1,
	    sql_int(
		f, "SELECT COUNT(*) FROM tasks WHERE ended_at IS NOT NULL"));
	assert_failed(redispatch_event(f, 105), "refused");
	(void)fixture_teardown(&state);
}

static void
an_end_does_not_fail_for_a_redispatch(void **state)
{
	end_spoilt("snapshot = NULL");
	end_spoilt("snapshot = x''");
	end_spoilt("content_dropped = 1");
}

/* The clock was stepped back between the report and the decision. */
static void
a_waiting_decision_is_not_older_than_its_outcome(void **state)
{
	struct fixture *f = *state;

	reported(f);
	fixture_wait(-3600000);
	assert_true(redispatch_event(f, 105)->decided.pending);
	assert_string_equal("2026-01-05T09:00:00.000000000Z",
	    sql_get(f, "SELECT decided_at FROM decisions"));
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("admitted", state_of(f, 105));
}

/* Authorized when it comes back: a tag of its working time holds nothing. */
/* Out of a hold, or of a block, as well. */
static void
no_later_decision_is_older_than_the_outcome(void **state)
{
	struct fixture *f = *state;

	reported(f);
	(void)end_attempt(f, ATT_1, "lost");
	(void)redispatch_event(f, 105);
	(void)set_hold(f);
	assert_string_equal("held", state_of(f, 105));
	fixture_wait(-3600000);
	(void)redispatch_event(f, 105);
	assert_string_equal("admitted", state_of(f, 105));
	sql_put(f, "UPDATE events SET state = 'blocked', reason = 'no_route'");
	(void)redispatch_event(f, 105);
	assert_int_equal(3,
	    sql_int(f,
		"SELECT COUNT(*) FROM decisions WHERE event_id = 105"
		" AND decided_at >= (SELECT completed_at FROM task_events)"));
}

static void
a_tagged_record_comes_back_admitted(void **state)
{
	struct fixture *f = *state;

	reported(f);
	sql_ok(f, "UPDATE events SET review = 1");
	(void)redispatch_event(f, 105);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("admitted", state_of(f, 105));
}

/* Two attempts of one turn are two notices, each with its own. */
static void
each_superseded_attempt_is_told(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH};
	const char *attempts[2];
	size_t i, n = 0;

	reported(f);
	(void)admit_elsewhere(f, 201, "l");
	(void)snprintf(token, sizeof(token), "%s", launch(f, 201, ATT_2));
	(void)get_dispatch(f, token, 201, ATT_2);
	(void)complete_dispatch(f, token, 201, "failed", ATT_2);
	fixture_forget(f);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 105};
	fixture_add(f, &m, ROLE_SUPERVISOR, "");
	m.redispatch = (struct msg_redispatch){NONCE_2, "local:ann", 201};
	fixture_add(f, &m, ROLE_SUPERVISOR, "");
	fixture_turn(f);
	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == MSG_SUPERSEDED)
			attempts[n++ % 2] = f->notices[i].attempt;
	}
	assert_int_equal(2, n);
	assert_string_equal(ATT_1, attempts[0]);
	assert_string_equal(ATT_2, attempts[1]);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    PROVES("T61", it_waits_for_its_tasks_end),
	    PROVES("T61", the_end_and_the_admission_are_one),
	    PROVES("T62", every_sibling_comes_out),
	    TEST(a_second_record_of_the_task_waits_too),
	    PROVES("T63", a_superseded_task_takes_nothing_more),
	    PROVES("T66", a_discard_withdraws_a_redispatch),
	    TRAP("T67", an_end_does_not_fail_for_a_redispatch, NULL, NULL),
	    PROVES("T64", a_waiting_decision_is_not_older_than_its_outcome),
	    PROVES("T64", no_later_decision_is_older_than_the_outcome),
	    TEST(a_tagged_record_comes_back_admitted),
	    TEST(each_superseded_attempt_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
