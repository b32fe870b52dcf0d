/* No line of mcpd's is longer than 1 MiB, whatever is asked (mcp.md 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/id.h"
#include "mcpd/lines.h"
#include "mcpd/message.h"

#define BATCH 32
#define META "io.modelcontextprotocol/"
#define GET                                                 \
	"\"method\":\"tools/call\",\"params\":{\"name\":"   \
	"\"basecamp_connect\",\"arguments\":{\"action\":\"" \
	"get_dispatch\"}}"
#define READ                                                           \
	"\"method\":\"tools/call\",\"params\":{\"name\":"              \
	"\"basecamp_thread\",\"arguments\":{\"action\":\"read\",\"par" \
	"ams\":{\"event_id\":101}}}"

/* ---- what is said ------------------------------------------------------- */

static char *
many(char c, size_t count)
{
	char *text = xmalloc(count + 1);

	memset(text, c, count);
	text[count] = '\0';
	return text;
}

/* The longest id that is echoed, and its number. */
static void
add_id(struct buffer *b, int number)
{
	char *rest = many('i', ID_MAX - 5);

	buffer_printf(b, "\"%03d%s\"", number, rest);
	free(rest);
}

/* COUNT requests of that kind on one line. */
static void
say_batch(struct world *w, int count, const char *request)
{
	struct buffer line = {0};
	int i;

	for (i = 0; i < count; i++) {
		buffer_printf(&line,
		    "%c{\"jsonrpc\":\"2.0\",\"id\":", i == 0 ? '[' : ',');
		add_id(&line, i);
		buffer_printf(&line, ",%s}", request);
	}
	buffer_add_char(&line, ']');
	world_say(w, line.bytes);
	buffer_free(&line);
}

/* The next line, within its bound; released by the caller. */
static json_t *
hear_line(struct world *w)
{
	const char *line = world_hear(w);
	json_t *json;

	assert_non_null(line);
	assert_in_range(strlen(line), 1, LINES_MCPD_MAX);
	json = json_loads(line, 0, NULL);
	assert_non_null(json);
	return json;
}

/* Each id once, and the one that is asked for: its result. */
static const json_t *
result_of(const json_t *batch, int number)
{
	const json_t *response, *found = NULL;
	size_t i;

	json_array_foreach (batch, i, response) {
		if (atoi(member_text(response, "id")) != number)
			continue;
		assert_null(found);
		found = json_object_get(response, "result");
	}
	assert_non_null(found);
	return found;
}

static json_t *
text_json(const json_t *result, bool is_error)
{
	const char *text;
	json_t *json;
	int failed;

	assert_int_equal(0,
	    json_unpack((json_t *)result, "{s:[{s:s}],s:b}", "content", "text",
		&text, "isError", &failed));
	assert_int_equal(is_error, failed);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	return json;
}

/* ---- what ledger and intake answer -------------------------------------- */

struct snapshot {
	const char *title;
	const char *content;
};
static struct snapshot snapshot;

static void
give_snapshot(struct world *w, const struct reply_to *to, const struct msg *m)
{
	json_t *json = json_pack(
	    "{s:s,s:s}", "title", snapshot.title, "content", snapshot.content);
	char *text = json_dumps(json, JSON_COMPACT);
	struct msg reply = {.type = MSG_INSTRUCTION};

	reply.instruction = (struct msg_instruction){.found = true,
	    .event_id = 101,
	    .event_type = "comment.created",
	    .trigger = "mentioned",
	    .delivery = "exposed",
	    .snapshot = {text, strlen(text)}};
	peer_reply(to, &reply);
	free(text);
	json_decref(json);
}

static char *links;

static void
give_receipt(struct world *w, const struct reply_to *to, const struct msg *m)
{
	struct msg reply = {.type = MSG_REPORT_IS};

	reply.report_is = (struct msg_report_is){.event_id = 101,
	    .delivery = "completed",
	    .outcome = "succeeded",
	    .links = {links, strlen(links)}};
	peer_reply(to, &reply);
}

static char *page;

static void
give_page(struct world *w, const struct reply_to *to, const struct msg *m)
{
	struct msg reply = {.type = MSG_THREAD};

	reply.thread.json = (struct blob){page, strlen(page)};
	peer_reply(to, &reply);
}

/* ---- one answer --------------------------------------------------------- */

