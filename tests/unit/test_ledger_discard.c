/*
 * What a DISCARD does (operator.md 3.4), and what a decision of either kind
 * leaves of the messages that wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/decision_scene.h"
#include "tests/unit/trap.h"

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* ---- discard ------------------------------------------------------------- */

static void
discard_closes(struct fixture *f, const char *from)
{
	const struct msg_decided *is = &discard_event(f, 101)->decided;

	assert_string_equal(from, is->from_state);
	assert_string_equal("discarded", is->state);
	assert_false(is->already || is->pending || is->rerun);
	assert_string_equal("discarded by_operator 1",
	    sql_get(f,
		"SELECT state || ' ' || reason || ' ' || (snapshot IS NULL)"
		" FROM events WHERE id = 101"));
}

static void
a_discard_is_final_and_may_be_said_again(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	put_blocked(f);
	fixture_forget(f);
	discard_closes(f, "blocked");
	assert_string_equal("discard 101 local:ann " START
			    " blocked no_route  discarded",
	    decision_last(f));
	/* The holding reply's line, then its own. */
	assert_int_equal(2, f->line_count);
	assert_non_null(strstr(f->lines[1],
	    "\"state\":\"discarded\",\"reason\":\"by_operator\"}"));
	is = &discard_event(f, 101)->decided;
	assert_true(is->already);
	assert_string_equal("discarded", is->state);
	assert_string_equal("discarded", is->from_state);
	assert_string_equal("by_operator", is->from_reason);
	assert_int_equal(0, is->decision_id);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_failed(redispatch_event(f, 101), "refused");
}

static void
unknown_work_is_discarded(void **state)
{
	struct fixture *f = *state;

	put_unknown(f);
	discard_closes(f, "completed");
	assert_string_equal("discard 101 local:ann " START
			    " completed  unknown discarded",
	    decision_last(f));
}

static void
a_held_record_is_discarded(void **state)
{
	struct fixture *f = *state;

	put_held(f);
	discard_closes(f, "held");
}

/* ---- messages ------------------------------------------------------------ */

static void
post(struct fixture *f, const char *kind)
{
	struct msg m = {.type = MSG_POST};

	m.post = (struct msg_post){
	    put_token, 101, kind, HASH, {"<p>x</p>", 8}, {"x", 1}};
	(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS);
}

static const char *
intents(struct fixture *f)
{
	return sql_get(f,
	    "SELECT group_concat(kind || ':' || state, ' ') FROM"
	    " (SELECT * FROM outbox ORDER BY id)");
}

static void
a_discard_cancels_what_was_to_be_said(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	put_blocked(f);
	(void)admit_event(f, 101, "k"); /* a guard beside the holding reply */
	(void)set_hold(f);
	sql_put(f, "UPDATE outbox SET state = 'pending'");
	fixture_forget(f);
	is = &discard_event(f, 101)->decided;
	assert_int_equal(2, is->canceled);
	assert_string_equal(
	    "holding_reply:canceled guard_ack:canceled", intents(f));
	assert_int_equal(3, f->line_count);
	assert_non_null(strstr(f->lines[1], "\"state\":\"canceled\""));
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox"
		" WHERE note = 'canceled by decision 2'"));
}

static void
a_workers_waiting_words_are_canceled(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	put_dispatched(f);
	(void)get_dispatch(f, put_token, 0, ATT_1);
	post(f, "worker_ack");
	post(f, "worker_reply");
	(void)end_attempt(f, ATT_1, "lost");
	is = &redispatch_event(f, 101)->decided;
	assert_int_equal(2, is->canceled);
	/* The notice is the connector's own: it is said without its ask. */
	assert_string_equal("guard_ack:canceled worker_ack:canceled "
			    "worker_reply:canceled completion:pending",
	    intents(f));
	(void)launch(f, 101, ATT_2);
	(void)end_attempt(f, ATT_2, "lost");
	assert_int_equal(0, discard_event(f, 101)->decided.canceled);
}

/* Whether they are still called for is asked when they are claimed. */
static void
a_redispatch_leaves_the_connectors_words(void **state)
{
	struct fixture *f = *state;

	put_blocked(f);
	assert_int_equal(0, redispatch_event(f, 101)->decided.canceled);
	assert_string_equal("holding_reply:pending", intents(f));
}

/* What was claimed may be posted by now: no decision takes it back. */
static void
a_claimed_message_is_not_canceled(void **state)
{
	struct fixture *f = *state;

	put_dispatched(f);
	(void)get_dispatch(f, put_token, 0, ATT_1);
	post(f, "worker_reply");
	assert_string_equal("worker_reply", claim(f, NONCE_1)->claimed.kind);
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(0, redispatch_event(f, 101)->decided.canceled);
	assert_string_equal("guard_ack:canceled worker_reply:sending "
			    "completion:pending",
	    intents(f));
}

static void
assert_notice(struct fixture *f, const char *nonce, bool asks)
{
	const struct msg_claimed *c = &claim(f, nonce)->claimed;

	assert_string_equal("completion", c->kind);
	assert_non_null(
	    memmem(c->body.bytes, c->body.len, "Event 101: no outcome", 21));
	assert_int_equal(asks,
	    memmem(c->body.bytes, c->body.len, "redispatch 101", 14) != NULL);
}

static void
a_decided_notice_does_not_ask(void **state)
{
	struct fixture *f = *state;

	put_unknown(f);
	(void)redispatch_event(f, 101);
	assert_notice(f, NONCE_1, false);
	(void)launch(f, 101, ATT_2);
	(void)end_attempt(f, ATT_2, "lost");
	(void)discard_event(f, 101);
	assert_notice(f, NONCE_2, false);
}

/* What a person authorized has run since: the notice asks for the next time. */
static void
an_authorization_before_the_end_does_not_silence(void **state)
{
	struct fixture *f = *state;

	put_blocked(f);
	(void)redispatch_event(f, 101);
	(void)admit_event(f, 101, "k");
	fixture_wait(1000);
	(void)launch(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	sql_ok(f,
	    "UPDATE outbox SET state = 'canceled' WHERE kind = 'guard_ack'"
	    " OR kind = 'holding_reply'");
	assert_notice(f, NONCE_1, true);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_discard_is_final_and_may_be_said_again),
	    TEST(unknown_work_is_discarded),
	    TEST(a_held_record_is_discarded),
	    TEST(a_discard_cancels_what_was_to_be_said),
	    TEST(a_workers_waiting_words_are_canceled),
	    TEST(a_redispatch_leaves_the_connectors_words),
	    TEST(a_claimed_message_is_not_canceled),
	    PROVES("T50", a_decided_notice_does_not_ask),
	    PROVES("T50", an_authorization_before_the_end_does_not_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
