/*
 * An attempt's life, told as stories: what the dispatcher asks of ledger and
 * supervisor, in which order, and how the attempt ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/unit/attempt_stage.h"

static void
a_turn_that_ends_well(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

/* Clean answer, then a code of its own: failed. Ended by us: finished. */
static void
an_exit_code_after_the_answer(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 3);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");

	s = stage_new();
	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, true, 9);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

/* One that does not go when told is ended with its tree. */
static void
a_worker_that_lingers(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

static void
a_turn_that_ends_badly(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, BAD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* Gone in the middle: its own code is a failure, all else a loss. */
static void
a_worker_that_vanishes(void **state)
{
	static const struct {
		bool signaled;
		int code;
		const char *stop;
	} cases[] = {
	    {false, 3, "failed"}, {true, 9, "lost"}, {false, 0, "lost"}};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct stage *s = stage_new();

		stage_running(s);
		stage_says(s, INIT);
		stage_exits(s, cases[i].signaled, cases[i].code);
		stage_tree_is(s, "gone");
		stage_ends(s, cases[i].stop, "");
	}
}

/* A last answer that was still in the pipe counts. */
static void
a_late_answer_counts(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_WORKER_EXITED};

	stage_running(s);
	stage_says(s, INIT);
	m.worker_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	peer_notice(s->at_supervisor, &m);
	stage_turn(s);
	stage_says(s, GOOD);
	stage_close(&s->output);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

/* Answers after the answer are no reason to wait for it any longer. */
static void
a_worker_that_answers_without_end(void **state)
{
	int64_t until = clock_monotonic_ms() + 2000;
	struct stage *s = stage_new();
	struct timeval tick = {0, 5000};

	stage_running(s);
	stage_says(s, INIT);
	while (s->asked == NULL && clock_monotonic_ms() < until) {
		stage_says(s, GOOD);
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	assert_non_null(s->asked);
	stage_tree_is(s, "gone");
	stage_ends(s, "finished", "");
}

/* Lines that are logged, of all that FLOOD says at once, 1000 times. */
static int
lines_logged(struct stage *s, const char *flood)
{
	int kept = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	int i, count = 0;
	char c;

	assert_int_equal(STDERR_FILENO, dup2(log, STDERR_FILENO));
	for (i = 0; i < 1000; i++)
		stage_says(s, flood);
	assert_int_equal(STDERR_FILENO, dup2(kept, STDERR_FILENO));
	close(kept);
	assert_int_equal(0, lseek(log, 0, SEEK_SET));
	while (read(log, &c, 1) == 1)
		count += c == '\n';
	close(log);
	return count;
}

/* A worker's lines are not the log's, however many there are. */
static void
a_worker_that_complains_without_end(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	assert_int_equal(1, lines_logged(s, BAD));
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");

	s = stage_new();
	stage_running(s);
	assert_int_equal(1, lines_logged(s, BAD_INIT));
	assert_int_equal(1, s->drops);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* Nothing behind it is read: the session is over, though the pipe is open. */
static void
a_line_too_long_is_the_end(void **state)
{
	size_t len = STREAM_LINE_MOST + 1;
	struct stage *s = stage_new();
	char *line = xmalloc(len);

	stage_running(s);
	stage_says(s, INIT);
	memset(line, 'x', len);
	stage_floods(s, line, len);
	free(line);
	stage_floods(s, "\n" GOOD "\n", sizeof("\n" GOOD "\n") - 1);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");
}

/* ---- refusals ------------------------------------------------------------ */

/* A result that lists COUNT calls without an id, each of them refused. */
static void
says_refused(struct stage *s, size_t count)
{
	static const char before[] = "{\"type\":\"result\",\"subtype\":"
				     "\"success\",\"permission_denials\":[{}";
	size_t len = sizeof(before) - 1 + 3 * (count - 1) + 3;
	char *line = xmalloc(len + 1), *at = line;

	at += snprintf(at, sizeof(before), "%s", before);
	while (--count > 0)
		at += snprintf(at, 4, ",{}");
	(void)snprintf(at, 4, "]}\n");
	stage_floods(s, line, len);
	free(line);
}

/* The newest count says it all: a flood of them is not one of requests. */
static void
many_refusals_are_few_requests(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_says(
	    s, "{\"type\":\"system\",\"subtype\":\"permission_denied\"}");
	assert_int_equal(1, s->refusals_noted);
	says_refused(s, 100000);
	assert_int_equal(100001, s->refusals_noted);
	assert_in_range(s->refusal_asks, 2, 5);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_expect(s, MSG_END);
	assert_int_equal(0, s->asked->end.refusals);
	stage_ends(s, "finished", "");
}

/* What the ledger did not write down then, it does at the end; once. */
static void
refusals_not_noted_are_settled(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	says_refused(s, 2);
	s->refuses_to_note = true;
	says_refused(s, 3);
	assert_int_equal(2, s->refusals_noted);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_expect(s, MSG_END);
	assert_int_equal(3, s->asked->end.refusals);
	stage_ends(s, "finished", "");

	s = stage_new();
	stage_running(s);
	stage_says(s, INIT);
	s->refuses_to_note = true;
	says_refused(s, 2);
	s->refuses_to_note = false;
	says_refused(s, 3);
	assert_int_equal(5, s->refusals_noted);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_expect(s, MSG_END);
	assert_int_equal(0, s->asked->end.refusals);
	stage_ends(s, "finished", "");
}

/* Never verified: failed, although its end alone would be a loss. */
static void
a_session_never_verified(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_exits(s, true, 9);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

static void
another_session_than_asked_for(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, BAD_INIT);
	stage_expect(s, MSG_END_TREE);
	assert_int_equal(0, s->asked->end_tree.grace_ms);
	stage_tree_is(s, "gone");
	stage_ends(s, "failed", "");
}

/* The deadline interrupts the turn, waits, and ends the tree. */
static void
a_deadline_in_a_turn(void **state)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_DEADLINE);
	assert_non_null(strstr(stage_told(s), "interrupt"));
	stage_tree_is(s, "gone"); /* after the grace */
	stage_ends(s, "deadline", "");

	s = stage_new();
	stage_running(s);
	stage_says(s, INIT);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_DEADLINE);
	stage_says(s, BAD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "deadline", "");
}

