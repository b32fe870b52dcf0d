/* Follow-ups: LAUNCH's siblings, JOIN and EXPOSE (ledger.md 3.2.3, 3.2.4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/task.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static void
waits(struct fixture *f, int64_t id)
{
	(void)record_event(f, id);
	(void)admit_event(f, id, "k");
}

/* A verdict of its own kind: another route, or nobody to be answered. */
static void
waits_as(struct fixture *f, int64_t id, const char *route, bool acknowledge)
{
	struct msg m;

	(void)record_event(f, id);
	if (strcmp(route, ROUTE) != 0)
		sql_ok(f, "UPDATE events SET bucket_id = %d WHERE id = %lld",
		    OTHER_PROJECT, (long long)id);
	m = verdict_of(f, id, "admitted");
	m.verdict.conversation_key = "k";
	m.verdict.route = route;
	m.verdict.acknowledge = acknowledge;
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
}

static struct msg
join_of(const char *attempt)
{
	struct msg m = {.type = MSG_JOIN};

	m.join = (struct msg_join){attempt, 1};
	return m;
}

static struct msg_joined *
join(struct fixture *f, const char *attempt)
{
	struct msg m = join_of(attempt);

	return &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_JOINED)->joined;
}

static struct msg
expose_of(const char *attempt, int64_t id)
{
	struct msg m = {.type = MSG_EXPOSE};

	m.expose = (struct msg_expose){attempt, id};
	return m;
}

static struct msg_exposed *
expose(struct fixture *f, const char *attempt, int64_t id)
{
	struct msg m = expose_of(attempt, id);

	return &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_EXPOSED)->exposed;
}

static void
expose_fails(
    struct fixture *f, const char *attempt, int64_t id, const char *reason)
{
	struct msg m = expose_of(attempt, id);

	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), reason);
}

/* "101 exposed armed, 102 admitted armed" */
static const char *
rows_of(struct fixture *f, int64_t task_id)
{
	return sql_get(f,
	    "SELECT group_concat(event_id || ' ' || delivery || ' ' || guard,"
	    " ', ') FROM (SELECT * FROM task_events WHERE task_id = %lld"
	    " ORDER BY event_id)",
	    (long long)task_id);
}

static void
hold(struct fixture *f)
{
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
}

static void
supersede(struct fixture *f, int64_t task_id)
{
	clock_stamp(f->l.now);
	assert_int_equal(1, task_supersede(&f->l, task_id));
	sql_reset_all(&f->l);
}

/* ---- siblings ---------------------------------------------------------- */

/* All of the conversation, and only the first is told of. */
static void
a_launch_takes_the_conversation_along(void **state)
{
	struct fixture *f = *state;

	waits(f, 101);
	waits_as(f, 102, ROUTE, false);
	waits(f, 103);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "101 exposed armed, 102 admitted , 103 admitted armed",
	    rows_of(f, 1));
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

	waits(f, 101);
	waits(f, 102);
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
	    "101 exposed armed, 102 admitted armed", rows_of(f, 2));
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

	waits(f, 101);
	for (i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++, id++) {
		waits(f, id);
		assert_string_equal("queued", state_of(f, id));
		sql_put(f, "UPDATE events SET %s WHERE id = %lld", spoilers[i],
		    (long long)id);
	}
	waits(f, id);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "101 exposed armed, 113 admitted armed", rows_of(f, 1));
	assert_int_equal(0, join(f, ATT_1)->joined);
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM task_events"));
}

/* T6: blocked and back by hand has no snapshot any more. */
static void
what_was_blocked_in_between_does_not_join(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(102, ATT_1);

	waits(f, 101);
	waits(f, 102);
	clock_stamp(f->l.now);
	sql_ok(f,
	    "UPDATE events SET snapshot = NULL, state = 'blocked',"
	    " reason = 'why' WHERE id = 102");
	sql_ok(f,
	    "UPDATE events SET state = 'admitted', reason = ''"
	    " WHERE id = 102");
	(void)launch(f, 101, ATT_2);
	assert_string_equal("101 exposed armed", rows_of(f, 1));
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

	waits(f, 101);
	waits_as(f, 102, OTHER_ROUTE, true);
	waits(f, 103);
	sql_put(f, "UPDATE events SET state = 'admitted' WHERE id = 102");
	(void)launch(f, 101, ATT_1);
	assert_string_equal("101 exposed armed", rows_of(f, 1));
	assert_int_equal(0, join(f, ATT_1)->joined);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(102, next_startable(f));
	assert_string_not_equal("", launch(f, 102, ATT_2));
	assert_string_equal("102 exposed armed", rows_of(f, 2));
	(void)end_attempt(f, ATT_2, "finished");
	assert_int_equal(103, next_startable(f));
}

