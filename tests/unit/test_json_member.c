/* Out of JSON and into it: spans, typed members, ids of arguments, strings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FFFD UTF8_REPLACEMENT_TEXT
/* A literal that may hold NUL, and its length. */
#define TEXT(s) (s), sizeof(s) - 1

static json_t *
read_text(const char *text, size_t len)
{
	static const struct json_rules wire = {.max_bytes = 4096,
	    .max_depth = 64,
	    .max_members = 10000,
	    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL};
	json_t *tree = json_read(text, len, &wire, NULL);

	assert_non_null(tree);
	return tree;
}

static void
spans_are_the_raw_bytes(void **state)
{
	static const char text[] =
	    "{ \"id\" : 9007199254740993 ,\"a\":[ {\"details\": {\"x\" :1, "
	    "\"x\":2} }, \"\\u0031\", [ ] ],\"i\\u0064\":\"1\", \"\":{\"\":0},"
	    "\"e\":{} }";
	static const struct {
		const char *path, *want;
	} rows[] = {
	    {"id", "\"1\""},
	    {"a/0/details", "{\"x\" :1, \"x\":2}"},
	    {"a/0/details/x", "2"},
	    {"a/1", "\"\\u0031\""},
	    {"a/2", "[ ]"},
	    {"e", "{}"},
	    {"a/3", NULL},
	    {"a/00000000001", NULL},
	    {"a/-1", NULL},
	    {"a/x", NULL},
	    {"a/2/0", NULL},
	    {"e/x", NULL},
	    {"id/x", NULL},
	    {"missing", NULL},
	};
	struct json_span span;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		if (rows[i].want == NULL) {
			assert_int_equal(-1,
			    json_span(text, strlen(text), rows[i].path, &span));
			continue;
		}
		assert_int_equal(
		    0, json_span(text, strlen(text), rows[i].path, &span));
		assert_int_equal(strlen(rows[i].want), span.len);
		assert_memory_equal(rows[i].want, span.bytes, span.len);
	}
	assert_int_equal(0, json_span(TEXT(" [1] "), "", &span));
	assert_int_equal(3, span.len);
	assert_int_equal(0, json_span(TEXT("7"), "", &span));
	assert_memory_equal("7", span.bytes, 1);
}

/* An id that stands before the fault can still be answered to. */
static void
spans_are_found_before_a_fault(void **state)
{
	struct json_span span;

	assert_int_equal(
	    0, json_span(TEXT("{\"id\":7,\"params\":{\"x\":"), "id", &span));
	assert_memory_equal("7", span.bytes, 1);
	assert_int_equal(
	    0, json_span(TEXT("{\"id\":7,\"b\":\xff"), "id", &span));
	assert_int_equal(-1, json_span(TEXT("{\"id\":\"ab"), "id", &span));
	assert_int_equal(-1, json_span(TEXT("{\"id\":[1"), "id", &span));
	assert_int_equal(-1, json_span(TEXT("{\"id\""), "id", &span));
	assert_int_equal(-1, json_span(TEXT(""), "id", &span));
	assert_int_equal(-1, json_span(TEXT(""), "", &span));
	assert_int_equal(
	    -1, json_span(TEXT("\xef\xbb\xbf{\"id\":7}"), "id", &span));
}

static void
elements_are_stepped_through(void **state)
{
	static const char text[] = " [ 1 ,{\"a\":[2,3]}, \"],\" ,[]\n] ";
	static const char *const want[] = {
	    "1", "{\"a\":[2,3]}", "\"],\"", "[]"};
	struct json_span array = {text, sizeof(text) - 1}, element;
	size_t at = 0, i;

	for (i = 0; json_span_next(&array, &at, &element); i++) {
		assert_true(i < COUNT(want));
		assert_int_equal(strlen(want[i]), element.len);
		assert_memory_equal(want[i], element.bytes, element.len);
	}
	assert_int_equal(COUNT(want), i);
	assert_false(json_span_next(&array, &at, &element));
	at = 0;
	assert_false(
	    json_span_next(&(struct json_span){TEXT("[]")}, &at, &element));
	at = 0;
	assert_false(json_span_next(
	    &(struct json_span){TEXT("{\"a\":1}")}, &at, &element));
	at = 0;
	assert_false(
	    json_span_next(&(struct json_span){TEXT("[1")}, &at, &element) &&
	    json_span_next(&(struct json_span){TEXT("[1")}, &at, &element));
}

static void
members_are_typed(void **state)
{
	struct error e;
	json_t *o = read_text(
	    TEXT("{\"i\":5,\"n\":null,\"z\":0,\"m\":-3,\"r\":5.0,\"b\":true,"
		 "\"s\":\"x\",\"o\":{},\"a\":[]}"));
	struct json_text text = {"old", 3, false};
	json_t *child = NULL;
	bool flag = false;
	int64_t n = 77;

	assert_int_equal(0, json_member_id(o, "i", JSON_REQUIRED, &n, &e));
	assert_int_equal(5, n);
	assert_int_equal(0, json_member_int(o, "m", JSON_REQUIRED, &n, &e));
	assert_int_equal(-3, n);
	assert_int_equal(-1, json_member_id(o, "z", JSON_REQUIRED, &n, &e));
	assert_int_equal(ERANGE, e.code);
	assert_string_equal("member \"z\" is not above 0", e.text);
	assert_int_equal(-1, json_member_id(o, "m", JSON_MAY_BE_NULL, &n, &e));
	assert_int_equal(-1, json_member_id(o, "r", JSON_REQUIRED, &n, &e));
	assert_string_equal("member \"r\" is not an integer", e.text);
	assert_int_equal(-1, json_member_int(o, "s", JSON_REQUIRED, &n, &e));
	assert_int_equal(-1, json_member_int(o, "b", JSON_REQUIRED, &n, &e));
	assert_int_equal(-3, n);
	assert_int_equal(0, json_member_bool(o, "b", JSON_REQUIRED, &flag, &e));
	assert_true(flag);
	assert_int_equal(
	    -1, json_member_bool(o, "z", JSON_REQUIRED, &flag, &e));
	assert_int_equal(
	    0, json_member_string(o, "s", JSON_REQUIRED, &text, &e));
	assert_string_equal("x", text.bytes);
	assert_int_equal(
	    -1, json_member_string(o, "i", JSON_REQUIRED, &text, &e));
	assert_int_equal(
	    0, json_member_object(o, "o", JSON_REQUIRED, &child, &e));
	assert_ptr_equal(json_object_get(o, "o"), child);
	assert_int_equal(
	    -1, json_member_object(o, "a", JSON_REQUIRED, &child, &e));
	assert_int_equal(
	    0, json_member_array(o, "a", JSON_REQUIRED, &child, &e));
	assert_int_equal(
	    -1, json_member_array(o, "o", JSON_REQUIRED, &child, &e));
	json_decref(o);
}

