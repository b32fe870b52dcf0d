/* The reconciliation file of a cutover (operator.md 3.8, ledger.md 3.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/xmalloc.h"
#include "ledger/import_file.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define BY "local:ann"
#define FILE_OF(entries) "{\"version\": 1, \"entries\": [" entries "]}"
#define DONE(id) "{\"event_id\": " #id ", \"decision\": \"done\"}"
#define HELD(id) "{\"event_id\": " #id ", \"decision\": \"held\"}"

static struct msg *
import_as(struct fixture *f, const char *nonce, const char *file)
{
	struct msg m = {.type = MSG_IMPORT};

	m.import = (struct msg_import){nonce, BY, {file, strlen(file)}};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

static struct msg *
import(struct fixture *f, const char *file)
{
	static char nonce[33];
	static int n;

	(void)snprintf(nonce, sizeof(nonce), "%032d", 2000 + n++);
	return import_as(f, nonce, file);
}

static const struct msg_imported *
imported(const struct msg *m)
{
	if (m->type == MSG_FAILED)
		fail_msg("%s: %s", m->failed.reason, m->failed.text);
	assert_int_equal(MSG_IMPORTED, m->type);
	return &m->imported;
}

static void
assert_counts(const struct msg_imported *is, int tombstoned, int discarded,
    int already_terminal)
{
	assert_int_equal(tombstoned, is->tombstoned);
	assert_int_equal(discarded, is->discarded);
	assert_int_equal(already_terminal, is->already_terminal);
}

/* ---- one record in each state ------------------------------------------ */

static void
seen(struct fixture *f)
{
	(void)record_event(f, 101);
}

static void
admitted(struct fixture *f)
{
	seen(f);
	(void)admit_event(f, 101, "k");
}

static void
queued(struct fixture *f)
{
	(void)record_event(f, 90);
	(void)admit_event(f, 90, "k");
	seen(f);
	assert_string_equal("queued", admit_event(f, 101, "k"));
}

