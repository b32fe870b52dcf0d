/* Replies beside unknown outcomes (design L8, operator.md 2.8, I12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define HASH_1 \
	"1111111111111111111111111111111111111111111111111111111111111111"
#define HASH_2 \
	"2222222222222222222222222222222222222222222222222222222222222222"

/* 101 is pulled and acknowledged a second later; the token. */
static const char *
acknowledged(struct fixture *f)
{
	const char *token;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	fixture_wait(1000);
	(void)ack_dispatch(f, token, 101, 7, ATT_1);
	fixture_wait(1000);
	return token;
}

static void
post(struct fixture *f, const char *token, int64_t id, const char *hash)
{
	struct msg m = {.type = MSG_POST};

	m.post = (struct msg_post){
	    token, id, "worker_reply", hash, {"<p>x</p>", 8}, {"x", 1}};
	(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS);
}

/* The outbox claims the next message and posts it as message ID. */
static int64_t
send_next(struct fixture *f, const char *nonce, int64_t id)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt =
	    (struct msg_receipt){claim(f, nonce)->claimed.intent_id, nonce, id};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	return m.receipt.intent_id;
}

static void
refuse_next(struct fixture *f, const char *nonce)
{
	struct msg m = {.type = MSG_REFUSED};

	m.refused = (struct msg_refused){
	    claim(f, nonce)->claimed.intent_id, nonce, "403"};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
}

/* "unknown 77", "unknown -" */
static const char *
adopted(struct fixture *f, int64_t id)
{
	return sql_get(f,
	    "SELECT outcome || ' ' || COALESCE(adopted_reply_id, '-')"
	    " FROM task_events WHERE event_id = %lld",
	    (long long)id);
}

static struct msg_adoptable *
next_adoptable(struct fixture *f, int64_t after)
{
	struct msg m = {.type = MSG_ADOPTABLE_NEXT};

	m.adoptable_next = (struct msg_adoptable_next){ATT_1, after};
	return &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ADOPTABLE)
		    ->adoptable;
}

static struct msg *
adopt_told(struct fixture *f, const struct msg_adoptable *told, int64_t id,
    int64_t reply_id)
{
	struct msg m = {.type = MSG_ADOPT};

	m.adopt =
	    (struct msg_adopt){ATT_1, id, reply_id, told->as_of, told->words};
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

/* As of now; of what is not adoptable the ledger says nothing. */
static struct msg *
adopt(struct fixture *f, int64_t id, int64_t reply_id)
{
	const struct msg_adoptable *told = next_adoptable(f, id - 1);
	const struct msg_adoptable untold = {.words = HASH_1};

	return adopt_told(
	    f, told->event_id == id ? told : &untold, id, reply_id);
}

/* ---- the ledger's own -------------------------------------------------- */

static void
the_one_reply_that_was_sent_is_adopted_at_the_end(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	post(f, token, 101, HASH_1);
	(void)send_next(f, NONCE_1, 77);
	assert_string_equal(" -", adopted(f, 101)); /* it may report yet */
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown 77", adopted(f, 101));
	assert_false(next_adoptable(f, 0)->found);
	/* Beside the outcome: a person is told as before. */
	assert_int_equal(1,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE kind = 'completion'"
		" AND body LIKE '%%Event 101: no outcome was reported%%'"));
}

static void
a_receipt_behind_the_end_adopts_as_well(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	post(f, token, 101, HASH_1);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown -", adopted(f, 101));
	(void)send_next(f, NONCE_1, 77);
	assert_string_equal("unknown 77", adopted(f, 101));
}

/* Which of two it is nobody knows, now or once the second is posted. */
static void
of_two_replies_none_is_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	post(f, token, 101, HASH_1);
	post(f, token, 101, HASH_2);
	(void)send_next(f, NONCE_1, 77);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown -", adopted(f, 101));
	(void)send_next(f, NONCE_2, 78);
	assert_string_equal("unknown -", adopted(f, 101));
}

