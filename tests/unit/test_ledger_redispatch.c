/* What a REDISPATCH does (ledger.md 3.6, operator.md 3.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/record.h"
#include "tests/unit/decision_scene.h"
#include "tests/unit/trap.h"

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
	assert_string_equal(START " local:ann", authorization_now(f));
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

	put_unknown(f);
	ended_work_runs_again_at_once(f, "unknown");
	assert_string_equal("redispatch 101 local:ann " START
			    " completed  unknown admitted",
	    decision_last(f));
}

static void
failed_work_runs_again(void **state)
{
	struct fixture *f = *state;

	put_failed(f);
	ended_work_runs_again_at_once(f, "failed");
}

/* The machine may not do what a person may. */
static void
no_machine_reopens_a_record(void **state)
{
	struct fixture *f = *state;
	struct move m = {.event_id = 101, .to = RECORD_ADMITTED};

	put_unknown(f);
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

	put_unknown(f);
	fixture_wait(-3600000);
	assert_string_equal(
	    "admitted", redispatch_event(f, 101)->decided.state);
	assert_string_equal(START " local:ann", authorization_now(f));
	assert_non_null(strstr(decision_last(f), " " START " "));
	(void)launch(f, 101, ATT_2);
	fixture_wait(3600000);
	(void)end_attempt(f, ATT_2, "lost");
	fixture_wait(-3600000);
	assert_string_equal("discarded", discard_event(f, 101)->decided.state);
	assert_non_null(strstr(decision_last(f), " " START " "));
}

static void
a_held_record_is_admitted(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;

	put_held(f);
	fixture_forget(f);
	is = &redispatch_event(f, 101)->decided;
	assert_string_equal("held", is->from_state);
	assert_string_equal("admitted", is->state);
	assert_true(is->held);
	assert_false(is->rerun);
	assert_string_equal(START " local:ann", authorization_now(f));
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

	put_held(f);
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

	put_held(f);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sql_put(f, "UPDATE events SET %s", rows[i].spoil);
		fixture_forget(f);
		is = &redispatch_event(f, 101)->decided;
		assert_string_equal("blocked", is->state);
		assert_true(is->rerun);
		assert_true(was_told(f, MSG_UNDECIDED_WAITS));
		assert_string_equal(START " local:ann", authorization_now(f));
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

	put_blocked(f);
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
	    "2026-01-05T09:00:01.000000000Z local:ann", authorization_now(f));
	/* At once, over a restart too. */
	fixture_restart(f);
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_int_equal(revision, next_undecided(f)->revision);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