static void
absent_and_null_members_follow_the_need(void **state)
{
	struct error e;
	json_t *o = read_text(TEXT("{\"n\":null}"));
	int64_t n = 77;

	assert_int_equal(-1, json_member_int(o, "x", JSON_REQUIRED, &n, &e));
	assert_string_equal("member \"x\" is missing", e.text);
	assert_int_equal(ENOENT, e.code);
	assert_int_equal(-1, json_member_int(o, "n", JSON_REQUIRED, &n, &e));
	assert_string_equal("member \"n\" is null", e.text);
	assert_int_equal(
	    0, json_member_int(o, "x", JSON_MAY_BE_ABSENT, &n, &e));
	assert_int_equal(
	    -1, json_member_int(o, "n", JSON_MAY_BE_ABSENT, &n, &e));
	assert_int_equal(EINVAL, e.code);
	assert_int_equal(0, json_member_id(o, "x", JSON_MAY_BE_NULL, &n, &e));
	assert_int_equal(0, json_member_id(o, "n", JSON_MAY_BE_NULL, &n, &e));
	assert_int_equal(77, n);
	assert_int_equal(
	    -1, json_member_int(NULL, "n", JSON_REQUIRED, &n, NULL));
	json_decref(o);
}

static void
ids_of_arguments_are_never_rounded(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* 0: refused */
	} rows[] = {
	    {"1", 1},
	    {"9007199254740991", 9007199254740991},
	    {"9007199254740992", 0},
	    {"-9007199254740992", 0},
	    {"9007199254740993", 0},
	    {"\"9007199254740993\"", 9007199254740993},
	    {"\"9223372036854775807\"", INT64_MAX},
	    {"\"9223372036854775808\"", 0},
	    {"\"99999999999999999999\"", 0},
	    {"7.0", 7},
	    {"1e3", 1000},
	    {"9007199254740991.0", 9007199254740991},
	    {"9007199254740992.0", 0},
	    {"20000000000000000000", 0},
	    {"1.5", 0},
	    {"1e300", 0},
	    {"0", 0},
	    {"-1", 0},
	    {"-0.0", 0},
	    {"\"0\"", 0},
	    {"\"-1\"", 0},
	    {"\"+1\"", 0},
	    {"\" 1\"", 0},
	    {"\"1 \"", 0},
	    {"\"1.0\"", 0},
	    {"\"0x1\"", 0},
	    {"\"1\\u0000\"", 0},
	    {"\"\"", 0},
	    {"true", 0},
	    {"null", 0},
	    {"[1]", 0},
	    {"{}", 0},
	};
	struct error e;
	json_t *value;
	int64_t id;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		value = read_text(rows[i].text, strlen(rows[i].text));
		assert_non_null(value);
		id = 77;
		e.text[0] = '\0';
		if (json_id_argument(value, "event_id", &id, &e) == 0
			? id != rows[i].want
			: rows[i].want != 0 || id != 77 ||
			    strncmp(e.text, "event_id is ", 12) != 0)
			fail_msg("%s: %lld, \"%s\"", rows[i].text,
			    (long long)id, e.text);
		json_decref(value);
	}
	assert_int_equal(-1, json_id_argument(NULL, "event_id", &id, &e));
}

static void
strings_are_written_safely(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} rows[] = {
	    {TEXT(""), "\"\""},
	    {TEXT("a\"b\\c/"), "\"a\\\"b\\\\c/\""},
	    {TEXT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
	    {TEXT("\0\x01\x1b\x7f"), "\"\\u0000\\u0001\\u001b\\u007f\""},
	    {TEXT("\xc2\x9b\xe2\x80\xa8\xe2\x80\xa9"),
		"\"\\u009b\\u2028\\u2029\""},
	    {TEXT("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\""},
	    {TEXT("a\xff\xc0\x80z"), "\"a" FFFD FFFD FFFD "z\""},
	    {TEXT("\xe2\x82"), "\"" FFFD FFFD "\""},
	    {TEXT("\xed\xa0\x80"), "\"" FFFD FFFD FFFD "\""},
	};
	struct buffer b = {0};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		json_write_string(&b, rows[i].text, rows[i].len);
		assert_string_equal(rows[i].want, b.bytes);
		buffer_free(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(spans_are_the_raw_bytes),
	    cmocka_unit_test(spans_are_found_before_a_fault),
	    cmocka_unit_test(elements_are_stepped_through),
	    cmocka_unit_test(members_are_typed),
	    cmocka_unit_test(absent_and_null_members_follow_the_need),
	    cmocka_unit_test(ids_of_arguments_are_never_rounded),
	    cmocka_unit_test(strings_are_written_safely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