static void
blocked(struct fixture *f)
{
	seen(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

static void
held(struct fixture *f)
{
	admitted(f);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 101");
}

static const char *
dispatched(struct fixture *f)
{
	admitted(f);
	return launch(f, 101, ATT_1);
}

static void
reported(struct fixture *f, const char *outcome)
{
	const char *token = dispatched(f);

	(void)get_dispatch(f, token, 101, ATT_1);
	(void)complete_dispatch(f, token, 101, outcome, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
}

static void
failed(struct fixture *f)
{
	reported(f, "failed");
}

static void
succeeded(struct fixture *f)
{
	reported(f, "succeeded");
}

static void
unknown(struct fixture *f)
{
	(void)dispatched(f);
	(void)end_attempt(f, ATT_1, "lost");
}

static void
discarded(struct fixture *f)
{
	seen(f);
	(void)refuse_event(f, 101, "discarded", "not_addressed");
}

/*
 * What `done` makes of it, and the decision's own words: from state, reason
 * and outcome, to state.
 */
static const struct {
	void (*before)(struct fixture *f);
	const char *state, *decision;
	int discarded, already_terminal;
} dones[] = {
    {seen, "discarded imported_done", "seen   discarded", 1, 0},
    {admitted, "discarded imported_done", "admitted   discarded", 1, 0},
    {queued, "discarded imported_done", "queued   discarded", 1, 0},
    {blocked, "discarded imported_done", "blocked no_route  discarded", 1, 0},
    {held, "discarded imported_done", "held   discarded", 1, 0},
    {failed, "discarded imported_done", "completed  failed discarded", 1, 0},
    {unknown, "discarded imported_done", "completed  unknown discarded", 1, 0},
    {succeeded, "completed ", "completed  succeeded completed", 0, 1},
    {discarded, "discarded not_addressed", "discarded not_addressed  discarded",
	0, 1},
};

static void
done_ends_what_has_not_ended(void **state)
{
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(dones) / sizeof(dones[0]); i++) {
		dones[i].before(f);
		fixture_wait(1000);
		assert_counts(imported(import(f, FILE_OF(DONE(101)))), 0,
		    dones[i].discarded, dones[i].already_terminal);
		assert_string_equal(dones[i].state,
		    sql_get(f,
			"SELECT state || ' ' || reason FROM events"
			" WHERE id = 101"));
		assert_string_equal(dones[i].decision,
		    sql_get(f,
			"SELECT from_state || ' ' || from_reason || ' ' ||"
			" from_outcome || ' ' || to_state FROM decisions"
			" WHERE action = 'import' AND event_id = 101"
			" AND decided_by = '" BY "'"));
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* Nothing of its own: it is the tag that holds what waits. */
static void
held_only_names_what_is_there(void **state)
{
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(dones) / sizeof(dones[0]); i++) {
		const char *before;

		dones[i].before(f);
		before = state_of(f, 101);
		assert_counts(imported(import(f, FILE_OF(HELD(101)))), 0, 0, 0);
		assert_string_equal(strcmp(before, "admitted") == 0 ||
			    strcmp(before, "queued") == 0
			? "held"
			: before,
		    state_of(f, 101));
		assert_int_equal(0,
		    sql_int(f,
			"SELECT COUNT(*) FROM decisions"
			" WHERE event_id IS NOT NULL"));
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* The feed may serve it later: by then it is known. */
static void
an_unknown_event_becomes_a_tombstone(void **state)
{
	struct fixture *f = *state;

	assert_counts(imported(import(f, FILE_OF(DONE(101)))), 1, 0, 0);
	assert_string_equal("discarded imported_done import 1 0 ",
	    sql_get(f,
		"SELECT state || ' ' || reason || ' ' || lane || ' ' ||"
		" content_dropped || ' ' || bucket_id || ' ' || event_type"
		" FROM events"));
	assert_string_equal("  discarded",
	    sql_get(f,
		"SELECT from_state || ' ' || from_reason || ' ' || to_state"
		" FROM decisions WHERE event_id = 101"));
	assert_false(record_event(f, 101));
	assert_string_equal("discarded", state_of(f, 101));
}

/* ---- all or nothing ---------------------------------------------------- */

/* The ledger's tables, to be compared. */
static char *
dump(struct fixture *f)
{
	static const char *const tables[] = {
	    "events", "decisions", "outbox", "task_events", "tasks"};
	struct buffer b = {0};
	sqlite3_stmt *stmt;
	char text[64];
	size_t t;
	int i;

	for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		(void)snprintf(
		    text, sizeof(text), "SELECT * FROM %s", tables[t]);
		(void)sqlite3_prepare_v2(f->l.db, text, -1, &stmt, NULL);
		while (sqlite3_step(stmt) == SQLITE_ROW) {
			for (i = 0; i < sqlite3_column_count(stmt); i++)
				buffer_printf(&b, "%s|", row_text(stmt, i));
		}
		(void)sqlite3_finalize(stmt);
	}
	return buffer_take(&b, NULL);
}

static const struct {
	const char *file, *why;
} refused[] = {
    {FILE_OF(DONE(1)) " {}", "something after the value"},
    {FILE_OF(DONE(1)) "[]", "something after the value"},
    {FILE_OF(DONE(1)) " 0", "something after the value"},
    {FILE_OF(DONE(1)) "null", "something after the value"},
    {FILE_OF(DONE(1)) "\"x", "something after the value"},
    {FILE_OF(DONE(1)) "\x01", "something after the value"},
    {FILE_OF(DONE(1) ", " DONE(2) ", " DONE(1)),
	"entry 3: event 1 was there before"},
    {FILE_OF(DONE(1) ", " HELD(1)), "entry 2: event 1 was there before"},
    {FILE_OF(DONE(7) ", " DONE(1) ", " DONE(1) ", " DONE(7)),
	"entry 3: event 1 was there before"},
    {"{\"version\": 1, \"entries\": [], \"note\": 1}", "an unknown member"},
    {"{\"note\": \"x\", \"version\": 1, \"entries\": []}", "an unknown member"},
    {FILE_OF("{\"event_id\": 1, \"decision\": \"done\", \"by\": 1}"),
	"entry 1: an unknown member"},
    {FILE_OF("{\"event_id\": 1, \"decision\": \"done\", \"decision\": "
	     "\"held\"}"),
	"there before"},
    {"{\"version\": 1, \"version\": 1, \"entries\": []}", "there before"},
    {"{\"version\": 1, \"entries\": [], \"entries\": []}", "there before"},
    {"{\"version\": 2, \"entries\": []}", "version: only 1 is known"},
    {"{\"version\": 0, \"entries\": []}", "version: only 1 is known"},
    {"{\"version\": 1.0, \"entries\": []}", "version"},
    {"{\"version\": \"1\", \"entries\": []}", "version"},
    {"{\"entries\": []}", "version"},
    {"{\"version\": 1}", "entries: missing"},
    {"{\"version\": 1, \"entries\": null}", "entries: not an array"},
    {"{\"version\": 1, \"entries\": {}}", "entries: not an array"},
    {"[]", "entries: missing"},
    {"", "line 1"},
    {"{\"version\": 1, \"entries\": [" DONE(1), "line 1"},
    {FILE_OF("7"), "entry 1: not an object"},
    {FILE_OF(DONE(1) ", []"), "entry 2: not an object"},
    {FILE_OF("{}"), "entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": 1}"), "entry 1: member \"decision\""},
    {FILE_OF("{\"event_id\": null, \"decision\": \"done\"}"),
	"entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": 0, \"decision\": \"done\"}"),
	"entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": -1, \"decision\": \"done\"}"),
	"entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": 1.5, \"decision\": \"done\"}"),
	"entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": \"1\", \"decision\": \"done\"}"),
	"entry 1: member \"event_id\""},
    {FILE_OF("{\"event_id\": 9223372036854775808, \"decision\": \"done\"}"),
	"64 bits"},
    {FILE_OF("{\"event_id\": 1, \"decision\": \"Done\"}"),
	"entry 1: decision: neither done nor held"},
    {FILE_OF("{\"event_id\": 1, \"decision\": \"done\\u0000\"}"),
	"entry 1: decision: neither done nor held"},
    {FILE_OF("{\"event_id\": 1, \"decision\": {\"a\": []}}"), "line 1"},
    {"\xef\xbb\xbf" FILE_OF(DONE(1)), "byte order"},
};

