/*
 * REDISPATCH and DISCARD of what no worker has (ledger.md 3.6, operator.md 3.3
 * and 3.4); of what one has, in test_ledger_supersede.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/record.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define START "2026-01-05T09:00:00.000000000Z"

static char token[TOKEN_LEN + 1];

static void
admitted(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
}

static void
seen(struct fixture *f)
{
	(void)record_event(f, 101);
}

static void
queued(struct fixture *f)
{
	admitted(f);
	sql_ok(f, "UPDATE events SET state = 'queued'");
}

static void
blocked(struct fixture *f)
{
	seen(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

static void
discarded(struct fixture *f)
{
	seen(f);
	(void)refuse_event(f, 101, "discarded", "untrusted");
}

static void
dispatched(struct fixture *f)
{
	admitted(f);
	(void)snprintf(token, sizeof(token), "%s", launch(f, 101, ATT_1));
}

static void
held(struct fixture *f)
{
	admitted(f);
	assert_int_equal(1, set_hold(f)->hold_is.held);
}

static void
unknown(struct fixture *f)
{
	dispatched(f);
	(void)end_attempt(f, ATT_1, "lost");
}

static void
reported(struct fixture *f, const char *outcome)
{
	dispatched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, outcome, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
}

static void
failed(struct fixture *f)
{
	reported(f, "failed");
}

static void
succeeded(struct fixture *f)
{
	reported(f, "succeeded");
}

static void
without_outcome(struct fixture *f)
{
	unknown(f);
	sql_ok(f, "UPDATE task_events SET outcome = ''");
}

static void
waiting(struct fixture *f)
{
	dispatched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	assert_true(redispatch_event(f, 101)->decided.pending);
}

static void
content_dropped(struct fixture *f)
{
	unknown(f);
	sql_ok(f, "UPDATE events SET content_dropped = 1");
}

static void
without_snapshot(struct fixture *f)
{
	unknown(f);
	sql_ok(f, "UPDATE events SET snapshot = x''");
}

static void
without_route(struct fixture *f)
{
	unknown(f);
	sql_ok(f, "UPDATE events SET routed = 0");
}

static void
without_conversation(struct fixture *f)
{
	unknown(f);
	sql_ok(f, "UPDATE events SET conversation_key = ''");
}

static void
closed(struct fixture *f)
{
	blocked(f);
	assert_string_equal("discarded", discard_event(f, 101)->decided.state);
}

/* ---- every state, either decision --------------------------------------- */

/* What the refusal says besides the event; NULL: it is not refused. */
static const struct {
	void (*put)(struct fixture *f);
	const char *redispatch;
	const char *discard;
} ways[] = {
    {seen, "is seen: it is being decided", "is seen: it is not decided"},
    {admitted, "is admitted: it starts", "is admitted: it waits"},
    {queued, "is queued: it starts", "is queued: it waits"},
    {dispatched, "is dispatched: a worker has it",
	"is dispatched: a worker has it"},
    {blocked, NULL, NULL},
    {held, NULL, NULL},
    {discarded, "is discarded (untrusted): it is closed for good",
	"is discarded (untrusted): it is closed for another reason"},
    {closed, "is discarded (by_operator): it is closed for good", NULL},
    {without_outcome, "is completed: it has no settled outcome",
	"is completed: only an unknown outcome"},
    {succeeded, "is completed (succeeded): it is done",
	"is completed (succeeded): only an unknown outcome"},
    {failed, NULL, "is completed (failed): only an unknown outcome"},
    {unknown, NULL, NULL},
    {waiting, "is completed (failed): a redispatch waits",
	"is completed (failed): only an unknown outcome"},
    {content_dropped, "is completed (unknown): its content", NULL},
    {without_snapshot, "is completed (unknown): its content", NULL},
    {without_route, "is completed (unknown): its content", NULL},
    {without_conversation, "is completed (unknown): its content", NULL},
};

