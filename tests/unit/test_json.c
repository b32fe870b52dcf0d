/* What JSON is accepted, under which rule, and what is said where it is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FFFD UTF8_REPLACEMENT_TEXT
/* A literal that may hold NUL, and its length. */
#define TEXT(s) (s), sizeof(s) - 1

static const struct json_rules strict = {
    .max_bytes = 4096, .max_depth = 4, .max_members = 8};
static const struct json_rules wire = {.max_bytes = 4096,
    .max_depth = 64,
    .max_members = 10000,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL};
static const struct json_rules feed = {.max_bytes = 4096,
    .max_depth = 32,
    .max_members = 1000,
    .flags = JSON_RULE_NO_FFFD_NAMES,
    .exempt = "details"};
static const struct json_rules pure = {.max_bytes = 4096,
    .max_depth = 32,
    .max_members = 1000,
    .flags = JSON_RULE_NO_SURROGATES};

/* Judged without a tree it is the same, but for a real out of range. */
static void
assert_judged(const char *text, size_t len, const struct json_rules *rules,
    const json_t *tree, const struct error *why)
{
	struct error e = {0, ""};
	int rc = json_check(text, len, rules, &e);

	if (tree != NULL || strstr(why->text, "range of a double") != NULL) {
		assert_int_equal(0, rc);
		return;
	}
	assert_int_equal(-1, rc);
	assert_int_equal(why->code, e.code);
	assert_string_equal(why->text, e.text);
}

/* Read an exact copy, so that a sanitizer sees a step too far. */
static json_t *
read_copy(const char *text, size_t len, const struct json_rules *rules,
    struct error *e)
{
	char *copy = xmemdup(text, len);
	json_t *tree;

	memset(e, 0, sizeof(*e));
	tree = json_read(copy, len, rules, e);
	assert_judged(copy, len, rules, tree, e);
	free(copy);
	return tree;
}

/* What the tree says, written by jansson in one fixed form. */
static void
assert_reads(const char *text, size_t len, const struct json_rules *rules,
    const char *want)
{
	struct error e;
	json_t *tree = read_copy(text, len, rules, &e);
	char *got;

	if (tree == NULL)
		fail_msg("%s: %s", text, e.text);
	got = json_dumps(tree,
	    JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY |
		JSON_ENSURE_ASCII);
	assert_string_equal(want, got);
	free(got);
	json_decref(tree);
}

static void
assert_refused(const char *text, size_t len, const struct json_rules *rules,
    int code, const char *why)
{
	struct error e;
	json_t *tree = read_copy(text, len, rules, &e);

	if (tree != NULL)
		fail_msg("accepted: %s", text);
	if (e.code != code || strcmp(e.text, why) != 0)
		fail_msg("%s: code %d, \"%s\", not code %d, \"%s\"", text,
		    e.code, e.text, code, why);
}

static void
plain_values_are_read(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"{}", "{}"},
	    {" \t\r\n[ ] \n", "[]"},
	    {"null", "null"},
	    {"true", "true"},
	    {"[false]", "[false]"},
	    {"\"\"", "\"\""},
	    {"0", "0"},
	    {"-0", "0"},
	    {"9223372036854775807", "9223372036854775807"},
	    {"-9223372036854775808", "-9223372036854775808"},
	    {"[1.5,2e3,-1E-2]", "[1.5,2000.0,-0.01]"},
	    {"{\"a\" : 1 , \"b\":[1,{\"c\":null}]}",
		"{\"a\":1,\"b\":[1,{\"c\":null}]}"},
	    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\"",
		"\"\\\"\\\\/\\b\\f\\n\\r\\t\\u00E9\\u20AC\""},
	    {"\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\\u00E9\\uD83D\\uDE00\""},
	    {"\"\\uD83D\\ude00\"", "\"\\uD83D\\uDE00\""},
	    {"{\"\":1}", "{\"\":1}"},
	    {"\"\x7f\"", "\"\x7f\""},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_reads(
		    rows[i].text, strlen(rows[i].text), &strict, rows[i].want);
}

