/* HOLD and RELEASE: what stops, what waits for a person (ledger.md 3.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/record.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static char token[TOKEN_LEN + 1];

static void
admitted(struct fixture *f, int64_t id, const char *key)
{
	(void)record_event(f, id);
	(void)admit_event(f, id, key);
}

static void
launched(struct fixture *f, int64_t id, const char *key)
{
	admitted(f, id, key);
	(void)snprintf(token, sizeof(token), "%s", launch(f, id, ATT_1));
	assert_string_not_equal("", token);
}

static struct msg_hold_is *
hold(struct fixture *f)
{
	struct msg *is = set_hold(f);

	assert_int_equal(MSG_HOLD_IS, is->type);
	return &is->hold_is;
}

static struct msg_hold_is *
release(struct fixture *f)
{
	struct msg *is = release_hold(f);

	assert_int_equal(MSG_HOLD_IS, is->type);
	return &is->hold_is;
}

/* Nothing rests where it would start although it needs a person. */
static void
assert_none_slips_through(struct fixture *f)
{
	assert_int_equal(0,
	    sql_int(f,
		"SELECT COUNT(*) FROM events WHERE review = 1"
		" AND authorized_at IS NULL"
		" AND state IN ('admitted', 'queued')"));
}

static const char *
record(struct fixture *f, int64_t id)
{
	return sql_get(f,
	    "SELECT state || ' ' || reason || ' ' || review || ' ' ||"
	    " COALESCE(authorized_at, '-') FROM events WHERE id = %lld",
	    (long long)id);
}

static bool
was_told(struct fixture *f, enum msg_type type)
{
	size_t i;

	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == type)
			return true;
	}
	return false;
}

/* ---- the marker ---------------------------------------------------------- */

/* A record in each state. */
static void
one_of_each(struct fixture *f)
{
	launched(f, 106, "done");
	(void)end_attempt(f, ATT_1, "lost");
	(void)record_event(f, 101);
	(void)record_event(f, 104);
	(void)refuse_event(f, 104, "blocked", "no_route");
	(void)record_event(f, 107);
	(void)refuse_event(f, 107, "discarded", "untrusted");
	admitted(f, 105, "at work");
	(void)launch(f, 105, ATT_2);
	admitted(f, 102, "k");
	admitted(f, 103, "k");
}

static void
a_hold_tags_what_is_not_over(void **state)
{
	static const struct {
		int64_t id;
		const char *after;
	} rows[] = {{101, "seen  1 -"}, {102, "held  1 -"}, {103, "held  1 -"},
	    {104, "blocked no_route 1 -"}, {105, "dispatched  1 -"},
	    {106, "completed  0 -"}, {107, "discarded untrusted 0 -"}};
	struct fixture *f = *state;
	struct msg_hold_is *is;
	size_t i;

	one_of_each(f);
	is = hold(f);
	assert_true(is->stands && is->changed);
	assert_int_equal(1, is->generation);
	assert_string_equal("hold", is->cause);
	assert_string_equal("local:ann", is->held_by);
	assert_string_equal("2026-01-05T09:00:00.000000000Z", is->held_at);
	assert_int_equal(5, is->tagged);
	assert_int_equal(2, is->held);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(rows[i].after, record(f, rows[i].id));
	assert_string_equal("1 hold local:ann",
	    sql_get(f,
		"SELECT id || ' ' || cause || ' ' || opened_by"
		" FROM generations"));
	assert_string_equal(
	    "hold local:ann {\"generation\":1,\"cause\":\"hold\","
	    "\"held_by\":\"local:ann\",\"held_at\":"
	    "\"2026-01-05T09:00:00.000000000Z\"}",
	    sql_get(f,
		"SELECT action || ' ' || decided_by || ' ' || note"
		" FROM decisions WHERE event_id IS NULL"));
	assert_none_slips_through(f);
}

/* Their snapshots are kept, their guards are not, and that is published. */
static void
what_becomes_held_takes_its_guard_back(void **state)
{
	struct fixture *f = *state;

	admitted(f, 102, "k");
	admitted(f, 103, "k");
	fixture_forget(f);
	(void)hold(f);
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE kind = 'guard_ack'"
		" AND state = 'canceled' AND note = 'held'"));
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM events WHERE state = 'held'"
		" AND snapshot IS NOT NULL"));
	assert_int_equal(2, f->line_count);
	assert_non_null(strstr(f->lines[0], "\"state\":\"canceled\""));
}

