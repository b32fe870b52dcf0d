/*
 * A claimed intent, shared by what settles it (operator.md 1.6, 1.8).
 */
#ifndef LEDGER_OUTBOX_H
#define LEDGER_OUTBOX_H

#include "ledger/ledger.h"

struct claimed_intent {
	int64_t id;
	bool is_sending;
	int64_t receipt_id; /* 0: none yet */
	const char *message_kind;
	int64_t recording_id;
	struct blob body;
};

/* Read it, if NONCE is its present claim's. 1; 0 with A refused; -1. */
int outbox_claimed(struct ledger *l, struct answer *a, int64_t intent_id,
    const char *nonce, struct claimed_intent *i);

/*
 * Answer SETTLED with the state that stands. CHANGES is what the write
 * returned: 1 tells (a line, and the worker whose message it was), 0 is a
 * repeat, -1 is passed on.
 */
int outbox_settled(
    struct ledger *l, struct answer *a, int64_t intent_id, int changes);

/*
 * It is there, as message RECEIPT_ID; then outbox_settled(). A receipt that
 * another intent of its kind has is refused by the table.
 */
int outbox_receive(struct ledger *l, struct answer *a,
    const struct claimed_intent *i, int64_t receipt_id, const char *note);

#endif
