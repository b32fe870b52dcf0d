/*
 * The lines of stdout (operator.md 5.4): committed transitions as NDJSON,
 * never content. A member with nothing to say is left out. What came from
 * Basecamp is one printable line.
 */
#ifndef LEDGER_LINES_H
#define LEDGER_LINES_H

#include "ledger/ledger.h"

/* A newly seen event; the only line without a type. */
void line_pointer(struct answer *a, const struct msg_record *m);
/* A committed verdict: STATE and REASON as they were written. */
void line_verdict(struct answer *a, const struct msg_verdict *m,
    const char *event_type, int64_t bucket_id, int64_t recording_id,
    const char *state, const char *reason);
/* The same of a record that a person moved; read back from its row. -1. */
int line_decided(struct ledger *l, struct answer *a, int64_t event_id);
/* STATE launching, running or ended; EVENT_ID with launching, else 0. */
void line_dispatch(struct answer *a, int64_t task_id, const char *attempt,
    int64_t event_id, const char *state, const char *stop_reason);

/* What became of an intent; read back from its row. -1. */
int line_outbox(struct ledger *l, struct answer *a, int64_t intent_id);

#endif
