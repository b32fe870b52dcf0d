/*
 * When the outbox does what (operator.md 1.11): after a request that may or
 * may not have landed the next would meet the same Basecamp.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/unit/outbox_stage.h"

#define CREATED "{\"id\":1}"
#define TICK_MS 1000 /* of 1.11 */

/* Started, with a token, and nothing to do. */
static void
begin_idle(void)
{
	stage_open();
	stage.due = 1;
	stage_configure();
	stage_mint("token");
	stage_until(&stage.post.count, 1);
	stage_answer(&stage.post, 201, CREATED, 0);
	stage_until(&stage.received, 1);
	stage_run(50);
	assert_true(stage.o.started);
	assert_int_equal(WORK_IDLE, stage.o.work);
}

/* The request under way ends in doubt: the next is made in MS, not before. */
static void
must_wait(int status, int64_t retry_after, int64_t ms)
{
	int posts = stage.post.count, claimed = stage.claimed;
	int64_t from = clock_monotonic_ms();

	stage_answer(&stage.post, status, "", retry_after);
	stage_run(100);
	work_poke(&stage.o); /* POST_WAITS, of one more */
	stage_run(100);
	if (work_send_in(&stage.o) > 0)
		assert_int_equal(claimed, stage.claimed);
	assert_in_range(stage.o.send_at, from + ms, clock_monotonic_ms() + ms);
	stage_until(&stage.post.count, posts + 1);
	assert_int_equal(0, work_send_in(&stage.o));
	assert_int_equal(claimed + 1, stage.claimed);
}

static void
after_a_doubt_the_rest_waits_for_the_tick(void **state)
{
	begin_idle();
	stage.due = 3;
	work_poke(&stage.o);
	stage_until(&stage.post.count, 2);
	must_wait(503, 0, TICK_MS);
	/* Longer if Basecamp says so. */
	must_wait(429, 2, 2 * TICK_MS);
	stage_close();
}

static void
at_the_start_it_is_the_same(void **state)
{
	stage_open();
	stage.due = 2;
	stage_configure();
	stage_mint("token");
	stage_until(&stage.post.count, 1);
	must_wait(503, 0, TICK_MS);
	stage_close();
}

/* What did not happen is certain. */
static void
after_a_refusal_nothing_waits(void **state)
{
	begin_idle();
	stage.due = 2;
	work_poke(&stage.o);
	stage_until(&stage.post.count, 2);
	stage_answer(&stage.post, 403, "", 0);
	stage_until(&stage.post.count, 3);
	assert_int_equal(0, stage.o.send_at);
	stage_close();
}

static void
begin_stop(int64_t due, int64_t bound_ms)
{
	begin_idle();
	stage.due = due;
	work_poke(&stage.o);
	stage_until(&stage.post.count, 2);
	work_stop(&stage.o, bound_ms);
}

static void
a_stop_goes_on_after_the_tick(void **state)
{
	begin_stop(2, 15000);
	must_wait(503, 0, TICK_MS);
	stage_answer(&stage.post, 503, "", 0);
	stage_until_exit();
	assert_int_equal(0, stage.due);
	stage_close();
}

/* There is no time for another after it: that is for the next start. */
static void
a_stop_does_not_wait_in_vain(void **state)
{
	begin_stop(2, 15000);
	stage_answer(&stage.post, 429, "", 60);
	stage_until_exit();
	assert_true(work_send_in(&stage.o) > 0);
	assert_int_equal(1, stage.due);
	assert_int_equal(1, stage.deferred);
	stage_close();
}

/* An earlier run left one in doubt, and one is due; there is no token yet. */
static void
begin_without_token(int64_t start_bound)
{
	stage_open();
	stage.limits[LIMIT_outbox_start] = start_bound;
	stage.doubt_count = 1;
	stage.due = 1;
	stage_configure();
	stage_until(&stage.mint.count, 1);
}

/* Nothing was asked of Basecamp, so nothing of it has failed. */
static void
must_be_unasked(void)
{
	assert_int_equal(0, stage.listing.count);
	assert_int_equal(0, stage.post.count);
	assert_int_equal(0, stage.deferred);
	assert_int_equal(0, stage.doubts[0].failures);
}

static void
must_be_listed(void)
{
	stage_until(&stage.listing.count, 1);
	stage_answer(&stage.listing, 200, "[]", 0);
	stage_until(&stage.listed, 1);
	assert_int_equal(0, stage.deferred);
}

static void
the_start_waits_for_a_token(void **state)
{
	begin_without_token(60000);
	stage_answer(&stage.mint, 503, "", 1);
	stage_run(200);
	must_be_unasked();
	assert_false(stage.o.started);
	stage_mint("token");
	must_be_listed();
	stage_until(&stage.post.count, 1);
	assert_false(stage.o.started);
	stage_answer(&stage.post, 201, CREATED, 0);
	stage_until(&stage.received, 1);
	stage_run(50);
	assert_true(stage.o.started);
	assert_true(stage.o.settled);
	stage_close();
}

/* Then it says that nothing is settled, and goes on when there is a token. */
static void
the_start_waits_no_longer_than_its_bound(void **state)
{
	begin_without_token(2000);
	stage.due = 0;
	stage_answer(&stage.mint, 400, "{\"error\":\"invalid_client\"}", 0);
	stage_run(200);
	assert_false(stage.o.started);
	while (!stage.o.started)
		stage_run(10);
	stage_run(400);
	must_be_unasked();
	assert_false(stage.o.settled);
	assert_int_equal(1, stage.mint.count);
	/* It does not spin. */
	assert_in_range(stage.asked, 1, 12);
	stage_credential("another-secret");
	stage_mint("token");
	must_be_listed();
	assert_false(stage.o.settled);
	stage_close();
}

/* What is due is not settled when the first of it ended in doubt. */
static void
a_start_that_stops_at_a_doubt_says_so(void **state)
{
	stage_open();
	stage.due = 2;
	stage_configure();
	stage_mint("token");
	stage_until(&stage.post.count, 1);
	stage_answer(&stage.post, 503, "", 0);
	stage_until(&stage.deferred, 1);
	stage_run(50);
	assert_true(stage.o.started);
	assert_false(stage.o.settled);
	stage_close();
}

static void
a_stop_does_not_wait_to_list(void **state)
{
	begin_without_token(60000);
	stage.due = 0;
	stage_answer(&stage.mint, 429, "", 60);
	stage_run(50);
	work_stop(&stage.o, 15000);
	stage_until_exit();
	must_be_unasked();
	assert_int_equal(0, stage.code);
	stage_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(after_a_doubt_the_rest_waits_for_the_tick),
	    cmocka_unit_test(at_the_start_it_is_the_same),
	    cmocka_unit_test(after_a_refusal_nothing_waits),
	    cmocka_unit_test(a_stop_goes_on_after_the_tick),
	    cmocka_unit_test(a_stop_does_not_wait_in_vain),
	    cmocka_unit_test(the_start_waits_for_a_token),
	    cmocka_unit_test(the_start_waits_no_longer_than_its_bound),
	    cmocka_unit_test(a_start_that_stops_at_a_doubt_says_so),
	    cmocka_unit_test(a_stop_does_not_wait_to_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
