/*
 * Opening ledger.db beside others: what happens between two openings, what a
 * second one may do, two processes at once (ledger.md 5, design L3).
 *
 * Others are processes of their own that this program is started as again: a
 * fork would inherit what SQLite believes of our locks.
 *
 *	test_ledger_open --look DIR	read the events as `--inspect` does
 *	test_ledger_open --write DIR	begin a write, without patience
 *	test_ledger_open --note DIR	write a row, without patience
 */
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

#include "common/buffer.h"
#include "common/digest.h"
#include "ledger/migrate.h"
#include "ledger/query.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define STARTS 8
#define ROUNDS 12
#define NOBODY 65534

static char base[64], dir[80], file[96], self[512];

static int
setup(void **state)
{
	(void)snprintf(base, sizeof(base), "/tmp/test_open.XXXXXX");
	assert_non_null(mkdtemp(base));
	assert_int_equal(0, chmod(base, 0755));
	(void)snprintf(dir, sizeof(dir), "%s/999-1", base);
	(void)snprintf(file, sizeof(file), "%s/" DATABASE_NAME, dir);
	assert_int_equal(0, mkdir(dir, 0700));
	return 0;
}

static void
empty(const char *path)
{
	struct dirent *entry;
	DIR *d = opendir(path);

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		(void)unlinkat(dirfd(d), entry->d_name, 0);
	(void)closedir(d);
}

static int
teardown(void **state)
{
	empty(dir);
	assert_int_equal(0, rmdir(dir));
	empty(base);
	return rmdir(base);
}

static enum open_result
open_owner(struct ledger *l)
{
	struct error e;

	return database_open(l, dir, NULL, NULL, &e);
}

static enum open_result
open_looking(struct ledger *l)
{
	struct error e;

	return database_open_readonly(l, dir, &e);
}

/* Open and close, as the owner and to look. */
static enum open_result
owner_once(void)
{
	struct ledger l;
	enum open_result result = open_owner(&l);

	if (result == OPEN_OK)
		database_close(&l);
	return result;
}

static enum open_result
look_once(void)
{
	struct ledger l;
	enum open_result result = open_looking(&l);

	if (result == OPEN_OK)
		database_close(&l);
	return result;
}

static void
raw(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

/* By another hand, which is gone afterwards. */
static void
raw_once(const char *text)
{
	sqlite3 *db;

	assert_int_equal(SQLITE_OK, sqlite3_open(file, &db));
	raw(db, text);
	(void)sqlite3_close(db);
}

/* A file's mode and bytes, in a word of each. */
static void
describe(const char *name, struct buffer *out)
{
	struct buffer all = {0};
	char path[192], bytes[4096], hash[DIGEST_HEX_SIZE];
	struct stat st;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW);
	assert_true(fd != -1);
	assert_int_equal(0, fstat(fd, &st));
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		buffer_add(&all, bytes, (size_t)n);
	(void)close(fd);
	digest_sha256_hex(all.bytes, all.len, hash);
	buffer_printf(out, "%s %o %s\n", name, (unsigned)st.st_mode, hash);
	buffer_free(&all);
}

/* Everything that is in the directory; no ledger may be open. */
static char *
contents(void)
{
	struct dirent **entries;
	struct buffer out = {0};
	size_t len;
	int i, n;

	n = scandir(dir, &entries, NULL, alphasort);
	assert_true(n >= 2);
	for (i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			describe(entries[i]->d_name, &out);
		free(entries[i]);
	}
	free(entries);
	buffer_add_char(&out, '.');
	return buffer_take(&out, &len);
}

/* The directory is as it was when WAS was taken. */
static void
assert_contents(const char *was)
{
	char *now = contents();

	assert_string_equal(was, now);
	free(now);
}

/* ---- another process ---------------------------------------------------- */

