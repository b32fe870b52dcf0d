/* LOSS and its repair: what the feed's buffer dropped (ledger.md 3.8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

#define WINDOW 600000

static struct msg
loss_of(const char *nonce, const char *ids)
{
	struct msg m = {.type = MSG_LOSS};

	m.loss = (struct msg_loss){.nonce = nonce,
	    .filters = "",
	    .ids = {ids, strlen(ids)},
	    .window_ms = WINDOW};
	return m;
}

static struct msg_loss_is *
loss(struct fixture *f, const char *nonce, const char *ids)
{
	struct msg m = loss_of(nonce, ids);

	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS)->loss_is;
}

static struct msg_loss_open *
next_open(struct fixture *f, int64_t after)
{
	struct msg m = {.type = MSG_LOSS_NEXT};

	m.loss_next.after = after;
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_OPEN)->loss_open;
}

static struct msg_loss_is *
set_cursor(struct fixture *f, int64_t id, const char *cursor)
{
	struct msg m = {.type = MSG_LOSS_CURSOR};

	m.loss_cursor = (struct msg_loss_cursor){id, cursor};
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS)->loss_is;
}

static struct msg_loss_is *
set_entry(struct fixture *f, int64_t id, int64_t epoch)
{
	struct msg m = {.type = MSG_LOSS_ENTRY};

	m.loss_entry = (struct msg_loss_entry){id, epoch};
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS)->loss_is;
}

static struct msg_loss_is *
close_loss(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_LOSS_CLOSE};

	m.loss_close.loss_id = id;
	return &fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS)->loss_is;
}

/* "100 missing, 101 never_lost, ..." */
static const char *
ids_of(struct fixture *f, int64_t id)
{
	return sql_get(f,
	    "SELECT group_concat(event_id || ' ' || state, ', ') FROM"
	    " (SELECT * FROM loss_ids WHERE loss_id = %lld ORDER BY event_id)",
	    (long long)id);
}

static const char *
row_of(struct fixture *f, int64_t id)
{
	return sql_get(f,
	    "SELECT dropped_count || ' ' || repair_since || ' [' ||"
	    " repair_cursor || '] ' || deadline_at || ' ' ||"
	    " COALESCE(resolved_at, 'open') FROM losses WHERE id = %lld",
	    (long long)id);
}

/* ---- noticing one ------------------------------------------------------ */

static void
a_loss_is_of_what_is_no_record(void **state)
{
	struct fixture *f = *state;
	struct msg_loss_is *is;

	(void)record_event(f, 102);
	is = loss(f, NONCE_1, "[105, 101, 102, 101]");
	assert_int_equal(1, is->loss_id);
	assert_int_equal(2, is->missing);
	assert_int_equal(100, is->repair_since); /* exclusive */
	assert_false(is->resolved);
	assert_string_equal(
	    "101 missing, 102 never_lost, 105 missing", ids_of(f, 1));
	assert_string_equal(
	    "3 100 [] 2026-01-05T09:10:00.000000000Z open", row_of(f, 1));
}

static void
a_loss_of_known_ids_is_resolved_at_once(void **state)
{
	struct fixture *f = *state;
	struct msg_loss_is *is;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "discarded", "not_addressed");
	is = loss(f, NONCE_1, "[101,102]");
	assert_int_equal(0, is->missing);
	assert_int_equal(0, is->repair_since);
	assert_true(is->resolved);
	assert_string_equal("2 0 [] 2026-01-05T09:10:00.000000000Z "
			    "2026-01-05T09:00:00.000000000Z",
	    row_of(f, 1));
	assert_false(next_open(f, 0)->found);
}

/* Each of these is refused whole. */
static void
a_loss_of_another_form_is_refused(void **state)
{
	static const char *const faults[] = {"", "[]", "{}", "[0]", "[-1]",
	    "[1.0]", "[\"1\"]", "[null]", "[[1]]", "[1,]", "[1] 2",
	    "[9223372036854775808]", "[101, 102, true]"};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct msg m = loss_of(NONCE_1, faults[i]);

		assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	}
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM losses"));
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM loss_ids"));
}

