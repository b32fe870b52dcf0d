/* Messages: written, claimed, sent, doubted (operator.md 1, design L8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define HASH_A \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B \
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char token[TOKEN_LEN + 1];

static void
admitted(struct fixture *f, int64_t id)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "k%d", (int)id);
	(void)record_event(f, id);
	assert_string_equal("admitted", admit_event(f, id, key));
}

static void
launched(struct fixture *f)
{
	admitted(f, 101);
	(void)snprintf(token, sizeof(token), "%s", launch(f, 101, ATT_1));
}

static struct msg *
post(struct fixture *f, const char *kind, const char *hash, const char *text)
{
	struct msg m = {.type = MSG_POST};

	m.post = (struct msg_post){.token = token,
	    .event_id = 101,
	    .kind = kind,
	    .hash = hash,
	    .comment = {text, strlen(text)},
	    .line = {text, strlen(text)}};
	return fixture_ask(f, &m, ROLE_MCPD, ATT_1);
}

static struct msg *
receipt(struct fixture *f, int64_t intent, const char *nonce, int64_t id)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt = (struct msg_receipt){intent, nonce, id};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
refused(struct fixture *f, int64_t intent, const char *nonce)
{
	struct msg m = {.type = MSG_REFUSED};

	m.refused = (struct msg_refused){intent, nonce, "403"};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
listed(struct fixture *f, int64_t intent, const char *nonce, const int64_t *ids,
    size_t count)
{
	struct msg m = {.type = MSG_LISTED};

	m.listed = (struct msg_listed){intent, nonce, {ids, count}};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg_sending *
next_sending(struct fixture *f, int64_t after, int64_t age)
{
	struct msg m = {.type = MSG_NEXT_SENDING};

	m.next_sending = (struct msg_next_sending){after, age};
	return &fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SENDING)->sending;
}

/* An intent of a kind at one place, pending and due, by raw SQL. */
static int64_t
intent_at(struct fixture *f, const char *message_kind, int64_t recording,
    const char *body)
{
	static int n;

	sql_ok(f,
	    "INSERT INTO outbox (intent_key, kind, event_id, bucket_id,"
	    " argument_sha256, message_kind, recording_id, body, created_at,"
	    " not_before) VALUES ('x%d', 'worker_reply', 101, 10, 'h', '%s',"
	    " %lld, '%s', '2026-01-05T09:00:00.000000000Z',"
	    " '2026-01-05T09:00:00.000000000Z')",
	    n++, message_kind, (long long)recording, body);
	return sqlite3_last_insert_rowid(f->l.db);
}

/* ---- claims ------------------------------------------------------------ */

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

	admitted(f, 101);
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
	admitted(f, 101);
	assert_int_equal(50, claim(f, NONCE_1)->claimed.due_in_ms);
}

