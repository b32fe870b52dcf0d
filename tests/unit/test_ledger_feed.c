/* What intake reads and decides: RECORD to VERDICT, entries and gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

#define KEY "[\"o\",\"1\",\"c\",\"f\"]"
#define OTHER_KEY "[\"o\",\"1\",\"c\",\"g\"]"
#define LINEAGE "[\"o\",\"1\",\"c\",\"\"]"

static struct msg_entry_is *
entry(struct fixture *f, const char *key)
{
	struct msg m = {.type = MSG_ENTRY};

	m.entry.flat_key = key;
	m.entry.lineage = LINEAGE;
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_ENTRY_IS)->entry_is;
}

static bool
checkpoint(
    struct fixture *f, const char *key, const char *position, int64_t served)
{
	struct msg m = {.type = MSG_CHECKPOINT};

	m.checkpoint = (struct msg_checkpoint){key, LINEAGE, position, served};
	return fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed;
}

static struct msg_undecided *
next_undecided(struct fixture *f, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_UNDECIDED};

	m.next_undecided.after = after;
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_UNDECIDED)->undecided;
}

static void
an_event_is_recorded_once(void **state)
{
	struct fixture *f = *state;
	const char *before;

	assert_true(record_event(f, 101));
	before = sql_get(f,
	    "SELECT seen_at || updated_at || revision"
	    " FROM events");
	fixture_wait(1000);
	assert_false(record_event(f, 101));
	assert_string_equal(before,
	    sql_get(f,
		"SELECT seen_at || updated_at || revision"
		" FROM events"));
	assert_int_equal(1, f->line_count); /* the pointer, once */
}

static void
a_pointer_line_says_what_came(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	assert_string_equal(
	    "{\"event_id\":101,\"event_type\":\"comment.created\","
	    "\"kind\":\"comment_created\",\"action\":\"created\","
	    "\"bucket_id\":10,\"creator_id\":26909558,"
	    "\"performed_by_id\":null,\"recording_id\":1101,"
	    "\"created_at\":\"2026-01-05T08:59:00.5Z\",\"lane\":\"poll\","
	    "\"state\":\"seen\"}",
	    f->lines[0]);
}

static void
a_finished_record_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "discarded", "not_addressed");
	assert_false(record_event(f, 101));
	assert_string_equal("discarded", state_of(f, 101));
}

static void
a_lost_id_is_recovered_when_it_comes(void **state)
{
	struct fixture *f = *state;

	sql_put(f,
	    "INSERT INTO losses (detected_at, dropped_count,"
	    " repair_since, deadline_at) VALUES ('d', 3, 100, 'd');"
	    "INSERT INTO loss_ids VALUES (1, 101, 'missing'),"
	    " (1, 102, 'unrecovered'), (1, 103, 'never_lost')");
	(void)record_event(f, 101);
	(void)record_event(f, 102);
	(void)record_event(f, 103);
	assert_string_equal("recovered recovered never_lost",
	    sql_get(f,
		"SELECT group_concat(state, ' ') FROM"
		" (SELECT state FROM loss_ids ORDER BY event_id)"));
	/* Also a known one: its loss may be newer than its row. */
	sql_put(f,
	    "UPDATE loss_ids SET state = 'missing'"
	    " WHERE event_id = 101");
	(void)record_event(f, 101);
	assert_string_equal("recovered",
	    sql_get(f, "SELECT state FROM loss_ids WHERE event_id = 101"));
}

static void
a_record_of_another_form_is_refused(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RECORD};

	m.record = (struct msg_record){.event_id = 101,
	    .lane = "import",
	    .event_type = "x",
	    .kind = "x",
	    .action = "x",
	    .bucket_id = 1,
	    .creator_id = 1,
	    .recording_id = 1,
	    .created_at = "2026-01-05T08:59:00.500000000Z"};
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	m.record.lane = "live";
	m.record.created_at = "2026-01-05T08:59:00.0000+00:00";
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM events"));
}

static void
depth_counts_what_is_undecided(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	(void)record_event(f, 102);
	assert_int_equal(2, entry(f, KEY)->depth);
	(void)admit_event(f, 101, "k");
	assert_int_equal(1, entry(f, KEY)->depth);
	(void)refuse_event(f, 102, "blocked", "read_failed");
	assert_int_equal(0, entry(f, KEY)->depth);
	/* Decided again, it was not undecided before. */
	(void)refuse_event(f, 102, "blocked", "read_failed");
	assert_int_equal(0, entry(f, KEY)->depth);
	(void)record_event(f, 103);
	fixture_restart(f);
	assert_int_equal(1, entry(f, KEY)->depth);
}

