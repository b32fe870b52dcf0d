/*
 * What may begin now (dispatch.md 3): which records, on which routes. The
 * present routes are rows of a temporary table, so that a backlog that cannot
 * start never hides what can.
 */
#ifndef LEDGER_STARTABLE_H
#define LEDGER_STARTABLE_H

#include "ledger/answer.h"
#include "ledger/ledger.h"

/*
 * Take over the routes of l->config; none when it is NULL or not readable.
 * Outside of any transaction. -1 with l->rc.
 */
int startable_configure(struct ledger *l);

/*
 * Why a record of PROJECT_ID that was admitted for the directory ROUTE may not
 * run there as l->config stands: in words of A, which name both; NULL when it
 * may. A connect.json that does not load vouches for nothing. What --project
 * leaves out waits for a run without it, and is no fault.
 */
const char *route_fault(const struct ledger *l, struct answer *a,
    int64_t project_id, const char *route);

#endif
