/*
 * The request log (feed.md 8.6, observe): a ring, bounded in number and in
 * bytes; the oldest go first. Secrets of clients are not in it.
 */
#ifndef SIMULATOR_JOURNAL_H
#define SIMULATOR_JOURNAL_H

#include "tests/simulator/exchange.h"

#define JOURNAL_ENTRIES 100000
#define JOURNAL_BYTES (64 * 1024 * 1024)

/* Returns the entry's number, counted from 1. */
uint64_t journal_add(const struct exchange *x);
/* STATUS is what goes out next; entries that never get one show 0. */
void journal_answered(uint64_t number, int status);
/* The number of the newest entry, 0 before the first. */
uint64_t journal_last(void);
/* Entries after number AFTER that PATTERN (NULL: all) matches; ANSWERED
 * leaves out those without a status. */
size_t journal_count(const char *pattern, uint64_t after, bool answered);
/* The same as a list, at most LIMIT, oldest first. */
json_t *journal_list(const char *pattern, uint64_t after, size_t limit);
/* Something that no correct client does; kept for GET /sim/state. */
void journal_report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
json_t *journal_reports(void);

#endif
