/*
 * The invariants of ledger.md 4 that rows at rest can break, as questions to
 * the file: each yields the rows that break it, in words. I3, I17 and I18 are
 * about what happens, not about what is there.
 */
#ifndef TESTS_INVARIANTS_H
#define TESTS_INVARIANTS_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

struct invariant {
	const char *name; /* "I1" */
	const char *sql;  /* one column, no row when it holds */
};

/* Ends with a NULL name. */
extern const struct invariant invariants[];

/* Do they all hold? If not, false and the first that does not in WHY. */
bool invariants_hold(sqlite3 *eye, char *why, size_t size);

#endif
