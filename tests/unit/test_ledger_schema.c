/* What the database itself refuses, asked by raw SQL (ledger.md 2 and 3.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

/* A record that came into its state by no edge. */
static void
event(struct fixture *f, int id, const char *state)
{
	sql_put(f,
	    "INSERT INTO events (id, state, lane, event_type, kind, action,"
	    " bucket_id, creator_id, recording_id, created_at, seen_at,"
	    " updated_at, snapshot) VALUES (%d, '%s', 'poll', 'x', 'x', 'x',"
	    " 1, 1, 1, 'c', 's', 'u', '{}')",
	    id, state);
}

static void
task(struct fixture *f, int id)
{
	sql_ok(f,
	    "INSERT INTO tasks (id, token_sha256, created_at)"
	    " VALUES (%d, 'hash%d', 'c')",
	    id, id);
}

static void
attempt(struct fixture *f, int task_id)
{
	sql_ok(f,
	    "INSERT INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('att_%d', %d, 1, 'd', 'launching', 'l')",
	    task_id, task_id);
}

/* Event 101 on task 1 with an attempt, the record dispatched. */
static void
on_task(struct fixture *f)
{
	event(f, 101, "admitted");
	task(f, 1);
	attempt(f, 1);
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (1, 101, 'k');"
	    "UPDATE events SET state = 'dispatched' WHERE id = 101");
}

static void
exposed(struct fixture *f)
{
	on_task(f);
	sql_ok(f,
	    "UPDATE task_events SET delivery = 'exposed',"
	    " exposed_at = 'e', exposed_attempt_id = 'att_1'");
}

static void
pulled(struct fixture *f)
{
	exposed(f);
	sql_ok(f, "UPDATE task_events SET pulled_at = 'p'");
}

static void
hold(struct fixture *f)
{
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
}

/* A completed(unknown) record on an ended task. */
static void
settled(struct fixture *f, const char *outcome)
{
	exposed(f);
	sql_ok(f,
	    "UPDATE attempts SET state = 'ended', stop_reason = 'lost';"
	    "UPDATE events SET state = 'completed' WHERE id = 101;"
	    "UPDATE task_events SET delivery = 'completed',"
	    " completed_at = '2026-01-05T10:00:00.000000000Z',"
	    " outcome = '%s';"
	    "UPDATE tasks SET superseded_at = 's', ended_at = 'e'",
	    outcome);
}

static void
decision(struct fixture *f, const char *action, int event_id, const char *hour)
{
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('%s', %d, 'me', '2026-01-05T%s:00:00.000000000Z')",
	    action, event_id, hour);
}

static void
tasks_keep_their_end(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	task(f, 2);
	sql_refused(
	    f, "DELETE FROM tasks WHERE id = 2"); /* with no rows, too */
	sql_put(f, "DELETE FROM tasks WHERE id = 2");
	sql_refused(f, "UPDATE tasks SET ended_at = 'e'");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_refused(f, "UPDATE tasks SET superseded_at = NULL");
	sql_refused(f, "UPDATE tasks SET superseded_at = 's2'");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_ok(f, "UPDATE tasks SET ended_at = 'e'");
	sql_refused(f, "UPDATE tasks SET ended_at = NULL");
	sql_refused(f, "DELETE FROM tasks");
}

static void
supersession_retires_rows_with_its_own_stamp(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	assert_string_equal(
	    "s", sql_get(f, "SELECT retired_at FROM task_events"));
}

static void
rows_neither_move_nor_go(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	task(f, 2);
	event(f, 102, "admitted");
	sql_refused(f, "DELETE FROM task_events");
	sql_refused(f, "UPDATE task_events SET task_id = 2");
	sql_refused(f, "UPDATE task_events SET event_id = 102");
	sql_refused(f, "UPDATE task_events SET conversation_key = 'other'");
	sql_refused(f, "UPDATE task_events SET retired_at = 'r'");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's' WHERE id = 1");
	sql_refused(f, "UPDATE task_events SET retired_at = NULL");
	sql_refused(f, "UPDATE task_events SET retired_at = 'again'");
}

