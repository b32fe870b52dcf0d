/*
 * A claimed message whose access token Basecamp refuses (operator.md 1.10): it
 * is posted again with another one, and refused only if that does not help.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/unit/outbox_stage.h"

#define CREATED "{\"id\":1}"

/* One message is posted with the token "old", and that is refused. */
static void
post_unauthorized(void)
{
	stage_open();
	stage.limits[LIMIT_post_timeout] = 100;
	stage.due = 1;
	stage_configure();
	stage_mint("old");
	stage_until(&stage.post.count, 1);
	assert_string_equal("old", stage.post.bearer);
	stage_answer(&stage.post, 401, "", 0);
}

/* It is in hand still, and nothing was said of it. */
static void
must_wait(void)
{
	stage_run(50);
	assert_int_equal(1, stage.claimed);
	assert_int_equal(1, stage.post.count);
	assert_int_equal(0, stage.refused);
	assert_int_equal(0, stage.deferred);
	assert_true(stage.o.posting == 1);
}

static void
must_be_sent(const char *bearer)
{
	stage_until(&stage.post.count, 2);
	assert_string_equal(bearer, stage.post.bearer);
	stage_answer(&stage.post, 201, CREATED, 0);
	stage_until(&stage.received, 1);
	assert_int_equal(1, stage.claimed);
	assert_int_equal(0, stage.refused);
	assert_int_equal(0, stage.deferred);
	stage_close();
}

static void
it_is_posted_once_more(void **state)
{
	post_unauthorized();
	stage_mint("new");
	must_be_sent("new");
}

static void
another_refusal_is_one(void **state)
{
	post_unauthorized();
	stage_mint("new");
	stage_until(&stage.post.count, 2);
	stage_answer(&stage.post, 401, "", 0);
	stage_until(&stage.refused, 1);
	stage_run(50);
	assert_int_equal(2, stage.post.count);
	assert_int_equal(0, stage.deferred);
	stage_close();
}

/* Longer than a request may take: the endpoint named the time. */
static void
it_waits_while_the_endpoint_limits(void **state)
{
	post_unauthorized();
	stage_answer(&stage.mint, 429, "", 1);
	must_wait();
	stage_mint("new");
	must_be_sent("new");
}

static void
it_waits_while_the_endpoint_fails(void **state)
{
	post_unauthorized();
	stage_answer(&stage.mint, 503, "", 1);
	must_wait();
	stage_mint("new");
	must_be_sent("new");
}

static void
refuse_credential(int status, const char *body)
{
	post_unauthorized();
	stage_answer(&stage.mint, status, body, 0);
	must_wait();
	stage_credential("another-secret");
	stage_mint("new");
	must_be_sent("new");
}

/* Until a person brings another one. */
static void
it_waits_while_the_credential_is_refused(void **state)
{
	refuse_credential(401, "");
	refuse_credential(400, "{\"error\":\"invalid_client\"}");
	refuse_credential(429, "");
}

/* When a token should be renewed that lives for an hour. */
static void
now_ahead(clockid_t id, struct timespec *out)
{
	(void)clock_gettime(id, out);
	out->tv_sec += 3500;
}

static const struct clock_source ahead = {now_ahead};

static void
on_token_of_another(enum token_answer answer, const char *bearer,
    int64_t serial, int64_t wait_ms, void *arg)
{
}

/*
 * The token was being renewed when Basecamp refused it, and is not: what is
 * refused is not handed out again as if it were good.
 */
static void
it_waits_when_a_renewal_under_way_fails(void **state)
{
	stage_open();
	stage.due = 1;
	stage_configure();
	stage_mint("old");
	stage_until(&stage.post.count, 1);
	clock_set_source(&ahead);
	token_get(stage.o.token, 0, on_token_of_another, NULL);
	assert_int_equal(2, stage.mint.count);
	stage_answer(&stage.post, 401, "", 0);
	stage_answer(&stage.mint, 503, "", 1);
	must_wait();
	stage_mint("new");
	must_be_sent("new");
	clock_set_source(NULL);
}

/* No later than its bound, and at once if no token can come before that. */
static void
a_stop_leaves_it_in_doubt(void **state)
{
	post_unauthorized();
	stage_answer(&stage.mint, 401, "", 0);
	must_wait();
	work_stop(&stage.o, 60000);
	stage_until_exit();
	assert_int_equal(1, stage.deferred);
	assert_int_equal(0, stage.refused);
	assert_int_equal(1, stage.post.count);
	stage_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_is_posted_once_more),
	    cmocka_unit_test(another_refusal_is_one),
	    cmocka_unit_test(it_waits_while_the_endpoint_limits),
	    cmocka_unit_test(it_waits_while_the_endpoint_fails),
	    cmocka_unit_test(it_waits_while_the_credential_is_refused),
	    cmocka_unit_test(it_waits_when_a_renewal_under_way_fails),
	    cmocka_unit_test(a_stop_leaves_it_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
