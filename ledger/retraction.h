/*
 * Retractions (operator.md 2.6): a posted notice asked for a redispatch, and a
 * person has answered since. One for each notice and event, written by the
 * decision and claimed when the notice is known to be there and the record has
 * moved: until then OUTBOX_DUE passes it over.
 */
#ifndef LEDGER_RETRACTION_H
#define LEDGER_RETRACTION_H

#include "common/buffer.h"
#include "ledger/ledger.h"

/* A person decided about the event: answer what asked for it. 0 or -1. */
int retraction_decided(struct ledger *l, struct answer *a, int64_t event_id);

/*
 * Its words as the rows have them now; OUT stays empty when there is nothing
 * to answer (any more). A holds what is read meanwhile. 0 or -1.
 */
int retraction_text(struct ledger *l, struct answer *a, int64_t notice_id,
    int64_t event_id, const char *message_kind, struct buffer *out);

/* The event's record, or those of a task, moved: what waited may be due. */
int retraction_moved(struct ledger *l, struct answer *a, int64_t event_id);
int retraction_moved_task(struct ledger *l, struct answer *a, int64_t task_id);
/* It is known by now whether the notice was posted. 0 or -1, as above. */
int retraction_notice_settled(
    struct ledger *l, struct answer *a, int64_t notice_id);

#endif