/* A person says of the one in doubt that it was posted. */
static void
a_resolved_reply_is_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);
	struct msg doubt = {.type = MSG_IN_DOUBT};
	struct msg m = {.type = MSG_RESOLVE};

	post(f, token, 101, HASH_1);
	doubt.in_doubt = (struct msg_in_doubt){
	    claim(f, NONCE_1)->claimed.intent_id, NONCE_1, 10, "no answer"};
	(void)fixture_get(f, &doubt, ROLE_OUTBOX, "", MSG_SETTLED);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown -", adopted(f, 101));
	m.resolve.nonce = NONCE_2;
	m.resolve.by = "local:me";
	m.resolve.intent_id = doubt.in_doubt.intent_id;
	m.resolve.resolution = "sent";
	m.resolve.receipt_id = 77;
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_RESOLVED);
	assert_string_equal("unknown 77", adopted(f, 101));
}

/* But one that Basecamp refused is none. */
static void
a_refused_reply_does_not_count(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	post(f, token, 101, HASH_1);
	post(f, token, 101, HASH_2);
	(void)send_next(f, NONCE_1, 77);
	(void)end_attempt(f, ATT_1, "lost");
	refuse_next(f, NONCE_2);
	assert_string_equal("unknown 77", adopted(f, 101));
}

static void
a_reply_before_the_acknowledgement_is_not_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	post(f, token, 101, HASH_1);
	(void)send_next(f, NONCE_1, 77);
	(void)ack_dispatch(f, token, 101, 77, ATT_1); /* in the same moment */
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown -", adopted(f, 101));
}

/* Its reply was its acknowledgement, and the clock went back in between. */
static void
the_acknowledgement_itself_is_not_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	post(f, token, 101, HASH_1);
	(void)send_next(f, NONCE_1, 77);
	fixture_wait(-5000);
	(void)ack_dispatch(f, token, 101, 77, ATT_1);
	fixture_wait(10000);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("unknown -", adopted(f, 101));
}

static void
only_unknown_and_acknowledged_work_adopts(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	(void)get_dispatch(f, token, 102, ATT_1);
	post(f, token, 101, HASH_1);
	post(f, token, 102, HASH_1);
	(void)send_next(f, NONCE_1, 77);
	(void)send_next(f, NONCE_2, 78);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("failed -", adopted(f, 101));
	assert_string_equal("unknown -", adopted(f, 102)); /* no ack */
	assert_false(next_adoptable(f, 0)->found);
}

/* ---- what the dispatcher finds ----------------------------------------- */

static void
an_adoptable_event_says_where_and_when_to_look(void **state)
{
	struct fixture *f = *state;
	struct msg_adoptable *is;
	const char *token = acknowledged(f);

	(void)get_dispatch(f, token, 102, ATT_1);
	(void)ack_dispatch(f, token, 102, 0, ATT_1);
	assert_false(next_adoptable(f, 0)->found); /* it still runs */
	(void)end_attempt(f, ATT_1, "lost");
	is = next_adoptable(f, 0);
	assert_true(is->found);
	assert_int_equal(101, is->event_id);
	assert_int_equal(PROJECT, is->bucket_id);
	assert_string_equal("comment", is->message_kind);
	assert_int_equal(REPLY_TO(101), is->recording_id);
	assert_string_equal("2026-01-05T09:00:01.000000000Z", is->since);
	assert_string_equal("2026-01-05T09:00:02.000000000Z", is->before);
	assert_true(is->ack_id.has);
	assert_int_equal(7, is->ack_id.value);
	is = next_adoptable(f, 101);
	assert_int_equal(102, is->event_id);
	assert_string_equal("2026-01-05T09:00:02.000000000Z", is->since);
	assert_string_equal("", is->before);
	assert_false(is->ack_id.has);
	assert_false(next_adoptable(f, 102)->found);
	/* One that nobody can answer is not looked for. */
	sql_ok(f, "UPDATE events SET reply_kind = '' WHERE id = 101");
	assert_int_equal(102, next_adoptable(f, 0)->event_id);
	sql_ok(f, "UPDATE events SET reply_recording_id = 0 WHERE id = 102");
	assert_false(next_adoptable(f, 0)->found);
}