static void
only_waiting_records_join_live_tasks(void **state)
{
	static const char *const others[] = {
	    "seen", "blocked", "completed", "discarded", "held"};
	struct fixture *f = *state;
	size_t i;

	task(f, 1);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		event(f, 200 + (int)i, others[i]);
		sql_refused(f,
		    "INSERT INTO task_events (task_id, event_id)"
		    " VALUES (1, %d)",
		    200 + (int)i);
	}
	sql_refused(
	    f, "INSERT INTO task_events (task_id, event_id) VALUES (1, 999)");
	event(f, 101, "admitted");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_refused(
	    f, "INSERT INTO task_events (task_id, event_id) VALUES (1, 101)");
}

static void
one_live_task_for_an_event_and_for_a_conversation(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	task(f, 2);
	event(f, 102, "admitted");
	sql_refused(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (2, 101, 'other')");
	sql_refused(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (2, 102, 'k')");
	/* Not freed by the record's own key being gone. */
	sql_ok(f, "UPDATE events SET conversation_key = '' WHERE id = 101");
	sql_refused(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (2, 102, 'k')");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's' WHERE id = 1");
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (2, 102, 'k')");
	/* Nor may an older task take a younger one's. */
	task(f, 3);
	event(f, 103, "admitted");
	event(f, 104, "admitted");
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (3, 103, 'l')");
	sql_refused(f,
	    "INSERT INTO task_events (task_id, event_id,"
	    " conversation_key) VALUES (2, 104, 'l')");
}

#define TASK_AT                                                             \
	"INSERT INTO tasks (id, token_sha256, created_at, conversation_key" \
	", work_dir) SELECT %1$d, 'hash%1$d', 'c', '%2$s', '%3$s'"

static void
one_unended_task_for_a_conversation_and_a_directory(void **state)
{
	struct fixture *f = *state;

	sql_ok(f, TASK_AT, 1, "k", "/w");
	sql_refused(f, TASK_AT, 2, "k", "/x");
	sql_refused(f, TASK_AT, 2, "l", "/w");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's' WHERE id = 1");
	sql_refused(f, TASK_AT, 2, "l", "/w");
	sql_ok(f, "UPDATE tasks SET ended_at = 'e' WHERE id = 1");
	sql_ok(f, TASK_AT, 2, "k", "/w");
	/* And none comes to be where another is. */
	sql_refused(f, "UPDATE tasks SET conversation_key = 'l' WHERE id = 2");
	sql_refused(f, "UPDATE tasks SET work_dir = '/x' WHERE id = 2");
}

static void
delivery_goes_forward_by_its_steps(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	sql_refused(f, "UPDATE task_events SET delivery = 'delivered'");
	sql_refused(f, "UPDATE task_events SET delivery = 'completed'");
	sql_ok(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_refused(f, "UPDATE task_events SET delivery = 'admitted'");
	sql_refused(f, "UPDATE task_events SET delivery = 'delivered'");
	sql_refused(f, "UPDATE task_events SET delivery = 'completed'");
	sql_ok(f, "UPDATE task_events SET pulled_at = 'p'");
	sql_ok(f, "UPDATE task_events SET delivery = 'delivered'");
	sql_refused(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_ok(f, "UPDATE task_events SET delivery = 'completed'");
	sql_refused(f, "UPDATE task_events SET delivery = 'delivered'");
}

/* The settlement is known by the record, which it writes first. */
static void
unpulled_work_completes_only_behind_its_record(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_refused(f, "UPDATE task_events SET delivery = 'completed'");
	sql_ok(f, "UPDATE events SET state = 'completed'");
	sql_ok(f, "UPDATE task_events SET delivery = 'completed'");
}

static void
no_statement_does_two_things(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_refused(f,
	    "UPDATE task_events SET pulled_at = 'p',"
	    " delivery = 'delivered'");
	sql_refused(f,
	    "UPDATE task_events SET pulled_at = 'p',"
	    " withdrawn_at = 'w'");
	sql_refused(f,
	    "UPDATE task_events SET pulled_at = 'p',"
	    " retired_at = 'r'");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_refused(f,
	    "UPDATE task_events SET withdrawn_at = 'w',"
	    " pulled_at = 'p'");
	sql_ok(f, "UPDATE events SET state = 'completed'");
	sql_refused(f,
	    "UPDATE task_events SET withdrawn_at = 'w',"
	    " delivery = 'completed'");
}

static void
a_pull_is_recorded_once(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	sql_refused(f, "UPDATE task_events SET pulled_at = 'p'");
	sql_ok(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_ok(f, "UPDATE task_events SET pulled_at = 'p'");
	sql_refused(f, "UPDATE task_events SET pulled_at = 'again'");
	sql_refused(f, "UPDATE task_events SET pulled_at = NULL");
}

static void
a_retired_row_is_not_pulled(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_refused(f, "UPDATE task_events SET pulled_at = 'p'");
}

static void
a_withdrawal_needs_its_proof(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_refused(f, "UPDATE task_events SET withdrawn_at = 'live'");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_ok(f, "UPDATE task_events SET withdrawn_at = 'w'");
	sql_refused(f, "UPDATE task_events SET withdrawn_at = 'again'");
	sql_refused(f, "UPDATE task_events SET withdrawn_at = NULL");
	/* It never moves again. */
	sql_ok(f, "UPDATE events SET state = 'completed'");
	sql_refused(f, "UPDATE task_events SET delivery = 'completed'");
}

static void
what_was_pulled_or_never_exposed_is_not_withdrawn(void **state)
{
	struct fixture *f = *state;

	pulled(f);
	event(f, 102, "admitted");
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id)"
	    " VALUES (1, 102)");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	sql_refused(f,
	    "UPDATE task_events SET withdrawn_at = 'w'"
	    " WHERE event_id = 101");
	sql_refused(f,
	    "UPDATE task_events SET withdrawn_at = 'w'"
	    " WHERE event_id = 102");
}

/* Supersede, withdraw, create, in one transaction. */
static void
a_withdrawal_stands_between_the_tasks(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_ok(f,
	    "BEGIN IMMEDIATE;"
	    "UPDATE attempts SET state = 'ended', stop_reason = 'failed';"
	    "UPDATE tasks SET superseded_at = 's';"
	    "UPDATE task_events SET withdrawn_at = 'w';"
	    "UPDATE events SET state = 'admitted';"
	    "INSERT INTO tasks (id, token_sha256, created_at)"
	    " VALUES (2, 'hash2', 'c');"
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (2, 101, 'k');"
	    "UPDATE events SET state = 'dispatched';"
	    "COMMIT");
	assert_string_equal("dispatched", state_of(f, 101));
}

/* And in no other order. */
static void
nothing_is_withdrawn_behind_the_retry(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	task(f, 2);
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id)"
	    " VALUES (2, 101)");
	sql_refused(
	    f, "UPDATE task_events SET withdrawn_at = 'w' WHERE task_id = 1");
}

/*
 * Whatever task has the row, and whatever became of that task: a worker may
 * have acted, so the record ends in an outcome. A withdrawal is the one
 * release.
 */
static void
handed_work_leaves_dispatched_only_completed(void **state)
{
	static const char *const deliveries[] = {"exposed", "delivered"};
	static const char *const tasks[] = {
	    "SELECT 1", "UPDATE tasks SET superseded_at = 's'"};
	static const char *const targets[] = {
	    "seen", "admitted", "queued", "blocked", "discarded", "held"};
	struct fixture *f = *state;
	size_t d, t, to;

	pulled(f);
	for (d = 0; d < 2; d++) {
		for (t = 0; t < 2; t++) {
			sql_ok(f,
			    "SAVEPOINT s; UPDATE task_events SET delivery ="
			    " '%s'; %s",
			    deliveries[d], tasks[t]);
			for (to = 0; to < 6; to++)
				sql_refused(f, "UPDATE events SET state = '%s'",
				    targets[to]);
			sql_ok(f, "UPDATE events SET state = 'completed'");
			sql_ok(f, "ROLLBACK TO s; RELEASE s");
		}
	}
}

static void
a_withdrawal_releases_handed_work(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
	task(f, 2);
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id) VALUES (2, 101);"
	    "UPDATE tasks SET superseded_at = 's' WHERE id = 2");
	/* The newer task's row was never exposed; the older one's was. */
	sql_refused(f, "UPDATE events SET state = 'admitted'");
	sql_ok(
	    f, "UPDATE task_events SET withdrawn_at = 'w' WHERE task_id = 1");
	sql_ok(f, "UPDATE events SET state = 'admitted'");
}

