/*
 * What joins a task's conversation while its worker runs, told as stories: it
 * is exposed before it is named, and named after a turn that ended well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/unit/attempt_stage.h"

static struct attempt *
attempt_of(struct stage *s)
{
	return LIST_FIRST(&s->d.attempts);
}

/* A turn that ended well, with EVENT waiting to be told. */
static struct stage *
stage_with(int64_t event)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	s->unexposed = event;
	stage_says(s, GOOD);
	return s;
}

static void
exposed(struct stage *s, int64_t event, bool by_you)
{
	struct msg m = {.type = MSG_EXPOSED};

	stage_expect(s, MSG_EXPOSE);
	assert_int_equal(event, s->asked->expose.event_id);
	assert_string_equal("", stage_told(s));
	m.exposed.by_you = by_you;
	m.exposed.pulled = !by_you;
	m.exposed.delivery = "exposed";
	stage_answer(s, &m);
}

static void
ends_well(struct stage *s)
{
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

static void
a_follow_up_is_exposed_and_then_named(void **state)
{
	struct stage *s = stage_with(102);

	exposed(s, 102, true);
	assert_non_null(strstr(stage_told(s), "event_id 102"));
	s->unexposed = 103;
	stage_says(s, GOOD);
	exposed(s, 103, true);
	assert_non_null(strstr(stage_told(s), "event_id 103"));
	s->unexposed = 0;
	stage_says(s, GOOD);
	ends_well(s);
}

/* The worker asked for the earliest itself: it was told already. */
static void
what_the_worker_pulled_is_not_named(void **state)
{
	struct stage *s = stage_with(102);

	s->unexposed = 103;
	exposed(s, 102, false);
	exposed(s, 103, true);
	s->unexposed = 0;
	assert_non_null(strstr(stage_told(s), "event_id 103"));
	stage_says(s, GOOD);
	ends_well(s);
}

static void
a_turn_that_ended_badly_is_followed_by_nothing(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	s->unexposed = 102;
	stage_says(s, BAD);
	assert_int_equal(0, s->joins);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* Who has gone is exposed nothing: it would count as seen. */
static void
nothing_is_exposed_to_a_worker_that_left(void **state)
{
	struct stage *s = stage_with(-1);
	struct msg m = {.type = MSG_JOINED};

	stage_expect(s, MSG_JOIN);
	m.joined.unexposed = 102;
	stage_close(&s->output);
	stage_turn(s);
	stage_answer(s, &m);
	ends_well(s);
}

/* An exit code of its own is a failure, as after any answer. */
static void
a_worker_that_fails_between_turns(void **state)
{
	struct stage *s = stage_with(-1);

	stage_expect(s, MSG_JOIN);
	msg_free(s->asked);
	s->asked = NULL;
	stage_exits(s, false, 3);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* Another configuration: what waits gets a task of its own. */
static void
a_stale_configuration_is_no_failure(void **state)
{
	struct stage *s = stage_with(-1);

	stage_expect(s, MSG_JOIN);
	stage_refuse(s, "stale_config");
	ends_well(s);
}

/* Nor is a route that went: asked for at either of the two. */
static void
a_route_that_went_is_no_failure(void **state)
{
	struct stage *s = stage_with(-1);

	stage_expect(s, MSG_JOIN);
	stage_refuse(s, "unauthorized");
	ends_well(s);

	s = stage_with(102);
	stage_expect(s, MSG_EXPOSE);
	stage_refuse(s, "unauthorized");
	assert_string_equal("", stage_told(s));
	ends_well(s);
}

static void
a_join_that_fails_is_a_failure(void **state)
{
	struct stage *s = stage_with(-1);

	stage_expect(s, MSG_JOIN);
	stage_refuse(s, "not_found");
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* Between turns there is no turn to cut: the tree is ended at once. */
static void
what_ends_an_attempt_ends_it_between_turns(void **state)
{
	static const struct {
		enum attempt_event event;
		const char *stop;
	} cases[] = {{EV_DEADLINE, "deadline"}, {EV_SHUTDOWN, "shutdown"},
	    {EV_SUPERSEDED, "lost"}, {EV_UNSAFE, "failed"}};
	size_t i;
	int exposing;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]) * 2; i++) {
		struct stage *s = stage_with(i % 2 == 0 ? -1 : 102);

		exposing = i % 2;
		stage_expect(s, exposing ? MSG_EXPOSE : MSG_JOIN);
		msg_free(s->asked);
		s->asked = NULL;
		attempt_event(attempt_of(s), cases[i / 2].event);
		stage_tree_is(s, "gone");
		stage_ends(s, cases[i / 2].stop, "");
	}
}

/* What comes meanwhile joins at once; one question at a time. */
static void
new_work_joins_beside_the_turn(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_JOINED};

	attempts_join(&s->d); /* no task is there yet */
	stage_running(s);
	assert_int_equal(0, s->joins);
	s->unexposed = -1;
	attempts_join(&s->d);
	attempts_join(&s->d);
	attempts_join(&s->d);
	stage_expect(s, MSG_JOIN);
	assert_int_equal(3, s->asked->join.generation);
	assert_int_equal(1, s->joins);
	m.joined.joined = 1;
	m.joined.unexposed = 102;
	stage_answer(s, &m);
	stage_expect(s, MSG_JOIN);
	s->unexposed = 0;
	stage_answer(s, &m);
	assert_int_equal(2, s->joins);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	ends_well(s);
}

