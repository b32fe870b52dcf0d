/*
 * What asks somebody something, is posted, and is answered by a decision
 * (operator.md 1.7, 2.6).
 */
#ifndef TESTS_RETRACTION_SCENE_H
#define TESTS_RETRACTION_SCENE_H

#include "tests/unit/ledger_fixture.h"

/* Guards are of no interest here. */
void no_guards(struct fixture *f);
/* Another one each time. */
const char *next_nonce(void);
/* Claim what is due; its kind, or "". */
const char *claim_one(struct fixture *f);
/* What is being sent has arrived. */
void receive_one(struct fixture *f);
/* Both; it must be of that kind. */
void post_one(struct fixture *f, const char *kind);

/* Event ID launched as ATTEMPT, which is lost: a notice that asks. */
void end_unknown(struct fixture *f, int64_t id, const char *attempt);
/* Event 101 without a route: a holding reply that asks. */
void block_no_route(struct fixture *f);

/* How many retractions are in a state that is LIKE this. */
int64_t retraction_count(struct fixture *f, const char *state);
/* The body of the last. */
const char *retraction_body(struct fixture *f);
bool outbox_was_told(struct fixture *f);

#endif