/* The first acknowledgement of any later event ends the window. */
static void
a_window_ends_at_the_first_later_acknowledgement(void **state)
{
	struct fixture *f = *state;
	const char *token;
	int64_t id;

	for (id = 101; id <= 103; id++) {
		(void)record_event(f, id);
		(void)admit_event(f, id, "k");
	}
	token = launch(f, 101, ATT_1);
	for (id = 101; id <= 103; id++)
		(void)get_dispatch(f, token, id, ATT_1);
	for (id = 1; id <= 3; id++) {
		static const int64_t order[] = {101, 103, 102};

		fixture_wait(1000);
		(void)ack_dispatch(f, token, order[id - 1], 0, ATT_1);
	}
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal(
	    "2026-01-05T09:00:02.000000000Z", next_adoptable(f, 0)->before);
	/* 103 was taken up before 102: nothing can lie in between. */
	assert_string_equal(
	    "2026-01-05T09:00:03.000000000Z", next_adoptable(f, 101)->since);
	assert_string_equal(
	    "2026-01-05T09:00:02.000000000Z", next_adoptable(f, 101)->before);
}

static void
what_was_found_is_linked_once(void **state)
{
	struct fixture *f = *state;
	struct msg *reply;

	(void)acknowledged(f);
	(void)end_attempt(f, ATT_1, "lost");
	fixture_forget(f);
	reply = adopt(f, 101, 77);
	assert_int_equal(MSG_DONE, reply->type);
	assert_true(reply->done.changed);
	assert_string_equal("unknown 77", adopted(f, 101));
	assert_string_equal("completed", state_of(f, 101));
	reply = adopt(f, 101, 77);
	assert_int_equal(MSG_DONE, reply->type);
	assert_false(reply->done.changed);
	assert_failed(adopt(f, 101, 78), "refused");
	assert_string_equal("unknown 77", adopted(f, 101));
	assert_false(next_adoptable(f, 0)->found);
	assert_int_equal(0, f->line_count);
}

static void
what_is_not_adoptable_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *token;
	struct msg *reply;

	assert_failed(adopt(f, 101, 77), "not_found");
	token = acknowledged(f);
	assert_failed(adopt(f, 404, 77), "not_found");
	reply = adopt(f, 101, 77); /* it may still report */
	assert_failed(reply, "refused");
	(void)get_dispatch(f, token, 102, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	assert_failed(adopt(f, 102, 77), "refused"); /* no ack */
	assert_failed(adopt(f, 101, 7), "refused");  /* the ack itself */
	sql_ok(f, "UPDATE task_events SET reply_id = 9 WHERE event_id = 101");
	assert_failed(adopt(f, 101, 77), "refused");
	assert_string_equal("unknown -", adopted(f, 101));
}

/* The connector's own words, or an answer to something else. */
static void
anothers_message_is_not_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	(void)get_dispatch(f, token, 102, ATT_1);
	post(f, token, 102, HASH_1);
	(void)send_next(f, NONCE_1, 76);
	(void)end_attempt(f, ATT_1, "lost");
	(void)send_next(f, NONCE_2, 77); /* the completion notice */
	assert_string_equal("completion",
	    sql_get(f, "SELECT kind FROM outbox WHERE receipt_id = 77"));
	assert_failed(adopt(f, 101, 77), "refused");
	assert_failed(adopt(f, 101, 76), "refused");
	/* A boost of that number is another message. */
	sql_ok(f,
	    "INSERT INTO outbox (intent_key, kind, bucket_id, message_kind,"
	    " recording_id, body, created_at, not_before)"
	    " VALUES ('b', 'guard_ack', 1, 'boost', 1, 'b', 'c', 'n');"
	    "UPDATE outbox SET state = 'sending', sending_at = 's'"
	    " WHERE intent_key = 'b';"
	    "UPDATE outbox SET state = 'sent', receipt_id = 78"
	    " WHERE intent_key = 'b'");
	assert_int_equal(MSG_DONE, adopt(f, 101, 78)->type);
}

/* ---- what a listing may not have left out -------------------------------- */

