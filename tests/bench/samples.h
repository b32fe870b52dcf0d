/*
 * Times that a bench took, and the one JSON line that it makes of them. A
 * line names its row, the figure that docs/benchmarks.md holds against the
 * budget, and the machine's load, without which no figure means anything.
 */
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include <stddef.h>

struct samples {
	double *us;
	size_t count, room;
};

/* Microseconds of the monotonic clock. */
double now_us(void);

void samples_add(struct samples *s, double us);
/* The value below which PERCENT of them lie; sorts them. 0 without any. */
double samples_percentile(struct samples *s, double percent);
/* Drops them all. */
void samples_clear(struct samples *s);

/*
 * {"row":NAME,"unit":"us","value":P50,"budget":..,"n":..,"p99":..,"max":..,
 * "load":..}; BUDGET 0 is none.
 */
void samples_row(struct samples *s, const char *name, double budget);
/* The same for one figure that was counted, not timed. */
void figure_row(const char *name, const char *unit, double value, double budget,
    size_t count);

#endif
