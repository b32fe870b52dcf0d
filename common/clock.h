/*
 * Time: monotonic for waiting, wall clock for stamps. Tests drive both
 * through clock_set_source().
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ and the NUL (ledger.md 1). */
#define CLOCK_STAMP_LEN 30
#define CLOCK_STAMP_SIZE (CLOCK_STAMP_LEN + 1)

struct clock_source {
	void (*now)(clockid_t id, struct timespec *out);
};

/* NULL puts the kernel's clocks back. SOURCE is kept, not copied. */
void clock_set_source(const struct clock_source *source);

/* Milliseconds of the monotonic clock. */
int64_t clock_monotonic_ms(void);
/* Nanoseconds of the wall clock since the epoch. */
int64_t clock_wall_ns(void);
/* Write the wall clock as a ledger stamp: fixed width, text order = time. */
void clock_stamp(char out[static CLOCK_STAMP_SIZE]);
/* Any wall clock value (ns since the epoch, years 1970-9999) as a stamp. */
void clock_stamp_ns(int64_t ns, char out[static CLOCK_STAMP_SIZE]);
/*
 * Parse RFC 3339 (any fraction, Z or offset) to ns since the epoch.
 * Returns 0, or -1 when TEXT is not one or lies outside 1970-2262.
 */
int clock_parse(const char *text, int64_t *ns);

#endif