/* What this program does as another: its exit code is SQLite's. */
static int
be_another(const char *what, const char *where)
{
	struct ledger l;
	struct error e;
	sqlite3 *db;
	char *json;
	int rc;

	(void)snprintf(dir, sizeof(dir), "%s", where);
	(void)snprintf(file, sizeof(file), "%s/" DATABASE_NAME, dir);
	if (strcmp(what, "--look") == 0) {
		if (database_open_readonly(&l, dir, &e) != OPEN_OK)
			return 100;
		if (query_json(&l, "events", 0, 0, &json) != QUERY_OK)
			return 101;
		rc = strstr(json, "\"event_id\":101") != NULL ? 1 : 0;
		free(json);
		database_close(&l);
		return rc;
	}
	rc = sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (rc == SQLITE_OK && strcmp(what, "--note") == 0)
		rc = sqlite3_exec(db,
		    "INSERT INTO gaps (detected_at, class) VALUES"
		    " ('2026-01-05T09:00:00.000000000Z', 'retention');"
		    "COMMIT",
		    NULL, NULL, NULL);
	(void)sqlite3_close(db);
	return rc & 0xff;
}

static int
another(const char *what, const char *where)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)execl(self, self, what, where, (char *)NULL);
		_exit(126);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- what happens as SQLite opens the file ------------------------------ */

static sqlite3_vfs *real_vfs, hooked_vfs;
static void (*before_open)(void);

static int
on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
    int *out_flags)
{
	void (*hook)(void) = before_open;

	(void)vfs;
	before_open = NULL;
	if (hook != NULL)
		hook();
	return real_vfs->xOpen(real_vfs, name, f, flags, out_flags);
}

static void
vfs_hook(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	hooked_vfs = *real_vfs;
	hooked_vfs.zName = "hooked";
	hooked_vfs.xOpen = on_open;
	assert_int_equal(SQLITE_OK, sqlite3_vfs_register(&hooked_vfs, 1));
}

static void
vanish(void)
{
	assert_int_equal(0, unlink(file));
}

/* As good a ledger in its place. */
static void
replace(void)
{
	char other[128], command[64];
	int from = open(file, O_RDONLY), to;
	ssize_t n;

	(void)snprintf(other, sizeof(other), "%s/other", dir);
	to = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(from != -1 && to != -1);
	while ((n = read(from, command, sizeof(command))) > 0)
		assert_int_equal(n, write(to, command, (size_t)n));
	(void)close(from);
	(void)close(to);
	assert_int_equal(0, rename(other, file));
}

/* ---- a missing file ----------------------------------------------------- */

/* Neither by the check nor by SQLite, whenever it vanishes. */
static void
looking_for_a_missing_file_makes_none(void **state)
{
	char *before = contents();

	assert_int_equal(OPEN_MISSING, look_once());
	assert_contents(before);
	assert_int_equal(OPEN_OK, owner_once());
	before_open = vanish;
	assert_int_equal(OPEN_FAILED, look_once());
	assert_null(before_open);
	assert_contents(before);
	/* The owner makes it in its check, and nowhere else. */
	assert_int_equal(OPEN_OK, owner_once());
	before_open = vanish;
	assert_int_equal(OPEN_FAILED, owner_once());
	assert_contents(before);
	empty(dir);
	assert_int_equal(0, rmdir(dir));
	assert_int_equal(OPEN_MISSING, look_once());
	assert_int_equal(-1, access(dir, F_OK));
	assert_int_equal(0, mkdir(dir, 0700));
	free(before);
}

/* ---- versions ----------------------------------------------------------- */

static void
another_version_is_refused_and_left_alone(void **state)
{
	static const char *const versions[] = {
	    "UPDATE schema_migrations SET version = 0",
	    "UPDATE schema_migrations SET version = 2",
	};
	char *before;
	size_t i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(OPEN_OK, owner_once());
		raw_once(versions[i]);
		raw_once("PRAGMA journal_mode = DELETE");
		before = contents();
		assert_int_equal(OPEN_REFUSED, look_once());
		if (i == 1)
			assert_int_equal(OPEN_REFUSED, owner_once());
		assert_contents(before);
		free(before);
		empty(dir);
	}
}

/* ---- one handle a process ----------------------------------------------- */

/*
 * A second opening looks at no file: not even its check opens one, for to
 * close that would drop the locks of the first.
 */
static void
a_second_handle_is_refused_before_any_check(void **state)
{
	struct ledger first, second;

	assert_int_equal(OPEN_OK, open_owner(&first));
	raw(first.db, "BEGIN IMMEDIATE");
	assert_int_equal(SQLITE_BUSY, another("--write", dir));
	assert_int_equal(OPEN_REFUSED, open_looking(&second));
	assert_int_equal(OPEN_REFUSED, open_owner(&second));
	assert_int_equal(SQLITE_BUSY, another("--write", dir));
	raw(first.db, "ROLLBACK");
	database_close(&first);
	database_close(&first); /* harmless */
	assert_int_equal(OPEN_OK, look_once());
}