static void
assert_guard_told(struct fixture *f, const char *event)
{
	size_t i;

	for (i = 0; i < f->line_count; i++) {
		if (strstr(f->lines[i], "\"kind\":\"guard_ack\"") != NULL &&
		    strstr(f->lines[i], "\"state\":\"canceled\"") != NULL &&
		    strstr(f->lines[i], event) != NULL)
			return;
	}
	fail_msg("no line of the guard of %s", event);
}

/* What was tagged while a worker had it is held when it comes back. */
static void
what_an_end_holds_takes_its_guard_back(void **state)
{
	struct fixture *f = *state;

	admitted(f, 101, "j");
	(void)launch(f, 101, ATT_1);
	(void)hold(f);
	fixture_forget(f);
	(void)spawn_failed(f, ATT_1);
	assert_string_equal("held", state_of(f, 101));
	assert_guard_told(f, "\"event_id\":101");
}

static void
what_a_supersession_holds_takes_its_guard_back(void **state)
{
	struct fixture *f = *state;

	launched(f, 102, "k");
	join_event(f, 103);
	(void)get_dispatch(f, token, 102, ATT_1);
	(void)complete_dispatch(f, token, 102, "failed", ATT_1);
	(void)hold(f);
	fixture_forget(f);
	(void)redispatch_event(f, 102);
	assert_string_equal("held", state_of(f, 103));
	assert_guard_told(f, "\"event_id\":103");
}

/* Set again, the marker keeps its first setter; the tags are new. */
static void
a_second_hold_moves_only_the_generation(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_HOLD};
	struct msg_hold_is *is;

	admitted(f, 101, "k");
	(void)hold(f);
	admitted(f, 102, "l"); /* of generation 1: not tagged */
	assert_string_equal("admitted  0 -", record(f, 102));
	(void)redispatch_event(f, 101);
	assert_string_equal("admitted", state_of(f, 101));
	fixture_wait(60000);
	m.hold = (struct msg_hold){NONCE_1, "local:bob", "shadow_promote"};
	is = &fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_HOLD_IS)->hold_is;
	assert_true(is->changed);
	assert_int_equal(2, is->generation);
	assert_string_equal("hold", is->cause);
	assert_string_equal("local:ann", is->held_by);
	assert_string_equal("2026-01-05T09:00:00.000000000Z", is->held_at);
	assert_string_equal("held  1 -", record(f, 101));
	assert_string_equal("held  1 -", record(f, 102));
	assert_string_equal(
	    "", sql_get(f, "SELECT authorized_by FROM events WHERE id = 101"));
	assert_int_equal(1,
	    sql_int(f,
		"SELECT COUNT(*) FROM decisions"
		" WHERE action = 'shadow_promote'"));
	assert_none_slips_through(f);
}

static void
a_release_takes_the_marker_only(void **state)
{
	struct fixture *f = *state;
	struct msg_hold_is *is;

	admitted(f, 101, "k");
	(void)hold(f);
	fixture_wait(60000);
	fixture_forget(f);
	is = release(f);
	assert_false(is->stands);
	assert_true(is->changed);
	assert_int_equal(1, is->generation);
	assert_string_equal("local:ann", is->held_by);
	assert_string_equal("2026-01-05T09:00:00.000000000Z", is->held_at);
	assert_int_equal(1, is->held); /* it stays so */
	assert_string_equal("held  1 -", record(f, 101));
	assert_true(was_told(f, MSG_WORK_WAITS));
	assert_true(was_told(f, MSG_POST_WAITS));
	assert_string_equal("release local:bob 1 local:ann",
	    sql_get(f,
		"SELECT action || ' ' || decided_by || ' ' ||"
		" json_extract(note, '$.generation') || ' ' ||"
		" json_extract(note, '$.held_by') FROM decisions"
		" ORDER BY id DESC"));
}

static void
a_release_of_nothing_writes_nothing(void **state)
{
	struct fixture *f = *state;
	int changes = sqlite3_total_changes(f->l.db);
	struct msg_hold_is *is = release(f);

	assert_false(is->stands);
	assert_false(is->changed);
	assert_int_equal(0, is->generation);
	assert_string_equal("", is->held_by);
	assert_int_equal(changes, sqlite3_total_changes(f->l.db));
}

