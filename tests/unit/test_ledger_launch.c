/* What may start, and LAUNCH (ledger.md 3.2.1, 3.2.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/task.h"
#include "ledger/token.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static struct msg_startable *
startable(struct fixture *f, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_STARTABLE};

	m.next_startable.after = after;
	m.next_startable.generation = 1;
	return &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_STARTABLE)
		    ->startable;
}

/* ---- what may start ---------------------------------------------------- */

static void
the_oldest_of_each_conversation_is_startable(void **state)
{
	struct fixture *f = *state;

	assert_false(startable(f, 0)->found);
	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	assert_string_equal("queued", admit_event(f, 102, "k"));
	admit_new(f, 103, "l");
	assert_int_equal(101, startable(f, 0)->event_id);
	assert_int_equal(PROJECT, startable(f, 0)->project_id);
	assert_int_equal(103, startable(f, 101)->event_id);
	assert_false(startable(f, 103)->found);
}

static void
a_queued_record_starts_when_its_conversation_is_free(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	(void)launch(f, 101, ATT_1);
	assert_false(startable(f, 0)->found);
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(102, startable(f, 0)->event_id);
	assert_string_not_equal("", launch(f, 102, ATT_2));
	assert_string_equal("dispatched", state_of(f, 102));
}

/* Out of order by hand: an older admitted record always goes first. */
static void
nothing_overtakes_an_older_admitted_record(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(102, ATT_1), *reply;

	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	/* Not startable itself, it still holds its place. */
	sql_ok(f, "UPDATE events SET snapshot = NULL WHERE id = 101");
	assert_false(startable(f, 0)->found);
	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	assert_failed(reply, "busy");
	assert_non_null(strstr(reply->failed.text, "101"));
	assert_non_null(strstr(reply->failed.text, "102"));
}

static void
routes_decide_what_is_startable(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	config_route_add(f->config, PROJECT, "/srv/elsewhere", "", false);
	fixture_config_changed(f);
	assert_false(startable(f, 0)->found);
	assert_int_equal(1, startable(f, 0)->stranded);
	launch_fails(f, 101, ATT_1, "refused");
	config_route_add(f->config, PROJECT, ROUTE, "", false);
	fixture_config_changed(f);
	assert_int_equal(0, startable(f, 0)->stranded);
	assert_true(startable(f, 0)->found);
	f->config->readable = false;
	fixture_config_changed(f);
	assert_false(startable(f, 0)->found);
	launch_fails(f, 101, ATT_1, "refused");
}

static void
the_scope_narrows_what_is_startable(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	config_ids_add(&f->config->scope, OTHER_PROJECT);
	fixture_config_changed(f);
	assert_false(startable(f, 0)->found);
	assert_int_equal(0, startable(f, 0)->stranded); /* not in its scope */
	config_ids_add(&f->config->scope, PROJECT);
	fixture_config_changed(f);
	assert_true(startable(f, 0)->found);
}

static void
one_task_for_a_directory(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	admit_new(f, 102, "l");
	(void)launch(f, 101, ATT_1);
	assert_false(startable(f, 0)->found);
	launch_fails(f, 102, ATT_2, "busy");
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(102, startable(f, 0)->event_id);
}

static void
another_generation_is_stale(void **state)
{
	struct fixture *f = *state;
	struct msg next = {.type = MSG_NEXT_STARTABLE};
	struct msg m = launch_of(101, ATT_1);

	admit_new(f, 101, "k");
	next.next_startable.generation = 2;
	assert_failed(
	    fixture_ask(f, &next, ROLE_DISPATCHER, ""), "stale_config");
	m.launch.generation = 2;
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "stale_config");
}

/* ---- launch ------------------------------------------------------------ */

