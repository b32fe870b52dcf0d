/* Claude Code's wire: what each line means (dispatch.md 14.3, 14.4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/driver.h"

#define ID "11111111-2222-4333-8444-555555555555"
#define INIT(mode, session, servers)                                          \
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" session \
	"\",\"permissionMode\":\"" mode "\",\"mcp_servers\":" servers "}"
#define BASECAMP "{\"name\":\"basecamp\",\"status\":\"connected\"}"
#define GOOD INIT("acceptEdits", ID, "[" BASECAMP "]")

static struct driver_said
say(struct driver_session *s, const char *line)
{
	struct driver_said said;

	claude_driver.line(s, line, strlen(line), &said);
	return said;
}

/* Each init, alone, against a session that declared `servers`. */
static const struct {
	const char *servers, *line;
	enum driver_event event;
	const char *text;
} inits[] = {
    {"basecamp", GOOD, DRIVER_VERIFIED, ""},
    {"basecamp", INIT("bypassPermissions", ID, "[" BASECAMP "]"), DRIVER_UNSAFE,
	"reports another permission mode"},
    {"basecamp", INIT("acceptEdits", "other", "[" BASECAMP "]"), DRIVER_UNSAFE,
	"reports another session"},
    {"basecamp", INIT("acceptEdits", ID, "[]"), DRIVER_UNSAFE,
	"an MCP server is not connected"},
    {"basecamp",
	INIT("acceptEdits", ID,
	    "[{\"name\":\"basecamp\",\"status\":\"failed\"}]"),
	DRIVER_UNSAFE, "an MCP server is not connected"},
    {"basecamp,more", GOOD, DRIVER_UNSAFE, "an MCP server is not connected"},
    {"basecamp,more",
	INIT("acceptEdits", ID,
	    "[" BASECAMP ",{\"name\":\"more\",\"status\":\"connected\"}]"),
	DRIVER_VERIFIED, ""},
    {"basecamp",
	INIT("acceptEdits", ID,
	    "[" BASECAMP ",{\"name\":\"extra\",\"status\":\"failed\"}]"),
	DRIVER_VERIFIED, ""},
    {"basecamp", INIT("acceptEdits", ID, "7"), DRIVER_UNSAFE,
	"an MCP server is not connected"},
    {"basecamp", "{\"type\":\"system\",\"subtype\":\"init\"}", DRIVER_UNSAFE,
	"reports another permission mode"},
};

static void
init_is_held_against_what_was_asked(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(inits) / sizeof(inits[0]); i++) {
		struct driver_session *s =
		    claude_driver.open(ID, inits[i].servers);
		struct driver_said said = say(s, inits[i].line);

		assert_int_equal(inits[i].event, said.event);
		assert_string_equal(inits[i].text, said.text);
		assert_int_equal(inits[i].event == DRIVER_VERIFIED,
		    claude_driver.is_verified(s));
		claude_driver.close(s);
	}
}

#define RESULT(members) "{\"type\":\"result\"," members "}"
#define DENIED(id)                                                \
	"{\"type\":\"system\",\"subtype\":\"permission_denied\"," \
	"\"tool_name\":\"Bash\",\"tool_use_id\":\"" id "\"}"

static const struct {
	const char *line;
	bool cancelled;
	enum driver_stop stop;
} results[] = {
    {RESULT("\"subtype\":\"success\",\"is_error\":false,"
	    "\"stop_reason\":\"end_turn\""),
	false, STOP_END_TURN},
    {RESULT("\"subtype\":\"success\",\"is_error\":true"), false, STOP_ERROR},
    {RESULT("\"subtype\":\"error_max_turns\""), false, STOP_MAX_TURNS},
    {RESULT("\"subtype\":\"success\",\"stop_reason\":\"max_tokens\""), false,
	STOP_MAX_TOKENS},
    {RESULT("\"subtype\":\"success\",\"stop_reason\":\"refusal\""), false,
	STOP_REFUSAL},
    {RESULT("\"subtype\":\"error_during_execution\""), false, STOP_ERROR},
    {RESULT("\"subtype\":\"error_during_execution\""), true, STOP_CANCELLED},
    {RESULT("\"subtype\":\"success\""), true, STOP_CANCELLED},
    {RESULT("\"nothing\":1"), false, STOP_ERROR},
};

static void
results_map_to_stops(void **state)
{
	size_t i, len;

	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct driver_session *s = claude_driver.open(ID, "basecamp");
		struct driver_said said;

		(void)say(s, GOOD);
		if (results[i].cancelled)
			free(claude_driver.interrupt(s, &len));
		said = say(s, results[i].line);
		assert_int_equal(DRIVER_ANSWER, said.event);
		assert_int_equal(results[i].stop, said.stop);
		claude_driver.close(s);
	}
}