static void
a_hold_needs_a_cause_and_its_own_nonce(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_HOLD}, other = {.type = MSG_RELEASE};

	m.hold = (struct msg_hold){NONCE_1, "local:ann", "import"};
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "refused");
	m.hold.cause = "hold";
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_HOLD_IS);
	m.hold.cause = "shadow_promote";
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "refused");
	other.release = (struct msg_release){NONCE_1, "local:ann"};
	assert_failed(fixture_ask(f, &other, ROLE_SUPERVISOR, ""), "refused");
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM hold_marker"));
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* The trigger gone, the hold is refused whole rather than half set. */
static void
a_hold_that_does_not_hold_is_undone(void **state)
{
	struct fixture *f = *state;

	admitted(f, 101, "k");
	sql_ok(f, "DROP TRIGGER events_review_is_held");
	assert_failed(set_hold(f), "refused");
	assert_string_equal("admitted  0 -", record(f, 101));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT (SELECT COUNT(*) FROM hold_marker) +"
		" (SELECT COUNT(*) FROM generations) +"
		" (SELECT COUNT(*) FROM decisions)"));
}

/* ---- what it holds ------------------------------------------------------- */

/* Its read was in flight when the hold was set. */
static void
a_verdict_on_a_tagged_record_is_held(void **state)
{
	struct fixture *f = *state;
	int64_t before;

	(void)record_event(f, 101);
	(void)hold(f);
	fixture_forget(f);
	before = sql_int(f, "SELECT revision FROM events");
	assert_string_equal("held", admit_event(f, 101, "k"));
	assert_non_null(strstr(f->lines[0], "\"state\":\"held\""));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM outbox"));
	assert_string_equal(
	    SNAPSHOT, sql_get(f, "SELECT snapshot FROM events"));
	assert_int_equal(before + 2, sql_int(f, "SELECT revision FROM events"));
	/* Also when it was blocked meanwhile, and also released. */
	(void)record_event(f, 102);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 102");
	(void)refuse_event(f, 102, "blocked", "read_failed");
	(void)release(f);
	assert_string_equal("held", admit_event(f, 102, "l"));
}

static void
a_tagged_sibling_comes_back_held(void **state)
{
	struct fixture *f = *state;

	launched(f, 101, "k");
	join_event(f, 102);
	(void)hold(f);
	assert_string_equal("dispatched  1 -", record(f, 102));
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed", state_of(f, 101));
	assert_string_equal("held  1 -", record(f, 102));
	/* By raw SQL as well. */
	(void)record_event(f, 103);
	(void)hold(f);
	sql_ok(f, "UPDATE events SET state = 'admitted' WHERE id = 103");
	assert_string_equal("held", state_of(f, 103));
	assert_none_slips_through(f);
}

static void
nothing_starts_until_the_release_and_then_not_all(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(102, ATT_1);

	admitted(f, 101, "k");
	(void)hold(f);
	admitted(f, 102, "l"); /* newer than the hold */
	fixture_restart(f);
	assert_string_equal("held  1 -", record(f, 101));
	assert_string_equal("admitted  0 -", record(f, 102));
	assert_int_equal(0, next_startable(f));
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "held");
	assert_int_equal(0,
	    sql_int(f,
		"SELECT (SELECT COUNT(*) FROM tasks) +"
		" (SELECT COUNT(*) FROM attempts)"));
	assert_string_equal("admitted", state_of(f, 102));
	(void)release(f);
	assert_string_equal("held  1 -", record(f, 101));
	assert_int_equal(102, next_startable(f));
	assert_string_not_equal("", launch(f, 102, ATT_1));
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(0, next_startable(f));
}

/* Without the ledger's own look at the marker: the database refuses. */
static void
a_raw_start_under_a_hold_is_refused(void **state)
{
	struct fixture *f = *state;

	(void)hold(f);
	admitted(f, 101, "k");
	sql_ok(f,
	    "INSERT INTO tasks (id, token_sha256, created_at)"
	    " VALUES (1, 'h', 'c');"
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (1, 101, 'k')");
	sql_refused(f,
	    "INSERT INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('a', 1, 1, 'd', 'launching', 'l')");
	sql_refused(f, "UPDATE task_events SET delivery = 'exposed'");
	sql_refused(f,
	    "UPDATE outbox SET state = 'sending', sending_at = 's'"
	    " WHERE kind = 'guard_ack'");
}

/* What was handed over goes on; nothing new is, by launch or by get. */
static void
handed_work_goes_on_under_a_hold(void **state)
{
	struct fixture *f = *state;

	launched(f, 101, "k");
	join_event(f, 102);
	join_event(f, 103);
	(void)get_dispatch(f, token, 102, ATT_1);
	(void)hold(f);
	assert_failed(
	    get_dispatch(f, token, 101, ATT_1), "held"); /* launch's */
	assert_failed(
	    get_dispatch(f, token, 103, ATT_1), "held"); /* a join's */
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM task_events"
		" WHERE pulled_at IS NULL"));
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, 102, ATT_1)->type);
	assert_int_equal(
	    MSG_REPORT_IS, ack_dispatch(f, token, 102, 7, ATT_1)->type);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 102, "succeeded", ATT_1)->type);
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, 102, ATT_1)->type);
	(void)release(f);
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, 103, ATT_1)->type);
}

