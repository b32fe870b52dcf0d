/*
 * What the bridge keeps is what mcpd answers, no line more and none less: the
 * same lines are given to both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/message.h"
#include "mcpd/outline.h"
#include "mcpd/store.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define GET(id)                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\"," \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{\""   \
	"action\":\"get_dispatch\"}}}"
#define CANCEL(id)                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":" id "}}"

static const char *const lines[] = {
    PING("1"),
    PING("\"a\\u0000\""),
    PING("-0"),
    PING("99999999999999999999"),
    PING("null"),
    PING("1.5"),
    PING("{}"),
    PING("[1]"),
    PING("1") "\r",
    " \t" PING("1") " ",
    PING("1") " x",
    PING("1") PING("2"),
    "\xef\xbb\xbf" PING("1"),
    "",
    "7",
    "1e400",
    "\"x\"",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":null,\"error\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":5}",
    "{\"id\":5,\"method\":\"x\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\"",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"a\tb\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"params\":[1]}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"y\":1e400}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7,\"y\":1e400}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":-1e400}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7,\"result\":-1e400}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"a\\u0000\":1}",
    "{\"jsonrpc\":\"2.0\",\"a\\u0000\":1,\"id\":5,\"method\":\"x\"}",
    "{\"id\":5,\"id\":6,\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
    "{\"id\":5,\"id\":{},\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
    "{\"\\u0069d\":5,\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
    "{\"x\":{\"id\":5,\"method\":\"x\"},\"jsonrpc\":\"2.0\"}",
    CANCEL("9"),
    "[]",
    "[[" PING("1") "]]",
    "[" PING("1") "," PING("2") "]",
    "[" PING("1") ",7," PING("null") "," CANCEL("9") "]",
    "[" CANCEL("9") "]",
    "[" PING("1") ",{\"x\":1e400}]",
    "[" PING("1") ",",
};

/* ---- one line, two judges ------------------------------------------------ */

/* Would an answer carry an id? */
static bool
is_answered(const struct message *m)
{
	return m->id.len != 0 &&
	    (m->kind == MESSAGE_REQUEST || m->kind == MESSAGE_WRONG);
}

static void
compare(const struct json_span *line, const struct message *m)
{
	struct outline o;

	outline_read(&o, line);
	if ((o.kind == OUTLINE_ANSWERED) != is_answered(m) ||
	    (o.kind == OUTLINE_BATCH) != (m->kind == MESSAGE_BATCH) ||
	    (o.kind == OUTLINE_NOTIFICATION) !=
		(m->kind == MESSAGE_NOTIFICATION))
		fail_msg("%.100s: outline %d, message %d", line->bytes, o.kind,
		    m->kind);
	if (o.kind != OUTLINE_ANSWERED)
		return;
	assert_int_equal(m->id.len, o.id.len);
	assert_memory_equal(m->id.bytes, o.id.bytes, o.id.len);
}

static void
check(const char *bytes, size_t len)
{
	struct json_span line = {bytes, len};
	struct message m;

	message_read(&m, &line);
	compare(&line, &m);
	message_clear(&m);
}

static void
a_line_has_one_meaning(void **state)
{
	size_t i;

	for (i = 0; i < COUNT(lines); i++)
		check(lines[i], strlen(lines[i]));
}

/* Every row with a byte less, another byte, or a byte's end. */
static void
so_has_a_broken_line(void **state)
{
	static const char others[] = "\"\\{}[],:01e.- x\xc3";
	size_t i, at, k, len;
	char *copy;

	for (i = 0; i < COUNT(lines); i++) {
		len = strlen(lines[i]);
		for (at = 0; at < len; at++) {
			check(lines[i], at);
			copy = xmemdup(lines[i], len);
			for (k = 0; k < sizeof(others) - 1; k++) {
				copy[at] = others[k];
				check(copy, len);
			}
			memmove(copy + at, copy + at + 1, len - at - 1);
			check(copy, len - 1);
			free(copy);
		}
	}
}

/* Too deep, too many, and then the id, or before it. */
static void
so_has_a_line_of_too_much(void **state)
{
	static const char *const forms[][2] = {
	    {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"y\":", "}"},
	    {"{\"jsonrpc\":\"2.0\",\"y\":", ",\"id\":5,\"method\":\"x\"}"},
	    {"{\"jsonrpc\":\"2.0\",\"id\":5,\"y\":", ",\"result\":1}"},
	    {"{\"id\":5,\"result\":1,\"y\":", ",\"method\":\"x\"}"},
	    {"[" PING("1") ",", "]"},
	};
	struct buffer deep[3] = {{0}}, many = {0};
	char *line;
	size_t i, k;
	int n;

	for (k = 0; k < 3; k++) {
		n = (int[]){MESSAGE_DEPTH_MAX - 1, MESSAGE_DEPTH_MAX,
		    JSON_DEPTH_MOST}[k];
		for (i = 0; i < 2 * (size_t)n; i++)
			buffer_add_char(&deep[k], i < (size_t)n ? '[' : ']');
	}
	for (i = 0; i <= MESSAGE_MEMBERS_MAX; i++)
		buffer_add_text(&many, i == 0 ? "[0" : ",0");
	buffer_add_char(&many, ']');
	for (i = 0; i < COUNT(forms); i++) {
		for (k = 0; k < 4; k++) {
			n = xasprintf(&line, "%s%s%s", forms[i][0],
			    k == 3 ? many.bytes : deep[k].bytes, forms[i][1]);
			check(line, (size_t)n);
			free(line);
		}
	}
	for (k = 0; k < 3; k++)
		buffer_free(&deep[k]);
	buffer_free(&many);
}