static void
the_deadline_is_a_timer(void **state)
{
	struct stage *s = stage_new();

	s->d.role.config->deadline_ms = 1;
	stage_launched(s);
	stage_expect(s, MSG_SPAWN_MCPD);
	msg_free(s->asked);
	s->asked = NULL;
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed");
}

/* An orderly stop at every place of the way. */
static void
a_stop_at_each_step(void **state)
{
	struct stage *s = stage_new();

	attempts_shutdown(&s->d);
	stage_launched(s);
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed uncharged");

	s = stage_new();
	stage_launched(s);
	stage_mcpd_up(s);
	stage_worker_up(s);
	stage_expect(s, MSG_RUNNING);
	attempts_shutdown(&s->d);
	msg_free(s->asked);
	s->asked = NULL;
	stage_tree_is(s, "gone");
	stage_ends(s, "shutdown", "");

	s = stage_new();
	stage_running(s);
	stage_says(s, INIT);
	attempts_shutdown(&s->d);
	assert_non_null(strstr(stage_told(s), "interrupt"));
	stage_says(s, BAD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "gone");
	stage_ends(s, "shutdown", "");
}

/* Nobody can prove it gone: held, counted, never settled. */
static void
a_tree_that_cannot_be_proved_gone(void **state)
{
	struct stage *s = stage_new();
	struct msg live = {.type = MSG_LIVE};
	struct attempt *a;

	stage_running(s);
	stage_says(s, INIT);
	stage_says(s, GOOD);
	stage_exits(s, false, 0);
	stage_tree_is(s, "held");
	stage_expect(s, MSG_TREE_HELD);
	stage_done(s);
	a = LIST_FIRST(&s->d.attempts);
	live.live.found = true;
	live.live.attempt = a->id;
	live.live.task_id = 9;
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &live);
	live.live.found = false;
	stage_expect(s, MSG_NEXT_LIVE);
	stage_answer(s, &live);
	assert_null(s->asked);
	assert_int_equal(1, attempts_held(&s->d));
	assert_int_equal(1, attempts_count(&s->d));
	attempts_shutdown(&s->d);
	attempt_event(a, EV_DEADLINE);
	stage_turn(s);
	assert_null(s->asked);
	attempt_free(a);
	stage_free(s);
}

