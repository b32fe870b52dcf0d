/*
 * Durations as connect.json writes them (admission.md 5.2): an optional
 * sign, then one or more <decimal><unit>; units ns us µs ms s m h; "0" alone
 * needs no unit. Held in nanoseconds, +-292 years.
 */
#ifndef COMMON_DURATION_H
#define COMMON_DURATION_H

#include <stdint.h>

#include "common/error.h"

#define DURATION_SIZE 40

/* Digits beyond a nanosecond are cut off. Returns 0, or -1 with E set. */
int duration_parse(const char *text, int64_t *ns, struct error *e);

/*
 * The same within [least_ms, most_ms], in milliseconds; a part of a
 * millisecond is refused rather than rounded. The error names the bounds.
 */
int duration_parse_ms(const char *text, int64_t least_ms, int64_t most_ms,
    int64_t *ms, struct error *e);

/* "45m0s", "1h0m0s", "1.5s", "200ms", "0s": parses to the same value. */
void duration_print(int64_t ns, char out[static DURATION_SIZE]);

#endif
