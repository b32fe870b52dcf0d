/* When an answer is posted, and when it stands down (operator.md 1.7, 2.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/retraction_scene.h"

static int64_t
next_due(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_DUE};
	struct opt in = fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DUE)->due.in_ms;

	return in.has ? in.value : -1;
}

/* Waiting is passed over: not asked for again and again, hiding nothing. */
static void
assert_waits(struct fixture *f)
{
	const struct msg_claimed *c;

	assert_int_equal(-1, next_due(f));
	c = &claim(f, next_nonce())->claimed;
	assert_false(c->found);
	assert_int_equal(0, c->due_in_ms);
	assert_int_equal(1, retraction_count(f, "pending"));
}

static void
it_waits_for_its_notices_receipt(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RESOLVE,
	    .resolve = {NONCE_1, "local:ann", 0, "sent", 5}};

	end_unknown(f, 101, ATT_1);
	assert_string_equal("completion", claim_one(f));
	(void)redispatch_event(f, 101);
	assert_waits(f);
	/* In doubt it is not known to be there, either. */
	sql_ok(f,
	    "UPDATE outbox SET state = 'indeterminate'"
	    " WHERE kind = 'completion'");
	assert_waits(f);
	fixture_forget(f);
	m.resolve.intent_id =
	    sql_int(f, "SELECT id FROM outbox WHERE kind = 'completion'");
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_RESOLVED);
	assert_true(outbox_was_told(f));
	assert_int_equal(0, next_due(f));
	post_one(f, "retraction");
}

static void
it_hides_nothing_that_is_due_later(void **state)
{
	struct fixture *f = *state;

	block_no_route(f);
	post_one(f, "holding_reply");
	(void)redispatch_event(f, 101);
	fixture_wait(1000);
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "blocked", "no_route");
	assert_int_equal(0, next_due(f));
	assert_string_equal("holding_reply", claim_one(f));
	receive_one(f);
	assert_waits(f);
	/* And a guard that is due in a while is waited for, not that. */
	(void)record_event(f, 103);
	(void)admit_event(f, 103, "l");
	assert_int_equal(30000, next_due(f));
}

/* Refused or given up: there is nothing to answer. */
static void
it_stands_down_with_its_notice(void **state)
{
	static const char *const fates[] = {
	    "state = 'canceled', refused = 1", "state = 'abandoned'"};
	struct fixture *f;
	void *fresh;
	size_t i;

	for (i = 0; i < 2; i++) {
		(void)fixture_setup(&fresh);
		f = fresh;
		end_unknown(f, 101, ATT_1);
		assert_string_equal("completion", claim_one(f));
		(void)redispatch_event(f, 101);
		sql_put(f, "UPDATE outbox SET %s WHERE kind = 'completion'",
		    fates[i]);
		fixture_forget(f);
		assert_string_equal("", claim_one(f));
		assert_int_equal(1, retraction_count(f, "canceled"));
		assert_int_equal(1, f->line_count);
		(void)fixture_teardown(&fresh);
	}
}

/* A person sent it again after the decision: it asked no more. */
static void
it_stands_down_when_its_notice_does_not_ask(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	assert_string_equal("completion", claim_one(f));
	(void)redispatch_event(f, 101);
	sql_ok(f,
	    "UPDATE outbox SET state = 'indeterminate'"
	    " WHERE kind = 'completion';"
	    "UPDATE outbox SET state = 'pending', sending_at = NULL,"
	    " nonce = NULL WHERE kind = 'completion'");
	post_one(f, "completion");
	assert_null(strstr(
	    sql_get(f, "SELECT body FROM outbox WHERE kind = 'completion'"),
	    "redispatch"));
	assert_string_equal("", claim_one(f));
	assert_int_equal(1, retraction_count(f, "canceled"));
}