static void
a_launch_is_task_row_attempt_and_exposure(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "recording:7");
	fixture_forget(f);
	(void)launch(f, 101, ATT_1);
	assert_string_equal("dispatched", state_of(f, 101));
	assert_string_equal("recording:7 /srv/web /srv/web claude 101 "
			    "2026-01-05T09:45:00.000000000Z",
	    sql_get(f,
		"SELECT conversation_key || ' ' || route || ' ' ||"
		" work_dir || ' ' || driver || ' ' ||"
		" originating_event_id || ' ' || deadline_at"
		" FROM tasks"));
	assert_string_equal("recording:7 exposed armed " ATT_1,
	    sql_get(f,
		"SELECT conversation_key || ' ' || delivery || ' ' ||"
		" guard || ' ' || exposed_attempt_id"
		" FROM task_events WHERE exposed_at IS NOT NULL"
		" AND pulled_at IS NULL"));
	assert_string_equal(
	    "launching 1 claude 11111111-2222-3333-4444-555555555555"
	    " aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    sql_get(f,
		"SELECT state || ' ' || seq || ' ' || driver || ' ' ||"
		" boot_id || ' ' || run_id FROM attempts"));
	assert_string_equal("{\"type\":\"dispatch\",\"task_id\":1,"
			    "\"attempt_id\":\"" ATT_1 "\","
			    "\"event_ids\":[101],\"state\":\"launching\"}",
	    f->lines[0]);
}

static void
only_the_hash_of_a_token_is_kept(void **state)
{
	struct fixture *f = *state;
	char hash[DIGEST_HEX_SIZE];
	const char *token;

	admit_new(f, 101, "k");
	token = launch(f, 101, ATT_1);
	assert_int_equal(TOKEN_LEN, strlen(token));
	token_hash(token, hash);
	assert_string_equal(hash,
	    sql_get(f,
		"SELECT token_sha256"
		" FROM tasks"));
}

/* SHA-256 of the token's text, for whoever compares (operator.md 7). */
static void
a_hash_is_of_the_text(void **state)
{
	char text[TOKEN_LEN + 1], hash[DIGEST_HEX_SIZE];

	memset(text, 'A', TOKEN_LEN);
	text[TOKEN_LEN] = '\0';
	token_hash(text, hash);
	assert_string_equal("0f007385b6f9d4b7eeb2748605afe1a9"
			    "84a0a3bfa3f014d09e2a784ce9e5cd1a",
	    hash);
}

static void
a_launch_refused_writes_nothing(void **state)
{
	struct fixture *f = *state;

	launch_fails(f, 404, ATT_1, "not_found");
	(void)record_event(f, 101);
	launch_fails(f, 101, ATT_1, "refused"); /* seen */
	(void)admit_event(f, 101, "k");
	sql_ok(f, "UPDATE events SET snapshot = NULL");
	launch_fails(f, 101, ATT_1, "refused");
	assert_string_equal("it is not dispatchable",
	    f->replies[f->reply_count - 1]->failed.text);
	sql_ok(f, "UPDATE events SET snapshot = x''");
	launch_fails(f, 101, ATT_1, "refused");
	assert_string_equal("it is not dispatchable",
	    f->replies[f->reply_count - 1]->failed.text);
	sql_ok(f, "UPDATE events SET snapshot = '{}', routed = 0");
	launch_fails(f, 101, ATT_1, "refused");
	sql_put(f, "UPDATE events SET routed = 1, content_dropped = 1");
	launch_fails(f, 101, ATT_1, "refused");
	sql_put(f, "UPDATE events SET content_dropped = 0");
	launch_fails(f, 101, "att_000000000000000000000O01", "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM task_events"));
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_not_equal("", launch(f, 101, ATT_1));
}

/*
 * T1: eight clients, each with an attempt of its own. FIRST is whose turn
 * comes first; in between, other peers ask what they ask at such a time.
 */
static void
eight_launch(struct fixture *f, int first, bool in_one_group)
{
	struct msg sibling = verdict_of(f, 102, "admitted");
	struct msg due = {.type = MSG_CLAIM}, live = {.type = MSG_NEXT_LIVE};
	char attempts[8][ATTEMPT_ID_LEN + 1];
	int i;

	due.claim.nonce = NONCE_1;
	for (i = 0; i < 8; i++) {
		struct msg m;

		(void)snprintf(attempts[i], sizeof(attempts[i]), "att_%024d",
		    (i + first) % 8);
		m = launch_of(101, attempts[i]);
		fixture_add(f, &m, ROLE_DISPATCHER, "");
		if (i == first)
			fixture_add(f, &sibling, ROLE_INTAKE, "");
		if (i % 3 == first % 3)
			fixture_add(f, &due, ROLE_OUTBOX, "");
		fixture_add(f, &live, ROLE_DISPATCHER, "");
		if (!in_one_group)
			fixture_turn(f);
	}
	fixture_turn(f);
}

