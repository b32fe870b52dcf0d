/* Retention: when it runs, in which steps, and what is seen of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/retention.h"
#include "tests/unit/ledger_fault.h"
#include "tests/unit/retention_scene.h"

static int
setup(void **state)
{
	memset(&fault, 0, sizeof(fault));
	return retention_setup(state);
}

/* ---- when -------------------------------------------------------------- */

static int64_t
due_in_ms(struct fixture *f)
{
	struct retention r;

	assert_int_equal(0, retention_plan(&f->l, &r));
	return r.due_ns == INT64_MAX ? -1
				     : (r.due_ns - clock_wall_ns()) / 1000000;
}

/* At three; a ledger born this morning has missed nothing. */
static void
it_runs_at_night(void **state)
{
	struct fixture *f = *state;
	struct retention r;

	assert_int_equal(18 * HOUR_MS, due_in_ms(f));
	assert_int_equal(0, retention_plan(&f->l, &r));
	fixture_wait(18 * HOUR_MS - 1);
	assert_int_equal(RETENTION_WAITS, retention_step(&f->l, &r));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM retention"));
	fixture_wait(1);
	assert_int_equal(RETENTION_OVER, retention_step(&f->l, &r));
	assert_int_equal(RETENTION_WAITS, retention_step(&f->l, &r));
	assert_string_equal("2026-01-06T03:00:00.000000000Z",
	    sql_get(f, "SELECT ran_at FROM retention"));
	assert_int_equal(DAY_MS, due_in_ms(f));
}

static void
a_missed_night_is_made_up_for(void **state)
{
	struct fixture *f = *state;

	fixture_wait(17 * HOUR_MS);
	assert_int_equal(1 * HOUR_MS, due_in_ms(f));
	fixture_wait(3 * HOUR_MS); /* five o'clock */
	assert_int_equal(-2 * HOUR_MS, due_in_ms(f));
	(void)retention_night(f);
	fixture_restart(f);
	assert_int_equal(22 * HOUR_MS, due_in_ms(f));
	fixture_wait(40 * HOUR_MS);
	assert_true(due_in_ms(f) < 0);
}

/* A run of tomorrow's was dated by a wrong clock. */
static void
a_clock_set_back_hinders_nothing(void **state)
{
	struct fixture *f = *state;

	sql_ok(f,
	    "INSERT INTO retention VALUES (1,"
	    " '2099-01-01T03:00:00.000000000Z', 0)");
	assert_true(due_in_ms(f) <= 0);
	(void)retention_night(f);
	assert_int_equal(18 * HOUR_MS, due_in_ms(f));
}

static void
without_a_setting_it_never_runs(void **state)
{
	struct fixture *f = *state;

	fixture_wait(DAY_MS);
	assert_true(due_in_ms(f) <= 0);
	f->config->readable = false;
	assert_int_equal(-1, due_in_ms(f));
	f->config->readable = true;
	f->config->keep_completed_ms = f->config->keep_discarded_ms = 0;
	assert_int_equal(-1, due_in_ms(f));
	f->l.config = NULL;
	assert_int_equal(-1, due_in_ms(f));
}

/* ---- in batches -------------------------------------------------------- */

static void
many_discarded(struct fixture *f, int count)
{
	sql_put(f,
	    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < %d) INSERT INTO events (id, state, reason, lane,"
	    " event_type, kind, action, bucket_id, creator_id, recording_id,"
	    " created_at, seen_at, updated_at) SELECT i, 'discarded', 'r',"
	    " 'poll', 'x', 'x', 'x', 1, 1, 1, 'c', 's',"
	    " '2020-01-01T00:00:00.000000000Z' FROM n",
	    count);
}

static int64_t
dropped(struct fixture *f)
{
	return sql_int(f,
	    "SELECT COUNT(*) FROM events"
	    " WHERE content_dropped = 1");
}

/* Between two batches the ledger answers, and has no transaction open. */
static void
a_batch_is_a_transaction(void **state)
{
	struct fixture *f = *state;
	struct retention r = {0};

	many_discarded(f, 2 * RETENTION_BATCH + 1);
	assert_int_equal(RETENTION_MORE, retention_step(&f->l, &r));
	assert_int_equal(RETENTION_BATCH, dropped(f));
	assert_true(sqlite3_get_autocommit(f->l.db) != 0);
	assert_true(record_event(f, 1000));
	assert_int_equal(RETENTION_MORE, retention_step(&f->l, &r));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM retention"));
	assert_int_equal(RETENTION_OVER, retention_step(&f->l, &r));
	assert_int_equal(2 * RETENTION_BATCH + 1, dropped(f));
	assert_int_equal(2 * RETENTION_BATCH + 1,
	    sql_int(f, "SELECT cleared FROM retention"));
}

