/*
 * A child of the supervisor: one role's process across its lives. What may
 * happen to it, and what then is done, is the table in child.c; how it comes
 * to be is child_spawn.c, what it says is child_hear.c.
 */
#ifndef SUPERVISOR_CHILD_H
#define SUPERVISOR_CHILD_H

#include "common/role.h"
#include "supervisor/supervisor.h"

enum child_state {
	CHILD_DOWN,     /* no process, and none is wanted */
	CHILD_STARTING, /* a process that has not said READY */
	CHILD_READY,
	CHILD_STOPPING, /* told to finish; killed when its bound is over */
	CHILD_KILLED,   /* signalled to death; its end is awaited */
	CHILD_BACKOFF,  /* dead; started when the pause is over */
	CHILD_PARKED,   /* dead by its configuration; waits for a person */
	CHILD_STATE_COUNT
};

enum child_event {
	CHILD_START, /* it is wanted */
	CHILD_SAID_READY,
	CHILD_UNFIT,    /* READY of another build, or without its walls */
	CHILD_DEATH,    /* reaped, and its link read to the end */
	CHILD_TIMEOUT,  /* what the state waits for did not happen in time */
	CHILD_WRONG,    /* it broke the protocol, or was accused of it */
	CHILD_SILENT,   /* the watchdog: no answer */
	CHILD_UNLINKED, /* it closed its link; its end should follow */
	CHILD_STOP,     /* not wanted any more */
	CHILD_RESTART,  /* an operator's wish */
	CHILD_RELOAD,   /* the configuration is another one */
	CHILD_EVENT_COUNT
};

/* Deaths in a row before status calls it failing rather than restarting. */
#define CHILD_FAILING_FROM 5
#define CHILD_VALUES_MAX 32
#define CHILD_HAND_MAX 64
#define CHILD_WORDS_MAX ERROR_TEXT_MAX

struct child_value {
	char *name, *text;
};

struct child {
	TAILQ_ENTRY(child) entry; /* mcpds only */
	struct supervisor *sv;
	enum role_id role;
	char attempt[29]; /* mcpd's; else "" */
	char name[64];    /* "connectd-outbox", "connectd-mcpd att_…" */
	enum child_state state;
	bool wanted;    /* it is started again after a death */
	bool asked;     /* the coming death was asked for: no pause after it */
	bool was_ready; /* in this life */
	pid_t pid;      /* 0: none, or reaped */
	bool link_ended;
	siginfo_t end;                   /* of its last life */
	char death_id[DEATH_ID_LEN + 1]; /* of a death of its own, else "" */
	int64_t generation;
	struct peer *peer;
	struct event *timer; /* of the state, see the table */
	struct event *death; /* made active when both halves are known */
	int token;           /* mcpd's descriptor until it is spawned; -1 */
	int64_t stop_bound_ms;
	const char *killed_for; /* what we killed it for; NULL: we did not */
	int64_t since_ms;       /* of the state, monotonic */
	int64_t ready_ms;       /* of the last READY */

	/* Counted over all lives, but FAILURES: deaths in a row. */
	unsigned failures;
	uint64_t restarts, own_deaths, silences;

	/* hand.c: the records that the present life has in hand. */
	int64_t hand[CHILD_HAND_MAX];
	size_t hand_count;

	/* What the present life said. */
	bool seccomp, no_new_privs, dumpable;
	int64_t landlock_abi;
	char lacks[513];
	struct child_value values[CHILD_VALUES_MAX];
	size_t value_count;
	char last_words[CHILD_WORDS_MAX]; /* its last warning; kept */

	/* watchdog.c: the question it has not answered; 0: none. */
	uint64_t ping;
	int64_t ping_ms, ping_nonce;

	/* child_hear.c: lines of the log in this second. */
	int64_t log_second;
	unsigned log_lines, log_dropped;
};

struct child *child_new(
    struct supervisor *sv, enum role_id role, const char *attempt);
/* Only of one that is down. */
void child_free(struct child *c);
/* Look its state and the event up in the table and do what stands there. */
void child_happens(struct child *c, enum child_event event);
/* The word of status: failing and restarting are both CHILD_BACKOFF. */
const char *child_state_name(const struct child *c);
bool child_is_failing(const struct child *c);
/* A process is there to be linked to; one that is finishing has work yet. */
bool child_is_there(const struct child *c);
/* A long start makes progress: its deadline begins anew. */
void child_more_time(struct child *c);
/* Tell it to finish within the bound; restarted if it is still wanted. */
void child_finish(struct child *c, int64_t bound_ms);
/* The two halves of its end: its link was read to the end, it was reaped. */
void child_link_ended(struct child *c);
void child_process_ended(struct child *c);
/*
 * How long to wait after a death that follows FAILURES in a row; not at all
 * after the first one, if it had been ready. RANDOM spreads it: 0 to
 * UINT32_MAX.
 */
int64_t child_pause_ms(unsigned failures, bool was_ready, uint32_t random);
/* Is that an end of its own making (design 3.1 "Poison")? */
bool child_end_is_own(const siginfo_t *end, const char *killed_for);

/* ---- children.c ---------------------------------------------------------- */

/* The child whose peer that is. */
struct child *child_of_peer(struct supervisor *sv, const struct peer *peer);
/* The mcpd of an attempt, newest first; NULL if there is none. */
struct child *child_of_attempt(struct supervisor *sv, const char *attempt);

/* The one descriptor a role may get besides its link, by number. */
#define CHILD_EXTRA_FD (ROLE_LINK_FD + 1)

/* ---- child_spawn.c ------------------------------------------------------- */

enum spawn_result {
	SPAWN_DONE,
	SPAWN_FAILED,      /* no process came to be; another time it may */
	SPAWN_UNCONFIGURED /* nor will it before a person does something */
};

/* Fork, exec, SETUP, configuration, links. */
enum spawn_result child_spawn(struct child *c, struct error *e);
/* SIGNAL to exactly this process; it is ours until reaped. */
void child_signal(const struct child *c, int signal);
/* The whole newest configuration, to one. */
void child_configure(struct child *c);
/* The credential, read now and wiped then, to the outbox. */
int child_tell_credential(struct child *c, struct error *e);

/* ---- child_hear.c -------------------------------------------------------- */

extern const struct peer_ops child_peer_ops;
/* Forget what the life before said. */
void child_values_clear(struct child *c);

/* ---- hand.c -------------------------------------------------------------- */

/* A record is in its hand, or not any more; -1: no child takes so many. */
int hand_move(struct child *c, int64_t event_id, bool taken);
/*
 * It is dead. If that was its own fault the death gets an id, and is counted
 * in the ledger against each record in its hand, before any successor can be
 * given one of them (design 3.1 "Poison").
 */
void hand_bury(struct child *c, bool is_own);

/* ---- links.c ------------------------------------------------------------- */

/* A new life: a link to each role it talks to that has a process. */
int links_make(struct child *c, struct error *e);
/* May these two talk to each other? The matrix of design 3. */
bool links_has(enum role_id a, enum role_id b);

/* ---- stop.c -------------------------------------------------------------- */

/* A child is down for good: the next stage of the stop may come. */
void stop_child_down(struct supervisor *sv);
/* At once: every child is killed; workers are the next start's to end. */
_Noreturn void stop_now(struct supervisor *sv, int code);

#endif