/* Who lost is told why, and exactly one has won: who came first. */
static void
assert_one_launched(struct fixture *f, size_t before, int first)
{
	size_t i, won = 0, lost = 0;

	for (i = before; i < f->reply_count; i++) {
		struct msg *reply = f->replies[i];

		if (reply->type == MSG_LAUNCHED) {
			assert_int_equal(0, lost);
			won++;
		} else if (reply->type == MSG_FAILED) {
			assert_string_equal("refused", reply->failed.reason);
			assert_string_equal(
			    "it is on a live task", reply->failed.text);
			lost++;
		}
	}
	assert_int_equal(1, won);
	assert_int_equal(7, lost);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM tasks"));
	assert_int_equal(first,
	    sql_int(f, "SELECT CAST(substr(id, 5) AS INTEGER) FROM attempts"));
	assert_int_equal(1,
	    sql_int(f,
		"SELECT COUNT(*) FROM task_events WHERE event_id = 101"
		" AND retired_at IS NULL"));
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM attempts"));
}

static void
of_eight_launches_one_wins(void **state)
{
	int order;

	(void)fixture_teardown(state);
	for (order = 0; order < 16; order++) {
		struct fixture *f;
		size_t before;

		(void)fixture_setup(state);
		f = *state;
		(void)record_event(f, 102);
		admit_new(f, 101, "recording:1");
		before = f->reply_count;
		eight_launch(f, order % 8, order < 8);
		assert_one_launched(f, before, order % 8);
		(void)fixture_teardown(state);
	}
	(void)fixture_setup(state);
}

/* T3: what a transaction has made is seen in it, and goes with it. */
static void
a_rollback_frees_the_event(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(101, ATT_1), again = launch_of(101, ATT_2);
	struct request q = {&m, ROLE_DISPATCHER, ""};
	struct answer a;

	admit_new(f, 101, "k");
	clock_stamp(f->l.now);
	sql_ok(f, "BEGIN IMMEDIATE");
	answer_init(&a);
	assert_int_equal(0, ledger_handlers[MSG_LAUNCH](&f->l, &q, &a));
	assert_int_equal(MSG_LAUNCHED, a.reply.type);
	answer_clear(&a);
	q.m = &again;
	assert_int_equal(0, ledger_handlers[MSG_LAUNCH](&f->l, &q, &a));
	assert_failed(&a.reply, "refused");
	assert_string_equal("it is on a live task", a.reply.failed.text);
	answer_clear(&a);
	sql_reset_all(&f->l);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM tasks"));
	sql_ok(f, "ROLLBACK");
	assert_string_equal("admitted", state_of(f, 101));
	assert_string_not_equal("", launch(f, 101, ATT_2));
}

/*
 * T4 cannot come about: LAUNCH names one event, and whoever joins beside it
 * is read from the table, where an id is once.
 */
static void
no_event_is_named_twice(void **state)
{
	const struct msg_info *info = msg_info(MSG_LAUNCH);
	struct fixture *f = *state;
	size_t i, ids = 0;

	for (i = 0; i < info->field_count; i++) {
		assert_int_not_equal(FIELD_IDS, info->fields[i].kind);
		assert_int_not_equal(FIELD_LARGE, info->fields[i].kind);
		ids += strcmp(info->fields[i].name, "event_id") == 0;
	}
	assert_int_equal(1, ids);
	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	(void)launch(f, 101, ATT_1);
	assert_string_equal("101 102",
	    sql_get(f, "SELECT group_concat(event_id, ' ') FROM task_events"));
}

/* T2, I9: whichever of its writes fails, nothing of a launch remains. */
static void
a_launch_is_whole_or_not_at_all(void **state)
{
	static const char *const spoilers[] = {"INSERT ON tasks",
	    "INSERT ON task_events", "UPDATE OF state ON events",
	    "INSERT ON attempts", "UPDATE OF delivery ON task_events"};
	struct fixture *f = *state;
	char before[64];
	size_t i;

	admit_new(f, 101, "k");
	(void)snprintf(before, sizeof(before), "%s",
	    sql_get(f, "SELECT state || revision || updated_at FROM events"));
	for (i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
		sql_ok(f,
		    "CREATE TRIGGER spoil BEFORE %s BEGIN"
		    " SELECT RAISE(ABORT, 'spoilt'); END",
		    spoilers[i]);
		fixture_wait(1000);
		launch_fails(f, 101, ATT_1, "refused");
		sql_ok(f, "DROP TRIGGER spoil");
		assert_string_equal(before,
		    sql_get(f,
			"SELECT state || revision || updated_at"
			" FROM events"));
		assert_int_equal(0,
		    sql_int(f,
			"SELECT (SELECT COUNT(*) FROM task_events) +"
			" (SELECT COUNT(*) FROM attempts)"));
	}
	(void)launch(f, 101, ATT_1);
	assert_string_equal("launching exposed dispatched",
	    sql_get(f,
		"SELECT a.state || ' ' || t.delivery || ' ' || e.state"
		" FROM attempts a JOIN task_events t"
		" ON t.task_id = a.task_id AND t.exposed_attempt_id = a.id"
		" JOIN events e ON e.id = t.event_id"));
}