/* An operator's redispatch ends the attempt wherever it is. */
static void
a_task_that_is_taken_away(void **state)
{
	struct stage *s = stage_new();

	attempt_event(attempt_of(s), EV_SUPERSEDED);
	stage_launched(s);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");

	s = stage_new();
	stage_running(s);
	stage_says(s, INIT);
	attempt_event(attempt_of(s), EV_SUPERSEDED);
	assert_non_null(strstr(stage_told(s), "interrupt"));
	attempt_event(attempt_of(s), EV_SHUTDOWN); /* decided already */
	stage_says(s, BAD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");
}

/* It is let go, and what it posted looked for. */
static void
nothing_is_adopted(struct stage *s)
{
	struct msg m = {.type = MSG_ADOPTABLE};

	assert_int_equal(0, attempts_count(&s->d));
	stage_expect(s, MSG_ADOPTABLE_NEXT);
	stage_answer(s, &m);
	stage_free(s);
}

static void
live_is(struct stage *s, int64_t after)
{
	struct msg m = {.type = MSG_LIVE};

	stage_expect(s, MSG_NEXT_LIVE);
	assert_int_equal(after, s->asked->next_live.after_task);
	m.live.found = after < 9;
	m.live.attempt = after < 9 ? attempt_of(s)->id : "";
	m.live.task_id = 9;
	stage_answer(s, &m);
}

/* What is held is looked for: a person may have settled it before. */
static void
is_held(struct stage *s)
{
	stage_tree_is(s, "held");
	stage_expect(s, MSG_TREE_HELD);
	stage_done(s);
}

/* The notice came while its tree was being ended: nobody tells it again. */
static void
settled_before_it_was_held(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_LIVE};

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_expect(s, MSG_END_TREE);
	attempt_event(attempt_of(s), EV_OVER);
	is_held(s);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &m);
	nothing_is_adopted(s);
}

/* Held, until a person settles it: then its place is free. */
static void
a_held_attempt_that_is_settled(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_LIVE};

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	is_held(s);
	live_is(s, 0);
	live_is(s, 9);
	assert_int_equal(1, attempts_held(&s->d));
	decisions_look(&s->d);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &m);
	nothing_is_adopted(s);
}

/* The ledger died while it was asked: that look goes on, then another. */
static void
looks_come_one_after_the_other(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_LIVE};

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	is_held(s);
	live_is(s, 0);
	stage_expect(s, MSG_NEXT_LIVE);
	decisions_look(&s->d);
	stage_turn(s);
	live_is(s, 9);
	assert_int_equal(1, attempts_held(&s->d));
	live_is(s, 0);
	live_is(s, 9);
	assert_int_equal(1, attempts_held(&s->d));
	assert_null(s->asked);
	decisions_look(&s->d);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &m);
	nothing_is_adopted(s);
}