/* An error's foreign word is reduced before it is shown. */
static void
errors_show_no_foreign_bytes(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");
	struct driver_said said;

	(void)say(s, GOOD);
	said = say(s, RESULT("\"subtype\":\"Oh\\u001b[31m no_x\""));
	assert_string_equal("the turn ended in an error (hmno_x)", said.text);
	claude_driver.close(s);
}

static void
a_result_before_init_is_unsafe(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");

	assert_int_equal(
	    DRIVER_UNSAFE, say(s, RESULT("\"subtype\":\"success\"")).event);
	claude_driver.close(s);
}

/* A mode that changes later in the session is unsafe too. */
static void
a_second_init_is_judged_again(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");

	assert_int_equal(DRIVER_VERIFIED, say(s, GOOD).event);
	assert_int_equal(DRIVER_NOTHING, say(s, GOOD).event);
	assert_int_equal(DRIVER_UNSAFE,
	    say(s, INIT("bypassPermissions", ID, "[" BASECAMP "]")).event);
	assert_false(claude_driver.is_verified(s));
	claude_driver.close(s);
}

/* Once an id, whether stream or result tells; without an id each time. */
static void
refusals_count_once(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");
	struct driver_said said;

	(void)say(s, GOOD);
	assert_int_equal(1, say(s, DENIED("toolu_1")).refusals);
	assert_int_equal(0, say(s, DENIED("toolu_1")).refusals);
	assert_int_equal(1, say(s, DENIED("")).refusals);
	assert_int_equal(1, say(s, DENIED("")).refusals);
	said = say(s,
	    RESULT("\"subtype\":\"success\","
		   "\"permission_denials\":["
		   "{\"tool_use_id\":\"toolu_1\"},"
		   "{\"tool_use_id\":\"toolu_2\"}]"));
	assert_int_equal(1, said.refusals);
	assert_int_equal(STOP_END_TURN, said.stop);
	claude_driver.close(s);
}

static const char *const noise[] = {"", "not json", "[]", "7", "null", "{}",
    "{\"type\":7}", "{\"type\":\"system\"}",
    "{\"type\":\"system\",\"subtype\":\"other\"}",
    "{\"type\":\"control_response\",\"response\":{}}", "{\"type\":\"result\"",
    "{\"type\":\"rate_limit_event\"}", "\xff\xfe"};

static void
noise_is_ignored(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");
	size_t i;

	for (i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		assert_int_equal(DRIVER_NOTHING, say(s, noise[i]).event);
	assert_int_equal(DRIVER_PROGRESS,
	    say(s, "{\"type\":\"assistant\",\"message\":{}}").event);
	claude_driver.close(s);
}

/* Frames to the agent: one line each, whatever the prompt holds. */
static void
frames_are_lines(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");
	size_t len;
	char *frame = claude_driver.prompt(s, "a \"b\"\nc", &len);

	assert_string_equal("{\"type\":\"user\",\"message\":{\"role\":\"user\","
			    "\"content\":\"a \\\"b\\\"\\nc\"}}\n",
	    frame);
	free(frame);
	frame = claude_driver.interrupt(s, &len);
	assert_string_equal(
	    "{\"type\":\"control_request\",\"request_id\":\"interrupt-1\","
	    "\"request\":{\"subtype\":\"interrupt\"}}\n",
	    frame);
	free(frame);
	claude_driver.close(s);
}

/* A cancel ends with its turn: the next turn's error is an error. */
static void
a_cancel_belongs_to_its_turn(void **state)
{
	struct driver_session *s = claude_driver.open(ID, "basecamp");
	size_t len;

	(void)say(s, GOOD);
	free(claude_driver.interrupt(s, &len));
	free(claude_driver.prompt(s, "next", &len));
	assert_int_equal(STOP_ERROR,
	    say(s, RESULT("\"subtype\":\"error_during_execution\"")).stop);
	claude_driver.close(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(init_is_held_against_what_was_asked),
	    cmocka_unit_test(results_map_to_stops),
	    cmocka_unit_test(errors_show_no_foreign_bytes),
	    cmocka_unit_test(a_result_before_init_is_unsafe),
	    cmocka_unit_test(a_second_init_is_judged_again),
	    cmocka_unit_test(refusals_count_once),
	    cmocka_unit_test(noise_is_ignored),
	    cmocka_unit_test(frames_are_lines),
	    cmocka_unit_test(a_cancel_belongs_to_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
