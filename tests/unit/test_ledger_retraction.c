/* Answers to what was asked and posted (operator.md 1.7 and 2.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

#define SIGNED " - posted by connectd, not by the agent"

static int64_t receipts;

/* Guards are of no interest here. */
static void
no_guards(struct fixture *f)
{
	sql_ok(f,
	    "UPDATE outbox SET state = 'canceled' WHERE kind = 'guard_ack'"
	    " AND state = 'pending'");
}

static const char *
nonce(void)
{
	static char out[33];
	static unsigned int n;

	(void)snprintf(out, sizeof(out), "%032x", 0x9000 + n++);
	return out;
}

/* Claim what is due; its kind, or "". */
static const char *
claim_one(struct fixture *f)
{
	const struct msg *c = claim(f, nonce());

	return c->claimed.found ? c->claimed.kind : "";
}

/* What is being sent has arrived. */
static void
receive(struct fixture *f)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt.intent_id =
	    sql_int(f, "SELECT id FROM outbox WHERE state = 'sending'");
	m.receipt.nonce =
	    sql_get(f, "SELECT nonce FROM outbox WHERE state = 'sending'");
	m.receipt.receipt_id = 9000 + receipts++;
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
}

static void
post_one(struct fixture *f, const char *kind)
{
	assert_string_equal(kind, claim_one(f));
	receive(f);
}

static void
unknown(struct fixture *f, int64_t id, const char *attempt)
{
	if (*state_of(f, id) == '\0') {
		(void)record_event(f, id);
		(void)admit_event(f, id, "k");
	}
	assert_string_not_equal("", launch(f, id, attempt));
	(void)end_attempt(f, attempt, "lost");
	no_guards(f);
}

static void
no_route(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

static int64_t
count(struct fixture *f, const char *state)
{
	return sql_int(f,
	    "SELECT COUNT(*) FROM outbox WHERE kind = 'retraction'"
	    " AND state LIKE '%s'",
	    state);
}

static const char *
retraction(struct fixture *f)
{
	return sql_get(f,
	    "SELECT body FROM outbox WHERE kind = 'retraction'"
	    " ORDER BY id DESC");
}

static int64_t
next_due(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_DUE};
	struct opt in = fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DUE)->due.in_ms;

	return in.has ? in.value : -1;
}

static bool
outbox_was_told(struct fixture *f)
{
	size_t i;

	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == MSG_POST_WAITS)
			return true;
	}
	return false;
}

/* ---- written ------------------------------------------------------------- */

static void
a_posted_ask_is_answered(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
	post_one(f, "completion");
	fixture_wait(90 * 60000);
	fixture_forget(f);
	(void)redispatch_event(f, 101);
	assert_true(outbox_was_told(f));
	assert_int_equal(1, f->line_count); /* the record's own */
	assert_string_equal("retraction:intent:2:event:101 comment 5101 10 2",
	    sql_get(f,
		"SELECT intent_key || ' ' || message_kind || ' ' ||"
		" recording_id || ' ' || bucket_id || ' ' || retracts"
		" FROM outbox WHERE kind = 'retraction'"));
	assert_string_equal(
	    "<div>Event 101: an earlier notice here asked for its redispatch."
	    "<br>A person had it run again, at 10:30 UTC; that notice stays "
	    "as a record.<br>Event 101" SIGNED "</div>",
	    retraction(f));
	post_one(f, "retraction");
	assert_int_equal(1, count(f, "sent"));
}

static void
a_closed_ask_says_so(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
	sql_put(f,
	    "UPDATE outbox SET message_kind = 'chat_line'"
	    " WHERE kind = 'completion'");
	post_one(f, "completion");
	(void)discard_event(f, 101);
	assert_string_equal("Event 101: an earlier notice here asked for its "
			    "redispatch.\nA person closed it, at 09:00 UTC; "
			    "that notice stays as a record.\nEvent 101" SIGNED,
	    retraction(f));
	post_one(f, "retraction");
}

/* Pending, canceled, doubted: nobody read it, or nobody knows. */
static void
only_what_was_posted_is_answered(void **state)
{
	static const struct {
		const char *put;
		int64_t written;
	} rows[] = {{"state = 'pending'", 0}, {"state = 'canceled'", 0},
	    {"state = 'indeterminate', sending_at = 's'", 0},
	    {"state = 'abandoned', sending_at = 's'", 0},
	    {"state = 'sending', sending_at = 's'", 1},
	    {"state = 'sent', sending_at = 's', receipt_id = 7", 1}};
	struct fixture *f;
	void *fresh;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)fixture_setup(&fresh);
		f = fresh;
		unknown(f, 101, ATT_1);
		sql_put(f, "UPDATE outbox SET %s WHERE kind = 'completion'",
		    rows[i].put);
		(void)redispatch_event(f, 101);
		assert_int_equal(rows[i].written, count(f, "%"));
		(void)fixture_teardown(&fresh);
	}
}

