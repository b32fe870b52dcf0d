/*
 * Decisions from pointer to verdict, against a scripted Basecamp: each row is
 * an event, what Basecamp answers, and the verdict that must reach the ledger
 * after exactly those reads (admission.md 1.5-1.11, 2.4, 11).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http.h"
#include "common/log.h"
#include "tests/unit/decide_scene.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* ---- one read, or none --------------------------------------------------- */

static void
test_verdicts(void **state)
{
	static const struct {
		const char *type;
		int64_t creator;
		const char *path;
		const char *body; /* NULL: nothing is read */
		const char *want;
	} t[] = {
	    /* Without a read. */
	    {"what.ever", STAGE_OPERATOR, NULL, NULL,
		"discarded not_in_matrix trigger= " NOTHING
		" url= requester=26909558"},
	    {"comment.created", STAGE_AGENT, NULL, NULL,
		"discarded agent_authored trigger= " NOTHING
		" url= requester=52007412"},
	    {"comment.created", MEMBER, NULL, NULL,
		"discarded untrusted_performer trigger= " NOTHING
		" url= requester=777"},

	    /* Admitted, by type. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		COMMENT(26909558, ASKED),
		"admitted trigger=mentioned ack key=recording:4 "
		"reply=comment:4" HERE " url=https://x/5" BY_BOSS},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 26909558, ",\"subject\":\"S\"," ASKED),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 26909558,
		    ",\"content\":\"t\","
		    "\"description\":\"" MENTION "\""),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},
	    {"card.created", STAGE_OPERATOR, "card_tables/cards/5",
		RECORDING(5, 26909558,
		    ",\"content\":\"\","
		    "\"description\":\"" MENTION "\""),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},

	    /* Not addressed, or by a rule that is not served. */
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 26909558, ",\"content\":\"hello @Marie\""),
		"discarded not_addressed trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5", /* in the title */
		RECORDING(5, 26909558,
		    ",\"content\":\"" MENTION "\","
		    "\"title\":\"" MENTION "\",\"description\":\"\""),
		"discarded not_addressed trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		COMMENT(26909558, "\"content\":\"no mention\""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.assignment_changed", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 26909558, ""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"card.completed", STAGE_OPERATOR, "card_tables/cards/5",
		RECORDING(5, 26909558, ""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},

	    /* Authors. */
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 777, ",\"description\":\"" MENTION "\""),
		"discarded untrusted_author trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 52007412, ",\"description\":\"" MENTION "\""),
		"discarded agent_authored trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},

	    /* What is stale, and what is not. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		"{\"id\":5,\"status\":\"trashed\"}",
		"discarded stale trigger= " NOTHING " url=" BY_BOSS},
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		"{\"id\":5,\"status\":\"drafted\",\"creator\":{\"id\":1}}",
		"discarded stale trigger= " NOTHING " url=" BY_BOSS},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5,\"status\":\"archived\",\"creator\":"
		"{\"id\":26909558},\"content\":\"" MENTION "\"}",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=" BY_BOSS},

	    /* Incomplete, or from elsewhere. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		RECORDING(5, 26909558, "," ASKED),
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5," ASKED "}",
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 0, "," ASKED),
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5,\"bucket\":{\"id\":7}," ASKED "}",
		"blocked bucket_mismatch trigger= " NOTHING " url=" BY_BOSS},
	};
	char want[512];
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].want);
		s = scene_new(t[i].type, t[i].creator);
		if (t[i].body != NULL)
			stage_answer(s, t[i].path, 200, NULL, t[i].body);
		scene_decide(s);
		*strchr(strstr(s->journal.bytes, "VERDICT"), '\n') = '\0';
		(void)snprintf(want, sizeof(want), "VERDICT 101 %s", t[i].want);
		assert_string_equal(strstr(s->journal.bytes, "VERDICT"), want);
		assert_int_equal(
		    stage_count(s, "GET"), t[i].body == NULL ? 0 : 1);
		stage_free(s);
	}
}

static void
test_snapshot(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "comments/5", 200, NULL,
	    COMMENT(26909558,
		"\"content\":\"" MENTION "\\u009b \\ud83d"
		"\\ude00\""));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes,
	    "SNAPSHOT {\"type\":\"Comment\",\"title\":\"Re\","
	    "\"app_url\":\"https://x/5\",\"content\":\"" MENTION
	    "\\u009b \xf0\x9f\x98\x80\",\"updated_at\":\"2026-01-05\","
	    "\"project_name\":\"Connector\",\"requester_name\":\"Who\","
	    "\"role\":\"operator\",\"owner\":true}\n"));
	stage_free(s);
}

/* ---- configuration ------------------------------------------------------- */