static void
a_record_is_launched_once(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	launch_fails(f, 101, ATT_2, "refused");
}

static void
a_launch_under_a_hold_is_held(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	assert_false(startable(f, 0)->found);
	launch_fails(f, 101, ATT_1, "held");
	assert_string_equal("admitted", state_of(f, 101));
}

/* While another record of the key is at work, even retired, it is busy. */
static void
handed_work_keeps_its_conversation_busy(void **state)
{
	struct fixture *f = *state;

	admit_new(f, 101, "k");
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	(void)launch(f, 101, ATT_1);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	sql_ok(f,
	    "UPDATE attempts SET state = 'ended', stop_reason = 'lost';"
	    "UPDATE tasks SET ended_at = 'e'");
	assert_string_equal("dispatched", state_of(f, 101));
	assert_string_equal("admitted", state_of(f, 102));
	assert_false(startable(f, 0)->found);
	launch_fails(f, 102, ATT_2, "busy");
	/* Once it is over, the next one goes. */
	sql_ok(f, "UPDATE events SET state = 'completed' WHERE id = 101");
	assert_int_equal(102, startable(f, 0)->event_id);
	assert_string_not_equal("", launch(f, 102, ATT_2));
}

/*
 * All its records are completed, and retention took the key from them: the
 * task has not ended, so its conversation waits, in whatever directory.
 */
static void
a_live_task_keeps_its_conversation_busy(void **state)
{
	struct fixture *f = *state;
	const char *token;
	struct msg m;

	admit_new(f, 101, "k");
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_1);
	sql_ok(f, "UPDATE events SET conversation_key = ''");
	(void)record_event(f, 102);
	sql_ok(f, "UPDATE events SET bucket_id = 11 WHERE id = 102");
	m = verdict_of(f, 102, "admitted");
	m.verdict.conversation_key = "k";
	m.verdict.route = OTHER_ROUTE;
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_string_equal("admitted", state_of(f, 102));
	assert_false(startable(f, 0)->found);
	launch_fails(f, 102, ATT_2, "busy");
	/* A worker without its token is a worker still. */
	clock_stamp(f->l.now);
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_false(startable(f, 0)->found);
	launch_fails(f, 102, ATT_2, "busy");
	(void)end_attempt(f, ATT_1, "finished");
	assert_int_equal(102, startable(f, 0)->event_id);
	assert_string_not_equal("", launch(f, 102, ATT_2));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(the_oldest_of_each_conversation_is_startable),
	    TEST(a_queued_record_starts_when_its_conversation_is_free),
	    T("T11 I2", nothing_overtakes_an_older_admitted_record),
	    TEST(routes_decide_what_is_startable),
	    TEST(the_scope_narrows_what_is_startable),
	    TEST(one_task_for_a_directory),
	    TEST(another_generation_is_stale),
	    TEST(a_launch_is_task_row_attempt_and_exposure),
	    TEST(only_the_hash_of_a_token_is_kept),
	    TEST(a_hash_is_of_the_text),
	    T("T2 T5 I6", a_launch_refused_writes_nothing),
	    T("T1 I1", of_eight_launches_one_wins),
	    T("T3 I1", a_rollback_frees_the_event),
	    T("T4", no_event_is_named_twice),
	    T("T2 I9", a_launch_is_whole_or_not_at_all),
	    T("I1", a_record_is_launched_once),
	    TEST(a_launch_under_a_hold_is_held),
	    T("T9 I2", handed_work_keeps_its_conversation_busy),
	    T("T12 T13 I2", a_live_task_keeps_its_conversation_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
