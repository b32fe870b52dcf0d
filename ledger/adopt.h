/*
 * A reply that stands beside an outcome which nobody reported (design L8,
 * operator.md 2.8). The outcome stays unknown.
 */
#ifndef LEDGER_ADOPT_H
#define LEDGER_ADOPT_H

#include "ledger/ledger.h"

/*
 * For a settled event: adopt the reply that the ledger itself posted for its
 * worker behind the acknowledgement, if that is exactly one and no other may
 * still appear. Nothing to adopt is success. -1.
 */
int adopt_own(struct ledger *l, int64_t task_id, int64_t event_id);
/*
 * The same, when that message has been settled. Where it never was,
 * ADOPTABLE_NEXT passes its event over and ADOPT is refused: what a listing
 * shows may be it. Such an event is listed at its attempt's end or not at all.
 */
int adopt_posted(struct ledger *l, int64_t intent_id);

#endif
