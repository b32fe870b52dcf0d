/* COUNT_DEATH: records in hand when a process died (design 3.1, poison). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

static struct msg_death_counted *
count_death(struct fixture *f, int64_t id, const char *death)
{
	struct msg m = {.type = MSG_COUNT_DEATH};

	m.count_death = (struct msg_count_death){id, death};
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_DEATH_COUNTED)
		    ->death_counted;
}

static const char *
record_of(struct fixture *f, int64_t id)
{
	return sql_get(f,
	    "SELECT state || ' ' || reason || ' ' || quarantine || ' ' ||"
	    " COALESCE(next_retry_at, 'untimed') FROM events WHERE id = %lld",
	    (long long)id);
}

static struct msg_undecided *
next_undecided(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_UNDECIDED};

	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_UNDECIDED)->undecided;
}

/* Across a death of the ledger too, which may be what dies of it. */
static void
the_second_death_blocks_it(void **state)
{
	struct fixture *f = *state;
	struct msg_death_counted *is;

	(void)record_event(f, 101);
	assert_false(next_undecided(f)->suspect);
	is = count_death(f, 101, NONCE_1);
	assert_int_equal(1, is->count);
	assert_false(is->quarantined);
	assert_string_equal("seen  1 untimed", record_of(f, 101));
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_true(next_undecided(f)->suspect);
	fixture_restart(f);
	is = count_death(f, 101, NONCE_2);
	assert_int_equal(2, is->count);
	assert_true(is->quarantined);
	assert_string_equal("blocked quarantined 2 untimed", record_of(f, 101));
	fixture_wait(INT64_C(86400000) * 30);
	assert_false(next_undecided(f)->found);
	assert_int_equal(0, next_undecided(f)->depth);
	assert_int_equal(0, next_undecided(f)->retry_in_ms);
}

/* The answer to an earlier ask waits until the record is decided again. */
static void
a_quarantine_wakes_what_answers_an_ask(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_RECEIPT};
	size_t i;

	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "blocked", "no_route");
	m.receipt = (struct msg_receipt){
	    claim(f, NONCE_1)->claimed.intent_id, NONCE_1, 55};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	(void)redispatch_event(f, 101);
	(void)count_death(f, 101, NONCE_1);
	fixture_forget(f);
	assert_true(count_death(f, 101, NONCE_2)->quarantined);
	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == MSG_POST_WAITS)
			return;
	}
	fail_msg("the outbox was not woken");
}

static void
one_death_counts_once(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)count_death(f, 101, NONCE_1);
	assert_int_equal(1, count_death(f, 101, NONCE_1)->count);
	assert_string_equal("seen  1 untimed", record_of(f, 101));
	/* Two records may have been in hand at one death. */
	(void)record_event(f, 102);
	assert_int_equal(1, count_death(f, 102, NONCE_1)->count);
	assert_true(count_death(f, 101, NONCE_2)->quarantined);
	/* And the first is told once more, late. */
	assert_int_equal(2, count_death(f, 101, NONCE_1)->count);
	assert_true(count_death(f, 101, NONCE_2)->quarantined);
	assert_string_equal("seen  1 untimed", record_of(f, 102));
}

static void
what_waits_to_start_is_counted_as_well(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	(void)admit_event(f, 101, "k");
	assert_string_equal("queued", admit_event(f, 102, "k"));
	(void)count_death(f, 101, NONCE_1);
	(void)count_death(f, 102, NONCE_1);
	fixture_forget(f);
	assert_true(count_death(f, 101, NONCE_2)->quarantined);
	/* It has left its conversation, and what is behind it may start. */
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_WORK_WAITS, f->notices[0].type);
	assert_string_equal(
	    "", sql_get(f, "SELECT snapshot FROM events WHERE id = 101"));
	assert_true(count_death(f, 102, NONCE_2)->quarantined);
}

