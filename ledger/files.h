/*
 * Whether ledger.db is private enough to be opened (ledger.md 5): the
 * directory and the file are the user's own and nobody else's to reach, and
 * the file has one name. Looser modes are refused, never put right.
 */
#ifndef LEDGER_FILES_H
#define LEDGER_FILES_H

#include <stdbool.h>

#include "ledger/database.h"

/*
 * Look at DIR and what is in it, before SQLite does. With CREATE a missing
 * file is made, empty, and what a crash left beside it is closed to others.
 */
enum open_result files_check(const char *dir, bool create, struct error *e);

/* OPEN_REFUSED, with a text that names NAME. */
enum open_result database_refuse(
    struct error *e, const char *name, const char *why);

#endif
