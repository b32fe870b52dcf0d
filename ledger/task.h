/*
 * Tasks (ledger.md 3.2): one conversation's work, bound to one token.
 */
#ifndef LEDGER_TASK_H
#define LEDGER_TASK_H

#include "ledger/ledger.h"

/* att_ and 24 lower-case hex digits. */
bool attempt_id_ok(const char *id);
/*
 * The attempt that a request names: STMT_ATTEMPT_TASK stands on its row.
 * Returns 1, 0 with A failed when there is none, -1.
 */
int attempt_named(struct ledger *l, struct answer *a, const char *attempt);

/* Put a waiting record on a live task. 0, also with A failed, or -1. */
int task_add(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id);

/*
 * Put what waits in the task's conversation, on its route, on the task too;
 * oldest first, and none around an older one that has to wait. A task that
 * was superseded takes none, nor does any under a hold. COUNT is how many.
 * Returns 0, also with A failed, or -1.
 */
int task_join(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t *count);

/*
 * Retire a task's token and rows, and give the records that no worker has
 * seen back (ledger.md 3.2.2). Once is enough; the first stamp stands. Returns
 * 1, 0 when there is no such task, -1.
 */
int task_supersede(struct ledger *l, int64_t task_id);

#endif
