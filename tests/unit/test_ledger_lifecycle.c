/* The connector's own messages: when, where, in what words (operator.md 2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/lifecycle.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static const char *
body_of(struct fixture *f, const char *kind)
{
	return sql_get(f, "SELECT body FROM outbox WHERE kind = '%s'", kind);
}

static int64_t
count_of(struct fixture *f, const char *kind)
{
	return sql_int(
	    f, "SELECT COUNT(*) FROM outbox WHERE kind = '%s'", kind);
}

static void
a_guard_is_for_who_waits_for_a_word(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	(void)record_event(f, 101);
	m = verdict_of(f, 101, "admitted");
	m.verdict.acknowledge = false;
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_int_equal(0, count_of(f, "guard_ack"));
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "l");
	assert_string_equal("guard_ack:event:102 boost 1102",
	    sql_get(f,
		"SELECT intent_key || ' ' || message_kind || ' ' ||"
		" recording_id FROM outbox"));
	assert_string_equal(
	    "\xf0\x9f\x91\x80 received", sql_get(f, "SELECT body FROM outbox"));
	/* A queued one waits as well. */
	(void)record_event(f, 103);
	assert_string_equal("queued", admit_event(f, 103, "l"));
	assert_int_equal(2, count_of(f, "guard_ack"));
}

/* I15: the verdict and its message are one; a claim is there before a post. */
static void
no_message_no_verdict(void **state)
{
	struct fixture *f = *state;
	struct msg admit, refuse;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	admit = verdict_of(f, 101, "admitted");
	refuse = verdict_of(f, 102, "blocked");
	refuse.verdict.reason = "no_route";
	assert_failed(fixture_ask(f, &admit, ROLE_INTAKE, ""), "refused");
	assert_failed(fixture_ask(f, &refuse, ROLE_INTAKE, ""), "refused");
	assert_string_equal("seen", state_of(f, 101));
	assert_string_equal("seen", state_of(f, 102));
	sql_ok(f, "DROP TRIGGER spoil");
	(void)fixture_get(f, &admit, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_int_equal(1, count_of(f, "guard_ack"));
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	fixture_restart(f);
	assert_string_equal("sending", sql_get(f, "SELECT state FROM outbox"));
}

static void
a_verdict_turned_to_held_has_no_guard(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	sql_ok(f, "UPDATE events SET review = 1");
	assert_string_equal("held", admit_event(f, 101, "k"));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM outbox"));
}

static void
a_holding_reply_is_for_no_route(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "blocked", "read_failed");
	assert_int_equal(0, count_of(f, "holding_reply"));
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_string_equal("holding_reply:event:101:no_route comment 5101",
	    sql_get(f,
		"SELECT intent_key || ' ' || message_kind || ' ' ||"
		" recording_id FROM outbox"));
	assert_string_equal("<div>Nothing was started: this project is not "
			    "one that this connector works in.<br>Once it is, "
			    "this starts the work: connectctl redispatch 101"
			    "<br>Event 101 - posted by connectd, not by the "
			    "agent</div>",
	    body_of(f, "holding_reply"));
	/* Decided so again, it is said once. */
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_int_equal(1, count_of(f, "holding_reply"));
}

static void
a_holding_reply_needs_a_place(void **state)
{
	struct fixture *f = *state;
	struct msg m;
	int i;

	for (i = 0; i < 3; i++) {
		(void)record_event(f, 101 + i);
		m = verdict_of(f, 101 + i, "blocked");
		m.verdict.reason = "no_route";
		if (i == 0)
			m.verdict.reply_kind = "";
		else if (i == 1)
			m.verdict.reply_recording_id = 0;
		else
			m.verdict.acknowledge = false;
		(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	}
	assert_int_equal(0, count_of(f, "holding_reply"));
}

/* It said that nothing was started: whatever came of that, it is not true. */
static void
a_holding_reply_stands_down_with_its_reason(void **state)
{
	static const struct {
		const char *state, *reason;
	} since[] = {
	    {"blocked", "read_failed"},
	    {"discarded", "not_addressed"},
	    {"admitted", ""},
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(since) / sizeof(since[0]); i++) {
		int64_t id = 101 + (int64_t)i;

		(void)record_event(f, id);
		(void)refuse_event(f, id, "blocked", "no_route");
		if (*since[i].reason != '\0')
			(void)refuse_event(
			    f, id, since[i].state, since[i].reason);
		else
			(void)admit_event(f, id, "k");
		assert_false(claim(f, NONCE_1)->claimed.found);
		assert_string_equal("canceled -",
		    sql_get(f,
			"SELECT state || ' ' || COALESCE(sending_at, '-')"
			" FROM outbox WHERE kind = 'holding_reply'"
			" AND event_id = %d",
			(int)id));
	}
	/* One whose record is blocked so still is sent. */
	(void)record_event(f, 110);
	(void)refuse_event(f, 110, "blocked", "no_route");
	assert_string_equal("holding_reply", claim(f, NONCE_1)->claimed.kind);
}

/* ---- still running ----------------------------------------------------- */

static bool
still_running(struct fixture *f, const char *attempt, int64_t number)
{
	struct msg m = {.type = MSG_STILL_RUNNING};

	m.still_running = (struct msg_still_running){attempt, number};
	return fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE)->done.changed;
}

