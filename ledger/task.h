/*
 * Tasks (ledger.md 3.2): one conversation's work, bound to one token.
 */
#ifndef LEDGER_TASK_H
#define LEDGER_TASK_H

#include "ledger/ledger.h"

/* att_ and 24 lower-case hex digits. */
bool attempt_id_ok(const char *id);

/*
 * Retire a task's token and rows, and give the records that no worker has
 * seen back (ledger.md 3.2.2). Once is enough; the first stamp stands. Returns
 * 1, 0 when there is no such task, -1.
 */
int task_supersede(struct ledger *l, int64_t task_id);

#endif
