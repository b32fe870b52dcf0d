/*
 * The ledger's machines as tables: cells, edges and docs/lifecycle.md agree.
 * And what the database keeps as it is, besides states.
 *
 *	test_ledger_machines LIFECYCLE.MD
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

static const char *lifecycle_path;

static bool
edge_is_told(const struct machine *m, size_t from, size_t to)
{
	const struct edge *e;

	for (e = m->edges; e < m->edges + m->edge_count; e++) {
		if (is(e->to, m->states[to].name) &&
		    names_have(e->from, m->states[from].name))
			return true;
	}
	return false;
}

/* Each cell has a row that says who, when and what; each row has its cell. */
static void
cells_and_rows_agree(void **state)
{
	const struct machine *m;
	size_t i, from, to;

	for (i = 0; i < MACHINE_COUNT; i++) {
		m = machines[i];
		for (from = 0; from < m->state_count; from++) {
			for (to = 0; to < m->state_count; to++) {
				char cell = machine_cell(m, from, to);

				if (cell != '=' &&
				    (cell != ' ') != edge_is_told(m, from, to))
					fail_msg("%s: %s -> %s: '%c'", m->name,
					    m->states[from].name,
					    m->states[to].name, cell);
			}
		}
	}
}

static void
the_same_again_stands_on_the_diagonal(void **state)
{
	size_t i, s;

	for (i = 0; i < MACHINE_COUNT; i++) {
		assert_string_equal(MACHINE_NONE, machines[i]->states[0].name);
		for (s = 1; s < machines[i]->state_count; s++)
			assert_int_equal('=', machine_cell(machines[i], s, s));
	}
}

static void
a_write_takes_its_sources_from_the_table(void **state)
{
	char sources[MACHINE_SOURCES_SIZE];

	machine_sources(&attempt_machine, "ended", BY_MACHINE, sources);
	assert_string_equal(" launching running ", sources);
	machine_sources(&message_machine, "sent", BY_MACHINE, sources);
	assert_string_equal(" sending ", sources);
	machine_sources(&message_machine, "sent", BY_PERSON, sources);
	assert_string_equal(" sending indeterminate ", sources);
	machine_sources(&lost_id_machine, "never_lost", BY_PERSON, sources);
	assert_string_equal(" ", sources);
}

/* Written by: connectd-ledger --print-lifecycle >docs/lifecycle.md */
static void
the_page_is_what_the_code_prints(void **state)
{
	char *printed = NULL, *page;
	size_t len = 0, got;
	FILE *out = open_memstream(&printed, &len), *in;

	assert_non_null(out);
	assert_int_equal(0, machines_print(out));
	assert_int_equal(0, fclose(out));
	in = fopen(lifecycle_path, "r");
	assert_non_null(in);
	page = calloc(1, len + 2);
	assert_non_null(page);
	got = fread(page, 1, len + 1, in);
	(void)fclose(in);
	if (got != len || memcmp(page, printed, len) != 0)
		fail_msg("%s is not what connectd-ledger --print-lifecycle "
			 "prints",
		    lifecycle_path);
	free(page);
	free(printed);
}

/* ---- what stays as it is ----------------------------------------------- */

static void
what_was_written_once_stays(void **state)
{
	static const char *const tables[] = {
	    "generations", "decisions", "gaps"};
	struct fixture *f = *state;
	size_t i;

	sql_ok(f,
	    "INSERT INTO generations (cause, opened_by, opened_at)"
	    " VALUES ('hold', 'me', 'o');"
	    "INSERT INTO decisions (action, decided_by, decided_at)"
	    " VALUES ('hold', 'me', 'd');"
	    "INSERT INTO gaps (detected_at, class) VALUES ('d', 'retention')");
	for (i = 0; i < COUNT_OF(tables); i++)
		sql_refused(f, "DELETE FROM %s", tables[i]);
	sql_refused(f, "UPDATE generations SET cause = 'shadow_promote'");
	sql_refused(f, "UPDATE generations SET opened_by = 'you'");
	sql_refused(f, "UPDATE decisions SET decided_at = 'z'");
	sql_refused(f, "UPDATE decisions SET event_id = 101");
	sql_refused(f, "UPDATE gaps SET note = 'n'");
}