/* Deciding is not enough: the record has to have moved. */
static void
it_waits_while_its_record_is_blocked_for_that(void **state)
{
	struct fixture *f = *state;

	block_no_route(f);
	post_one(f, "holding_reply");
	(void)redispatch_event(f, 101);
	assert_waits(f);
	fixture_wait(60000);
	fixture_forget(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_waits(f);
	/* A later decision is the answer then. */
	fixture_wait(60 * 60000);
	fixture_forget(f);
	(void)discard_event(f, 101);
	assert_true(outbox_was_told(f));
	assert_int_equal(1, retraction_count(f, "%"));
	assert_int_equal(0, next_due(f));
	post_one(f, "retraction");
	assert_non_null(
	    strstr(retraction_body(f), "A person closed it, at 10:01 UTC"));
}

static void
a_verdict_that_moves_the_record_frees_it(void **state)
{
	struct fixture *f = *state;

	block_no_route(f);
	post_one(f, "holding_reply");
	(void)redispatch_event(f, 101);
	fixture_forget(f);
	(void)refuse_event(f, 101, "blocked", "read_failed");
	assert_true(outbox_was_told(f));
	post_one(f, "retraction");
}

static void
a_failed_start_is_answered_when_it_is_decided_anew(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)spawn_failed(f, ATT_1);
	(void)launch(f, 101, ATT_2);
	(void)spawn_failed(f, ATT_2);
	no_guards(f);
	post_one(f, "completion");
	(void)redispatch_event(f, 101);
	assert_waits(f);
	(void)admit_event(f, 101, "k");
	no_guards(f);
	post_one(f, "retraction");
}

/* Run again and unknown again, the notices ask anew: it waits for that one. */
static void
it_waits_while_the_ask_stands_again(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	assert_string_equal("completion", claim_one(f));
	(void)redispatch_event(f, 101);
	end_unknown(f, 101, ATT_2);
	receive_one(f);
	post_one(f, "completion");
	assert_waits(f);
	fixture_forget(f);
	(void)redispatch_event(f, 101);
	assert_int_equal(2, retraction_count(f, "pending"));
	post_one(f, "retraction");
	post_one(f, "retraction");
}

/* The end of a task opens and closes asks: the outbox looks again. */
static void
a_tasks_end_lets_the_outbox_look_again(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	assert_string_equal("completion", claim_one(f));
	(void)redispatch_event(f, 101);
	(void)launch(f, 101, ATT_2);
	sql_ok(f, "UPDATE events SET reply_kind = ''");
	fixture_forget(f);
	(void)end_attempt(f, ATT_2, "lost");
	assert_true(outbox_was_told(f));
}

static void
a_hold_stops_it(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	post_one(f, "completion");
	(void)redispatch_event(f, 101);
	(void)set_hold(f);
	assert_waits(f);
	(void)release_hold(f);
	post_one(f, "retraction");
}

/* An import that found it done has closed nothing; the redispatch answered. */
static void
an_import_of_what_is_done_is_no_answer(void **state)
{
	static const char file[] =
	    "{\"version\":1,\"entries\":"
	    "[{\"event_id\":101,\"decision\":\"done\"}]}";
	struct fixture *f = *state;
	struct msg m = {.type = MSG_IMPORT};
	const char *token;

	end_unknown(f, 101, ATT_1);
	post_one(f, "completion");
	(void)redispatch_event(f, 101);
	token = launch(f, 101, ATT_2);
	(void)get_dispatch(f, token, 101, ATT_2);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_2);
	(void)end_attempt(f, ATT_2, "finished");
	m.import.nonce = next_nonce();
	m.import.by = "local:ann";
	m.import.file = (struct blob){file, sizeof(file) - 1};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_IMPORTED);
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM decisions"
		" WHERE event_id = 101"));
	assert_string_equal("retraction", claim_one(f));
	assert_non_null(strstr(retraction_body(f), "had it run again"));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(an_import_of_what_is_done_is_no_answer),
	    TEST(it_waits_for_its_notices_receipt),
	    TEST(it_hides_nothing_that_is_due_later),
	    cmocka_unit_test(it_stands_down_with_its_notice),
	    TEST(it_stands_down_when_its_notice_does_not_ask),
	    TEST(it_waits_while_its_record_is_blocked_for_that),
	    TEST(a_verdict_that_moves_the_record_frees_it),
	    TEST(a_failed_start_is_answered_when_it_is_decided_anew),
	    TEST(it_waits_while_the_ask_stands_again),
	    TEST(a_tasks_end_lets_the_outbox_look_again),
	    TEST(a_hold_stops_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
