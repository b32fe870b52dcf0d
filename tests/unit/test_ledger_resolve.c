/* A person's word on a message in doubt (operator.md 1.4, 1.12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

#define HASH_A \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BY "local:ann"

/* Another nonce each time. */
static const char *
nonce(void)
{
	static char text[33];
	static int n;

	(void)snprintf(text, sizeof(text), "%032d", 1000 + n++);
	return text;
}

static struct msg *
resolve_as(struct fixture *f, const char *decision, int64_t intent,
    const char *resolution, int64_t receipt)
{
	struct msg m = {.type = MSG_RESOLVE};

	m.resolve =
	    (struct msg_resolve){decision, BY, intent, resolution, receipt};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

static struct msg *
resolve(struct fixture *f, int64_t intent, const char *resolution)
{
	return resolve_as(f, nonce(), intent, resolution,
	    strcmp(resolution, "sent") == 0 ? 77 : 0);
}

static void
assert_resolved(const struct msg *m, const char *state, bool changed)
{
	if (m->type == MSG_FAILED)
		fail_msg("%s: %s", m->failed.reason, m->failed.text);
	assert_int_equal(MSG_RESOLVED, m->type);
	assert_string_equal(state, m->resolved.state);
	assert_int_equal(changed, m->resolved.changed);
}

/* Event 101's guard is intent 1; it is claimed, and in doubt. */
static void
doubted(struct fixture *f)
{
	struct msg m = {.type = MSG_IN_DOUBT};

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	fixture_wait(30000);
	assert_int_equal(1, claim(f, NONCE_1)->claimed.intent_id);
	m.in_doubt = (struct msg_in_doubt){1, NONCE_1, 10, "listing failed"};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	fixture_forget(f);
}

static void
a_doubt_is_named_given_up_or_sent_again(void **state)
{
	static const struct {
		const char *resolution, *to, *row;
	} table[] = {
	    {"sent", "sent", "77 resolved: sent " BY " 10 1"},
	    {"abandon", "abandoned", "- resolved: abandon " BY " 10 1"},
	    {"resend", "pending", "- resolved: resend " BY " 0 0"},
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		doubted(f);
		assert_resolved(
		    resolve(f, 1, table[i].resolution), table[i].to, true);
		assert_string_equal(table[i].to, intent_state(f, 1));
		assert_string_equal(table[i].row,
		    sql_get(f,
			"SELECT COALESCE(receipt_id, '-') || ' ' || note ||"
			" ' ' || resolved_by || ' ' || reconcile_failures ||"
			" ' ' || (finished_at IS NOT NULL) FROM outbox"));
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* What the decision says, for show. */
static void
a_resolution_is_recorded(void **state)
{
	struct fixture *f = *state;

	doubted(f);
	(void)resolve_as(f, NONCE_2, 1, "sent", 77);
	assert_string_equal("resolve 101 1 " BY " indeterminate sent " NONCE_2,
	    sql_get(f,
		"SELECT action || ' ' || event_id || ' ' || intent_id || ' '"
		" || decided_by || ' ' || from_state || ' ' || to_state ||"
		" ' ' || nonce FROM decisions"));
	assert_int_equal(1, f->line_count);
	assert_string_equal("{\"type\":\"outbox\",\"intent_id\":1,"
			    "\"kind\":\"guard_ack\",\"state\":\"sent\","
			    "\"event_id\":101,\"receipt_id\":77}",
	    f->lines[0]);
}

/* A decision about a message or an attempt names it; no other does. */
static void
a_decision_names_what_it_is_of(void **state)
{
	struct fixture *f = *state;
	static const char insert[] =
	    "INSERT INTO decisions (action, intent_id, attempt_id, decided_by,"
	    " decided_at) VALUES (";

	doubted(f);
	(void)launch(f, 101, ATT_1);
	sql_refused(f, "%s'resolve', NULL, NULL, 'me', 'd')", insert);
	sql_refused(f, "%s'resolve', 404, NULL, 'me', 'd')", insert);
	sql_refused(f, "%s'settle', NULL, NULL, 'me', 'd')", insert);
	sql_refused(f, "%s'discard', 1, NULL, 'me', 'd')", insert);
	sql_refused(f, "%s'discard', NULL, '" ATT_1 "', 'me', 'd')", insert);
	sql_ok(f, "%s'resolve', 1, NULL, 'me', 'd')", insert);
	sql_ok(f, "%s'settle', NULL, '" ATT_1 "', 'me', 'd')", insert);
}

/* Back to the start: claimed anew, its failures forgotten (operator T12). */
static void
a_resend_starts_afresh(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RECEIPT}, *c;

	doubted(f);
	sql_ok(f,
	    "UPDATE outbox SET reconcile_at ="
	    " '2027-01-01T00:00:00.000000000Z'");
	fixture_wait(5000);
	(void)resolve(f, 1, "resend");
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_int_equal(1, f->notices[0].id);
	assert_int_equal(1,
	    sql_int(f,
		"SELECT reconcile_at IS NULL AND reconcile_failures = 0 AND"
		" sending_at IS NULL AND finished_at IS NULL AND"
		" not_before = '2026-01-05T09:00:35.000000000Z' FROM outbox"));
	c = claim(f, NONCE_2);
	assert_int_equal(1, c->claimed.intent_id);
	/* What was said of the first claim says nothing of this one. */
	m.receipt = (struct msg_receipt){1, NONCE_1, 77};
	assert_failed(fixture_ask(f, &m, ROLE_OUTBOX, ""), "refused");
	m.receipt.nonce = NONCE_2;
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	assert_string_equal("sent", intent_state(f, 1));
}

/* It stands in the rows whether Basecamp refused: no note says so (L2). */
static void
a_refused_message_may_be_sent_again(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REFUSED};

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	fixture_wait(30000);
	(void)claim(f, NONCE_1);
	m.refused = (struct msg_refused){1, NONCE_1, "403"};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	assert_failed(resolve(f, 1, "sent"), "refused");
	assert_failed(resolve(f, 1, "abandon"), "refused");
	assert_resolved(resolve(f, 1, "resend"), "pending", true);
	assert_int_equal(1, claim(f, NONCE_2)->claimed.intent_id);
}

/* A guard that get_dispatch took back stays back, whatever its note says. */
static void
what_was_canceled_otherwise_is_not_sent(void **state)
{
	struct fixture *f = *state;
	const char *token;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 0, ATT_1);
	assert_string_equal("canceled", intent_state(f, 1));
	sql_ok(f, "UPDATE outbox SET note = 'refused; nothing was created'");
	assert_failed(resolve(f, 1, "resend"), "refused");
	sql_refused(f, "UPDATE outbox SET state = 'pending'");
}