static void
try_way(size_t i, struct msg *(*decide)(struct fixture *f, int64_t id),
    const char *refusal)
{
	const struct msg *reply;
	struct fixture *f;
	void *state;
	int changes;

	(void)fixture_setup(&state);
	f = state;
	ways[i].put(f);
	fixture_forget(f);
	changes = sqlite3_total_changes(f->l.db);
	reply = decide(f, 101);
	if (refusal != NULL) {
		assert_failed(reply, "refused");
		assert_non_null(strstr(reply->failed.text, "event 101 "));
		if (strstr(reply->failed.text, refusal) == NULL)
			fail_msg("%s, not %s", reply->failed.text, refusal);
		assert_int_equal(changes, sqlite3_total_changes(f->l.db));
		assert_int_equal(0, f->line_count + f->notice_count);
	} else if (reply->type == MSG_FAILED) {
		fail_msg("%s", reply->failed.text);
	}
	(void)fixture_teardown(&state);
}

/* A refusal names event, state and why, and has written nothing. */
static void
every_state_has_its_answer(void **state)
{
	size_t i, refused = 0;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		try_way(i, redispatch_event, ways[i].redispatch);
		try_way(i, discard_event, ways[i].discard);
		refused +=
		    (ways[i].redispatch != NULL) + (ways[i].discard != NULL);
	}
	print_message("%zu decisions tried, %zu refused\n", 2 * i, refused);
}

static void
what_is_not_there_is_not_found(void **state)
{
	struct fixture *f = *state;

	assert_failed(redispatch_event(f, 404), "not_found");
	assert_failed(discard_event(f, 404), "not_found");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

static const char *
decision(struct fixture *f)
{
	return sql_get(f,
	    "SELECT action || ' ' || event_id || ' ' || decided_by || ' ' ||"
	    " decided_at || ' ' || from_state || ' ' || from_reason || ' ' ||"
	    " from_outcome || ' ' || to_state FROM decisions"
	    " ORDER BY id DESC");
}

static const char *
authorization(struct fixture *f)
{
	return sql_get(f,
	    "SELECT COALESCE(authorized_at, '-') || ' ' || authorized_by"
	    " FROM events WHERE id = 101");
}

static bool
was_told(struct fixture *f, enum msg_type type)
{
	size_t i;

	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == type && f->notices[i].id == 101)
			return true;
	}
	return false;
}

/* ---- redispatch ---------------------------------------------------------- */

static void
ended_work_runs_again_at_once(struct fixture *f, const char *outcome)
{
	const struct msg_decided *is;

	fixture_forget(f);
	is = &redispatch_event(f, 101)->decided;
	assert_string_equal("completed", is->from_state);
	assert_string_equal(outcome, is->from_outcome);
	assert_string_equal("admitted", is->state);
	assert_false(is->pending || is->rerun || is->already || is->held);
	assert_int_equal(0, is->superseded_task_id);
	assert_string_equal("", is->attempt);
	assert_int_equal(
	    is->decision_id, sql_int(f, "SELECT MAX(id) FROM decisions"));
	assert_string_equal(START " local:ann", authorization(f));
	assert_string_equal("-",
	    sql_get(
		f, "SELECT COALESCE(redispatch_decision, '-') FROM events"));
	assert_true(was_told(f, MSG_WORK_WAITS));
	assert_string_equal(
	    "{\"type\":\"event\",\"event_id\":101,\"event_type\":"
	    "\"comment.created\",\"trigger\":\"mentioned\",\"class\":"
	    "\"web\",\"route\":\"/srv/web\",\"bucket_id\":10,"
	    "\"recording_id\":1101,\"recording_url\":"
	    "\"https://3.basecamp.com/999/buckets/10/x\",\"requester_id\":"
	    "26909558,\"state\":\"admitted\"}",
	    f->lines[f->line_count - 1]);
	assert_string_not_equal("", launch(f, 101, ATT_2));
}

static void
unknown_work_runs_again(void **state)
{
	struct fixture *f = *state;

	unknown(f);
	ended_work_runs_again_at_once(f, "unknown");
	assert_string_equal("redispatch 101 local:ann " START
			    " completed  unknown admitted",
	    decision(f));
}

static void
failed_work_runs_again(void **state)
{
	struct fixture *f = *state;

	failed(f);
	ended_work_runs_again_at_once(f, "failed");
}