/* By no name: the file, its directory, another directory with a link. */
static void
a_second_name_is_refused(void **state)
{
	char link_dir[96], second[128];
	struct ledger first, l;
	struct error e;

	(void)snprintf(link_dir, sizeof(link_dir), "%s/999-2", base);
	(void)snprintf(second, sizeof(second), "%s/" DATABASE_NAME, link_dir);
	assert_int_equal(OPEN_OK, owner_once());
	assert_int_equal(0, symlink(dir, link_dir));
	assert_int_equal(
	    OPEN_REFUSED, database_open(&l, link_dir, NULL, NULL, &e));
	assert_int_equal(
	    OPEN_REFUSED, database_open_readonly(&l, link_dir, &e));
	assert_int_equal(0, unlink(link_dir));
	assert_int_equal(0, mkdir(link_dir, 0700));
	assert_int_equal(0, symlink(file, second));
	assert_int_equal(
	    OPEN_REFUSED, database_open(&l, link_dir, NULL, NULL, &e));
	assert_int_equal(0, unlink(second));
	/* Also while the first is open, by whatever process. */
	assert_int_equal(OPEN_OK, open_owner(&first));
	assert_int_equal(0, link(file, second));
	assert_int_equal(
	    OPEN_REFUSED, database_open(&l, link_dir, NULL, NULL, &e));
	assert_int_equal(100, another("--look", link_dir));
	assert_int_equal(100, another("--look", dir));
	database_close(&first);
	assert_int_equal(0, unlink(second));
	assert_int_equal(0, rmdir(link_dir));
	assert_int_equal(OPEN_OK, owner_once());
}

/* ---- between two openings ----------------------------------------------- */

static void
a_changed_file_is_looked_at_again(void **state)
{
	assert_int_equal(OPEN_OK, owner_once());
	assert_int_equal(0, chmod(file, 0604));
	assert_int_equal(OPEN_REFUSED, owner_once());
	assert_int_equal(OPEN_REFUSED, look_once());
	assert_int_equal(0, chmod(file, 0600));
	assert_int_equal(0, chmod(dir, 0710));
	assert_int_equal(OPEN_REFUSED, owner_once());
	assert_int_equal(OPEN_REFUSED, look_once());
	assert_int_equal(0, chmod(dir, 0700));
	assert_int_equal(OPEN_OK, owner_once());
	if (geteuid() != 0)
		return; /* only root gives a file away */
	assert_int_equal(0, chown(file, NOBODY, NOBODY));
	assert_int_equal(OPEN_REFUSED, owner_once());
	assert_int_equal(OPEN_REFUSED, look_once());
	assert_int_equal(0, chown(file, 0, 0));
	assert_int_equal(0, chown(dir, NOBODY, NOBODY));
	assert_int_equal(OPEN_REFUSED, owner_once());
	assert_int_equal(0, chown(dir, 0, 0));
	assert_int_equal(OPEN_OK, owner_once());
}

/* Whoever may write there may put another directory in the place of ours. */
static void
an_ancestor_made_writable_is_seen(void **state)
{
	static const mode_t modes[] = {0775, 0757, 0777};
	size_t i;

	assert_int_equal(OPEN_OK, owner_once());
	for (i = 0; i < 3; i++) {
		assert_int_equal(0, chmod(base, modes[i]));
		assert_int_equal(OPEN_REFUSED, owner_once());
		assert_int_equal(OPEN_REFUSED, look_once());
	}
	assert_int_equal(0, chmod(base, 01777)); /* as /tmp is */
	assert_int_equal(OPEN_OK, owner_once());
	if (geteuid() == 0) {
		assert_int_equal(0, chown(base, NOBODY, NOBODY));
		assert_int_equal(OPEN_REFUSED, owner_once());
		assert_int_equal(0, chown(base, 0, 0));
	}
	assert_int_equal(0, chmod(base, 0755));
	assert_int_equal(OPEN_OK, look_once());
}