static void
a_guard_settles_once(void **state)
{
	struct fixture *f = *state;

	event(f, 101, "admitted");
	task(f, 1);
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id, guard)"
	    " VALUES (1, 101, 'armed')");
	sql_refused(f, "UPDATE task_events SET guard = ''");
	sql_ok(f, "UPDATE task_events SET guard = 'fired'");
	sql_refused(f, "UPDATE task_events SET guard = 'canceled'");
	sql_refused(f, "UPDATE task_events SET guard = 'armed'");
}

static void
an_acknowledgement_is_named_by_acknowledging(void **state)
{
	struct fixture *f = *state;

	pulled(f);
	sql_refused(f, "UPDATE task_events SET ack_id = 7");
	sql_ok(f,
	    "UPDATE task_events SET ack_id = 7,"
	    " delivery = 'delivered'");
	sql_refused(f, "UPDATE task_events SET ack_id = 8");
	sql_refused(f, "UPDATE task_events SET ack_id = NULL");
}

static void
an_unnamed_acknowledgement_stays_so(void **state)
{
	struct fixture *f = *state;

	pulled(f);
	sql_ok(f, "UPDATE task_events SET delivery = 'delivered'");
	sql_refused(f, "UPDATE task_events SET ack_id = 7");
}

static void
a_hold_hands_nothing_over(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	task(f, 2);
	hold(f);
	sql_refused(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_refused(f,
	    "INSERT INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('a', 2, 1, 'd', 'launching',"
	    " 'l')");
	sql_ok(f, "DELETE FROM hold_marker");
	sql_ok(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_ok(f, "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	sql_refused(f, "UPDATE task_events SET pulled_at = 'p'");
}

static void
attempts_never_go_back(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	sql_ok(f, "UPDATE attempts SET state = 'running'");
	sql_refused(f, "UPDATE attempts SET state = 'launching'");
	sql_refused(f, "UPDATE attempts SET state = 'ended'");
	sql_refused(f, "UPDATE attempts SET stop_reason = 'lost'");
	sql_ok(f, "UPDATE attempts SET state = 'ended', stop_reason = 'lost'");
	sql_refused(f,
	    "UPDATE attempts SET state = 'running',"
	    " stop_reason = ''");
	sql_refused(f, "UPDATE attempts SET stop_reason = 'failed'");
}

static void
one_live_attempt_for_a_task(void **state)
{
	struct fixture *f = *state;

	on_task(f);
	sql_refused(f,
	    "INSERT INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('b', 1, 2, 'd', 'launching',"
	    " 'l')");
}

static void
a_token_is_replaced_only_for_a_live_attempt(void **state)
{
	struct fixture *f = *state;

	task(f, 2);
	sql_refused(f, "UPDATE tasks SET token_sha256 = 'new' WHERE id = 2");
	on_task(f);
	sql_ok(f, "UPDATE tasks SET token_sha256 = 'new' WHERE id = 1");
	sql_refused(f,
	    "UPDATE tasks SET token_sha256 = 'x', superseded_at = 's'"
	    " WHERE id = 1");
	sql_ok(f, "UPDATE tasks SET superseded_at = 's' WHERE id = 1");
	sql_refused(f, "UPDATE tasks SET token_sha256 = 'x' WHERE id = 1");
}

/* ---- a person's exits -------------------------------------------------- */

static void
a_redispatch_needs_its_decision(void **state)
{
	struct fixture *f = *state;
	int d;

	settled(f, "unknown");
	event(f, 102, "seen");
	decision(f, "redispatch", 101, "09"); /* 1: older than the outcome */
	decision(f, "redispatch", 102, "11"); /* 2: another event's */
	decision(f, "discard", 101, "11");    /* 3: another action */
	decision(f, "redispatch", 101, "11"); /* 4 */
	sql_refused(f, "UPDATE events SET state = 'admitted' WHERE id = 101");
	for (d = 1; d <= 4; d++) {
		sql_ok(f,
		    "UPDATE events SET redispatch_decision = %d"
		    " WHERE id = 101",
		    d);
		sql_refused(f,
		    "UPDATE events SET state = 'admitted'"
		    " WHERE id = 101");
		if (d < 4)
			sql_refused(f,
			    "UPDATE events SET state = 'admitted',"
			    " redispatch_decision = NULL WHERE id = 101");
	}
	sql_ok(f,
	    "UPDATE events SET state = 'admitted',"
	    " redispatch_decision = NULL WHERE id = 101");
}

static void
no_redispatch_without_content_or_of_a_success(void **state)
{
	struct fixture *f = *state;

	settled(f, "succeeded");
	decision(f, "redispatch", 101, "11");
	sql_ok(f, "UPDATE events SET redispatch_decision = 1");
	sql_refused(f,
	    "UPDATE events SET state = 'admitted',"
	    " redispatch_decision = NULL");
	sql_ok(f, "UPDATE task_events SET outcome = 'failed'");
	sql_refused(f,
	    "UPDATE events SET state = 'admitted',"
	    " redispatch_decision = NULL, snapshot = NULL");
	sql_refused(f,
	    "UPDATE events SET state = 'admitted',"
	    " redispatch_decision = NULL, content_dropped = 1");
}

static void
discard_is_for_unknown_and_import_for_failed_too(void **state)
{
	struct fixture *f = *state;

	settled(f, "failed");
	decision(f, "discard", 101, "11");
	sql_refused(f,
	    "UPDATE events SET state = 'discarded',"
	    " reason = 'by_operator'");
	sql_refused(f,
	    "UPDATE events SET state = 'discarded',"
	    " reason = 'imported_done'");
	decision(f, "import", 101, "11");
	sql_refused(f,
	    "UPDATE events SET state = 'discarded',"
	    " reason = 'other'");
	sql_ok(f,
	    "UPDATE events SET state = 'discarded',"
	    " reason = 'imported_done'");
	sql_refused(f, "UPDATE events SET state = 'admitted', reason = ''");
}

static void
a_waiting_redispatch_runs_at_the_tasks_end(void **state)
{
	struct fixture *f = *state;

	exposed(f);
	sql_ok(f,
	    "UPDATE events SET state = 'completed';"
	    "UPDATE task_events SET delivery = 'completed', completed_at ="
	    " '2026-01-05T10:00:00.000000000Z', outcome = 'unknown'");
	decision(f, "redispatch", 101, "11");
	sql_ok(f,
	    "UPDATE events SET redispatch_decision = 1;"
	    "UPDATE tasks SET superseded_at = 's'");
	assert_string_equal("completed", state_of(f, 101));
	sql_ok(f, "UPDATE tasks SET ended_at = 'e'");
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_equal("e", sql_get(f, "SELECT updated_at FROM events"));
	assert_string_equal("",
	    sql_get(f,
		"SELECT COALESCE("
		"redispatch_decision, '') FROM events"));
}

/* The end goes through, whatever became of the redispatch. */
static void
a_task_ends_though_its_redispatch_cannot(void **state)
{
	static const char *const spoilers[] = {
	    "UPDATE events SET snapshot = NULL",
	    "UPDATE events SET content_dropped = 1",
	    "UPDATE task_events SET outcome = 'succeeded'",
	    "UPDATE decisions SET decided_at = '2026-01-05T09:00:00Z'",
	};
	struct fixture *f = *state;
	size_t i;

	exposed(f);
	sql_ok(f,
	    "UPDATE events SET state = 'completed';"
	    "UPDATE task_events SET delivery = 'completed', completed_at ="
	    " '2026-01-05T10:00:00.000000000Z', outcome = 'unknown'");
	decision(f, "redispatch", 101, "11");
	sql_ok(f,
	    "UPDATE events SET redispatch_decision = 1;"
	    "UPDATE tasks SET superseded_at = 's'");
	for (i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
		sql_put(f, "SAVEPOINT s; %s", spoilers[i]);
		sql_ok(f, "UPDATE tasks SET ended_at = 'e'");
		assert_string_equal("completed", state_of(f, 101));
		sql_ok(f, "ROLLBACK TO s; RELEASE s");
	}
}

/* ---- review and generations -------------------------------------------- */

static void
a_tagged_record_is_held_where_it_would_wait(void **state)
{
	struct fixture *f = *state;

	event(f, 101, "seen");
	event(f, 102, "admitted");
	event(f, 103, "blocked");
	sql_ok(f, "UPDATE events SET review = 1");
	assert_string_equal("seen", state_of(f, 101));
	assert_string_equal("held", state_of(f, 102));
	assert_string_equal("blocked", state_of(f, 103));
	sql_ok(f,
	    "UPDATE events SET state = 'admitted', reason = ''"
	    " WHERE id IN (101, 103)");
	assert_string_equal("held", state_of(f, 101));
	assert_string_equal("held", state_of(f, 103));
	sql_ok(f,
	    "UPDATE events SET state = 'admitted',"
	    " authorized_at = 'a' WHERE id = 101");
	assert_string_equal("admitted", state_of(f, 101));
	sql_ok(f, "UPDATE events SET authorized_at = NULL WHERE id = 101");
	assert_string_equal("held", state_of(f, 101));
	assert_string_equal(
	    "{}", sql_get(f, "SELECT snapshot FROM events WHERE id = 101"));
}

static void
held_takes_the_guard_back(void **state)
{
	struct fixture *f = *state;

	event(f, 101, "admitted");
	sql_ok(f,
	    "INSERT INTO outbox (intent_key, kind, event_id, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before)"
	    " VALUES ('g', 'guard_ack', 101, 1, 'boost', 1, 'b', 'c',"
	    " 'n')");
	sql_ok(f, "UPDATE events SET review = 1");
	assert_string_equal("canceled held",
	    sql_get(f, "SELECT state || ' ' || note FROM outbox"));
	/* As wide as any stamp. */
	assert_int_equal(CLOCK_STAMP_LEN,
	    sql_int(f, "SELECT length(finished_at) FROM outbox"));
}

static void
records_bear_the_generation_they_came_in(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	hold(f);
	(void)record_event(f, 102);
	assert_int_equal(
	    0, sql_int(f, "SELECT generation FROM events WHERE id = 101"));
	assert_int_equal(
	    1, sql_int(f, "SELECT generation FROM events WHERE id = 102"));
}

/* ---- the outbox -------------------------------------------------------- */

static void
intent(struct fixture *f, const char *kind)
{
	event(f, 101, "admitted");
	sql_ok(f,
	    "INSERT INTO outbox (intent_key, kind, event_id, bucket_id,"
	    " argument_sha256, message_kind, recording_id, body, created_at,"
	    " not_before) VALUES ('k', '%s', 101, 1, '%s', 'comment', 1, 'b',"
	    " 'c', 'n')",
	    kind, strncmp(kind, "worker", 6) == 0 ? "hash" : "");
}

/* An intent that came into its state by no edge. */
static void
outbox_put(struct fixture *f, const char *key, const char *kind,
    const char *message_kind, const char *state)
{
	sql_put(f,
	    "INSERT INTO outbox (intent_key, kind, state, event_id, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before,"
	    " sending_at, receipt_id) VALUES ('%s', '%s', '%s', 101, 1, '%s',"
	    " 1, 'b', 'c', 'n', 's', %s)",
	    key, kind, state, message_kind,
	    strcmp(state, "sent") == 0 ? "7" : "NULL");
}

static void
a_receipt_is_final_and_means_sent(void **state)
{
	struct fixture *f = *state;

	event(f, 101, "admitted");
	outbox_put(f, "k", "completion", "comment", "sending");
	sql_refused(f, "UPDATE outbox SET state = 'sent'");
	sql_refused(f, "UPDATE outbox SET receipt_id = 7");
	sql_ok(f, "UPDATE outbox SET state = 'sent', receipt_id = 7");
	sql_refused(f, "UPDATE outbox SET receipt_id = 8");
	sql_refused(f, "UPDATE outbox SET receipt_id = NULL");
}

static void
a_receipt_is_one_intents_of_its_kind(void **state)
{
	struct fixture *f = *state;

	event(f, 101, "admitted");
	outbox_put(f, "k", "completion", "comment", "sent");
	outbox_put(f, "l", "completion", "comment", "sending");
	outbox_put(f, "m", "guard_ack", "boost", "sending");
	sql_refused(f,
	    "UPDATE outbox SET state = 'sent', receipt_id = 7"
	    " WHERE intent_key = 'l'");
	sql_ok(f,
	    "UPDATE outbox SET state = 'sent', receipt_id = 7"
	    " WHERE intent_key = 'm'");
}

static void
a_hold_stops_the_connectors_words_only(void **state)
{
	struct fixture *f = *state;

	intent(f, "completion");
	hold(f);
	sql_refused(f,
	    "UPDATE outbox SET state = 'sending',"
	    " sending_at = 's'");
	sql_put(f, "DELETE FROM outbox; DELETE FROM events");
	intent(f, "worker_reply");
	sql_ok(f, "UPDATE outbox SET state = 'sending', sending_at = 's'");
}

static void
a_body_is_fixed(void **state)
{
	struct fixture *f = *state;

	intent(f, "worker_reply");
	sql_refused(f, "UPDATE outbox SET body = 'other'");
	sql_put(f, "DELETE FROM outbox; DELETE FROM events");
	intent(f, "completion");
	sql_ok(f, "UPDATE outbox SET body = 'other'");
	sql_ok(f, "UPDATE outbox SET state = 'sending', sending_at = 's'");
	sql_refused(f, "UPDATE outbox SET body = 'third'");
}

static void
a_worker_posts_twenty_of_a_kind(void **state)
{
	struct fixture *f = *state;
	int i;

	on_task(f);
	for (i = 0; i <= 20; i++) {
		int rc = sql(f,
		    "INSERT INTO outbox (intent_key, kind, event_id, task_id,"
		    " argument_sha256, bucket_id, message_kind, recording_id,"
		    " body, created_at, not_before) VALUES ('k%d',"
		    " 'worker_reply', 101, 1, 'h%d', 1, 'comment', 1, 'b',"
		    " 'c', 'n')",
		    i, i);

		assert_int_equal(i < 20 ? SQLITE_OK : SQLITE_CONSTRAINT, rc);
	}
}

/* Two neighbours of an edge's list are no name, nor are bytes or a digit. */
static void
an_edge_leads_to_one_name(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	sql_refused(f, "UPDATE events SET state = 'queued blocked'");
	sql_refused(f, "UPDATE events SET state = CAST('queued' AS BLOB)");
	(void)admit_event(f, 101, "k");
	fixture_wait(60000);
	assert_true(claim(f, NONCE_1)->claimed.found);
	sql_refused(f, "UPDATE outbox SET state = 'sent0 indeterminate'");
	sql_refused(f, "UPDATE outbox SET state = CAST('sent' AS BLOB)");
	sql_refused(f,
	    "UPDATE outbox SET state = 'sent', refused = '0 indeterminate0'");
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    T("T16 I8", tasks_keep_their_end),
	    TEST(supersession_retires_rows_with_its_own_stamp),
	    T("T16", rows_neither_move_nor_go),
	    T("T16", only_waiting_records_join_live_tasks),
	    T("I1 I2", one_live_task_for_an_event_and_for_a_conversation),
	    TEST(one_unended_task_for_a_conversation_and_a_directory),
	    T("T30", delivery_goes_forward_by_its_steps),
	    T("T30", unpulled_work_completes_only_behind_its_record),
	    T("T22", no_statement_does_two_things),
	    TEST(a_pull_is_recorded_once),
	    TEST(a_retired_row_is_not_pulled),
	    T("T23", a_withdrawal_needs_its_proof),
	    T("T23", what_was_pulled_or_never_exposed_is_not_withdrawn),
	    T("T24", a_withdrawal_stands_between_the_tasks),
	    T("T23 T24", nothing_is_withdrawn_behind_the_retry),
	    T("I4", handed_work_leaves_dispatched_only_completed),
	    T("I4", a_withdrawal_releases_handed_work),
	    TEST(a_guard_settles_once),
	    T("T33", an_acknowledgement_is_named_by_acknowledging),
	    T("T33", an_unnamed_acknowledgement_stays_so),
	    TEST(a_hold_hands_nothing_over),
	    TEST(attempts_never_go_back),
	    TEST(one_live_attempt_for_a_task),
	    TEST(a_token_is_replaced_only_for_a_live_attempt),
	    TEST(a_redispatch_needs_its_decision),
	    TEST(no_redispatch_without_content_or_of_a_success),
	    TEST(discard_is_for_unknown_and_import_for_failed_too),
	    TEST(a_waiting_redispatch_runs_at_the_tasks_end),
	    TEST(a_task_ends_though_its_redispatch_cannot),
	    TEST(a_tagged_record_is_held_where_it_would_wait),
	    TEST(held_takes_the_guard_back),
	    TEST(records_bear_the_generation_they_came_in),
	    TEST(a_receipt_is_final_and_means_sent),
	    TEST(a_receipt_is_one_intents_of_its_kind),
	    TEST(a_hold_stops_the_connectors_words_only),
	    TEST(a_body_is_fixed),
	    TEST(a_worker_posts_twenty_of_a_kind),
	    TEST(an_edge_leads_to_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
