/* A record's states, pair by pair: the write path, then raw SQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/record.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define EVENT 101

/* Where a record can be besides its state. */
enum place {
	PLACE_NONE,  /* on no task */
	PLACE_LIVE,  /* unexposed, on a live task */
	PLACE_TOLD,  /* exposed, on a live task */
	PLACE_HANDED /* exposed, its task superseded */
};

static void
put(struct fixture *f, const char *state, enum place place)
{
	const char *on_task =
	    place == PLACE_NONE ? state : "admitted"; /* to join it by */

	sql_put(f,
	    "DELETE FROM task_events; DELETE FROM attempts; DELETE FROM tasks;"
	    "DELETE FROM events;"
	    "INSERT INTO events (id, state, reason, lane, event_type, kind,"
	    " action, bucket_id, creator_id, recording_id, created_at, seen_at,"
	    " updated_at, snapshot) VALUES (101, '%s', '%s', 'poll', 'x', 'x',"
	    " 'x', 1, 1, 1, 'c', 's', 'u', '{}')",
	    on_task,
	    strcmp(on_task, "blocked") == 0 || strcmp(on_task, "discarded") == 0
		? "why"
		: "");
	if (place == PLACE_NONE)
		return;
	sql_ok(f,
	    "INSERT INTO tasks (id, token_sha256, created_at)"
	    " VALUES (1, 'h', 'c');"
	    "INSERT INTO task_events (task_id, event_id, conversation_key)"
	    " VALUES (1, 101, 'k');"
	    "UPDATE events SET state = 'dispatched' WHERE id = 101");
	if (place == PLACE_TOLD || place == PLACE_HANDED)
		sql_ok(f, "UPDATE task_events SET delivery = 'exposed'");
	if (place == PLACE_HANDED)
		sql_ok(f, "UPDATE tasks SET superseded_at = 's'");
}

/*
 * What the plain write answers for each pair: . moved, = the same again,
 * n not a live task's, h held by a worker, t on a live task, blank no
 * transition. Rows: where from; columns: where to.
 */
/* clang-format off */
static const struct {
	enum record_state from;
	enum place place;
	const char *to; /* s a q b d c x h */
} table[] = {
	{RECORD_SEEN,       PLACE_NONE,   "=...  . "},
	{RECORD_ADMITTED,   PLACE_NONE,   " =..n . "},
	{RECORD_QUEUED,     PLACE_NONE,   "  =.n . "},
	{RECORD_BLOCKED,    PLACE_NONE,   " ..=n . "},
	{RECORD_COMPLETED,  PLACE_NONE,   "     =  "},
	{RECORD_DISCARDED,  PLACE_NONE,   "      = "},
	{RECORD_HELD,       PLACE_NONE,   "       ="},
	{RECORD_DISPATCHED, PLACE_LIVE,   " t t=.  "},
	{RECORD_DISPATCHED, PLACE_TOLD,   " h h=.  "},
	{RECORD_DISPATCHED, PLACE_HANDED, " h h=.  "},
};
/* clang-format on */

static enum move_result
expected(char cell)
{
	switch (cell) {
	case '.':
	case '=':
		return MOVED;
	case 'n':
		return MOVE_NOT_ON_LIVE_TASK;
	case 'h':
		return MOVE_HELD_BY_WORKER;
	case 't':
		return MOVE_ON_LIVE_TASK;
	default:
		return MOVE_NO_TRANSITION;
	}
}

static bool
needs_reason(enum record_state to)
{
	return to == RECORD_BLOCKED || to == RECORD_DISCARDED;
}

static enum move_result
move_to(struct fixture *f, enum record_state to, enum mover by)
{
	enum move_result result;

	clock_stamp(f->l.now);
	result = record_move(&f->l,
	    &(struct move){.event_id = EVENT,
		.to = to,
		.by = by,
		.reason = needs_reason(to) ? "why" : NULL});
	sql_reset_all(&f->l);
	f->l.rc = SQLITE_OK;
	return result;
}

static void
every_pair_by_the_write_path(void **state)
{
	struct fixture *f = *state;
	enum record_state to;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (to = 0; to < RECORD_STATES; to++) {
			const char *from = record_state_name(table[i].from);
			enum move_result want = expected(table[i].to[to]), got;

			put(f, from, table[i].place);
			got = move_to(f, to, BY_MACHINE);
			if (got != want)
				fail_msg("%s -> %s: %s, not %s", from,
				    record_state_name(to),
				    move_result_text(got),
				    move_result_text(want));
			assert_string_equal(
			    want == MOVED ? record_state_name(to) : from,
			    state_of(f, EVENT));
		}
	}
}

/* What the write path refuses the database refuses as well. */
static void
every_refused_pair_by_raw_sql(void **state)
{
	struct fixture *f = *state;
	enum record_state to;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (to = 0; to < RECORD_STATES; to++) {
			if (expected(table[i].to[to]) == MOVED ||
			    record_edge(table[i].from, to, BY_PERSON))
				continue;
			put(f, record_state_name(table[i].from),
			    table[i].place);
			sql_refused(f,
			    "UPDATE events SET state = '%s' WHERE id = 101",
			    record_state_name(to));
		}
	}
}

