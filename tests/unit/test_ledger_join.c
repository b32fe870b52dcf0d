/* Follow-ups: JOIN and EXPOSE (ledger.md 3.2.4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/task.h"
#include "tests/unit/follow_scene.h"
#include "tests/unit/trap.h"

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

/* ---- JOIN -------------------------------------------------------------- */

static void
a_follow_up_joins_the_live_task(void **state)
{
	struct fixture *f = *state;
	struct msg_joined *j;

	follow_wait(f, 101);
	(void)launch(f, 101, ATT_1);
	j = follow_join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(0, j->unexposed);
	follow_wait(f, 103);
	follow_wait_as(f, 102, ROUTE, false);
	assert_string_equal("queued", state_of(f, 102));
	j = follow_join(f, ATT_1);
	assert_int_equal(2, j->joined);
	assert_int_equal(102, j->unexposed);
	assert_string_equal(
	    "101 exposed armed, 102 admitted , 103 admitted armed",
	    follow_rows(f, 1));
	assert_string_equal("k",
	    sql_get(f,
		"SELECT conversation_key FROM task_events"
		" WHERE event_id = 103"));
	assert_string_equal("dispatched", state_of(f, 103));
	j = follow_join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(102, j->unexposed);
}

/* Its guard stood in Basecamp before it joined: the worker is told so. */
static void
a_guard_that_fired_joins_as_fired(void **state)
{
	struct fixture *f = *state;
	const char *token;

	follow_wait(f, 101);
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	follow_wait(f, 102);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)follow_join(f, ATT_1);
	assert_string_equal(
	    "101 exposed canceled, 102 admitted fired", follow_rows(f, 1));
	assert_true(
	    get_dispatch(f, token, 102, ATT_1)->instruction.guard_acknowledged);
}

static void
another_conversation_or_route_does_not_join(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	(void)launch(f, 101, ATT_1);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	follow_wait_as(f, 103, OTHER_ROUTE, true);
	assert_int_equal(0, follow_join(f, ATT_1)->joined);
	assert_string_equal("admitted", state_of(f, 102));
	assert_string_equal("queued", state_of(f, 103));
}

/* Its key is copied: retention takes the record's, not the task's. */
static void
a_task_whose_records_are_cleared_takes_follow_ups(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	(void)launch(f, 101, ATT_1);
	follow_wait(f, 102);
	sql_ok(f, "UPDATE events SET conversation_key = '' WHERE id = 101");
	assert_int_equal(1, follow_join(f, ATT_1)->joined);
}

static void
a_superseded_task_takes_no_follow_up(void **state)
{
	struct fixture *f = *state;
	struct msg_joined *j;

	follow_wait(f, 101);
	follow_wait(f, 102);
	(void)launch(f, 101, ATT_1);
	supersede(f, 1);
	assert_string_equal("admitted", state_of(f, 102));
	follow_wait(f, 103);
	j = follow_join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(0, j->unexposed);
	(void)end_attempt(f, ATT_1, "lost");
	j = follow_join(f, ATT_1);
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

	follow_wait(f, 101);
	follow_wait(f, 102);
	(void)launch(f, 101, ATT_1);
	hold(f);
	follow_wait(f, 103);
	j = follow_join(f, ATT_1);
	assert_int_equal(0, j->joined);
	assert_int_equal(102, j->unexposed);
	assert_string_equal("queued", state_of(f, 103));
	expose_fails(f, ATT_1, 102, "held");
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", follow_rows(f, 1));
	sql_ok(f, "DELETE FROM hold_marker");
	assert_int_equal(1, follow_join(f, ATT_1)->joined);
	assert_string_equal("exposed", expose(f, ATT_1, 102)->delivery);
}

