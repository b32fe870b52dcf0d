/*
 * The outbox: posts to Basecamp, lists what was posted, mints and renews the
 * access token (design 2, L8; operator.md 1; feed.md 6.4).
 *
 *	outbox.c	main, the role's row, the handler tables
 *	work.c		what is done next: the start, a turn, the last flush
 *	send.c		one claimed intent: at most one request, its receipt
 *	reconcile.c	an intent in doubt: list, compare, adopt or doubt
 *	replies.c	what an agent posted that did not say so
 *	listing.c	all pages of a destination's messages by the agent
 *	message.c	addresses and bodies of the three kinds of message
 *	token.c		the access token: mint, renewal, holds
 *	secret.c	whether a body says a secret
 */
#ifndef OUTBOX_OUTBOX_H
#define OUTBOX_OUTBOX_H

#include "common/http.h"
#include "common/role.h"

/* A Retry-After beyond this is not believed, whoever says it. */
#define HOLD_MOST_S 1800
/* Until the next try when nobody named a time. */
#define TOKEN_PAUSE_MS 1000
#define LEDGER_PAUSE_MS 1000

struct token;

enum work {
	WORK_START_LISTING, /* what an earlier run left in doubt */
	WORK_START_SENDING, /* what is due, until the first doubt */
	WORK_SENDING,
	WORK_LISTING,
	WORK_IDLE,
	WORK_COUNT
};

struct outbox {
	struct role role;
	struct http *http;
	struct token *token;
	enum work work;
	bool busy;    /* a step is under way */
	bool poked;   /* something came up meanwhile */
	bool bounded; /* the start is, since the first configuration */
	bool started; /* STARTED was said, with `settled` */
	bool settled;
	bool stopping;
	int64_t stop_at; /* monotonic ms; a stop's bound */
	int64_t posting; /* the intent that is claimed and being posted, or 0 */
	int sent;        /* in this turn */
	int64_t send_at; /* monotonic ms; nothing is claimed before */
	int64_t listed;  /* the intent looked at last in this pass */
	struct event *wake;
};

struct peer *outbox_ledger(struct outbox *o);
int64_t outbox_limit(const struct outbox *o, enum limit limit);

/* ---- work.c ---------------------------------------------------------------
 */

void work_init(struct outbox *o);
/* From the first configuration on there is work; its limits bound the start. */
void work_configured(struct outbox *o);
/* Something may be due now. */
void work_poke(struct outbox *o);
/* A step did something. */
void work_step_done(struct outbox *o);
/*
 * A request may or may not have landed. The next is left to a later turn, in
 * RETRY_AFTER seconds if Basecamp named so many.
 */
void work_step_uncertain(struct outbox *o, int64_t retry_after);
/* Nothing is due now; wake in so many ms, or at the next poke if absent. */
void work_step_none(struct outbox *o, struct opt in_ms);
/* Something may be due and cannot be done now; try again in MS. */
void work_step_wait(struct outbox *o, int64_t ms);
/* Ms until something may be claimed again; 0: now. */
int64_t work_send_in(const struct outbox *o);
/*
 * Would what is claimed in so many ms have time to be answered before a stop
 * ends (operator.md 1.6)?
 */
bool work_has_time(const struct outbox *o, int64_t in_ms);
/* Orderly stop: send until nothing is due, at most BOUND_MS. */
void work_stop(struct outbox *o, int64_t bound_ms);
/* Ends the process while something is due that cannot be sent any more. */
_Noreturn void work_stop_short(struct outbox *o);

/* ---- send.c, reconcile.c ---------------------------------------------------
 */

/* One step each; ends in one of work_step_*(). */
void send_one(struct outbox *o);
void reconcile_one(struct outbox *o, int64_t after);

/* ---- replies.c -------------------------------------------------------------
 */

/* peer_handler of LIST_REPLIES. */
void on_list_replies(struct peer *peer, struct msg *m, void *arg);

/* ---- token.c ----------------------------------------------------------------
 */

enum token_answer {
	TOKEN_GOOD,
	TOKEN_THROTTLED, /* not before wait_ms */
	TOKEN_TRANSIENT,
	TOKEN_REFUSED /* the credential is; wait_ms 0: for good */
};

/* BEARER is borrowed for the call. */
typedef void (*token_done)(enum token_answer answer, const char *bearer,
    int64_t serial, int64_t wait_ms, void *arg);

struct token *token_new(struct outbox *o);
/* A new credential: what an earlier one was refused does not count for it. */
void token_credential(struct token *t, const struct msg_credential *c);
/*
 * The present access token, minted if need be. REFUSED_SERIAL is that of a
 * token that Basecamp answered 401 to, 0 for none: that one is not the answer.
 */
void token_get(
    struct token *t, int64_t refused_serial, token_done done, void *arg);
/* Ms until it should be renewed. */
int64_t token_renew_in(const struct token *t);
/* Does TEXT hold the token or the client's secret, in any form of a body? */
bool token_is_in(const struct token *t, const char *text, size_t len);

#endif
