/* What goes along with a LAUNCH, and is pulled (ledger.md 3.2.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/follow_scene.h"
#include "tests/unit/trap.h"

/* All of the conversation, and only the first is told of. */
static void
a_launch_takes_the_conversation_along(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	follow_wait_as(f, 102, ROUTE, false);
	follow_wait(f, 103);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "101 exposed armed, 102 admitted , 103 admitted armed",
	    follow_rows(f, 1));
	assert_string_equal("k k k",
	    sql_get(f,
		"SELECT group_concat(conversation_key, ' ')"
		" FROM task_events WHERE exposed_attempt_id IS NULL"
		" OR exposed_attempt_id = '" ATT_1 "'"));
	assert_string_equal("dispatched", state_of(f, 102));
	assert_string_equal("dispatched", state_of(f, 103));
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

/* T10: both are run again by a person, and are one task. */
static void
a_redispatch_of_the_conversation_is_one_task(void **state)
{
	struct fixture *f = *state;
	const char *token;

	follow_wait(f, 101);
	follow_wait(f, 102);
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 102, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	fixture_wait(1000);
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('redispatch', 102, 'me', '2026-01-05T10:00:00Z'),"
	    " ('redispatch', 101, 'me', '2026-01-05T10:00:00Z');"
	    "UPDATE events SET redispatch_decision ="
	    " CASE id WHEN 102 THEN 1 ELSE 2 END;"
	    "UPDATE events SET state = 'admitted', redispatch_decision = NULL");
	assert_int_equal(101, next_startable(f));
	assert_string_not_equal("", launch(f, 101, ATT_2));
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", follow_rows(f, 2));
	assert_int_equal(0, next_startable(f));
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

/* What no worker could be told stays where it is, and so do others. */
static void
only_what_could_start_goes_along(void **state)
{
	static const char *const spoilers[] = {"snapshot = NULL",
	    "snapshot = x''", "routed = 0", "content_dropped = 1",
	    "state = 'blocked', reason = 'why'", "state = 'held'",
	    "state = 'seen'", "conversation_key = 'other'",
	    "conversation_key = ''", "route = '/srv/other'", "bucket_id = 99"};
	struct fixture *f = *state;
	int64_t id = 102;
	size_t i;

	follow_wait(f, 101);
	for (i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++, id++) {
		follow_wait(f, id);
		assert_string_equal("queued", state_of(f, id));
		sql_put(f, "UPDATE events SET %s WHERE id = %lld", spoilers[i],
		    (long long)id);
	}
	follow_wait(f, id);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "101 exposed armed, 113 admitted armed", follow_rows(f, 1));
	assert_int_equal(0, follow_join(f, ATT_1)->joined);
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM task_events"));
}

/* T6: blocked and back by hand has no snapshot any more. */
static void
what_was_blocked_in_between_does_not_join(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(102, ATT_1);

	follow_wait(f, 101);
	follow_wait(f, 102);
	clock_stamp(f->l.now);
	sql_ok(f,
	    "UPDATE events SET snapshot = NULL, state = 'blocked',"
	    " reason = 'why' WHERE id = 102");
	sql_ok(f,
	    "UPDATE events SET state = 'admitted', reason = ''"
	    " WHERE id = 102");
	(void)launch(f, 101, ATT_2);
	assert_string_equal("101 exposed armed", follow_rows(f, 1));
	(void)end_attempt(f, ATT_2, "finished");
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal("it is not dispatchable",
	    f->replies[f->reply_count - 1]->failed.text);
}

/*
 * 102 waits for a task of its own, on another route: nothing that came after
 * it is taken before it (I2).
 */
static void
nothing_joins_around_an_older_admitted_record(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	follow_wait_as(f, 102, OTHER_ROUTE, true);
	follow_wait(f, 103);
	sql_put(f, "UPDATE events SET state = 'admitted' WHERE id = 102");
	(void)launch(f, 101, ATT_1);
	assert_string_equal("101 exposed armed", follow_rows(f, 1));
	assert_int_equal(0, follow_join(f, ATT_1)->joined);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(102, next_startable(f));
	assert_string_not_equal("", launch(f, 102, ATT_2));
	assert_string_equal("102 exposed armed", follow_rows(f, 2));
	(void)end_attempt(f, ATT_2, "finished");
	assert_int_equal(103, next_startable(f));
}

/* T2, I9: a sibling that cannot be written undoes the launch. */
static void
a_sibling_that_cannot_join_undoes_the_launch(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(101, ATT_1);

	follow_wait(f, 101);
	follow_wait(f, 102);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE OF state ON events"
	    " WHEN NEW.id = 102 BEGIN SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_equal("queued", state_of(f, 102));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT (SELECT COUNT(*) FROM tasks) +"
		" (SELECT COUNT(*) FROM task_events) +"
		" (SELECT COUNT(*) FROM attempts)"));
	sql_ok(f, "DROP TRIGGER spoil");
	assert_string_not_equal("", launch(f, 101, ATT_1));
}

