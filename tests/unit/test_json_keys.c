/* The key walk of connect.json. */
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

static void
keys_of_the_configuration_are_canonical(void **state)
{
	static const char *const free_paths[] = {
	    "worker/env", "limits/worker", "list/1", NULL};
	static const struct {
		const char *text, *why; /* NULL: fine */
	} rows[] = {
	    {"{\"a_1\":{\"b\":[{\"c9\":1},{\"c9\":2}]},\"7\":0,\"-7\":0}",
		NULL},
	    {"{\"Trust\":1}",
		"line 1: key \"Trust\" is not in its canonical form ([a-z0-9_],"
		" or a plain number)"},
	    {"{\"trust\":{},\n\"trust\":{}}",
		"line 2: key \"trust\" is there twice"},
	    {"{\"projects\":{\n\"1\":{\"path\":1,\n\"p\\u0061th\":2}}}",
		"line 3: key \"projects/1/path\" is there twice"},
	    {"{\"projects\":{\"01\":{}}}",
		"line 1: key \"projects/01\" is not in its canonical form "
		"([a-z0-9_], or a plain number)"},
	    {"{\"l\":[0,[],{\"x\":[\n{\"K\":1}]}]}",
		"line 2: key \"l/2/x/0/K\" is not in its canonical form "
		"([a-z0-9_], or a plain number)"},
	    {"{\"worker\":{\"env\":{\"A.B\":1,\"x\":{\"Y\":1}}}}", NULL},
	    {"{\"limits\":{\"worker\":{\"memory.max\":1}}}", NULL},
	    {"{\"list\":[{\"k\":1},{\"K\":1}]}", NULL},
	    {"{\"list\":[{\"K\":1},{}]}",
		"line 1: key \"list/0/K\" is not in its canonical form "
		"([a-z0-9_], or a plain number)"},
	    {"{\"worker\":{\"env\":{\"A\":1,\"A\":1}}}",
		"line 1: key \"worker/env/A\" is there twice"},
	    {"{\"worker\":{\"Env\":{}}}",
		"line 1: key \"worker/Env\" is not in its canonical form "
		"([a-z0-9_], or a plain number)"},
	    {"{\"worker/env\":{}}",
		"line 1: key \"worker/env\" is not in its canonical form "
		"([a-z0-9_], or a plain number)"},
	    {"{\"\\u001b[31mx\":1}",
		"line 1: key \"x\" is not in its canonical form ([a-z0-9_], or "
		"a plain number)"},
	    {"{\"a\":1", "line 1, column 7: no comma and no end here"},
	};
	struct error e;
	size_t i;
	int result;

	for (i = 0; i < COUNT(rows); i++) {
		e.text[0] = '\0';
		result = json_check_keys(
		    rows[i].text, strlen(rows[i].text), free_paths, &e);
		assert_int_equal(rows[i].why == NULL ? 0 : -1, result);
		assert_string_equal(
		    rows[i].why == NULL ? "" : rows[i].why, e.text);
	}
}

static void
canonical_keys_have_one_spelling(void **state)
{
	static const char *const good[] = {"0", "7", "-7", "a", "_", "9a",
	    "9223372036854775807", "-9223372036854775808"};
	static const char *const bad[] = {"", "00", "01", "-0", "-01", "+1",
	    "--1", "-", "a-b", "a.b", "A", "a b", " a", "\xc3\xa9", "1.0",
	    "0000000000000000000000001"};
	char text[128];
	struct error e;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		(void)snprintf(text, sizeof(text), "[{\"%s\":1}]", good[i]);
		assert_int_equal(
		    0, json_check_keys(text, strlen(text), NULL, &e));
	}
	for (i = 0; i < COUNT(bad); i++) {
		(void)snprintf(text, sizeof(text), "[{\"%s\":1}]", bad[i]);
		if (json_check_keys(text, strlen(text), NULL, &e) == 0)
			fail_msg("\"%s\" passed", bad[i]);
		assert_int_equal(EINVAL, e.code);
	}
}

/* A key as long as the file must not overrun the error or break a character. */
static void
a_long_key_is_cut_in_the_error(void **state)
{
	struct buffer b = {0};
	struct error e;
	int i;

	buffer_add_text(&b, "{\"");
	for (i = 0; i < 2000; i++)
		buffer_add_text(&b, "\xe2\x82\xac");
	buffer_add_text(&b, "\":1}");
	assert_int_equal(-1, json_check_keys(b.bytes, b.len, NULL, &e));
	assert_true(strlen(e.text) < 400);
	assert_true(utf8_is_valid(e.text, strlen(e.text)));
	buffer_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_of_the_configuration_are_canonical),
	    cmocka_unit_test(canonical_keys_have_one_spelling),
	    cmocka_unit_test(a_long_key_is_cut_in_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
