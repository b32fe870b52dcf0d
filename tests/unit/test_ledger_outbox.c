/* What becomes of a claimed message (operator.md 1, design L8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/outbox_scene.h"
#include "tests/unit/trap.h"

static struct msg *
listed(struct fixture *f, int64_t intent, const char *nonce, const int64_t *ids,
    size_t count)
{
	struct msg m = {.type = MSG_LISTED};

	m.listed = (struct msg_listed){intent, nonce, {ids, count}};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static void
defer(struct fixture *f, int64_t intent, const char *nonce, int64_t delay_ms)
{
	struct msg m = {.type = MSG_DEFER};

	m.defer = (struct msg_defer){intent, nonce, 1, delay_ms};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
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

/* ---- answers ----------------------------------------------------------- */

static void
claimed_guard(struct fixture *f)
{
	admit_apart(f, 101);
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
	r = tell_receipt(f, 1, NONCE_1, 77);
	assert_string_equal("sent", r->settled.state);
	assert_string_equal("{\"type\":\"outbox\",\"intent_id\":1,"
			    "\"kind\":\"guard_ack\",\"state\":\"sent\","
			    "\"event_id\":101,\"receipt_id\":77}",
	    f->lines[0]);
	r = tell_receipt(f, 1, NONCE_1, 77);
	assert_string_equal("sent", r->settled.state);
	assert_int_equal(1, f->line_count);
	assert_failed(tell_receipt(f, 1, NONCE_1, 78), "refused");
	assert_failed(tell_receipt(f, 1, NONCE_2, 77), "refused");
	assert_failed(tell_receipt(f, 9, NONCE_1, 77), "not_found");
}

static void
a_receipt_of_anothers_is_refused(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	claimed_guard(f);
	admit_apart(f, 102);
	fixture_wait(30000);
	(void)tell_receipt(f, 1, NONCE_1, 77);
	assert_int_equal(2, claim(f, NONCE_2)->claimed.intent_id);
	assert_failed(tell_receipt(f, 2, NONCE_2, 77), "refused");
	assert_string_equal("sending", intent_state(f, 2));
	/* Of another kind it may be the same number. */
	sql_put(f, "UPDATE outbox SET message_kind = 'comment' WHERE id = 2");
	r = tell_receipt(f, 2, NONCE_2, 77);
	assert_string_equal("sent", r->settled.state);
}

