/*
 * What the dispatcher knows of an agent's wire (dispatch.md 12). A driver is
 * pure: it makes the bytes that go to the agent and reads, line by line, what
 * the agent says. Pipes, timers and the ledger are the attempt's.
 */
#ifndef DISPATCHER_DRIVER_H
#define DISPATCHER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* What one line of the agent means for the attempt. */
enum driver_event {
	DRIVER_NOTHING,  /* or nothing that anyone acts on */
	DRIVER_PROGRESS, /* the agent works: a tool call, some text */
	DRIVER_VERIFIED, /* the session is what was asked for */
	DRIVER_REFUSAL,  /* a tool call was denied; counted once an id */
	DRIVER_ANSWER,   /* the turn is over; see `stop` */
	DRIVER_UNSAFE    /* not the session asked for; see `text` */
};

enum driver_stop {
	STOP_END_TURN,
	STOP_MAX_TOKENS,
	STOP_MAX_TURNS,
	STOP_REFUSAL,
	STOP_CANCELLED, /* only a cancel of ours */
	STOP_ERROR
};

struct driver_said {
	enum driver_event event;
	enum driver_stop stop;
	size_t refusals; /* new ones on this line, ANSWER included */
	char text[160];  /* UNSAFE, STOP_ERROR: why, in our own words */
};

struct driver_session;

struct driver {
	const char *name; /* as in connect.json */
	bool takes_follow_ups;
	/* A session as the supervisor declared it. SERVERS: "a,b". */
	struct driver_session *(*open)(
	    const char *session_id, const char *servers);
	void (*close)(struct driver_session *session);
	/* One prompt; malloc'ed, the caller's. */
	char *(*prompt)(
	    struct driver_session *session, const char *text, size_t *len);
	/* Stop the turn in flight; malloc'ed, or NULL: only ending helps. */
	char *(*interrupt)(struct driver_session *session, size_t *len);
	/* One line without its newline. */
	void (*line)(struct driver_session *session, const char *bytes,
	    size_t len, struct driver_said *said);
	/* Was the session verified before its output ended? */
	bool (*is_verified)(const struct driver_session *session);
};

extern const struct driver claude_driver;
/* The driver of that name, or NULL. */
const struct driver *driver_by_name(const char *name);

#endif
