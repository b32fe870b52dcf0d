/*
 * Schema versions: a list that only grows. Each step is applied once, in a
 * transaction of its own in which the version is read again; a file that is
 * newer than the list is refused before anything is done to it.
 */
#ifndef LEDGER_MIGRATE_H
#define LEDGER_MIGRATE_H

#include <sqlite3.h>
#include <stddef.h>

#include "common/error.h"

struct migration {
	int version; /* 1, 2, ... in order, without a gap */
	const char *sql;
};

/* The list of this build; it ends at SCHEMA_VERSION. */
extern const struct migration migrations[];
extern const size_t migration_count;

/*
 * The file's version: 0 when it is empty. -1 with E when it is not a ledger or
 * cannot be read; *RC is then SQLite's code, SQLITE_OK for not a ledger.
 */
int migrate_version(sqlite3 *db, int *rc, struct error *e);

/*
 * Apply what is missing of LIST; BEFORE is told each version, or NULL. -1 as
 * above, or when the file is newer than the list.
 */
int migrate(sqlite3 *db, const struct migration *list, size_t count,
    void (*before)(int version, void *arg), void *arg, int *rc,
    struct error *e);

#endif