/* Whatever is wrong, the text says what, and nothing was written. */
static void
a_wrong_file_changes_nothing(void **state)
{
	struct fixture *f = *state;
	char *before, *after;
	struct msg *reply;
	size_t i;

	admitted(f);
	before = dump(f);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		reply = import(f, refused[i].file);
		assert_failed(reply, "refused");
		if (strstr(reply->failed.text, refused[i].why) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"",
			    refused[i].file, reply->failed.text,
			    refused[i].why);
		after = dump(f);
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
}

/* Found wanting at its last entry, it has done nothing at its first. */
static void
a_file_that_does_not_fit_changes_nothing(void **state)
{
	static const struct {
		const char *file, *why;
	} files[] = {
	    {FILE_OF(DONE(55) ", " DONE(102) ", " DONE(101)),
		"entry 3 (event 101): it is dispatched"},
	    {FILE_OF(DONE(55) ", " DONE(102) ", " HELD(404)),
		"entry 3 (event 404): held, but it is not in the ledger"},
	};
	struct fixture *f = *state;
	char *before, *after;
	struct msg *reply;
	int64_t depth;
	size_t i;

	(void)dispatched(f);
	(void)record_event(f, 102);
	fixture_forget(f);
	depth = f->l.depth;
	before = dump(f);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		reply = import(f, files[i].file);
		assert_failed(reply, "refused");
		assert_non_null(strstr(reply->failed.text, files[i].why));
		after = dump(f);
		assert_string_equal(before, after);
		free(after);
		assert_int_equal(depth, f->l.depth);
	}
	assert_int_equal(0, f->line_count);
	free(before);
}

/* White space may follow, and the order of members is free. */
static void
what_is_right_is_read(void **state)
{
	static const char *const files[] = {
	    FILE_OF(DONE(1)) " \n\t\r ",
	    "{\"entries\":[{\"decision\":\"done\",\"event_id\":2}],"
	    "\"version\":1}",
	    FILE_OF(""),
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)imported(import(f, files[i]));
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM events"));
}

static void
sixteen_mebibytes_are_the_most(void **state)
{
	static const char head[] = "{\"version\":1,\"entries\":[]}";
	char *text = xmalloc(IMPORT_FILE_MAX + 1);
	struct import_file file;
	struct error e;

	memset(text, ' ', IMPORT_FILE_MAX + 1);
	memcpy(text, head, sizeof(head) - 1);
	assert_int_equal(0, import_file_read(text, IMPORT_FILE_MAX, &file, &e));
	import_file_free(&file);
	assert_int_equal(
	    -1, import_file_read(text, IMPORT_FILE_MAX + 1, &file, &e));
	assert_non_null(strstr(e.text, "16777216"));
	free(text);
}

/* ---- what else an import does ------------------------------------------ */

