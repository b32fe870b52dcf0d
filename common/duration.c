#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/duration.h"

struct unit {
	const char *name;
	uint64_t ns;
};

/* The order matters: "ms" must be looked for before "m". */
enum { NS, US, MICRO, MU, MS, SECOND, MINUTE, HOUR, UNIT_COUNT };

static const struct unit units[UNIT_COUNT] = {
    [NS] = {"ns", 1},
    [US] = {"us", 1000},
    [MICRO] = {"\xc2\xb5s", 1000},
    [MU] = {"\xce\xbcs", 1000},
    [MS] = {"ms", 1000000},
    [SECOND] = {"s", 1000000000},
    [MINUTE] = {"m", UINT64_C(60000000000)},
    [HOUR] = {"h", UINT64_C(3600000000000)},
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Its value is whole + digits / scale. */
struct decimal {
	uint64_t whole;
	uint64_t digits;
	uint64_t scale;
};

/* Digits that no longer matter to a nanosecond are read and dropped. */
static const char *
read_decimal(const char *at, struct decimal *d)
{
	const char *start = at;
	bool has_digits;

	*d = (struct decimal){.scale = 1};
	for (; is_digit(*at); at++)
		if (__builtin_mul_overflow(d->whole, 10, &d->whole) ||
		    __builtin_add_overflow(d->whole, *at - '0', &d->whole))
			return NULL;
	has_digits = at > start;
	if (*at == '.') {
		for (at++; is_digit(*at); at++) {
			has_digits = true;
			if (d->scale >= UINT64_C(1000000000000000))
				continue;
			d->digits = d->digits * 10 + (uint64_t)(*at - '0');
			d->scale *= 10;
		}
	}
	return has_digits ? at : NULL;
}

static const struct unit *
read_unit(const char *at)
{
	size_t i;

	for (i = 0; i < UNIT_COUNT; i++)
		if (strncmp(at, units[i].name, strlen(units[i].name)) == 0)
			return &units[i];
	return NULL;
}

/* One <decimal><unit> added to *SUM; where it ends, NULL on failure. */
static const char *
read_part(const char *at, uint64_t *sum)
{
	const struct unit *unit;
	struct decimal d;
	uint64_t ns;

	at = read_decimal(at, &d);
	if (at == NULL || (unit = read_unit(at)) == NULL)
		return NULL;
	if (__builtin_mul_overflow(d.whole, unit->ns, &ns) ||
	    __builtin_add_overflow(*sum, ns, sum))
		return NULL;
	ns = (uint64_t)((unsigned __int128)d.digits * unit->ns / d.scale);
	if (__builtin_add_overflow(*sum, ns, sum))
		return NULL;
	return at + strlen(unit->name);
}

int
duration_parse(const char *text, int64_t *ns, struct error *e)
{
	const char *at = text;
	bool is_negative = *at == '-';
	uint64_t sum = 0;

	if (*at == '-' || *at == '+')
		at++;
	if (strcmp(at, "0") == 0) {
		*ns = 0;
		return 0;
	}
	if (*at == '\0')
		at = NULL;
	while (at != NULL && *at != '\0')
		at = read_part(at, &sum);
	if (at == NULL)
		return error_set(e, "not a duration such as \"1h30m\"");
	if (sum > INT64_MAX)
		return error_set(e, "a duration beyond 292 years");
	*ns = is_negative ? -(int64_t)sum : (int64_t)sum;
	return 0;
}

int
duration_parse_ms(const char *text, int64_t least_ms, int64_t most_ms,
    int64_t *ms, struct error *e)
{
	char least[DURATION_SIZE], most[DURATION_SIZE];
	int64_t ns;

	if (duration_parse(text, &ns, e) == -1)
		return -1;
	if (ns % 1000000 != 0)
		return error_set(e, "a duration finer than a millisecond");
	ns /= 1000000;
	if (ns < least_ms || ns > most_ms) {
		duration_print(least_ms * 1000000, least);
		duration_print(most_ms * 1000000, most);
		return error_set(e, "a duration outside %s to %s", least, most);
	}
	*ms = ns;
	return 0;
}

static void __attribute__((format(printf, 2, 3)))
append(char *out, const char *fmt, ...)
{
	size_t used = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(out + used, DURATION_SIZE - used, fmt, ap);
	va_end(ap);
}

/* NS as UNIT with its fraction, the zeros at the end of it left off. */
static void
append_fraction(char *out, uint64_t ns, const struct unit *unit)
{
	uint64_t scale = unit->ns, rest = ns % unit->ns;

	append(out, "%" PRIu64, ns / unit->ns);
	if (rest != 0)
		append(out, ".");
	while (rest != 0) {
		scale /= 10;
		append(out, "%" PRIu64, rest / scale);
		rest %= scale;
	}
	append(out, "%s", unit->name);
}

void
duration_print(int64_t value, char out[static DURATION_SIZE])
{
	uint64_t ns = value < 0 ? -(uint64_t)value : (uint64_t)value;
	const struct unit *unit = &units[SECOND];

	if (ns != 0 && ns < units[SECOND].ns)
		unit = ns < units[MICRO].ns ? &units[NS]
		    : ns < units[MS].ns     ? &units[MICRO]
					    : &units[MS];
	out[0] = '\0';
	if (value < 0)
		append(out, "-");
	if (ns >= units[HOUR].ns)
		append(out, "%" PRIu64 "h", ns / units[HOUR].ns);
	if (ns >= units[MINUTE].ns)
		append(out, "%" PRIu64 "m",
		    ns % units[HOUR].ns / units[MINUTE].ns);
	append_fraction(out, ns % units[MINUTE].ns, unit);
}
