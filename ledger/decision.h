/*
 * A person's decisions (ledger.md 3.6, operator.md 3.3 and 3.4). Each is a row
 * that names who, and is written before what it decides.
 */
#ifndef LEDGER_DECISION_H
#define LEDGER_DECISION_H

#include "ledger/ledger.h"

/*
 * The decision that has NONCE already, in ID; 0 for none. A is refused when
 * that was another ACTION, or of another event (0: of the whole ledger).
 * Returns 0 or -1.
 */
int decision_by_nonce(struct ledger *l, struct answer *a, const char *nonce,
    const char *action, int64_t event_id, int64_t *id);

#endif
