#include <string.h>

#include "ledger/ledger.h"

#define NS_PER_MS INT64_C(1000000)

void
ledger_set_now(struct ledger *l)
{
	l->now_ns = clock_wall_ns();
	clock_stamp_ns(l->now_ns, l->now);
}

int64_t
ledger_limit(const struct ledger *l, enum limit limit)
{
	return l->config == NULL ? limit_rows[limit].normal
				 : l->config->limits[limit];
}

void
ledger_stamp_in(
    const struct ledger *l, int64_t ms, char out[static CLOCK_STAMP_SIZE])
{
	int64_t ns;

	/* What no stamp can hold ends at the last one, or the first. */
	if (__builtin_mul_overflow(ms, NS_PER_MS, &ns) ||
	    __builtin_add_overflow(l->now_ns, ns, &ns))
		ns = ms < 0 ? 0 : INT64_MAX;
	clock_stamp_ns(ns < 0 ? 0 : ns, out);
}

bool
ledger_is_stamp(const char *text)
{
	char again[CLOCK_STAMP_SIZE];
	int64_t ns;

	if (clock_parse(text, &ns) == -1)
		return false;
	clock_stamp_ns(ns, again);
	return strcmp(text, again) == 0;
}

int64_t
ledger_ms_until(const struct ledger *l, const char *stamp)
{
	int64_t ns;

	if (clock_parse(stamp, &ns) == -1 || ns <= l->now_ns)
		return 0;
	return (ns - l->now_ns + NS_PER_MS - 1) / NS_PER_MS;
}