static void
test_no_route(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);

	(void)state;
	/* What answers the request stays; what was read does not. */
	s->undecided[0].bucket_id = 1;
	stage_answer(s, "comments/5", 200, NULL,
	    "{\"id\":5,\"app_url\":\"u\",\"parent\":{\"id\":4},"
	    "\"creator\":{\"id\":26909558}," ASKED "}");
	scene_decide(s);
	scene_expect(s,
	    "GET comments/5\n"
	    "VERDICT 101 blocked no_route trigger=mentioned ack "
	    "key=recording:4 reply=comment:4 route= class= url=u" BY_BOSS "\n");
	stage_free(s);

	/* A comment there that is not for us is nobody's. */
	s = scene_new("comment.created", STAGE_OPERATOR);
	s->undecided[0].bucket_id = 1;
	stage_answer(s, "comments/5", 200, NULL,
	    "{\"id\":5,\"parent\":{\"id\":4},\"creator\":{\"id\":26909558},"
	    "\"content\":\"x\"}");
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "discarded not_addressed"));
	stage_free(s);
}

static void
test_unreadable(void **state)
{
	static const struct {
		const char *type;
		int64_t creator;
		const char *want;
	} t[] = {
	    {"comment.created", STAGE_OPERATOR, "blocked config_unreadable"},
	    {"card.completed", STAGE_OPERATOR, "blocked config_unreadable"},
	    {"comment.created", MEMBER, "discarded untrusted_performer"},
	    {"what.ever", STAGE_OPERATOR, "discarded not_in_matrix"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		s = scene_new(t[i].type, t[i].creator);
		s->config->readable = false;
		scene_decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		assert_int_equal(stage_count(s, "GET"), 0);
		stage_free(s);
	}
}

/* A decision ends with the configuration that it began with. */
static void
test_one_generation(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);

	(void)state;
	scene_configure(s, 100);
	stage_await(s, "GET"); /* which is not answered */
	s->config->routes[0].project_id = 1;
	s->config->operator_id = MEMBER;
	scene_configure(s, 1000);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "VERDICT 101 admitted");
	assert_non_null(strstr(s->journal.bytes, HERE));
	stage_free(s);
}

/* ---- agents -------------------------------------------------------------- */

static void
test_named_agent(void **state)
{
	struct stage *s = scene_new("comment.created", 500);

	(void)state;
	config_ids_add(&s->config->agents, 500);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(500, ASKED));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked rule_not_served"));
	stage_free(s);

	s = scene_new("comment.created", 500);
	config_ids_add(&s->config->agents, 500);
	stage_answer(
	    s, "comments/5", 200, NULL, COMMENT(500, "\"content\":\"x\""));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "discarded not_addressed"));
	stage_free(s);
}

/* ---- reads that go wrong ------------------------------------------------- */

static void
test_failing_reads(void **state)
{
	static const struct {
		int status;
		const char *headers, *body;
		size_t attempts;
		const char *want;
	} t[] = {
	    {401, NULL, "", 1, "blocked read_failed"},
	    {403, NULL, "", 1, "blocked read_failed"},
	    {404, NULL, "", 1, "blocked read_failed"},
	    {500, NULL, "", 5, "blocked read_failed"},
	    {302, "Location: /x", "", 5, "blocked read_failed"},
	    {200, NULL, "half", 5, "blocked read_failed"},
	    {200, NULL, "[]", 5, "blocked read_failed"},
	    {200, NULL, "{\"id\":\"5\"}", 5, "blocked read_failed"},
	    {429, NULL, "", 5, "blocked read_failed"},
	    {429, "Retry-After: 600", "", 1, "blocked throttled"},
	    {503, "Retry-After: 600", "", 5, "blocked read_failed"},
	};
	struct stage *s;
	size_t i, n;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%d %s\n", t[i].status, t[i].want);
		s = scene_new("comment.created", STAGE_OPERATOR);
		for (n = 0; n < 6; n++)
			stage_answer(s, "comments/5", t[i].status, t[i].headers,
			    t[i].body);
		scene_decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		assert_int_equal(
		    stage_count(s, "GET comments/5"), t[i].attempts);
		assert_int_equal(stage_count(s, " retry_at timed"),
		    t[i].attempts == 1 && t[i].status == 429);
		stage_free(s);
	}
}