/* A look that is refused is over: it keeps no later one from being had. */
static void
a_look_that_is_refused(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_LIVE};

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	is_held(s);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_refuse(s, "refused");
	decisions_look(&s->d);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &m);
	nothing_is_adopted(s);
}

/* What was decided while the ledger was away, is asked for. */
static void
a_task_taken_away_unheard(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_LIVE};

	stage_running(s);
	stage_says(s, INIT);
	m.live.found = true;
	m.live.attempt = attempt_of(s)->id;
	m.live.task_id = 9;
	m.live.superseded = true;
	decisions_look(&s->d);
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &m);
	stage_expect(s, MSG_NEXT_LIVE);
	assert_int_equal(9, s->asked->next_live.after_task);
	m.live.found = false;
	stage_answer(s, &m);
	stage_says(s, BAD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");
}

static void
run_until(struct stage *s, int64_t number)
{
	int64_t until = clock_monotonic_ms() + 5000;
	struct timeval tick = {0, 5000};

	while (s->still_running < number && clock_monotonic_ms() < until) {
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	assert_true(s->still_running >= number);
}

/* By number, from 1, over all turns of the attempt. */
static void
a_long_turn_is_told_of_again_and_again(void **state)
{
	struct stage *s = stage_new();
	int64_t told;

	s->d.role.config->limits[LIMIT_still_running] = 10;
	stage_running(s);
	stage_says(s, INIT);
	run_until(s, 2);
	s->unexposed = 102;
	stage_says(s, GOOD);
	exposed(s, 102, true);
	s->unexposed = 0;
	told = s->still_running;
	run_until(s, told + 1);
	stage_says(s, GOOD);
	ends_well(s);
}

/* limits.still_running: 0 disables (dispatch.md 22). */
static void
a_long_turn_that_nobody_is_to_be_told_of(void **state)
{
	struct stage *s = stage_new();

	s->d.role.config->limits[LIMIT_still_running] = 0;
	stage_running(s);
	stage_says(s, INIT);
	assert_null(attempt_of(s)->ticker);
	stage_says(s, GOOD);
	ends_well(s);
}

/* One that ticks when a reload disables it says nothing more than is told. */
static void
a_long_turn_whose_telling_is_disabled(void **state)
{
	struct stage *s = stage_new();
	int64_t told;

	s->d.role.config->limits[LIMIT_still_running] = 10;
	stage_running(s);
	stage_says(s, INIT);
	run_until(s, 1);
	s->d.role.config->limits[LIMIT_still_running] = 0;
	told = attempt_of(s)->still_running; /* perhaps not heard yet */
	while (event_pending(attempt_of(s)->ticker, EV_TIMEOUT, NULL))
		event_base_loop(s->base, EVLOOP_ONCE);
	stage_turn(s);
	assert_int_equal(told, attempt_of(s)->still_running);
	stage_says(s, GOOD);
	ends_well(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_follow_up_is_exposed_and_then_named),
	    cmocka_unit_test(what_the_worker_pulled_is_not_named),
	    cmocka_unit_test(a_turn_that_ended_badly_is_followed_by_nothing),
	    cmocka_unit_test(nothing_is_exposed_to_a_worker_that_left),
	    cmocka_unit_test(a_worker_that_fails_between_turns),
	    cmocka_unit_test(a_stale_configuration_is_no_failure),
	    cmocka_unit_test(a_route_that_went_is_no_failure),
	    cmocka_unit_test(a_join_that_fails_is_a_failure),
	    cmocka_unit_test(what_ends_an_attempt_ends_it_between_turns),
	    cmocka_unit_test(new_work_joins_beside_the_turn),
	    cmocka_unit_test(a_task_that_is_taken_away),
	    cmocka_unit_test(settled_before_it_was_held),
	    cmocka_unit_test(a_held_attempt_that_is_settled),
	    cmocka_unit_test(looks_come_one_after_the_other),
	    cmocka_unit_test(a_look_that_is_refused),
	    cmocka_unit_test(a_task_taken_away_unheard),
	    cmocka_unit_test(a_long_turn_is_told_of_again_and_again),
	    cmocka_unit_test(a_long_turn_that_nobody_is_to_be_told_of),
	    cmocka_unit_test(a_long_turn_whose_telling_is_disabled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
