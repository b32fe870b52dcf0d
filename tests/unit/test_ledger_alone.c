/*
 * A ledger whose last rows stand in a WAL that has no -shm, as a copy may have
 * it: it is read without either being made, and nothing of it is changed
 * (design L3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/digest.h"
#include "ledger/query.h"
#include "tests/unit/ledger_fixture.h"

static const char *const names[] = {
    "ledger.db", "ledger.db-wal", "ledger.db-shm"};
#define NAMES (sizeof(names) / sizeof(names[0]))

static char dir[64], file[96];

/* NULL when there is none; the caller's to free. */
static char *
bytes_of(const char *from, const char *name, size_t *len)
{
	struct buffer b = {0};
	char path[192], some[4096];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", from, name);
	if ((f = fopen(path, "r")) == NULL)
		return NULL;
	while ((n = fread(some, 1, sizeof(some), f)) > 0)
		buffer_add(&b, some, n);
	(void)fclose(f);
	return buffer_take(&b, len);
}

static void
copy(const char *from, const char *name)
{
	char path[192];
	size_t len;
	char *bytes = bytes_of(from, name, &len);
	FILE *f;

	assert_non_null(bytes);
	assert_int_not_equal(0, len);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(f = fopen(path, "w"));
	assert_int_equal(len, fwrite(bytes, 1, len, f));
	assert_int_equal(0, fclose(f));
	assert_int_equal(0, chmod(path, 0600));
	free(bytes);
}

/* The file and its WAL, taken from a ledger at work. */
static int
setup(void **state)
{
	struct fixture *f;
	void *working;

	(void)snprintf(dir, sizeof(dir), "/tmp/test_alone.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/ledger.db", dir);
	(void)fixture_setup(&working);
	f = working;
	(void)record_event(f, 101);
	copy(f->dir, "ledger.db");
	copy(f->dir, "ledger.db-wal");
	return fixture_teardown(&working);
}

static int
teardown(void **state)
{
	char path[192];
	size_t i;

	for (i = 0; i < NAMES; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	return rmdir(dir);
}

/* What is there, and a hash of each. */
static char *
contents(void)
{
	struct buffer b = {0};
	char hash[DIGEST_HEX_SIZE], *bytes;
	size_t i, len;

	for (i = 0; i < NAMES; i++) {
		if ((bytes = bytes_of(dir, names[i], &len)) == NULL)
			continue;
		digest_sha256_hex(bytes, len, hash);
		buffer_printf(&b, "%s %s\n", names[i], hash);
		free(bytes);
	}
	return buffer_take(&b, &len);
}

static void
open_looking(struct ledger *l)
{
	struct error e;

	if (database_open_readonly(l, dir, &e) != OPEN_OK)
		fail_msg("%s", e.text);
}

static void
a_wal_alone_is_read_and_left(void **state)
{
	char *before = contents(), *after, *json;
	struct ledger l;
	struct error e;

	assert_null(strstr(before, "-shm"));
	open_looking(&l);
	assert_int_equal(QUERY_OK, query_json(&l, "events", 0, 0, &json));
	assert_non_null(strstr(json, "\"event_id\":101"));
	assert_int_equal(0, database_stands(&l, dir, &e));
	database_close(&l);
	after = contents();
	assert_string_equal(before, after);
	free(before);
	free(after);
	free(json);
}

/* Of a WAL without a row, too, which SQLite would remove behind itself. */
static void
a_wal_that_is_none_is_left(void **state)
{
	char path[192], *before, *after;
	struct ledger l;
	struct error e;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/ledger.db-wal", dir);
	assert_non_null(f = fopen(path, "r+"));
	assert_int_equal(4, fwrite("none", 1, 4, f));
	assert_int_equal(0, fclose(f));
	before = contents();
	assert_int_equal(OPEN_REFUSED, database_open_readonly(&l, dir, &e));
	after = contents();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* It takes no lock: a connector may start, and is not kept from anything. */
static void
who_comes_meanwhile_is_noticed(void **state)
{
	struct ledger l;
	struct error e;
	sqlite3 *db;

	open_looking(&l);
	assert_int_equal(SQLITE_OK, sqlite3_open(file, &db));
	assert_int_equal(0, database_stands(&l, dir, &e));
	assert_int_equal(SQLITE_OK,
	    sqlite3_exec(db, "SELECT * FROM gaps", NULL, NULL, NULL));
	assert_int_equal(-1, database_stands(&l, dir, &e));
	assert_non_null(strstr(e.text, "meanwhile"));
	(void)sqlite3_close(db);
	/* And gone again, with its -shm; what it closed was checkpointed. */
	assert_int_equal(-1, database_stands(&l, dir, &e));
	database_close(&l);
}

/* Where others are kept out by locks, nobody is looked for. */
static void
beside_a_shm_it_stands(void **state)
{
	struct ledger l;
	struct error e;
	sqlite3 *db;

	assert_int_equal(SQLITE_OK, sqlite3_open(file, &db));
	assert_int_equal(SQLITE_OK,
	    sqlite3_exec(db, "SELECT * FROM gaps", NULL, NULL, NULL));
	assert_int_equal(0, chmod(file, 0600));
	open_looking(&l);
	assert_int_equal(SQLITE_OK,
	    sqlite3_exec(db,
		"INSERT INTO gaps (detected_at, class)"
		" VALUES ('d', 'retention')",
		NULL, NULL, NULL));
	assert_int_equal(0, database_stands(&l, dir, &e));
	database_close(&l);
	(void)sqlite3_close(db);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_wal_alone_is_read_and_left),
	    TEST(a_wal_that_is_none_is_left),
	    TEST(who_comes_meanwhile_is_noticed),
	    TEST(beside_a_shm_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
