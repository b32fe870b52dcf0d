/*
 * Lives of real ledgers over one directory, each with this program as its
 * supervisor and as one peer; and what such a directory holds.
 */
#ifndef TESTS_LEDGER_LIFE_H
#define TESTS_LEDGER_LIFE_H

#include "tests/crash/tracer.h"
#include "tests/nursery/nursery.h"

struct life {
	struct nursery ledger;
	struct tracer *tracer; /* follows it; or NULL */
	struct peer *peer;     /* of the asker; NULL for the supervisor */
	bool is_gone;
	size_t lines;      /* since it began */
	struct msg *reply; /* to the last request, or NULL; the life's */
};

/* The programs, before anything else, and a folder for what follows. */
void life_init(const char *killat, const char *ledger);
/* After everything else: the folder goes. */
void life_done(void);
/* The event loop of all lives. */
struct event_base *life_base(void);
const char *life_killat(void);
/* For nursery_start() of a ledger. */
char *const *life_argv(void);
/* What it is told: the fixture's projects; the caller's. */
struct config *life_config(void);
/* Whoever we are: what we may be told without having asked is dropped. */
const struct peer_ops *life_asker(void);
/*
 * A ledger over DIR, ready, with a link on which we are FROM (and ATTEMPT, or
 * ""). It has answered us once: nothing of its start is still to come.
 */
void life_begin(struct life *life, const char *dir, enum role_id from,
    const char *attempt, struct tracer *tracer);
/* Ask, and wait for the reply or its end: life->reply, or NULL. */
void life_ask(struct life *life, struct msg *m);
/* Stop it in order, unless it is gone. Its wait status. */
int life_end(struct life *life);
/* A reply as it would arrive; M's descriptors are taken. The caller's. */
struct msg *msg_copy(struct msg *m);

/* ---- directories -------------------------------------------------------- */

#define DIR_SIZE 64

/* One of that name in the folder, new or emptied; its path. */
void dir_make(const char *name, char path[static DIR_SIZE]);
/* The ledger's files of FROM are now those of TO, and nothing else is. */
void dir_copy(const char *from, const char *to);
/*
 * repeat_dump() of a copy of DIR's ledger, without tokens, and without saying
 * which time a stamp is; the caller's to free.
 */
char *dir_dump(const char *dir, const char *rewritten);
/* Every ledger stamp in TEXT is made the same. */
void stamps_hide(char *text);

#endif