/* Event 103 is answered where 101 is, and there is no route for it. */
static void
hold_reply_at_101(struct fixture *f)
{
	struct msg v;

	(void)record_event(f, 103);
	v = verdict_of(f, 103, "blocked");
	v.verdict.reason = "no_route";
	v.verdict.reply_recording_id = REPLY_TO(101);
	(void)fixture_get(f, &v, ROLE_INTAKE, "", MSG_VERDICT_IS);
}

/* A claim of this kind; the receipt does not come yet. */
static int64_t
claim_kind(struct fixture *f, const char *nonce, const char *kind)
{
	const struct msg *c = claim(f, nonce);

	assert_string_equal(kind, c->claimed.kind);
	return c->claimed.intent_id;
}

static void
receipt_is(struct fixture *f, int64_t intent, const char *nonce, int64_t id)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt = (struct msg_receipt){intent, nonce, id};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
}

/* It is what was found, or not: nobody knows before its receipt. */
static void
what_was_written_since_may_be_what_was_found(void **state)
{
	struct fixture *f = *state;
	const struct msg_adoptable *told;
	int64_t intent;

	(void)acknowledged(f);
	(void)end_attempt(f, ATT_1, "lost");
	(void)send_next(f, NONCE_1, 76); /* the completion notice */
	told = next_adoptable(f, 0);
	hold_reply_at_101(f);
	assert_failed(adopt_told(f, told, 101, 77), "refused");
	intent = claim_kind(f, NONCE_2, "holding_reply");
	assert_failed(adopt_told(f, told, 101, 77), "refused");
	/* Neither its own death nor a clock set back makes it forget. */
	fixture_restart(f);
	fixture_wait(-7200000);
	assert_failed(adopt_told(f, told, 101, 77), "refused");
	assert_string_equal("unknown -", adopted(f, 101));
	receipt_is(f, intent, NONCE_2, 77);
	assert_failed(adopt_told(f, told, 101, 77), "refused");
	assert_true(adopt_told(f, told, 101, 78)->done.changed);
}

/* A notice that asks no more says what the listing did not leave out. */
static void
what_was_said_anew_since_may_be_what_was_found(void **state)
{
	struct fixture *f = *state;
	const struct msg_adoptable *told;
	int64_t intent;

	(void)acknowledged(f);
	(void)end_attempt(f, ATT_1, "lost");
	told = next_adoptable(f, 0);
	(void)redispatch_event(f, 101);
	intent = claim_kind(f, NONCE_1, "completion");
	assert_string_equal("0",
	    sql_get(f,
		"SELECT body LIKE '%%redispatch%%' FROM outbox WHERE id = %d",
		(int)intent));
	fixture_restart(f);
	fixture_wait(-7200000);
	assert_failed(adopt_told(f, told, 101, 77), "refused");
	assert_string_equal("unknown -", adopted(f, 101));
	/* Looked at again, its words are among those left out. */
	assert_true(adopt(f, 101, 77)->done.changed);
}

/* Claimed since as it was told of, it was left out, and settles nothing. */
static void
what_was_told_of_may_be_claimed_since(void **state)
{
	struct fixture *f = *state;
	const struct msg_adoptable *told;

	(void)acknowledged(f);
	(void)end_attempt(f, ATT_1, "lost");
	told = next_adoptable(f, 0);
	(void)claim_kind(f, NONCE_1, "completion");
	hold_reply_at_101(f);
	receipt_is(f, claim_kind(f, NONCE_2, "holding_reply"), NONCE_2, 78);
	fixture_restart(f);
	assert_true(adopt_told(f, told, 101, 77)->done.changed);
}

/* Another event's row names it, or another task's of the same event. */
static void
what_another_row_names_is_not_adopted(void **state)
{
	static const char *const names[] = {
	    "ack_id", "reply_id", "adopted_reply_id"};
	struct fixture *f = *state;
	size_t i;

	(void)acknowledged(f);
	(void)end_attempt(f, ATT_1, "lost");
	(void)redispatch_event(f, 101);
	(void)launch(f, 101, ATT_2);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		sql_put(f,
		    "UPDATE task_events SET %s = 77"
		    " WHERE NOT (event_id = 101 AND task_id = 1)",
		    names[i]);
		assert_failed(adopt(f, 101, 77), "refused");
		sql_put(f,
		    "UPDATE task_events SET %s = NULL"
		    " WHERE NOT (event_id = 101 AND task_id = 1)",
		    names[i]);
	}
	assert_true(adopt(f, 101, 77)->done.changed);
}

