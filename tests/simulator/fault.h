/*
 * Faults: what answers in a handler's place, or takes its answer away
 * (feed.md 8.6, inject). The newest that matches is the one.
 */
#ifndef SIMULATOR_FAULT_H
#define SIMULATOR_FAULT_H

#include "tests/simulator/exchange.h"

/* Sets X's effect from the newest matching fault, and counts the hit. */
void fault_take(struct exchange *x);
/* Hits of fault ID, or of all when ID is 0. */
int64_t fault_count_hits(int64_t id);
json_t *fault_list(void);

#endif