/* What is served is what was looked at, also when another takes its name. */
static void
a_replaced_file_is_not_served(void **state)
{
	assert_int_equal(OPEN_OK, owner_once());
	before_open = replace;
	assert_int_equal(OPEN_REFUSED, owner_once());
	before_open = replace;
	assert_int_equal(OPEN_REFUSED, look_once());
	assert_int_equal(OPEN_OK, owner_once());
}

/* ---- a reader beside the writer ----------------------------------------- */

/* Rows that are still in the WAL are seen, and no lock is dropped. */
static void
a_reader_takes_nothing_from_the_writer(void **state)
{
	struct fixture *f;
	void *own;

	(void)fixture_setup(&own);
	f = own;
	assert_int_equal(0, another("--look", f->dir));
	(void)record_event(f, 101);
	assert_int_equal(1, another("--look", f->dir));
	sql_ok(f, "BEGIN IMMEDIATE");
	assert_int_equal(SQLITE_BUSY, another("--write", f->dir));
	assert_int_equal(1, another("--look", f->dir));
	/* Opened and closed, by another process: the lock is where it was. */
	assert_int_equal(SQLITE_BUSY, another("--write", f->dir));
	sql_ok(f, "COMMIT");
	assert_int_equal(SQLITE_OK, another("--note", f->dir));
	(void)record_event(f, 102);
	(void)fixture_teardown(&own);
}

/* ---- two at once -------------------------------------------------------- */

/* All wait for GO to be closed, then open; the result is the exit code. */
static pid_t
start_waiting(int go)
{
	struct ledger l;
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	if (read(go, &byte, 1) != 1)
		_exit(127);
	_exit((int)open_owner(&l));
}

static void
start_at_once(void)
{
	pid_t pids[STARTS];
	int go[2], status;
	size_t i;

	assert_int_equal(0, pipe(go));
	for (i = 0; i < STARTS; i++) {
		pids[i] = start_waiting(go[0]);
		assert_true(pids[i] != -1);
	}
	/* Each of them holds the end that would wake it: write, not close. */
	for (i = 0; i < STARTS; i++)
		assert_int_equal(1, write(go[1], "g", 1));
	for (i = 0; i < STARTS; i++) {
		assert_int_equal(pids[i], waitpid(pids[i], &status, 0));
		assert_true(WIFEXITED(status));
		assert_int_equal(OPEN_OK, WEXITSTATUS(status));
	}
	(void)close(go[0]);
	(void)close(go[1]);
}

/* A fresh file, many times over: the moment in which they meet varies. */
static void
processes_that_open_a_fresh_file_at_once_all_succeed(void **state)
{
	sqlite3_stmt *stmt;
	struct ledger l;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		start_at_once();
		assert_int_equal(OPEN_OK, open_looking(&l));
		assert_int_equal(SQLITE_OK,
		    sqlite3_prepare_v2(l.db,
			"SELECT COUNT(*), MAX(version) FROM schema_migrations",
			-1, &stmt, NULL));
		assert_int_equal(SQLITE_ROW, sqlite3_step(stmt));
		assert_int_equal(migration_count, sqlite3_column_int(stmt, 0));
		assert_int_equal(SCHEMA_VERSION, sqlite3_column_int(stmt, 1));
		(void)sqlite3_finalize(stmt);
		database_close(&l);
		empty(dir);
	}
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    TRAP("T73", looking_for_a_missing_file_makes_none, setup, teardown),
	    TRAP("T74 T75", another_version_is_refused_and_left_alone, setup,
		teardown),
	    TRAP("T76", a_second_handle_is_refused_before_any_check, setup,
		teardown),
	    TRAP("T76", a_second_name_is_refused, setup, teardown),
	    TRAP("T77", a_changed_file_is_looked_at_again, setup, teardown),
	    TRAP("T77", an_ancestor_made_writable_is_seen, setup, teardown),
	    TRAP("T77", a_replaced_file_is_not_served, setup, teardown),
	    TRAP(
		"T78", a_reader_takes_nothing_from_the_writer, setup, teardown),
	    TRAP("T79", processes_that_open_a_fresh_file_at_once_all_succeed,
		setup, teardown),
	};

	if (argc == 3)
		return be_another(argv[1], argv[2]);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) == -1)
		(void)snprintf(self, sizeof(self), "%s", argv[0]);
	vfs_hook();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
