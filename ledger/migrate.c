#include <assert.h>

#include "common/clock.h"
#include "common/protocol.h"
#include "ledger/database.h"
#include "ledger/migrate.h"

const struct migration migrations[] = {
    {1, ledger_schema},
};
const size_t migration_count = sizeof(migrations) / sizeof(migrations[0]);

static_assert(sizeof(migrations) / sizeof(migrations[0]) == SCHEMA_VERSION,
    "the list ends at the version that links speak of");

/* These run before there is a schema to prepare statements for. */
static const char tables_sql[] =
    "SELECT COUNT(*), COUNT(CASE WHEN name = 'schema_migrations' THEN 1 END)"
    " FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
static const char version_sql[] = "SELECT MAX(version) FROM schema_migrations";
static const char applied_sql[] =
    "INSERT INTO schema_migrations (version, applied_at) VALUES (?, ?)";

static int
migrate_fail(sqlite3 *db, int *rc, struct error *e)
{
	*rc = sqlite3_extended_errcode(db);
	return error_set(e, "ledger.db: %s", sqlite3_errmsg(db));
}

/* The first columns of a one-row query. */
static int
query_ints(sqlite3 *db, const char *sql, int *out, int count)
{
	sqlite3_stmt *stmt;
	int i, ok;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return -1;
	ok = sqlite3_step(stmt) == SQLITE_ROW;
	for (i = 0; ok && i < count; i++)
		out[i] = sqlite3_column_int(stmt, i);
	return sqlite3_finalize(stmt) == SQLITE_OK && ok ? 0 : -1;
}

int
migrate_version(sqlite3 *db, int *rc, struct error *e)
{
	int tables[2], version;

	*rc = SQLITE_OK;
	if (query_ints(db, tables_sql, tables, 2) == -1)
		return migrate_fail(db, rc, e);
	if (tables[0] == 0)
		return 0;
	if (tables[1] == 0)
		return error_set(e, "ledger.db: this is no ledger");
	if (query_ints(db, version_sql, &version, 1) == -1)
		return migrate_fail(db, rc, e);
	return version;
}

static int
migrate_note(sqlite3 *db, int version)
{
	char now[CLOCK_STAMP_SIZE];
	sqlite3_stmt *stmt;
	int done;

	clock_stamp(now);
	if (sqlite3_prepare_v2(db, applied_sql, -1, &stmt, NULL) != SQLITE_OK)
		return -1;
	(void)sqlite3_bind_int(stmt, 1, version);
	(void)sqlite3_bind_text(stmt, 2, now, -1, SQLITE_TRANSIENT);
	done = sqlite3_step(stmt) == SQLITE_DONE;
	return sqlite3_finalize(stmt) == SQLITE_OK && done ? 0 : -1;
}

/* One step; done already by somebody else is done. */
static int
migrate_step(sqlite3 *db, const struct migration *m, int *rc, struct error *e)
{
	int version;

	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return migrate_fail(db, rc, e);
	version = migrate_version(db, rc, e);
	if (version != -1 && version < m->version &&
	    (sqlite3_exec(db, m->sql, NULL, NULL, NULL) != SQLITE_OK ||
		migrate_note(db, m->version) == -1))
		version = migrate_fail(db, rc, e);
	if (version != -1 &&
	    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	if (version != -1)
		(void)migrate_fail(db, rc, e);
	(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

int
migrate(sqlite3 *db, const struct migration *list, size_t count,
    void (*before)(int version, void *arg), void *arg, int *rc, struct error *e)
{
	int version = migrate_version(db, rc, e);
	size_t i;

	if (version == -1)
		return -1;
	if (version > list[count - 1].version)
		return error_set(e,
		    "ledger.db: schema %d is newer than this build's %d",
		    version, list[count - 1].version);
	for (i = 0; i < count; i++) {
		if (list[i].version <= version)
			continue;
		if (before != NULL)
			before(list[i].version, arg);
		if (migrate_step(db, &list[i], rc, e) == -1)
			return -1;
	}
	return 0;
}
