/* Who belongs to a project, when an event asks (admission.md 1.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/http.h"
#include "common/log.h"
#include "intake/members.h"
#include "tests/unit/decide_scene.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

#define PERSON(id, client, type)                                             \
	"{\"id\":" #id ",\"client\":" #client ",\"personable_type\":\"" type \
	"\"}"

static void
test_project_mode(void **state)
{
	static const struct {
		int64_t performer;
		const char *people;
		const char *author;
		const char *want;
	} t[] = {
	    {MEMBER, "[" PERSON(777, false, "User") "]", "777",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	    {MEMBER, "[" PERSON(777, true, "User") "]", "777",
		"discarded untrusted_performer"},
	    {MEMBER, "[" PERSON(777, false, "Agent") "]", "777",
		"discarded untrusted_performer"},
	    {MEMBER, "[{\"id\":777}]", "777", "discarded untrusted_performer"},
	    {MEMBER, "[]", "777", "discarded untrusted_performer"},
	    {MEMBER, "{}", "777", "blocked read_failed"},
	    /* A member's words that the operator moved stay the member's. */
	    {STAGE_OPERATOR, "[" PERSON(777, false, "User") "]", "777",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	    {STAGE_OPERATOR, "[]", "777", "discarded untrusted_author"},
	    /* The operator's words that a member moved are a member's ask. */
	    {MEMBER, "[" PERSON(777, false, "User") "]", "26909558",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	};
	struct stage *s;
	char body[1024];
	size_t i, n;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].want);
		s = scene_new("todo.created", t[i].performer);
		(void)snprintf(s->config->trust_mode,
		    sizeof(s->config->trust_mode), "project");
		for (n = 0; n < 5; n++)
			stage_answer(s, "projects/48699913/people.json", 200,
			    NULL, t[i].people);
		(void)snprintf(body, sizeof(body),
		    "{\"id\":5,\"app_url\":\"https://x/5\",\"creator\":"
		    "{\"id\":%s},\"description\":\"" MENTION "\"}",
		    t[i].author);
		stage_answer(s, "todos/5", 200, NULL, body);
		scene_decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		if (strstr(t[i].want, "admitted") != NULL)
			assert_non_null(strstr(s->journal.bytes,
			    "\"role\":\"participant\",\"owner\":false"));
		stage_free(s);
	}
}

static void
test_people_pages(void **state)
{
	struct stage *s = scene_new("todo.created", MEMBER);

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	/* Fewer than the total is no list; then two pages are. */
	stage_answer(s, "projects/48699913/people.json", 200,
	    "X-Total-Count: 2", "[" PERSON(1, false, "User") "]");
	stage_answer(s, "projects/48699913/people.json", 200,
	    "X-Total-Count: 2\nLink: <@/projects/48699913/people.json?page=2>"
	    "; rel=\"next\"",
	    "[" PERSON(1, false, "User") "]");
	stage_answer(s, "projects/48699913/people.json?page=2", 200, NULL,
	    "[" PERSON(777, false, "User") "]");
	stage_answer(s, "todos/5", 200, NULL,
	    RECORDING(5, 777, ",\"description\":\"" MENTION "\""));
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "VERDICT 101 admitted"));
	assert_int_equal(stage_count(s, "GET projects"), 3);
	stage_free(s);
}

/* A page of a list that lies elsewhere is not asked for: the token stays. */
static void
test_people_elsewhere(void **state)
{
	struct stage *s = scene_new("todo.created", MEMBER);
	char link[160];
	int i;

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	/* The same server under another name: it would hear of it. */
	(void)snprintf(link, sizeof(link),
	    "Link: <http://localhost%s/999/elsewhere>; rel=\"next\"",
	    strrchr(s->base_url, ':'));
	for (i = 0; i < 5; i++)
		stage_answer(
		    s, "projects/48699913/people.json", 200, link, "[]");
	scene_decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET projects"), 5);
	assert_int_equal(stage_count(s, "GET elsewhere"), 0);
	stage_free(s);
}

static int64_t now_s;

static void
clock_at(clockid_t id, struct timespec *out)
{
	(void)id;
	*out = (struct timespec){now_s, 0};
}

#define S INT64_C(1000000000)

static void
test_member_look(void **state)
{
	static const struct clock_source source = {clock_at};
	struct list_item items[] = {{MEMBER, 1}};
	struct list list = {.items = items,
	    .count = 1,
	    .is_loaded = true,
	    .started_ns = 1000 * S,
	    .started_ms = 1000000};
	static const struct {
		int64_t now, person, seen;
		enum member_says want;
	} t[] = {
	    {1000, MEMBER, 1100, MEMBER_YES},
	    {1600, MEMBER, 1600, MEMBER_YES},
	    {1010, 1, 999, MEMBER_NO},
	    {1010, 1, 1000, MEMBER_NO},
	    {1010, 1, 1001, MEMBER_UNVERIFIED},
	    {1029, 1, 1001, MEMBER_UNVERIFIED},
	    {1030, 1, 1001, MEMBER_ASK},
	};
	size_t i;

	(void)state;
	assert_int_equal(member_look(NULL, MEMBER, 0), MEMBER_ASK);
	clock_set_source(&source);
	for (i = 0; i < COUNT(t); i++) {
		now_s = t[i].now;
		assert_int_equal(
		    member_look(&list, t[i].person, t[i].seen * S), t[i].want);
	}
	clock_set_source(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_project_mode),
	    cmocka_unit_test(test_people_pages),
	    cmocka_unit_test(test_people_elsewhere),
	    cmocka_unit_test(test_member_look),
	};
	struct error e;

	log_init("test_members", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