/* Mapped or not, what has not ended needs a person from here on. */
static void
what_is_left_needs_a_person(void **state)
{
	struct fixture *f = *state;
	const struct msg_imported *is;
	int64_t id;

	(void)record_event(f, 1);
	(void)record_event(f, 2);
	(void)admit_event(f, 2, "a");
	(void)record_event(f, 3);
	(void)refuse_event(f, 3, "blocked", "no_route");
	(void)record_event(f, 4);
	(void)admit_event(f, 4, "d");
	(void)launch(f, 4, ATT_1);
	(void)record_event(f, 5);
	(void)refuse_event(f, 5, "discarded", "x");
	sql_ok(f,
	    "UPDATE events SET authorized_at = 'a', authorized_by = 'x'"
	    " WHERE id IN (2, 3)");
	fixture_forget(f);
	is = imported(import(f, FILE_OF(DONE(77) ", " HELD(3))));
	assert_int_equal(4, is->tagged);
	assert_int_equal(1, is->held);
	for (id = 1; id <= 4; id++)
		assert_string_equal("1 ",
		    sql_get(f,
			"SELECT review || ' ' || authorized_by FROM events"
			" WHERE id = %d AND authorized_at IS NULL",
			(int)id));
	assert_string_equal("seen", state_of(f, 1));
	assert_string_equal("held", state_of(f, 2));
	assert_string_equal("blocked", state_of(f, 3));
	assert_string_equal("dispatched", state_of(f, 4));
	assert_int_equal(
	    0, sql_int(f, "SELECT review FROM events WHERE id IN (5, 77)"));
	/* The guard of what became held; no marker is set. */
	assert_int_equal(1, f->line_count);
	assert_non_null(strstr(f->lines[0], "\"state\":\"canceled\""));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM hold_marker"));
}

/* Decided by a machine before, it is a person's now. */
static void
a_tagged_seen_record_is_held_by_its_verdict(void **state)
{
	struct fixture *f = *state;

	seen(f);
	(void)imported(import(f, FILE_OF("")));
	assert_string_equal("seen", state_of(f, 101));
	assert_string_equal("held", admit_event(f, 101, "k"));
}

/* One that waited for its task's end does not wait any more. */
static void
an_import_revokes_a_waiting_redispatch(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH};
	const char *token = dispatched(f);

	(void)get_dispatch(f, token, 101, ATT_1);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	m.redispatch = (struct msg_redispatch){NONCE_1, BY, 101};
	assert_true(fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED)
			->decided.pending);
	(void)imported(import(f, FILE_OF("")));
	assert_int_equal(1,
	    sql_int(f,
		"SELECT redispatch_decision IS NULL AND authorized_at IS NULL"
		" FROM events"));
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("completed", state_of(f, 101));
}

/* The same for one that the file calls done: it ends, and stays so. */
static void
done_withdraws_a_waiting_redispatch(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_REDISPATCH};
	const char *token = dispatched(f);

	(void)get_dispatch(f, token, 101, ATT_1);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	m.redispatch = (struct msg_redispatch){NONCE_1, BY, 101};
	(void)fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_DECIDED);
	assert_counts(imported(import(f, FILE_OF(DONE(101)))), 0, 1, 0);
	assert_string_equal("1 ",
	    sql_get(f,
		"SELECT (redispatch_decision IS NULL AND authorized_at IS"
		" NULL) || ' ' || authorized_by FROM events"));
	(void)end_attempt(f, ATT_1, "finished");
	assert_string_equal("discarded", state_of(f, 101));
}

#define HOLDING(f, column) \
	sql_get(f, "SELECT " column " FROM outbox WHERE kind = 'holding_reply'")

/* Guard and holding reply of what is done; nobody else's words. */
static void
what_would_still_be_said_is_canceled(void **state)
{
	struct fixture *f = *state;

	admitted(f);
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "blocked", "no_route");
	(void)record_event(f, 103);
	(void)refuse_event(f, 103, "blocked", "no_route");
	fixture_forget(f);
	(void)imported(import(f, FILE_OF(DONE(101) ", " DONE(102))));
	assert_int_equal(2,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE state = 'canceled'"
		" AND event_id IN (101, 102)"));
	assert_int_equal(1,
	    sql_int(f,
		"SELECT COUNT(*) FROM outbox WHERE state = 'pending'"
		" AND event_id = 103"));
	/* Two messages and two records. */
	assert_int_equal(4, f->line_count);
	assert_non_null(strstr(f->lines[0], "\"type\":\"outbox\""));
	assert_non_null(strstr(f->lines[1], "\"event_id\":101"));
	assert_non_null(strstr(f->lines[1],
	    "\"state\":\"discarded\",\"reason\":\"imported_done\""));
}

static void
refused_since(struct fixture *f)
{
	blocked(f);
	assert_string_equal(
	    "discarded", refuse_event(f, 101, "discarded", "not_directed"));
}

