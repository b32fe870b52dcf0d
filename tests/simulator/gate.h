/* Gates hold requests until they are opened (feed.md 8.6). */
#ifndef SIMULATOR_GATE_H
#define SIMULATOR_GATE_H

#include "tests/simulator/exchange.h"

/* Is a gate on X's way? All that match have to be opened. */
bool gate_holds(const struct exchange *x);
json_t *gate_list(void);

#endif
