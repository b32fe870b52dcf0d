/*
 * Retention: what ended long ago loses its content, and nothing else (ledger.md
 * I16 and what follows it).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/retention_scene.h"
#include "tests/unit/trap.h"

/* Launched, pulled and reported; its attempt lives on. Returns the token. */
static const char *
completed(struct fixture *f, int64_t id, const char *attempt)
{
	const char *token;

	token = launch_new(f, id, attempt);
	(void)get_dispatch(f, token, id, attempt);
	(void)complete_dispatch(f, token, id, "failed", attempt);
	assert_string_equal("completed", state_of(f, id));
	return token;
}

static int64_t
is_dropped(struct fixture *f, int64_t id)
{
	return sql_int(f, "SELECT content_dropped FROM events WHERE id = %lld",
	    (long long)id);
}

/* Long over itself, it says where its task's completion is posted. */
static void
a_live_task_keeps_its_content(void **state)
{
	struct fixture *f = *state;

	(void)completed(f, 11, ATT_1);
	wait_night(200);
	assert_int_equal(0, retention_night(f));
	assert_int_equal(0, is_dropped(f, 11));
	(void)end_attempt(f, ATT_1, "lost");
	assert_int_equal(1, retention_night(f));
	assert_int_equal(1, is_dropped(f, 11));
}

/* ---- which records ----------------------------------------------------- */

/* A stamp MS milliseconds and NS nanoseconds from now. */
static void
date(struct fixture *f, int64_t id, int64_t ms, int64_t ns)
{
	char stamp[CLOCK_STAMP_SIZE];

	clock_stamp_ns(clock_wall_ns() + ms * 1000000 + ns, stamp);
	sql_ok(f, "UPDATE events SET updated_at = '%s' WHERE id = %lld", stamp,
	    (long long)id);
}

/* Ended exactly that long ago is not before it; a nanosecond more is. */
static void
the_cutoff_is_exact_for_both_states(void **state)
{
	struct fixture *f = *state;
	int64_t id;

	for (id = 1; id <= 3; id++)
		discard_new(f, id);
	(void)completed(f, 11, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	(void)completed(f, 12, ATT_2);
	(void)end_attempt(f, ATT_2, "finished");
	wait_night(200);
	date(f, 1, -KEEP_DISCARDED, 1);
	date(f, 2, -KEEP_DISCARDED, 0);
	date(f, 3, -KEEP_DISCARDED, -1);
	date(f, 11, -KEEP_COMPLETED, 0);
	date(f, 12, -KEEP_COMPLETED, -1);
	assert_int_equal(2, retention_night(f));
	assert_int_equal(0, is_dropped(f, 1));
	assert_int_equal(0, is_dropped(f, 2));
	assert_int_equal(1, is_dropped(f, 3));
	assert_int_equal(0, is_dropped(f, 11));
	assert_int_equal(1, is_dropped(f, 12));
}

/* One that is kept for ever is, whatever the other's setting. */
static void
what_has_no_setting_is_kept(void **state)
{
	struct fixture *f = *state;

	discard_new(f, 1);
	(void)completed(f, 11, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	wait_night(3650);
	f->config->keep_discarded_ms = 0;
	assert_int_equal(1, retention_night(f));
	assert_int_equal(0, is_dropped(f, 1));
	f->config->keep_discarded_ms = KEEP_DISCARDED;
	f->config->keep_completed_ms = 0;
	assert_int_equal(1, retention_night(f));
	assert_int_equal(1, is_dropped(f, 1));
}

/* Whatever has not ended keeps all, however old. */
static void
only_what_ended_is_dropped(void **state)
{
	static const char *const states[] = {
	    "seen", "admitted", "queued", "blocked", "dispatched", "held"};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		sql_put(f,
		    "INSERT INTO events (id, state, reason, lane, event_type,"
		    " kind, action, bucket_id, creator_id, recording_id,"
		    " created_at, seen_at, updated_at, snapshot) VALUES (%d,"
		    " '%s', 'r', 'poll', 'x', 'x', 'x', 1, 1, 1, 'c', 's',"
		    " '2020-01-01T00:00:00.000000000Z', '{}')",
		    (int)i + 1, states[i]);
	assert_int_equal(0, retention_night(f));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT SUM(content_dropped) FROM "
		"events"));
}

