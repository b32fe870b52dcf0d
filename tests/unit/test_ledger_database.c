/* Opening ledger.db: privacy, pragmas, versions, looking without touching. */
#include <setjmp.h>
#include <stdarg.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/inspect.h"
#include "ledger/query.h"
#include "tests/unit/ledger_fixture.h"

static char dir[64];

static const char *
in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static int
dir_setup(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/test_database.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int
dir_teardown(void **state)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	(void)chmod(dir, 0700);
	while ((entry = readdir(d)) != NULL)
		(void)unlinkat(dirfd(d), entry->d_name, 0);
	(void)closedir(d);
	assert_int_equal(0, rmdir(dir));
	return 0;
}

/* Open and close; the result. */
static enum open_result
open_owner(void)
{
	struct ledger l;
	struct error e;
	enum open_result result = database_open(&l, dir, NULL, NULL, &e);

	if (result == OPEN_OK)
		database_close(&l);
	else
		assert_string_not_equal("", e.text);
	return result;
}

static enum open_result
open_readonly(void)
{
	struct ledger l;
	struct error e = {0, "none"};
	enum open_result result = database_open_readonly(&l, dir, &e);

	if (result == OPEN_OK)
		database_close(&l);
	return result;
}

static int
names_in_dir(void)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int n = 0;

	while ((entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

/* Run SQL on the file by another hand. */
static void
raw(const char *text)
{
	sqlite3 *db;

	assert_int_equal(SQLITE_OK, sqlite3_open(in_dir("ledger.db"), &db));
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

/* ---- the owner --------------------------------------------------------- */

static void
the_owner_makes_a_private_file(void **state)
{
	struct stat st;
	struct ledger l;
	struct error e;

	(void)umask(0);
	assert_int_equal(OPEN_OK, database_open(&l, dir, NULL, NULL, &e));
	assert_int_equal(0, stat(in_dir("ledger.db"), &st));
	assert_int_equal(0600, st.st_mode & 07777);
	assert_int_equal(0, stat(in_dir("ledger.db-wal"), &st));
	assert_int_equal(0600, st.st_mode & 07777);
	assert_int_equal(0, stat(in_dir("ledger.db-shm"), &st));
	assert_int_equal(0600, st.st_mode & 07777);
	database_close(&l);
	(void)umask(022);
	assert_int_equal(OPEN_OK, open_owner());
}

static void
what_others_can_reach_is_refused(void **state)
{
	struct stat st;

	assert_int_equal(0, chmod(dir, 0750));
	assert_int_equal(OPEN_REFUSED, open_owner());
	assert_int_equal(0, names_in_dir());
	assert_int_equal(0, chmod(dir, 0700));
	assert_int_equal(OPEN_OK, open_owner());
	assert_int_equal(0, chmod(in_dir("ledger.db"), 0640));
	assert_int_equal(OPEN_REFUSED, open_owner());
	assert_int_equal(OPEN_REFUSED, open_readonly());
	/* Refused, not put right. */
	assert_int_equal(0, stat(in_dir("ledger.db"), &st));
	assert_int_equal(0640, st.st_mode & 07777);
}

static void
only_a_regular_file_of_one_name_is_opened(void **state)
{
	assert_int_equal(0, symlink("/dev/null", in_dir("ledger.db")));
	assert_int_equal(OPEN_REFUSED, open_owner());
	assert_int_equal(0, unlink(in_dir("ledger.db")));
	assert_int_equal(0, mkfifo(in_dir("ledger.db"), 0600));
	assert_int_equal(OPEN_REFUSED, open_owner());
	assert_int_equal(0, unlink(in_dir("ledger.db")));
	assert_int_equal(OPEN_OK, open_owner());
	assert_int_equal(0, link(in_dir("ledger.db"), in_dir("second")));
	assert_int_equal(OPEN_REFUSED, open_owner());
}

static void
a_path_that_sqlite_could_read_otherwise_is_refused(void **state)
{
	static const char *const unnamed[] = {"",
	    ":memory:", "file::memory:", "relative", "/tmp/a?b", "/tmp/a#b",
	    "/tmp/a%20b"};
	struct ledger l;
	struct error e;
	size_t i;

	for (i = 0; i < sizeof(unnamed) / sizeof(unnamed[0]); i++)
		assert_int_equal(OPEN_REFUSED,
		    database_open(&l, unnamed[i], NULL, NULL, &e));
	assert_int_equal(OPEN_MISSING,
	    database_open(&l, "/tmp/no/such/dir", NULL, NULL, &e));
}

/* Left behind with a looser umask, they are closed to others. */
static void
sidecars_become_private(void **state)
{
	struct stat st;

	assert_int_equal(OPEN_OK, open_owner());
	raw("PRAGMA user_version = 1"); /* leaves no sidecars */
	(void)close(open(in_dir("ledger.db-wal"), O_CREAT | O_WRONLY, 0644));
	assert_int_equal(0, chmod(in_dir("ledger.db-wal"), 0644));
	assert_int_equal(OPEN_OK, open_owner());
	if (stat(in_dir("ledger.db-wal"), &st) == 0)
		assert_int_equal(0600, st.st_mode & 07777);
}

static const char *
pragma(struct ledger *l, const char *text)
{
	static char out[64];
	sqlite3_stmt *stmt;

	assert_int_equal(
	    SQLITE_OK, sqlite3_prepare_v2(l->db, text, -1, &stmt, NULL));
	assert_int_equal(SQLITE_ROW, sqlite3_step(stmt));
	(void)snprintf(out, sizeof(out), "%s", row_text(stmt, 0));
	(void)sqlite3_finalize(stmt);
	return out;
}

static void
the_pragmas_are_what_they_should_be(void **state)
{
	struct ledger l;
	struct error e;

	assert_int_equal(OPEN_OK, database_open(&l, dir, NULL, NULL, &e));
	assert_string_equal("wal", pragma(&l, "PRAGMA journal_mode"));
	assert_string_equal("2", pragma(&l, "PRAGMA synchronous"));
	assert_string_equal("1", pragma(&l, "PRAGMA foreign_keys"));
	assert_string_equal("2", pragma(&l, "PRAGMA temp_store"));
	assert_string_equal("0", pragma(&l, "PRAGMA trusted_schema"));
	assert_string_equal("0", pragma(&l, "PRAGMA recursive_triggers"));
	assert_string_equal("5000", pragma(&l, "PRAGMA busy_timeout"));
	database_close(&l);
}

static void
a_file_that_is_no_ledger_is_refused(void **state)
{
	int fd = open(in_dir("ledger.db"), O_CREAT | O_WRONLY, 0600);

	assert_int_equal(100,
	    write(fd,
		"this is not a database at all, it "
		"only has the name of one, and it is a hundred bytes long, or "
		"nearly..",
		100));
	(void)close(fd);
	assert_int_equal(OPEN_REFUSED, open_owner());
	assert_int_equal(0, unlink(in_dir("ledger.db")));
	raw("CREATE TABLE other (x)");
	assert_int_equal(0, chmod(in_dir("ledger.db"), 0600));
	assert_int_equal(OPEN_REFUSED, open_owner());
}

/* ---- to look only ------------------------------------------------------ */

static void
looking_makes_nothing(void **state)
{
	assert_int_equal(OPEN_MISSING, open_readonly());
	assert_int_equal(0, names_in_dir());
	assert_int_equal(OPEN_OK, open_owner());
	assert_int_equal(1, names_in_dir());
	assert_int_equal(OPEN_OK, open_readonly());
	assert_int_equal(1, names_in_dir());
}

static void
looking_cannot_write(void **state)
{
	struct ledger l;
	struct error e;

	assert_int_equal(OPEN_OK, open_owner());
	assert_int_equal(OPEN_OK, database_open_readonly(&l, dir, &e));
	assert_int_equal(SQLITE_READONLY,
	    sqlite3_exec(l.db, "DELETE FROM gaps", NULL, NULL, NULL));
	database_close(&l);
}

/* ---- the command line -------------------------------------------------- */

/* inspect_main() in a process of its own: it walls itself in. */
static int
inspect(char *argv[], char *out, size_t size)
{
	int fds[2], status, argc = 0;
	ssize_t n, used = 0;
	pid_t pid;

	assert_int_equal(0, pipe(fds));
	pid = fork();
	if (pid == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		while (argv[argc] != NULL)
			argc++;
		_exit(inspect_main(argc, argv));
	}
	(void)close(fds[1]);
	while ((n = read(fds[0], out + used, size - 1 - (size_t)used)) > 0)
		used += n;
	out[used] = '\0';
	(void)close(fds[0]);
	assert_int_equal(pid, waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define ARGV(...) ((char *[]){"connectd-ledger", __VA_ARGS__, NULL})

static void
the_schema_is_printed(void **state)
{
	static char out[65536];

	assert_int_equal(0, inspect(ARGV("--print-schema"), out, sizeof(out)));
	assert_string_equal(ledger_schema, out);
}

static void
a_ledger_is_inspected_behind_walls(void **state)
{
	char out[8192];

	assert_int_equal(
	    69, inspect(ARGV("--inspect", dir, "status"), out, sizeof(out)));
	assert_int_equal(0, names_in_dir());
	assert_int_equal(OPEN_OK, open_owner());
	assert_int_equal(
	    0, inspect(ARGV("--inspect", dir, "status"), out, sizeof(out)));
	assert_non_null(strstr(out, "\"schema_version\":1"));
	assert_int_equal(0,
	    inspect(ARGV("--inspect", dir, "events", "5"), out, sizeof(out)));
	assert_string_equal("{\"events\":[]}\n", out);
	assert_int_equal(
	    0, inspect(ARGV("--inspect", dir, "show", "5"), out, sizeof(out)));
	assert_string_equal("null\n", out);
	assert_int_equal(1, names_in_dir());
}

static void
wrong_words_are_a_usage_error(void **state)
{
	char out[8192];
	size_t i;
	char **wrong[] = {
	    ARGV("--inspect"),
	    ARGV("--inspect", dir),
	    ARGV("--inspect", dir, "status", "5"),
	    ARGV("--inspect", dir, "events", "0"),
	    ARGV("--inspect", dir, "events", "1001"),
	    ARGV("--inspect", dir, "show"),
	    ARGV("--inspect", dir, "show", "-5"),
	    ARGV("--inspect", dir, "show", "5x"),
	    ARGV("--inspect", dir, "show", "5", "6"),
	    ARGV("--print-schema", "now"),
	    ARGV("status"),
	};

	assert_int_equal(OPEN_OK, open_owner());
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(64, inspect(wrong[i], out, sizeof(out)));
	assert_int_equal(
	    64, inspect(ARGV("--inspect", dir, "tables"), out, sizeof(out)));
}

/* ---- what no statement may do ------------------------------------------ */

/*
 * RAISE(ROLLBACK) and OR ROLLBACK would undo a whole group, a deferred key
 * would fail its COMMIT, RETURNING shows what a trigger then changed.
 */
static void
no_statement_breaks_a_group(void **state)
{
	static const char *const banned[] = {
	    "RAISE(ROLLBACK", "OR ROLLBACK", "DEFERRABLE", "RETURNING"};
	size_t i;
	int id;

	for (i = 0; i < sizeof(banned) / sizeof(banned[0]); i++) {
		assert_null(strcasestr(ledger_schema, banned[i]));
		for (id = 0; id < STMT_COUNT; id++)
			assert_null(strcasestr(sql_text(id), banned[i]));
	}
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, dir_setup, dir_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(the_owner_makes_a_private_file),
	    TEST(what_others_can_reach_is_refused),
	    TEST(only_a_regular_file_of_one_name_is_opened),
	    TEST(a_path_that_sqlite_could_read_otherwise_is_refused),
	    TEST(sidecars_become_private),
	    TEST(the_pragmas_are_what_they_should_be),
	    TEST(a_file_that_is_no_ledger_is_refused),
	    TEST(looking_makes_nothing),
	    TEST(looking_cannot_write),
	    TEST(the_schema_is_printed),
	    TEST(a_ledger_is_inspected_behind_walls),
	    TEST(wrong_words_are_a_usage_error),
	    TEST(no_statement_breaks_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