/* T2, I9: a sibling that cannot be written undoes the launch. */
static void
a_sibling_that_cannot_join_undoes_the_launch(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(101, ATT_1);

	waits(f, 101);
	waits(f, 102);
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

	waits(f, 101);
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

	waits(f, 101);
	waits(f, 102);
	waits(f, 103);
	(void)launch(f, 101, ATT_1);
	assert_int_equal(0, next_startable(f));
	fixture_forget(f);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(MSG_WORK_WAITS, f->notices[f->notice_count - 1].type);
	assert_string_equal("admitted", state_of(f, 102));
	assert_int_equal(102, next_startable(f));
	assert_string_not_equal("", launch(f, 102, ATT_2));
	assert_string_equal(
	    "102 exposed armed, 103 admitted armed", rows_of(f, 2));
	(void)end_attempt(f, ATT_2, "finished");
	assert_int_equal(103, next_startable(f));
}

/* The worker asks for the earliest that is not acknowledged yet. */
static void
a_worker_pulls_siblings_by_itself(void **state)
{
	struct fixture *f = *state;
	const char *token;

	waits(f, 101);
	waits(f, 102);
	waits(f, 103);
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

	waits(f, 101);
	waits(f, 102);
	waits(f, 103);
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

	waits(f, 101);
	waits(f, 102);
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

/* ---- JOIN -------------------------------------------------------------- */

static void
a_follow_up_joins_the_live_task(void **state)
{
	struct fixture *f = *state;
	struct msg_joined *j;

	waits(f, 101);
	(void)launch(f, 101, ATT_1);
	j = join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(0, j->unexposed);
	waits(f, 103);
	waits_as(f, 102, ROUTE, false);
	assert_string_equal("queued", state_of(f, 102));
	j = join(f, ATT_1);
	assert_int_equal(2, j->joined);
	assert_int_equal(102, j->unexposed);
	assert_string_equal(
	    "101 exposed armed, 102 admitted , 103 admitted armed",
	    rows_of(f, 1));
	assert_string_equal("k",
	    sql_get(f,
		"SELECT conversation_key FROM task_events"
		" WHERE event_id = 103"));
	assert_string_equal("dispatched", state_of(f, 103));
	j = join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(102, j->unexposed);
}

/* Its guard stood in Basecamp before it joined: the worker is told so. */
static void
a_guard_that_fired_joins_as_fired(void **state)
{
	struct fixture *f = *state;
	const char *token;

	waits(f, 101);
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	waits(f, 102);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)join(f, ATT_1);
	assert_string_equal(
	    "101 exposed canceled, 102 admitted fired", rows_of(f, 1));
	assert_true(
	    get_dispatch(f, token, 102, ATT_1)->instruction.guard_acknowledged);
}

static void
another_conversation_or_route_does_not_join(void **state)
{
	struct fixture *f = *state;

	waits(f, 101);
	(void)launch(f, 101, ATT_1);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	waits_as(f, 103, OTHER_ROUTE, true);
	assert_int_equal(0, join(f, ATT_1)->joined);
	assert_string_equal("admitted", state_of(f, 102));
	assert_string_equal("queued", state_of(f, 103));
}

/* Its key is copied: retention takes the record's, not the task's. */
static void
a_task_whose_records_are_cleared_takes_follow_ups(void **state)
{
	struct fixture *f = *state;

	waits(f, 101);
	(void)launch(f, 101, ATT_1);
	waits(f, 102);
	sql_ok(f, "UPDATE events SET conversation_key = '' WHERE id = 101");
	assert_int_equal(1, join(f, ATT_1)->joined);
}

static void
a_superseded_task_takes_no_follow_up(void **state)
{
	struct fixture *f = *state;
	struct msg_joined *j;

	waits(f, 101);
	waits(f, 102);
	(void)launch(f, 101, ATT_1);
	supersede(f, 1);
	assert_string_equal("admitted", state_of(f, 102));
	waits(f, 103);
	j = join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(0, j->unexposed);
	(void)end_attempt(f, ATT_1, "lost");
	j = join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(0, j->unexposed);
	assert_string_equal("admitted", state_of(f, 102));
	assert_int_equal(102, next_startable(f));
}

static void
a_task_takes_no_follow_up_under_a_hold(void **state)
{
	struct fixture *f = *state;
	struct msg_joined *j;

	waits(f, 101);
	waits(f, 102);
	(void)launch(f, 101, ATT_1);
	hold(f);
	waits(f, 103);
	j = join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(102, j->unexposed);
	assert_string_equal("queued", state_of(f, 103));
	expose_fails(f, ATT_1, 102, "held");
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", rows_of(f, 1));
	sql_ok(f, "DELETE FROM hold_marker");
	assert_int_equal(1, join(f, ATT_1)->joined);
	assert_string_equal("exposed", expose(f, ATT_1, 102)->delivery);
}

/* The routes that dispatcher and ledger go by are the same ones. */
static void
a_join_is_of_the_present_routes(void **state)
{
	struct fixture *f = *state;
	struct msg m = join_of(ATT_1);

	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
	waits(f, 101);
	(void)launch(f, 101, ATT_1);
	waits(f, 102);
	m.join.generation = 2;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "stale_config");
	config_route_add(f->config, PROJECT, "/srv/elsewhere", "", false);
	fixture_config_changed(f);
	assert_int_equal(0, join(f, ATT_1)->joined);
	config_route_add(f->config, PROJECT, ROUTE, "", false);
	f->config->readable = false;
	fixture_config_changed(f);
	assert_int_equal(0, join(f, ATT_1)->joined);
	f->config->readable = true;
	fixture_config_changed(f);
	assert_int_equal(1, join(f, ATT_1)->joined);
}

