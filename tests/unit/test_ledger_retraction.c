/* Answers to what was asked and posted (operator.md 1.7 and 2.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/retraction_scene.h"

#define SIGNED " - posted by connectd, not by the agent"

static void
a_posted_ask_is_answered(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
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
	    retraction_body(f));
	post_one(f, "retraction");
	assert_int_equal(1, retraction_count(f, "sent"));
}

static void
a_closed_ask_says_so(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	sql_put(f,
	    "UPDATE outbox SET message_kind = 'chat_line'"
	    " WHERE kind = 'completion'");
	post_one(f, "completion");
	(void)discard_event(f, 101);
	assert_string_equal("Event 101: an earlier notice here asked for its "
			    "redispatch.\nA person closed it, at 09:00 UTC; "
			    "that notice stays as a record.\nEvent 101" SIGNED,
	    retraction_body(f));
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
		end_unknown(f, 101, ATT_1);
		sql_put(f, "UPDATE outbox SET %s WHERE kind = 'completion'",
		    rows[i].put);
		(void)redispatch_event(f, 101);
		assert_int_equal(rows[i].written, retraction_count(f, "%"));
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
		end_unknown(f, 101, ATT_1);
		sql_ok(f,
		    "UPDATE outbox SET body = '%s' WHERE kind = 'completion'",
		    rows[i].body);
		sql_ok(f,
		    "UPDATE outbox SET state = 'sending', sending_at = 's'"
		    " WHERE kind = 'completion'");
		(void)redispatch_event(f, 101);
		assert_int_equal(rows[i].written, retraction_count(f, "%"));
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
	assert_non_null(strstr(retraction_body(f),
	    "That notice also asks about event 102; this answers event 101 "
	    "only.<br>"));
	assert_non_null(strstr(retraction_body(f), "Event 101: "));
	(void)discard_event(f, 102);
	assert_non_null(strstr(retraction_body(f),
	    "That notice also asks about event 101; this answers event 102 "
	    "only.<br>"));
	assert_int_equal(2, retraction_count(f, "pending"));
	/* One for each message and event, whoever decides again. */
	(void)discard_event(f, 101);
	assert_int_equal(2, retraction_count(f, "%"));
}

/* Two asks at one place are told apart by the time they were posted at. */
static void
two_asks_are_told_apart(void **state)
{
	struct fixture *f = *state;

	block_no_route(f);
	post_one(f, "holding_reply");
	fixture_wait(30 * 60000);
	(void)admit_event(f, 101, "k"); /* its project became one of ours */
	end_unknown(f, 101, ATT_1);
	post_one(f, "completion");
	fixture_wait(30 * 60000);
	(void)redispatch_event(f, 101);
	assert_int_equal(2, retraction_count(f, "pending"));
	assert_string_equal("1 09:00",
	    sql_get(f,
		"SELECT retracts || ' ' || substr(body, 43, 5) FROM outbox"
		" WHERE kind = 'retraction' ORDER BY id"));
	assert_non_null(strstr(retraction_body(f),
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

	block_no_route(f);
	post_one(f, "holding_reply");
	(void)admit_event(f, 101, "k");
	sql_ok(f, "UPDATE events SET reply_recording_id = 77");
	end_unknown(f, 101, ATT_1);
	post_one(f, "completion");
	(void)discard_event(f, 101);
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE kind = 'retraction'"
		" AND body LIKE '%%: an earlier notice here asked%%'"));
}

/* ---- what is not asked any more ----------------------------------------- */

static const char *
holding(struct fixture *f)
{
	return sql_get(
	    f, "SELECT state FROM outbox WHERE kind = 'holding_reply'");
}

/* Not asked, and not looked at again and again. */
static void
assert_not_asked(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_DUE};
	const struct msg_claimed *c = &claim(f, next_nonce())->claimed;

	assert_false(c->found);
	assert_int_equal(0, c->due_in_ms);
	assert_false(
	    fixture_get(f, &m, ROLE_OUTBOX, "", MSG_DUE)->due.in_ms.has);
	assert_string_equal("pending", holding(f));
}

/* 101 has no route and is redispatched before anybody was told of it. */
static void
redispatch_before_it_is_asked(struct fixture *f)
{
	block_no_route(f);
	fixture_wait(1000);
	(void)redispatch_event(f, 101);
	assert_not_asked(f);
	fixture_wait(-60000);
	assert_not_asked(f);
	fixture_restart(f);
	fixture_wait(3600000);
	assert_not_asked(f);
	fixture_forget(f);
}

static void
an_ask_waits_for_the_verdict_and_is_not_made(void **state)
{
	struct fixture *f = *state;

	redispatch_before_it_is_asked(f);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
	assert_true(outbox_was_told(f));
	assert_string_equal("", claim_one(f));
	assert_string_equal("canceled", holding(f));
	assert_int_equal(0, retraction_count(f, "%"));
}

/* There is no route yet: it is asked once, and can be answered. */
static void
an_ask_waits_for_the_verdict_and_is_made(void **state)
{
	struct fixture *f = *state;

	redispatch_before_it_is_asked(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_true(outbox_was_told(f));
	post_one(f, "holding_reply");
	(void)redispatch_event(f, 101);
	(void)admit_event(f, 101, "k");
	no_guards(f);
	post_one(f, "retraction");
	assert_string_equal("", claim_one(f));
}

static void
an_ask_of_what_is_blocked_otherwise_is_not_made(void **state)
{
	struct fixture *f = *state;

	redispatch_before_it_is_asked(f);
	(void)refuse_event(f, 101, "blocked", "read_failed");
	assert_true(outbox_was_told(f));
	assert_string_equal("", claim_one(f));
	assert_string_equal("canceled", holding(f));
}

/* A person closes it before there was a verdict. */
static void
an_ask_that_waits_ends_with_a_discard(void **state)
{
	struct fixture *f = *state;

	redispatch_before_it_is_asked(f);
	(void)discard_event(f, 101);
	assert_string_equal("canceled", holding(f));
	assert_string_equal("", claim_one(f));
}

/* Guards and ticks ask for nothing; nor does a success. */
static void
what_asks_nothing_is_not_answered(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
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
	assert_int_equal(0, retraction_count(f, "%"));
}

/* The decision and its answers are one transaction. */
static void
a_retraction_that_cannot_be_written_undoes_the_decision(void **state)
{
	struct fixture *f = *state;

	end_unknown(f, 101, ATT_1);
	post_one(f, "completion");
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(redispatch_event(f, 101), "refused");
	assert_string_equal("completed", state_of(f, 101));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_posted_ask_is_answered),
	    TEST(a_closed_ask_says_so),
	    cmocka_unit_test(only_what_was_posted_is_answered),
	    cmocka_unit_test(an_ask_is_for_its_whole_number),
	    TEST(an_answer_is_for_one_event_only),
	    TEST(two_asks_are_told_apart),
	    TEST(an_ask_elsewhere_needs_no_time),
	    TEST(an_ask_waits_for_the_verdict_and_is_not_made),
	    TEST(an_ask_waits_for_the_verdict_and_is_made),
	    TEST(an_ask_of_what_is_blocked_otherwise_is_not_made),
	    TEST(an_ask_that_waits_ends_with_a_discard),
	    TEST(what_asks_nothing_is_not_answered),
	    TEST(a_retraction_that_cannot_be_written_undoes_the_decision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
