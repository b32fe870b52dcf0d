/*
 * The connector's own messages (operator.md 2): which transition calls for
 * which, and their words. Each is an intent of the outbox, written in the
 * transaction of the transition. Every word is a template's, every value a
 * column of the ledger: no title, text, name, path or URL gets in.
 */
#ifndef LEDGER_LIFECYCLE_H
#define LEDGER_LIFECYCLE_H

#include "common/buffer.h"
#include "ledger/ledger.h"
#include "ledger/record.h"

/* A verdict was written as STATE: guard or holding reply. */
int lifecycle_verdict(struct ledger *l, struct answer *a, int64_t event_id,
    enum record_state state);
/* An attempt works on, for the NUMBER-th time: its notice. */
int lifecycle_still_running(
    struct ledger *l, struct answer *a, const char *attempt, int64_t number);
/* An attempt is settled: the completion notice, if one is called for. */
int lifecycle_ended(struct ledger *l, struct answer *a, const char *attempt);

/*
 * The completion notice as the rows have it now; OUT stays empty when there
 * is nothing (left) to say. KIND is the message kind it is written for.
 */
int lifecycle_completion(struct ledger *l, const char *attempt,
    const char *kind, struct buffer *out);

#endif
