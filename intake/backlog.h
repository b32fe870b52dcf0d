/*
 * How many records wait for a decision, as the ledger counts them, and when
 * that stops the reading (design L11). It is the whole of the back-pressure:
 * no event is taken from Basecamp that would stand beyond the pause depth.
 */
#ifndef INTAKE_BACKLOG_H
#define INTAKE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

struct backlog {
	int64_t depth;     /* as last told */
	int64_t in_flight; /* records sent and not yet answered */
	int64_t pause_depth, resume_depth;
	bool is_paused;
	bool is_warned;
	void (*resumed)(void *arg); /* it was paused and is no more */
	void *arg;
};

/* May one more record be sent? */
bool backlog_has_room(const struct backlog *b);
/*
 * Called when there is no room and nothing in flight that could tell of some:
 * reading is paused until depth is down to the resume depth.
 */
void backlog_pause(struct backlog *b);
/* The ledger named a depth. */
void backlog_told(struct backlog *b, int64_t depth);

#endif