/* "[1,2,...,COUNT]" */
static char *
many_ids(int count)
{
	struct buffer b = {0};
	int i;

	for (i = 1; i <= count; i++)
		buffer_printf(&b, "%c%d", i == 1 ? '[' : ',', i);
	buffer_add_char(&b, ']');
	return buffer_take(&b, NULL);
}

static void
a_loss_has_its_bound(void **state)
{
	struct fixture *f = *state;
	char *most = many_ids(100000), *more = many_ids(100001);
	struct msg m = loss_of(NONCE_1, more);

	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	assert_int_equal(100000, loss(f, NONCE_1, most)->missing);
	free(most);
	free(more);
}

/* The filter set goes with it: one that is empty is one, too. */
static void
a_loss_keeps_the_filters_it_was_read_under(void **state)
{
	static const char *const sets[] = {"", "{}", "{\"buckets\":[1,2]}"};
	struct fixture *f = *state;
	char nonce[33];
	size_t i;

	for (i = 0; i < 3; i++) {
		struct msg m;

		(void)snprintf(nonce, sizeof(nonce), "%032zu", i);
		m = loss_of(nonce, "[101]");
		m.loss.filters = sets[i];
		(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS);
		assert_string_equal(sets[i], next_open(f, (int64_t)i)->filters);
	}
}

/* A repeat is answered by the rows, which may have gone on. */
static void
a_repeated_loss_answers_what_stands(void **state)
{
	struct fixture *f = *state;
	struct msg_loss_is *is;

	(void)loss(f, NONCE_1, "[101,102]");
	(void)record_event(f, 101);
	is = loss(f, NONCE_1, "[101,102]");
	assert_int_equal(1, is->loss_id);
	assert_int_equal(1, is->missing);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM losses"));
	assert_string_equal("101 recovered, 102 missing", ids_of(f, 1));
	/* Another loss of the same id is another loss. */
	assert_int_equal(2, loss(f, NONCE_2, "[102]")->loss_id);
}

/* 100,000 ids among a million records: each is looked up by its key. */
static void
no_statement_of_a_loss_scans_anything(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *plan;
	char *explain;
	int id;

	for (id = STMT_LOSS_BY_NONCE; id <= STMT_LOSS_RESOLVE; id++) {
		explain = sqlite3_mprintf(
		    "EXPLAIN QUERY PLAN %s", sql_text((enum stmt)id));
		assert_int_equal(SQLITE_OK,
		    sqlite3_prepare_v2(f->l.db, explain, -1, &plan, NULL));
		while (sqlite3_step(plan) == SQLITE_ROW) {
			if (strncmp(row_text(plan, 3), "SCAN ", 5) == 0 &&
			    strstr(row_text(plan, 3), "losses_open") == NULL)
				fail_msg("%s: %s", sql_name((enum stmt)id),
				    row_text(plan, 3));
		}
		(void)sqlite3_finalize(plan);
		sqlite3_free(explain);
	}
}

/* ---- its repair -------------------------------------------------------- */

/* Whatever the walk was at when it died, it goes on from the rows. */
static void
a_loss_is_on_the_disk_before_its_walk(void **state)
{
	struct fixture *f = *state;
	struct msg_loss_open *open;

	(void)loss(f, NONCE_1, "[101,102]");
	fixture_restart(f);
	open = next_open(f, 0);
	assert_true(open->found);
	assert_int_equal(1, open->loss_id);
	assert_int_equal(100, open->repair_since);
	assert_string_equal("", open->repair_cursor);
	assert_int_equal(2, open->missing);
	assert_string_equal(
	    "2026-01-05T09:00:00.000000000Z", open->detected_at);
	assert_string_equal(
	    "2026-01-05T09:10:00.000000000Z", open->deadline_at);
	(void)set_cursor(f, 1, "page-2");
	(void)record_event(f, 101);
	fixture_restart(f);
	open = next_open(f, 0);
	assert_string_equal("page-2", open->repair_cursor);
	assert_int_equal(1, open->missing);
	assert_false(next_open(f, 1)->found);
}