static void
answered_in_time(struct fixture *f)
{
	const char *token;

	blocked(f);
	(void)admit_event(f, 101, "k");
	token = launch(f, 101, ATT_1);
	(void)get_dispatch(f, token, 101, ATT_1);
	(void)complete_dispatch(f, token, 101, "succeeded", ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
}

/* While nothing is posted, a word of what has ended waits still. */
static void
what_has_ended_says_nothing_more(void **state)
{
	static void (*const ends[])(struct fixture * f) = {
	    refused_since, answered_in_time};
	struct fixture *f = *state;
	const char *before;
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		ends[i](f);
		before = state_of(f, 101);
		assert_string_equal("pending", HOLDING(f, "state"));
		fixture_forget(f);
		assert_counts(imported(import(f, FILE_OF(DONE(101)))), 0, 0, 1);
		assert_string_equal(before, state_of(f, 101));
		assert_string_equal("canceled", HOLDING(f, "state"));
		assert_string_equal(HOLDING(f, "note"),
		    sql_get(f,
			"SELECT 'canceled by decision ' || id FROM decisions"
			" WHERE event_id = 101"));
		assert_int_equal(1, f->line_count);
		assert_non_null(strstr(f->lines[0], "\"state\":\"canceled\""));
		(void)fixture_teardown(state);
		(void)fixture_setup(state);
		f = *state;
	}
}

/* A clock that was set back dates no decision before its outcome. */
static void
a_decision_is_not_older_than_the_outcome(void **state)
{
	struct fixture *f = *state;

	unknown(f);
	fixture_wait(-3600000);
	assert_counts(imported(import(f, FILE_OF(DONE(101)))), 0, 1, 0);
	assert_int_equal(1,
	    sql_int(f,
		"SELECT d.decided_at = t.completed_at FROM decisions d,"
		" task_events t WHERE d.event_id = 101"));
}

/* Intake counts what is undecided: that is less now. */
static void
done_lessens_the_depth(void **state)
{
	struct fixture *f = *state;

	seen(f);
	(void)record_event(f, 102);
	assert_int_equal(2, f->l.depth);
	(void)imported(import(f, FILE_OF(DONE(101))));
	assert_int_equal(1, f->l.depth);
	fixture_restart(f);
	assert_int_equal(1, f->l.depth);
}

static void
the_whole_file_is_one_decision_more(void **state)
{
	struct fixture *f = *state;
	const struct msg_imported *first, *again;
	char *before, *after;

	seen(f);
	first =
	    imported(import_as(f, NONCE_1, FILE_OF(DONE(101) ", " DONE(102))));
	assert_string_equal("import " BY,
	    sql_get(f,
		"SELECT action || ' ' || decided_by FROM decisions"
		" WHERE nonce = '" NONCE_1 "' AND event_id IS NULL"));
	assert_int_equal(3, sql_int(f, "SELECT COUNT(*) FROM decisions"));
	(void)record_event(f, 103);
	(void)admit_event(f, 103, "k");
	before = dump(f);
	again =
	    imported(import_as(f, NONCE_1, FILE_OF(DONE(101) ", " DONE(102))));
	assert_memory_equal(first, again, sizeof(*first));
	after = dump(f);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* A posted notice asked for its redispatch: it is told to be closed. */
static void
a_posted_ask_is_answered(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RECEIPT}, *c;

	unknown(f);
	c = claim(f, NONCE_1);
	assert_string_equal("completion", c->claimed.kind);
	m.receipt = (struct msg_receipt){c->claimed.intent_id, NONCE_1, 77};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	(void)imported(import(f, FILE_OF(DONE(101))));
	c = claim(f, NONCE_2);
	assert_string_equal("retraction", c->claimed.kind);
	assert_non_null(
	    memmem(c->claimed.body.bytes, c->claimed.body.len, "closed it", 9));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROVES(traps, name) TRAP(traps, name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    PROVES("T71", done_ends_what_has_not_ended),
	    TEST(held_only_names_what_is_there),
	    TEST(an_unknown_event_becomes_a_tombstone),
	    PROVES("T70", a_wrong_file_changes_nothing),
	    TEST(a_file_that_does_not_fit_changes_nothing),
	    TEST(what_is_right_is_read),
	    TEST(sixteen_mebibytes_are_the_most),
	    TEST(what_is_left_needs_a_person),
	    PROVES("T56", a_tagged_seen_record_is_held_by_its_verdict),
	    PROVES("T60", an_import_revokes_a_waiting_redispatch),
	    TEST(done_withdraws_a_waiting_redispatch),
	    TEST(what_would_still_be_said_is_canceled),
	    TEST(what_has_ended_says_nothing_more),
	    PROVES("T64", a_decision_is_not_older_than_the_outcome),
	    TEST(done_lessens_the_depth),
	    TEST(the_whole_file_is_one_decision_more),
	    TEST(a_posted_ask_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