static void
a_request_that_fails_leaves_the_depth(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	(void)record_event(f, 101);
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON outbox BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	m = verdict_of(f, 101, "admitted");
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	assert_int_equal(1, entry(f, KEY)->depth);
	assert_string_equal("seen", state_of(f, 101));
}

/* ---- positions --------------------------------------------------------- */

static void
entries_know_key_and_lineage(void **state)
{
	struct fixture *f = *state;
	struct msg_entry_is *is = entry(f, KEY);

	assert_string_equal("", is->position);
	assert_int_equal(0, is->served_id);
	assert_int_equal(0, is->lineage_served_id);
	assert_false(is->lineage_is_known);
	assert_true(checkpoint(f, OTHER_KEY, "pos", 70));
	is = entry(f, KEY);
	assert_string_equal("", is->position);
	assert_int_equal(0, is->served_id);
	assert_int_equal(70, is->lineage_served_id);
	assert_true(is->lineage_is_known);
	is = entry(f, OTHER_KEY);
	assert_string_equal("pos", is->position);
	assert_int_equal(70, is->served_id);
}

static void
the_served_id_only_grows(void **state)
{
	struct fixture *f = *state;

	assert_true(checkpoint(f, KEY, "", 70));
	assert_string_equal("", entry(f, KEY)->position);
	assert_true(checkpoint(f, KEY, "p1", 0));
	assert_false(checkpoint(f, KEY, "p1", 60));
	assert_int_equal(70, entry(f, KEY)->served_id);
	assert_true(checkpoint(f, KEY, "p2", 80));
	assert_int_equal(80, entry(f, KEY)->served_id);
	assert_string_equal("p2", entry(f, KEY)->position);
}