/* Killed between two, it is still owed. */
static void
a_run_cut_short_goes_on(void **state)
{
	struct fixture *f = *state;
	struct retention r;

	many_discarded(f, 2 * RETENTION_BATCH);
	fixture_wait(DAY_MS);
	assert_int_equal(0, retention_plan(&f->l, &r));
	assert_int_equal(RETENTION_MORE, retention_step(&f->l, &r));
	fixture_restart(f);
	assert_true(due_in_ms(f) <= 0);
	(void)retention_night(f);
	assert_int_equal(2 * RETENTION_BATCH, dropped(f));
}

/* Full: nothing of the batch counts, and the next night tries again. */
static void
a_full_disk_costs_a_night(void **state)
{
	struct fixture *f = *state;
	struct retention r = {0};

	many_discarded(f, 10);
	sql_ok(f,
	    "CREATE TEMP TRIGGER full BEFORE INSERT ON main.retention"
	    " BEGIN SELECT RAISE(ABORT, 'full'); END");
	assert_int_equal(RETENTION_FAILED, retention_step(&f->l, &r));
	assert_int_equal(0, dropped(f));
	assert_true(sqlite3_get_autocommit(f->l.db) != 0);
	assert_int_equal(18 * HOUR_MS, (r.due_ns - clock_wall_ns()) / 1000000);
	assert_int_equal(RETENTION_WAITS, retention_step(&f->l, &r));
	sql_ok(f, "DROP TRIGGER full");
	fixture_wait(18 * HOUR_MS);
	assert_int_equal(RETENTION_OVER, retention_step(&f->l, &r));
	assert_int_equal(10, dropped(f));
}

static void
a_failed_commit_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct retention r = {0};

	many_discarded(f, 10);
	fault = (struct fault){
	    .at = FAULT_SYNC, .count = 1, .rc = SQLITE_IOERR_FSYNC};
	assert_int_equal(RETENTION_UNKNOWN, retention_step(&f->l, &r));
	assert_int_equal(1, fault.hits);
}

/* ---- what is seen of it ------------------------------------------------ */

static void
status_tells_when_and_how_many(void **state)
{
	static const char told[] =
	    "\"retention\":{\"ran_at\":\"2026-02-05T03:00:00.000000000Z\","
	    "\"cleared\":1}";
	struct fixture *f = *state;
	struct msg m = {.type = MSG_QUERY}, *reply;

	discard_new(f, 1);
	wait_night(31);
	(void)retention_night(f);
	m.query.what = "status";
	reply = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_ANSWER);
	assert_non_null(memmem(reply->answer.json.bytes, reply->answer.json.len,
	    told, sizeof(told) - 1));
}

/* By the index that holds only what could be dropped. */
static void
it_is_found_by_its_index(void **state)
{
	static const struct {
		enum stmt stmt;
		const char *index;
	} plans[] = {
	    {STMT_DROP_DISCARDED, "events_discarded (updated_at<?)"},
	    {STMT_DROP_COMPLETED, "events_completed (updated_at<?)"},
	};
	struct fixture *f = *state;
	sqlite3_stmt *plan;
	char *explain;
	size_t i;
	bool found;

	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		explain = sqlite3_mprintf(
		    "EXPLAIN QUERY PLAN %s", sql_text(plans[i].stmt));
		assert_int_equal(SQLITE_OK,
		    sqlite3_prepare_v2(f->l.db, explain, -1, &plan, NULL));
		found = false;
		while (sqlite3_step(plan) == SQLITE_ROW) {
			assert_null(strstr(row_text(plan, 3), "SCAN"));
			found |=
			    strstr(row_text(plan, 3), plans[i].index) != NULL;
		}
		assert_true(found);
		(void)sqlite3_finalize(plan);
		sqlite3_free(explain);
	}
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(it_runs_at_night),
	    TEST(a_missed_night_is_made_up_for),
	    TEST(a_clock_set_back_hinders_nothing),
	    TEST(without_a_setting_it_never_runs),
	    TEST(a_batch_is_a_transaction),
	    TEST(a_run_cut_short_goes_on),
	    TEST(a_full_disk_costs_a_night),
	    TEST(a_failed_commit_is_unknown),
	    TEST(status_tells_when_and_how_many),
	    TEST(it_is_found_by_its_index),
	};

	fault_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
