/* One line: what kind of message it is, and its id (mcp.md 1.2, 1.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mcpd/message.h"

/* ---- classification --------------------------------------------------- */

/* mcp.md 1.2: the first condition that holds decides. */
static const struct kind_row {
	const char *line;
	enum message_kind kind;
	int code;
	const char *id;
} kind_rows[] = {
    {"", MESSAGE_DROPPED, 0, ""},
    {" \t ", MESSAGE_DROPPED, 0, ""},
    {"this is not JSON", MESSAGE_WRONG, -32700, ""},
    {"\xef\xbb\xbf{}", MESSAGE_WRONG, -32700, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", MESSAGE_WRONG,
	-32700, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,", MESSAGE_WRONG, -32700, ""},
    {"[]", MESSAGE_BATCH, 0, ""},
    {"7", MESSAGE_WRONG, -32600, ""},
    {"\"x\"", MESSAGE_WRONG, -32600, ""},
    {"null", MESSAGE_WRONG, -32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MESSAGE_DROPPED, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600}}", MESSAGE_DROPPED, 0,
	""},
    {"{\"id\":null,\"error\":{}}", MESSAGE_DROPPED, 0, ""},
    {"{\"method\":null,\"error\":{}}", MESSAGE_DROPPED, 0, ""},
    {"{\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG, -32600, "5"},
    {"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, "5"},
    {"{\"jsonrpc\":2.0,\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG, -32600,
	"5"},
    {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", MESSAGE_WRONG, -32600, "5"},
    {"{\"jsonrpc\":\"2.0\",\"id\":5}", MESSAGE_WRONG, -32600, "5"},
    {"{}", MESSAGE_WRONG, -32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", MESSAGE_NOTIFICATION, 0, ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":3}",
	MESSAGE_NOTIFICATION, 0, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":"
     "3}}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"0"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"\"\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"-1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "9007199254740993"},
    {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "99999999999999999999"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "\"\\u0061\""},
    {"{\"method\":\"x\",\"id\":1,\"jsonrpc\":\"2.0\",\"id\":\"last\"}",
	MESSAGE_REQUEST, 0, "\"last\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\\u0000\"}",
	MESSAGE_REQUEST, 0, "1"},
};

static void
lines_are_classified_by_the_table(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(kind_rows) / sizeof(kind_rows[0]); i++) {
		const struct kind_row *row = &kind_rows[i];
		struct json_span line = {row->line, strlen(row->line)};
		struct message m;

		message_read(&m, &line);
		if (m.kind != row->kind)
			fail_msg("%s: kind %d, not %d", row->line, m.kind,
			    row->kind);
		assert_int_equal(row->code, m.code);
		assert_int_equal(strlen(row->id), m.id.len);
		assert_memory_equal(
		    row->id, m.id.len == 0 ? "" : m.id.bytes, m.id.len);
		message_clear(&m);
	}
}

static void
an_id_that_the_cut_goes_through_is_none(void **state)
{
	struct json_span line = {"{\"method\":\"x\",\"id\":12", 20};
	struct message m;

	message_read_cut(&m, &line);
	assert_int_equal(MESSAGE_WRONG, m.kind);
	assert_int_equal(0, m.id.len);
	line = (struct json_span){"{\"id\":12,\"result\":{},\"x\":\"", 26};
	message_read_cut(&m, &line);
	assert_int_equal(MESSAGE_DROPPED, m.kind);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_are_classified_by_the_table),
	    cmocka_unit_test(an_id_that_the_cut_goes_through_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
