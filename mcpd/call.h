/*
 * A call of a tool from its line to its answer. It is answered exactly once:
 * by its action, by its deadline, or not at all when it was cancelled or its
 * stream went away. A request that it has put to a peer outlives it.
 */
#ifndef MCPD_CALL_H
#define MCPD_CALL_H

#include "common/json.h"
#include "mcpd/origin.h"
#include "mcpd/server.h"

#define CALLS_IN_FLIGHT_MAX 64 /* a stream's (mcp.md 7) */
#define CALLS_MAX 256          /* with those that nobody waits for */

struct call {
	TAILQ_ENTRY(call) entry;
	struct server *server;
	struct stream *stream; /* NULL: nobody waits for the answer */
	struct batch *batch;
	char *id; /* raw token */
	size_t id_len;
	bool is_modern;
	struct event *deadline;
	bool is_reading;  /* one of READS_MOST */
	bool is_asking;   /* a peer owes an answer, or will once it is there: */
	struct msg *kept; /* what is to be asked then; NULL: nothing is */
	/* The peer's answer, and what to say when it comes too late. */
	void (*answered)(struct call *call, struct msg *reply);
	void (*late)(struct call *call);
	void (*then)(struct call *call); /* once the token is known as good */
	void *state; /* the action's own, freed with free() */
};

/* NULL when too many are in flight. */
struct call *call_new(const struct origin *o);

/*
 * Ask the server's ledger or intake, when it is there and has not too much to
 * read already. One request at a time; M has no descriptors.
 */
void call_ask(struct call *call, struct peer *peer, struct msg *m,
    void (*answered)(struct call *call, struct msg *reply));

/*
 * THEN, if the ledger says that the token is current; else the call is refused
 * so. For a call that the ledger would not see otherwise.
 */
void call_check_token(struct call *call, void (*then)(struct call *call));

/*
 * JSON, taken over, as pretty text, its contents cut to the size rule. After
 * this and the next two the call is gone.
 */
void call_answer(struct call *call, json_t *json, bool is_error);
/* The same uncut; refused when its line has no room for it. */
void call_answer_whole(struct call *call, json_t *json);
/* An error of mcpd/refusal's kinds, flagged as one. */
void call_refuse(struct call *call, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * The parameters are wrong; said behind call_check_token(). The call has no
 * state yet.
 */
void call_refuse_params(struct call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* No answer: cancelled, or its stream is gone. */
void call_abandon(struct call *call);

/* Put every kept request to its peer whose turn it is. */
void call_ask_kept(struct server *s);
/* Refuse every call that waits for a peer: there is none. */
void call_refuse_asking(struct server *s);

/* Free every call; no peer may answer one afterwards. */
void call_free_all(struct server *s);

/* Abandon every call of STREAM with that id. */
void call_cancel(struct stream *stream, const struct json_span *id);

#endif
