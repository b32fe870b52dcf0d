/*
 * The orderly stop, bounded by limits.stop_bound. One role after the other:
 * the dispatcher first, for it cancels turns, has trees ended and settles;
 * then mcpds that are left; the outbox, which still sends what that led to;
 * intake; the ledger last.
 */
#ifndef SUPERVISOR_STOP_H
#define SUPERVISOR_STOP_H

#include "supervisor/supervisor.h"

/* Begin. When all is down, or the bound over, the loop is left. */
void stop_begin(struct supervisor *sv);
void stop_end(struct supervisor *sv);

#endif