/* COUNT replies to EVENT, each twice as long in JSON as it is. */
static void
post_quotes(
    struct fixture *f, const char *token, int64_t event, int first, int count)
{
	static char body[200000];
	struct msg m = {.type = MSG_POST};
	char hash[65];
	int i;

	memset(body, '"', sizeof(body));
	for (i = first; i < first + count; i++) {
		(void)snprintf(hash, sizeof(hash), "%064x", i);
		m.post = (struct msg_post){token, event, "worker_reply", hash,
		    {body, sizeof(body)}, {"x", 1}};
		(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS);
	}
}

/*
 * 101 and 102 are acknowledged, and 103 is answered at the place of 101, with
 * as much as one message holds, and then with more.
 */
static void
a_place_with_too_many_words_is_passed_over(void **state)
{
	struct fixture *f = *state;
	const char *token;
	struct msg v;

	(void)record_event(f, 103);
	v = verdict_of(f, 103, "admitted");
	v.verdict.conversation_key = "k";
	v.verdict.reply_recording_id = REPLY_TO(101);
	(void)fixture_get(f, &v, ROLE_INTAKE, "", MSG_VERDICT_IS);
	token = acknowledged(f);
	(void)get_dispatch(f, token, 102, ATT_1);
	(void)ack_dispatch(f, token, 102, 8, ATT_1);
	(void)get_dispatch(f, token, 103, ATT_1);
	post_quotes(f, token, 103, 0, 20);
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(101, next_adoptable(f, 0)->event_id);
	assert_true(next_adoptable(f, 0)->own.len > 8000000);
	sql_put(f,
	    "UPDATE outbox SET body = body || body"
	    " WHERE id IN (SELECT id FROM outbox WHERE kind = 'worker_reply'"
	    " LIMIT 1)");
	assert_int_equal(102, next_adoptable(f, 0)->event_id);
	assert_false(next_adoptable(f, 102)->found);
}

static const char *
listed(struct fixture *f, int64_t intent, const char *nonce, int64_t id)
{
	struct msg m = {.type = MSG_LISTED};

	m.listed = (struct msg_listed){intent, nonce, {&id, 1}};
	return fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED)->settled.state;
}

/*
 * A reply that landed without a receipt is what a listing shows: the intent
 * takes it first, and that adopts it.
 */
static void
its_own_reply_in_doubt_is_settled_before_it_is_adopted(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);
	int64_t intent;

	post(f, token, 101, HASH_1);
	(void)end_attempt(f, ATT_1, "lost");
	assert_false(next_adoptable(f, 0)->found); /* it is pending */
	intent = claim(f, NONCE_1)->claimed.intent_id;
	assert_false(next_adoptable(f, 0)->found);
	assert_failed(adopt(f, 101, 77), "refused");
	assert_string_equal("unknown -", adopted(f, 101));
	assert_string_equal("sent", listed(f, intent, NONCE_1, 77));
	assert_string_equal("unknown 77", adopted(f, 101));
	assert_false(adopt(f, 101, 77)->done.changed);
}

/* A person's doubt about it is not talked over, either. */
static void
beside_its_own_reply_in_doubt_none_is_adopted(void **state)
{
	static const char *const undecided[] = {"indeterminate", "abandoned"};
	struct fixture *f = *state;
	const char *token = acknowledged(f);
	size_t i;

	post(f, token, 101, HASH_1);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)end_attempt(f, ATT_1, "lost");
	for (i = 0; i < 2; i++) {
		sql_ok(f,
		    "UPDATE outbox SET state = '%s'"
		    " WHERE kind = 'worker_reply'",
		    undecided[i]);
		assert_false(next_adoptable(f, 0)->found);
		assert_failed(adopt(f, 101, 77), "refused");
	}
}

/*
 * Claimed in the moment of the acknowledgement it does not count among the
 * replies, and one is found; it may all the same be what was found.
 */