static void
each_tick_of_a_long_turn_is_told(void **state)
{
	struct fixture *f = *state;
	struct msg progress = {.type = MSG_PROGRESS};

	(void)launch_new(f, 101, ATT_1);
	run_attempt(f, ATT_1, 4242);
	fixture_wait(600000);
	fixture_forget(f);
	assert_true(still_running(f, ATT_1, 1));
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_int_equal(0, f->line_count); /* written, not yet posted */
	assert_string_equal(
	    "<div>Task 1: the agent is still at work, as of 09:10 UTC.<br>"
	    "It was started at 09:00 UTC; no progress was reported yet.<br>"
	    "Attempt " ATT_1
	    ", notice 1 - posted by connectd, not by the agent</div>",
	    body_of(f, "still_running"));
	assert_string_equal("still_running:attempt:" ATT_1 ":1 " ATT_1
			    " 1 1 comment 5101 10 "
			    "2026-01-05T09:10:00.000000000Z",
	    sql_get(f,
		"SELECT intent_key || ' ' || attempt_id || ' ' || task_id ||"
		" ' ' || occurrence || ' ' || message_kind || ' ' ||"
		" recording_id || ' ' || bucket_id || ' ' || not_before"
		" FROM outbox WHERE kind = 'still_running'"
		" AND event_id IS NULL"));
	fixture_wait(480000);
	progress.progress.attempt = ATT_1;
	(void)fixture_get(f, &progress, ROLE_DISPATCHER, "", MSG_DONE);
	fixture_wait(120000);
	assert_true(still_running(f, ATT_1, 2));
	assert_non_null(strstr(
	    sql_get(f, "SELECT body FROM outbox WHERE occurrence = 2"),
	    "as of 09:20 UTC.<br>It was started at 09:00 UTC; the last "
	    "progress was at 09:18 UTC.<br>Attempt " ATT_1 ", notice 2 - "));
	assert_int_equal(2, sql_int(f, "SELECT still_running FROM attempts"));
}

static void
a_tick_is_counted_once_and_while_it_lives(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_STILL_RUNNING};

	m.still_running = (struct msg_still_running){ATT_1, 1};
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "not_found");
	(void)launch_new(f, 101, ATT_1);
	assert_true(still_running(f, ATT_1, 1));
	assert_true(still_running(f, ATT_1, 2));
	assert_false(still_running(f, ATT_1, 2));
	assert_false(still_running(f, ATT_1, 1));
	assert_int_equal(2, count_of(f, "still_running"));
	(void)end_attempt(f, ATT_1, "finished");
	assert_false(still_running(f, ATT_1, 3));
	assert_int_equal(2, count_of(f, "still_running"));
	assert_int_equal(2, sql_int(f, "SELECT still_running FROM attempts"));
}

static void
a_long_turn_without_a_place_is_counted_only(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET reply_kind = ''");
	assert_true(still_running(f, ATT_1, 1));
	assert_int_equal(0, count_of(f, "still_running"));
	sql_ok(f, "UPDATE events SET reply_kind = 'chat_line'");
	assert_true(still_running(f, ATT_1, 2));
	assert_null(strchr(body_of(f, "still_running"), '<'));
}

/* Claimed before the end it is posted; behind it only the end is told. */
static void
an_ended_attempt_is_not_still_running(void **state)
{
	struct fixture *f = *state;
	struct msg *claimed;

	(void)launch_new(f, 101, ATT_1);
	(void)still_running(f, ATT_1, 1);
	claimed = claim(f, NONCE_1);
	assert_true(claimed->claimed.found);
	assert_string_equal("still_running", claimed->claimed.kind);
	assert_memory_equal(
	    "<div>Task 1: the agent is still", claimed->claimed.body.bytes, 31);
	(void)still_running(f, ATT_1, 2);
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("completion", claim(f, NONCE_2)->claimed.kind);
	assert_string_equal("canceled",
	    sql_get(f, "SELECT state FROM outbox WHERE occurrence = 2"));
}