/* Every state but the two that a person resolves. */
static void
nothing_else_is_resolved(void **state)
{
	static const char *const states[] = {
	    "pending", "sending", "sent", "canceled", "abandoned"};
	static const char *const words[] = {"sent", "abandon", "resend"};
	struct fixture *f = *state;
	size_t i, k;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	fixture_forget(f);
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		sql_put(f,
		    "INSERT INTO outbox (id, intent_key, kind, state,"
		    " bucket_id, message_kind, recording_id, body,"
		    " created_at, not_before, sending_at, receipt_id)"
		    " SELECT %d, 'x%d', 'completion', '%s', 10, 'comment', 9,"
		    " 'b', 'c', 'n', 's', CASE WHEN '%s' = 'sent' THEN 5 END",
		    100 + (int)i, (int)i, states[i], states[i]);
		for (k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			assert_failed(
			    resolve(f, 100 + (int64_t)i, words[k]), "refused");
		assert_string_equal(
		    states[i], intent_state(f, 100 + (int64_t)i));
	}
	assert_failed(resolve(f, 404, "abandon"), "not_found");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_int_equal(0, f->notice_count);
}

static void
wrong_words_are_refused(void **state)
{
	struct fixture *f = *state;

	doubted(f);
	assert_failed(resolve(f, 1, "forget"), "refused");
	assert_failed(resolve_as(f, nonce(), 1, "sent", 0), "refused");
	assert_failed(resolve_as(f, nonce(), 1, "abandon", 77), "refused");
	assert_failed(resolve_as(f, nonce(), 1, "resend", 77), "refused");
	assert_string_equal("indeterminate", intent_state(f, 1));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* A message is the receipt of one intent of its kind; of another it may be. */
static void
anothers_receipt_is_not_named(void **state)
{
	struct fixture *f = *state;
	struct msg *r;

	doubted(f);
	sql_put(f,
	    "INSERT INTO outbox (intent_key, kind, state, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before,"
	    " sending_at, receipt_id) VALUES ('x', 'guard_ack', 'sent', 10,"
	    " 'boost', 9, 'b', 'c', 'n', 's', 77)");
	r = resolve(f, 1, "sent");
	assert_failed(r, "refused");
	assert_non_null(strstr(r->failed.text, "intent 2"));
	sql_put(f, "UPDATE outbox SET message_kind = 'comment' WHERE id = 2");
	assert_resolved(resolve(f, 1, "sent"), "sent", true);
}

/* The answer to a repeat is what the rows say by then. */
static void
a_repeat_tells_what_stands(void **state)
{
	struct fixture *f = *state;

	doubted(f);
	(void)resolve_as(f, NONCE_2, 1, "resend", 0);
	(void)claim(f, NONCE_3);
	fixture_forget(f);
	assert_resolved(
	    resolve_as(f, NONCE_2, 1, "resend", 0), "sending", false);
	assert_int_equal(0, (int)f->line_count);
	assert_int_equal(0, (int)f->notice_count);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_failed(resolve_as(f, NONCE_2, 2, "resend", 0), "refused");
	assert_failed(resolve_as(f, NONCE_2, 1, "abandon", 0), "refused");
}

/* A worker that waits for its message hears of it; of a resend it does not. */
static void
a_worker_hears_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_POST}, d = {.type = MSG_IN_DOUBT};
	const char *token;
	int64_t id;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 0, ATT_1);
	m.post = (struct msg_post){.token = token,
	    .event_id = 101,
	    .kind = "worker_reply",
	    .hash = HASH_A,
	    .comment = {"x", 1},
	    .line = {"x", 1}};
	id = fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS)
		 ->post_is.intent_id;
	(void)claim(f, NONCE_1);
	d.in_doubt = (struct msg_in_doubt){id, NONCE_1, 10, "listing failed"};
	(void)fixture_get(f, &d, ROLE_OUTBOX, "", MSG_SETTLED);
	fixture_forget(f);
	(void)resolve(f, id, "resend");
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_int_equal(id, claim(f, NONCE_2)->claimed.intent_id);
	d.in_doubt.nonce = NONCE_2;
	(void)fixture_get(f, &d, ROLE_OUTBOX, "", MSG_SETTLED);
	fixture_forget(f);
	(void)resolve(f, id, "sent");
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_POST_SETTLED, f->notices[0].type);
	assert_string_equal(ATT_1, f->notices[0].attempt);
	assert_int_equal(77,
	    fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS)
		->post_is.receipt_id.value);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_doubt_is_named_given_up_or_sent_again),
	    TEST(a_resolution_is_recorded),
	    TEST(a_decision_names_what_it_is_of),
	    TEST(a_resend_starts_afresh),
	    TEST(a_refused_message_may_be_sent_again),
	    TEST(what_was_canceled_otherwise_is_not_sent),
	    TEST(nothing_else_is_resolved),
	    TEST(wrong_words_are_refused),
	    TEST(anothers_receipt_is_not_named),
	    TEST(a_repeat_tells_what_stands),
	    TEST(a_worker_hears_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