/* The machine may not do what a person may. */
static void
no_machine_reopens_a_record(void **state)
{
	struct fixture *f = *state;
	struct move m = {.event_id = 101, .to = RECORD_ADMITTED};

	unknown(f);
	assert_int_equal(MOVE_NO_TRANSITION, record_move(&f->l, &m));
	m.to = RECORD_DISCARDED;
	m.reason = "by_operator";
	assert_int_equal(MOVE_NO_TRANSITION, record_move(&f->l, &m));
	sql_reset_all(&f->l);
}

/* The clock was stepped back behind the outcome. */
static void
a_decision_is_not_older_than_its_outcome(void **state)
{
	struct fixture *f = *state;

	unknown(f);
	fixture_wait(-3600000);
	assert_string_equal(
	    "admitted", redispatch_event(f, 101)->decided.state);
	assert_string_equal(START " local:ann", authorization(f));
	assert_non_null(strstr(decision(f), " " START " "));
	(void)launch(f, 101, ATT_2);
	fixture_wait(3600000);
	(void)end_attempt(f, ATT_2, "lost");
	fixture_wait(-3600000);
	assert_string_equal("discarded", discard_event(f, 101)->decided.state);
	assert_non_null(strstr(decision(f), " " START " "));
}

static void
a_held_record_is_admitted(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	held(f);
	fixture_forget(f);
	is = &redispatch_event(f, 101)->decided;
	assert_string_equal("held", is->from_state);
	assert_string_equal("admitted", is->state);
	assert_true(is->held);
	assert_false(is->rerun);
	assert_string_equal(START " local:ann", authorization(f));
	assert_true(was_told(f, MSG_WORK_WAITS));
	assert_string_equal(
	    SNAPSHOT, sql_get(f, "SELECT snapshot FROM events"));
	(void)release_hold(f);
	assert_string_not_equal("", launch(f, 101, ATT_1));
}

static void
a_held_record_waits_behind_its_conversation(void **state)
{
	static const char *const live[] = {"admitted", "dispatched"};
	struct fixture *f = *state;
	size_t i;

	held(f);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	for (i = 0; i < 2; i++) {
		if (strcmp(live[i], "dispatched") == 0)
			sql_ok(f,
			    "INSERT INTO tasks (id, token_sha256, created_at)"
			    " VALUES (1, 'h', 'c');"
			    "INSERT INTO task_events (task_id, event_id,"
			    " conversation_key) VALUES (1, 102, 'k');"
			    "UPDATE events SET state = 'dispatched'"
			    " WHERE id = 102");
		assert_string_equal(
		    "queued", redispatch_event(f, 101)->decided.state);
		sql_ok(f, "UPDATE events SET authorized_at = NULL");
		assert_string_equal("held", state_of(f, 101));
	}
	/* Queued ones alone do not make it live: nothing would start. */
	sql_put(f,
	    "DELETE FROM task_events; DELETE FROM tasks;"
	    "UPDATE events SET state = 'queued' WHERE id = 102");
	assert_string_equal(
	    "admitted", redispatch_event(f, 101)->decided.state);
}

static struct msg_undecided *
next_undecided(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_UNDECIDED};

	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_UNDECIDED)->undecided;
}

/* What is missing is read again by intake, at once. */
static void
an_incomplete_held_record_is_decided_anew(void **state)
{
	static const struct {
		const char *spoil, *reason;
	} rows[] = {{"reason = 'why'", "why"},
	    {"snapshot = NULL", "held_incomplete"},
	    {"content_dropped = 1", "held_incomplete"},
	    {"routed = 0", "held_incomplete"},
	    {"conversation_key = ''", "held_incomplete"}};
	struct fixture *f = *state;
	const struct msg_decided *is;
	size_t i;

	held(f);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sql_put(f, "UPDATE events SET %s", rows[i].spoil);
		fixture_forget(f);
		is = &redispatch_event(f, 101)->decided;
		assert_string_equal("blocked", is->state);
		assert_true(is->rerun);
		assert_true(was_told(f, MSG_UNDECIDED_WAITS));
		assert_string_equal(START " local:ann", authorization(f));
		assert_int_equal(101, next_undecided(f)->event_id);
		assert_string_equal(rows[i].reason, next_undecided(f)->reason);
		assert_string_equal("1 " START,
		    sql_get(f,
			"SELECT (snapshot IS NULL) || ' ' || blocked_at"
			" FROM events"));
		/* Tagged as it is, its verdict stands: it is authorized. */
		assert_string_equal("admitted", admit_event(f, 101, "k"));
		assert_int_equal(1, set_hold(f)->hold_is.held);
		sql_put(f, "UPDATE events SET content_dropped = 0");
	}
}

