/*
 * Intents: what is to be posted, written in the transaction of what calls for
 * it (operator.md 1.2-1.5). Their keys make a second writing nothing.
 */
#ifndef LEDGER_INTENT_H
#define LEDGER_INTENT_H

#include "ledger/ledger.h"

struct intent {
	const char *key;
	const char *kind;
	int64_t event_id;            /* 0: of no event */
	int64_t task_id;             /* 0: of no task */
	const char *attempt_id;      /* NULL: of none */
	int64_t occurrence;          /* of still_running; else 0 */
	const char *answers_reason;  /* NULL: not a holding reply */
	const char *argument_sha256; /* NULL: not a worker's */
	int64_t bucket_id;
	const char *message_kind;
	int64_t recording_id;
	const char *body; /* NULL and "": nothing to say */
	size_t body_len;  /* 0: BODY ends with its NUL */
	const char *not_before;
};

/*
 * Write it and let the outbox know. Without a destination or a body, and
 * when its key is there already, nothing is written: success all the same.
 */
int intent_write(struct ledger *l, struct answer *a, const struct intent *i);

/* Is this a kind of message with words: comment or chat_line? */
bool intent_is_text_kind(const char *message_kind);
/* Is this kind of intent a worker's own? */
bool intent_is_worker_kind(const char *kind);

/*
 * Tell the worker's mcpd that what it asked to post has settled. Nothing for
 * the connector's own messages.
 */
int intent_tell_worker(struct ledger *l, struct answer *a, int64_t intent_id);

#endif