static void
a_claim_fires_the_armed_rows(void **state)
{
	struct fixture *f = *state;

	launched(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	assert_string_equal(
	    "fired", sql_get(f, "SELECT guard FROM task_events"));
	/* The worker is told, and the guard stays as it fired. */
	assert_true(
	    get_dispatch(f, token, 0, ATT_1)->instruction.guard_acknowledged);
	assert_string_equal("SETTLED", msg_name(refused(f, 1, NONCE_1)->type));
	assert_true(
	    get_dispatch(f, token, 0, ATT_1)->instruction.guard_acknowledged);
}

/* A launch, and whether its worker is told that it was acknowledged. */
static bool
is_told_acknowledged(struct fixture *f, int64_t id, const char *attempt)
{
	(void)snprintf(token, sizeof(token), "%s", launch(f, id, attempt));
	return get_dispatch(f, token, id, attempt)
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
		admitted(f, 101);
		fixture_wait(30000);
		assert_true(claim(f, NONCE_1)->claimed.found);
		sql_put(f,
		    "UPDATE outbox SET state = '%s', receipt_id ="
		    " CASE WHEN '%s' = 'sent' THEN 5 END",
		    states[i], states[i]);
		(void)snprintf(
		    token, sizeof(token), "%s", launch(f, 101, ATT_1));
		assert_string_equal(
		    "fired", sql_get(f, "SELECT guard FROM task_events"));
		assert_true(get_dispatch(f, token, 0, ATT_1)
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

	admitted(f, 101);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	(void)refused(f, 1, NONCE_1);
	(void)launch(f, 101, ATT_1);
	assert_string_equal(
	    "armed", sql_get(f, "SELECT guard FROM task_events"));
}

/* Refused under a task, its row stays as it fired; a later task's does not. */
static void
a_refusal_is_missed_by_its_task_only(void **state)
{
	struct fixture *f = *state;

	launched(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	assert_string_equal("canceled", refused(f, 1, NONCE_1)->settled.state);
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
		admitted(f, id);
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
		admitted(f, 101 + (int64_t)i);
		sql_put(f,
		    "UPDATE events SET state = '%s', reason = 'x'"
		    " WHERE id = %d",
		    states[i], 101 + (int)i);
	}
	admitted(f, 110);
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

	launched(f);
	fixture_wait(20000);
	/* Refused, it has not taken anything back. */
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	assert_failed(get_dispatch(f, token, 0, ATT_1), "held");
	assert_string_equal("pending", intent_state(f, 1));
	sql_ok(f, "DELETE FROM hold_marker");
	fixture_forget(f);
	assert_false(
	    get_dispatch(f, token, 0, ATT_1)->instruction.guard_acknowledged);
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

	admitted(f, 101);
	admitted(f, 102);
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
	(void)receipt(f, 1, NONCE_1, 77);
	assert_false(claim(f, NONCE_1)->claimed.found);
}

static void
a_flush_does_not_claim_twice(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_CLAIM}, *c;

	admitted(f, 101);
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

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	admitted(f, 102);
	(void)post(f, "worker_reply", HASH_A, "done");
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

/* ---- answers ----------------------------------------------------------- */

static void
claimed_guard(struct fixture *f)
{
	admitted(f, 101);
	fixture_wait(30000);
	assert_int_equal(1, claim(f, NONCE_1)->claimed.intent_id);
	fixture_forget(f);
}

static void
a_receipt_settles_its_claim(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	claimed_guard(f);
	r = receipt(f, 1, NONCE_1, 77);
	assert_string_equal("sent", r->settled.state);
	assert_string_equal("{\"type\":\"outbox\",\"intent_id\":1,"
			    "\"kind\":\"guard_ack\",\"state\":\"sent\","
			    "\"event_id\":101,\"receipt_id\":77}",
	    f->lines[0]);
	r = receipt(f, 1, NONCE_1, 77);
	assert_string_equal("sent", r->settled.state);
	assert_int_equal(1, f->line_count);
	assert_failed(receipt(f, 1, NONCE_1, 78), "refused");
	assert_failed(receipt(f, 1, NONCE_2, 77), "refused");
	assert_failed(receipt(f, 9, NONCE_1, 77), "not_found");
}

static void
a_receipt_of_anothers_is_refused(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	claimed_guard(f);
	admitted(f, 102);
	fixture_wait(30000);
	(void)receipt(f, 1, NONCE_1, 77);
	assert_int_equal(2, claim(f, NONCE_2)->claimed.intent_id);
	assert_failed(receipt(f, 2, NONCE_2, 77), "refused");
	assert_string_equal("sending", intent_state(f, 2));
	/* Of another kind it may be the same number. */
	sql_put(f, "UPDATE outbox SET message_kind = 'comment' WHERE id = 2");
	r = receipt(f, 2, NONCE_2, 77);
	assert_string_equal("sent", r->settled.state);
}

static void
a_refusal_is_a_column(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	assert_string_equal("canceled", refused(f, 1, NONCE_1)->settled.state);
	assert_string_equal(
	    "1 403", sql_get(f, "SELECT refused || ' ' || note FROM outbox"));
	assert_string_equal("canceled", refused(f, 1, NONCE_1)->settled.state);
	assert_int_equal(1, f->line_count);
	/* A receipt that comes after does not undo it. */
	assert_string_equal(
	    "canceled", receipt(f, 1, NONCE_1, 77)->settled.state);
}

static void
a_deferral_delays_the_next_listing(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_DEFER};

	claimed_guard(f);
	fixture_wait(45000); /* that long the request took to fail */
	m.defer = (struct msg_defer){1, NONCE_1, 3, 60000};
	assert_string_equal("sending",
	    fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED)->settled.state);
	assert_int_equal(0, f->line_count);
	fixture_wait(59999);
	assert_false(next_sending(f, 0, 0)->found);
	fixture_wait(1);
	assert_true(next_sending(f, 0, 0)->found);
	assert_int_equal(3, next_sending(f, 0, 0)->failures);
	assert_string_equal(NONCE_1, next_sending(f, 0, 0)->nonce);
	assert_false(next_sending(f, 1, 0)->found);
}

