/*
 * The poll lane's states by scenes, each a script of answers and the journal
 * that must come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/http.h"
#include "common/log.h"
#include "tests/unit/intake_stage.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

#define GET(query)                                                             \
	"GET events.json?actor_types=person&exclude_performers=52007412" query \
	"\n"
#define ENTER                                                    \
	"feed = waiting for the access token\ntoken = waiting\n" \
	"TOKEN 0\ntoken = held\nfeed = entering\nENTRY\n"        \
	"feed = reading\n"

static void
test_present(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* Nothing is known: the present; its positions wait for the end. */
	stage_answer(s, "events.json", 200, NULL,
	    PAGE(ROW_BUT("7", ",\"details\":{\"b\":1}"),
		",\"next\":\"@/events.json?position=p1\""));
	stage_answer(
	    s, "events.json", 200, NULL, "{\"events\":[],\"position\":\"p2\"}");
	s->config->limits[LIMIT_feed_poll] = 20;
	stage_configure(s);
	stage_await(s, "position=p2");
	stage_expect(s,
	    ENTER GET("") "RECORD 7 poll {\"b\":1}\n"
			  "CHECKPOINT \"\" 7\n"
			  "GET events.json?position=p1\n"
			  "CHECKPOINT \"p2\" 0\n" GET("&position=p2"));
	stage_free(s);
}

static void
test_resume(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* Page by page: rows first, then their position. */
	s->position = "old";
	stage_answer(s, "events.json", 200, NULL,
	    "{\"events\":[" ROW("7") "," ROW(
		"8") "],\"position\":\"p1\","
		     "\"next\":\"@/"
		     "events.json?exclude_performers=5&position=n1\"}");
	stage_answer(s, "events.json", 200, NULL,
	    "{\"events\":[],\"position\":\"p2\",\"next\":"
	    "\"@/events.json?since=12\"}");
	stage_answer(s, "events.json", 200, NULL,
	    "{\"events\":[" ROW("9") "],\"position\":\"p3\"}");
	stage_configure(s);
	stage_await(s, "p3");
	stage_expect(s,
	    ENTER GET("&position=old") "RECORD 7 poll \nRECORD 8 poll \n"
				       "CHECKPOINT \"p1\" 8\n"
				       "GET "
				       "events.json?exclude_performers=5&"
				       "position=n1\n"
				       "CHECKPOINT \"p2\" 0\n"
				       "GET events.json?since=12\n"
				       "RECORD 9 poll \n"
				       "CHECKPOINT \"p3\" 9\n");
	stage_free(s);
}

static void
test_since_option(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	s->position = "old";
	s->config->since = 3;
	stage_configure(s);
	stage_await(s, "since=3");
	stage_free(s);
}

static void
test_retries_inside(void **state)
{
	struct stage *s = stage_new();
	size_t i;

	(void)state;
	s->position = "old";
	for (i = 0; i < 3; i++)
		stage_answer(s, "events.json", i == 1 ? 429 : 503, NULL, "");
	stage_configure(s);
	/* One call of three requests failed; then the next call asks. */
	stage_await(s, "retrying");
	assert_int_equal(stage_count(s, "GET"), 3);
	stage_answer(s, "events.json", 200, NULL, PAGE("", ""));
	stage_await(s, "CHECKPOINT");
	assert_int_equal(stage_count(s, "GET"), 4);
	assert_int_equal(stage_count(s, "feed = trying again: http 503\n"), 1);
	assert_int_equal(stage_count(s, "feed = trying again: http 429\n"), 1);
	assert_int_equal(
	    stage_count(s, "feed = retrying: transient: http 503\n"), 1);
	assert_int_equal(stage_count(s, "feed = reading\n"), 2);
	stage_free(s);
}

static void
test_no_retry_inside(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	s->position = "old";
	stage_answer(s, "events.json", 500, NULL, "");
	stage_configure(s);
	stage_await(s, "retrying: transient: http 500");
	assert_int_equal(stage_count(s, "GET"), 1);
	stage_answer(s, "events.json", 500, "Retry-After: 3600", "");
	stage_await(s, "retrying: throttled: http 500");
	stage_linger(s, 60); /* not before an hour has passed */
	assert_int_equal(stage_count(s, "GET"), 2);
	stage_free(s);
}

