/*
 * The machinery of schema versions, on schemas of this test's own: rows move,
 * each version is applied once, whoever dies or meets (ledger.md 5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/migrate.h"
#include "tests/unit/trap.h"

#define ROWS 200

/*
 * Version 2 moves what version 1 has: a name becomes a row of another table,
 * the old column goes. Version 3 would fail if version 2 had run twice.
 */
static const struct migration list[] = {
    {1,
	"CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY,"
	" applied_at TEXT NOT NULL);"
	"CREATE TABLE tasks (id INTEGER PRIMARY KEY, owner TEXT NOT NULL)"},
    {2,
	"CREATE TABLE owners (task INTEGER PRIMARY KEY, name TEXT NOT NULL);"
	"INSERT INTO owners SELECT id, owner FROM tasks;"
	"CREATE TABLE tasks_2 (id INTEGER PRIMARY KEY, moved INTEGER);"
	"INSERT INTO tasks_2 SELECT id, 1 FROM tasks;"
	"DROP TABLE tasks;"
	"ALTER TABLE tasks_2 RENAME TO tasks"},
    {3, "UPDATE tasks SET moved = moved + 1"},
};

static char dir[64], file[96];
static int told; /* the versions, as digits */

static int
setup(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/test_migrate.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/ledger.db", dir);
	told = 0;
	return 0;
}

static void
file_remove(void)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	char path[128];
	size_t i;

	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", file, ends[i]);
		(void)unlink(path);
	}
}

static int
teardown(void **state)
{
	file_remove();
	return rmdir(dir);
}

static sqlite3 *
file_open(void)
{
	sqlite3 *db;

	assert_int_equal(SQLITE_OK, sqlite3_open(file, &db));
	(void)sqlite3_busy_timeout(db, 10000);
	return db;
}