/* No notice, no tick (I15). */
static void
a_notice_that_cannot_be_written_undoes_the_tick(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_STILL_RUNNING};

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	m.still_running = (struct msg_still_running){ATT_1, 1};
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "refused");
	assert_int_equal(0, sql_int(f, "SELECT still_running FROM attempts"));
}

/* ---- completion -------------------------------------------------------- */

static void
unknown_work_asks_a_person(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal(
	    "<div>Task 1: the agent, or what watched over it, went away in "
	    "the middle of its work.<br>Event 101: no outcome was reported; "
	    "what was done is not known. To run it again: connectctl "
	    "redispatch 101<br>Attempt " ATT_1
	    " - posted by connectd, not by the agent</div>",
	    body_of(f, "completion"));
	assert_string_equal("completion:attempt:" ATT_1 " comment 5101 1",
	    sql_get(f,
		"SELECT intent_key || ' ' || message_kind || ' ' ||"
		" recording_id || ' ' || task_id FROM outbox"
		" WHERE kind = 'completion'"));
}

static void
every_stop_has_its_sentence(void **state)
{
	static const char *const reasons[] = {
	    "finished", "failed", "deadline", "shutdown", "lost"};
	struct fixture *f = *state;
	char bodies[5][512], attempt[29];
	size_t i, k;

	for (i = 0; i < 5; i++) {
		(void)snprintf(attempt, sizeof(attempt), "att_%024zu", i);
		(void)launch_new(f, 101 + (int64_t)i, attempt);
		(void)end_attempt(f, attempt, reasons[i]);
		(void)snprintf(bodies[i], sizeof(bodies[i]), "%.90s",
		    strchr(sql_get(f,
			       "SELECT body FROM outbox WHERE"
			       " attempt_id = '%s'",
			       attempt),
			':'));
		*strstr(bodies[i], "<br>") = '\0';
		assert_null(strstr(bodies[i], "cancel"));
		for (k = 0; k < i; k++)
			assert_string_not_equal(bodies[k], bodies[i]);
	}
}

static void
a_success_with_a_reply_says_nothing(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);
	struct msg m = {.type = MSG_COMPLETE_DISPATCH};

	(void)get_dispatch(f, token, 0, ATT_1);
	m.complete_dispatch = (struct msg_complete_dispatch){.token = token,
	    .event_id = 101,
	    .outcome = "succeeded",
	    .reply_id = {true, 9}};
	(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_REPORT_IS);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(0, count_of(f, "completion"));
}

static void
a_success_without_a_reply_says_so_and_asks_nothing(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);

	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	assert_non_null(strstr(body_of(f, "completion"),
	    "Event 101: reported as done, without a reply.<br>"));
	assert_null(strstr(body_of(f, "completion"), "redispatch"));
}

static void
a_failure_asks(void **state)
{
	struct fixture *f = *state;
	const char *token = launch_new(f, 101, ATT_1);

	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	assert_non_null(strstr(body_of(f, "completion"),
	    "Event 101: reported as failed. To run it again: connectctl "
	    "redispatch 101<br>"));
}

static void
only_the_last_failed_start_is_told(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)spawn_failed(f, ATT_1);
	assert_int_equal(0, count_of(f, "completion"));
	(void)launch(f, 101, ATT_2);
	(void)spawn_failed(f, ATT_2);
	assert_int_equal(1, count_of(f, "completion"));
	assert_non_null(strstr(body_of(f, "completion"),
	    "Event 101: the agent could not be started. To run it again: "
	    "connectctl redispatch 101"));
}

static void
a_chat_line_is_plain(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET reply_kind = 'chat_line'");
	(void)end_attempt(f, ATT_1, "deadline");
	assert_string_equal(
	    "Task 1: the agent was stopped at its time limit.\n"
	    "Event 101: no outcome was reported; what was done is not known. "
	    "To run it again: connectctl redispatch 101\n"
	    "Attempt " ATT_1 " - posted by connectd, not by the agent",
	    body_of(f, "completion"));
}

static void
no_place_no_notice(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f, "UPDATE events SET reply_kind = ''");
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(0, count_of(f, "completion"));
}

/* The notice as it would be claimed now, after a raw change. */
static void
assert_not_asked(struct fixture *f, const char *change)
{
	struct buffer b = {0};

	sql_ok(f, "SAVEPOINT s; %s", change);
	assert_int_equal(0, lifecycle_completion(&f->l, ATT_1, "comment", &b));
	sql_reset_all(&f->l);
	assert_non_null(strstr(b.bytes, "Event 101: no outcome"));
	assert_null(strstr(b.bytes, "redispatch"));
	buffer_free(&b);
	sql_ok(f, "ROLLBACK TO s; RELEASE s");
}