/* A class has its members, and no other class (ledger.md 3.10). */
static void
a_gap_has_the_members_of_its_class(void **state)
{
	struct fixture *f = *state;

	sql_refused(
	    f, "INSERT INTO gaps (detected_at, class) VALUES ('d', 'epoch')");
	sql_refused(f,
	    "INSERT INTO gaps (detected_at, class, epoch_after_id)"
	    " VALUES ('d', 'retention', 0)");
	sql_refused(
	    f, "INSERT INTO gaps (detected_at, class) VALUES ('d', 'x')");
	sql_ok(f,
	    "INSERT INTO gaps (detected_at, class, epoch_after_id)"
	    " VALUES ('d', 'epoch', 0)");
}

static void
of_a_hold_only_the_generation_moves(void **state)
{
	struct fixture *f = *state;

	sql_ok(f,
	    "INSERT INTO generations (id, cause, opened_by, opened_at)"
	    " VALUES (1, 'hold', 'me', 'o'), (2, 'hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
	sql_refused(f, "UPDATE hold_marker SET held_by = 'you'");
	sql_refused(f, "UPDATE hold_marker SET cause = 'shadow_promote'");
	sql_refused(f, "UPDATE hold_marker SET held_at = 'z'");
	sql_ok(f, "UPDATE hold_marker SET generation = 2");
	sql_refused(f, "UPDATE hold_marker SET generation = 1");
}

static void
a_served_id_never_goes_back(void **state)
{
	struct fixture *f = *state;

	sql_ok(f,
	    "INSERT INTO checkpoints (flat_key, lineage, position,"
	    " last_poll_served_id, updated_at) VALUES ('k', 'l', 'p', 100,"
	    " 'u')");
	sql_refused(f, "UPDATE checkpoints SET last_poll_served_id = 99");
	sql_refused(f, "UPDATE checkpoints SET last_poll_served_id = 'x'");
	sql_refused(f, "UPDATE checkpoints SET last_poll_served_id = x'31'");
	sql_refused(
	    f, "UPDATE checkpoints SET position = '', last_poll_served_id = 0");
	sql_ok(f, "UPDATE checkpoints SET position = ''");
	sql_ok(f, "UPDATE checkpoints SET last_poll_served_id = 101");
}

/* INSERT OR REPLACE deletes behind the triggers' back: no row gives way. */
static void
no_row_takes_the_place_of_another(void **state)
{
	struct fixture *f = *state;

	event_put(f, 101, "completed");
	sql_ok(f,
	    "INSERT OR REPLACE INTO events (id, state, lane, event_type, kind,"
	    " action, bucket_id, creator_id, recording_id, created_at,"
	    " seen_at, updated_at) VALUES (101, 'seen', 'poll', 'x', 'x',"
	    " 'x', 1, 1, 1, 'c', 's', 'u')");
	assert_string_equal("completed", state_of(f, 101));
	task_put(f, 1, "NULL", "NULL");
	sql_refused(f,
	    "INSERT OR REPLACE INTO tasks (id, token_sha256, created_at)"
	    " VALUES (1, 'new', 'c')");
	sql_put(f,
	    "UPDATE events SET state = 'dispatched';"
	    "INSERT INTO task_events (task_id, event_id, delivery)"
	    " VALUES (1, 101, 'exposed')");
	sql_refused(f,
	    "INSERT OR REPLACE INTO task_events (task_id, event_id)"
	    " VALUES (1, 101)");
	task_put(f, 2, "NULL", "NULL");
	sql_refused(f,
	    "INSERT OR REPLACE INTO task_events (task_id, event_id)"
	    " VALUES (2, 101)");
	attempt_put(f, 2, "ended");
	sql_refused(f,
	    "INSERT OR REPLACE INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('att_2', 2, 2, 'd', 'launching', 'l')");
	sql_refused(f,
	    "INSERT OR REPLACE INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at) VALUES ('other', 2, 1, 'd', 'launching', 'l')");
}

static void
one_key_is_one_message_and_one_lost_id(void **state)
{
	struct fixture *f = *state;

	sql_put(f,
	    "INSERT INTO outbox (id, intent_key, kind, state, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before,"
	    " sending_at, receipt_id) VALUES (1, 'k', 'completion', 'sent', 1,"
	    " 'comment', 1, 'b', 'c', 'n', 's', 7);"
	    "INSERT INTO losses (id, detected_at, dropped_count, repair_since,"
	    " deadline_at) VALUES (1, 'd', 1, 100, 'd');"
	    "INSERT INTO loss_ids VALUES (1, 101, 'recovered')");
	sql_ok(f,
	    "INSERT OR REPLACE INTO outbox (intent_key, kind, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before)"
	    " VALUES ('k', 'completion', 1, 'comment', 1, 'b', 'c', 'n')");
	sql_refused(f,
	    "INSERT OR REPLACE INTO outbox (id, intent_key, kind, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before)"
	    " VALUES (1, 'l', 'completion', 1, 'comment', 1, 'b', 'c', 'n')");
	assert_string_equal("sent", sql_get(f, "SELECT state FROM outbox"));
	sql_ok(f, "INSERT OR REPLACE INTO loss_ids VALUES (1, 101, 'missing')");
	assert_string_equal(
	    "recovered", sql_get(f, "SELECT state FROM loss_ids"));
}

/*
 * OR REPLACE takes a column's default for a NULL, after the triggers were
 * asked: what they want a column to be, a NULL is not.
 */
static void
no_null_stands_for_a_word(void **state)
{
	struct fixture *f = *state;

	sql_refused(f,
	    "INSERT OR REPLACE INTO events (id, state, reason, lane,"
	    " event_type, kind, action, bucket_id, creator_id, recording_id,"
	    " content_dropped, created_at, seen_at, updated_at) VALUES (101,"
	    " 'discarded', NULL, 'import', '', '', '', 0, 0, 0, 1, 'c', 's',"
	    " 'u')");
	sql_refused(f,
	    "INSERT OR REPLACE INTO events (id, state, reason, lane,"
	    " event_type, kind, action, bucket_id, creator_id, recording_id,"
	    " content_dropped, created_at, seen_at, updated_at) VALUES (101,"
	    " 'discarded', 'imported_done', 'import', '', '', '', 0, 0, 0,"
	    " NULL, 'c', 's', 'u')");
	event_put(f, 101, "completed");
	sql_put(f,
	    "INSERT INTO tasks (id, token_sha256, created_at) VALUES (1, 'h',"
	    " 'c');"
	    "INSERT INTO task_events (task_id, event_id, delivery, outcome,"
	    " delivered_at, completed_at) VALUES (1, 101, 'completed',"
	    " 'unknown', 'd', 'd');"
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('discard', 101, 'me', 'e'), ('import', 101, 'me', 'e')");
	sql_refused(f,
	    "UPDATE OR REPLACE task_events SET outcome = NULL,"
	    " adopted_reply_id = 7");
	sql_refused(f,
	    "UPDATE OR REPLACE events SET state = 'discarded', reason = NULL");
	sql_ok(
	    f, "UPDATE events SET state = 'discarded', reason = 'by_operator'");
}

int
main(int argc, char **argv)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cells_and_rows_agree),
	    cmocka_unit_test(the_same_again_stands_on_the_diagonal),
	    cmocka_unit_test(a_write_takes_its_sources_from_the_table),
	    cmocka_unit_test(the_page_is_what_the_code_prints),
	    TEST(what_was_written_once_stays),
	    TEST(a_gap_has_the_members_of_its_class),
	    TEST(of_a_hold_only_the_generation_moves),
	    TEST(a_served_id_never_goes_back),
	    TEST(no_row_takes_the_place_of_another),
	    TEST(one_key_is_one_message_and_one_lost_id),
	    TEST(no_null_stands_for_a_word),
	};

	assert_int_equal(2, argc);
	lifecycle_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