static void
a_refusal_is_a_column(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	assert_string_equal(
	    "canceled", tell_refused(f, 1, NONCE_1)->settled.state);
	assert_string_equal(
	    "1 403", sql_get(f, "SELECT refused || ' ' || note FROM outbox"));
	assert_string_equal(
	    "canceled", tell_refused(f, 1, NONCE_1)->settled.state);
	assert_int_equal(1, f->line_count);
	/* A receipt that comes after does not undo it. */
	assert_string_equal(
	    "canceled", tell_receipt(f, 1, NONCE_1, 77)->settled.state);
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

/* Nothing is found before the time that was named, and something then. */
static void
found_in(struct fixture *f, int64_t age, int64_t ms)
{
	struct msg_sending *s = next_sending(f, 0, age);

	assert_false(s->found);
	assert_true(s->in_ms.has);
	assert_int_equal(ms, s->in_ms.value);
	fixture_wait(ms - 1);
	assert_int_equal(1, next_sending(f, 0, age)->in_ms.value);
	fixture_wait(1);
	assert_true(next_sending(f, 0, age)->found);
}

/* The clock was set back while it was posted. */
static void
what_backs_off_may_be_too_young_as_well(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	fixture_wait(-10000);
	defer(f, 1, NONCE_1, 30000);
	fixture_wait(30000);
	found_in(f, 60000, 40000);
}

/* A reload has raised the age. */
static void
what_backed_off_may_be_too_young_again(void **state)
{
	struct fixture *f = *state;

	claimed_guard(f);
	fixture_wait(60000);
	defer(f, 1, NONCE_1, 30000);
	fixture_wait(30000);
	assert_true(next_sending(f, 0, 60000)->found);
	found_in(f, 120000, 30000);
}

/* Of two the first: neither's age counts for the other's backing off. */
static void
the_first_of_two_to_be_listed_is_waited_for(void **state)
{
	struct fixture *f = *state;

	admit_apart(f, 101);
	admit_apart(f, 102);
	fixture_wait(30000);
	assert_int_equal(1, claim(f, NONCE_1)->claimed.intent_id);
	fixture_wait(5000);
	assert_int_equal(2, claim(f, NONCE_2)->claimed.intent_id);
	defer(f, 1, NONCE_1, 90000);
	defer(f, 2, NONCE_2, 1000);
	assert_int_equal(60000, next_sending(f, 0, 60000)->in_ms.value);
	fixture_wait(60000);
	assert_int_equal(2, next_sending(f, 0, 60000)->intent_id);
	defer(f, 2, NONCE_2, 90000);
	found_in(f, 60000, 30000);
	assert_int_equal(1, next_sending(f, 0, 60000)->intent_id);
}

/*
 * A clock that is years behind comes right again, and no wait that it made
 * outlasts that by more than an hour.
 */
static void
a_clock_far_back_is_looked_at_again(void **state)
{
	static const int64_t year = INT64_C(365) * 24 * 3600 * 1000;
	struct fixture *f = *state;

	claimed_guard(f);
	fixture_wait(-50 * year);
	assert_false(next_sending(f, 0, 60000)->found);
	assert_int_equal(3600000, next_sending(f, 0, 60000)->in_ms.value);
	assert_int_equal(3600000, next_sending(f, 0, INT64_MAX)->in_ms.value);
	defer(f, 1, NONCE_1, 30000);
	fixture_wait(30000);
	assert_int_equal(3600000, next_sending(f, 0, 60000)->in_ms.value);
	fixture_wait(50 * year);
	fixture_wait(60000);
	assert_true(next_sending(f, 0, 60000)->found);
	/* Ahead by more than a stamp can tell. */
	sql_put(f,
	    "UPDATE outbox SET sending_at = '2262-04-11T00:00:00.000000000Z'");
	assert_false(next_sending(f, 0, 60000)->found);
	assert_int_equal(3600000, next_sending(f, 0, 60000)->in_ms.value);
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

	admit_apart(f, 101);
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

	admit_apart(f, 101);
	(void)snprintf(
	    apart_token, sizeof(apart_token), "%s", launch(f, 101, ATT_1));
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	(void)ack_dispatch(f, apart_token, 101, 72, ATT_1);
	other = intent_at(f, "comment", 700, "another text");
	assert_int_equal(other, claim(f, NONCE_2)->claimed.intent_id);
	(void)tell_receipt(f, other, NONCE_2, 71); /* another intent's */
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

	admit_apart(f, 101);
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

	admit_apart(f, 101);
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

/* ---- renewal ----------------------------------------------------------- */

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
	    TEST(a_receipt_settles_its_claim),
	    PROVES("T52", a_receipt_of_anothers_is_refused),
	    TEST(a_refusal_is_a_column),
	    PROVES("T53", a_deferral_delays_the_next_listing),
	    TEST(a_young_sending_is_left_alone),
	    TEST(what_backs_off_may_be_too_young_as_well),
	    TEST(what_backed_off_may_be_too_young_again),
	    TEST(the_first_of_two_to_be_listed_is_waited_for),
	    TEST(a_clock_far_back_is_looked_at_again),
	    TEST(a_doubt_waits_for_a_person),
	    PROVES("T48", what_was_sending_at_a_crash_is_listed),
	    PROVES("T48", what_is_not_found_is_not_sent_again),
	    TEST(exactly_one_message_is_adopted),
	    PROVES("T49", none_or_two_are_a_doubt),
	    PROVES("T49", what_is_spoken_for_is_no_candidate),
	    PROVES("T49", what_is_spoken_for_alone_is_a_doubt),
	    TEST(a_reply_does_not_speak_for_a_boost),
	    PROVES("T49", a_rival_of_the_same_text_is_a_doubt),
	    TEST(a_renewal_hold_is_kept_by_its_credential),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