static void
a_young_sending_is_left_alone(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	assert_int_equal(60000, next_sending(f, 0, 60000)->in_ms.value);
	fixture_wait(59999);
	assert_false(next_sending(f, 0, 60000)->found);
	assert_int_equal(1, next_sending(f, 0, 60000)->in_ms.value);
	assert_false(next_sending(f, 0, INT64_C(18446744073710))->found);
	assert_false(next_sending(f, 0, INT64_MAX)->found);
	fixture_wait(1);
	assert_true(next_sending(f, 0, 60000)->found);
}

static void
a_doubt_waits_for_a_person(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_IN_DOUBT};

	claimed_guard(f);
	m.in_doubt = (struct msg_in_doubt){1, NONCE_1, 10, "listing failed"};
	assert_string_equal("indeterminate",
	    fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED)->settled.state);
	assert_string_equal("10 listing failed",
	    sql_get(f,
		"SELECT reconcile_failures || ' ' || note"
		" FROM outbox"));
	assert_false(next_sending(f, 0, 0)->found);
	assert_string_equal("indeterminate",
	    listed(f, 1, NONCE_1, (int64_t[]){77}, 1)->settled.state);
}

/* ---- reconciliation ---------------------------------------------------- */

/* Neither start has anything to post, and the first finds it by listing. */
static void
what_was_sending_at_a_crash_is_listed(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	fixture_restart(f);
	fixture_wait(60000);
	assert_false(claim(f, NONCE_2)->claimed.found);
	assert_int_equal(1, next_sending(f, 0, 60000)->intent_id);
	assert_string_equal(
	    "sent", listed(f, 1, NONCE_1, (int64_t[]){77}, 1)->settled.state);
	fixture_restart(f);
	fixture_wait(3600000);
	assert_false(claim(f, NONCE_3)->claimed.found);
	assert_false(next_sending(f, 0, 0)->found);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM outbox"));
}

/* Not found there either: that is a doubt, and no reason to post. */
static void
what_is_not_found_is_not_sent_again(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	fixture_restart(f);
	fixture_wait(60000);
	assert_string_equal(
	    "indeterminate", listed(f, 1, NONCE_1, NULL, 0)->settled.state);
	fixture_restart(f);
	fixture_wait(3600000);
	assert_false(claim(f, NONCE_2)->claimed.found);
	assert_false(next_sending(f, 0, 0)->found);
}

/* Two intents of one text at one place; the first is being sent. */
static int64_t
sending_comment(struct fixture *f, const char *body)
{
	int64_t id;

	admitted(f, 101);
	id = intent_at(f, "comment", 700, body);
	assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
	fixture_forget(f);
	return id;
}

static void
exactly_one_message_is_adopted(void **state)
{
	struct fixture *f = *state;
	int64_t id = sending_comment(f, "<div>hi</div>");
	struct msg *r = listed(f, id, NONCE_1, (int64_t[]){77, 77}, 2);

	assert_string_equal("sent", r->settled.state);
	assert_int_equal(77,
	    sql_int(f, "SELECT receipt_id FROM outbox WHERE state = 'sent'"));
	assert_int_equal(1, f->line_count);
}

