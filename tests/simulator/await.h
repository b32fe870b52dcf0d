/* GET /sim/await: answered when a count is reached, never by a timer alone. */
#ifndef SIMULATOR_AWAIT_H
#define SIMULATOR_AWAIT_H

#include "tests/simulator/exchange.h"

void await_init(void);
/*
 * A request has arrived, has been answered or has gone: whatever can be
 * awaited changes with one of these. Looks at the loop's next turn.
 */
void await_changed(void);

#endif