/* A line of ours with as many BYTES in the middle as there may be. */
static void
say_long(struct world *w, const char *before, char byte, const char *behind)
{
	struct buffer line = {0};
	char *text;

	buffer_add_text(&line, "{\"jsonrpc\":\"2.0\",\"id\":");
	add_id(&line, 7);
	buffer_add_text(&line, before);
	text = many(byte, MESSAGE_LINE_MAX - line.len - strlen(behind));
	buffer_add_text(&line, text);
	buffer_add_text(&line, behind);
	free(text);
	world_say(w, line.bytes);
	buffer_free(&line);
}

/* A byte that six are written for. */
#define DEL '\177'

static void
what_is_echoed_is_cut(void **state)
{
	static const struct {
		const char *before, *behind;
		int code;
	} rows[] = {
	    {",\"method\":\"", "\"}", RPC_METHOD_NOT_FOUND},
	    {",\"method\":\"tools/call\",\"params\":{\"name\":\"", "\"}}",
		RPC_INVALID_PARAMS},
	    {",\"method\":\"tools/list\",\"params\":{\"_meta\":{\"" META
	     "protocolVersion\":\"",
		"\"}}}", RPC_VERSION_NOT_SERVED},
	    {",\"method\":\"tools/list\",\"params\":{\"cursor\":\"", "\"}}",
		RPC_INVALID_PARAMS},
	};
	struct world *w = world_open();
	json_t *answer;
	size_t i;
	int code;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		say_long(w, rows[i].before, DEL, rows[i].behind);
		answer = hear_line(w);
		assert_int_equal(7, atoi(member_text(answer, "id")));
		assert_int_equal(0,
		    json_unpack(answer, "{s:{s:i}}", "error", "code", &code));
		assert_int_equal(rows[i].code, code);
		json_decref(answer);
	}
	world_free(w);
}

static void
the_longest_result_fits_alone(void **state)
{
	char *content = many(DEL, 200000);
	struct world *w = world_open();
	struct buffer line = {0};
	json_t *answer, *json;

	snapshot = (struct snapshot){"T", content};
	w->answer = give_snapshot;
	buffer_add_text(&line, "{\"jsonrpc\":\"2.0\",\"id\":");
	add_id(&line, 1);
	buffer_add_text(&line, "," GET "}");
	world_say(w, line.bytes);
	answer = hear_line(w);
	json = text_json(json_object_get(answer, "result"), false);
	assert_true(json_is_true(json_object_get(
	    json_object_get(json, "instruction"), "content_truncated")));
	json_decref(json);
	json_decref(answer);
	buffer_free(&line);
	free(content);
	world_free(w);
}

/* ---- a batch ------------------------------------------------------------ */

static struct world *
batch_world(world_answer answer)
{
	struct world *w = world_new();

	world_initialize(w, "2025-03-26");
	w->answer = answer;
	return w;
}

/* The worker has the event now: it is told less, and no error. */
static void
contents_make_room_in_a_batch(void **state)
{
	char *content = many(DEL, 200000);
	struct world *w = batch_world(give_snapshot);
	json_t *batch, *json, *instruction;
	int i;

	snapshot = (struct snapshot){"T", content};
	say_batch(w, BATCH, GET);
	batch = hear_line(w);
	assert_int_equal(BATCH, json_array_size(batch));
	for (i = 0; i < BATCH; i++) {
		json = text_json(result_of(batch, i), false);
		instruction = json_object_get(json, "instruction");
		assert_true(json_is_true(
		    json_object_get(instruction, "content_truncated")));
		assert_in_range(
		    strlen(member_text(instruction, "content")), 3000, 9000);
		json_decref(json);
	}
	json_decref(batch);
	free(content);
	world_free(w);
}

static void
what_fits_into_a_batch_is_whole(void **state)
{
	char *content = many('c', 40000);
	struct world *w = batch_world(give_snapshot);
	json_t *batch, *json, *instruction;
	int i;

	snapshot = (struct snapshot){"T", content};
	say_batch(w, BATCH / 2, GET);
	batch = hear_line(w);
	for (i = 0; i < BATCH / 2; i++) {
		json = text_json(result_of(batch, i), false);
		instruction = json_object_get(json, "instruction");
		assert_string_equal(
		    content, member_text(instruction, "content"));
		assert_null(json_object_get(instruction, "content_truncated"));
		json_decref(json);
	}
	json_decref(batch);
	free(content);
	world_free(w);
}

