#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"

#define NS_PER_S INT64_C(1000000000)

static void
kernel_now(clockid_t id, struct timespec *out)
{
	(void)clock_gettime(id, out); /* cannot fail for the two ids used */
}

static const struct clock_source kernel_source = {kernel_now};
static const struct clock_source *source_in_use = &kernel_source;

void
clock_set_source(const struct clock_source *source)
{
	source_in_use = source == NULL ? &kernel_source : source;
}

int64_t
clock_monotonic_ms(void)
{
	struct timespec ts;

	source_in_use->now(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
clock_wall_ns(void)
{
	struct timespec ts;

	source_in_use->now(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void
clock_stamp(char out[static CLOCK_STAMP_SIZE])
{
	clock_stamp_ns(clock_wall_ns(), out);
}

void
clock_stamp_ns(int64_t ns, char out[static CLOCK_STAMP_SIZE])
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm tm;
	char text[64];

	(void)gmtime_r(&seconds, &tm);
	(void)snprintf(text, sizeof(text),
	    "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(ns % NS_PER_S));
	memcpy(out, text, CLOCK_STAMP_LEN);
	out[CLOCK_STAMP_LEN] = '\0';
}

/* N decimal digits at *P, or -1; *P moves past them. */
static int
take_digits(const char **p, int n)
{
	int value = 0;

	for (; n > 0; n--, (*p)++) {
		if (!isdigit((unsigned char)**p))
			return -1;
		value = value * 10 + (**p - '0');
	}
	return value;
}

/* A fraction of any length; digits past the ninth are below our grain. */
static int
take_fraction(const char **p, int64_t *ns)
{
	int64_t unit = NS_PER_S / 10;

	*ns = 0;
	if (**p != '.')
		return 0;
	(*p)++;
	if (!isdigit((unsigned char)**p))
		return -1;
	for (; isdigit((unsigned char)**p); (*p)++, unit /= 10)
		*ns += unit * (**p - '0');
	return 0;
}

/* Z, or +hh:mm / -hh:mm, and the end of the text. */
static int
take_offset(const char **p, int *seconds)
{
	int sign, hours, minutes;

	*seconds = 0;
	if (**p == 'Z' || **p == 'z')
		return (*p)[1] == '\0' ? 0 : -1;
	if (**p != '+' && **p != '-')
		return -1;
	sign = *(*p)++ == '-' ? -1 : 1;
	hours = take_digits(p, 2);
	if (hours < 0 || hours > 23 || *(*p)++ != ':')
		return -1;
	minutes = take_digits(p, 2);
	if (minutes < 0 || minutes > 59 || **p != '\0')
		return -1;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return 0;
}

/* The separators and ranges of date and time; timegm() does the calendar. */
static int
take_date_time(const char **p, struct tm *tm)
{
	static const struct {
		int digits, low, high;
		char after;
	} parts[] = {{4, 1970, 2261, '-'}, {2, 1, 12, '-'}, {2, 1, 31, 'T'},
	    {2, 0, 23, ':'}, {2, 0, 59, ':'}, {2, 0, 60, '\0'}};
	int v[6];
	size_t i;

	for (i = 0; i < 6; i++) {
		v[i] = take_digits(p, parts[i].digits);
		if (v[i] < parts[i].low || v[i] > parts[i].high)
			return -1;
		if (parts[i].after != '\0' && *(*p)++ != parts[i].after)
			return -1;
	}
	*tm = (struct tm){.tm_year = v[0] - 1900,
	    .tm_mon = v[1] - 1,
	    .tm_mday = v[2],
	    .tm_hour = v[3],
	    .tm_min = v[4],
	    .tm_sec = v[5]};
	return 0;
}

int
clock_parse(const char *text, int64_t *ns)
{
	struct tm tm, check;
	int64_t fraction;
	int offset;
	time_t seconds;

	if (take_date_time(&text, &tm) == -1 ||
	    take_fraction(&text, &fraction) == -1 ||
	    take_offset(&text, &offset) == -1)
		return -1;
	check = tm;
	seconds = timegm(&check);
	if (check.tm_mday != tm.tm_mday && tm.tm_sec != 60)
		return -1; /* 30 February */
	seconds -= offset;
	if (seconds < 0)
		return -1;
	*ns = (int64_t)seconds * NS_PER_S + fraction;
	return 0;
}
