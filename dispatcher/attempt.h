/*
 * One attempt, from LAUNCH to its settlement: the state table (attempt.c), its
 * timers (timers.c) and the talk with its agent (session.c); and all that there
 * are (attempts.c).
 */
#ifndef DISPATCHER_ATTEMPT_H
#define DISPATCHER_ATTEMPT_H

#include "dispatcher/dispatcher.h"
#include "dispatcher/driver.h"
#include "dispatcher/stream.h"

#define ATTEMPT_ID_LEN 28
/* A task whose mcpd dies so often is left without one. */
#define ATTEMPT_KEYINGS_MOST 16

enum attempt_state {
	AT_LAUNCHING, /* LAUNCH asked: task, rows, exposure, token */
	AT_KEYING,    /* SPAWN_MCPD asked with the token */
	AT_SPAWNING,  /* SPAWN_WORKER asked */
	AT_MARKING,   /* RUNNING asked; nothing was said to the worker yet */
	AT_TURN,      /* a prompt is out */
	AT_JOINING,   /* JOIN asked: is there more in its conversation? */
	AT_EXPOSING,  /* EXPOSE asked: the next prompt will name it */
	AT_CUTTING,   /* the turn was interrupted */
	AT_LEAVING,   /* told to go, or gone: a late answer, an exit code */
	AT_ENDING,    /* END_TREE asked */
	AT_SETTLING,  /* END asked */
	AT_HELD,      /* nobody can prove it gone: counted, never settled */
	AT_STATES
};

enum attempt_event {
	EV_DONE,       /* what this state asked was done */
	EV_REFUSED,    /* it was refused; see refused_reason */
	EV_ANSWER,     /* the turn is over; see answer */
	EV_UNSAFE,     /* the agent is not what was asked for */
	EV_EXIT,       /* the worker's leader ended */
	EV_EOF,        /* its output ended */
	EV_TIMER,      /* this state took too long */
	EV_DEADLINE,   /* the attempt took too long */
	EV_SHUTDOWN,   /* an orderly stop; again: in less time */
	EV_SUPERSEDED, /* an operator took its task away */
	EV_OVER,       /* a person settled it */
	EV_COUNT
};

struct attempt {
	LIST_ENTRY(attempt) entry;
	struct dispatcher *d;
	char id[ATTEMPT_ID_LEN + 1];
	int64_t event_id, task_id, project_id;
	int64_t generation; /* the configuration it was launched by */
	enum attempt_state state;
	struct peer *asked; /* the request this state waits for, or NULL */
	uint64_t request;

	/* Of LAUNCHED, until the prompt is made. */
	char *trigger, *url;
	int token; /* until SPAWN_MCPD; -1 */
	int keyings;

	/* The worker, as WORKER_SPAWNED described it. */
	int64_t pid, pgid, started_ticks;
	char session_id[129];

	/* The talk with it. */
	const struct driver *driver;
	struct driver_session *session;
	struct stream_reader *output;
	struct stream_tail *errors;
	struct stream_writer *input;
	int pidfd;
	bool has_exited, output_ended;
	bool exit_signaled;
	int exit_code;
	bool rekeying;

	/* What joins its conversation. */
	int64_t unexposed; /* of JOINED: the oldest to be told; 0: none */
	int64_t follow_up; /* what the present prompt names; 0: event_id */
	bool is_ours;      /* of EXPOSED: by us, not by the worker's own get */
	bool joining;      /* a JOIN beside the state is under way */
	bool join_again;   /* something came meanwhile */
	int64_t still_running;
	bool is_listed;      /* as live, by the look that is under way */
	bool has_unknown;    /* of ENDED: nobody reported some of its events */
	int64_t progress_at; /* monotonic ms of the last PROGRESS */
	/* All; in the ledger; in the ledger once it has answered. */
	int64_t refusals, refusals_noted, refusals_told;

	/* How it ends. */
	const char *stop;        /* "" until decided */
	enum driver_stop answer; /* of EV_ANSWER */
	bool spawn_failed, no_retry, uncharged;
	char refused_reason[41], refused_text[257];
	struct event *timer, *deadline, *ticker, *key_timer;
	int64_t waits_until; /* of the timer, monotonic ms; 0: it waits not */
};

