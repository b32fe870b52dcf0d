/* What a worker may send (mcp.md 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/call.h"
#include "mcpd/message.h"

#define CALL(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{\"action\":" \
	"\"ack_dispatch\",\"params\":{\"event_id\":101}}}}"
/* ---- limits ----------------------------------------------------------- */

static void
one_byte_at_a_time(void **state)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\",\"method\":\"ping\"}"
	    "\r\n\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
	struct world *w = world_new();
	size_t i;

	for (i = 0; i < sizeof(line) - 1; i++)
		world_write(w, line + i, 1);
	world_expect(
	    w, "{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\",\"result\":{}}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
	world_free(w);
}

/* A ping of exactly LEN bytes, its id where it is said. */
static char *
long_ping(size_t len, bool id_first)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":9,";
	char *line = xmalloc(len + 2), tail[64];
	size_t at = 0;

	memset(line, 'a', len);
	(void)snprintf(tail, sizeof(tail), "\",%s\"method\":\"ping\"}\n",
	    id_first ? "" : "\"jsonrpc\":\"2.0\",\"id\":9,");
	if (id_first) {
		memcpy(line, head, sizeof(head) - 1);
		at = sizeof(head) - 1;
	} else {
		line[at++] = '{';
	}
	memcpy(line + at, "\"x\":\"", 5);
	memcpy(line + len + 1 - strlen(tail), tail, strlen(tail) + 1);
	return line;
}

static void
a_line_has_its_bound(void **state)
{
	struct world *w = world_new();
	char *line = long_ping(MESSAGE_LINE_MAX, true);

	world_write(w, line, MESSAGE_LINE_MAX + 1);
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
	free(line);
	line = long_ping(MESSAGE_LINE_MAX + 1, true);
	world_write(w, line, MESSAGE_LINE_MAX + 2);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too long\"}}");
	free(line);
	line = long_ping(MESSAGE_LINE_MAX + 100, false);
	world_write(w, line, MESSAGE_LINE_MAX + 101);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too long\"}}");
	free(line);
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"ping\"}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{}}");
	world_free(w);
}

static void
nesting_has_its_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int depth, i;

	for (depth = MESSAGE_DEPTH_MAX - 1; depth <= MESSAGE_DEPTH_MAX;
	     depth++) {
		line.len = 0;
		buffer_add_text(&line,
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		    "\"ping\",\"x\":");
		for (i = 0; i < depth; i++)
			buffer_add_char(&line, '[');
		for (i = 0; i < depth; i++)
			buffer_add_char(&line, ']');
		buffer_add_char(&line, '}');
		world_say(w, line.bytes);
	}
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too deep or too large\"}}");
	buffer_free(&line);
	world_free(w);
}

static void
members_have_their_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int i;

	buffer_add_text(&line,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"x\":[0");
	for (i = 0; i < MESSAGE_MEMBERS_MAX; i++)
		buffer_add_text(&line, ",0");
	buffer_add_text(&line, "]}");
	world_say(w, line.bytes);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too deep or too large\"}}");
	buffer_free(&line);
	world_free(w);
}

/* JSON that no tree can hold; the id is told, for somebody waits for it. */
static void
names_and_numbers_have_their_bound(void **state)
{
	static const char *const lines[] = {
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"a\\u0000b\":1}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"x\":1E400}",
	};
	struct world *w = world_new();
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		world_say(w, lines[i]);
		world_expect(w,
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":"
		    "-32600,\"message\":\"A name or a number beyond what is "
		    "read\"}}");
	}
	world_free(w);
}

static void
calls_in_flight_have_their_bound(void **state)
{
	struct world *w = world_new();
	char *line;
	int i;

	world_initialize(w, "2025-11-25");
	for (i = 0; i < CALLS_IN_FLIGHT_MAX; i++) {
		(void)xasprintf(&line,
		    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
		    "\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{"
		    "\"action\":\"get_dispatch\"}}}",
		    i);
		world_say(w, line);
		free(line);
	}
	world_expect_silence(w);
	world_say(w, CALL("\"one more\""));
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"one more\",\"error\":{"
	    "\"code\":-32603,\"message\":\"Too many requests in "
	    "flight\"}}");
	/* What is answered inline is never counted. */
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	world_answer_one(w, 0);
	assert_non_null(world_hear(w));
	world_say(w, CALL("\"again\""));
	world_expect_silence(w);
	world_free(w);
}

#define READ_LINE                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/"               \
	"call\",\"params\":{"                                              \
	"\"name\":\"basecamp_thread\",\"arguments\":{\"action\":\"read\"," \
	"\"params\":{\"event_id\":101}}}}"
#define CANCEL_LINE                                                    \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":%d}}"

static void
answer_read(struct world *w, size_t i)
{
	struct msg reply = {.type = MSG_THREAD};

	assert_int_equal(MSG_READ_THREAD, w->asked[i]->type);
	reply.thread.json = (struct blob){"{}", 2};
	peer_reply(&w->to[i], &reply);
	world_turn(w);
}

