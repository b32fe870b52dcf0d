/* Which message is claimed, and when (operator.md 1, design L8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/outbox_scene.h"
#include "tests/unit/trap.h"

static void
nothing_to_send(void **state)
{
	struct fixture *f = *state;
	struct msg *c = claim(f, NONCE_1);

	assert_false(c->claimed.found);
	assert_int_equal(0, c->claimed.due_in_ms);
}

static void
a_guard_waits_its_delay(void **state)
{
	struct fixture *f = *state;
	struct msg *c;

	admit_apart(f, 101);
	c = claim(f, NONCE_1);
	assert_false(c->claimed.found);
	assert_int_equal(30000, c->claimed.due_in_ms);
	fixture_wait(30000);
	fixture_forget(f);
	c = claim(f, NONCE_1);
	assert_true(c->claimed.found);
	assert_string_equal("guard_ack", c->claimed.kind);
	assert_string_equal("boost", c->claimed.message_kind);
	assert_int_equal(RECORDING(101), c->claimed.recording_id);
	assert_string_equal("sending", intent_state(f, 1));
	assert_string_equal("{\"type\":\"outbox\",\"intent_id\":1,"
			    "\"kind\":\"guard_ack\",\"state\":\"sending\","
			    "\"event_id\":101}",
	    f->lines[0]);
}

static void
the_guard_delay_is_a_limit(void **state)
{
	struct fixture *f = *state;

	f->config->limits[LIMIT_guard_delay] = 50;
	admit_apart(f, 101);
	assert_int_equal(50, claim(f, NONCE_1)->claimed.due_in_ms);
}

static void
a_claim_fires_the_armed_rows(void **state)
{
	struct fixture *f = *state;

	launch_apart(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	assert_string_equal(
	    "fired", sql_get(f, "SELECT guard FROM task_events"));
	/* The worker is told, and the guard stays as it fired. */
	assert_true(get_dispatch(f, apart_token, 0, ATT_1)
			->instruction.guard_acknowledged);
	assert_string_equal(
	    "SETTLED", msg_name(tell_refused(f, 1, NONCE_1)->type));
	assert_true(get_dispatch(f, apart_token, 0, ATT_1)
			->instruction.guard_acknowledged);
}

/* A launch, and whether its worker is told that it was acknowledged. */
static bool
is_told_acknowledged(struct fixture *f, int64_t id, const char *attempt)
{
	(void)snprintf(
	    apart_token, sizeof(apart_token), "%s", launch(f, id, attempt));
	return get_dispatch(f, apart_token, id, attempt)
	    ->instruction.guard_acknowledged;
}

/*
 * Claimed before there is a task, and whatever became of it since: it may be
 * there, and the row is fired from its first moment.
 */
static void
a_guard_claimed_early_fires_the_later_row(void **state)
{
	static const char *const states[] = {
	    "sending", "sent", "indeterminate", "abandoned"};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		admit_apart(f, 101);
		fixture_wait(30000);
		assert_true(claim(f, NONCE_1)->claimed.found);
		sql_put(f,
		    "UPDATE outbox SET state = '%s', receipt_id ="
		    " CASE WHEN '%s' = 'sent' THEN 5 END",
		    states[i], states[i]);
		(void)snprintf(apart_token, sizeof(apart_token), "%s",
		    launch(f, 101, ATT_1));
		assert_string_equal(
		    "fired", sql_get(f, "SELECT guard FROM task_events"));
		assert_true(get_dispatch(f, apart_token, 0, ATT_1)
				->instruction.guard_acknowledged);
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* One refused before there was a task acknowledges nothing. */
static void
a_refused_guard_arms_afresh(void **state)
{
	struct fixture *f = *state;

	admit_apart(f, 101);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)tell_refused(f, 1, NONCE_1);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "armed", sql_get(f, "SELECT guard FROM task_events"));
}

/* Refused under a task, its row stays as it fired; a later task's does not. */
static void
a_refusal_is_missed_by_its_task_only(void **state)
{
	struct fixture *f = *state;

	launch_apart(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	assert_string_equal(
	    "canceled", tell_refused(f, 1, NONCE_1)->settled.state);
	assert_string_equal(
	    "fired", sql_get(f, "SELECT guard FROM task_events"));
	assert_string_equal("canceled 1",
	    sql_get(f, "SELECT state || ' ' || refused FROM outbox"));
	(void)spawn_failed(f, ATT_1);
	assert_false(is_told_acknowledged(f, 101, ATT_2));
	assert_string_equal("fired canceled",
	    sql_get(f,
		"SELECT group_concat(guard, ' ') FROM (SELECT guard FROM"
		" task_events ORDER BY task_id)"));
}

static void
a_guard_not_called_for_stands_down(void **state)
{
	struct fixture *f = *state;
	int64_t id;

	for (id = 101; id <= 104; id++)
		admit_apart(f, id);
	(void)launch(f, 104, ATT_1);
	fixture_wait(30000);
	sql_ok(f,
	    "UPDATE events SET state = 'blocked', reason = 'x'"
	    " WHERE id = 101;"
	    "UPDATE events SET state = 'discarded', reason = 'x'"
	    " WHERE id = 102;"
	    "UPDATE events SET acknowledge = 0 WHERE id = 103;"
	    "UPDATE task_events SET pulled_at = 'p';"
	    "UPDATE task_events SET delivery = 'delivered'");
	fixture_forget(f);
	assert_false(claim(f, NONCE_1)->claimed.found);
	assert_int_equal(4,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox"
		" WHERE state = 'canceled'"));
	assert_int_equal(4, f->line_count);
	assert_non_null(strstr(f->lines[0], "\"state\":\"canceled\""));
}