/* What is queued behind a live task is said at once: it may join now. */
static void
a_queued_record_is_told_of(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	(void)launch(f, 101, ATT_1);
	(void)record_event(f, 102);
	fixture_forget(f);
	(void)admit_event(f, 102, "k");
	assert_string_equal("queued", state_of(f, 102));
	assert_true(f->notice_count > 0);
	assert_int_equal(MSG_WORK_WAITS, f->notices[f->notice_count - 1].type);
}

/* Nobody told the worker: they start afterwards, in order. */
static void
untold_siblings_start_afterwards(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	follow_wait(f, 102);
	follow_wait(f, 103);
	(void)launch(f, 101, ATT_1);
	assert_int_equal(0, next_startable(f));
	fixture_forget(f);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(MSG_WORK_WAITS, f->notices[f->notice_count - 1].type);
	assert_string_equal("admitted", state_of(f, 102));
	assert_int_equal(102, next_startable(f));
	assert_string_not_equal("", launch(f, 102, ATT_2));
	assert_string_equal(
	    "102 exposed armed, 103 admitted armed", follow_rows(f, 2));
	(void)end_attempt(f, ATT_2, "finished");
	assert_int_equal(103, next_startable(f));
}

/* The worker asks for the earliest that is not acknowledged yet. */
static void
a_worker_pulls_siblings_by_itself(void **state)
{
	struct fixture *f = *state;
	const char *token;

	follow_wait(f, 101);
	follow_wait(f, 102);
	follow_wait(f, 103);
	token = launch(f, 101, ATT_1);
	assert_int_equal(
	    101, get_dispatch(f, token, 0, ATT_1)->instruction.event_id);
	(void)ack_dispatch(f, token, 101, 0, ATT_1);
	assert_int_equal(
	    102, get_dispatch(f, token, 0, ATT_1)->instruction.event_id);
	(void)complete_dispatch(f, token, 102, "succeeded", ATT_1);
	assert_int_equal(
	    103, get_dispatch(f, token, 0, ATT_1)->instruction.event_id);
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("completed unknown, completed succeeded, "
			    "completed unknown",
	    sql_get(f,
		"SELECT group_concat(delivery || ' ' || outcome, ', ') FROM"
		" (SELECT * FROM task_events ORDER BY event_id)"));
	assert_int_equal(0, next_startable(f));
}

/* I6: what is over already is not handed out for a first time. */
static void
finished_work_is_not_handed_out_first(void **state)
{
	struct fixture *f = *state;
	const char *token;

	follow_wait(f, 101);
	follow_wait(f, 102);
	follow_wait(f, 103);
	token = launch(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET state = 'completed' WHERE id <> 103");
	assert_failed(get_dispatch(f, token, 101, ATT_1), "not_dispatchable");
	assert_failed(get_dispatch(f, token, 102, ATT_1), "not_dispatchable");
	assert_int_equal(
	    103, get_dispatch(f, token, 0, ATT_1)->instruction.event_id);
	(void)complete_dispatch(f, token, 103, "succeeded", ATT_1);
	assert_int_equal(
	    103, get_dispatch(f, token, 103, ATT_1)->instruction.event_id);
}

/*
 * T28: what a worker's own get exposed has no exposing attempt; whatever the
 * driver says of its process, it was seen.
 */
static void
a_follow_up_the_worker_pulled_is_never_withdrawn(void **state)
{
	struct fixture *f = *state;
	const char *token;
	struct msg *ended;

	follow_wait(f, 101);
	follow_wait(f, 102);
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 102, ATT_1);
	assert_string_equal("",
	    sql_get(f,
		"SELECT exposed_attempt_id FROM task_events"
		" WHERE event_id = 102"));
	ended = spawn_failed(f, ATT_1);
	assert_int_equal(1, ended->ended.withdrawn); /* 101 */
	assert_int_equal(1, ended->ended.unknown);
	assert_int_equal(102, ended->ended.first_unknown);
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_equal("completed", state_of(f, 102));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_launch_takes_the_conversation_along),
	    T("T10", a_redispatch_of_the_conversation_is_one_task),
	    T("T5 I6", only_what_could_start_goes_along),
	    T("T6", what_was_blocked_in_between_does_not_join),
	    T("I2", nothing_joins_around_an_older_admitted_record),
	    T("T2 I9", a_sibling_that_cannot_join_undoes_the_launch),
	    TEST(a_queued_record_is_told_of),
	    TEST(untold_siblings_start_afterwards),
	    TEST(a_worker_pulls_siblings_by_itself),
	    T("I6", finished_work_is_not_handed_out_first),
	    T("T28", a_follow_up_the_worker_pulled_is_never_withdrawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
