/*
 * A state directory as a promotion finds it, before and behind its walls
 * (operator.md 3.7): ROOT/ACCOUNT-AGENT, with the agent's lock in ROOT.
 */
#ifndef LEDGER_PLACE_H
#define LEDGER_PLACE_H

#include <sys/stat.h>

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct place {
	char *dir; /* clean */
	char *root;
	const char *name; /* in DIR */
	int64_t account, agent;
	bool is_there;
	struct stat st; /* if it is */
};

/* All of these return -1 with E. */

/* A directory of no connector's name is refused. Free it even then. */
int place_read(struct place *p, const char *dir, struct error *e);
void place_free(struct place *p);
/* Is it there, and nobody else able to put another in its stead? */
int place_look(struct place *p, struct error *e);
/*
 * Take the agent's lock, to the end of the process, without waiting; with
 * EWOULDBLOCK in e->code somebody else has it.
 */
int place_lock(const struct place *p, struct error *e);
/* Is there a ledger.db? 1, 0. */
int place_has_ledger(const struct place *p, struct error *e);
/* Is there nothing beside it; nor, with ITSELF, itself? 0: so it is. */
int place_is_clear(const struct place *p, bool itself, struct error *e);
/* The names in it are on the disk. */
int place_sync(const struct place *p, struct error *e);

#endif