static void
a_blocked_record_is_decided_anew(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;
	int64_t revision;

	blocked(f);
	assert_false(next_undecided(f)->found);
	revision = sql_int(f, "SELECT revision FROM events");
	fixture_wait(1000);
	fixture_forget(f);
	is = &redispatch_event(f, 101)->decided;
	assert_string_equal("blocked", is->from_state);
	assert_string_equal("no_route", is->from_reason);
	assert_string_equal("blocked", is->state);
	assert_true(is->rerun);
	assert_false(is->pending || is->held);
	assert_true(was_told(f, MSG_UNDECIDED_WAITS));
	assert_false(was_told(f, MSG_WORK_WAITS));
	assert_int_equal(0, f->line_count); /* nothing moved */
	assert_int_equal(revision, sql_int(f, "SELECT revision FROM events"));
	assert_string_equal("blocked no_route " START " " START,
	    sql_get(f,
		"SELECT state || ' ' || reason || ' ' || updated_at || ' ' ||"
		" blocked_at FROM events"));
	assert_string_equal(
	    "2026-01-05T09:00:01.000000000Z local:ann", authorization(f));
	/* At once, over a restart too. */
	fixture_restart(f);
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_int_equal(revision, next_undecided(f)->revision);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
a_throttled_record_does_not_wait_for_its_deadline(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	seen(f);
	m = verdict_of(f, 101, "blocked");
	m.verdict.reason = "throttled";
	m.verdict.retry_at = m.verdict.next_retry_at =
	    "2026-01-05T11:00:00.000000000Z";
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_false(next_undecided(f)->found);
	(void)redispatch_event(f, 101);
	assert_true(next_undecided(f)->found);
}

/* "authorized_blocked review_tagged" as status counts them. */
static const char *
counts(struct fixture *f)
{
	static char out[64];

	(void)snprintf(out, sizeof(out), "%s %s",
	    sql_get(f, "%s", sql_text(STMT_STATUS_AUTHORIZED)),
	    sql_get(f, "%s", sql_text(STMT_STATUS_REVIEW)));
	return out;
}

/* The block is dated later than the decision's own now. */
static void
an_authorization_counts_from_the_block_on(void **state)
{
	struct fixture *f = *state;

	blocked(f);
	(void)set_hold(f);
	assert_string_equal("0 1", counts(f));
	fixture_wait(-60000);
	(void)redispatch_event(f, 101);
	assert_string_equal(START " local:ann", authorization(f));
	assert_string_equal("1 0", counts(f));
	/* Still blocked for the same, it counts on; later blocked, no more. */
	fixture_wait(120000);
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_string_equal("1 0", counts(f));
	assert_string_equal("admitted", admit_event(f, 101, "k"));
	(void)refuse_event(f, 101, "blocked", "no_route");
	assert_string_equal("admitted", state_of(f, 101));
	(void)release_hold(f);
	(void)launch(f, 101, ATT_1);
	(void)spawn_failed(f, ATT_1);
	assert_string_equal("admitted", state_of(f, 101)); /* not held */
	(void)launch(f, 101, ATT_2);
	(void)spawn_failed(f, ATT_2);
	assert_string_equal("blocked", state_of(f, 101));
	assert_string_equal("0 1", counts(f));
	(void)redispatch_event(f, 101);
	assert_string_equal("1 0", counts(f));
}

/* An authorization is taken back by the next hold, the rerun held by it. */
static void
a_hold_takes_an_authorization_back(void **state)
{
	struct fixture *f = *state;

	blocked(f);
	(void)redispatch_event(f, 101);
	(void)set_hold(f);
	assert_string_equal("- ", authorization(f));
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_string_equal("held", admit_event(f, 101, "k"));
}

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

	blocked(f);
	fixture_forget(f);
	discard_closes(f, "blocked");
	assert_string_equal("discard 101 local:ann " START
			    " blocked no_route  discarded",
	    decision(f));
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

	unknown(f);
	discard_closes(f, "completed");
	assert_string_equal("discard 101 local:ann " START
			    " completed  unknown discarded",
	    decision(f));
}