/* It was asked for before the hold: a person has to ask again. */
static void
a_hold_revokes_a_waiting_redispatch(void **state)
{
	struct fixture *f = *state;
	struct msg *is;

	launched(f, 101, "k");
	(void)get_dispatch(f, token, 101, ATT_1);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	assert_true(redispatch_event(f, 101)->decided.pending);
	(void)hold(f);
	assert_string_equal("completed  0 -", record(f, 101));
	assert_string_equal("-",
	    sql_get(
		f, "SELECT COALESCE(redispatch_decision, '-') FROM events"));
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed", state_of(f, 101));
	/* And may ask again: the record is authorized, and waits. */
	is = redispatch_event(f, 101);
	assert_true(is->decided.held);
	assert_string_equal("admitted", is->decided.state);
	assert_int_equal(0, next_startable(f));
	(void)release(f);
	assert_int_equal(101, next_startable(f));
}

/* A record tagged at work is not held by the redispatch that frees it. */
static void
a_redispatch_authorizes_what_was_tagged_at_work(void **state)
{
	struct fixture *f = *state;

	launched(f, 101, "k");
	(void)hold(f);
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("completed  1 -", record(f, 101));
	assert_string_equal(
	    "admitted", redispatch_event(f, 101)->decided.state);
	assert_none_slips_through(f);
}

/* Wherever a tagged record is put, by whomever. */
static void
no_tagged_record_rests_where_it_would_start(void **state)
{
	static const char *const states[] = {
	    "seen", "admitted", "queued", "blocked", "held"};
	struct fixture *f = *state;
	size_t from, to, how;

	for (from = 0; from < 5; from++) {
		for (to = 1; to < 3; to++) {
			for (how = 0; how < 2; how++) {
				int64_t id =
				    200 + (int64_t)(from * 4 + to * 2 + how);

				(void)record_event(f, id);
				sql_put(f,
				    "UPDATE events SET state = '%s',"
				    " snapshot = '{}' WHERE id = %lld",
				    states[from], (long long)id);
				sql_ok(f,
				    "UPDATE events SET review = 1"
				    " WHERE id = %lld",
				    (long long)id);
				if (how == 0)
					(void)sql(f,
					    "UPDATE events SET state = '%s'"
					    " WHERE id = %lld",
					    states[to], (long long)id);
				else
					(void)record_move(&f->l,
					    &(struct move){.event_id = id,
						.to = record_state_by_name(
						    states[to]),
						.by = BY_PERSON});
				sql_reset_all(&f->l);
				assert_none_slips_through(f);
			}
		}
	}
	assert_int_equal(20, sql_int(f, "SELECT COUNT(*) FROM events"));
	assert_int_not_equal(
	    0, sql_int(f, "SELECT COUNT(*) FROM events WHERE state = 'held'"));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_hold_tags_what_is_not_over),
	    TEST(what_becomes_held_takes_its_guard_back),
	    TEST(what_an_end_holds_takes_its_guard_back),
	    TEST(what_a_supersession_holds_takes_its_guard_back),
	    TEST(a_second_hold_moves_only_the_generation),
	    TEST(a_release_takes_the_marker_only),
	    TEST(a_release_of_nothing_writes_nothing),
	    TEST(a_hold_needs_a_cause_and_its_own_nonce),
	    TEST(a_hold_that_does_not_hold_is_undone),
	    PROVES("T56", a_verdict_on_a_tagged_record_is_held),
	    PROVES("T57", a_tagged_sibling_comes_back_held),
	    PROVES("T58", nothing_starts_until_the_release_and_then_not_all),
	    PROVES("T58", a_raw_start_under_a_hold_is_refused),
	    PROVES("T59", handed_work_goes_on_under_a_hold),
	    PROVES("T60", a_hold_revokes_a_waiting_redispatch),
	    TEST(a_redispatch_authorizes_what_was_tagged_at_work),
	    PROVES("I14", no_tagged_record_rests_where_it_would_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
