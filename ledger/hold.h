/*
 * Holds (ledger.md 3.6): while a marker stands the database refuses what would
 * start or post anything, and every record that was there before it needs a
 * person, also after the release.
 */
#ifndef LEDGER_HOLD_H
#define LEDGER_HOLD_H

#include "ledger/ledger.h"

/*
 * Open a generation, set the marker or move its generation, tag the records,
 * record the decision, whose id is left in DECISION_ID. CAUSE is hold or
 * shadow_promote. Returns 0, also with A refused; -1.
 */
int hold_set(struct ledger *l, struct answer *a, const char *nonce,
    const char *by, const char *cause, int64_t *decision_id);

/*
 * Take the marker away and let everybody look again; held records stay held.
 * DECISION_ID is 0, and nothing is written, when none stood. 0 or -1.
 */
int hold_release(struct ledger *l, struct answer *a, const char *nonce,
    const char *by, int64_t *decision_id);

/*
 * Every record that is not over needs a person from here on: review is set
 * and authorizations are taken back, so that what would wait is held; no
 * redispatch waits any more. Returns 0, also with A refused; -1.
 */
int records_tag(struct ledger *l, struct answer *a);

#endif