static void
malformed_text_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int code;
		const char *why;
	} rows[] = {
	    {TEXT(""), EINVAL, "line 1, column 1: the text ends too soon"},
	    {TEXT("  "), EINVAL, "line 1, column 3: the text ends too soon"},
	    {TEXT("{"), EINVAL, "line 1, column 2: no member name here"},
	    {TEXT("["), EINVAL, "line 1, column 2: the text ends too soon"},
	    {TEXT("[1,]"), EINVAL, "line 1, column 4: no value here"},
	    {TEXT("[,1]"), EINVAL, "line 1, column 2: no value here"},
	    {TEXT("[1 2]"), EINVAL,
		"line 1, column 4: no comma and no end here"},
	    {TEXT("[1}"), EINVAL, "line 1, column 3: no comma and no end here"},
	    {TEXT("{\"a\":1]"), EINVAL,
		"line 1, column 7: no comma and no end here"},
	    {TEXT("]"), EINVAL, "line 1, column 1: no value here"},
	    {TEXT("{\"a\":1,}"), EINVAL,
		"line 1, column 8: no member name here"},
	    {TEXT("{a:1}"), EINVAL, "line 1, column 2: no member name here"},
	    {TEXT("{\"a\" 1}"), EINVAL,
		"line 1, column 6: no colon after a member name"},
	    {TEXT("{\"a\""), EINVAL,
		"line 1, column 5: no colon after a member name"},
	    {TEXT("{\"a\":}"), EINVAL, "line 1, column 6: no value here"},
	    {TEXT("1 2"), EINVAL,
		"line 1, column 3: something after the value"},
	    {TEXT("{}{}"), EINVAL,
		"line 1, column 3: something after the value"},
	    {TEXT("{}\0"), EINVAL,
		"line 1, column 3: something after the value"},
	    {TEXT("\0"), EINVAL, "line 1, column 1: no value here"},
	    {TEXT("nul"), EINVAL, "line 1, column 1: no value here"},
	    {TEXT("nulll"), EINVAL,
		"line 1, column 5: something after the value"},
	    {TEXT("NaN"), EINVAL, "line 1, column 1: no value here"},
	    {TEXT("'a'"), EINVAL, "line 1, column 1: no value here"},
	    {TEXT("[01]"), EINVAL,
		"line 1, column 3: no comma and no end here"},
	    {TEXT("[+1]"), EINVAL, "line 1, column 2: no value here"},
	    {TEXT("[-]"), EINVAL, "line 1, column 3: a malformed number"},
	    {TEXT("[1.]"), EINVAL, "line 1, column 4: a malformed number"},
	    {TEXT("[.5]"), EINVAL, "line 1, column 2: no value here"},
	    {TEXT("[1e]"), EINVAL, "line 1, column 4: a malformed number"},
	    {TEXT("[1e+]"), EINVAL, "line 1, column 5: a malformed number"},
	    {TEXT("1e999"), ERANGE,
		"line 1: a number beyond the range of a double"},
	    {TEXT("\"a"), EINVAL, "line 1, column 3: a string without its end"},
	    {TEXT("\"a\\\""), EINVAL,
		"line 1, column 5: a string without its end"},
	    {TEXT("\"\\"), EINVAL, "line 1, column 2: a wrong escape"},
	    {TEXT("\"\\x\""), EINVAL, "line 1, column 2: a wrong escape"},
	    {TEXT("\"\\\0\""), EINVAL, "line 1, column 2: a wrong escape"},
	    {TEXT("\"\\u12g4\""), EINVAL, "line 1, column 2: a wrong escape"},
	    {TEXT("\"\\u123"), EINVAL, "line 1, column 2: a wrong escape"},
	    {TEXT("\"a\nb\""), EINVAL,
		"line 1, column 3: a raw control in a string"},
	    {TEXT("\"\0\""), EINVAL,
		"line 1, column 2: a raw control in a string"},
	    {TEXT("\xef\xbb\xbf{}"), EILSEQ,
		"line 1, column 1: a byte order mark"},
	    {TEXT("\xff"), EILSEQ, "line 1, column 1: not UTF-8"},
	    {TEXT("[\n\"a\xff\"]"), EILSEQ, "line 2, column 3: not UTF-8"},
	    {TEXT("\"\xc0\xaf\""), EILSEQ, "line 1, column 2: not UTF-8"},
	    {TEXT("\"\xed\xa0\x80\""), EILSEQ, "line 1, column 2: not UTF-8"},
	    {TEXT("\"\xf4\x90\x80\x80\""), EILSEQ,
		"line 1, column 2: not UTF-8"},
	    {TEXT("\"\xe2\x82"), EILSEQ, "line 1, column 2: not UTF-8"},
	    {TEXT("{\"\xff\":1}"), EILSEQ, "line 1, column 3: not UTF-8"},
	    {TEXT("{\"a\\u0000b\":1}"), ERANGE,
		"line 1, column 4: NUL in a member name"},
	    {TEXT("{\n \"a\": 1,\n \"b\": x}"), EINVAL,
		"line 3, column 7: no value here"},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		assert_refused(rows[i].text, rows[i].len, &strict, rows[i].code,
		    rows[i].why);
		assert_refused(rows[i].text, rows[i].len, &wire, rows[i].code,
		    rows[i].why);
	}
}