static void
none_or_two_are_a_doubt(void **state)
{
	struct fixture *f = *state;
	int64_t id = sending_comment(f, "<div>hi</div>");

	assert_string_equal("indeterminate",
	    listed(f, id, NONCE_1, (int64_t[]){77, 78}, 2)->settled.state);
	assert_string_equal("2 matching messages",
	    sql_get(
		f, "SELECT note FROM outbox WHERE state = 'indeterminate'"));
	id = intent_at(f, "comment", 701, "other");
	assert_int_equal(id, claim(f, NONCE_2)->claimed.intent_id);
	assert_string_equal(
	    "indeterminate", listed(f, id, NONCE_2, NULL, 0)->settled.state);
}

static void
what_is_spoken_for_is_no_candidate(void **state)
{
	struct fixture *f = *state;
	int64_t id, other;

	admitted(f, 101);
	(void)snprintf(token, sizeof(token), "%s", launch(f, 101, ATT_1));
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)ack_dispatch(f, token, 101, 72, ATT_1);
	other = intent_at(f, "comment", 700, "another text");
	assert_int_equal(other, claim(f, NONCE_2)->claimed.intent_id);
	(void)receipt(f, other, NONCE_2, 71); /* another intent's */
	sql_ok(f,
	    "UPDATE task_events SET outcome = 'unknown',"
	    " adopted_reply_id = 74;"
	    "UPDATE task_events SET reply_id = 73");
	id = intent_at(f, "comment", 700, "hi");
	assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
	assert_string_equal("sent",
	    listed(f, id, NONCE_1, (int64_t[]){71, 72, 73, 74, 75}, 5)
		->settled.state);
	assert_int_equal(75,
	    sql_int(f, "SELECT receipt_id FROM outbox WHERE id = %d", (int)id));
}

/* Nor is it when nothing else is there. */
static void
what_is_spoken_for_alone_is_a_doubt(void **state)
{
	static const char *const speakers[] = {"ack_id", "reply_id",
	    "adopted_reply_id", "another intent's receipt"};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(speakers) / sizeof(speakers[0]); i++) {
		int64_t id = sending_comment(f, "<div>hi</div>");

		(void)launch(f, 101, ATT_1);
		if (i < 3)
			sql_put(
			    f, "UPDATE task_events SET %s = 77", speakers[i]);
		else
			sql_put(f,
			    "UPDATE outbox SET state = 'sent', receipt_id ="
			    " 77, message_kind = 'comment', sending_at = 's'"
			    " WHERE id <> %d",
			    (int)id);
		assert_string_equal("indeterminate",
		    listed(f, id, NONCE_1, (int64_t[]){77}, 1)->settled.state);
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* A boost and a comment of one number are two messages. */
static void
a_reply_does_not_speak_for_a_boost(void **state)
{
	struct fixture *f = *state;
	int64_t id;

	admitted(f, 101);
	(void)launch(f, 101, ATT_1);
	sql_ok(f, "UPDATE task_events SET reply_id = 73");
	id = intent_at(f, "boost", 700, "hi");
	assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
	assert_string_equal(
	    "sent", listed(f, id, NONCE_1, (int64_t[]){73}, 1)->settled.state);
}

static void
a_rival_of_the_same_text_is_a_doubt(void **state)
{
	static const struct {
		const char *state, *body;
		int64_t recording;
		bool is_rival;
	} rivals[] = {
	    {"pending", "<div>hi  there</div>", 700, true},
	    {"sending", "hi<br />there", 700, true},
	    {"indeterminate", "hi there", 700, true},
	    {"abandoned", "hi there", 700, true},
	    {"canceled", "hi there", 700, false},
	    {"pending", "hi you", 700, false},
	    {"pending", "hi there", 701, false},
	};
	struct fixture *f = *state;
	int64_t id;
	size_t i;

	admitted(f, 101);
	for (i = 0; i < sizeof(rivals) / sizeof(rivals[0]); i++) {
		sql_put(f, "DELETE FROM outbox");
		id = intent_at(f, "comment", 700, "<p>hi there</p>");
		assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
		sql_put(f,
		    "INSERT INTO outbox (intent_key, kind, state, bucket_id,"
		    " message_kind, recording_id, body, created_at,"
		    " not_before, sending_at) VALUES ('rival', 'completion',"
		    " '%s', 10, 'comment', %d, '%s', 'c', 'n', 's')",
		    rivals[i].state, (int)rivals[i].recording, rivals[i].body);
		assert_string_equal(
		    rivals[i].is_rival ? "indeterminate" : "sent",
		    listed(f, id, NONCE_1, (int64_t[]){77}, 1)->settled.state);
	}
}

/* ---- what workers post ------------------------------------------------- */

static void
a_worker_posts_what_it_pulled(void **state)
{
	struct fixture *f = *state;
	struct msg *p;

	launched(f);
	assert_failed(post(f, "worker_reply", HASH_A, "x"), "not_exposed");
	(void)get_dispatch(f, token, 0, ATT_1);
	fixture_forget(f);
	p = post(f, "worker_reply", HASH_A, "<p>done</p>");
	assert_int_equal(MSG_POST_IS, p->type);
	assert_string_equal("pending", p->post_is.state);
	assert_string_equal("comment", p->post_is.message_kind);
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_string_equal("5101 <p>done</p> 1",
	    sql_get(f,
		"SELECT recording_id || ' ' || body || ' ' || task_id"
		" FROM outbox WHERE kind = 'worker_reply'"));
	p = post(f, "worker_ack", HASH_A, "\xf0\x9f\x91\x8d");
	assert_string_equal("boost", p->post_is.message_kind);
	assert_int_equal(RECORDING(101),
	    sql_int(f,
		"SELECT recording_id FROM outbox WHERE kind = 'worker_ack'"));
}

static void
a_reply_goes_where_the_event_says(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_POST};

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	sql_ok(f, "UPDATE events SET reply_kind = 'chat_line'");
	m.post = (struct msg_post){.token = token,
	    .event_id = 101,
	    .kind = "worker_reply",
	    .hash = HASH_A,
	    .comment = {"<p>html</p>", 11},
	    .line = {"plain", 5}};
	(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS);
	assert_string_equal("chat_line plain",
	    sql_get(f,
		"SELECT message_kind || ' ' || body FROM outbox"
		" WHERE kind = 'worker_reply'"));
	sql_ok(f, "UPDATE events SET reply_recording_id = 0");
	m.post.hash = HASH_B;
	assert_failed(fixture_ask(f, &m, ROLE_MCPD, ATT_1), "not_dispatchable");
}