/* It is about to need what would be dropped. */
static void
a_waiting_redispatch_keeps_its_content(void **state)
{
	struct fixture *f = *state;

	(void)completed(f, 11, ATT_1);
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('redispatch', 11, 'me',"
	    " '2026-01-05T10:00:00.000000000Z');"
	    "UPDATE events SET redispatch_decision = 1");
	wait_night(3650);
	assert_int_equal(0, retention_night(f));
	assert_int_equal(0, is_dropped(f, 11));
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("admitted", state_of(f, 11));
}

/* ---- what goes and what stays ------------------------------------------ */

static const char *const kept[] = {"id", "state", "reason", "lane",
    "created_at", "seen_at", "updated_at", "revision", "decided_at",
    "blocked_at", "retry_at", "retry_since", "next_retry_at", "generation",
    "review", "authorized_at", "authorized_by", "redispatch_decision",
    "quarantine", "quarantine_death"};

static bool
is_kept(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (strcmp(kept[i], name) == 0)
			return true;
	}
	return false;
}

static bool
is_empty(const char *text)
{
	return *text == '\0' || strcmp(text, "0") == 0;
}

static const char *
column(struct fixture *f, const char *name)
{
	return sql_get(f, "SELECT CAST(%s AS TEXT) FROM events", name);
}

#define DROP "UPDATE events SET content_dropped = %d WHERE id = 11"

/* Nor is it by any other hand: only what ended, once, and not while it waits.
 */
static void
the_tables_keep_content_too(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 11);
	sql_refused(f, DROP, 1);
	(void)admit_event(f, 11, "k");
	sql_refused(f, DROP, 1);
	(void)launch(f, 11, ATT_1);
	sql_refused(f, DROP, 1);
	(void)end_attempt(f, ATT_1, "lost");
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('redispatch', 11, 'me', 'd');"
	    "UPDATE events SET redispatch_decision = 1");
	sql_refused(f, DROP, 1);
	sql_ok(f, "UPDATE events SET redispatch_decision = NULL");
	sql_ok(f, DROP, 1);
	sql_refused(f, DROP, 0);
}

/* Every column is named above or cleared: a new one cannot be forgotten. */
static void
a_tombstone_is_what_the_list_says(void **state)
{
	struct fixture *f = *state;
	char before[64];
	sqlite3_stmt *columns;
	int cleared = 0;

	discard_new(f, 1);
	sql_ok(f,
	    "UPDATE events SET performed_by_id = 5, details = '{}',"
	    " actor_type = 'p', visible_to_clients = 1, snapshot = '{}',"
	    " authorized_at = 'a', authorized_by = 'me', review = 1,"
	    " quarantine = 1, quarantine_death = 'd', generation = 3");
	(void)sqlite3_prepare_v2(f->l.db,
	    "SELECT name FROM pragma_table_info('events')", -1, &columns, NULL);
	while (sqlite3_step(columns) == SQLITE_ROW) {
		const char *name = row_text(columns, 0);

		if (strcmp(name, "content_dropped") != 0 && !is_kept(name))
			assert_false(is_empty(column(f, name)));
	}
	(void)sqlite3_reset(columns);
	wait_night(31);
	sql_ok(f, "CREATE TEMP TABLE was AS SELECT * FROM events");
	assert_int_equal(1, retention_night(f));
	while (sqlite3_step(columns) == SQLITE_ROW) {
		const char *name = row_text(columns, 0);

		if (strcmp(name, "content_dropped") == 0)
			continue;
		(void)snprintf(before, sizeof(before), "%s",
		    sql_get(f, "SELECT CAST(%s AS TEXT) FROM was", name));
		if (is_kept(name)) {
			assert_string_equal(before, column(f, name));
			continue;
		}
		assert_true(is_empty(column(f, name)));
		cleared++;
	}
	(void)sqlite3_finalize(columns);
	assert_int_equal(21, cleared);
	assert_int_equal(1, is_dropped(f, 1));
}

/* The row stays, so what the feed serves again is known; nothing deletes. */
static void
a_tombstone_is_for_ever(void **state)
{
	struct fixture *f = *state;
	int id;

	discard_new(f, 1);
	wait_night(31);
	assert_int_equal(1, retention_night(f));
	assert_false(record_event(f, 1));
	assert_string_equal("discarded", state_of(f, 1));
	assert_string_equal(
	    "not_addressed", sql_get(f, "SELECT reason FROM events"));
	for (id = 0; id < STMT_COUNT; id++)
		assert_null(strstr(sql_text(id), "DELETE FROM events"));
}