/* What mcpd sees of LINE, as its own reader of lines has it. */
static void
check_long(const struct json_span *line)
{
	struct lines l;
	struct json_span seen;
	struct message m;
	enum lines_got got;

	lines_init(&l, MESSAGE_LINE_MAX);
	memcpy(lines_room(&l, line->len + 1), line->bytes, line->len);
	lines_added(&l, line->len + 1);
	l.bytes[line->len] = '\n';
	got = lines_next(&l, &seen);
	assert_int_not_equal(LINES_NONE, got);
	if (got == LINES_CUT)
		message_read_cut(&m, &seen);
	else
		message_read(&m, &seen);
	compare(line, &m);
	message_clear(&m);
	lines_free(&l);
}

static void
so_has_a_line_that_is_cut(void **state)
{
	static const char *const forms[][2] = {
	    {"{\"id\":5,\"x\":\"", "\",\"method\":\"x\"}"},
	    {"{\"x\":\"", "\",\"id\":5,\"method\":\"x\"}"},
	    {"{\"x\":\"", "\",\"id\":5}"},
	    {"{\"x\":\"", "\",\"id\":5"},
	    {"{\"id\":5,\"result\":\"\",\"x\":\"", "\"}"},
	    {"{\"id\":5,\"x\":\"", "\r"},
	    {"[" PING("5") ",\"", "\"]"},
	};
	struct json_span line;
	char *text = xmalloc(MESSAGE_LINE_MAX + 2);
	size_t i, more;

	for (i = 0; i < COUNT(forms); i++) {
		for (more = 0; more <= 2; more++) {
			line =
			    (struct json_span){text, MESSAGE_LINE_MAX + more};
			memset(text, 'x', line.len);
			memcpy(text, forms[i][0], strlen(forms[i][0]));
			memcpy(text + line.len - strlen(forms[i][1]),
			    forms[i][1], strlen(forms[i][1]));
			check_long(&line);
		}
	}
	free(text);
}

/* ---- a store beside an mcpd ---------------------------------------------- */

static void
hear_all(struct world *w, struct store *s)
{
	struct json_span heard;
	const char *line;

	while ((line = world_hear(w)) != NULL) {
		heard = (struct json_span){line, strlen(line)};
		assert_true(store_received(s, &heard));
	}
}

static void
say(struct world *w, struct store *s, const char *line)
{
	struct json_span span = {line, strlen(line)};

	store_sent(s, &span);
	world_say(w, line);
}

#define OPEN(version)                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\","    \
	"\"params\":{\"protocolVersion\":\"" version                         \
	"\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":" \
	"\"1\"}}}"
#define OLD OPEN("2025-03-26")
#define NEW OPEN("2025-11-25")

static struct world *
opened(struct store *s, const char *initialize)
{
	struct world *w = world_new();

	store_init(s);
	say(w, s, initialize);
	hear_all(w, s);
	return w;
}

static void
closed(struct world *w, struct store *s)
{
	store_clear(s);
	world_free(w);
}

/* At its bound the agent is not read any more: nothing may stay behind. */
static void
nothing_is_waited_for_in_vain(void **state)
{
	static const char *const sessions[] = {NEW, OLD};
	struct world *w;
	struct store s;
	size_t i, k;

	for (k = 0; k < COUNT(sessions); k++) {
		w = opened(&s, sessions[k]);
		for (i = 0; i < COUNT(lines); i++) {
			say(w, &s, lines[i]);
			hear_all(w, &s);
			if (!store_is_empty(&s))
				fail_msg("%s: kept", lines[i]);
		}
		closed(w, &s);
	}
}

static const struct cancel_row {
	const char *lines[3]; /* NULL: no more */
	size_t kept;
} cancel_rows[] = {
    {{GET("1"), CANCEL("1")}, 0},
    {{GET("\"a\""), CANCEL("\"\\u0061\"")}, 0},
    {{GET("1"), CANCEL("\"1\"")}, 1},
    {{GET("1"), GET("1"), CANCEL("1")}, 0},
    {{"[" GET("1") "]", GET("1"), CANCEL("1")}, 0},
    {{"[" GET("1") "," CANCEL("1") "]"}, 0},
    {{"[" CANCEL("1") "," GET("1") "]"}, 1},
    {{"[" GET("1") "," GET("2") "]", CANCEL("2"), CANCEL("1")}, 0},
    {{GET("1"), "[" CANCEL("1") "]"}, 0},
    {{GET("1"),
	 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications\\/cancelled\","
	 "\"params\":{\"requestId\":1}}"},
	0},
    {{GET("1"),
	 "{\"method\":\"notifications/cancelled\","
	 "\"params\":{\"requestId\":1}}"},
	1},
    {{GET("1"), CANCEL("1.0")}, 1},
};

