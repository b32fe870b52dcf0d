#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_pick.h"

#define MESSAGE_FIRST 9001
#define MESSAGE_COUNT 10

uint64_t
dice_throw(uint64_t *dice)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return *dice * UINT64_C(2685821657736338717) >> 11;
}

int
dice_side(uint64_t *dice, int sides)
{
	return (int)(dice_throw(dice) % (uint64_t)sides);
}

bool
dice_once(uint64_t *dice, int n)
{
	return dice_side(dice, n) == 0;
}

int64_t
some_event(struct model *w, uint64_t *dice, const char *states)
{
	int start = dice_side(dice, MODEL_EVENTS);

	if (dice_once(dice, 40))
		return 999;
	for (int i = 0; i < w->event_count && !dice_once(dice, 12); i++) {
		const struct model_event *e =
		    &w->events[(start + i) % w->event_count];

		if (is_in(e->state, states))
			return e->id;
	}
	return EVENT_FIRST + dice_side(dice, EVENT_COUNT);
}

const struct model_attempt *
some_attempt(struct model *w, uint64_t *dice, const char *states)
{
	int start = dice_side(dice, MODEL_TASKS);

	for (int i = 0; i < w->task_count && !dice_once(dice, 20); i++) {
		int n = (start + i) % w->task_count;

		if (is_in(w->attempts[n].state, states))
			return &w->attempts[n];
	}
	return w->task_count > 0 ? &w->attempts[start % w->task_count] : NULL;
}

const char *
some_attempt_id(struct model *w, uint64_t *dice, const char *states)
{
	const struct model_attempt *at = some_attempt(w, dice, states);

	return at == NULL || dice_once(dice, 40) ? NO_ATTEMPT : at->id;
}

const struct model_intent *
some_intent(struct model *w, uint64_t *dice, const char *states)
{
	int start = dice_side(dice, MODEL_INTENTS);

	for (int i = 0; i < w->intent_count && !dice_once(dice, 20); i++) {
		int n = (start + i) % w->intent_count;

		if (is_in(w->intents[n].state, states))
			return &w->intents[n];
	}
	return w->intent_count > 0 ? &w->intents[start % w->intent_count]
				   : NULL;
}

const char *
nonce_of(int64_t n)
{
	return model_text("%032llx", (long long)n);
}

const char *
some_nonce(int64_t used, uint64_t *dice)
{
	return nonce_of(
	    dice_once(dice, 8) ? 1 + dice_side(dice, (int)used + 1) : used + 1);
}

int64_t
some_message(uint64_t *dice)
{
	return MESSAGE_FIRST + dice_side(dice, MESSAGE_COUNT);
}

struct opt
maybe_message(uint64_t *dice)
{
	return dice_once(dice, 2) ? (struct opt){true, some_message(dice)}
				  : (struct opt){0};
}

/* Which conversation: one has most of the events. */
static int
place_of(int64_t event)
{
	static const int places[EVENT_COUNT] = {0, 0, 1, 0, 2, 0, 1};

	return places[(event - EVENT_FIRST) % EVENT_COUNT];
}

int64_t
project_of(int64_t event)
{
	return place_of(event) == 0 ? OTHER_PROJECT : PROJECT;
}

const char *
key_of(int64_t event)
{
	static const char *const keys[] = {
	    "recording:1", "recording:2", "recording:3"};

	return keys[place_of(event)];
}
const struct model_row *
some_pulled(struct model *w, uint64_t *dice, const char *deliveries)
{
	int start = dice_side(dice, MODEL_ROWS);

	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *r =
		    &w->rows[(start + i) % w->row_count];

		if (r->retired_at == NULL && r->pulled_at != NULL &&
		    is_in(r->delivery, deliveries))
			return r;
	}
	return NULL;
}

int64_t
some_generation(struct model *w, uint64_t *dice)
{
	return dice_once(dice, 15) ? w->generation + 1 : w->generation;
}