/* The digits are read to their end, and the words are the ask's own. */
static void
an_ask_is_for_its_whole_number(void **state)
{
	static const struct {
		const char *body;
		int64_t written;
	} rows[] = {{"connectctl redispatch 101", 1},
	    {"connectctl redispatch 101<br>", 1},
	    {"x connectctl redispatch 1011 y connectctl redispatch 101.", 1},
	    {"connectctl redispatch 1011", 0}, {"connectctl redispatch 10", 0},
	    {"connectctl redispatch 1", 0}, {"Event 101: failed.", 0},
	    {"redispatch 101", 0}};
	struct fixture *f;
	void *fresh;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)fixture_setup(&fresh);
		f = fresh;
		unknown(f, 101, ATT_1);
		sql_ok(f,
		    "UPDATE outbox SET body = '%s' WHERE kind = 'completion'",
		    rows[i].body);
		sql_ok(f,
		    "UPDATE outbox SET state = 'sending', sending_at = 's'"
		    " WHERE kind = 'completion'");
		(void)redispatch_event(f, 101);
		assert_int_equal(rows[i].written, count(f, "%"));
		(void)fixture_teardown(&fresh);
	}
}

/* A notice for two events is answered for each by its own. */
static void
an_answer_is_for_one_event_only(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (1, 102, 'k');"
	    "UPDATE events SET state = 'dispatched' WHERE id = 102;"
	    "UPDATE task_events SET delivery = 'exposed' WHERE event_id = 102");
	(void)end_attempt(f, ATT_1, "lost");
	no_guards(f);
	post_one(f, "completion");
	(void)discard_event(f, 101);
	assert_non_null(strstr(retraction(f),
	    "That notice also asks about event 102; this answers event 101 "
	    "only.<br>"));
	assert_non_null(strstr(retraction(f), "Event 101: "));
	(void)discard_event(f, 102);
	assert_non_null(strstr(retraction(f),
	    "That notice also asks about event 101; this answers event 102 "
	    "only.<br>"));
	assert_int_equal(2, count(f, "pending"));
	/* One for each message and event, whoever decides again. */
	(void)discard_event(f, 101);
	assert_int_equal(2, count(f, "%"));
}

/* Two asks at one place are told apart by the time they were posted at. */
static void
two_asks_are_told_apart(void **state)
{
	struct fixture *f = *state;

	no_route(f);
	post_one(f, "holding_reply");
	fixture_wait(30 * 60000);
	(void)admit_event(f, 101, "k"); /* its project became one of ours */
	unknown(f, 101, ATT_1);
	post_one(f, "completion");
	fixture_wait(30 * 60000);
	(void)redispatch_event(f, 101);
	assert_int_equal(2, count(f, "pending"));
	assert_string_equal("1 09:00",
	    sql_get(f,
		"SELECT retracts || ' ' || substr(body, 43, 5) FROM outbox"
		" WHERE kind = 'retraction' ORDER BY id"));
	assert_non_null(strstr(retraction(f),
	    "Event 101: the notice posted here at 09:30 UTC asked for its "
	    "redispatch.<br>A person had it run again, at 10:00 UTC;"));
	post_one(f, "retraction");
	post_one(f, "retraction");
}

/* Elsewhere there is nothing to confuse it with. */
static void
an_ask_elsewhere_needs_no_time(void **state)
{
	struct fixture *f = *state;

	no_route(f);
	post_one(f, "holding_reply");
	(void)admit_event(f, 101, "k");
	sql_ok(f, "UPDATE events SET reply_recording_id = 77");
	unknown(f, 101, ATT_1);
	post_one(f, "completion");
	(void)discard_event(f, 101);
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE kind = 'retraction'"
		" AND body LIKE '%%: an earlier notice here asked%%'"));
}

/* Guards and ticks ask for nothing; nor does a success. */
static void
what_asks_nothing_is_not_answered(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
	sql_ok(f,
	    "UPDATE outbox SET kind = 'still_running' WHERE kind ="
	    " 'completion'");
	sql_put(f,
	    "UPDATE outbox SET intent_key = 'still_running:attempt:' ||"
	    " attempt_id || ':1' WHERE kind = 'still_running'");
	sql_ok(f,
	    "UPDATE outbox SET state = 'sending', sending_at = 's'"
	    " WHERE kind = 'still_running'");
	(void)redispatch_event(f, 101);
	assert_int_equal(0, count(f, "%"));
}

