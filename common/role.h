/*
 * The life of a child: one start-up, driven by the role's row, the same for
 * all (order and reasons: design 2.1), and its link to the supervisor on
 * descriptor 3.
 */
#ifndef COMMON_ROLE_H
#define COMMON_ROLE_H

#include <event2/event.h>

#include "common/config.h"
#include "common/peer.h"
#include "common/sandbox.h"

#define ROLE_LINK_FD 3
#define ROLE_PEERS_MAX 64

struct role;

struct role_row {
	enum role role;
	const char *title; /* process name, "connectd-ledger"; <= 15 shown */
	rlim_t nofile;     /* at least 256 */
	bool writes_files; /* false: FSIZE 0 (only where no memfd is made) */
	struct sandbox_profile sandbox;
	/* Before rlimits and ids, with files and names still there; or NULL. */
	int (*prepare)(struct role *role, struct error *e);
	/* A child peer's handlers, by its role; NULL: no such link. */
	const struct peer_ops *peers[ROLE_COUNT];
	/* What the supervisor sends beyond the common ones (peer_ops.handlers
	 * of ROLE_SUPERVISOR in peers[]); common: CONFIG…, LINK, PING, STOP. */
	/* A whole generation of configuration arrived; or NULL. */
	void (*configured)(struct role *role);
	/* Finish within the bound, then role_exit(); or NULL: exits at once. */
	void (*stop)(struct role *role, int64_t bound_ms);
};

struct role {
	const struct role_row *row;
	void *arg; /* the role's own state */
	struct event_base *base;
	struct msg *setup;     /* SETUP as received, kept */
	struct config *config; /* newest whole generation, or NULL */
	struct peer *supervisor;
	struct peer *peers[ROLE_PEERS_MAX]; /* those that ever had a link */
	size_t peer_count;
	struct sandbox_report walls;
};

/*
 * First thing in main(): seals inherited descriptors, own session, signals,
 * umask, reads SETUP, logs through the link, prepare(), then every wall of
 * the row. Does not return on failure (exit code EXIT_WALLS or EXIT_CONFIG,
 * after a log line). ARG is stored in role->arg before prepare().
 */
void role_start(struct role *role, const struct role_row *row, void *arg);
/* Say READY; call it once the role can serve. */
void role_ready(struct role *role);
/* Progress of a long start, extends the READY deadline. */
void role_starting(struct role *role, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The loop; returns never. Ends the process when descriptor 3 ends. */
_Noreturn void role_run(struct role *role);
/* Write what is queued on every link, then end. */
_Noreturn void role_exit(struct role *role, int code);

/*
 * The peer of that role (and attempt, for mcpd; else ""). Made at its first
 * LINK or at the first call, whichever is earlier; never NULL.
 */
struct peer *role_peer(struct role *role, enum role peer, const char *attempt);
/* A value that `status` shows; "" removes it. */
void role_state(struct role *role, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Tell the supervisor that PEER broke the protocol. */
void role_accuse(struct role *role, struct peer *peer, const char *text);

#endif