static void
a_held_record_is_discarded(void **state)
{
	struct fixture *f = *state;

	held(f);
	discard_closes(f, "held");
}

/* ---- messages ------------------------------------------------------------ */

static void
post(struct fixture *f, const char *kind)
{
	struct msg m = {.type = MSG_POST};

	m.post = (struct msg_post){
	    token, 101, kind, HASH, {"<p>x</p>", 8}, {"x", 1}};
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

	blocked(f);
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

	dispatched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
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

	blocked(f);
	assert_int_equal(0, redispatch_event(f, 101)->decided.canceled);
	assert_string_equal("holding_reply:pending", intents(f));
}

/* What was claimed may be posted by now: no decision takes it back. */
static void
a_claimed_message_is_not_canceled(void **state)
{
	struct fixture *f = *state;

	dispatched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
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

	unknown(f);
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

	blocked(f);
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

/* ---- nonces -------------------------------------------------------------- */

/* The same nonce later: what it decided, and what has become of it. */
static void
a_repeat_says_what_stands_now(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH};
	const struct msg_decided *is;

	unknown(f);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 101};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED);
	(void)launch(f, 101, ATT_2);
	(void)end_attempt(f, ATT_2, "lost");
	fixture_forget(f);
	is = &fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED)->decided;
	assert_string_equal("completed", is->from_state);
	assert_string_equal("unknown", is->from_outcome);
	assert_string_equal("completed", is->state);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_int_equal(0, f->line_count + f->notice_count);
}

