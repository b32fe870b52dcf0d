/*
 * One attempt as the supervisor has it: the task's mcpd, its socket, its
 * worker and the tree below. What may happen to it, and what then is done, is
 * the table in attempt.c; its mcpd is attempt_mcpd.c, its worker
 * attempt_worker.c, all of them attempts.c, one of an earlier run recovery.c.
 */
#ifndef SUPERVISOR_ATTEMPT_H
#define SUPERVISOR_ATTEMPT_H

#include "common/redact.h"
#include "supervisor/listener.h"
#include "supervisor/past.h"
#include "supervisor/session.h"
#include "supervisor/spawn.h"
#include "supervisor/supervisor.h"
#include "supervisor/tree.h"
#include "supervisor/worker.h"

/* Far above the 32 workers that may run: a bound for a mad dispatcher. */
#define ATTEMPTS_MAX 128

enum attempt_state {
	ATTEMPT_PREPARING, /* session and socket; its mcpd was never ready */
	ATTEMPT_PREPARED,  /* a worker may be started */
	ATTEMPT_STARTING,  /* forked; not known whether its program runs */
	ATTEMPT_UNSTARTED, /* no worker, and none will be */
	ATTEMPT_RUNNING,
	ATTEMPT_LEADERLESS, /* the leader has ended, not yet the tree */
	ATTEMPT_ENDING,     /* its tree is being ended */
	ATTEMPT_HELD,       /* that could not be proved: to be tried again */
	ATTEMPT_DRAINING,   /* no process but its mcpd */
	ATTEMPT_STATE_COUNT
};

enum attempt_event {
	/* Asked by the dispatcher: a blank cell refuses it. */
	ATTEMPT_SPAWN_MCPD,
	ATTEMPT_SPAWN_WORKER,
	ATTEMPT_END_TREE,
	/* Happened: a blank cell changes nothing. */
	ATTEMPT_MCPD_READY,
	ATTEMPT_MCPD_GONE,
	ATTEMPT_RUNS,        /* the worker's program was started */
	ATTEMPT_NOT_STARTED, /* it could not be, and the child has ended */
	ATTEMPT_LEADER_ENDED,
	ATTEMPT_TREE_GONE,
	ATTEMPT_TREE_DOUBTED,
	ATTEMPT_ORPHANED, /* the dispatcher that asked for it is dead */
	ATTEMPT_SETTLED,  /* a person says that nothing of it runs */
	ATTEMPT_STOPPED,  /* the run ends, and no dispatcher is to come */
	ATTEMPT_EVENT_COUNT
};

/* A request that was not answered yet. */
struct asked {
	bool is_open;
	struct reply_to to;
};

struct attempt {
	LIST_ENTRY(attempt) entry;
	struct supervisor *sv;
	char id[ATTEMPT_ID_LEN + 1];
	enum attempt_state state;
	struct session *session;
	struct listener *listener;

	/* What the event at hand brought: its request and that one's fields. */
	struct reply_to to;
	struct msg *m;

	struct child *mcpd; /* NULL: none lives */
	bool mcpd_ready, mcpd_draining;
	int next_token;          /* of the mcpd after the present one; or -1 */
	struct asked mcpd_asked; /* SPAWN_MCPD */
	struct asked worker_asked; /* SPAWN_WORKER */
	struct asked end_asked;    /* END_TREE */

	struct spawned worker; /* its descriptors until they are handed over */
	char session_id[SESSION_ID_LEN + 1];
	struct event *verdict; /* on worker.status; NULL: none is awaited */
	char failure[SPAWN_TEXT_MAX]; /* why its program did not start */
	char *cgroup;                 /* NULL: none */
	struct tree *tree; /* NULL: no worker, or reaped with its group */
	bool was_signaled; /* that tree, while it was ended */
	bool is_settled;   /* a person said that nothing of it runs */
	bool leader_ended;
	siginfo_t leader_end;
	enum fate fate; /* once it is over */
};

/* ---- attempts.c --------------------------------------------------------- */

/* What there is once in a process, beside struct supervisor. */
struct attempts {
	struct sessions *sessions;
	struct past past;
	LIST_HEAD(, recovery) recoveries;
	struct redactor *redactor;
	int64_t redactor_generation;
};
extern struct attempts attempts;

struct attempt *attempt_find(const struct supervisor *sv, const char *id);

/* ---- attempt.c ---------------------------------------------------------- */

/* Look its state and the event up in the table and do what stands there. */
void attempt_happens(struct attempt *a, enum attempt_event event);
/* Remember that the request at hand is unanswered; an older one is given up. */
void asked_keep(struct asked *asked, const struct reply_to *to);
/* Answer it with FAILED, if it is open. */
void asked_fail(struct asked *asked, const char *reason, const char *text);
int64_t attempt_limit(const struct attempt *a, enum limit limit);

/* ---- attempt_mcpd.c ----------------------------------------------------- */

/* The token of the request at hand: start an mcpd, after the present one. */
void mcpd_begin(struct attempt *a);
void mcpd_is_ready(struct attempt *a);
/* It is reaped. */
void mcpd_clear(struct attempt *a);
/* After that: start the next, or tell who has to know. */
void mcpd_is_gone(struct attempt *a);
/* Let it finish, at a stop in a part of that; false when there is none. */
bool mcpd_drain(struct attempt *a);
/* No next one: close its token and give its request up. */
void mcpd_forget_next(struct attempt *a);
/* listener_pass of an attempt: CONNECTED to its mcpd. */
bool mcpd_connect(int stream, void *attempt);

/* ---- attempt_worker.c --------------------------------------------------- */

/* The request at hand: prepare and fork. */
void worker_begin(struct attempt *a);
/* Answer that it runs, with its identity and descriptors. */
void worker_runs(struct attempt *a);
/* WORKER_EXITED to the dispatcher. */
void worker_tell_end(const struct attempt *a);
/* The leader's end was seen while its start was not yet decided. */
enum attempt_event worker_start_verdict(struct attempt *a);
/* Reap the leader; its tree is gone. */
void worker_reap(struct attempt *a);
/* Close what of the start is still open. */
void worker_close(struct attempt *a);
/* Every value that this configuration lets a worker know, for redaction. */
void worker_learn_secrets(struct supervisor *sv);

/* ---- recovery.c --------------------------------------------------------- */

/*
 * END_TREE of an attempt that this run has not started: ask the ledger who it
 * was, prove it gone or end it, and answer TO (design 5.1, dispatch.md 9). The
 * id is closed from now on.
 */
void recovery_begin(struct supervisor *sv, const char *id,
    const struct reply_to *to, int64_t grace_ms);
/*
 * Of the attempts of earlier runs whose processes are being ended: no more
 * grace; SIGKILL, now; how many there are.
 */
void recoveries_end(void);
void recoveries_kill(void);
size_t recoveries_count(void);

#endif