static void
a_second_run_changes_nothing(void **state)
{
	struct fixture *f = *state;

	discard_new(f, 1);
	(void)completed(f, 11, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	wait_night(365);
	assert_int_equal(2, retention_night(f));
	sql_ok(f, "CREATE TEMP TABLE was AS SELECT * FROM events");
	fixture_wait(DAY_MS);
	assert_int_equal(0, retention_night(f));
	assert_int_equal(0,
	    sql_int(f,
		"SELECT COUNT(*) FROM (SELECT * FROM events"
		" EXCEPT SELECT * FROM was)"));
}

/* ---- what then still holds --------------------------------------------- */

/* By hand, since no night does it while the task lives. */
static void
drop(struct fixture *f, int64_t id)
{
	sql_ok(f,
	    "UPDATE events SET content_dropped = 1, event_type = '', kind = '',"
	    " action = '', bucket_id = 0, creator_id = 0, recording_id = 0,"
	    " performed_by_id = NULL, details = NULL, actor_type = '',"
	    " visible_to_clients = NULL, trigger_name = '', acknowledge = 0,"
	    " conversation_key = '', reply_kind = '', reply_recording_id = 0,"
	    " routed = 0, route = '', class = '', recording_url = '',"
	    " requester_id = 0, snapshot = NULL WHERE id = %lld",
	    (long long)id);
}

/* A worker that asks again gets a refusal, never half an instruction. */
static void
dropped_content_is_not_dispatchable(void **state)
{
	struct fixture *f = *state;
	const char *token = completed(f, 11, ATT_1);
	struct msg *reply;

	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, 11, ATT_1)->type);
	drop(f, 11);
	reply = get_dispatch(f, token, 11, ATT_1);
	assert_failed(reply, "not_dispatchable");
	assert_false(get_dispatch(f, token, 0, ATT_1)->instruction.found);
	/* What it had reported stands, and is answered. */
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 11, "failed", ATT_1)->type);
}

/* The record's key is gone; the task's row has its own. */
static void
the_conversation_of_a_live_task_stays_busy(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(12, ATT_2), *reply;
	struct msg next = {.type = MSG_NEXT_STARTABLE};

	(void)completed(f, 11, ATT_1);
	(void)record_event(f, 12);
	(void)admit_event(f, 12, "k");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id = "
	    "11 WHERE id = 12"); /* not its directory */
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "busy");
	drop(f, 11);
	assert_string_equal("",
	    sql_get(f, "SELECT conversation_key FROM events WHERE id = 11"));
	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	assert_failed(reply, "busy");
	assert_non_null(strstr(reply->failed.text, "conversation"));
	next.next_startable.generation = 1;
	assert_false(fixture_get(f, &next, ROLE_DISPATCHER, "", MSG_STARTABLE)
			 ->startable.found);
	/* By the row alone, should the task have lost its copy. */
	sql_put(f, "UPDATE tasks SET conversation_key = ''");
	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), "busy");
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_not_equal("", launch(f, 12, ATT_2));
}

/* Nothing could be told to a worker: the database refuses it as well. */
static void
a_dropped_record_is_not_redispatched(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH}, *reply;

	(void)completed(f, 11, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	wait_night(365);
	assert_int_equal(1, retention_night(f));
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 11};
	reply = fixture_ask(f, &m, ROLE_SUPERVISOR, "");
	assert_failed(reply, "refused");
	assert_non_null(strstr(reply->failed.text, "gone"));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	sql_ok(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('redispatch', 11, 'me',"
	    " '2027-01-05T10:00:00.000000000Z');"
	    "UPDATE events SET redispatch_decision = 1");
	sql_refused(f,
	    "UPDATE events SET state = 'admitted', redispatch_decision = NULL"
	    " WHERE id = 11");
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, retention_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, retention_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(the_cutoff_is_exact_for_both_states),
	    TEST(what_has_no_setting_is_kept),
	    TEST(only_what_ended_is_dropped),
	    TEST(a_live_task_keeps_its_content),
	    PROVES("T68 I16", a_waiting_redispatch_keeps_its_content),
	    PROVES("T68 I16", the_tables_keep_content_too),
	    PROVES("I16", a_tombstone_is_what_the_list_says),
	    PROVES("I16", a_tombstone_is_for_ever),
	    TEST(a_second_run_changes_nothing),
	    PROVES("T40", dropped_content_is_not_dispatchable),
	    PROVES("T13", the_conversation_of_a_live_task_stays_busy),
	    TEST(a_dropped_record_is_not_redispatched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
