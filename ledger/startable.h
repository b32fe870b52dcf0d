/*
 * What may begin now (dispatch.md 3): which records, on which routes. The
 * present routes are rows of a temporary table, so that a backlog that cannot
 * start never hides what can.
 */
#ifndef LEDGER_STARTABLE_H
#define LEDGER_STARTABLE_H

#include "ledger/ledger.h"

/*
 * Take over the routes of l->config; none when it is NULL or not readable.
 * Outside of any transaction. -1 with l->rc.
 */
int startable_configure(struct ledger *l);

#endif