static void
test_recovers(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "comments/5", 500, NULL, "");
	stage_answer(s, "comments/5", 429, "Retry-After: 1", "");
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "VERDICT 101 admitted"));
	assert_int_equal(stage_count(s, "GET"), 3);
	stage_free(s);
}

static void
test_network(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);

	(void)state;
	stage_nobody_answers(s);
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	stage_free(s);
}

/* Two reads of one decision share the patience with a 429. */
static void
test_budget(void **state)
{
	struct stage *s = scene_new("todo.created", MEMBER);

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	s->config->limits[LIMIT_throttle_budget] = 1500;
	stage_answer(
	    s, "projects/48699913/people.json", 429, "Retry-After: 1", "");
	stage_answer(s, "projects/48699913/people.json", 200, NULL,
	    "[{\"id\":777,\"client\":false,\"personable_type\":\"User\"}]");
	stage_answer(s, "todos/5", 429, "Retry-After: 1", "");
	scene_decide(s);
	scene_expect(s,
	    "GET projects/48699913/people.json\n"
	    "GET projects/48699913/people.json\n"
	    "GET todos/5\n"
	    "VERDICT 101 blocked throttled trigger= key= reply=:0 "
	    "route= class= url= requester=777 retry_at timed\n");
	stage_free(s);
}

/* ---- the walk ------------------------------------------------------------ */

static void
test_several_at_once(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);
	char path[32];
	int i;

	(void)state;
	s->config->limits[LIMIT_admission_workers] = 2;
	s->undecided_count = 4;
	for (i = 0; i < 4; i++) {
		s->undecided[i] = s->undecided[0];
		s->undecided[i].event_id = EVENT + i;
		s->undecided[i].recording_id = 5 + i;
	}
	scene_configure(s, 1500);
	stage_await(s, "GET comments/5");
	stage_await(s, "GET comments/6");
	stage_linger(s, 50);
	/* Two hang, the others are not begun. */
	assert_int_equal(stage_count(s, "GET comments/"), 2);
	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "comments/%d", 5 + i);
		stage_answer(s, path, 200, NULL, COMMENT(26909558, ASKED));
	}
	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "VERDICT %d", EVENT + i);
		stage_await(s, path);
	}
	stage_free(s);
}

/*
 * What was in hand when an intake died goes with nothing beside it: it waits
 * for the others, and they for it.
 */
static void
test_suspect_goes_alone(void **state)
{
	struct stage *s = scene_new("comment.created", STAGE_OPERATOR);
	int i;

	(void)state;
	s->config->limits[LIMIT_admission_workers] = 4;
	s->undecided_count = 4;
	for (i = 0; i < 4; i++) {
		s->undecided[i] = s->undecided[0];
		s->undecided[i].event_id = EVENT + i;
		s->undecided[i].recording_id = 5 + i;
	}
	s->undecided[1].suspect = true;
	scene_configure(s, 1500);
	stage_await(s, "GET comments/5");
	stage_linger(s, 50);
	assert_int_equal(stage_count(s, "GET comments/"), 1);
	assert_int_equal(s->hand_count, 1);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "GET comments/6");
	stage_linger(s, 50);
	assert_int_equal(stage_count(s, "GET comments/7"), 0);
	assert_int_equal(s->hand_count, 1);
	assert_int_equal(s->hand[0], EVENT + 1);
	stage_answer(s, "comments/6", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "GET comments/7");
	stage_await(s, "GET comments/8");
	assert_int_equal(s->hand_count, 2);
	stage_free(s);
}

/* The ledger says when the next one is due; nobody offers it. */
static void
test_timed_retry(void **state)
{
	struct stage *s = scene_new("what.ever", STAGE_OPERATOR);

	(void)state;
	s->undecided_count = 0;
	s->retry_in_ms = 400;
	scene_configure(s, 100);
	stage_linger(s, 20);
	s->undecided_count = 1;
	stage_linger(s, 10);
	stage_expect(s, "");
	stage_await(s, "VERDICT 101 discarded");
	stage_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_verdicts),
	    cmocka_unit_test(test_snapshot),
	    cmocka_unit_test(test_no_route),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_one_generation),
	    cmocka_unit_test(test_named_agent),
	    cmocka_unit_test(test_failing_reads),
	    cmocka_unit_test(test_recovers),
	    cmocka_unit_test(test_network),
	    cmocka_unit_test(test_budget),
	    cmocka_unit_test(test_several_at_once),
	    cmocka_unit_test(test_suspect_goes_alone),
	    cmocka_unit_test(test_timed_retry),
	};
	struct error e;

	log_init("test_decide", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
