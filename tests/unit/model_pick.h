/*
 * Dice, and what they pick from a model: mostly what fits, now and then what
 * does not.
 */
#ifndef TESTS_MODEL_PICK_H
#define TESTS_MODEL_PICK_H

#include "tests/unit/model.h"

#define EVENT_FIRST 101
#define EVENT_COUNT 7
#define NO_TOKEN "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define NO_ATTEMPT "att_ffffffffffffffffffffffff"
#define NO_WORDS                           \
	"ffffffffffffffffffffffffffffffff" \
	"ffffffffffffffffffffffffffffffff"

/* The next number of a series; never 0. */
uint64_t dice_throw(uint64_t *dice);
/* From 0 to SIDES - 1. */
int dice_side(uint64_t *dice, int sides);
/* Once in N. */
bool dice_once(uint64_t *dice, int n);

#define ONE_OF(dice, list) \
	((list)[dice_side(dice, (int)(sizeof(list) / sizeof((list)[0])))])

/* An event of the model in one of STATES; now and then any at all. */
int64_t some_event(struct model *w, uint64_t *dice, const char *states);
/* NULL when there is none. */
const struct model_attempt *some_attempt(
    struct model *w, uint64_t *dice, const char *states);
const char *some_attempt_id(
    struct model *w, uint64_t *dice, const char *states);
/* NULL when there is none. */
const struct model_intent *some_intent(
    struct model *w, uint64_t *dice, const char *states);
/* A row that a worker holds, at one of DELIVERIES and pulled; or NULL. */
const struct model_row *some_pulled(
    struct model *w, uint64_t *dice, const char *deliveries);
/* The N-th nonce; one not used yet, or now and then one that was. */
const char *nonce_of(int64_t n);
const char *some_nonce(int64_t used, uint64_t *dice);
/* An id of Basecamp's: they are few, to collide. */
int64_t some_message(uint64_t *dice);
struct opt maybe_message(uint64_t *dice);
/* The present generation of routes; now and then another. */
int64_t some_generation(struct model *w, uint64_t *dice);
/* Three conversations, two of them in one directory. */
int64_t project_of(int64_t event);
const char *key_of(int64_t event);

#endif
