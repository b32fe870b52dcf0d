/*
 * A role's own executable, started as the supervisor starts it, with this
 * program as its supervisor and as whichever peer it is given a link to.
 */
#ifndef TESTS_BENCH_NURSERY_H
#define TESTS_BENCH_NURSERY_H

#include <sys/types.h>

#include "common/peer.h"

#define NURSERY_ATTEMPT "att_0000000000000000000bench"

struct nursery {
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
 * closed here) as 4, and tell it who it is. Its death is fatal to us, but for
 * the one that nursery_end() asks for. N lives until then.
 */
void nursery_start(struct nursery *n, struct event_base *base,
    enum role_id role, char *const argv[], int extra, const char *state_dir);
/* Give it a link on which we are AS; our end is made into a peer. */
struct peer *nursery_link(
    struct nursery *n, enum role_id as, const struct peer_ops *ops, void *arg);
/* Give it a generation of configuration with one project. */
void nursery_configure(struct nursery *n);
/* Run the loop until it has said READY. */
void nursery_await_ready(struct nursery *n);
/* Stop it in order, wait for its end, and free what is ours. */
void nursery_end(struct nursery *n);

#endif
