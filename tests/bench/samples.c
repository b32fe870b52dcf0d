#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/xmalloc.h"
#include "tests/bench/samples.h"

double
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

void
samples_add(struct samples *s, double us)
{
	if (s->count == s->room) {
		s->room = s->room == 0 ? 1024 : 2 * s->room;
		s->us = xreallocarray(s->us, s->room, sizeof(*s->us));
	}
	s->us[s->count++] = us;
}

void
samples_clear(struct samples *s)
{
	free(s->us);
	*s = (struct samples){0};
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
samples_percentile(struct samples *s, double percent)
{
	double at = percent / 100 * (double)s->count;

	if (s->count == 0)
		return 0;
	qsort(s->us, s->count, sizeof(*s->us), by_size);
	return s->us[at < (double)s->count ? (size_t)at : s->count - 1];
}

/* ---- rows --------------------------------------------------------------- */

static void
row_begin(const char *name, const char *unit, double value, double budget)
{
	(void)printf("{\"row\":\"%s\",\"unit\":\"%s\",\"value\":%.6g", name,
	    unit, value);
	if (budget > 0)
		(void)printf(",\"budget\":%g", budget);
}

static void
row_end(void)
{
	double load = 0;

	(void)getloadavg(&load, 1);
	(void)printf(",\"load\":%.2f}\n", load);
	(void)fflush(stdout);
}

void
samples_row(struct samples *s, const char *name, double budget)
{
	row_begin(name, "us", samples_percentile(s, 50), budget);
	(void)printf(",\"n\":%zu,\"p99\":%.6g,\"max\":%.6g", s->count,
	    samples_percentile(s, 99), samples_percentile(s, 100));
	row_end();
}

void
figure_row(const char *name, const char *unit, double value, double budget,
    size_t count)
{
	row_begin(name, unit, value, budget);
	(void)printf(",\"n\":%zu", count);
	row_end();
}
