/*
 * The life of a child: one start-up, driven by the role's row, the same for
 * all (order and reasons: design 2.1), and its link to the supervisor on
 * descriptor 3.
 */
#ifndef COMMON_ROLE_H
#define COMMON_ROLE_H

#include <event2/event.h>

#include "common/config.h"
#include "common/exit.h"
#include "common/peer.h"
#include "common/sandbox.h"

#define ROLE_LINK_FD 3
#define ROLE_PEERS_MAX 64

struct role;

/*
 * A role's own table. The handlers and callbacks of every peer_ops get
 * role->arg as their ARG. The common part answers PING, greets with HELLO,
 * takes LINK, CONFIG…CONFIG_END and STOP, and accuses a peer that broke the
 * protocol; `broken` is for what the role itself must clear up then. `waits`
 * is the common part's own: who is not answered tells the supervisor.
 */
struct role_row {
	enum role_id role;
	const char *title; /* process name; the first 15 bytes are shown */
	rlim_t nofile;     /* at least 256 */
	bool writes_files; /* false: FSIZE 0 (only where no memfd is made) */
	const struct sandbox_profile *sandbox;
	/*
	 * Before rlimits and ids, with files and names still there; or NULL.
	 * A failure ends the process with EXIT_CONFIG; a role that knows a
	 * better code calls role_exit() itself.
	 */
	int (*prepare)(struct role *role, struct error *e);
	/*
	 * By role: what it may send us. NULL: there is no link to it. For
	 * ROLE_SUPERVISOR only handlers beyond the common ones; or NULL.
	 */
	const struct peer_ops *peers[ROLE_COUNT];
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
	struct peer *peers[ROLE_PEERS_MAX];
	size_t peer_count;
	struct sandbox_report walls;
};

/*
 * First thing in main(), once in a process: seals inherited descriptors, own
 * session, signals, umask, reads SETUP, logs through the link, prepare(),
 * then every wall of the row. Does not return on failure: EXIT_WALLS or
 * EXIT_CONFIG after a log line, EXIT_OK when the supervisor is gone. ARG is
 * stored in role->arg before prepare(); ROLE must live as long as the process.
 */
void role_start(struct role *role, const struct role_row *row, void *arg);
/* There is nothing to serve: one line of the log says why, and that is all. */
_Noreturn void role_start_failed(enum exit_code code, const char *text);
/* Say READY; call it once the role can serve. */
void role_ready(struct role *role);
/* Progress of a long start, extends the READY deadline. */
void role_starting(struct role *role, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The loop; returns never. Ends the process when descriptor 3 ends. */
_Noreturn void role_run(struct role *role);
/* Write what is queued on every link, for at most half a second, then end. */
_Noreturn void role_exit(struct role *role, int code);

/*
 * The peer of that role (and attempt, for mcpd; else ""). Made at its first
 * LINK or at the first call, whichever is earlier; never NULL. A role without
 * a link to it (row->peers[]) may not ask. An mcpd's peer whose link has ended
 * is given up when ROLE_PEERS_MAX others have come since: keep its attempt,
 * and of the peer no more than a struct reply_to for a bounded wait.
 */
struct peer *role_peer(
    struct role *role, enum role_id peer, const char *attempt);
/*
 * A value that `status` shows; "" removes it. One name has a meaning: while
 * there is "trouble", what only a person can mend, connectctl status ends
 * with EXIT_FAILED.
 */
void role_state(struct role *role, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * A record is in hand from now on, or is not any more. Should this process die
 * of itself meanwhile the supervisor counts that against the record.
 */
void role_in_hand(struct role *role, int64_t event_id, bool taken);
/*
 * Part of role_start(), and to be called first by a process that has no role
 * to start: what libraries would read from files later, they have then.
 */
void role_seed(void);
/* Tell the supervisor that PEER broke the protocol. */
void role_accuse(struct role *role, struct peer *peer, const char *text);

#endif
