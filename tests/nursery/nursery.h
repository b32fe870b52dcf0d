/*
 * A role's own executable, started as the supervisor starts it, with this
 * program as its supervisor and as whichever peer it is given a link to.
 */
#ifndef TESTS_NURSERY_H
#define TESTS_NURSERY_H

#include <sys/types.h>

#include "common/config.h"
#include "common/peer.h"

#define NURSERY_ATTEMPT "att_0000000000000000000bench"

/* What a test wants to do besides; each may be NULL. */
struct nursery_ops {
	/* In the child, before its exec: async-signal-safe calls only. */
	void (*born)(void *arg);
	/* A committed transition, as a line. */
	void (*line)(const char *text, void *arg);
	/* It ended, and nursery_end() had not asked for that. */
	void (*gone)(void *arg);
};

struct nursery {
	const struct nursery_ops *ops; /* or NULL */
	void *arg;                     /* of the ops */
	struct event_base *base;
	enum role_id role;
	struct peer *child; /* as its supervisor sees it */
	pid_t pid;
	bool is_ready, is_ending;
};

/* A loop, made after 3 and 4, which a child wants for itself, are taken. */
struct event_base *nursery_base(void);
/*
 * Fork, exec ARGV with its link as descriptor 3 and EXTRA (-1: none; it is
 * closed here) as 4, and tell it who it is. N begins as {0} but for its ops,
 * and lives until nursery_end() or nursery_bury(). A death that was not asked
 * for is fatal to us where there is no `gone`.
 */
void nursery_start(struct nursery *n, struct event_base *base,
    enum role_id role, char *const argv[], int extra, const char *state_dir);
/* Give it a link on which we are AS; our end is made into a peer. */
struct peer *nursery_link(
    struct nursery *n, enum role_id as, const struct peer_ops *ops, void *arg);
/*
 * The same for a peer that has been there in an earlier life of the child: it
 * asks again what was not answered. ATTEMPT is ours where AS is an mcpd.
 */
void nursery_relink(
    struct nursery *n, enum role_id as, const char *attempt, struct peer *peer);
/* Give it a generation of configuration with one project; or this one. */
void nursery_configure(struct nursery *n);
void nursery_tell_config(struct nursery *n, const struct config *c);
/* Run the loop until it has said READY. */
void nursery_await_ready(struct nursery *n);
/* Stop it in order, wait for its end, and free what is ours. */
void nursery_end(struct nursery *n);
/* It is ending by itself: its wait status, and what is ours is freed. */
int nursery_bury(struct nursery *n);

#endif