static void
a_person_has_ways_of_its_own(void **state)
{
	static const struct {
		enum record_state from, to;
	} ways[] = {{RECORD_HELD, RECORD_ADMITTED},
	    {RECORD_HELD, RECORD_QUEUED}, {RECORD_HELD, RECORD_BLOCKED},
	    {RECORD_HELD, RECORD_DISCARDED}, {RECORD_ADMITTED, RECORD_HELD},
	    {RECORD_QUEUED, RECORD_HELD}};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		put(f, record_state_name(ways[i].from), PLACE_NONE);
		assert_int_equal(
		    MOVE_NO_TRANSITION, move_to(f, ways[i].to, BY_MACHINE));
		assert_int_equal(MOVED, move_to(f, ways[i].to, BY_PERSON));
	}
}

static void
reasons_and_deadlines_fit_their_states(void **state)
{
	struct fixture *f = *state;
	struct move m = {.event_id = EVENT, .to = RECORD_BLOCKED};

	put(f, "seen", PLACE_NONE);
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	m.to = RECORD_DISCARDED;
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	m.to = RECORD_ADMITTED;
	m.reason = "why";
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	m.reason = NULL;
	m.retry_at = "2026-01-05T09:00:00.000000000Z";
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	m.retry_at = NULL;
	m.next_retry_at = "2026-01-05T09:00:00.000000000Z";
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	m.next_retry_at = NULL;
	m.to = RECORD_STATES;
	assert_int_equal(MOVE_INVALID, record_move(&f->l, &m));
	assert_string_equal("seen", state_of(f, EVENT));
}

/* Revision counts writes, updated_at changes of state. */
static void
the_same_again_is_counted_and_not_dated(void **state)
{
	struct fixture *f = *state;
	const char *first;

	put(f, "seen", PLACE_NONE);
	assert_int_equal(MOVED, move_to(f, RECORD_BLOCKED, BY_MACHINE));
	first = sql_get(f,
	    "SELECT updated_at || blocked_at || retry_since"
	    " FROM events");
	fixture_wait(1000);
	assert_int_equal(MOVED, move_to(f, RECORD_BLOCKED, BY_MACHINE));
	assert_string_equal(first,
	    sql_get(f,
		"SELECT updated_at || blocked_at || retry_since"
		" FROM events"));
	assert_int_equal(2, sql_int(f, "SELECT revision FROM events"));
}

/* retry_since is the present reason's, blocked_at the whole run's. */
static void
another_reason_begins_its_own_retries(void **state)
{
	struct fixture *f = *state;
	const char *blocked_at;

	put(f, "seen", PLACE_NONE);
	assert_int_equal(MOVED, move_to(f, RECORD_BLOCKED, BY_MACHINE));
	blocked_at = sql_get(f, "SELECT blocked_at FROM events");
	fixture_wait(1000);
	clock_stamp(f->l.now);
	assert_int_equal(MOVED,
	    record_move(&f->l,
		&(struct move){.event_id = EVENT,
		    .to = RECORD_BLOCKED,
		    .reason = "another"}));
	sql_reset_all(&f->l);
	assert_string_equal(
	    blocked_at, sql_get(f, "SELECT blocked_at FROM events"));
	assert_string_equal(
	    f->l.now, sql_get(f, "SELECT retry_since FROM events"));
	assert_int_equal(MOVED, move_to(f, RECORD_ADMITTED, BY_MACHINE));
	assert_string_equal("",
	    sql_get(f,
		"SELECT COALESCE(blocked_at, retry_since, '')"
		" FROM events"));
}

static void
blocked_and_discarded_lose_the_snapshot(void **state)
{
	struct fixture *f = *state;

	put(f, "admitted", PLACE_NONE);
	assert_int_equal(MOVED, move_to(f, RECORD_QUEUED, BY_MACHINE));
	assert_string_equal("{}", sql_get(f, "SELECT snapshot FROM events"));
	assert_int_equal(MOVED, move_to(f, RECORD_BLOCKED, BY_MACHINE));
	assert_string_equal("", sql_get(f, "SELECT snapshot FROM events"));
}

static void
a_move_may_ask_for_its_revision_and_its_sources(void **state)
{
	struct fixture *f = *state;
	struct move m = {.event_id = EVENT, .to = RECORD_ADMITTED};

	put(f, "seen", PLACE_NONE);
	m.revision = (struct opt){true, 7};
	assert_int_equal(MOVE_NO_TRANSITION, record_move(&f->l, &m));
	m.revision.value = 0;
	m.from = RECORD_SET(RECORD_BLOCKED);
	assert_int_equal(MOVE_NO_TRANSITION, record_move(&f->l, &m));
	m.from |= RECORD_SET(RECORD_SEEN);
	clock_stamp(f->l.now);
	assert_int_equal(MOVED, record_move(&f->l, &m));
	m.event_id = 404;
	assert_int_equal(MOVE_NO_RECORD, record_move(&f->l, &m));
	sql_reset_all(&f->l);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define T(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    T("T14 T15 I4 I5", every_pair_by_the_write_path),
	    T("T14 T15 I4 I5", every_refused_pair_by_raw_sql),
	    TEST(a_person_has_ways_of_its_own),
	    TEST(reasons_and_deadlines_fit_their_states),
	    T("T17", the_same_again_is_counted_and_not_dated),
	    TEST(another_reason_begins_its_own_retries),
	    TEST(blocked_and_discarded_lose_the_snapshot),
	    TEST(a_move_may_ask_for_its_revision_and_its_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
