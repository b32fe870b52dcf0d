#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/eye.h"

static void
eye_must(sqlite3 *eye, int rc, const char *what)
{
	if (rc == SQLITE_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(eye));
	abort();
}

sqlite3 *
eye_open(const char *dir)
{
	char path[256];
	sqlite3 *eye;

	(void)snprintf(path, sizeof(path), "%s/ledger.db", dir);
	eye_must(NULL, sqlite3_open_v2(path, &eye, SQLITE_OPEN_READWRITE, NULL),
	    path);
	eye_must(eye,
	    sqlite3_db_config(eye, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL),
	    "triggers");
	eye_must(eye,
	    sqlite3_db_config(eye, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL),
	    "foreign keys");
	eye_must(eye,
	    sqlite3_exec(eye, "PRAGMA synchronous=OFF", NULL, NULL, NULL),
	    "synchronous");
	return eye;
}

void
eye_close(sqlite3 *eye)
{
	sqlite3_stmt *stmt;

	while ((stmt = sqlite3_next_stmt(eye, NULL)) != NULL)
		(void)sqlite3_finalize(stmt);
	eye_must(eye, sqlite3_close(eye), "close");
}

sqlite3_stmt *
eye_ask(sqlite3 *eye, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	while ((stmt = sqlite3_next_stmt(eye, stmt)) != NULL)
		if (strcmp(sqlite3_sql(stmt), sql) == 0)
			return stmt;
	eye_must(eye, sqlite3_prepare_v2(eye, sql, -1, &stmt, NULL), sql);
	return stmt;
}

void
eye_wipe(sqlite3 *eye)
{
	sqlite3_stmt *tables = eye_ask(eye,
	    "SELECT name FROM sqlite_schema WHERE type = 'table'"
	    " AND name <> 'schema_migrations'");

	eye_must(eye, sqlite3_exec(eye, "BEGIN", NULL, NULL, NULL), "begin");
	while (sqlite3_step(tables) == SQLITE_ROW) {
		char text[128];
		sqlite3_stmt *wipe;

		(void)snprintf(text, sizeof(text), "DELETE FROM %s",
		    (const char *)sqlite3_column_text(tables, 0));
		wipe = eye_ask(eye, text);
		(void)sqlite3_step(wipe);
		eye_must(eye, sqlite3_reset(wipe), text);
	}
	eye_must(eye, sqlite3_reset(tables), "tables");
	eye_must(eye, sqlite3_exec(eye, "COMMIT", NULL, NULL, NULL), "commit");
}