/* It was made from what the person has mended since. */
static void
a_verdict_from_before_it_is_no_rerun(void **state)
{
	struct fixture *f = *state;
	struct msg stale;
	const struct msg_verdict_is *is;

	put_blocked(f);
	stale = verdict_of(f, 101, "blocked");
	stale.verdict.reason = "no_route";
	(void)redispatch_event(f, 101);
	is = &fixture_get(f, &stale, ROLE_INTAKE, "", MSG_VERDICT_IS)
		  ->verdict_is;
	assert_false(is->applied);
	assert_string_equal("blocked", is->state);
	/* It is owed still, and is told as what it is. */
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_int_equal(1, next_undecided(f)->rerun);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
a_throttled_record_does_not_wait_for_its_deadline(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	put_seen(f);
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

	put_blocked(f);
	(void)set_hold(f);
	assert_string_equal("0 1", counts(f));
	fixture_wait(-60000);
	(void)redispatch_event(f, 101);
	assert_string_equal(START " local:ann", authorization_now(f));
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

	put_blocked(f);
	(void)redispatch_event(f, 101);
	(void)set_hold(f);
	assert_string_equal("- ", authorization_now(f));
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_string_equal("held", admit_event(f, 101, "k"));
}

/* What connect.json says of the record's project now. */
enum routing { ROUTING_SAME, ROUTING_NONE, ROUTING_MOVED, ROUTING_UNREADABLE };

static void
route_is(struct fixture *f, enum routing now)
{
	struct config *c = f->config;

	c->readable = now != ROUTING_UNREADABLE;
	c->routes[0].project_id = now == ROUTING_NONE ? PROJECT - 1 : PROJECT;
	if (now != ROUTING_NONE)
		config_route_add(c, PROJECT,
		    now == ROUTING_MOVED ? "/srv/moved" : ROUTE, "web", false);
	fixture_config_changed(f);
}

static const struct {
	enum routing now;
	const char *said, *of;
} astray[] = {{ROUTING_NONE, "no route for project 10", ROUTE},
    {ROUTING_MOVED, "another path for project 10", ROUTE},
    {ROUTING_UNREADABLE, "connect.json does not load", ""}};
#define ASTRAY (sizeof(astray) / sizeof(astray[0]))

/* Refused with what is missing, and nothing was written, told or revoked. */
static void
nothing_runs_astray(struct fixture *f, const char *state)
{
	int64_t decisions = sql_int(f, "SELECT COUNT(*) FROM decisions");
	int64_t messages = sql_int(f, "SELECT COUNT(*) FROM outbox");
	struct msg *reply;
	size_t i;

	for (i = 0; i < ASTRAY; i++) {
		route_is(f, astray[i].now);
		fixture_forget(f);
		reply = redispatch_event(f, 101);
		assert_failed(reply, "refused");
		assert_non_null(strstr(reply->failed.text, astray[i].said));
		assert_non_null(strstr(reply->failed.text, astray[i].of));
		assert_string_equal(state, state_of(f, 101));
		assert_int_equal(0, f->notice_count + f->line_count);
		assert_int_equal(
		    decisions, sql_int(f, "SELECT COUNT(*) FROM decisions"));
		assert_int_equal(
		    messages, sql_int(f, "SELECT COUNT(*) FROM outbox"));
	}
	route_is(f, ROUTING_SAME);
}

static void
work_runs_again_only_where_it_ran(void **state)
{
	struct fixture *f = *state;

	put_failed(f);
	nothing_runs_astray(f, "completed");
	ended_work_runs_again_at_once(f, "failed");
}

/* Nor is the task of a worker that still runs taken away for it. */
static void
live_work_is_not_taken_away_to_run_nowhere(void **state)
{
	struct fixture *f = *state;

	put_dispatched(f);
	(void)get_dispatch(f, put_token, 0, ATT_1);
	(void)complete_dispatch(f, put_token, 101, "failed", ATT_1);
	nothing_runs_astray(f, "completed");
	assert_int_equal(0,
	    sql_int(
		f, "SELECT COUNT(*) FROM tasks WHERE superseded_at NOT NULL"));
	assert_true(redispatch_event(f, 101)->decided.pending);
}

/* It needs no redispatch; that it does not start is said all the same. */
static void
what_waits_for_its_route_says_so(void **state)
{
	struct fixture *f = *state;

	put_admitted(f);
	nothing_runs_astray(f, "admitted");
	assert_non_null(strstr(
	    redispatch_event(f, 101)->failed.text, "it starts without one"));
}

/* Nothing is admitted to a route that may be gone: intake looks again. */
static void
a_held_record_without_its_route_is_decided_anew(void **state)
{
	struct fixture *f = *state;
	const struct msg_decided *is;
	size_t i;

	put_held(f);
	for (i = 0; i < ASTRAY; i++) {
		route_is(f, astray[i].now);
		fixture_forget(f);
		is = &redispatch_event(f, 101)->decided;
		assert_string_equal("blocked", is->state);
		assert_true(is->rerun);
		assert_true(was_told(f, MSG_UNDECIDED_WAITS));
		assert_string_equal(
		    "held_incomplete", sql_get(f, "SELECT reason FROM events"));
		route_is(f, ROUTING_SAME);
		assert_string_equal("admitted", admit_event(f, 101, "k"));
		assert_int_equal(1, set_hold(f)->hold_is.held);
	}
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(unknown_work_runs_again),
	    TEST(failed_work_runs_again),
	    TEST(no_machine_reopens_a_record),
	    PROVES("T64", a_decision_is_not_older_than_its_outcome),
	    TEST(a_held_record_is_admitted),
	    TEST(a_held_record_waits_behind_its_conversation),
	    TEST(an_incomplete_held_record_is_decided_anew),
	    TEST(a_blocked_record_is_decided_anew),
	    TEST(a_verdict_from_before_it_is_no_rerun),
	    TEST(a_throttled_record_does_not_wait_for_its_deadline),
	    PROVES("T69", an_authorization_counts_from_the_block_on),
	    TEST(a_hold_takes_an_authorization_back),
	    TEST(work_runs_again_only_where_it_ran),
	    TEST(live_work_is_not_taken_away_to_run_nowhere),
	    TEST(what_waits_for_its_route_says_so),
	    TEST(a_held_record_without_its_route_is_decided_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