/* What an earlier dispatcher left: ended first, then settled as lost. */
/* 33 s: a quarter for the settlement, before it 5 s for trees. */
static void
a_stop_has_so_much_grace(void **state)
{
	struct stage *s = stage_new();
	int64_t *limits = s->d.role.config->limits, before;

	limits[LIMIT_cancel_grace] = 300000;
	limits[LIMIT_close_grace] = 5000;
	assert_int_equal(300000, dispatcher_grace(&s->d, LIMIT_cancel_grace));
	before = clock_monotonic_ms();
	dispatcher_stop_by(&s->d, 33000);
	assert_in_range(s->d.kill_at - before, 24750, 25750);
	assert_int_equal(5000, s->d.kill_at - s->d.cut_until);
	assert_int_equal(5000, dispatcher_grace(&s->d, LIMIT_close_grace));
	assert_in_range(
	    dispatcher_grace(&s->d, LIMIT_cancel_grace), 18000, 19750);
	limits[LIMIT_cancel_grace] = 50;
	assert_int_equal(50, dispatcher_grace(&s->d, LIMIT_cancel_grace));
	limits[LIMIT_close_grace] = 60000;
	dispatcher_stop_by(&s->d, 4); /* no time, but not for ever */
	limits[LIMIT_cancel_grace] = 300000;
	assert_in_range(dispatcher_grace(&s->d, LIMIT_cancel_grace), 1, 2);
	stage_expect(s, MSG_LAUNCH);
	stage_refuse(s, "not_startable");
	stage_free(s);
}

/* What was given a minute before the stop has less than a second in it. */
static void
a_stop_hurries_what_ends(void **state)
{
	struct stage *s = stage_new();
	struct attempt *a;

	s->d.role.config->limits[LIMIT_cancel_grace] = 60000;
	s->d.role.config->limits[LIMIT_close_grace] = 60000;
	stage_running(s);
	stage_says(s, INIT);
	a = LIST_FIRST(&s->d.attempts);
	attempt_event(a, EV_SUPERSEDED);
	assert_int_equal(AT_CUTTING, a->state);
	dispatcher_stop_by(&s->d, 100);
	attempt_event(a, EV_SHUTDOWN);
	stage_expect(s, MSG_END_TREE);
	assert_in_range(s->asked->end_tree.grace_ms, 1, 75);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");

	s = stage_new();
	s->d.role.config->limits[LIMIT_close_grace] = 60000;
	attempt_event(LIST_FIRST(&s->d.attempts), EV_SUPERSEDED);
	stage_launched(s);
	stage_expect(s, MSG_END_TREE);
	assert_int_equal(60000, s->asked->end_tree.grace_ms);
	msg_free(s->asked);
	s->asked = NULL;
	dispatcher_stop_by(&s->d, 100);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_SHUTDOWN);
	stage_expect(s, MSG_END_TREE);
	assert_in_range(s->asked->end_tree.grace_ms, 1, 75);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");
}

static void
recovery_ends_and_settles(void **state)
{
	struct stage *s = stage_new();
	struct msg_live live = {.found = true,
	    .attempt = "att_000000000000000000000000",
	    .task_id = 5};

	stage_expect(s, MSG_LAUNCH);
	stage_refuse(s, "not_startable");
	attempt_recover(&s->d, &live);
	stage_tree_is(s, "gone");
	stage_ends(s, "lost", "");

	s = stage_new();
	stage_expect(s, MSG_LAUNCH);
	stage_refuse(s, "not_startable");
	attempt_recover(&s->d, &live);
	stage_tree_is(s, "never_forked");
	stage_ends(s, "failed", " spawn_failed");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_turn_that_ends_well),
	    cmocka_unit_test(an_exit_code_after_the_answer),
	    cmocka_unit_test(a_worker_that_lingers),
	    cmocka_unit_test(a_turn_that_ends_badly),
	    cmocka_unit_test(a_worker_that_vanishes),
	    cmocka_unit_test(a_late_answer_counts),
	    cmocka_unit_test(a_worker_that_answers_without_end),
	    cmocka_unit_test(a_worker_that_complains_without_end),
	    cmocka_unit_test(a_line_too_long_is_the_end),
	    cmocka_unit_test(many_refusals_are_few_requests),
	    cmocka_unit_test(refusals_not_noted_are_settled),
	    cmocka_unit_test(a_session_never_verified),
	    cmocka_unit_test(another_session_than_asked_for),
	    cmocka_unit_test(a_deadline_in_a_turn),
	    cmocka_unit_test(the_deadline_is_a_timer),
	    cmocka_unit_test(a_stop_at_each_step),
	    cmocka_unit_test(a_tree_that_cannot_be_proved_gone),
	    cmocka_unit_test(a_stop_has_so_much_grace),
	    cmocka_unit_test(a_stop_hurries_what_ends),
	    cmocka_unit_test(recovery_ends_and_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
