/*
 * An attempt's start, told as stories: its launch, its mcpd and its worker, and
 * what becomes of it when one of them does not come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/unit/attempt_stage.h"

static void
a_launch_refused_leaves_nothing(void **state)
{
	struct stage *s = stage_new();

	stage_expect(s, MSG_LAUNCH);
	stage_refuse(s, "not_startable");
	assert_null(s->asked);
	assert_int_equal(1, s->attempts_gone);
	stage_free(s);
}

/* A record is in hand until it is launched, or is not. */
static void
a_launch_is_in_hand(void **state)
{
	struct stage *s = stage_new();

	stage_expect(s, MSG_LAUNCH);
	stage_turn(s);
	assert_int_equal(101, s->in_hand);
	stage_launched(s);
	assert_int_equal(0, s->in_hand);
	stage_mcpd_up(s);
	stage_expect(s, MSG_SPAWN_WORKER);
	stage_refuse(s, "not_started");
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed");

	s = stage_new();
	stage_expect(s, MSG_LAUNCH);
	stage_refuse(s, "not_startable");
	assert_int_equal(0, s->in_hand);
	stage_free(s);
}

/* No process ever was: retried once, unless a retry cannot help. */
static void
a_worker_that_does_not_start(void **state)
{
	static const char *const cases[][2] = {{"not_started", " spawn_failed"},
	    {"unusable", " spawn_failed no_retry"},
	    {"stale_config", " spawn_failed uncharged"}};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct stage *s = stage_new();

		stage_launched(s);
		stage_mcpd_up(s);
		stage_expect(s, MSG_SPAWN_WORKER);
		stage_refuse(s, cases[i][0]);
		stage_tree_is(s, "never_forked");
		stage_ends(s, "failed", cases[i][1]);
	}
}

/*
 * A start goes by the configuration of its launch: asked for by a newer one,
 * it would use a route or a launcher that the ledger never heard of.
 */
static void
a_reload_between_launch_and_start(void **state)
{
	struct stage *s = stage_new();

	stage_launched(s);
	s->d.role.config->generation = 4;
	stage_mcpd_up(s);
	stage_expect(s, MSG_SPAWN_WORKER);
	assert_int_equal(3, s->asked->spawn_worker.generation);
	stage_refuse(s, "stale_config");
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed uncharged");
}

/* A refusal whose process existed all the same is never a failed spawn. */
static void
a_refused_start_with_a_process(void **state)
{
	struct stage *s = stage_new();

	stage_launched(s);
	stage_mcpd_up(s);
	stage_expect(s, MSG_SPAWN_WORKER);
	stage_refuse(s, "unusable");
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* mcpd dies before it serves: a new token, another mcpd, and on. */
static void
an_mcpd_that_dies_at_its_start(void **state)
{
	struct stage *s = stage_new();

	stage_launched(s);
	stage_expect(s, MSG_SPAWN_MCPD);
	stage_refuse(s, "transient");
	stage_rekeyed(s);
	stage_mcpd_up(s);
	stage_worker_up(s);
	stage_marked(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

static void
an_mcpd_that_never_starts(void **state)
{
	struct stage *s = stage_new();
	int64_t began = clock_monotonic_ms();
	int i;

	stage_launched(s);
	for (i = 1; i < ATTEMPT_KEYINGS_MOST; i++) {
		stage_expect(s, MSG_SPAWN_MCPD);
		stage_refuse(s, "transient");
		stage_rekeyed(s);
	}
	stage_expect(s, MSG_SPAWN_MCPD);
	stage_refuse(s, "transient");
	stage_expect(s, MSG_END_TREE);
	/* A fault of a few seconds would have been over by now. */
	assert_true(clock_monotonic_ms() - began >= 5000);
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed");
}

/* mcpd dies beside a running turn: re-keyed, and the turn goes on. */
static void
an_mcpd_that_dies_in_a_turn(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_mcpd_dies(s);
	stage_rekeyed(s);
	stage_mcpd_up(s);
	stage_mcpd_dies(s);
	stage_rekeyed(s);
	stage_expect(s, MSG_SPAWN_MCPD);
	stage_refuse(s, "transient"); /* and again by itself */
	stage_rekeyed(s);
	stage_mcpd_up(s);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

/* A task that gets no mcpd any more: what waits for one is told. */
static void
an_mcpd_that_dies_too_often(void **state)
{
	struct stage *s = stage_new();
	int i;

	stage_running(s);
	stage_says(s, INIT);
	for (i = 1; i < ATTEMPT_KEYINGS_MOST; i++) {
		stage_mcpd_dies(s);
		stage_rekeyed(s);
		stage_mcpd_up(s);
	}
	stage_mcpd_dies(s);
	stage_expect(s, MSG_STOP_SERVING);
	stage_done(s);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");

	s = stage_new();
	stage_running(s);
	stage_mcpd_dies(s);
	stage_expect(s, MSG_REKEY);
	stage_refuse(s, "refused");
	stage_expect(s, MSG_STOP_SERVING);
	stage_done(s);
	stage_exits(s, true, 9);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_launch_refused_leaves_nothing),
	    cmocka_unit_test(a_launch_is_in_hand),
	    cmocka_unit_test(a_worker_that_does_not_start),
	    cmocka_unit_test(a_reload_between_launch_and_start),
	    cmocka_unit_test(a_refused_start_with_a_process),
	    cmocka_unit_test(an_mcpd_that_dies_at_its_start),
	    cmocka_unit_test(an_mcpd_that_never_starts),
	    cmocka_unit_test(an_mcpd_that_dies_in_a_turn),
	    cmocka_unit_test(an_mcpd_that_dies_too_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
