/* Tokens again, and an attempt until its end (ledger.md 3.2.1a, 3.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/task.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

/* ---- tokens again ------------------------------------------------------ */

static void
a_repeated_launch_rekeys(void **state)
{
	struct fixture *f = *state;
	const char *first, *second;

	admit_new(f, 101, "k");
	first = launch(f, 101, ATT_1);
	second = launch(f, 101, ATT_1);
	assert_string_not_equal("", second);
	assert_string_not_equal(first, second);
	assert_failed(get_dispatch(f, first, 0, ATT_1), "task_token_refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, second, 0, ATT_1)->type);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM tasks"));
	assert_int_equal(1, sql_int(f, "SELECT rekeys FROM tasks"));
	/* Also under a newer configuration: it is launched already. */
	f->config->generation = 2;
	fixture_config_changed(f);
	assert_string_not_equal("", launch(f, 101, ATT_1));
}

static void
a_launch_is_not_repeated_once_it_runs(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	admit_new(f, 102, "l");
	(void)launch(f, 101, ATT_1);
	launch_fails(f, 102, ATT_1, "refused"); /* another's id */
	run_attempt(f, ATT_1, 4242);
	launch_fails(f, 101, ATT_1, "refused");
	(void)end_attempt(f, ATT_1, "finished");
	launch_fails(f, 101, ATT_1, "refused");
}

/* A group that it does not lead is another's: nobody may be sent there. */
static void
a_group_that_is_not_its_own_is_refused(void **state)
{
	struct msg m = {.type = MSG_RUNNING};
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	m.running = (struct msg_running){.attempt = ATT_1,
	    .pid = 4242,
	    .pgid = 4243,
	    .started_ticks = 4711,
	    .session_id = "s"};
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_string_equal(
	    "launching", sql_get(f, "SELECT state FROM attempts"));
	run_attempt(f, ATT_1, 4242);
	assert_string_equal(
	    "running", sql_get(f, "SELECT state FROM attempts"));
}

static struct msg *
rekey(struct fixture *f, const char *attempt)
{
	struct msg m = {.type = MSG_REKEY};

	m.rekey.attempt = attempt;
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

static void
the_last_rekey_wins(void **state)
{
	struct fixture *f = *state;
	const char *first, *second, *third;

	admit_new(f, 101, "k");
	first = launch(f, 101, ATT_1);
	run_attempt(f, ATT_1, 4242);
	second = token_read(&rekey(f, ATT_1)->rekeyed.token);
	third = token_read(&rekey(f, ATT_1)->rekeyed.token);
	assert_failed(get_dispatch(f, first, 0, ATT_1), "task_token_refused");
	assert_failed(get_dispatch(f, second, 0, ATT_1), "task_token_refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, third, 0, ATT_1)->type);
	assert_int_equal(2, sql_int(f, "SELECT rekeys FROM tasks"));
}

static void
only_a_live_task_is_rekeyed(void **state)
{
	struct fixture *f = *state;

	assert_failed(rekey(f, ATT_1), "not_found");
	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_failed(rekey(f, ATT_1), "refused");
	(void)end_attempt(f, ATT_1, "finished");
	assert_failed(rekey(f, ATT_1), "refused");
}

static struct msg *
take_over(struct fixture *f, const char *attempt)
{
	struct msg m = {.type = MSG_TAKE_OVER};

	m.take_over.attempt = attempt;
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

/* From then on nobody but the operator gets another token. */
static void
a_task_taken_over_is_not_rekeyed(void **state)
{
	struct fixture *f = *state;
	const char *first, *second, *third;
	struct msg *taken;

	admit_new(f, 101, "k");
	first = launch(f, 101, ATT_1);
	run_attempt(f, ATT_1, 4242);
	assert_string_equal("", sql_get(f, "SELECT taken_at FROM tasks"));
	taken = take_over(f, ATT_1);
	assert_int_equal(MSG_TAKEN_OVER, taken->type);
	assert_int_equal(1, taken->taken_over.task_id);
	second = token_read(&taken->taken_over.token);
	assert_failed(get_dispatch(f, first, 0, ATT_1), "task_token_refused");
	assert_failed(rekey(f, ATT_1), "refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, second, 0, ATT_1)->type);
	third = token_read(&take_over(f, ATT_1)->taken_over.token);
	assert_failed(get_dispatch(f, second, 0, ATT_1), "task_token_refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, third, 0, ATT_1)->type);
	assert_int_equal(2, sql_int(f, "SELECT rekeys FROM tasks"));
	sql_refused(f, "UPDATE tasks SET taken_at = NULL");
	sql_refused(f, "UPDATE tasks SET taken_at = 'later'");
}

/* Without a worker there is nothing to take over, and after its end. */
static void
only_a_running_attempt_is_taken_over(void **state)
{
	struct fixture *f = *state;

	assert_failed(take_over(f, ATT_1), "not_found");
	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	assert_failed(take_over(f, ATT_1), "refused");
	assert_int_equal(MSG_REKEYED, rekey(f, ATT_1)->type);
	run_attempt(f, ATT_1, 4242);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_failed(take_over(f, ATT_1), "refused");
	(void)end_attempt(f, ATT_1, "finished");
	assert_failed(take_over(f, ATT_1), "refused");
}

/* ---- an attempt -------------------------------------------------------- */

static void
running_is_said_once(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RUNNING};

	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	fixture_forget(f);
	m.running = (struct msg_running){ATT_1, 4242, 4242, 77, "session"};
	assert_true(
	    fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed);
	assert_string_equal("{\"type\":\"dispatch\",\"task_id\":1,"
			    "\"attempt_id\":\"" ATT_1 "\","
			    "\"state\":\"running\"}",
	    f->lines[0]);
	assert_false(
	    fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed);
	assert_int_equal(1, f->line_count);
	m.running.pid = 4243;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	(void)end_attempt(f, ATT_1, "finished");
	m.running.pid = 4242;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	m.running.attempt = ATT_2;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
}

static void
an_identity_is_what_was_recorded(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_IDENTITY}, *is;

	m.identity.attempt = ATT_1;
	is = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_IDENTITY_IS);
	assert_false(is->identity_is.found);
	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	is = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_IDENTITY_IS);
	assert_true(is->identity_is.found);
	assert_int_equal(0, is->identity_is.pid);
	run_attempt(f, ATT_1, 4242);
	is = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_IDENTITY_IS);
	assert_string_equal("running", is->identity_is.state);
	assert_int_equal(4242, is->identity_is.pid);
	assert_int_equal(4711, is->identity_is.started_ticks);
	assert_string_equal(f->l.boot_id, is->identity_is.boot_id);
	assert_string_equal(f->l.run_id, is->identity_is.run_id);
}

