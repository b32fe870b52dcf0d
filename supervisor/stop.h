/*
 * The orderly stop, bounded by limits.stop_bound. One role after the other:
 * the dispatcher first, for it cancels turns, has trees ended and settles, or
 * else a successor does; then what none of them could end, so that no worker
 * outlives the stop; the outbox, which still sends what all that led to;
 * intake; the ledger last.
 */
#ifndef SUPERVISOR_STOP_H
#define SUPERVISOR_STOP_H

#include "supervisor/supervisor.h"

/* Begin. When all is down, or the bound over, the loop is left. */
void stop_begin(struct supervisor *sv);

#endif