/* What has been held, blocked or ended since is not acknowledged. */
static void
a_guard_of_a_record_that_left_stands_down(void **state)
{
	static const char *const states[] = {"held", "blocked", "completed"};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		admit_apart(f, 101 + (int64_t)i);
		sql_put(f,
		    "UPDATE events SET state = '%s', reason = 'x'"
		    " WHERE id = %d",
		    states[i], 101 + (int)i);
	}
	admit_apart(f, 110);
	fixture_wait(30000);
	assert_int_equal(4, claim(f, NONCE_1)->claimed.intent_id);
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		assert_string_equal("canceled - -",
		    sql_get(f,
			"SELECT state || ' ' || COALESCE(sending_at, '-') ||"
			" ' ' || COALESCE(nonce, '-') FROM outbox"
			" WHERE id = %d",
			1 + (int)i));
	assert_false(claim(f, NONCE_2)->claimed.found);
}

static void
a_pull_takes_the_guard_back(void **state)
{
	struct fixture *f = *state;

	launch_apart(f);
	fixture_wait(20000);
	/* Refused, it has not taken anything back. */
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	assert_failed(get_dispatch(f, apart_token, 0, ATT_1), "held");
	assert_string_equal("pending", intent_state(f, 1));
	sql_ok(f, "DELETE FROM hold_marker");
	fixture_forget(f);
	assert_false(get_dispatch(f, apart_token, 0, ATT_1)
			 ->instruction.guard_acknowledged);
	assert_string_equal("canceled get_dispatch canceled",
	    sql_get(f,
		"SELECT o.state || ' ' || o.note || ' ' || t.guard"
		" FROM outbox o, task_events t"));
	assert_string_equal("l.r", f->order);
	fixture_wait(60000);
	assert_false(claim(f, NONCE_1)->claimed.found);
}

static void
a_nonce_claims_one_intent(void **state)
{
	struct fixture *f = *state;
	struct msg *first, *again;

	admit_apart(f, 101);
	admit_apart(f, 102);
	fixture_wait(30000);
	first = claim(f, NONCE_1);
	fixture_forget(f);
	again = claim(f, NONCE_1);
	assert_int_equal(first->claimed.intent_id, again->claimed.intent_id);
	assert_memory_equal(first->claimed.body.bytes,
	    again->claimed.body.bytes, first->claimed.body.len);
	assert_int_equal(0, f->line_count);
	assert_int_equal(2, claim(f, NONCE_2)->claimed.intent_id);
	/* What has settled is not claimed by a late repeat. */
	(void)tell_receipt(f, 1, NONCE_1, 77);
	assert_false(claim(f, NONCE_1)->claimed.found);
}

static void
a_flush_does_not_claim_twice(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_CLAIM}, *c;

	admit_apart(f, 101);
	fixture_wait(30000);
	m.claim = (struct msg_claim){NONCE_1, 1};
	c = fixture_get(f, &m, ROLE_OUTBOX, "", MSG_CLAIMED);
	assert_false(c->claimed.found);
	assert_int_equal(1, c->claimed.due_in_ms); /* for the next flush */
}

static void
a_hold_claims_workers_words_only(void **state)
{
	struct fixture *f = *state;
	struct msg *c;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	admit_apart(f, 102);
	(void)post_text(f, "worker_reply", HASH_A, "done");
	fixture_wait(30000);
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	c = claim(f, NONCE_1);
	assert_string_equal("worker_reply", c->claimed.kind);
	assert_false(claim(f, NONCE_2)->claimed.found);
	assert_int_equal(0, claim(f, NONCE_2)->claimed.due_in_ms);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(nothing_to_send),
	    TEST(a_guard_waits_its_delay),
	    TEST(the_guard_delay_is_a_limit),
	    PROVES("T46 T47", a_claim_fires_the_armed_rows),
	    PROVES("T45", a_guard_claimed_early_fires_the_later_row),
	    PROVES("T47", a_refused_guard_arms_afresh),
	    PROVES("T47", a_refusal_is_missed_by_its_task_only),
	    TEST(a_guard_not_called_for_stands_down),
	    PROVES("T54", a_guard_of_a_record_that_left_stands_down),
	    PROVES("T46", a_pull_takes_the_guard_back),
	    TEST(a_nonce_claims_one_intent),
	    TEST(a_flush_does_not_claim_twice),
	    TEST(a_hold_claims_workers_words_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