/* What mcpd will not answer is not kept, and what it will is. */
static void
cancelling_is_understood_alike(void **state)
{
	const struct cancel_row *row;
	struct world *w;
	struct store s;
	size_t i, k;

	for (i = 0; i < COUNT(cancel_rows); i++) {
		row = &cancel_rows[i];
		w = opened(&s, OLD);
		for (k = 0; k < 3 && row->lines[k] != NULL; k++)
			say(w, &s, row->lines[k]);
		world_expect_silence(w);
		if (row->kept != s.unit_count)
			fail_msg("row %zu: %zu kept", i, s.unit_count);
		for (k = 0; k < w->asked_count; k++)
			world_answer_one(w, k);
		hear_all(w, &s);
		assert_true(store_is_empty(&s));
		closed(w, &s);
	}
}

/* What a new mcpd would hear behind the opening. */
static void
expect_kept(struct store *s, const char *line)
{
	struct buffer out = {0};
	size_t len = strlen(line);

	store_replay(s, &out);
	assert_true(out.len > len);
	assert_memory_equal(line, out.bytes + out.len - len - 1, len);
	assert_int_equal('\n', out.bytes[out.len - len - 2]);
	buffer_free(&out);
}

/* An id twice, alone and in a batch: each answer ends its own. */
static void
a_batch_is_not_taken_for_a_request(void **state)
{
	struct world *w;
	struct store s;

	w = opened(&s, OLD);
	say(w, &s, "[" GET("1") "," GET("2") "]");
	say(w, &s, PING("1"));
	hear_all(w, &s);
	assert_int_equal(1, s.unit_count);
	expect_kept(&s, "[" GET("1") "," GET("2") "]");
	world_answer_one(w, 0);
	world_answer_one(w, 1);
	hear_all(w, &s);
	assert_true(store_is_empty(&s));
	say(w, &s, GET("1"));
	say(w, &s, "[" PING("1") "]");
	hear_all(w, &s);
	assert_int_equal(1, s.unit_count);
	expect_kept(&s, GET("1"));
	closed(w, &s);
}

#define REFUSED                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\"," \
	"\"params\":{\"protocolVersion\":\"2025-03-26\"}}"
#define BATCH "[" GET("1") "]"

/* Said in one breath with the initialize before it, perhaps the second one. */
static const struct breath_row {
	const char *before; /* the session's; NULL: none yet */
	const char *lines[4];
	size_t kept; /* once mcpd has answered the initializes */
} breath_rows[] = {
    {NULL, {OLD, BATCH}, 1},
    {NULL, {NEW, BATCH}, 0},
    {NULL, {REFUSED, BATCH}, 0},
    {NULL, {BATCH, OLD}, 0},
    {OLD, {REFUSED, BATCH}, 1},
    {OLD, {BATCH, NEW, BATCH}, 1},
    {OLD, {NEW, BATCH, OLD, "[" GET("2") "]"}, 1},
    {NEW, {OLD, BATCH, NEW, BATCH}, 1},
};

static void
a_batch_belongs_to_the_initialize_before_it(void **state)
{
	const struct breath_row *row;
	struct json_span span;
	struct world *w;
	struct store s;
	size_t i, k;

	for (i = 0; i < COUNT(breath_rows); i++) {
		row = &breath_rows[i];
		w = opened(&s, row->before == NULL ? PING("0") : row->before);
		for (k = 0; k < 4 && row->lines[k] != NULL; k++) {
			span = (struct json_span){
			    row->lines[k], strlen(row->lines[k])};
			store_sent(&s, &span);
		}
		for (k = 0; k < 4 && row->lines[k] != NULL; k++)
			world_say(w, row->lines[k]);
		hear_all(w, &s);
		if (row->kept != s.unit_count)
			fail_msg("row %zu: %zu kept", i, s.unit_count);
		assert_int_equal(row->kept, w->asked_count);
		for (k = 0; k < w->asked_count; k++)
			world_answer_one(w, k);
		hear_all(w, &s);
		assert_true(store_is_empty(&s));
		closed(w, &s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_line_has_one_meaning),
	    cmocka_unit_test(so_has_a_broken_line),
	    cmocka_unit_test(so_has_a_line_of_too_much),
	    cmocka_unit_test(so_has_a_line_that_is_cut),
	    cmocka_unit_test(nothing_is_waited_for_in_vain),
	    cmocka_unit_test(cancelling_is_understood_alike),
	    cmocka_unit_test(a_batch_is_not_taken_for_a_request),
	    cmocka_unit_test(a_batch_belongs_to_the_initialize_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