/* Or it is said to have been left out. */
static bool
is_there(const json_t *object, const char *name)
{
	const json_t *names = json_object_get(object, "left_out");

	if (json_object_get(object, name) != NULL) {
		assert_null(names);
		return true;
	}
	assert_int_equal(1, json_array_size(names));
	assert_string_equal(name, json_string_value(json_array_get(names, 0)));
	return false;
}

/* A title of what Basecamp lets nobody write is left out, and said to be. */
static void
a_title_makes_room_in_a_batch(void **state)
{
	char *title = many(DEL, 7000);
	struct world *w = batch_world(give_snapshot);
	json_t *batch, *json, *recording;
	int i, whole = 0;

	snapshot = (struct snapshot){title, "Do it"};
	say_batch(w, BATCH, GET);
	batch = hear_line(w);
	for (i = 0; i < BATCH; i++) {
		json = text_json(result_of(batch, i), false);
		recording = json_object_get(
		    json_object_get(json, "instruction"), "recording");
		assert_non_null(json_object_get(recording, "recording_id"));
		whole += is_there(recording, "title");
		json_decref(json);
	}
	/* There is room for 24 of them. */
	assert_in_range(whole, 20, 24);
	json_decref(batch);
	free(title);
	world_free(w);
}

#define PING "\"method\":\"ping\""
#define COMPLETE                                                   \
	"\"method\":\"tools/call\",\"params\":{\"name\":"          \
	"\"basecamp_connect\",\"arguments\":{\"action\":"          \
	"\"complete_dispatch\",\"params\":{\"event_id\":101,\"out" \
	"come\":\"succeeded\"}}}"

/* As many, and as long, as a report may have. */
static void
make_links(void)
{
	char *path = many('l', 2048 - 9);
	json_t *list = json_array();
	int i;

	for (i = 0; i < 20; i++)
		(void)json_array_append_new(
		    list, json_sprintf("https://%s", path));
	links = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	free(path);
}

/* A receipt says what stands, if not always with every link of the report. */
static void
a_receipt_is_not_lost_in_a_batch(void **state)
{
	struct world *w = batch_world(give_receipt);
	json_t *batch, *json;
	int i, whole = 0;

	make_links();
	say_batch(w, BATCH, COMPLETE);
	batch = hear_line(w);
	assert_int_equal(BATCH, json_array_size(batch));
	for (i = 0; i < BATCH; i++) {
		json = text_json(result_of(batch, i), false);
		assert_string_equal("completed", member_text(json, "delivery"));
		assert_string_equal("succeeded", member_text(json, "outcome"));
		whole += is_there(json, "links");
		json_decref(json);
	}
	/* There is room for 24 of them. */
	assert_in_range(whole, 20, 24);
	json_decref(batch);
	free(links);
	world_free(w);
}

static void
give_either(struct world *w, const struct reply_to *to, const struct msg *m)
{
	(m->type == MSG_READ_THREAD ? give_page : give_receipt)(w, to, m);
}

/* What needs little leaves the rest to what needs more, whoever comes first. */
static void
who_needs_more_has_what_others_leave(void **state)
{
	static const int places[] = {0, BATCH / 2, BATCH - 1};
	struct world *w = batch_world(give_either);
	struct buffer line = {0};
	json_t *batch, *json;
	size_t k;
	char empty[] = "{}";
	int i;

	make_links();
	page = empty;
	for (k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
		line.len = 0;
		for (i = 0; i < BATCH; i++) {
			buffer_printf(&line, "%c{\"jsonrpc\":\"2.0\",\"id\":",
			    i == 0 ? '[' : ',');
			add_id(&line, i);
			buffer_printf(&line, ",%s}",
			    i == places[k] ? COMPLETE
				: k == 1   ? PING
					   : READ);
		}
		buffer_add_char(&line, ']');
		world_say(w, line.bytes);
		batch = hear_line(w);
		assert_int_equal(BATCH, json_array_size(batch));
		json = text_json(result_of(batch, places[k]), false);
		assert_true(is_there(json, "links"));
		json_decref(json);
		json_decref(batch);
	}
	buffer_free(&line);
	free(links);
	world_free(w);
}