/* Between writing and claiming a person may have decided. */
static void
a_decided_ask_is_not_asked(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by,"
	    " decided_at) VALUES ('redispatch', 101, 'me',"
	    " '2026-01-05T10:00:00.000000000Z')");
	assert_not_asked(f, "UPDATE events SET redispatch_decision = 1");
	assert_not_asked(f,
	    "UPDATE events SET authorized_at ="
	    " '2026-01-05T09:00:00.000000001Z'");
	assert_not_asked(f,
	    "UPDATE events SET redispatch_decision = 1;"
	    "UPDATE events SET state = 'admitted',"
	    " redispatch_decision = NULL");
}

/* Authorized before the end, it silences nothing; nor does the same moment. */
static void
an_earlier_authorization_does_not_silence(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	sql_ok(f,
	    "UPDATE events SET authorized_at ="
	    " '2026-01-05T09:00:00.000000000Z'");
	(void)end_attempt(f, ATT_1, "lost");
	assert_non_null(strstr(body_of(f, "completion"), "redispatch 101"));
	(void)claim(f, NONCE_1);
	assert_string_equal("sending",
	    sql_get(f, "SELECT state FROM outbox WHERE kind = 'completion'"));
	assert_non_null(strstr(body_of(f, "completion"), "redispatch 101"));
}

static void
a_claimed_notice_is_said_again_from_the_rows(void **state)
{
	struct fixture *f = *state;
	struct msg *c;

	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "lost");
	sql_ok(f,
	    "UPDATE events SET authorized_at ="
	    " '2026-01-05T09:30:00.000000000Z'");
	c = claim(f, NONCE_1);
	assert_string_equal("completion", c->claimed.kind);
	assert_null(memmem(
	    c->claimed.body.bytes, c->claimed.body.len, "redispatch", 10));
	assert_null(strstr(body_of(f, "completion"), "redispatch"));
}

static void
an_undecided_notice_is_the_same_from_the_rows(void **state)
{
	struct fixture *f = *state;
	const char *written;
	struct msg *c;

	(void)launch_new(f, 101, ATT_1);
	(void)end_attempt(f, ATT_1, "failed");
	written = body_of(f, "completion");
	c = claim(f, NONCE_1);
	assert_int_equal(strlen(written), c->claimed.body.len);
	assert_memory_equal(
	    written, c->claimed.body.bytes, c->claimed.body.len);
}

static void
no_message_holds_content_or_a_url(void **state)
{
	struct fixture *f = *state;

	(void)launch_new(f, 101, ATT_1);
	(void)still_running(f, ATT_1, 1);
	(void)end_attempt(f, ATT_1, "lost");
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "blocked", "no_route");
	assert_int_equal(4, sql_int(f, "SELECT COUNT(*) FROM outbox"));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE body LIKE '%%secret%%' OR"
		" body LIKE '%%https://%%' OR body LIKE '%%/srv/%%'"));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_guard_is_for_who_waits_for_a_word),
	    TRAP("I15", no_message_no_verdict, fixture_setup, fixture_teardown),
	    TEST(a_verdict_turned_to_held_has_no_guard),
	    TEST(a_holding_reply_is_for_no_route),
	    TEST(a_holding_reply_needs_a_place),
	    PROVES("T51", a_holding_reply_stands_down_with_its_reason),
	    TEST(each_tick_of_a_long_turn_is_told),
	    TEST(a_tick_is_counted_once_and_while_it_lives),
	    TEST(a_long_turn_without_a_place_is_counted_only),
	    TEST(an_ended_attempt_is_not_still_running),
	    TRAP("I15", a_notice_that_cannot_be_written_undoes_the_tick,
		fixture_setup, fixture_teardown),
	    TEST(unknown_work_asks_a_person),
	    TEST(every_stop_has_its_sentence),
	    TEST(a_success_with_a_reply_says_nothing),
	    TEST(a_success_without_a_reply_says_so_and_asks_nothing),
	    TEST(a_failure_asks),
	    TEST(only_the_last_failed_start_is_told),
	    TEST(a_chat_line_is_plain),
	    TEST(no_place_no_notice),
	    PROVES("T50", a_decided_ask_is_not_asked),
	    PROVES("T50", an_earlier_authorization_does_not_silence),
	    PROVES("T50", a_claimed_notice_is_said_again_from_the_rows),
	    TEST(an_undecided_notice_is_the_same_from_the_rows),
	    TEST(no_message_holds_content_or_a_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
