/*
 * REDISPATCH and DISCARD of what no worker has (ledger.md 3.6, operator.md 3.3
 * and 3.4): which states they are for, and what one decision is. Of what a
 * worker has, in test_ledger_supersede.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/record.h"
#include "tests/unit/decision_scene.h"
#include "tests/unit/trap.h"

static void
queued(struct fixture *f)
{
	put_admitted(f);
	sql_ok(f, "UPDATE events SET state = 'queued'");
}

static void
discarded(struct fixture *f)
{
	put_seen(f);
	(void)refuse_event(f, 101, "discarded", "untrusted");
}

static void
succeeded(struct fixture *f)
{
	put_reported(f, "succeeded");
}

static void
without_outcome(struct fixture *f)
{
	put_unknown(f);
	sql_ok(f, "UPDATE task_events SET outcome = ''");
}

static void
waiting(struct fixture *f)
{
	put_dispatched(f);
	(void)get_dispatch(f, put_token, 0, ATT_1);
	(void)complete_dispatch(f, put_token, 101, "failed", ATT_1);
	assert_true(redispatch_event(f, 101)->decided.pending);
}

static void
content_dropped(struct fixture *f)
{
	put_unknown(f);
	sql_ok(f, "UPDATE events SET content_dropped = 1");
}

static void
without_snapshot(struct fixture *f)
{
	put_unknown(f);
	sql_ok(f, "UPDATE events SET snapshot = x''");
}

static void
without_route(struct fixture *f)
{
	put_unknown(f);
	sql_ok(f, "UPDATE events SET routed = 0");
}

static void
without_conversation(struct fixture *f)
{
	put_unknown(f);
	sql_ok(f, "UPDATE events SET conversation_key = ''");
}

static void
closed(struct fixture *f)
{
	put_blocked(f);
	assert_string_equal("discarded", discard_event(f, 101)->decided.state);
}

/* ---- every state, either decision --------------------------------------- */

/* What the refusal says besides the event; NULL: it is not refused. */
static const struct {
	void (*put)(struct fixture *f);
	const char *redispatch;
	const char *discard;
} ways[] = {
    {put_seen, "is seen: it is being decided", "is seen: it is not decided"},
    {put_admitted, "is admitted: it starts", "is admitted: it waits"},
    {queued, "is queued: it starts", "is queued: it waits"},
    {put_dispatched, "is dispatched: a worker has it",
	"is dispatched: a worker has it"},
    {put_blocked, NULL, NULL},
    {put_held, NULL, NULL},
    {discarded, "is discarded (untrusted): it is closed for good",
	"is discarded (untrusted): it is closed for another reason"},
    {closed, "is discarded (by_operator): it is closed for good", NULL},
    {without_outcome, "is completed: it has no settled outcome",
	"is completed: only an unknown outcome"},
    {succeeded, "is completed (succeeded): it is done",
	"is completed (succeeded): only an unknown outcome"},
    {put_failed, NULL, "is completed (failed): only an unknown outcome"},
    {put_unknown, NULL, NULL},
    {waiting, "is completed (failed): a redispatch waits",
	"is completed (failed): only an unknown outcome"},
    {content_dropped, "is completed (unknown): its content", NULL},
    {without_snapshot, "is completed (unknown): its content", NULL},
    {without_route, "is completed (unknown): its content", NULL},
    {without_conversation, "is completed (unknown): its content", NULL},
};

static void
try_way(size_t i, struct msg *(*decide)(struct fixture *f, int64_t id),
    const char *refusal)
{
	const struct msg *reply;
	struct fixture *f;
	void *state;
	int changes;

	(void)fixture_setup(&state);
	f = state;
	ways[i].put(f);
	fixture_forget(f);
	changes = sqlite3_total_changes(f->l.db);
	reply = decide(f, 101);
	if (refusal != NULL) {
		assert_failed(reply, "refused");
		assert_non_null(strstr(reply->failed.text, "event 101 "));
		if (strstr(reply->failed.text, refusal) == NULL)
			fail_msg("%s, not %s", reply->failed.text, refusal);
		assert_int_equal(changes, sqlite3_total_changes(f->l.db));
		assert_int_equal(0, f->line_count + f->notice_count);
	} else if (reply->type == MSG_FAILED) {
		fail_msg("%s", reply->failed.text);
	}
	(void)fixture_teardown(&state);
}

/* A refusal names event, state and why, and has written nothing. */
static void
every_state_has_its_answer(void **state)
{
	size_t i, refused = 0;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		try_way(i, redispatch_event, ways[i].redispatch);
		try_way(i, discard_event, ways[i].discard);
		refused +=
		    (ways[i].redispatch != NULL) + (ways[i].discard != NULL);
	}
	print_message("%zu decisions tried, %zu refused\n", 2 * i, refused);
}

static void
what_is_not_there_is_not_found(void **state)
{
	struct fixture *f = *state;

	assert_failed(redispatch_event(f, 404), "not_found");
	assert_failed(discard_event(f, 404), "not_found");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* ---- nonces -------------------------------------------------------------- */

/* The same nonce later: what it decided, and what has become of it. */
static void
a_repeat_says_what_stands_now(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH};
	const struct msg_decided *is;

	put_unknown(f);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 101};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED);
	(void)launch(f, 101, ATT_2);
	(void)end_attempt(f, ATT_2, "lost");
	fixture_forget(f);
	is = &fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED)->decided;
	assert_string_equal("completed", is->from_state);
	assert_string_equal("unknown", is->from_outcome);
	assert_string_equal("completed", is->state);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_int_equal(0, f->line_count + f->notice_count);
}