static void
a_refused_position_goes_and_no_other(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_DROP_POSITION};

	(void)checkpoint(f, KEY, "p1", 70);
	m.drop_position.flat_key = KEY;
	m.drop_position.position = "p0";
	assert_false(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
	m.drop_position.position = "p1";
	assert_true(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
	assert_string_equal("", entry(f, KEY)->position);
	assert_int_equal(70, entry(f, KEY)->served_id);
	/* No id to go on from: but history is not to be skipped for that. */
	assert_true(checkpoint(f, "[\"other\"]", "p1", 0));
	m.drop_position.flat_key = "[\"other\"]";
	assert_true(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
	assert_true(entry(f, "[\"other\"]")->lineage_is_known);
}

/* --since counts until the run has saved a position, whoever saved it. */
static void
a_position_is_of_the_run_that_saved_it(void **state)
{
	struct fixture *f = *state;

	assert_false(entry(f, KEY)->is_saved);
	assert_true(checkpoint(f, KEY, "", 70));
	assert_false(entry(f, KEY)->is_saved);
	assert_true(checkpoint(f, KEY, "p1", 0));
	assert_true(entry(f, KEY)->is_saved);
	assert_false(entry(f, OTHER_KEY)->is_saved);
	memset(f->l.run_id, 'b', 32);
	assert_false(entry(f, KEY)->is_saved);
	assert_true(checkpoint(f, KEY, "p1", 0));
	assert_true(entry(f, KEY)->is_saved);
}

static void
a_gap_has_an_epoch_or_is_retention(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_GAP}, *reply;

	m.gap = (struct msg_gap){.nonce = NONCE_1, .class = "epoch"};
	reply = fixture_ask(f, &m, ROLE_INTAKE, "");
	assert_failed(reply, "refused");
	assert_string_equal(
	    "GAP: an epoch, and only that, has an id", reply->failed.text);
	m.gap.epoch_after_id = (struct opt){true, 0}; /* zero is an epoch */
	assert_true(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
	m.gap.nonce = NONCE_2;
	m.gap.class = "retention";
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	m.gap.epoch_after_id.has = false;
	assert_true(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
	assert_int_equal(2, sql_int(f, "SELECT COUNT(*) FROM gaps"));
}

static void
gap_refused(struct fixture *f, struct msg *m, const char *text)
{
	struct msg *reply = fixture_ask(f, m, ROLE_INTAKE, "");

	assert_failed(reply, "refused");
	assert_string_equal(text, reply->failed.text);
}

static void
a_gap_has_words_of_its_lists(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_GAP};

	m.gap = (struct msg_gap){.nonce = NONCE_1, .class = "hole"};
	gap_refused(f, &m, "GAP: class 'hole' is neither epoch nor retention");
	m.gap.class = "retention";
	m.gap.entry_class = "past";
	gap_refused(f, &m,
	    "GAP: entry_class 'past' is none of present, replay, unknown");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM gaps"));
	m.gap.entry_class = "unknown";
	assert_true(
	    fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE)->done.changed);
}

/* ---- deciding ---------------------------------------------------------- */

static void
undecided_records_come_by_id(void **state)
{
	struct fixture *f = *state;
	struct msg_undecided *u;

	assert_false(next_undecided(f, 0)->found);
	(void)record_event(f, 102);
	(void)record_event(f, 101);
	u = next_undecided(f, 0);
	assert_true(u->found);
	assert_int_equal(101, u->event_id);
	assert_int_equal(0, u->revision);
	assert_string_equal("comment.created", u->event_type);
	assert_int_equal(RECORDING(101), u->recording_id);
	assert_int_equal(102, next_undecided(f, 101)->event_id);
	assert_false(next_undecided(f, 102)->found);
}

static void
a_blocked_record_is_due_by_its_own_clock(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	(void)record_event(f, 101);
	m = verdict_of(f, 101, "blocked");
	m.verdict.reason = "read_failed";
	m.verdict.next_retry_at = "2026-01-05T09:10:00.000000000Z";
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_false(next_undecided(f, 0)->found);
	assert_int_equal(600000, next_undecided(f, 0)->retry_in_ms);
	fixture_wait(599999);
	assert_false(next_undecided(f, 0)->found);
	assert_int_equal(1, next_undecided(f, 0)->retry_in_ms);
	fixture_wait(1);
	assert_true(next_undecided(f, 0)->found);
	assert_int_equal(1, next_undecided(f, 0)->revision);
	assert_int_equal(0, next_undecided(f, 0)->retry_in_ms);
	/* What waits for a person is never due. */
	(void)refuse_event(f, 101, "blocked", "no_route");
	fixture_wait(86400000);
	assert_false(next_undecided(f, 0)->found);
}

static void
a_verdict_applies_at_its_revision_only(void **state)
{
	struct fixture *f = *state;
	struct msg first, second, *reply;

	(void)record_event(f, 101);
	first = verdict_of(f, 101, "admitted");
	second = verdict_of(f, 101, "discarded");
	second.verdict.reason = "stale";
	reply = fixture_get(f, &first, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_true(reply->verdict_is.applied);
	assert_string_equal("admitted", reply->verdict_is.state);
	reply = fixture_get(f, &second, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_false(reply->verdict_is.applied);
	assert_string_equal("admitted", reply->verdict_is.state);
	second.verdict.revision = 1; /* decided all the same */
	reply = fixture_get(f, &second, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_false(reply->verdict_is.applied);
	assert_string_equal("admitted", state_of(f, 101));
	second.verdict.event_id = 404;
	assert_failed(fixture_ask(f, &second, ROLE_INTAKE, ""), "not_found");
}

/* Blocked still, but decided since it was read. */
static void
a_verdict_on_an_older_revision_is_no_failure(void **state)
{
	struct fixture *f = *state;
	struct msg stale, *reply;

	(void)record_event(f, 101);
	stale = verdict_of(f, 101, "admitted");
	(void)refuse_event(f, 101, "blocked", "read_failed");
	reply = fixture_get(f, &stale, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_false(reply->verdict_is.applied);
	assert_string_equal("blocked", reply->verdict_is.state);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
a_verdict_is_kept_with_its_columns(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "recording:7");
	assert_string_equal(
	    "mentioned 1 recording:7 comment 5101 1 /srv/web web "
	    "https://3.basecamp.com/999/buckets/10/x 26909558 " SNAPSHOT
	    " 2026-01-05T09:00:00.000000000Z 1",
	    sql_get(f,
		"SELECT trigger_name || ' ' || acknowledge || ' ' ||"
		" conversation_key || ' ' || reply_kind || ' ' ||"
		" reply_recording_id || ' ' || routed || ' ' || route || ' '"
		" || class || ' ' || recording_url || ' ' || requester_id ||"
		" ' ' || snapshot || ' ' || decided_at || ' ' || revision"
		" FROM events"));
}

static void
a_verdict_line_says_what_was_written(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 102");
	fixture_forget(f);
	(void)admit_event(f, 101, "k");
	assert_string_equal(
	    "{\"type\":\"event\",\"event_id\":101,"
	    "\"event_type\":\"comment.created\",\"trigger\":\"mentioned\","
	    "\"class\":\"web\",\"route\":\"/srv/web\",\"bucket_id\":10,"
	    "\"recording_id\":1101,"
	    "\"recording_url\":\"https://3.basecamp.com/999/buckets/10/x\","
	    "\"requester_id\":26909558,\"state\":\"admitted\"}",
	    f->lines[0]);
	/* Turned by a hold: the line and the answer say so. */
	assert_string_equal("held", admit_event(f, 102, "k2"));
	assert_non_null(strstr(f->lines[1], "\"state\":\"held\""));
}

static void
behind_a_live_conversation_a_record_is_queued(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	(void)record_event(f, 103);
	(void)record_event(f, 104);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
	assert_string_equal("queued", admit_event(f, 102, "k"));
	assert_string_equal("admitted", admit_event(f, 103, "other"));
	/* A queued one alone does not keep a conversation live. */
	sql_ok(f,
	    "UPDATE events SET state = 'discarded', reason = 'x'"
	    " WHERE id = 101");
	assert_string_equal("admitted", admit_event(f, 104, "k"));
}

static void
only_admitted_work_is_announced(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	fixture_forget(f);
	(void)refuse_event(f, 102, "discarded", "stale");
	assert_int_equal(0, f->notice_count);
	(void)admit_event(f, 101, "k");
	assert_int_equal(2, f->notice_count); /* the guard, the work */
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_int_equal(MSG_WORK_WAITS, f->notices[1].type);
	assert_int_equal(101, f->notices[1].id);
}

static void
a_verdict_of_another_form_is_refused(void **state)
{
	struct fixture *f = *state;
	struct msg m;
	size_t i;

	(void)record_event(f, 101);
	for (i = 0; i < 8; i++) {
		m = verdict_of(f, 101, i < 4 ? "admitted" : "blocked");
		if (i >= 4)
			m.verdict.reason = "read_failed";
		switch (i) {
		case 0:
			m.verdict.snapshot.len = 0;
			break;
		case 1:
			m.verdict.conversation_key = "";
			break;
		case 2:
			m.verdict.reason = "why";
			break;
		case 3:
			m.verdict.next_retry_at =
			    "2026-01-05T09:10:00.000000000Z";
			break;
		case 4:
			m.verdict.reason = "";
			break;
		case 5:
			m.verdict.snapshot = (struct blob){"{}", 2};
			break;
		case 6:
			m.verdict.state = "queued";
			break;
		case 7:
			m.verdict.retry_at = "tomorrow";
			break;
		}
		assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	}
	assert_string_equal("seen", state_of(f, 101));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(an_event_is_recorded_once),
	    TEST(a_pointer_line_says_what_came),
	    TEST(a_finished_record_does_not_come_back),
	    TEST(a_lost_id_is_recovered_when_it_comes),
	    TEST(a_record_of_another_form_is_refused),
	    TEST(depth_counts_what_is_undecided),
	    TEST(a_request_that_fails_leaves_the_depth),
	    TEST(entries_know_key_and_lineage),
	    TEST(the_served_id_only_grows),
	    TEST(a_refused_position_goes_and_no_other),
	    TEST(a_position_is_of_the_run_that_saved_it),
	    TEST(a_gap_has_an_epoch_or_is_retention),
	    TEST(a_gap_has_words_of_its_lists),
	    TEST(undecided_records_come_by_id),
	    TEST(a_blocked_record_is_due_by_its_own_clock),
	    TEST(a_verdict_applies_at_its_revision_only),
	    TEST(a_verdict_on_an_older_revision_is_no_failure),
	    TEST(a_verdict_is_kept_with_its_columns),
	    TEST(a_verdict_line_says_what_was_written),
	    TEST(behind_a_live_conversation_a_record_is_queued),
	    TEST(only_admitted_work_is_announced),
	    TEST(a_verdict_of_another_form_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