/* What is missing is a set: neighbours of its ids change nothing. */
static void
what_is_missing_is_a_set_and_not_a_range(void **state)
{
	struct fixture *f = *state;
	int64_t id;

	(void)loss(f, NONCE_1, "[101,109]");
	for (id = 102; id < 109; id++)
		(void)record_event(f, id);
	assert_int_equal(2, next_open(f, 0)->missing);
	(void)record_event(f, 109);
	assert_int_equal(1, next_open(f, 0)->missing);
	(void)record_event(f, 101);
	/* Nothing is missing, but nobody has closed it: it is not settled. */
	assert_true(next_open(f, 0)->found);
	assert_int_equal(0, next_open(f, 0)->missing);
	assert_true(close_loss(f, 1)->resolved);
	assert_false(next_open(f, 0)->found);
}

static void
an_epoch_gives_up_what_lies_at_or_below_it(void **state)
{
	struct fixture *f = *state;
	struct msg_loss_is *is;

	(void)record_event(f, 101);
	(void)loss(f, NONCE_1, "[101,102,103,104]");
	(void)loss(f, NONCE_2, "[102]");
	(void)record_event(f, 104);
	(void)set_cursor(f, 1, "page-2");
	is = set_entry(f, 1, 102);
	assert_int_equal(1, is->missing);
	assert_int_equal(102, is->repair_since);
	assert_false(is->resolved);
	assert_string_equal("101 never_lost, 102 unrecovered, 103 missing, "
			    "104 recovered",
	    ids_of(f, 1));
	assert_string_equal("102 missing", ids_of(f, 2)); /* its own walk */
	assert_string_equal("", next_open(f, 0)->repair_cursor);
	assert_int_equal(0, set_entry(f, 1, 103)->missing);
	assert_true(next_open(f, 0)->found); /* closing is the walk's */
}

static void
a_deadline_moves_with_the_servers_patience(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_LOSS_DEADLINE};

	(void)loss(f, NONCE_1, "[101]");
	m.loss_deadline =
	    (struct msg_loss_deadline){1, "2026-01-05T09:12:00.000000000Z"};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS);
	assert_string_equal(
	    "2026-01-05T09:12:00.000000000Z", next_open(f, 0)->deadline_at);
	m.loss_deadline.deadline_at = "2026-01-05T09:12:00.0000000000";
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
}

static void
a_closed_loss_is_final(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_LOSS_DEADLINE};
	struct msg_loss_is *is;
	const char *before;

	(void)loss(f, NONCE_1, "[101,102]");
	(void)record_event(f, 102);
	fixture_wait(WINDOW);
	is = close_loss(f, 1);
	assert_true(is->resolved);
	assert_int_equal(0, is->missing);
	assert_string_equal("101 unrecovered, 102 recovered", ids_of(f, 1));
	before = row_of(f, 1);
	fixture_wait(1000);
	(void)close_loss(f, 1);
	(void)set_cursor(f, 1, "late");
	(void)set_entry(f, 1, 7);
	m.loss_deadline =
	    (struct msg_loss_deadline){1, "2027-01-05T09:12:00.000000000Z"};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS);
	assert_string_equal(before, row_of(f, 1));
	/* But one of its ids may still come. */
	(void)record_event(f, 101);
	assert_string_equal("101 recovered, 102 recovered", ids_of(f, 1));
	assert_string_equal(before, row_of(f, 1));
}