static void
the_same_argument_is_the_same_message(void **state)
{
	struct fixture *f = *state;
	struct msg *first, *again;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	first = post(f, "worker_reply", HASH_A, "one");
	again = post(f, "worker_reply", HASH_A, "rendered otherwise");
	assert_int_equal(first->post_is.intent_id, again->post_is.intent_id);
	assert_string_equal("one",
	    sql_get(f, "SELECT body FROM outbox WHERE kind = 'worker_reply'"));
	again = post(f, "worker_reply", HASH_B, "one");
	assert_int_not_equal(
	    first->post_is.intent_id, again->post_is.intent_id);
}

static void
twenty_of_a_kind_are_enough(void **state)
{
	struct fixture *f = *state;
	char hash[65];
	int i;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	for (i = 0; i < 20; i++) {
		(void)snprintf(hash, sizeof(hash), "%064d", i);
		assert_int_equal(
		    MSG_POST_IS, post(f, "worker_reply", hash, "x")->type);
	}
	assert_failed(post(f, "worker_reply", HASH_A, "x"), "invalid_report");
	assert_int_equal(MSG_POST_IS, /* it is there already */
	    post(f, "worker_reply", hash, "x")->type);
	assert_int_equal(MSG_POST_IS, post(f, "worker_ack", HASH_A, "x")->type);
}

static void
an_empty_post_is_invalid(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	assert_failed(post(f, "worker_reply", HASH_A, ""), "invalid_report");
	assert_failed(post(f, "guard_ack", HASH_A, "x"), "refused");
}

static void
a_worker_hears_what_became_of_it(void **state)
{
	struct fixture *f = *state;
	struct msg *p;
	int64_t id;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	id = post(f, "worker_reply", HASH_A, "one")->post_is.intent_id;
	assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
	fixture_forget(f);
	(void)receipt(f, id, NONCE_1, 77);
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_POST_SETTLED, f->notices[0].type);
	assert_int_equal(id, f->notices[0].id);
	assert_string_equal(ATT_1, f->notices[0].attempt);
	p = post(f, "worker_reply", HASH_A, "one");
	assert_string_equal("sent", p->post_is.state);
	assert_int_equal(77, p->post_is.receipt_id.value);
	assert_false(p->post_is.refused);
}

