/*
 * Group commit (design 3.1). The requests that wait when the loop turns are
 * one transaction, each in a savepoint of its own; after its COMMIT the lines
 * go out, then the replies and notices. What a requester is told is on the
 * disk.
 */
#ifndef LEDGER_TURN_H
#define LEDGER_TURN_H

#include "common/peer.h"
#include "ledger/ledger.h"

#define TURN_REQUESTS 256
#define TURN_BYTES (1024 * 1024)
/* What a group has to answer; the request that goes beyond is its last. */
#define TURN_ANSWER_BYTES (8 * 1024 * 1024)

/* Where a turn's results go; all of it after the COMMIT. */
struct turn_ops {
	/* A line, then, once for a turn that had any: they go before the rest
	 */
	void (*line)(const char *text, void *arg);
	void (*lines_end)(void *arg);
	/* FD fields of M are taken over. */
	void (*reply)(const struct reply_to *to, struct msg *m, void *arg);
	void (*notice)(const char *attempt, struct msg *m, void *arg);
	/* The storage refuses; "" when it does not any more. */
	void (*trouble)(const char *text, void *arg);
	/*
	 * A COMMIT failed and nobody knows whether it is on the disk: the
	 * process must end, and answer the repeats from what it finds. Does
	 * not return.
	 */
	void (*unknown)(const char *text, void *arg);
};

struct turn;

/* L, HANDLERS, OPS and ARG outlive the turn. */
struct turn *turn_new(struct ledger *l, const handler *handlers,
    const struct turn_ops *ops, void *arg);
void turn_free(struct turn *t);

/*
 * A request, for the next turn; M is taken over, ATTEMPT copied. A turn that
 * would be too large runs at once, without it.
 */
void turn_add(struct turn *t, struct msg *m, enum role_id from,
    const char *attempt, const struct reply_to *to);
bool turn_is_empty(const struct turn *t);
void turn_run(struct turn *t);

#endif
