/* Which raw ids mcpd echoes and the bridge awaits (mcp.md 1.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mcpd/id.h"

static const struct id_row {
	const char *id;
	bool is_ok;
} id_rows[] = {
    {"1", true},
    {"0", true},
    {"-7", true},
    {"123456789012345678901234567890", true},
    {"\"\"", true},
    {"\"a 1.5 null\"", true},
    {"", false},
    {"1.5", false},
    {"1e3", false},
    {"1E3", false},
    {"-1.0", false},
    {"null", false},
    {"true", false},
    {"false", false},
    {"{}", false},
    {"[1]", false},
};

static void
an_id_is_a_string_or_an_integer(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(id_rows) / sizeof(id_rows[0]); i++) {
		struct json_span id = {id_rows[i].id, strlen(id_rows[i].id)};

		if (id_ok(&id) != id_rows[i].is_ok)
			fail_msg("%s", id_rows[i].id);
	}
}

static void
an_id_of_too_many_bytes_is_none(void **state)
{
	char id[ID_MAX + 2];
	struct json_span span = {id, ID_MAX};

	memset(id, 'a', sizeof(id));
	id[0] = '"';
	assert_true(id_ok(&span));
	span.len++;
	assert_false(id_ok(&span));
}

static const struct equal_row {
	const char *a, *b;
	bool is_equal;
} equal_rows[] = {
    {"1", "1", true},
    {"1", "\"1\"", false},
    {"1", "2", false},
    {"\"a\"", "\"\\u0061\"", true},
    {"\"a\"", "\"b\"", false},
    {"\"a\"", "\"\"", false},
    {"\"/\"", "\"\\/\"", true},
    {"\"\\u0000\"", "\"\\u0000x\"", false},
};

static void
ids_are_compared_by_type_and_value(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(equal_rows) / sizeof(equal_rows[0]); i++) {
		struct json_span a = {equal_rows[i].a, strlen(equal_rows[i].a)};
		struct json_span b = {equal_rows[i].b, strlen(equal_rows[i].b)};

		assert_int_equal(equal_rows[i].is_equal, id_equal(&a, &b));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_id_is_a_string_or_an_integer),
	    cmocka_unit_test(an_id_of_too_many_bytes_is_none),
	    cmocka_unit_test(ids_are_compared_by_type_and_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
