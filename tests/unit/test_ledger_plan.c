/*
 * How SQLite reaches the rows: a statement that no index fits, or a trigger
 * that it fires, reads every row of a table that grows for as long as the
 * machine serves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

static const char *const growing[] = {"events", "tasks", "task_events",
    "attempts", "outbox", "losses", "loss_ids", "gaps", "generations",
    "decisions", "e", "t", "te", "a", "o"};

/* What may read all the same, and why. */
static const struct {
	enum stmt stmt;
	const char *scan;
} allowed[] = {
    /* Asked of a message whose posting is in doubt, which is rare. */
    {STMT_MESSAGE_IS_SPOKEN_FOR, "t"},
    /* Of the one message found for an outcome that nobody reported. */
    {STMT_ADOPT_IS_ANOTHERS, "t"},
    /* A foreign key's other side, skipped while no key dangles. */
    {STMT_TASK_INSERT, "outbox"},
    {STMT_ATTEMPT_INSERT, "outbox"},
    {STMT_DECISION_SETTLE, "events"},
    {STMT_INTENT_INSERT, "decisions"},
    {STMT_RETRACTION_INSERT, "decisions"},
    {STMT_ATTEMPT_INSERT, "decisions"},
    /* Once, of a ledger that is promoted. */
    {STMT_IS_PROMOTED, "decisions"},
    /* By id, and ended by LIMIT. */
    {STMT_STATUS_GAPS, "gaps"},
    /* From the greatest id down, and ended by LIMIT. */
    {STMT_EVENTS_LAST, "e"},
};

static bool
may_scan(enum stmt stmt, const char *table)
{
	size_t i;

	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (allowed[i].stmt == stmt &&
		    strcmp(allowed[i].scan, table) == 0)
			return true;
	}
	return false;
}

/* "SCAN events" and no more: with an index it goes on. */
static bool
is_whole_scan(const char *detail)
{
	size_t i;

	if (strncmp(detail, "SCAN ", 5) != 0)
		return false;
	for (i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
		if (strcmp(detail + 5, growing[i]) == 0)
			return true;
	}
	return false;
}

static size_t
whole_scans(struct fixture *f, enum stmt stmt)
{
	const char *sql = sqlite3_sql(f->l.stmts[stmt]), *detail;
	sqlite3_stmt *plan;
	size_t found = 0;
	char *explain;

	assert_int_equal(SQLITE_OK,
	    sqlite3_db_config(f->l.db, SQLITE_DBCONFIG_TRIGGER_EQP, 1, NULL));
	explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(
	    SQLITE_OK, sqlite3_prepare_v2(f->l.db, explain, -1, &plan, NULL));
	while (sqlite3_step(plan) == SQLITE_ROW) {
		detail = (const char *)sqlite3_column_text(plan, 3);
		if (!is_whole_scan(detail) || may_scan(stmt, detail + 5))
			continue;
		print_error("%s: %s\n", detail, sql);
		found++;
	}
	(void)sqlite3_finalize(plan);
	sqlite3_free(explain);
	return found;
}

static void
test_no_statement_reads_a_growing_table(void **state)
{
	size_t found = 0;
	int stmt;

	for (stmt = 0; stmt < STMT_COUNT; stmt++)
		found += whole_scans(*state, (enum stmt)stmt);
	assert_int_equal(0, found);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_no_statement_reads_a_growing_table, fixture_setup,
		fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
