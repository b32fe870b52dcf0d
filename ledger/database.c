#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "ledger/database.h"
#include "ledger/files.h"
#include "ledger/migrate.h"

#define BUSY_MS 5000
#define BUSY_PAUSE_MS 20

static void
sqlite_log(void *arg, int rc, const char *text)
{
	if ((rc & 0xff) != SQLITE_CONSTRAINT && (rc & 0xff) != SQLITE_SCHEMA)
		log_debug("sqlite: %s (%d)", log_safe(text), rc);
}

int
database_process_init(struct error *e)
{
	unsigned char seed[8];

	(void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	(void)sqlite3_config(SQLITE_CONFIG_LOG, sqlite_log, NULL);
	if (sqlite3_initialize() != SQLITE_OK)
		return error_set(e, "SQLite does not start");
	sqlite3_randomness(sizeof(seed), seed);
	return 0;
}

/* ---- the handle -------------------------------------------------------- */

/* Each is set, read back and compared. */
struct pragma {
	const char *set, *get, *value;
};

static const struct pragma owner_pragmas[] = {
    {"PRAGMA journal_mode = WAL", "PRAGMA journal_mode", "wal"},
    {"PRAGMA synchronous = FULL", "PRAGMA synchronous", "2"},
    {"PRAGMA foreign_keys = ON", "PRAGMA foreign_keys", "1"},
    {"PRAGMA temp_store = MEMORY", "PRAGMA temp_store", "2"},
    {"PRAGMA trusted_schema = OFF", "PRAGMA trusted_schema", "0"},
    {"PRAGMA wal_autocheckpoint = 0", "PRAGMA wal_autocheckpoint", "0"},
    {"PRAGMA journal_size_limit = 16777216", "PRAGMA journal_size_limit",
	"16777216"},
};

static const struct pragma readonly_pragmas[] = {
    {"PRAGMA temp_store = MEMORY", "PRAGMA temp_store", "2"},
    {"PRAGMA trusted_schema = OFF", "PRAGMA trusted_schema", "0"},
};
/* From here on not even a temporary table is made. */
static const struct pragma query_only[] = {
    {"PRAGMA query_only = ON", "PRAGMA query_only", "1"},
};

#define PRAGMAS(list) (list), sizeof(list) / sizeof((list)[0])

/* What the statements of startable.c speak of besides the schema. */
static const char temp_sql[] =
    "CREATE TABLE temp.routes (project_id INTEGER PRIMARY KEY, path TEXT);"
    "CREATE TABLE temp.scope (project_id INTEGER PRIMARY KEY)";

static enum open_result
open_failed(struct ledger *l, struct error *e, const char *what)
{
	(void)error_set(e, "ledger.db: %s: %s", what, sqlite3_errmsg(l->db));
	return OPEN_FAILED;
}

/* Switching to WAL does not wait for a lock by itself. */
static int
exec_patiently(sqlite3 *db, const char *sql)
{
	const struct timespec pause = {0, BUSY_PAUSE_MS * 1000000L};
	int64_t until = clock_monotonic_ms() + BUSY_MS;
	int rc;

	while ((rc = sqlite3_exec(db, sql, NULL, NULL, NULL) & 0xff) ==
		SQLITE_BUSY &&
	    clock_monotonic_ms() < until)
		(void)nanosleep(&pause, NULL);
	return rc;
}

static bool
pragma_holds(sqlite3 *db, const struct pragma *p)
{
	sqlite3_stmt *stmt;
	bool holds;

	if (sqlite3_prepare_v2(db, p->get, -1, &stmt, NULL) != SQLITE_OK)
		return false;
	holds = sqlite3_step(stmt) == SQLITE_ROW &&
	    strcmp(row_text(stmt, 0), p->value) == 0;
	(void)sqlite3_finalize(stmt);
	return holds;
}

static enum open_result
pragmas_set(
    struct ledger *l, const struct pragma *list, size_t count, struct error *e)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (exec_patiently(l->db, list[i].set) != SQLITE_OK)
			return open_failed(l, e, list[i].set);
		if (!pragma_holds(l->db, &list[i]))
			return database_refuse(e, list[i].set, "does not hold");
	}
	return OPEN_OK;
}

static int
wal_committed(void *arg, sqlite3 *db, const char *name, int pages)
{
	((struct ledger *)arg)->wal_bytes = (int64_t)pages * 4096;
	return SQLITE_OK;
}