static void
a_nonce_decides_one_thing(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH}, other = {.type = MSG_DISCARD};

	put_unknown(f);
	(void)record_event(f, 102);
	m.redispatch = (struct msg_redispatch){NONCE_1, "local:ann", 101};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED);
	m.redispatch.event_id = 102;
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "refused");
	other.discard = (struct msg_discard){NONCE_1, "local:ann", 101};
	assert_failed(fixture_ask(f, &other, ROLE_SUPERVISOR, ""), "refused");
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM decisions"));
}

/* A decision that cannot be written whole is none. */
static void
a_decision_is_whole_or_none(void **state)
{
	struct fixture *f = *state;

	put_unknown(f);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE OF state ON events BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	assert_failed(redispatch_event(f, 101), "refused");
	assert_failed(discard_event(f, 101), "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	assert_string_equal("- ", authorization_now(f));
}

/* ---- the ways out of the end, by raw SQL -------------------------------- */

static const char *const outcomes[] = {"succeeded", "failed", "unknown"};
/* Whose decision there is: of nobody, too old, of another event, good. */
enum standing { NONE, OLD, ANOTHERS, GOOD, STANDINGS };
static const char *const actions[] = {"redispatch", "discard", "import"};
static const char *const reasons[] = {"", "by_operator", "imported_done"};

static bool
exit_is_open(const char *outcome, enum standing standing, const char *action,
    enum record_state to, const char *reason)
{
	bool is_unknown = strcmp(outcome, "unknown") == 0;
	bool is_open = is_unknown || strcmp(outcome, "failed") == 0;

	if (to == RECORD_COMPLETED)
		return true;
	if (standing != GOOD)
		return false;
	if (to == RECORD_ADMITTED)
		return is_open && strcmp(action, "redispatch") == 0;
	if (to != RECORD_DISCARDED)
		return false;
	return (strcmp(reason, "by_operator") == 0 && is_unknown &&
		   strcmp(action, "discard") == 0) ||
	    (strcmp(reason, "imported_done") == 0 && is_open &&
		strcmp(action, "import") == 0);
}

static void
put_exit(struct fixture *f, const char *outcome, enum standing standing,
    const char *action)
{
	sql_ok(
	    f, "SAVEPOINT s; UPDATE task_events SET outcome = '%s'", outcome);
	if (standing == NONE)
		return;
	sql_ok(f,
	    "INSERT INTO decisions (id, action, event_id, decided_by,"
	    " decided_at) VALUES (1, '%s', %d, 'me', '2026-01-05T%s')",
	    action, standing == ANOTHERS ? 102 : 101,
	    standing == OLD ? "08:59:59.999999999Z" : "09:00:00.000000000Z");
	sql_ok(f, "UPDATE events SET redispatch_decision = 1");
}

static size_t
try_exits(struct fixture *f, const char *outcome, enum standing standing,
    const char *action)
{
	enum record_state to;
	size_t r, n = 0;

	for (to = 0; to < RECORD_STATES; to++) {
		for (r = 0; r < 3; r++, n++) {
			bool open, was;

			put_exit(f, outcome, standing, action);
			open = exit_is_open(
			    outcome, standing, action, to, reasons[r]);
			was =
			    sql(f,
				"UPDATE events SET state = '%s',"
				" reason = '%s', redispatch_decision = NULL"
				" WHERE id = 101",
				record_state_name(to), reasons[r]) == SQLITE_OK;
			if (open != was)
				fail_msg("%s, %d %s, to %s %s: %d", outcome,
				    (int)standing, action,
				    record_state_name(to), reasons[r], was);
			sql_ok(f, "ROLLBACK TO s; RELEASE s");
		}
	}
	return n;
}

static void
a_finished_record_has_three_ways_out(void **state)
{
	struct fixture *f = *state;
	enum standing standing;
	size_t o, a, n = 0;

	put_unknown(f);
	(void)record_event(f, 102);
	for (o = 0; o < 3; o++) {
		for (standing = NONE; standing < STANDINGS; standing++) {
			for (a = 0; a < 3; a++)
				n += try_exits(
				    f, outcomes[o], standing, actions[a]);
		}
	}
	print_message("%zu ways out tried\n", n);
}

/* Closed is closed, whatever anybody decided. */
static void
a_discarded_record_has_none(void **state)
{
	struct fixture *f = *state;
	enum record_state to;
	size_t a;

	put_unknown(f);
	(void)discard_event(f, 101);
	sql_put(f, "DELETE FROM decisions");
	for (a = 0; a < 3; a++) {
		for (to = 0; to < RECORD_STATES; to++) {
			if (to == RECORD_DISCARDED)
				continue;
			put_exit(f, "unknown", GOOD, actions[a]);
			sql_refused(f,
			    "UPDATE events SET state = '%s',"
			    " redispatch_decision = NULL, snapshot = '{}'",
			    record_state_name(to));
			sql_ok(f, "ROLLBACK TO s; RELEASE s");
		}
	}
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_state_has_its_answer),
	    TEST(what_is_not_there_is_not_found),
	    TEST(a_repeat_says_what_stands_now),
	    TEST(a_nonce_decides_one_thing),
	    TEST(a_decision_is_whole_or_none),
	    PROVES("T65 I13", a_finished_record_has_three_ways_out),
	    PROVES("T65 I13", a_discarded_record_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