/* Pings, and two pages; the length of the line, and whether both are there. */
static size_t
say_pages(struct world *w, size_t len, bool *are_whole)
{
	struct buffer json = {0}, line = {0};
	char *text = many('c', len);
	const char *answer;
	int i;

	buffer_printf(&json, "{\"x\":\"%s\"}", text);
	page = json.bytes;
	for (i = 0; i < BATCH; i++)
		buffer_printf(&line, "%c{\"jsonrpc\":\"2.0\",\"id\":%d,%s}",
		    i == 0 ? '[' : ',', i, i % 16 == 0 ? READ : PING);
	buffer_add_char(&line, ']');
	world_say(w, line.bytes);
	answer = world_hear(w);
	assert_non_null(answer);
	*are_whole = strstr(answer, "too long") == NULL;
	len = strlen(answer);
	buffer_free(&json);
	buffer_free(&line);
	free(text);
	return len;
}

/* To the byte. */
static void
a_batch_fills_its_line(void **state)
{
	struct world *w = batch_world(give_page);
	bool are_whole;
	size_t len = say_pages(w, 1000, &are_whole);

	assert_true(are_whole);
	len = 1000 + (LINES_MCPD_MAX - len) / 2;
	assert_in_range(
	    say_pages(w, len, &are_whole), LINES_MCPD_MAX - 1, LINES_MCPD_MAX);
	assert_true(are_whole);
	assert_in_range(say_pages(w, len + 1, &are_whole), 1, LINES_MCPD_MAX);
	assert_false(are_whole);
	world_free(w);
}

/* ---- what cannot be made to fit ----------------------------------------- */

static void
check_too_long(const json_t *result)
{
	json_t *json = text_json(result, true);

	assert_string_equal("unavailable", member_text(json, "error"));
	assert_non_null(strstr(member_text(json, "message"), "too long"));
	json_decref(json);
}

/* A page of nothing but numbers, which no intake of ours makes. */
static void
what_cannot_be_cut_is_an_error(void **state)
{
	struct world *w = batch_world(give_page);
	struct buffer json = {0};
	json_t *answer;
	int i;

	buffer_add_text(&json, "{\"comments\":[{\"id\":1}");
	for (i = 0; i < 45000; i++)
		buffer_add_text(&json, ",{\"id\":1}");
	buffer_add_text(&json, "]}");
	page = json.bytes;
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":\"1\"," READ "}");
	answer = hear_line(w);
	check_too_long(json_object_get(answer, "result"));
	json_decref(answer);
	say_batch(w, 2, READ);
	answer = hear_line(w);
	for (i = 0; i < 2; i++)
		check_too_long(result_of(answer, i));
	json_decref(answer);
	buffer_free(&json);
	world_free(w);
}

/* Its cursors count bytes: what is cut of it would be read by nobody. */
static void
a_page_in_a_batch_is_whole_or_an_error(void **state)
{
	char *content = many(DEL, 9000);
	struct world *w = batch_world(give_page);
	json_t *list, *batch, *json;
	bool is_whole;
	int i, whole = 0;

	list = json_pack("{s:[{s:s,s:b,s:s}]}", "comments", "content", content,
	    "content_truncated", 1, "more", "c.1.2.9000");
	page = json_dumps(list, JSON_COMPACT);
	say_batch(w, BATCH, READ);
	batch = hear_line(w);
	assert_int_equal(BATCH, json_array_size(batch));
	for (i = 0; i < BATCH; i++) {
		is_whole = json_is_false(
		    json_object_get(result_of(batch, i), "isError"));
		whole += is_whole;
		if (!is_whole) {
			check_too_long(result_of(batch, i));
			continue;
		}
		json = text_json(result_of(batch, i), false);
		assert_true(json_equal(list, json));
		json_decref(json);
	}
	/* There is room for 18 of them. */
	assert_in_range(whole, 16, 18);
	json_decref(batch);
	say_batch(w, BATCH / 2, READ);
	batch = hear_line(w);
	json = text_json(result_of(batch, 0), false);
	assert_true(json_equal(list, json));
	json_decref(json);
	json_decref(batch);
	json_decref(list);
	free(page);
	free(content);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_echoed_is_cut),
	    cmocka_unit_test(the_longest_result_fits_alone),
	    cmocka_unit_test(contents_make_room_in_a_batch),
	    cmocka_unit_test(what_fits_into_a_batch_is_whole),
	    cmocka_unit_test(a_title_makes_room_in_a_batch),
	    cmocka_unit_test(a_receipt_is_not_lost_in_a_batch),
	    cmocka_unit_test(who_needs_more_has_what_others_leave),
	    cmocka_unit_test(a_batch_fills_its_line),
	    cmocka_unit_test(what_cannot_be_cut_is_an_error),
	    cmocka_unit_test(a_page_in_a_batch_is_whole_or_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
