/*
 * A second connection to a ledger's file, for a test that looks at the rows
 * behind the ledger's back. It remembers what it was asked, since SQLite takes
 * longer to understand a question than to answer it.
 */
#ifndef TESTS_EYE_H
#define TESTS_EYE_H

#include <sqlite3.h>

/* The file of the ledger in DIR. Aborts when it cannot be opened. */
sqlite3 *eye_open(const char *dir);
void eye_close(sqlite3 *eye);
/* SQL, ready to be stepped, and to be reset and not finalized after it. */
sqlite3_stmt *eye_ask(sqlite3 *eye, const char *sql);
/* Every row goes, whatever triggers and foreign keys say of it. */
void eye_wipe(sqlite3 *eye);

#endif
