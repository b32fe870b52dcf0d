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

/* Guards that were pending: what becomes held takes them back. */
struct guards {
	int64_t *ids;
	size_t count;
};

/* Of the records that were ever on the task. 0 or -1, G is set after both. */
int guards_of_task(struct ledger *l, int64_t task_id, struct guards *g);
/*
 * After RC of 0, a line for each that is pending no more. G is freed in any
 * case. Returns RC, or -1.
 */
int guards_tell(struct ledger *l, struct answer *a, struct guards *g, int rc);

#endif