/* The routes that dispatcher and ledger go by are the same ones. */
static void
a_join_is_of_the_present_routes(void **state)
{
	struct fixture *f = *state;
	struct msg m = follow_join_of(ATT_1);

	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
	follow_wait(f, 101);
	(void)launch(f, 101, ATT_1);
	follow_wait(f, 102);
	m.join.generation = 2;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "stale_config");
	m.join.generation = 1;
	config_route_add(f->config, PROJECT, "/srv/elsewhere", "", false);
	fixture_config_changed(f);
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "unauthorized");
	config_route_add(f->config, PROJECT, ROUTE, "", false);
	f->config->readable = false;
	fixture_config_changed(f);
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "unauthorized");
	assert_string_equal("queued", state_of(f, 102));
	f->config->readable = true;
	fixture_config_changed(f);
	assert_int_equal(1, follow_join(f, ATT_1)->joined);
}

/* ---- EXPOSE ------------------------------------------------------------ */

static void
a_follow_up_is_exposed_before_it_is_told_of(void **state)
{
	struct fixture *f = *state;
	struct msg_exposed *e;

	follow_wait(f, 101);
	follow_wait(f, 102);
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
	assert_int_equal(0, follow_join(f, ATT_1)->unexposed);
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

	follow_wait(f, 101);
	follow_wait(f, 102);
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
	follow_wait(f, 101);
	follow_wait(f, 102);
	(void)launch(f, 101, ATT_1);
	follow_wait(f, 103);
	expose_fails(f, ATT_1, 103, "refused"); /* not joined */
	expose_fails(f, ATT_1, 404, "refused");
	assert_int_equal(1, follow_join(f, ATT_1)->joined);
	(void)expose(f, ATT_1, 103);
	supersede(f, 1);
	expose_fails(f, ATT_1, 102, "refused"); /* it went back */
	expose_fails(f, ATT_1, 103, "refused"); /* told of no more */
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed, 103 exposed armed",
	    follow_rows(f, 1));
	(void)end_attempt(f, ATT_1, "lost");
	expose_fails(f, ATT_1, 102, "refused");
	assert_string_equal("admitted", state_of(f, 102));
}

/* Trap 6: what joined under a route that went meanwhile is not told of. */
static void
an_exposure_is_of_the_present_routes(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	follow_wait(f, 102);
	(void)launch(f, 101, ATT_1);
	assert_int_equal(102, follow_join(f, ATT_1)->unexposed);
	config_route_add(f->config, PROJECT, "/srv/elsewhere", "", false);
	fixture_config_changed(f);
	expose_fails(f, ATT_1, 102, "unauthorized");
	config_route_add(f->config, PROJECT, ROUTE, "", false);
	f->config->readable = false;
	fixture_config_changed(f);
	expose_fails(f, ATT_1, 102, "unauthorized");
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", follow_rows(f, 1));
	f->config->readable = true;
	fixture_config_changed(f);
	(void)expose(f, ATT_1, 102);
	/* What stands is told again, whatever the routes are now. */
	f->config->readable = false;
	fixture_config_changed(f);
	assert_true(expose(f, ATT_1, 102)->by_you);
}

/* No worker is told of what is over, however it came to be so. */
static void
only_a_dispatched_record_is_exposed(void **state)
{
	struct fixture *f = *state;

	follow_wait(f, 101);
	follow_wait(f, 102);
	(void)launch(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET state = 'completed' WHERE id = 102");
	expose_fails(f, ATT_1, 102, "refused");
	assert_string_equal(
	    "101 exposed armed, 102 admitted armed", follow_rows(f, 1));
}

/* T18: at the launch the record moves; an exposure by itself is none. */
static void
an_exposure_is_no_new_state(void **state)
{
	struct fixture *f = *state;
	const char *before, *token;

	follow_wait(f, 101);
	follow_wait(f, 102);
	follow_wait(f, 103);
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
	    TEST(an_exposure_is_of_the_present_routes),
	    TEST(only_a_dispatched_record_is_exposed),
	    T("T18", an_exposure_is_no_new_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
