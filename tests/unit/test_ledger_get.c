/* Whom a token serves, and what it is handed (ledger.md 3.4.1, 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/trap.h"
#include "tests/unit/worker_scene.h"

/* ---- binding ----------------------------------------------------------- */

static void
a_token_binds_to_its_own_attempt(void **state)
{
	struct fixture *f = *state;
	struct msg *bound;
	char other[TOKEN_LEN + 1];

	worker_launch(f);
	bound = worker_bind(f, worker_token, ATT_1);
	assert_int_equal(MSG_BOUND, bound->type);
	assert_int_equal(1, bound->bound.task_id);
	assert_int_equal(AGENT, bound->bound.agent_id);
	assert_failed(
	    worker_bind(f, worker_token, ATT_2), "task_token_refused");
	memset(other, 'A', TOKEN_LEN);
	other[TOKEN_LEN] = '\0';
	assert_failed(worker_bind(f, other, ATT_1), "task_token_refused");
}

/* It comes without an attempt, and has nothing before its token gave it one. */
static void
a_guest_is_led_to_its_attempt_by_its_token(void **state)
{
	struct fixture *f = *state;
	struct msg *bound;
	char other[TOKEN_LEN + 1];

	worker_launch(f);
	assert_failed(
	    get_dispatch(f, worker_token, 0, ""), "task_token_refused");
	assert_failed(
	    ack_dispatch(f, worker_token, 101, 0, ""), "task_token_refused");
	memset(other, 'A', TOKEN_LEN);
	other[TOKEN_LEN] = '\0';
	assert_failed(worker_bind(f, other, ""), "task_token_refused");
	bound = worker_bind(f, worker_token, "");
	assert_int_equal(MSG_BOUND, bound->type);
	assert_string_equal(ATT_1, bound->bound.attempt);
	assert_int_equal(1, bound->bound.task_id);
	(void)end_attempt(f, ATT_1, "finished");
	assert_failed(worker_bind(f, worker_token, ""), "task_token_refused");
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

	worker_launch(f);
	assert_int_equal(MSG_DONE, check_token(f, worker_token, ATT_1)->type);
	assert_failed(
	    check_token(f, worker_token, ATT_2), "task_token_refused");
	sql_put(f, "UPDATE tasks SET token_sha256 = 'another'");
	assert_failed(
	    check_token(f, worker_token, ATT_1), "task_token_refused");
}

/* Another task's token over this task's link is refused, not answered. */
static void
a_link_answers_for_its_own_task_only(void **state)
{
	struct fixture *f = *state;
	const char *second;

	worker_launch(f);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id ="
	    " 11 WHERE id = 102");
	second = launch(f, 102, ATT_2);
	assert_failed(get_dispatch(f, second, 0, ATT_1), "task_token_refused");
	assert_failed(
	    get_dispatch(f, worker_token, 0, ATT_2), "task_token_refused");
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, second, 0, ATT_2)->type);
	/* An event of another task and one that is none read the same. */
	assert_failed(worker_get(f, 102), "not_on_task");
	assert_failed(worker_get(f, 404), "not_on_task");
	assert_failed(
	    ack_dispatch(f, worker_token, 102, 0, ATT_1), "not_on_task");
	assert_failed(complete_dispatch(f, worker_token, 404, "failed", ATT_1),
	    "not_on_task");
}

/* ---- get --------------------------------------------------------------- */

static void
an_instruction_is_what_was_decided(void **state)
{
	struct fixture *f = *state;
	struct msg_instruction *i;

	worker_launch(f);
	i = &worker_get(f, 0)->instruction;
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

	worker_launch(f);
	fixture_forget(f);
	(void)worker_get(f, 0);
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

	worker_launch(f);
	(void)worker_get(f, 0);
	before = worker_rows(f);
	fixture_wait(1000);
	fixture_forget(f);
	assert_true(worker_get(f, 0)->instruction.found);
	assert_true(worker_get(f, 101)->instruction.found);
	assert_string_equal(before, worker_rows(f));
	assert_int_equal(0, f->line_count);
}

static void
get_exposes_what_no_launch_did(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	join_event(f, 102);
	assert_string_equal(
	    "exposed", worker_get(f, 102)->instruction.delivery);
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

	worker_launch(f);
	join_event(f, 102);
	assert_int_equal(101, worker_get(f, 0)->instruction.event_id);
	assert_int_equal(101, worker_get(f, 0)->instruction.event_id);
	(void)worker_ack(f, 0);
	assert_int_equal(102, worker_get(f, 0)->instruction.event_id);
	(void)ack_dispatch(f, worker_token, 102, 0, ATT_1);
	assert_false(worker_get(f, 0)->instruction.found);
	/* By its id it is still served. */
	assert_string_equal(
	    "delivered", worker_get(f, 101)->instruction.delivery);
	(void)worker_complete(f, "succeeded");
	assert_string_equal(
	    "completed", worker_get(f, 101)->instruction.delivery);
}

/* One event that left the path does not hide the rest. */
static void
what_is_gone_is_skipped_and_refused(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	join_event(f, 102);
	sql_put(f,
	    "UPDATE events SET content_dropped = 1, snapshot = NULL"
	    " WHERE id = 101");
	assert_failed(worker_get(f, 101), "not_dispatchable");
	assert_int_equal(102, worker_get(f, 0)->instruction.event_id);
}

/* Finished work is not handed out for a first time, by neither form. */
static void
finished_work_never_pulled_is_not_served(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_failed(worker_get(f, 101), "not_dispatchable");
	assert_false(worker_get(f, 0)->instruction.found);
}

static void
finished_work_that_was_pulled_is_served(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	(void)worker_get(f, 0);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_true(worker_get(f, 101)->instruction.found);
	assert_true(worker_get(f, 0)->instruction.found);
}

static void
under_a_hold_nothing_new_is_handed_over(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	join_event(f, 102);
	(void)worker_get(f, 101);
	worker_hold(f);
	assert_failed(worker_get(f, 102), "held");
	assert_true(worker_get(f, 101)->instruction.found); /* a repeat */
	(void)worker_ack(f, 0);
	assert_failed(worker_get(f, 0), "held"); /* 102 is the earliest now */
	assert_int_equal(MSG_REPORT_IS, worker_complete(f, "succeeded")->type);
	sql_ok(f, "DELETE FROM hold_marker");
	assert_true(worker_get(f, 0)->instruction.found);
}

static void
a_launch_exposure_unpulled_is_held_too(void **state)
{
	struct fixture *f = *state;

	worker_launch(f);
	worker_hold(f);
	assert_failed(worker_get(f, 0), "held");
	assert_string_equal(
	    "0", sql_get(f, "SELECT pulled_at IS NOT NULL FROM task_events"));
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

	worker_launch(f);
	join_event(f, 102);
	assert_failed(thread_of(f, 101, ATT_1), "not_exposed");
	(void)worker_get(f, 101);
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
	    TEST(a_thread_is_read_for_pulled_events_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
