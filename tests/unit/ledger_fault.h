/*
 * A file system for SQLite that fails on demand: the default one, but for
 * writes and syncs of the WAL.
 */
#ifndef TESTS_LEDGER_FAULT_H
#define TESTS_LEDGER_FAULT_H

#include <stdbool.h>

enum fault_at { FAULT_NEVER, FAULT_WRITE, FAULT_SYNC };

struct fault {
	enum fault_at at;
	int skip;         /* so many of them pass first */
	int count;        /* then so many fail; -1: for ever */
	int rc;           /* with this code of SQLite's */
	int hits;         /* how many have failed */
	long long beyond; /* only writes from this offset on */
};

extern struct fault fault;

/* Make it the default; before a database is opened. Once in a process. */
void fault_register(void);

#endif
