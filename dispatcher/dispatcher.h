/*
 * The dispatcher: decides what starts, and speaks each agent's protocol over
 * pipes handed to it (design 2, 5; dispatch.md 3, 6, 7).
 *
 *	dispatcher.c	main, the role's row, the handler tables
 *	pass.c		what starts, and when
 *	recover.c	what an earlier dispatcher left
 *	attempt.c	an attempt's life: the state table
 *	timers.c	what it waits for, and for how long
 *	attempts.c	all attempts there are
 *	ask.c		what it asks of ledger and supervisor
 *	follow.c	what joins its conversation meanwhile
 *	adopt.c		what a worker posted that did not say so
 *	session.c	an attempt's talk with its agent
 *	driver.h	what is known of an agent's wire; claude.c is one
 *	prompt.c	the prompts
 *	stream.c	the worker's pipes
 */
#ifndef DISPATCHER_DISPATCHER_H
#define DISPATCHER_DISPATCHER_H

#include <sys/queue.h>

#include "common/role.h"

struct attempt;

struct dispatcher {
	struct role role;
	LIST_HEAD(, attempt) attempts; /* held ones included */
	bool outbox_awaited;           /* for limits.outbox_start at most */
	bool outbox_started;           /* its settling of messages is over */
	bool recovered;                /* nothing starts before */
	bool recovering;
	bool recovery_listed; /* every attempt left is being ended */
	bool passing;         /* a pass is under way */
	bool pass_again;      /* something changed meanwhile */
	bool looking;         /* decisions_look() is under way */
	bool look_again;      /* the ledger was linked anew meanwhile */
	bool stopping;
	bool recovers_first; /* before a stop is over */
	/* Of a stop, monotonic ms: no turn, no tree has grace after that. */
	int64_t cut_until, kill_at;
	int64_t pass_after;     /* the last event the pass looked at */
	int64_t stranded;       /* as told last; -1 never */
	int64_t stranded_at;    /* monotonic ms of that */
	struct event *tick;     /* safety net while something is outstanding */
	char containment[4001]; /* base of this run's attempts, "" without */
};

/* ---- pass.c ------------------------------------------------------------- */

/* Something may be startable now: look, unless a pass runs already. */
void pass_wanted(struct dispatcher *d);
/* The attempt that this pass launched is through (or was refused). */
void pass_goes_on(struct dispatcher *d);
/* Look (or recover) again after a while: something failed. */
void pass_later(struct dispatcher *d);
void pass_init(struct dispatcher *d);

/* ---- recover.c ---------------------------------------------------------- */

/* Once, before the first pass: end and settle what an earlier one left. */
void recover_begin(struct dispatcher *d);

/* ---- timers.c ----------------------------------------------------------- */

/* BOUND_MS from now all is to be settled: what of it is for grace. */
void dispatcher_stop_by(struct dispatcher *d, int64_t bound_ms);
/* The grace LIMIT gives, or what a stop has left of it; never 0. */
int64_t dispatcher_grace(const struct dispatcher *d, enum limit limit);

/* ---- dispatcher.c ------------------------------------------------------- */

struct peer *dispatcher_ledger(struct dispatcher *d);
struct peer *dispatcher_supervisor(struct dispatcher *d);
struct peer *dispatcher_outbox(struct dispatcher *d);
int64_t dispatcher_limit(const struct dispatcher *d, enum limit limit);
/* What status shows; 0 is not shown. */
void dispatcher_show_count(
    struct dispatcher *d, const char *name, int64_t count);
/* There is one live attempt less: status, the end of a recovery or a stop. */
void dispatcher_attempt_gone(struct dispatcher *d);
/* The same of one that was settled or held; more may be startable for it. */
void dispatcher_attempt_over(struct dispatcher *d);

#endif