/* The decision and its answers are one transaction. */
static void
a_retraction_that_cannot_be_written_undoes_the_decision(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
	post_one(f, "completion");
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(redispatch_event(f, 101), "refused");
	assert_string_equal("completed", state_of(f, 101));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* ---- claimed ------------------------------------------------------------- */

/* Waiting is passed over: not asked for again and again, hiding nothing. */
static void
assert_waits(struct fixture *f)
{
	const struct msg_claimed *c;

	assert_int_equal(-1, next_due(f));
	c = &claim(f, nonce())->claimed;
	assert_false(c->found);
	assert_int_equal(0, c->due_in_ms);
	assert_int_equal(1, count(f, "pending"));
}

static void
it_waits_for_its_notices_receipt(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RESOLVE,
	    .resolve = {NONCE_1, "local:ann", 0, "sent", 5}};

	unknown(f, 101, ATT_1);
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

	no_route(f);
	post_one(f, "holding_reply");
	(void)redispatch_event(f, 101);
	fixture_wait(1000);
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "blocked", "no_route");
	assert_int_equal(0, next_due(f));
	assert_string_equal("holding_reply", claim_one(f));
	receive(f);
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
		unknown(f, 101, ATT_1);
		assert_string_equal("completion", claim_one(f));
		(void)redispatch_event(f, 101);
		sql_put(f, "UPDATE outbox SET %s WHERE kind = 'completion'",
		    fates[i]);
		fixture_forget(f);
		assert_string_equal("", claim_one(f));
		assert_int_equal(1, count(f, "canceled"));
		assert_int_equal(1, f->line_count);
		(void)fixture_teardown(&fresh);
	}
}

/* A person sent it again after the decision: it asked no more. */
static void
it_stands_down_when_its_notice_does_not_ask(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
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
	assert_int_equal(1, count(f, "canceled"));
}

/* Deciding is not enough: the record has to have moved. */
static void
it_waits_while_its_record_is_blocked_for_that(void **state)
{
	struct fixture *f = *state;

	no_route(f);
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
	assert_int_equal(1, count(f, "%"));
	assert_int_equal(0, next_due(f));
	post_one(f, "retraction");
	assert_non_null(
	    strstr(retraction(f), "A person closed it, at 10:01 UTC"));
}

static void
a_verdict_that_moves_the_record_frees_it(void **state)
{
	struct fixture *f = *state;

	no_route(f);
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

	unknown(f, 101, ATT_1);
	assert_string_equal("completion", claim_one(f));
	(void)redispatch_event(f, 101);
	unknown(f, 101, ATT_2);
	receive(f);
	post_one(f, "completion");
	assert_waits(f);
	fixture_forget(f);
	(void)redispatch_event(f, 101);
	assert_int_equal(2, count(f, "pending"));
	post_one(f, "retraction");
	post_one(f, "retraction");
}

/* The end of a task opens and closes asks: the outbox looks again. */
static void
a_tasks_end_lets_the_outbox_look_again(void **state)
{
	struct fixture *f = *state;

	unknown(f, 101, ATT_1);
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

	unknown(f, 101, ATT_1);
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

	unknown(f, 101, ATT_1);
	post_one(f, "completion");
	(void)redispatch_event(f, 101);
	token = launch(f, 101, ATT_2);
	(void)get_dispatch(f, token, 101, ATT_2);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_2);
	(void)end_attempt(f, ATT_2, "finished");
	m.import.nonce = nonce();
	m.import.by = "local:ann";
	m.import.file = (struct blob){file, sizeof(file) - 1};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_IMPORTED);
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM decisions"
		" WHERE event_id = 101"));
	assert_string_equal("retraction", claim_one(f));
	assert_non_null(strstr(retraction(f), "had it run again"));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(an_import_of_what_is_done_is_no_answer),
	    TEST(a_posted_ask_is_answered),
	    TEST(a_closed_ask_says_so),
	    cmocka_unit_test(only_what_was_posted_is_answered),
	    cmocka_unit_test(an_ask_is_for_its_whole_number),
	    TEST(an_answer_is_for_one_event_only),
	    TEST(two_asks_are_told_apart),
	    TEST(an_ask_elsewhere_needs_no_time),
	    TEST(what_asks_nothing_is_not_answered),
	    TEST(a_retraction_that_cannot_be_written_undoes_the_decision),
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
