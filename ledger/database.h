/*
 * The file ledger.db: its privacy, its pragmas, its schema (ledger.md 5,
 * design L1, L5).
 */
#ifndef LEDGER_DATABASE_H
#define LEDGER_DATABASE_H

#include "ledger/ledger.h"

#define DATABASE_NAME "ledger.db"
#define WAL_MOST (16 * 1024 * 1024) /* checkpoint at once from here */
#define WAL_IDLE (1024 * 1024)      /* when idle from here */

/* schema.sql, the text. */
extern const char ledger_schema[];

enum open_result {
	OPEN_OK,
	OPEN_MISSING, /* read-only: there is none */
	OPEN_REFUSED, /* not private, not ours, another schema */
	OPEN_FAILED   /* the storage's fault: later may help */
};

/*
 * Once in a process, while it may still open files: SQLite's settings and its
 * random seed, for which it opens /dev/urandom.
 */
int database_process_init(struct error *e);

/* What a long opening says meanwhile; may be NULL. */
typedef void (*open_progress)(const char *text, void *arg);

/*
 * The owner's opening: makes the file in DIR if it is not there, and brings
 * its schema up to date. On anything but OPEN_OK L is as after memset() and E
 * says why. A process has one ledger open at a time: a second opening, of
 * either kind, is refused before it touches a file.
 */
enum open_result database_open(struct ledger *l, const char *dir,
    open_progress progress, void *arg, struct error *e);

/* To look only: nothing is made or changed, the schema must be ours. */
enum open_result database_open_readonly(
    struct ledger *l, const char *dir, struct error *e);
/*
 * Of a ledger that is open to look in DIR, once what is wanted of it was read:
 * is that one moment of it? -1 with E: somebody began to write where nobody
 * could be kept from it, and it is to be read again.
 */
int database_stands(const struct ledger *l, const char *dir, struct error *e);

void database_close(struct ledger *l);

/*
 * Bring everything into the one file, without a WAL, so that it may be moved
 * once it is closed. -1 with E, also while somebody else reads it.
 */
int database_fold(struct ledger *l, struct error *e);

/* Move what the WAL holds into the file, as far as no reader hinders. */
void database_checkpoint(struct ledger *l);

#endif