static void
what_is_adopted_may_be_the_intents_own_message(void **state)
{
	struct fixture *f = *state;
	const char *token;
	int64_t intent;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	post(f, token, 101, HASH_1);
	intent = claim(f, NONCE_1)->claimed.intent_id;
	(void)ack_dispatch(f, token, 101, 0, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	assert_true(next_adoptable(f, 0)->found);
	assert_int_equal(MSG_DONE, adopt(f, 101, 77)->type);
	assert_string_equal("sent", listed(f, intent, NONCE_1, 77));
	assert_string_equal("unknown 77", adopted(f, 101));
}

/* Of another event's reply, or of a notice, it is not. */
static void
what_is_adopted_is_nobody_elses_message(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);
	int64_t intent;

	(void)get_dispatch(f, token, 102, ATT_1);
	post(f, token, 102, HASH_1);
	intent = claim(f, NONCE_1)->claimed.intent_id;
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(MSG_DONE, adopt(f, 101, 77)->type);
	assert_string_equal("indeterminate", listed(f, intent, NONCE_1, 77));
	intent = claim(f, NONCE_2)->claimed.intent_id;
	assert_string_equal("completion",
	    sql_get(f, "SELECT kind FROM outbox WHERE id = %d", (int)intent));
	assert_string_equal("indeterminate", listed(f, intent, NONCE_2, 77));
}

/* The table says so by itself, too. */
static void
adoption_by_raw_sql_keeps_to_its_rule(void **state)
{
	struct fixture *f = *state;
	const char *token = acknowledged(f);

	(void)get_dispatch(f, token, 102, ATT_1);
	sql_refused(f, "UPDATE task_events SET adopted_reply_id = 77");
	(void)end_attempt(f, ATT_1, "lost");
	sql_refused(f,
	    "UPDATE task_events SET adopted_reply_id = 77"
	    " WHERE event_id = 102");
	sql_refused(f,
	    "UPDATE task_events SET adopted_reply_id = 77, reply_id = 9"
	    " WHERE event_id = 101");
	sql_refused(f,
	    "UPDATE task_events SET adopted_reply_id = 77,"
	    " outcome = 'succeeded' WHERE event_id = 101");
	sql_ok(f,
	    "UPDATE task_events SET adopted_reply_id = 77"
	    " WHERE event_id = 101");
	sql_refused(f,
	    "UPDATE task_events SET adopted_reply_id = 78"
	    " WHERE event_id = 101");
	sql_refused(f,
	    "UPDATE task_events SET adopted_reply_id = NULL"
	    " WHERE event_id = 101");
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    T("I12", the_one_reply_that_was_sent_is_adopted_at_the_end),
	    TEST(a_receipt_behind_the_end_adopts_as_well),
	    T("I12", of_two_replies_none_is_adopted),
	    TEST(a_resolved_reply_is_adopted),
	    TEST(a_refused_reply_does_not_count),
	    TEST(a_reply_before_the_acknowledgement_is_not_adopted),
	    T("I12", the_acknowledgement_itself_is_not_adopted),
	    T("I12", only_unknown_and_acknowledged_work_adopts),
	    T("I12", an_adoptable_event_says_where_and_when_to_look),
	    TEST(a_window_ends_at_the_first_later_acknowledgement),
	    T("I12", what_was_found_is_linked_once),
	    T("I12", what_is_not_adoptable_is_refused),
	    T("I12", anothers_message_is_not_adopted),
	    T("T55", what_was_written_since_may_be_what_was_found),
	    T("T55", what_was_said_anew_since_may_be_what_was_found),
	    TEST(what_was_told_of_may_be_claimed_since),
	    T("I12", what_another_row_names_is_not_adopted),
	    TEST(a_place_with_too_many_words_is_passed_over),
	    T("I12", its_own_reply_in_doubt_is_settled_before_it_is_adopted),
	    TEST(beside_its_own_reply_in_doubt_none_is_adopted),
	    TEST(what_is_adopted_may_be_the_intents_own_message),
	    T("T49", what_is_adopted_is_nobody_elses_message),
	    T("I12", adoption_by_raw_sql_keeps_to_its_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