static void
refusals_are_numbered(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REFUSAL}, end;

	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	m.refusal = (struct msg_refusal){ATT_1, 1};
	assert_true(
	    fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed);
	assert_false(
	    fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed);
	m.refusal.number = 2;
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE);
	end = end_of(ATT_1, "finished");
	end.end.refusals = 3;
	(void)fixture_get(f, &end, ROLE_DISPATCHER, "", MSG_ENDED);
	assert_int_equal(5, sql_int(f, "SELECT refusals FROM attempts"));
	m.refusal.number = 9;
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE);
	assert_int_equal(5, sql_int(f, "SELECT refusals FROM attempts"));
}

static void
progress_is_stamped_while_it_lives(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_PROGRESS};

	m.progress.attempt = ATT_1;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	fixture_wait(5000);
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE);
	assert_string_equal("2026-01-05T09:00:05.000000000Z",
	    sql_get(f, "SELECT progress_at FROM attempts"));
	(void)end_attempt(f, ATT_1, "finished");
	fixture_wait(5000);
	assert_false(
	    fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed);
	assert_string_equal("2026-01-05T09:00:05.000000000Z",
	    sql_get(f, "SELECT progress_at FROM attempts"));
}

static void
live_attempts_come_in_launch_order(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_NEXT_LIVE}, *live;

	admit_new(f, 101, "k");
	admit_new(f, 102, "l");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id ="
	    " 11 WHERE id = 102");
	assert_string_not_equal("", launch(f, 101, ATT_2));
	assert_string_not_equal("", launch(f, 102, ATT_1));
	live = fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_LIVE);
	assert_string_equal(ATT_2, live->live.attempt);
	assert_int_equal(PROJECT, live->live.project_id);
	m.next_live.after_task = live->live.task_id;
	live = fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_LIVE);
	assert_string_equal(ATT_1, live->live.attempt);
	assert_int_equal(OTHER_PROJECT, live->live.project_id);
	(void)end_attempt(f, ATT_1, "finished");
	live = fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_LIVE);
	assert_false(live->live.found);
}

/* T7, T8: an unknown task is an error; the first stamp stands. */
static void
superseding_gives_back_what_nobody_saw(void **state)
{
	struct fixture *f = *state;
	const char *token;

	assert_int_equal(0, task_supersede(&f->l, 404));
	sql_reset_all(&f->l);
	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	(void)record_event(f, 103);
	(void)admit_event(f, 103, "k");
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 103, ATT_1);
	assert_string_equal("dispatched", state_of(f, 102));
	clock_stamp(f->l.now);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_string_equal("dispatched", state_of(f, 101)); /* exposed */
	assert_string_equal("admitted", state_of(f, 102));
	assert_string_equal("dispatched", state_of(f, 103)); /* pulled */
	fixture_wait(1000);
	clock_stamp(f->l.now);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_string_equal("2026-01-05T09:00:00.000000000Z",
	    sql_get(f, "SELECT superseded_at FROM tasks"));
	assert_int_equal(3,
	    sql_int(f,
		"SELECT COUNT(*) FROM task_events"
		" WHERE retired_at = '2026-01-05T09:00:00.000000000Z'"));
}

/* Held is published and nothing else: the attempt stays what it was. */
static void
a_held_tree_is_a_line(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_TREE_HELD};

	(void)record_event(f, 1);
	(void)admit_event(f, 1, "recording:1");
	(void)launch(f, 1, ATT_1);
	run_attempt(f, ATT_1, 4242);
	fixture_forget(f);
	m.tree_held.attempt = ATT_1;
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE);
	assert_int_equal(1, f->line_count);
	assert_string_equal("{\"type\":\"dispatch\",\"task_id\":1,"
			    "\"attempt_id\":\"" ATT_1 "\","
			    "\"state\":\"running\",\"stop_reason\":\"held\"}",
	    f->lines[0]);
	assert_string_equal("running",
	    sql_get(f, "SELECT state FROM attempts WHERE id = '%s'", ATT_1));
	m.tree_held.attempt = ATT_2;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_held_tree_is_a_line),
	    TEST(a_repeated_launch_rekeys),
	    TEST(a_launch_is_not_repeated_once_it_runs),
	    TEST(a_group_that_is_not_its_own_is_refused),
	    TEST(the_last_rekey_wins),
	    TEST(only_a_live_task_is_rekeyed),
	    TEST(a_task_taken_over_is_not_rekeyed),
	    TEST(only_a_running_attempt_is_taken_over),
	    TEST(running_is_said_once),
	    TEST(an_identity_is_what_was_recorded),
	    TEST(refusals_are_numbered),
	    TEST(progress_is_stamped_while_it_lives),
	    TEST(live_attempts_come_in_launch_order),
	    T("T7 T8", superseding_gives_back_what_nobody_saw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