static void
a_refused_post_says_so(void **state)
{
	struct fixture *f = *state;
	struct msg *p;
	int64_t id;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	id = post(f, "worker_reply", HASH_A, "one")->post_is.intent_id;
	(void)claim(f, NONCE_1);
	(void)refused(f, id, NONCE_1);
	p = post(f, "worker_reply", HASH_A, "one");
	assert_string_equal("canceled", p->post_is.state);
	assert_true(p->post_is.refused);
	assert_string_equal("403", p->post_is.note);
}

/* Whatever became of its task since, it is sent. */
static void
a_pending_post_outlives_its_task(void **state)
{
	struct fixture *f = *state;

	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)post(f, "worker_reply", HASH_A, "one");
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("worker_reply", claim(f, NONCE_1)->claimed.kind);
}

static void
a_renewal_hold_is_kept_by_its_credential(void **state)
{
	struct fixture *f = *state;
	struct msg of = {.type = MSG_RENEWAL_HOLD_OF}, *is;
	struct msg m = {.type = MSG_RENEWAL_HOLD};

	m.renewal_hold =
	    (struct msg_renewal_hold){NONCE_1, "invalid_client", ""};
	assert_true(
	    fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DONE)->done.changed);
	assert_false(
	    fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DONE)->done.changed);
	fixture_restart(f);
	of.renewal_hold_of.fingerprint = NONCE_1;
	is = fixture_get(f, &of, ROLE_OUTBOX, "", MSG_RENEWAL_HOLD_IS);
	assert_true(is->renewal_hold_is.found);
	assert_string_equal("invalid_client", is->renewal_hold_is.reason);
	assert_string_equal("", is->renewal_hold_is.until);
	of.renewal_hold_of.fingerprint = NONCE_2;
	is = fixture_get(f, &of, ROLE_OUTBOX, "", MSG_RENEWAL_HOLD_IS);
	assert_false(is->renewal_hold_is.found);
	m.renewal_hold.until = "soon";
	assert_failed(fixture_ask(f, &m, ROLE_OUTBOX, ""), "refused");
	m.renewal_hold.until = "";
	m.renewal_hold.reason = "";
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DONE);
	of.renewal_hold_of.fingerprint = NONCE_1;
	is = fixture_get(f, &of, ROLE_OUTBOX, "", MSG_RENEWAL_HOLD_IS);
	assert_false(is->renewal_hold_is.found);
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
	    TEST(a_receipt_settles_its_claim),
	    PROVES("T52", a_receipt_of_anothers_is_refused),
	    TEST(a_refusal_is_a_column),
	    PROVES("T53", a_deferral_delays_the_next_listing),
	    TEST(a_young_sending_is_left_alone),
	    TEST(a_doubt_waits_for_a_person),
	    PROVES("T48", what_was_sending_at_a_crash_is_listed),
	    PROVES("T48", what_is_not_found_is_not_sent_again),
	    TEST(exactly_one_message_is_adopted),
	    PROVES("T49", none_or_two_are_a_doubt),
	    PROVES("T49", what_is_spoken_for_is_no_candidate),
	    PROVES("T49", what_is_spoken_for_alone_is_a_doubt),
	    TEST(a_reply_does_not_speak_for_a_boost),
	    PROVES("T49", a_rival_of_the_same_text_is_a_doubt),
	    TEST(a_worker_posts_what_it_pulled),
	    TEST(a_reply_goes_where_the_event_says),
	    TEST(the_same_argument_is_the_same_message),
	    TEST(twenty_of_a_kind_are_enough),
	    TEST(an_empty_post_is_invalid),
	    TEST(a_worker_hears_what_became_of_it),
	    TEST(a_refused_post_says_so),
	    TEST(a_pending_post_outlives_its_task),
	    TEST(a_renewal_hold_is_kept_by_its_credential),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