static void
test_unauthorized(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* A good page between starts the count anew; 401 asks a new token. */
	s->position = "old";
	stage_answer(s, "events.json", 401, NULL, "");
	stage_answer(s, "events.json", 403, NULL, "");
	stage_answer(s, "events.json", 200, NULL,
	    PAGE("", ",\"next\":\"@/events.json?position=n\""));
	stage_answer(s, "events.json", 401, NULL, "");
	stage_answer(s, "events.json", 403, NULL, "");
	stage_answer(s, "events.json", 401, NULL, "");
	stage_configure(s);
	stage_await(s, "feed = ended: authorization_failed: http 401");
	assert_int_equal(stage_count(s, "GET"), 6);
	assert_int_equal(stage_count(s, "TOKEN 0"), 1);
	assert_int_equal(stage_count(s, "TOKEN 1"), 1);
	assert_int_equal(stage_count(s, "TOKEN 2"), 1);
	stage_free(s);
}

static void
test_ends(void **state)
{
	static const struct {
		int status;
		const char *headers, *body, *want;
	} t[] = {
	    {404, NULL, "", "ended: poll_failed: http 404"},
	    {404, "Reason: Account Inactive", "",
		"ended: poll_failed: http 404, the account is inactive"},
	    {507, "Retry-After: 1", "", "ended: poll_failed: http 507"},
	    {302, "Location: https://a.example/", "",
		"ended: invalid_continuation: http 302"},
	    {400, NULL, "{\"error\":\"no\",\"reason\":\"invalid_filter\"}",
		"ended: filter_invalid: http 400"},
	    {200, NULL, "{\"events\":[],\"position\":\"\"}",
		"ended: poll_failed: a foul page"},
	    {200, NULL, PAGE("", ",\"next\":\"https://a.example/?since=1\""),
		"ended: invalid_continuation: a page's next"},
	    {200, NULL, PAGE("", ",\"next\":\"@/events.json\""),
		"ended: poll_failed: a page's next"},
	    {410, NULL,
		"{\"epoch_after_id\":4,\"resume\":"
		"\"https://a.example/?since=4\"}",
		"ended: invalid_continuation: a gap's resume"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%s\n", t[i].want);
		s = stage_new();
		s->position = "old";
		stage_answer(
		    s, "events.json", t[i].status, t[i].headers, t[i].body);
		stage_configure(s);
		stage_await(s, t[i].want);
		stage_linger(s, 40);
		assert_int_equal(stage_count(s, "GET"), 1);
		/* A state, left when configuration comes anew. */
		stage_configure(s);
		stage_linger(s, 40);
		assert_int_equal(stage_count(s, "GET"), 2);
		stage_free(s);
	}
}

static void
test_position_refused(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* Nothing was served here yet: the ledger knows where it is safe. */
	s->position = "old";
	s->served = 5;
	stage_answer(s, "events.json", 400, NULL, POSITION_400);
	stage_answer(s, "events.json", 200, NULL,
	    PAGE(ROW("7"), ",\"next\":\"@/events.json?position=n\""));
	stage_answer(s, "events.json", 400, NULL, POSITION_400);
	stage_configure(s);
	stage_await(s, "since=7");
	stage_expect(s,
	    ENTER GET(
		"&position=old") "DROP_POSITION \"old\"\n"
				 "feed = entering\n"
				 "ENTRY\n"
				 "feed = reading\n" GET(
				     "&since=5") "RECORD 7 poll \n"
						 "CHECKPOINT \"p\" 7\n"
						 "GET events.json?position=n\n"
	    /* It was served an event since: that one is the way back. */
	    GET("&since=7"));
	stage_free(s);
}

static void
test_position_refused_unserved(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* Never to the present: from the beginning, where a gap is expected. */
	s->position = "old";
	stage_answer(s, "events.json", 409, NULL,
	    "{\"error\":\"x\",\"position_digest\":" D16
	    ",\"filters_digest\":" D16 "}");
	stage_answer(s, "events.json", 410, NULL,
	    "{\"error\":\"x\",\"epoch_after_id\":40,"
	    "\"resume\":\"@/events.json?since=40\"}");
	stage_configure(s);
	stage_await(s, "since=40");
	stage_expect(s,
	    ENTER GET(
		"&position=old") "DROP_POSITION \"old\"\n"
				 "feed = entering\nENTRY\nfeed = reading\n" GET(
				     "&since=0") "GAP epoch 40 replay "
						 "\"expected: entered at the "
						 "beginning\"\n"
						 "GET events.json?since=40\n");
	stage_free(s);
}

static void
test_position_refused_twice(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	s->position = "old";
	s->served = 5;
	stage_answer(s, "events.json", 400, NULL, POSITION_400);
	stage_answer(s, "events.json", 400, NULL, POSITION_400);
	stage_configure(s);
	stage_await(s, "ended: position_refused");
	assert_int_equal(stage_count(s, "GET"), 2);
	stage_free(s);
}

static void
test_gap(void **state)
{
	struct stage *s = stage_new();
	int i;

	(void)state;
	s->position = "old";
	stage_answer(s, "events.json", 410, NULL,
	    "{\"error\":\"x\",\"epoch_after_id\":40,"
	    "\"resume\":\"@/events.json?since=now\"}");
	stage_answer(s, "events.json", 200, NULL, PAGE("", ""));
	stage_configure(s);
	stage_await(s, "CHECKPOINT");
	stage_expect(s,
	    ENTER GET("&position=old") "GAP epoch 40 present \"\"\n"
				       "GET events.json?since=now\n"
				       "CHECKPOINT \"p\" 0\n");
	stage_free(s);

	/* Gap after gap is no feed. */
	s = stage_new();
	s->position = "old";
	for (i = 0; i < 4; i++)
		stage_answer(s, "events.json", 410, NULL,
		    "{\"error\":\"x\",\"epoch_after_id\":40,"
		    "\"resume\":\"@/events.json?since=40\"}");
	stage_configure(s);
	stage_await(s, "ended: feed_gap");
	assert_int_equal(stage_count(s, "GAP"), 2);
	stage_free(s);
}

static void
test_pause(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	/* Ten rows, room for two: the page is not accepted, nor its position.
	 */
	s->position = "old";
	s->config->limits[LIMIT_pause_depth] = 2;
	s->config->limits[LIMIT_resume_depth] = 0;
	stage_answer(s, "events.json", 200, NULL,
	    PAGE(ROW("1") "," ROW("2") "," ROW("3"), ""));
	stage_configure(s);
	stage_await(s, "feed = paused");
	stage_linger(s, 40);
	stage_expect(s,
	    ENTER GET("&position=old") "RECORD 1 poll \nRECORD 2 poll \n"
				       "feed = paused: too many records wait "
				       "for a decision\n");
	s->depth = 1;
	backlog_told(&s->in.backlog, 1); /* not low enough */
	stage_linger(s, 40);
	stage_expect(s, "");
	s->depth = 0;
	backlog_told(&s->in.backlog, 0);
	stage_await(s, "CHECKPOINT");
	stage_expect(s,
	    "feed = reading\nRECORD 3 poll \n"
	    "CHECKPOINT \"p\" 3\n");
	stage_free(s);
}

static void
test_pause_before_reading(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	s->position = "old";
	s->depth = 10000;
	stage_configure(s);
	stage_await(s, "feed = paused");
	stage_linger(s, 40);
	assert_int_equal(stage_count(s, "GET"), 0);
	backlog_told(&s->in.backlog, 5001);
	stage_linger(s, 40);
	assert_int_equal(stage_count(s, "GET"), 0);
	backlog_told(&s->in.backlog, 5000);
	stage_await(s, "GET");
	stage_free(s);
}

static void
test_no_token(void **state)
{
	struct stage *s = stage_new();

	(void)state;
	s->no_token = "transient";
	stage_configure(s);
	stage_await(s, "feed = retrying: no access token: transient");
	s->no_token = "credential_refused";
	stage_await(s, "feed = ended: credential_refused");
	s->no_token = NULL;
	stage_configure(s);
	stage_await(s, "GET");
	stage_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_present),
	    cmocka_unit_test(test_resume),
	    cmocka_unit_test(test_since_option),
	    cmocka_unit_test(test_retries_inside),
	    cmocka_unit_test(test_no_retry_inside),
	    cmocka_unit_test(test_unauthorized),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_position_refused),
	    cmocka_unit_test(test_position_refused_unserved),
	    cmocka_unit_test(test_position_refused_twice),
	    cmocka_unit_test(test_gap),
	    cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_pause_before_reading),
	    cmocka_unit_test(test_no_token),
	};
	struct error e;

	log_init("test_feed", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