static void
bounds_hold(void **state)
{
	struct json_rules eight = strict;

	eight.max_bytes = 8;
	assert_reads(TEXT("[123456]"), &eight, "[123456]");
	assert_refused(TEXT("[1234567]"), &eight, E2BIG, "longer than 8 bytes");
	assert_reads(TEXT("[[[[]]]]"), &strict, "[[[[]]]]");
	assert_reads(TEXT("[{\"a\":[{}]}]"), &strict, "[{\"a\":[{}]}]");
	assert_refused(TEXT("[[[[[]]]]]"), &strict, E2BIG,
	    "line 1, column 5: nested too deep");
	assert_refused(TEXT("[{\"a\":[{\"b\":{}}]}]"), &strict, E2BIG,
	    "line 1, column 13: nested too deep");
	assert_reads(TEXT("[1,2,3,4,5,6,7,8]"), &strict, "[1,2,3,4,5,6,7,8]");
	assert_refused(TEXT("[1,2,3,4,5,6,7,8,9]"), &strict, E2BIG,
	    "line 1, column 18: too many elements");
	assert_refused(TEXT("[[1],[2],[3],{\"a\":5,\"b\":6}]"), &strict, E2BIG,
	    "line 1, column 21: too many members");
}

/* Depth is bounded whatever the rules ask for. */
static void
no_rule_lifts_the_deepest_nesting(void **state)
{
	struct json_rules deep = wire;
	char text[2 * (JSON_DEPTH_MOST + 1)];
	size_t most = JSON_DEPTH_MOST;
	struct error e;
	json_t *tree;

	deep.max_depth = 100000;
	memset(text, '[', most);
	memset(text + most, ']', most);
	tree = read_copy(text, 2 * most, &deep, &e);
	assert_non_null(tree);
	json_decref(tree);
	memset(text, '[', most + 1);
	assert_null(read_copy(text, sizeof(text), &deep, &e));
	assert_int_equal(E2BIG, e.code);
}

static void
duplicates_follow_the_rule(void **state)
{
	static const char twice[] = "line 1, column %d: a member name that was "
				    "there before";
	static const struct {
		const char *text;
		int column;
		const char *last; /* what LAST_WINS reads */
	} rows[] = {
	    {"{\"a\":1,\"a\":2}", 8, "{\"a\":2}"},
	    {"{\"a\":1,\"\\u0061\":2}", 8, "{\"a\":2}"},
	    {"{\"\\u00e9\":1,\"\xc3\xa9\":2}", 13, "{\"\\u00E9\":2}"},
	    {"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", 19,
		"{\"\\uD83D\\uDE00\":2}"},
	    {"{\"\\ud800\":1,\"\\udfff\":2}", 13, "{\"\\uFFFD\":2}"},
	    {"[{\"x\":{\"a\":1,\"b\":2,\"a\":3}}]", 20,
		"[{\"x\":{\"a\":3,\"b\":2}}]"},
	    {"{\"\":1,\"\":2}", 7, "{\"\":2}"},
	    {"{\"c\":1,\"b\":2,\"a\":3,\"b\":4,\"c\":5}", 20,
		"{\"a\":3,\"b\":4,\"c\":5}"},
	    {"{\"a\":{\"k\":1},\"a\":{}}", 14, "{\"a\":{}}"},
	    {"{\"z\":1,\"a\":2,\"z\":3,\"a\":4}", 14, "{\"a\":4,\"z\":3}"},
	};
	char why[128];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		(void)snprintf(why, sizeof(why), twice, rows[i].column);
		assert_refused(
		    rows[i].text, strlen(rows[i].text), &strict, EEXIST, why);
		assert_reads(
		    rows[i].text, strlen(rows[i].text), &wire, rows[i].last);
	}
	assert_reads(TEXT("{\"a\":{\"a\":{\"a\":1}},\"A\":[{\"a\":2}]}"),
	    &strict, "{\"A\":[{\"a\":2}],\"a\":{\"a\":{\"a\":1}}}");
}

/* Only what stands inside `details` is let through. */
static void
the_exempt_member_keeps_its_inside(void **state)
{
	assert_reads(TEXT("{\"details\":{\"a\":1,\"a\":2,\"\\ud800\":3}}"),
	    &feed, "{\"details\":{\"a\":2,\"\\uFFFD\":3}}");
	assert_reads(
	    TEXT("[{\"details\":[{\"x\":{\"b\":1,\"b\":2}}],\"c\":3}]"), &feed,
	    "[{\"c\":3,\"details\":[{\"x\":{\"b\":2}}]}]");
	assert_reads(TEXT("{\"\\u0064etails\":{\"a\":1,\"a\":2}}"), &feed,
	    "{\"details\":{\"a\":2}}");
	assert_refused(TEXT("{\"details\":{},\"details\":{}}"), &feed, EEXIST,
	    "line 1, column 15: a member name that was there before");
	assert_refused(TEXT("{\"details\":{\"a\":1},\"b\":1,\"b\":2}"), &feed,
	    EEXIST, "line 1, column 26: a member name that was there before");
	assert_refused(TEXT("[{\"details\":{}},{\"b\":1,\"b\":2}]"), &feed,
	    EEXIST, "line 1, column 24: a member name that was there before");
	assert_refused(TEXT("{\"details\":1,\"x\":{\"b\":1,\"b\":2}}"), &feed,
	    EEXIST, "line 1, column 25: a member name that was there before");
	assert_refused(TEXT("{\"\\ud800\":1}"), &feed, EINVAL,
	    "line 1, column 2: U+FFFD in a member name");
	assert_refused(TEXT("{\"a" FFFD "\":1}"), &feed, EINVAL,
	    "line 1, column 2: U+FFFD in a member name");
	assert_refused(TEXT("{\"\\ufffd\":1}"), &feed, EINVAL,
	    "line 1, column 2: U+FFFD in a member name");
	assert_reads(TEXT("{\"a\":\"\\ud800\"}"), &feed, "{\"a\":\"\\uFFFD\"}");
}

