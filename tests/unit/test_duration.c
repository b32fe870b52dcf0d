/* Durations of connect.json, read and printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/duration.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static void
durations_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} rows[] = {
	    {"0", 0},
	    {"-0", 0},
	    {"0s", 0},
	    {"1ns", 1},
	    {"1us", 1000},
	    {"1\xc2\xb5s", 1000},
	    {"1\xce\xbcs", 1000},
	    {"1ms", 1000000},
	    {"1s", SECOND},
	    {"45m0s", 45 * MINUTE},
	    {"1h30m", 90 * MINUTE},
	    {"1.5h", 90 * MINUTE},
	    {".5s", SECOND / 2},
	    {"1.s", SECOND},
	    {"+1s", SECOND},
	    {"-1m30s", -90 * SECOND},
	    {"1m1m", 2 * MINUTE},
	    {"1s1h", HOUR + SECOND},
	    {"0.000000001s", 1},
	    {"0.0000000019s", 1},
	    {"0.3333333333333333333333333333h", 1199999999999},
	    {"1.9ns", 1},
	    {"9223372036854775807ns", INT64_MAX},
	    {"2562047h47m16.854775807s", INT64_MAX},
	    {"007s", 7 * SECOND},
	};
	struct error e;
	int64_t ns;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		ns = -1;
		if (duration_parse(rows[i].text, &ns, &e) == -1)
			fail_msg("\"%s\": %s", rows[i].text, e.text);
		if (ns != rows[i].ns)
			fail_msg("\"%s\": %lld", rows[i].text, (long long)ns);
	}
}

static void
what_is_no_duration_is_refused(void **state)
{
	static const char *const rows[] = {"", " ", "-", "+", "1", "45", "00",
	    "1.5", ".", ".s", "s", "m", "1x", "1d", "1 s", " 1s", "1s ", "1s,",
	    "--1s", "1s-1s", "1s1", "1e3s", "0x1s", "1.2.3s", "1\xc2s", "1S",
	    "1H", "inf", "null", "9223372036854775808ns",
	    "2562047h47m16.854775808s", "18446744073709551616ns",
	    "99999999999999999999h", "2562048h", "9223372036854775807ns1ns"};
	struct error e;
	int64_t ns = 77;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		e.text[0] = '\0';
		if (duration_parse(rows[i], &ns, &e) == 0)
			fail_msg("\"%s\" passed", rows[i]);
		assert_true(e.text[0] != '\0');
		assert_int_equal(77, ns);
	}
	assert_int_equal(-1, duration_parse("1", &ns, NULL));
}

static void
milliseconds_are_bounded(void **state)
{
	struct error e;
	int64_t ms = 77;

	assert_int_equal(0, duration_parse_ms("1m", 60000, 60000, &ms, &e));
	assert_int_equal(60000, ms);
	assert_int_equal(
	    -1, duration_parse_ms("59.999s", 60000, 86400000, &ms, &e));
	assert_string_equal("a duration outside 1m0s to 24h0m0s", e.text);
	assert_int_equal(
	    -1, duration_parse_ms("24h0.001s", 60000, 86400000, &ms, &e));
	assert_int_equal(-1, duration_parse_ms("-1s", 0, 1000, &ms, &e));
	assert_int_equal(-1, duration_parse_ms("1.5ms", 0, 1000, &ms, &e));
	assert_string_equal("a duration finer than a millisecond", e.text);
	assert_int_equal(-1, duration_parse_ms("1", 0, 1000, &ms, &e));
	assert_int_equal(60000, ms);
}

static void
durations_are_printed(void **state)
{
	static const struct {
		int64_t ns;
		const char *want;
	} rows[] = {
	    {0, "0s"},
	    {1, "1ns"},
	    {-1, "-1ns"},
	    {999, "999ns"},
	    {1500, "1.5\xc2\xb5s"},
	    {200000000, "200ms"},
	    {1000001, "1.000001ms"},
	    {SECOND, "1s"},
	    {SECOND + SECOND / 2, "1.5s"},
	    {10 * SECOND, "10s"},
	    {MINUTE, "1m0s"},
	    {45 * MINUTE, "45m0s"},
	    {90 * MINUTE, "1h30m0s"},
	    {24 * HOUR, "24h0m0s"},
	    {HOUR + 1, "1h0m0.000000001s"},
	    {-90 * SECOND, "-1m30s"},
	    {INT64_MAX, "2562047h47m16.854775807s"},
	    {INT64_MIN, "-2562047h47m16.854775808s"},
	};
	char text[DURATION_SIZE];
	struct error e;
	int64_t ns;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		duration_print(rows[i].ns, text);
		assert_string_equal(rows[i].want, text);
		if (rows[i].ns == INT64_MIN)
			continue;
		assert_int_equal(0, duration_parse(text, &ns, &e));
		assert_int_equal(rows[i].ns, ns);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(durations_are_read),
	    cmocka_unit_test(what_is_no_duration_is_refused),
	    cmocka_unit_test(milliseconds_are_bounded),
	    cmocka_unit_test(durations_are_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