/* ---- EXPOSE ------------------------------------------------------------ */

static void
a_follow_up_is_exposed_before_it_is_told_of(void **state)
{
	struct fixture *f = *state;
	struct msg_exposed *e;

	waits(f, 101);
	waits(f, 102);
	(void)launch(f, 101, ATT_1);
	fixture_wait(1000);
	e = expose(f, ATT_1, 102);
	assert_true(e->by_you);
	assert_false(e->pulled);
	assert_string_equal("exposed", e->delivery);
	assert_string_equal("exposed 2026-01-05T09:00:01.000000000Z " ATT_1,
	    sql_get(f,
		"SELECT delivery || ' ' || exposed_at || ' ' ||"
		" exposed_attempt_id FROM task_events WHERE event_id = 102"
		" AND pulled_at IS NULL"));
	/* Asked again, by a dispatcher that had no answer. */
	fixture_wait(1000);
	assert_true(expose(f, ATT_1, 102)->by_you);
	assert_string_equal("2026-01-05T09:00:01.000000000Z",
	    sql_get(
		f, "SELECT exposed_at FROM task_events WHERE event_id = 102"));
	assert_int_equal(0, join(f, ATT_1)->unexposed);
	/* Exposed and never pulled: somebody may have seen it. */
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed", state_of(f, 102));
}

/* The worker was quicker: nothing is to be said about it. */
static void
what_the_worker_pulled_is_not_exposed_again(void **state)
{
	struct fixture *f = *state;
	struct msg_exposed *e;
	const char *token;

	waits(f, 101);
	waits(f, 102);
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 102, ATT_1);
	e = expose(f, ATT_1, 102);
	assert_false(e->by_you);
	assert_true(e->pulled);
	assert_string_equal("exposed", e->delivery);
	(void)complete_dispatch(f, token, 102, "succeeded", ATT_1);
	e = expose(f, ATT_1, 102);
	assert_false(e->by_you);
	assert_string_equal("completed", e->delivery);
	assert_true(expose(f, ATT_1, 101)->by_you); /* at launch */
}

static void
only_a_live_attempt_exposes_what_is_on_its_task(void **state)
{
	struct fixture *f = *state;

	expose_fails(f, ATT_1, 101, "not_found");
	waits(f, 101);
	waits(f, 102);
	(void)launch(f, 101, ATT_1);
	waits(f, 103);
	expose_fails(f, ATT_1, 103, "refused"); /* not joined */
	expose_fails(f, ATT_1, 404, "refused");
	assert_int_equal(1, join(f, ATT_1)->joined);
	(void)expose(f, ATT_1, 103);
	supersede(f, 1);
	expose_fails(f, ATT_1, 102, "refused"); /* it went back */
	expose_fails(f, ATT_1, 103, "refused"); /* told of no more */
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed, 103 exposed armed",
	    rows_of(f, 1));
	(void)end_attempt(f, ATT_1, "lost");
	expose_fails(f, ATT_1, 102, "refused");
	assert_string_equal("admitted", state_of(f, 102));
}

/* No worker is told of what is over, however it came to be so. */
static void
only_a_dispatched_record_is_exposed(void **state)
{
	struct fixture *f = *state;

	waits(f, 101);
	waits(f, 102);
	(void)launch(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET state = 'completed' WHERE id = 102");
	expose_fails(f, ATT_1, 102, "refused");
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", rows_of(f, 1));
}

/* T18: at the launch the record moves; an exposure by itself is none. */
static void
an_exposure_is_no_new_state(void **state)
{
	struct fixture *f = *state;
	const char *before, *token;

	waits(f, 101);
	waits(f, 102);
	waits(f, 103);
	token = launch(f, 101, ATT_1);
	before = sql_get(
	    f, "SELECT group_concat(revision || updated_at) FROM events");
	fixture_wait(1000);
	(void)expose(f, ATT_1, 102);
	(void)get_dispatch(f, token, 103, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	assert_string_equal(before,
	    sql_get(
		f, "SELECT group_concat(revision || updated_at) FROM events"));
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
	    TEST(a_follow_up_joins_the_live_task),
	    TEST(a_guard_that_fired_joins_as_fired),
	    TEST(another_conversation_or_route_does_not_join),
	    TEST(a_task_whose_records_are_cleared_takes_follow_ups),
	    TEST(a_superseded_task_takes_no_follow_up),
	    T("I2", a_task_takes_no_follow_up_under_a_hold),
	    TEST(a_join_is_of_the_present_routes),
	    TEST(a_follow_up_is_exposed_before_it_is_told_of),
	    TEST(what_the_worker_pulled_is_not_exposed_again),
	    TEST(only_a_live_attempt_exposes_what_is_on_its_task),
	    TEST(only_a_dispatched_record_is_exposed),
	    T("T18", an_exposure_is_no_new_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