/* A fresh attempt for EVENT_ID; LAUNCH goes out. */
void attempt_start(struct dispatcher *d, int64_t event_id);
/* One that an earlier dispatcher left: end its tree, settle as lost. */
void attempt_recover(struct dispatcher *d, const struct msg_live *live);
void attempt_event(struct attempt *a, enum attempt_event event);
/* Hand the token at hand to a new mcpd (AT_KEYING). */
void attempt_key(struct attempt *a);
void attempt_worker_exited(
    struct attempt *a, const struct msg_worker_exited *said);

/* ---- attempts.c --------------------------------------------------------- */

/* ID is copied. In the dispatcher's list until it is freed. */
struct attempt *attempt_new(struct dispatcher *d, const char *id);
/* Closes what it holds; who must know that it is over is told by others. */
void attempt_free(struct attempt *a);
struct attempt *attempt_find(struct dispatcher *d, const char *id);
/* Those that take a worker's place: all that are not settled. */
int64_t attempts_count(const struct dispatcher *d);
int64_t attempts_held(const struct dispatcher *d);
/* New work came: what belongs to a running task's conversation joins it. */
void attempts_join(struct dispatcher *d);
void attempts_shutdown(struct dispatcher *d);
/* What was not told of may be told of now (limits.still_running). */
void attempts_configured(struct dispatcher *d);

/* ---- timers.c ----------------------------------------------------------- */

/* EV_TIMER in MS milliseconds instead of whenever it was to come; 0: never. */
void attempt_wait(struct attempt *a, int64_t ms);
/* EV_TIMER in MS milliseconds, if it was to come later than that. */
void attempt_hurry(struct attempt *a, int64_t ms);
/* EV_DEADLINE: from the launch on, start-up included (dispatch.md 6). */
void attempt_deadline_begin(struct attempt *a);
/* From the first prompt on; a further one does not begin it anew. */
void attempt_ticker_begin(struct attempt *a);
/*
 * attempt_key_now() after a pause, longer with every try and a second at most:
 * a fault that lasts for a moment is not to use up all of them.
 */
void attempt_key_later(struct attempt *a);
void attempt_timers_free(struct attempt *a);

/* ---- ask.c -------------------------------------------------------------- */

/* A state's one question; its answer comes as EV_DONE or EV_REFUSED. */
void attempt_ask(struct attempt *a, struct peer *peer, struct msg *m);
/*
 * For questions beside the state: the attempt may be settled before their
 * answer comes, so it is found again by its id. _take frees the reference and
 * returns the attempt, or NULL when it is no more.
 */
struct attempt_ref {
	struct dispatcher *d;
	char id[ATTEMPT_ID_LEN + 1];
};
struct attempt_ref *attempt_ref_new(const struct attempt *a);
struct attempt *attempt_ref_take(struct attempt_ref *r);

/* A live worker's mcpd is gone: a new token and another mcpd, beside it all. */
void attempt_mcpd_lost(struct attempt *a);
/* A new token, then SPAWN_MCPD again; nothing once it is ending. */
void attempt_key_now(struct attempt *a);
/* The ledger writes down what a worker was refused, and that it works. */
void attempt_note_refusals(struct attempt *a, size_t count);
void attempt_note_progress(struct attempt *a);
/* Once more the turn has gone on for limits.still_running. */
void attempt_note_still_running(struct attempt *a);
/* Publish that nobody can prove its tree gone; then decisions_look(). */
void attempt_note_held(struct attempt *a);
/* The agent has read its MCP declaration. */
void attempt_drop_declaration(struct attempt *a);

/* ---- follow.c ----------------------------------------------------------- */

/* The state's question: what waits in its conversation. */
void attempt_join(struct attempt *a);
/* The state's question: may the next prompt name what JOINED found? */
void attempt_expose(struct attempt *a);
/* Beside the state: what came to its conversation joins its task at once. */
void attempt_join_beside(struct attempt *a);
/*
 * What persons decided while nobody could be told: attempts whose task was
 * taken away are ended, and held ones that were settled are let go.
 */
void decisions_look(struct dispatcher *d);

/* ---- adopt.c ------------------------------------------------------------ */

/* A settled attempt left events unknown: look for what its worker posted. */
void adopt_begin(struct dispatcher *d, const char *attempt);

/* ---- session.c ---------------------------------------------------------- */

/* Take over the pipes of WORKER_SPAWNED. */
void session_open(struct attempt *a, struct msg_worker_spawned *spawned);
void session_prompt(struct attempt *a);
void session_interrupt(struct attempt *a);
/* No more input: the worker may go. */
void session_leave(struct attempt *a);
/* Close the pipes; says why it ended when it did not end well. */
void session_close(struct attempt *a);

#endif