static void
a_quarantine_is_published(void **state)
{
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	(void)count_death(f, 101, NONCE_1);
	fixture_forget(f);
	(void)count_death(f, 101, NONCE_2);
	assert_int_equal(1, f->line_count);
	assert_string_equal(
	    "{\"type\":\"event\",\"event_id\":101,"
	    "\"event_type\":\"comment.created\",\"trigger\":\"mentioned\","
	    "\"class\":\"web\",\"route\":\"/srv/web\",\"bucket_id\":10,"
	    "\"recording_id\":1101,\"recording_url\":"
	    "\"https://3.basecamp.com/999/buckets/10/x\","
	    "\"requester_id\":26909558,\"state\":\"blocked\","
	    "\"reason\":\"quarantined\"}",
	    f->lines[0]);
}

/* Nobody has these in hand: a worker has, or nobody ever will. */
static void
what_is_not_in_hand_is_not_counted(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_COUNT_DEATH};
	int64_t id;

	for (id = 101; id <= 105; id++)
		(void)record_event(f, id);
	(void)admit_event(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	(void)refuse_event(f, 102, "discarded", "not_addressed");
	(void)refuse_event(f, 103, "blocked", "no_route");
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 104");
	assert_string_equal("held", admit_event(f, 104, "l"));
	sql_put(f, "UPDATE events SET state = 'completed' WHERE id = 105");
	for (id = 101; id <= 105; id++) {
		assert_int_equal(0, count_death(f, id, NONCE_1)->count);
		assert_int_equal(0, count_death(f, id, NONCE_2)->count);
	}
	assert_string_equal("dispatched", state_of(f, 101));
	m.count_death = (struct msg_count_death){404, NONCE_1};
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "not_found");
}

/* A retry takes a blocked record in hand as its first decision did. */
static void
a_retry_that_kills_is_counted(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	(void)record_event(f, 101);
	m = verdict_of(f, 101, "blocked");
	m.verdict.reason = "read_failed";
	m.verdict.next_retry_at = "2026-01-05T09:10:00.000000000Z";
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	assert_int_equal(1, count_death(f, 101, NONCE_1)->count);
	assert_true(count_death(f, 101, NONCE_2)->quarantined);
	assert_string_equal("blocked quarantined 2 untimed", record_of(f, 101));
}

/* A redispatch has it tried again, alone, and its count starts anew. */
static void
a_person_may_have_it_tried_again(void **state)
{
	static const char death_4[] = "44444444444444444444444444444444";
	struct fixture *f = *state;

	(void)record_event(f, 101);
	(void)count_death(f, 101, NONCE_1);
	(void)count_death(f, 101, NONCE_2);
	assert_string_equal("blocked", redispatch_event(f, 101)->decided.state);
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_true(next_undecided(f)->suspect);
	/* Told once more, the death before it is not a new one. */
	assert_int_equal(0, count_death(f, 101, NONCE_2)->count);
	assert_int_equal(1, count_death(f, 101, NONCE_3)->count);
	assert_int_equal(101, next_undecided(f)->event_id);
	assert_true(count_death(f, 101, death_4)->quarantined);
	assert_string_equal("blocked quarantined 2 untimed", record_of(f, 101));
	(void)redispatch_event(f, 101);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
an_mcpd_quarantines_nothing(void **state)
{
	assert_true(msg_permitted(MSG_COUNT_DEATH, ROLE_INTAKE, ROLE_LEDGER));
	assert_true(
	    msg_permitted(MSG_COUNT_DEATH, ROLE_SUPERVISOR, ROLE_LEDGER));
	assert_false(msg_permitted(MSG_COUNT_DEATH, ROLE_OUTBOX, ROLE_LEDGER));
	assert_true(
	    msg_permitted(MSG_COUNT_DEATH, ROLE_DISPATCHER, ROLE_LEDGER));
	assert_false(msg_permitted(MSG_COUNT_DEATH, ROLE_MCPD, ROLE_LEDGER));
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(the_second_death_blocks_it),
	    TEST(one_death_counts_once),
	    TEST(a_quarantine_wakes_what_answers_an_ask),
	    TEST(what_waits_to_start_is_counted_as_well),
	    TEST(a_quarantine_is_published),
	    TEST(what_is_not_in_hand_is_not_counted),
	    TEST(a_retry_that_kills_is_counted),
	    TEST(a_person_may_have_it_tried_again),
	    TEST(an_mcpd_quarantines_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