static void
raw(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

static int
number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *stmt;
	int n;

	assert_int_equal(
	    SQLITE_OK, sqlite3_prepare_v2(db, text, -1, &stmt, NULL));
	assert_int_equal(SQLITE_ROW, sqlite3_step(stmt));
	n = sqlite3_column_int(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return n;
}

static void
tell(int version, void *arg)
{
	told = told * 10 + version;
}

/* 0, or SQLite's code, or -1 for what is none of its faults. */
static int
migrate_to(sqlite3 *db, size_t count)
{
	struct error e;
	int rc = SQLITE_OK;

	if (migrate(db, list, count, tell, NULL, &rc, &e) == 0)
		return 0;
	assert_string_not_equal("", e.text);
	return rc == SQLITE_OK ? -1 : rc & 0xff;
}

static int
version_of(sqlite3 *db)
{
	struct error e;
	int rc;

	return migrate_version(db, &rc, &e);
}

/* A file of version 1 with rows. */
static void
file_of_version_1(void)
{
	sqlite3 *db = file_open();

	assert_int_equal(0, migrate_to(db, 1));
	raw(db,
	    "PRAGMA journal_mode = WAL;"
	    "WITH RECURSIVE n(i) AS"
	    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
	    " INSERT INTO tasks SELECT i, 'owner' || i FROM n");
	(void)sqlite3_close(db);
	told = 0;
}

static void
assert_moved(sqlite3 *db, int moved)
{
	assert_int_equal(ROWS,
	    number(db,
		"SELECT COUNT(*) FROM tasks t JOIN owners o ON"
		" o.task = t.id AND o.name = 'owner' || t.id"));
	assert_int_equal(moved, number(db, "SELECT MIN(moved) FROM tasks"));
	assert_int_equal(moved, number(db, "SELECT MAX(moved) FROM tasks"));
}

/* ---- one hand ----------------------------------------------------------- */

static void
rows_move_with_the_schema(void **state)
{
	sqlite3 *db;

	file_of_version_1();
	db = file_open();
	assert_int_equal(1, version_of(db));
	assert_int_equal(0, migrate_to(db, 3));
	assert_int_equal(23, told);
	assert_moved(db, 2);
	assert_int_equal(0, migrate_to(db, 3)); /* nothing is left to do */
	assert_int_equal(23, told);
	assert_moved(db, 2);
	assert_int_equal(
	    3, number(db, "SELECT COUNT(*) FROM schema_migrations"));
	(void)sqlite3_close(db);
}

/* Of a build that knows fewer versions: nothing is done to it. */
static void
a_newer_file_is_refused(void **state)
{
	sqlite3 *db;
	int changes;

	file_of_version_1();
	db = file_open();
	assert_int_equal(0, migrate_to(db, 3));
	changes = sqlite3_total_changes(db);
	told = 0;
	assert_int_equal(-1, migrate_to(db, 2));
	assert_int_equal(0, told);
	assert_int_equal(changes, sqlite3_total_changes(db));
	assert_int_equal(3, version_of(db));
	(void)sqlite3_close(db);
}

/* What fails is undone as a whole, and can be done later. */
static void
a_step_that_fails_leaves_its_version(void **state)
{
	sqlite3 *db;

	file_of_version_1();
	db = file_open();
	raw(db, "CREATE TABLE tasks_2 (in_the_way)");
	assert_int_equal(SQLITE_ERROR, migrate_to(db, 3));
	assert_int_equal(1, sqlite3_get_autocommit(db));
	assert_int_equal(1, version_of(db));
	assert_int_equal(ROWS, number(db, "SELECT COUNT(owner) FROM tasks"));
	raw(db, "DROP TABLE tasks_2");
	assert_int_equal(0, migrate_to(db, 3));
	assert_moved(db, 2);
	(void)sqlite3_close(db);
}

/* ---- death -------------------------------------------------------------- */

static int looks_left;

/* SQLite asks now and then whether to go on. */
static int
on_progress(void *arg)
{
	if (looks_left-- == 0)
		(void)raise(SIGKILL);
	return 0;
}

/* Dies at the AT-th of these looks; true: there were so many. */
static bool
migrate_and_die(int at)
{
	pid_t pid = fork();
	int status;
	sqlite3 *db;

	if (pid == 0) {
		if (sqlite3_open(file, &db) != SQLITE_OK)
			_exit(1);
		looks_left = at;
		sqlite3_progress_handler(db, 1, on_progress, NULL);
		_exit(migrate_to(db, 3) == 0 ? 0 : 2);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* Wherever it died: whole versions, and the next start does the rest. */
static void
a_death_leaves_whole_versions(void **state)
{
	int at, deaths[4] = {0};
	bool died = true;
	sqlite3 *db;

	for (at = 0; died; at += 31) {
		file_of_version_1();
		died = migrate_and_die(at);
		db = file_open();
		deaths[version_of(db)]++;
		if (version_of(db) == 1)
			assert_int_equal(
			    ROWS, number(db, "SELECT COUNT(owner) FROM tasks"));
		else
			assert_moved(db, version_of(db) - 1);
		assert_int_equal(0, migrate_to(db, 3));
		assert_moved(db, 2);
		(void)sqlite3_close(db);
		file_remove();
	}
	assert_true(deaths[1] > 5 && deaths[2] > 1);
	printf("died %d times in version 2, %d in version 3\n", deaths[1],
	    deaths[2]);
}

/* ---- two at once -------------------------------------------------------- */

/* Another process does the whole of it, between our look and our step. */
static void
let_another_do_it(int version, void *arg)
{
	pid_t pid;
	int status;
	sqlite3 *db;

	if (version != 2)
		return;
	pid = fork();
	if (pid == 0) {
		if (sqlite3_open(file, &db) != SQLITE_OK)
			_exit(1);
		_exit(migrate_to(db, 3) == 0 ? 0 : 2);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(0, status);
}

/* The version is read again inside the step: once is enough. */
static void
a_step_that_another_has_done_is_done(void **state)
{
	struct error e;
	sqlite3 *db;
	int rc;

	file_of_version_1();
	db = file_open();
	if (migrate(db, list, 3, let_another_do_it, NULL, &rc, &e) == -1)
		fail_msg("%s", e.text);
	assert_moved(db, 2);
	assert_int_equal(
	    3, number(db, "SELECT COUNT(*) FROM schema_migrations"));
	(void)sqlite3_close(db);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		rows_move_with_the_schema, setup, teardown),
	    TRAP("T75", a_newer_file_is_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_step_that_fails_leaves_its_version, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_death_leaves_whole_versions, setup, teardown),
	    TRAP("T79", a_step_that_another_has_done_is_done, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