static void
half_a_surrogate_pair_is_replaced_or_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"\"\\ud800\"", "\"\\uFFFD\""},
	    {"\"\\uDC00x\"", "\"\\uFFFDx\""},
	    {"\"\\ud83dx\\ude00\"", "\"\\uFFFDx\\uFFFD\""},
	    {"\"\\ud83d\\ud83d\\ude00\"", "\"\\uFFFD\\uD83D\\uDE00\""},
	    {"\"\\ude00\\ud83d\"", "\"\\uFFFD\\uFFFD\""},
	    {"\"\\ud83d\\u0041\"", "\"\\uFFFDA\""},
	    {"\"\\ud83d\\\\ude00\"", "\"\\uFFFD\\\\ude00\""},
	    {"[\"\\ud800\",{\"\\udbff\":\"a\\udc00b\"},1]",
		"[\"\\uFFFD\",{\"\\uFFFD\":\"a\\uFFFDb\"},1]"},
	};
	struct error e;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		assert_reads(
		    rows[i].text, strlen(rows[i].text), &wire, rows[i].want);
		assert_null(
		    read_copy(rows[i].text, strlen(rows[i].text), &pure, &e));
		assert_int_equal(EINVAL, e.code);
	}
	assert_reads(TEXT("\"" FFFD "\\ufffd\\ud83d\\ude00\""), &pure,
	    "\"\\uFFFD\\uFFFD\\uD83D\\uDE00\"");
}

static void
integers_are_exact_or_said_not_to_be(void **state)
{
	static const char *const beyond[] = {"9223372036854775808",
	    "-9223372036854775809", "100000000000000000000000000000000"};
	struct error e;
	json_t *tree;
	size_t i;

	for (i = 0; i < COUNT(beyond); i++) {
		assert_refused(beyond[i], strlen(beyond[i]), &strict, ERANGE,
		    "line 1, column 1: an integer beyond 64 bits");
		tree = read_copy(beyond[i], strlen(beyond[i]), &wire, &e);
		assert_non_null(tree);
		assert_true(json_is_real(tree));
		assert_true(json_real_value(tree) == strtod(beyond[i], NULL));
		json_decref(tree);
	}
	assert_reads(TEXT("{\"a\":[\"\\ud800\",20000000000000000000,1]}"),
	    &wire, "{\"a\":[\"\\uFFFD\",2e19,1]}");
	assert_reads(TEXT("[9007199254740993,-9007199254740993]"), &strict,
	    "[9007199254740993,-9007199254740993]");
}

static void
nul_stays_in_a_value(void **state)
{
	struct json_text text = {0};
	struct error e;
	json_t *tree =
	    read_copy(TEXT("{\"a\":\"x\\u0000y\",\"b\":\"xy\"}"), &wire, &e);

	assert_non_null(tree);
	assert_int_equal(
	    0, json_member_string(tree, "a", JSON_REQUIRED, &text, &e));
	assert_int_equal(3, text.len);
	assert_memory_equal("x\0y", text.bytes, 4);
	assert_true(text.has_nul);
	assert_int_equal(
	    0, json_member_string(tree, "b", JSON_REQUIRED, &text, &e));
	assert_false(text.has_nul);
	json_decref(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(plain_values_are_read),
	    cmocka_unit_test(malformed_text_is_refused_with_its_place),
	    cmocka_unit_test(bounds_hold),
	    cmocka_unit_test(no_rule_lifts_the_deepest_nesting),
	    cmocka_unit_test(duplicates_follow_the_rule),
	    cmocka_unit_test(the_exempt_member_keeps_its_inside),
	    cmocka_unit_test(half_a_surrogate_pair_is_replaced_or_refused),
	    cmocka_unit_test(integers_are_exact_or_said_not_to_be),
	    cmocka_unit_test(nul_stays_in_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
