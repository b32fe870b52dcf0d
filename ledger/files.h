/*
 * Whether ledger.db is private enough to be opened (ledger.md 5): the
 * directory and the file are the user's own and nobody else's to reach, nobody
 * else may put another directory in the place of one above them, and the file
 * has one name. Looser modes are refused, never put right.
 */
#ifndef LEDGER_FILES_H
#define LEDGER_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "ledger/database.h"

/* Which file was looked at; its name may come to mean another. */
struct file_id {
	dev_t dev;
	ino_t ino;
};

/*
 * Look at DIR and what is in it, before SQLite does. With CREATE a missing
 * file is made, empty, and what a crash left beside it is closed to others.
 * FILE receives which ledger.db was found good.
 */
enum open_result files_check(
    const char *dir, bool create, struct file_id *file, struct error *e);
/*
 * Once SQLite has opened PATH: is it still that file? OPEN_REFUSED when
 * another has taken its name meanwhile.
 */
enum open_result files_same(
    const char *path, const struct file_id *file, struct error *e);

/*
 * The files of the ledger in DIR as they are at a moment: whoever begins to
 * write makes the -shm first, and every write changes a size or a time.
 */
struct file_state {
	struct file_id id; /* zero: it is not there */
	off_t bytes;
	struct timespec written;
};
struct files_state {
	struct file_state file, wal, shm;
};
void files_look(const char *dir, struct files_state *state);
bool files_equal(const struct files_state *a, const struct files_state *b);

/* OPEN_REFUSED, with a text that names NAME. */
enum open_result database_refuse(
    struct error *e, const char *name, const char *why);

#endif
