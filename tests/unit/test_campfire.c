/* A chat line, whose chat must be found first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http.h"
#include "common/log.h"
#include "tests/unit/decide_scene.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

#define DOCK(tools) "{\"id\":48699913,\"dock\":[" tools "]}"
#define TOOL(id) "{\"id\":" #id ",\"name\":\"chat\"}"
#define LINE(type) \
	RECORDING(5, 26909558, ",\"type\":\"Chat::Lines::" type "\"," ASKED)
#define IN_CHAT "key=campfire:31 reply=chat_line:31"

static void
test_line_in_dock(void **state)
{
	struct stage *s = scene_new("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "projects/48699913", 200, NULL,
	    DOCK(TOOL(30) ",{\"id\":9,\"name\":\"vault\"}," TOOL(31)));
	stage_answer(s, "chats/30/lines/5", 404, NULL, "");
	stage_answer(s, "chats/31/lines/5", 200, NULL, LINE("RichText"));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes,
	    "GET projects/48699913\nGET chats/30/lines/5\n"
	    "GET chats/31/lines/5\n"
	    "VERDICT 101 admitted trigger=mentioned ack " IN_CHAT));
	stage_free(s);
}

static void
test_line_in_listing(void **state)
{
	struct stage *s = scene_new("chat.line.created", STAGE_OPERATOR);

	(void)state;
	/* A project without a dock, and one chat of another bucket. */
	stage_answer(s, "projects/48699913", 404, NULL, "");
	stage_answer(s, "chats.json", 200, NULL,
	    "[{\"id\":30,\"bucket\":{\"id\":1}},"
	    "{\"id\":31,\"bucket\":{\"id\":48699913}}]");
	stage_answer(s, "chats/31/lines/5", 200, NULL, LINE("RichText"));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, IN_CHAT));
	assert_int_equal(stage_count(s, "GET"), 3);
	stage_free(s);
}

static void
test_line_nowhere(void **state)
{
	struct stage *s = scene_new("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "projects/48699913", 200, NULL, DOCK(TOOL(30)));
	stage_answer(s, "chats/30/lines/5", 404, NULL, "");
	stage_answer(s, "chats.json", 200, NULL,
	    "[{\"id\":30,\"bucket\":{\"id\":48699913}}]");
	scene_decide(s);
	/* Each is asked once, and that is an answer: no second attempt. */
	scene_expect(s,
	    "GET projects/48699913\nGET chats/30/lines/5\n"
	    "GET chats.json\n"
	    "VERDICT 101 blocked read_unresolved trigger= " NOTHING
	    " url=" BY_BOSS " timed\n");
	stage_free(s);
}

static void
test_line_failure_is_the_answer(void **state)
{
	struct stage *s = scene_new("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(
	    s, "projects/48699913", 200, NULL, DOCK(TOOL(30) "," TOOL(31)));
	stage_answer(s, "chats/30/lines/5", 403, NULL, "");
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET"), 2);
	stage_free(s);
}

static void
test_line_types(void **state)
{
	static const struct {
		const char *body, *want;
	} t[] = {
	    {LINE("Text"), "discarded not_addressed"},
	    {LINE("Code"), "discarded not_addressed"},
	    {LINE("Upload"), "discarded not_addressed"},
	    {LINE("Integration"), "admitted"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		s = scene_new("chat.line.created", STAGE_OPERATOR);
		stage_answer(s, "projects/48699913", 200, NULL, DOCK(TOOL(31)));
		stage_answer(s, "chats/31/lines/5", 200, NULL, t[i].body);
		scene_decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		stage_free(s);
	}
}

static void
test_too_many_chats(void **state)
{
	struct stage *s = scene_new("chat.line.created", STAGE_OPERATOR);
	struct buffer b = {0};
	int i;

	(void)state;
	s->config->limits[LIMIT_read_attempts] = 2;
	for (i = 0; i < 51; i++)
		buffer_printf(&b, "%s{\"id\":%d,\"name\":\"chat\"}",
		    i > 0 ? "," : "{\"id\":48699913,\"dock\":[", i + 100);
	buffer_add_text(&b, "]}");
	stage_answer(s, "projects/48699913", 200, NULL, b.bytes);
	for (i = 0; i < 100; i++)
		stage_answer(s, "chats/", 404, NULL, "");
	scene_decide(s);
	/* One is left untried: not known to be nowhere. */
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET chats/"), 100);
	buffer_free(&b);
	stage_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_line_in_dock),
	    cmocka_unit_test(test_line_in_listing),
	    cmocka_unit_test(test_line_nowhere),
	    cmocka_unit_test(test_line_failure_is_the_answer),
	    cmocka_unit_test(test_line_types),
	    cmocka_unit_test(test_too_many_chats),
	};
	struct error e;

	log_init("test_campfire", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
