/*
 * What connectctl shows (operator.md 3.1): states, times, ids and reasons.
 * No content, no message body, no feed position, no token and no hash of one.
 */
#ifndef LEDGER_QUERY_H
#define LEDGER_QUERY_H

#include "ledger/ledger.h"

enum query_result { QUERY_OK, QUERY_UNKNOWN, QUERY_NO_RECORD, QUERY_ERROR };

/*
 * WHAT is "status", "events" (the last COUNT records, oldest first) or "show"
 * (all about EVENT_ID). *JSON is malloc'ed text, the caller's.
 */
enum query_result query_json(struct ledger *l, const char *what,
    int64_t event_id, int64_t count, char **json);

#endif