static enum open_result
handle_open(struct ledger *l, const char *path, int flags, struct error *e)
{
	if (sqlite3_open_v2(path, &l->db,
		flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		NULL) != SQLITE_OK)
		return open_failed(l, e, "open");
	(void)sqlite3_busy_timeout(l->db, BUSY_MS);
	(void)sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(l->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	(void)sqlite3_db_config(l->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	(void)sqlite3_limit(l->db, SQLITE_LIMIT_ATTACHED, 0);
	return OPEN_OK;
}

/*
 * One handle a process, whatever its mode. To look at the file a second time
 * is to open and to close it, and that takes from the first handle every lock
 * that this process holds on it (ledger.md 5).
 */
static bool is_open;

static enum open_result
open_begin(struct ledger *l, const char *dir, bool create, struct file_id *file,
    struct error *e)
{
	memset(l, 0, sizeof(*l));
	if (is_open)
		return database_refuse(e, dir, "a ledger is open already");
	return files_check(dir, create, file, e);
}

static enum open_result
statements_open(struct ledger *l, struct error *e)
{
	if (sqlite3_exec(l->db, temp_sql, NULL, NULL, NULL) != SQLITE_OK)
		return open_failed(l, e, "temporary tables");
	return sql_prepare(l, e) == -1 ? OPEN_FAILED : OPEN_OK;
}

struct progress {
	open_progress tell;
	void *arg;
};

static void
before_migration(int version, void *arg)
{
	const struct progress *p = arg;
	char text[64];

	(void)snprintf(text, sizeof(text), "schema version %d", version);
	if (p->tell != NULL)
		p->tell(text, p->arg);
}

/* Of a file that is no database nothing better will come. */
static enum open_result
migrate_refusal(int rc)
{
	return rc == SQLITE_OK || (rc & 0xff) == SQLITE_NOTADB ? OPEN_REFUSED
							       : OPEN_FAILED;
}

/* A newer file is refused before a pragma could change it. */
static enum open_result
owner_open(struct ledger *l, const char *path, const struct file_id *file,
    struct progress *p, struct error *e)
{
	enum open_result result;
	int version, rc;

	result = handle_open(l, path, SQLITE_OPEN_READWRITE, e);
	if (result != OPEN_OK ||
	    (result = files_same(path, file, e)) != OPEN_OK)
		return result;
	if ((version = migrate_version(l->db, &rc, e)) == -1)
		return migrate_refusal(rc);
	if (version > SCHEMA_VERSION)
		return database_refuse(
		    e, DATABASE_NAME, "its schema is newer than this build's");
	if ((result = pragmas_set(l, PRAGMAS(owner_pragmas), e)) != OPEN_OK)
		return result;
	if (migrate(l->db, migrations, migration_count, before_migration, p,
		&rc, e) == -1)
		return migrate_refusal(rc);
	(void)sqlite3_wal_hook(l->db, wal_committed, l);
	result = statements_open(l, e);
	if (result == OPEN_OK &&
	    sql_number(l, STMT_UNDECIDED_COUNT, WITH_NOTHING, &l->depth) == -1)
		result = open_failed(l, e, "count");
	sql_reset_all(l);
	return result;
}

/* What failed is named within the directory: say in which one, too. */
static enum open_result
open_end(
    struct ledger *l, const char *dir, enum open_result result, struct error *e)
{
	struct error why = *e;

	if (result == OPEN_OK) {
		is_open = true;
		return result;
	}
	database_close(l);
	if (strstr(why.text, dir) == NULL) {
		(void)error_set(e, "%s: %s", log_safe(dir), why.text);
		e->code = why.code;
	}
	return result;
}

enum open_result
database_open(struct ledger *l, const char *dir, open_progress progress,
    void *arg, struct error *e)
{
	struct progress p = {progress, arg};
	enum open_result result;
	struct file_id file;
	char *path;

	if ((result = open_begin(l, dir, true, &file, e)) != OPEN_OK)
		return open_end(l, dir, result, e);
	(void)xasprintf(&path, "%s/" DATABASE_NAME, dir);
	result = owner_open(l, path, &file, &p, e);
	free(path);
	return open_end(l, dir, result, e);
}

/*
 * Without a WAL the file alone is the ledger, and nothing beside it is
 * touched. With one it is read through the -shm that is there already. With a
 * WAL alone, as a copy may have it, nobody can have the ledger open, and none
 * is made: SQLite keeps that index in its own memory when it may think itself
 * alone. To prove that by a lock it would have to write, so it takes none, and
 * what was read counts if the files are still as they were (database_stands).
 */
static const struct pragma alone_pragmas[] = {
    {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA locking_mode", "exclusive"},
};

static char *
readonly_uri(struct ledger *l, const char *dir)
{
	const char *how = "readonly_shm=1";
	struct files_state now;
	char *uri;

	files_look(dir, &now);
	if (now.wal.bytes == 0) {
		how = "immutable=1";
	} else if (now.shm.id.ino == 0) {
		how = "vfs=unix-none";
		l->alone = xmalloc(sizeof(*l->alone));
		*l->alone = now;
	}
	(void)xasprintf(&uri, "file:%s/" DATABASE_NAME "?mode=ro&%s", dir, how);
	return uri;
}

static enum open_result
readonly_handle(struct ledger *l, const char *dir, const struct file_id *file,
    struct error *e)
{
	enum open_result result;
	char *uri = readonly_uri(l, dir), *path;

	(void)xasprintf(&path, "%s/" DATABASE_NAME, dir);
	result = handle_open(l, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);
	if (result == OPEN_OK)
		result = files_same(path, file, e);
	/* Else the last one to close would move the WAL's rows, and end it. */
	if (result == OPEN_OK)
		(void)sqlite3_db_config(
		    l->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (result == OPEN_OK && l->alone != NULL)
		result = pragmas_set(l, PRAGMAS(alone_pragmas), e);
	free(path);
	free(uri);
	return result;
}

static enum open_result
readonly_open(struct ledger *l, const char *dir, const struct file_id *file,
    struct error *e)
{
	enum open_result result;
	int version, rc;

	if ((result = readonly_handle(l, dir, file, e)) != OPEN_OK)
		return result;
	version = migrate_version(l->db, &rc, e);
	if (version == -1)
		return migrate_refusal(rc);
	if (version < SCHEMA_VERSION)
		return database_refuse(e, DATABASE_NAME,
		    "its schema is older; start the connector once");
	if (version > SCHEMA_VERSION)
		return database_refuse(
		    e, DATABASE_NAME, "its schema is newer than this build's");
	if ((result = pragmas_set(l, PRAGMAS(readonly_pragmas), e)) !=
		OPEN_OK ||
	    (result = statements_open(l, e)) != OPEN_OK)
		return result;
	return pragmas_set(l, PRAGMAS(query_only), e);
}

enum open_result
database_open_readonly(struct ledger *l, const char *dir, struct error *e)
{
	enum open_result result;
	struct file_id file;

	if ((result = open_begin(l, dir, false, &file, e)) == OPEN_OK)
		result = readonly_open(l, dir, &file, e);
	return open_end(l, dir, result, e);
}

int
database_stands(const struct ledger *l, const char *dir, struct error *e)
{
	struct files_state now;

	if (l->alone == NULL)
		return 0;
	files_look(dir, &now);
	if (files_equal(&now, l->alone))
		return 0;
	return error_set(e,
	    "%s: somebody opened the ledger meanwhile; ask again",
	    log_safe(dir));
}

void
database_close(struct ledger *l)
{
	if (l->db != NULL)
		is_open = false;
	sql_finalize(l);
	(void)sqlite3_close(l->db);
	free(l->alone);
	memset(l, 0, sizeof(*l));
}

int
database_fold(struct ledger *l, struct error *e)
{
	static const struct pragma no_wal = {
	    "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode", "delete"};

	if (sqlite3_wal_checkpoint_v2(l->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
		NULL, NULL) == SQLITE_OK &&
	    exec_patiently(l->db, no_wal.set) == SQLITE_OK &&
	    pragma_holds(l->db, &no_wal))
		return 0;
	return error_set(
	    e, DATABASE_NAME ": not in one file: %s", sqlite3_errmsg(l->db));
}

void
database_checkpoint(struct ledger *l)
{
	int rc = sqlite3_wal_checkpoint_v2(
	    l->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	if (rc == SQLITE_OK)
		l->wal_bytes = 0;
	else
		log_warnx("checkpoint: %s", sqlite3_errmsg(l->db));
}