static void
an_unknown_loss_is_not_found(void **state)
{
	struct fixture *f = *state;
	struct msg m[] = {
	    {.type = MSG_LOSS_CURSOR, .loss_cursor = {7, "c"}},
	    {.type = MSG_LOSS_ENTRY, .loss_entry = {7, 1}},
	    {.type = MSG_LOSS_DEADLINE,
		.loss_deadline = {7, "2026-01-05T09:12:00.000000000Z"}},
	    {.type = MSG_LOSS_CLOSE, .loss_close = {7}},
	};
	size_t i;

	for (i = 0; i < sizeof(m) / sizeof(m[0]); i++)
		assert_failed(
		    fixture_ask(f, &m[i], ROLE_INTAKE, ""), "not_found");
}

/* The feed's position is a poll page's alone. */
static void
neither_live_ids_nor_a_repair_move_the_feed(void **state)
{
	static const char *const lanes[] = {"live", "repair", "poll"};
	struct fixture *f = *state;
	struct msg m = {.type = MSG_CHECKPOINT};
	const char *before;
	int i;

	m.checkpoint = (struct msg_checkpoint){"key", "lineage", "p", 50};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE);
	before = sql_get(f,
	    "SELECT position || last_poll_served_id || updated_at"
	    " FROM checkpoints");
	fixture_wait(1000);
	(void)loss(f, NONCE_1, "[101,102,103]");
	for (i = 0; i < 3; i++) {
		struct msg r = {.type = MSG_RECORD};

		r.record = (struct msg_record){.event_id = 101 + i,
		    .lane = lanes[i],
		    .event_type = "x",
		    .kind = "x",
		    .action = "x",
		    .bucket_id = 1,
		    .creator_id = 1,
		    .recording_id = 1,
		    .created_at = "2026-01-05T08:59:00.500000000Z"};
		(void)fixture_get(f, &r, ROLE_INTAKE, "", MSG_RECORDED);
	}
	(void)set_cursor(f, 1, "page-2");
	(void)set_entry(f, 1, 60);
	(void)close_loss(f, 1);
	assert_string_equal(
	    "101 recovered, 102 recovered, 103 recovered", ids_of(f, 1));
	assert_string_equal(before,
	    sql_get(f,
		"SELECT position || last_poll_served_id || updated_at"
		" FROM checkpoints"));
}

/* What cannot be written is refused whole: the signal is not accepted. */
static void
a_loss_that_cannot_be_written_is_none(void **state)
{
	struct fixture *f = *state;
	struct msg m = loss_of(NONCE_1, "[101,102]");

	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON loss_ids"
	    " WHEN NEW.event_id = 102 BEGIN SELECT RAISE(ABORT, 'spoilt');"
	    " END");
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM losses"));
	sql_ok(f, "DROP TRIGGER spoil");
	assert_int_equal(2, loss(f, NONCE_1, "[101,102]")->missing);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_loss_is_of_what_is_no_record),
	    TEST(a_loss_of_known_ids_is_resolved_at_once),
	    TEST(a_loss_of_another_form_is_refused),
	    TEST(a_loss_has_its_bound),
	    TEST(a_loss_keeps_the_filters_it_was_read_under),
	    TEST(a_repeated_loss_answers_what_stands),
	    TEST(no_statement_of_a_loss_scans_anything),
	    TRAP("R5", a_loss_is_on_the_disk_before_its_walk, fixture_setup,
		fixture_teardown),
	    TRAP("R6", what_is_missing_is_a_set_and_not_a_range, fixture_setup,
		fixture_teardown),
	    TEST(an_epoch_gives_up_what_lies_at_or_below_it),
	    TEST(a_deadline_moves_with_the_servers_patience),
	    TEST(a_closed_loss_is_final),
	    TEST(an_unknown_loss_is_not_found),
	    TRAP("I17", neither_live_ids_nor_a_repair_move_the_feed,
		fixture_setup, fixture_teardown),
	    TEST(a_loss_that_cannot_be_written_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