static void
hear_page(struct world *w, int id)
{
	const char *line = world_hear(w);
	char want[32];

	assert_non_null(line);
	(void)snprintf(want, sizeof(want), "\"id\":%d,", id);
	assert_non_null(strstr(line, want));
	assert_non_null(strstr(line, "\"isError\":false"));
}

static void
say_reads(struct world *w, int first, int end)
{
	char *line;

	for (; first < end; first++) {
		(void)xasprintf(&line, READ_LINE, first);
		world_say(w, line);
		free(line);
	}
}

static void
say_cancel(struct world *w, int id)
{
	char *line;

	(void)xasprintf(&line, CANCEL_LINE, id);
	world_say(w, line);
	free(line);
}

/* As many as may be in flight, though intake takes fewer: one by one. */
static void
reads_wait_for_their_turn(void **state)
{
	struct world *w = world_open();
	int i;

	say_reads(w, 0, CALLS_IN_FLIGHT_MAX);
	world_expect_silence(w);
	for (i = 0; i < CALLS_IN_FLIGHT_MAX; i++) {
		assert_int_equal(i + READS_MOST < CALLS_IN_FLIGHT_MAX
			? i + READS_MOST
			: CALLS_IN_FLIGHT_MAX,
		    w->asked_count);
		answer_read(w, (size_t)i);
		hear_page(w, i);
	}
	world_expect_silence(w);
	world_free(w);
}

/* One that is cancelled has its turn until intake is done with it. */
static void
a_cancelled_read_gives_up_its_turn(void **state)
{
	struct world *w = world_open();
	size_t i;

	say_reads(w, 0, 8);
	say_cancel(w, 0);
	say_cancel(w, 4);
	assert_int_equal(4, w->asked_count);
	answer_read(w, 0);
	world_expect_silence(w);
	assert_int_equal(5, w->asked_count);
	for (i = 1; i < 7; i++) {
		answer_read(w, i);
		hear_page(w, (int)(i < 4 ? i : i + 1));
	}
	assert_int_equal(7, w->asked_count);
	world_free(w);
}

/* Their time is their own, and other calls do not wait for them. */
static void
a_read_does_not_wait_for_ever(void **state)
{
	struct world *w = world_open();
	struct call *call;
	const char *line;

	say_reads(w, 0, READS_MOST + 1);
	world_say(w, CALL("7"));
	assert_int_equal(READS_MOST + 1, w->asked_count);
	world_answer_one(w, READS_MOST);
	assert_non_null(strstr(world_hear(w), "\"id\":7,"));
	call = TAILQ_LAST(&w->server.calls, call_list);
	event_active(call->deadline, EV_TIMEOUT, 0);
	world_turn(w);
	line = world_hear(w);
	assert_non_null(line);
	assert_non_null(strstr(line, "\"id\":4,"));
	assert_non_null(strstr(line, "no answer within"));
	answer_read(w, 0);
	hear_page(w, 0);
	assert_int_equal(READS_MOST + 1, w->asked_count);
	world_free(w);
}

static void
a_batch_has_its_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int i, count;

	for (count = 32; count <= 33; count++) {
		world_initialize(w, "2025-03-26");
		line.len = 0;
		for (i = 0; i < count; i++)
			buffer_printf(&line,
			    "%c{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":"
			    "\"ping\"}",
			    i == 0 ? '[' : ',', i);
		buffer_add_char(&line, ']');
		world_say(w, line.bytes);
		if (count == 32)
			assert_non_null(world_hear(w));
		else
			world_expect_silence(w);
	}
	buffer_free(&line);
	world_free(w);
}

static void
names_have_their_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	const char *answer;

	buffer_add_text(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
	while (line.len < 5000)
		buffer_add_text(&line, "\xc3\xa4");
	buffer_add_text(&line, "\"}");
	world_say(w, line.bytes);
	answer = world_hear(w);
	assert_non_null(strstr(answer, "-32601"));
	assert_true(strlen(answer) < 512);
	buffer_free(&line);
	world_free(w);
}

static void
strange_strings_come_back_as_text(void **state)
{
	struct world *w = world_new();

	world_say(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\\ud800\",\"method\":"
	    "\"a\\u0000b\\ud800c\"}");
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\\ud800\",\"error\":"
	    "{\"code\":-32601,\"message\":\"Method not found: "
	    "a\\u0000b\xef\xbf\xbd"
	    "c\"}}");
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_byte_at_a_time),
	    cmocka_unit_test(a_line_has_its_bound),
	    cmocka_unit_test(nesting_has_its_bound),
	    cmocka_unit_test(members_have_their_bound),
	    cmocka_unit_test(names_and_numbers_have_their_bound),
	    cmocka_unit_test(calls_in_flight_have_their_bound),
	    cmocka_unit_test(reads_wait_for_their_turn),
	    cmocka_unit_test(a_cancelled_read_gives_up_its_turn),
	    cmocka_unit_test(a_read_does_not_wait_for_ever),
	    cmocka_unit_test(a_batch_has_its_bound),
	    cmocka_unit_test(names_have_their_bound),
	    cmocka_unit_test(strange_strings_come_back_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