static void
a_nonce_decides_one_thing(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH}, other = {.type = MSG_DISCARD};

	unknown(f);
	(void)record_event(f, 102);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 101};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED);
	m.redispatch.event_id = 102;
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "refused");
	other.discard = (struct msg_discard){NONCE_1, "local:ann", 101};
	assert_failed(fixture_ask(f, &other, ROLE_SUPERVISOR, ""), "refused");
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* A decision that cannot be written whole is none. */
static void
a_decision_is_whole_or_none(void **state)
{
	struct fixture *f = *state;

	unknown(f);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE OF state ON events BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(redispatch_event(f, 101), "refused");
	assert_failed(discard_event(f, 101), "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_string_equal("- ", authorization(f));
}

/* ---- the ways out of the end, by raw SQL -------------------------------- */

static const char *const outcomes[] = {"succeeded", "failed", "unknown"};
/* Whose decision there is: of nobody, too old, of another event, good. */
enum standing { NONE, OLD, ANOTHERS, GOOD, STANDINGS };
static const char *const actions[] = {"redispatch", "discard", "import"};
static const char *const reasons[] = {"", "by_operator", "imported_done"};

static bool
exit_is_open(const char *outcome, enum standing standing, const char *action,
    enum record_state to, const char *reason)
{
	bool is_unknown = strcmp(outcome, "unknown") == 0;
	bool is_open = is_unknown || strcmp(outcome, "failed") == 0;

	if (to == RECORD_COMPLETED)
		return true;
	if (standing != GOOD)
		return false;
	if (to == RECORD_ADMITTED)
		return is_open && strcmp(action, "redispatch") == 0;
	if (to != RECORD_DISCARDED)
		return false;
	return (strcmp(reason, "by_operator") == 0 && is_unknown &&
		   strcmp(action, "discard") == 0) ||
	    (strcmp(reason, "imported_done") == 0 && is_open &&
		strcmp(action, "import") == 0);
}

static void
put_exit(struct fixture *f, const char *outcome, enum standing standing,
    const char *action)
{
	sql_ok(
	    f, "SAVEPOINT s; UPDATE task_events SET outcome = '%s'", outcome);
	if (standing == NONE)
		return;
	sql_ok(f,
	    "INSERT INTO decisions (id, action, event_id, decided_by,"
	    " decided_at) VALUES (1, '%s', %d, 'me', '2026-01-05T%s')",
	    action, standing == ANOTHERS ? 102 : 101,
	    standing == OLD ? "08:59:59.999999999Z" : "09:00:00.000000000Z");
	sql_ok(f, "UPDATE events SET redispatch_decision = 1");
}

static size_t
try_exits(struct fixture *f, const char *outcome, enum standing standing,
    const char *action)
{
	enum record_state to;
	size_t r, n = 0;

	for (to = 0; to < RECORD_STATES; to++) {
		for (r = 0; r < 3; r++, n++) {
			bool open, was;

			put_exit(f, outcome, standing, action);
			open = exit_is_open(
			    outcome, standing, action, to, reasons[r]);
			was =
			    sql(f,
				"UPDATE events SET state = '%s',"
				" reason = '%s', redispatch_decision = NULL"
				" WHERE id = 101",
				record_state_name(to), reasons[r]) == SQLITE_OK;
			if (open != was)
				fail_msg("%s, %d %s, to %s %s: %d", outcome,
				    (int)standing, action,
				    record_state_name(to), reasons[r], was);
			sql_ok(f, "ROLLBACK TO s; RELEASE s");
		}
	}
	return n;
}

static void
a_finished_record_has_three_ways_out(void **state)
{
	struct fixture *f = *state;
	enum standing standing;
	size_t o, a, n = 0;

	unknown(f);
	(void)record_event(f, 102);
	for (o = 0; o < 3; o++) {
		for (standing = NONE; standing < STANDINGS; standing++) {
			for (a = 0; a < 3; a++)
				n += try_exits(
				    f, outcomes[o], standing, actions[a]);
		}
	}
	print_message("%zu ways out tried\n", n);
}

/* Closed is closed, whatever anybody decided. */
static void
a_discarded_record_has_none(void **state)
{
	struct fixture *f = *state;
	enum record_state to;
	size_t a;

	unknown(f);
	(void)discard_event(f, 101);
	sql_put(f, "DELETE FROM decisions");
	for (a = 0; a < 3; a++) {
		for (to = 0; to < RECORD_STATES; to++) {
			if (to == RECORD_DISCARDED)
				continue;
			put_exit(f, "unknown", GOOD, actions[a]);
			sql_refused(f,
			    "UPDATE events SET state = '%s',"
			    " redispatch_decision = NULL, snapshot = '{}'",
			    record_state_name(to));
			sql_ok(f, "ROLLBACK TO s; RELEASE s");
		}
	}
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_state_has_its_answer),
	    TEST(what_is_not_there_is_not_found),
	    TEST(unknown_work_runs_again),
	    TEST(failed_work_runs_again),
	    TEST(no_machine_reopens_a_record),
	    PROVES("T64", a_decision_is_not_older_than_its_outcome),
	    TEST(a_held_record_is_admitted),
	    TEST(a_held_record_waits_behind_its_conversation),
	    TEST(an_incomplete_held_record_is_decided_anew),
	    TEST(a_blocked_record_is_decided_anew),
	    TEST(a_throttled_record_does_not_wait_for_its_deadline),
	    PROVES("T69", an_authorization_counts_from_the_block_on),
	    TEST(a_hold_takes_an_authorization_back),
	    TEST(a_discard_is_final_and_may_be_said_again),
	    TEST(unknown_work_is_discarded),
	    TEST(a_held_record_is_discarded),
	    TEST(a_discard_cancels_what_was_to_be_said),
	    TEST(a_workers_waiting_words_are_canceled),
	    TEST(a_redispatch_leaves_the_connectors_words),
	    TEST(a_claimed_message_is_not_canceled),
	    PROVES("T50", a_decided_notice_does_not_ask),
	    PROVES("T50", an_authorization_before_the_end_does_not_silence),
	    TEST(a_repeat_says_what_stands_now),
	    TEST(a_nonce_decides_one_thing),
	    TEST(a_decision_is_whole_or_none),
	    PROVES("T65 I13", a_finished_record_has_three_ways_out),
	    PROVES("T65 I13", a_discarded_record_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
