/* A reply that no worker reported: listed, and linked if there is just one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/attempt_stage.h"

#define SINCE "2026-01-05T09:00:00.000000000Z"
#define BEFORE "2026-01-05T09:05:00.000000000Z"
#define OWN "[\"posted by connectd\"]"
#define AS_OF 41
#define WORDS                              \
	"0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef"

/* An attempt that is settled with an unknown event. */
static struct stage *
stage_settled(void)
{
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_exits(s, true, 9);
	stage_tree_is(s, "gone");
	s->unknown = 1;
	stage_ends(s, "lost", "");
	return s;
}

static void
found(struct stage *s, int64_t after, int64_t event)
{
	struct msg m = {.type = MSG_ADOPTABLE};

	stage_expect(s, MSG_ADOPTABLE_NEXT);
	assert_int_equal(after, s->asked->adoptable_next.after_event);
	m.adoptable.found = event != 0;
	m.adoptable.event_id = event;
	m.adoptable.message_kind = "comment";
	m.adoptable.recording_id = 5001;
	m.adoptable.since = SINCE;
	m.adoptable.before = BEFORE;
	m.adoptable.ack_id = (struct opt){true, 12};
	m.adoptable.own = (struct blob){OWN, sizeof(OWN) - 1};
	m.adoptable.as_of = AS_OF;
	m.adoptable.words = event != 0 ? WORDS : "";
	stage_answer(s, &m);
}

static void
listed(struct stage *s, const int64_t *ids, size_t count)
{
	struct msg m = {.type = MSG_REPLIES};
	const struct msg_list_replies *asked;

	stage_expect(s, MSG_LIST_REPLIES);
	asked = &s->asked->list_replies;
	assert_string_equal("comment", asked->message_kind);
	assert_int_equal(5001, asked->recording_id);
	assert_string_equal(SINCE, asked->since);
	assert_string_equal(BEFORE, asked->before);
	assert_true(asked->ack_id.has && asked->ack_id.value == 12);
	assert_memory_equal(OWN, asked->own.bytes, sizeof(OWN) - 1);
	m.replies.ids = (struct ids){ids, count};
	stage_answer(s, &m);
}

static void
exactly_one_is_linked(void **state)
{
	static const int64_t two[] = {77, 78};
	struct stage *s = stage_settled();

	found(s, 0, 101);
	listed(s, two, 1);
	stage_expect(s, MSG_ADOPT);
	assert_int_equal(101, s->asked->adopt.event_id);
	assert_int_equal(77, s->asked->adopt.reply_id);
	assert_int_equal(AS_OF, s->asked->adopt.as_of);
	assert_string_equal(WORDS, s->asked->adopt.words);
	stage_done(s);
	found(s, 101, 102);
	listed(s, two, 2);
	found(s, 102, 103);
	listed(s, NULL, 0);
	found(s, 103, 0);
	assert_null(s->asked);
	stage_free(s);
}

/* How much it left unknown, the person was told who settled it. */
static void
of_a_held_attempt_too(void **state)
{
	static const int64_t one[] = {77};
	struct stage *s = stage_new();

	stage_running(s);
	stage_says(s, INIT);
	stage_exits(s, true, 9);
	stage_tree_is(s, "held");
	stage_expect(s, MSG_TREE_HELD);
	stage_done(s);
	stage_expect(s, MSG_NEXT_LIVE);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_OVER);
	stage_answer(s, &(struct msg){.type = MSG_LIVE});
	found(s, 0, 101);
	listed(s, one, 1);
	stage_expect(s, MSG_ADOPT);
	stage_done(s);
	found(s, 101, 0);
	stage_free(s);
}

/* What cannot be listed is left alone; the next is looked at all the same. */
static void
a_place_that_is_not_listed_is_passed_by(void **state)
{
	struct stage *s = stage_settled();

	found(s, 0, 101);
	stage_expect(s, MSG_LIST_REPLIES);
	stage_refuse(s, "transient");
	found(s, 101, 0);
	stage_free(s);

	s = stage_settled();
	stage_expect(s, MSG_ADOPTABLE_NEXT);
	stage_refuse(s, "not_found");
	assert_null(s->asked);
	stage_free(s);
}

static void
the_end_of_its_time_and_a_stop_are_its_end(void **state)
{
	struct stage *s = stage_settled();

	found(s, 0, 101);
	stage_expect(s, MSG_LIST_REPLIES);
	s->d.stopping = true;
	stage_refuse(s, "transient");
	assert_null(s->asked);
	stage_free(s);

	s = stage_new();
	s->d.role.config->limits[LIMIT_adoption_bound] = 0;
	stage_running(s);
	stage_says(s, INIT);
	stage_exits(s, true, 9);
	stage_tree_is(s, "gone");
	s->unknown = 1;
	stage_ends(s, "lost", "");
	assert_null(s->asked);
	stage_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exactly_one_is_linked),
	    cmocka_unit_test(of_a_held_attempt_too),
	    cmocka_unit_test(a_place_that_is_not_listed_is_passed_by),
	    cmocka_unit_test(the_end_of_its_time_and_a_stop_are_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
