/* Group commit, and what it does when the storage fails (design 3.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "tests/unit/ledger_fault.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/trap.h"

static int commits;

static int
on_commit(void *arg)
{
	commits++;
	return 0;
}

static int
setup(void **state)
{
	struct fixture *f;

	memset(&fault, 0, sizeof(fault));
	(void)fixture_setup(state);
	f = *state;
	commits = 0;
	(void)sqlite3_commit_hook(f->l.db, on_commit, NULL);
	return 0;
}

static int
teardown(void **state)
{
	memset(&fault, 0, sizeof(fault));
	return fixture_teardown(state);
}

static struct msg
record_of(int64_t id, const char *details, size_t len)
{
	struct msg m = {.type = MSG_RECORD};

	m.record = (struct msg_record){.event_id = id,
	    .lane = "poll",
	    .event_type = "x",
	    .kind = "x",
	    .action = "x",
	    .bucket_id = PROJECT,
	    .creator_id = 1,
	    .recording_id = 1,
	    .created_at = "2026-01-05T08:59:00.000000000Z",
	    .details = {details, len}};
	return m;
}

static void
add_record(struct fixture *f, int64_t id)
{
	struct msg m = record_of(id, NULL, 0);

	fixture_add(f, &m, ROLE_INTAKE, "");
}

/* One whose row does not fit where little is left. */
static void
add_large(struct fixture *f, int64_t id, size_t len)
{
	char *details = xmalloc(len);
	struct msg m;

	memset(details, 'x', len);
	m = record_of(id, details, len);
	fixture_add(f, &m, ROLE_INTAKE, "");
	free(details);
}

static int64_t
recorded(struct fixture *f)
{
	return sql_int(f, "SELECT COUNT(*) FROM events");
}

/* ---- in order ---------------------------------------------------------- */

static void
what_waits_is_one_transaction(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 20; i++)
		add_record(f, 101 + i);
	assert_int_equal(0, f->reply_count);
	fixture_turn(f);
	assert_int_equal(20, f->reply_count);
	assert_int_equal(1, commits);
	assert_int_equal(20, recorded(f));
}

static void
lines_go_before_replies_and_notices(void **state)
{
	struct fixture *f = *state;
	struct msg m;

	(void)record_event(f, 101);
	fixture_forget(f);
	m = verdict_of(f, 101, "admitted");
	fixture_add(f, &m, ROLE_INTAKE, "");
	add_record(f, 102);
	fixture_turn(f);
	assert_string_equal("ll.rnnr", f->order);
}

static void
a_notice_of_a_kind_is_told_once(void **state)
{
	struct fixture *f = *state;
	struct msg a, b;

	(void)record_event(f, 101);
	(void)record_event(f, 102);
	fixture_forget(f);
	a = verdict_of(f, 101, "admitted");
	b = verdict_of(f, 102, "admitted");
	b.verdict.conversation_key = "other";
	fixture_add(f, &a, ROLE_INTAKE, "");
	fixture_add(f, &b, ROLE_INTAKE, "");
	fixture_turn(f);
	assert_int_equal(2, f->notice_count); /* posts, work */
}

static void
a_turn_is_bounded_by_count(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < TURN_REQUESTS + 1; i++)
		add_record(f, 101 + i);
	assert_int_equal(TURN_REQUESTS, f->reply_count);
	fixture_turn(f);
	assert_int_equal(TURN_REQUESTS + 1, f->reply_count);
	assert_int_equal(2, commits);
}

static void
a_turn_is_bounded_by_bytes(void **state)
{
	struct fixture *f = *state;

	add_large(f, 101, TURN_BYTES / 2);
	add_large(f, 102, TURN_BYTES / 2);
	assert_int_equal(1, f->reply_count);
	add_large(f, 103, TURN_BYTES);
	assert_int_equal(2, f->reply_count);
	fixture_turn(f);
	assert_int_equal(3, f->reply_count);
	assert_int_equal(3, commits);
}

/* Whatever is asked for, a turn holds only so much of it. */
static void
a_turn_is_bounded_by_its_answers(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_GET_DISPATCH};
	const char *token;
	size_t i;

	token = launch_new(f, 101, ATT_1);
	(void)get_dispatch(f, token, 0, ATT_1);
	sql_ok(f, "UPDATE events SET snapshot = zeroblob(4000000)");
	fixture_forget(f);
	m.get_dispatch.token = token;
	for (i = 0; i < 5; i++)
		fixture_add(f, &m, ROLE_MCPD, ATT_1);
	add_record(f, 102);
	fixture_turn(f);
	/* 3 answers are beyond the bound, then 2 and the record's line. */
	assert_string_equal("rrrl.rrr", f->order);
}

/* ---- a request that fails alone ---------------------------------------- */

static void
a_constraint_is_its_requests_own(void **state)
{
	struct fixture *f = *state;

	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE INSERT ON events"
	    " WHEN NEW.id = 102 BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END");
	commits = 0;
	add_record(f, 101);
	add_record(f, 102);
	add_record(f, 103);
	fixture_turn(f);
	assert_int_equal(MSG_RECORDED, f->replies[0]->type);
	assert_failed(f->replies[1], "refused");
	assert_int_equal(MSG_RECORDED, f->replies[2]->type);
	assert_int_equal(1, commits);
	assert_int_equal(2, recorded(f));
	assert_int_equal(2, f->line_count);
	assert_string_equal("", f->trouble);
}

/* What a request wrote before it was refused is gone with it. */
static void
a_refusal_undoes_its_request(void **state)
{
	struct fixture *f = *state;

	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE ON loss_ids BEGIN"
	    " SELECT RAISE(ABORT, 'spoilt'); END;"
	    "INSERT INTO losses (detected_at, dropped_count,"
	    " repair_since, deadline_at) VALUES ('d', 1, 1, 'd');"
	    "INSERT INTO loss_ids VALUES (1, 102, 'missing')");
	add_record(f, 101);
	add_record(f, 102);
	fixture_turn(f);
	assert_failed(f->replies[1], "refused");
	assert_int_equal(1, recorded(f));
	assert_int_equal(1, f->l.depth);
	assert_int_equal(1, f->line_count);
}

static int
handle_half(struct ledger *l, const struct request *q, struct answer *a)
{
	l->depth++;
	answer_line(a, strdup("{}"));
	answer_notice(a, MSG_WORK_WAITS, 1, "");
	return answer_fail(a, "refused", "in the end");
}

static const handler half_handlers[MSG_COUNT] = {[MSG_GAP] = handle_half};

/* Nothing of it is told but why. */
static void
what_a_refused_request_left_is_dropped(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_GAP};

	m.gap = (struct msg_gap){.nonce = NONCE_1, .class = "epoch"};
	fixture_handlers(f, half_handlers);
	assert_failed(fixture_ask(f, &m, ROLE_INTAKE, ""), "refused");
	assert_string_equal("in the end", f->replies[0]->failed.text);
	assert_string_equal("r", f->order);
	assert_int_equal(0, f->l.depth);
}

static void
a_refused_launch_hands_out_no_pipe(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(101, ATT_1), *reply;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	sql_ok(f,
	    "CREATE TRIGGER spoil BEFORE UPDATE OF delivery ON"
	    " task_events BEGIN SELECT RAISE(ABORT, 'spoilt'); END");
	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	assert_failed(reply, "refused");
	assert_int_equal(0, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

/* Committed, but its token found no pipe: asked again, it gets another. */
static void
a_launch_without_a_pipe_is_asked_again(void **state)
{
	struct fixture *f = *state;
	struct msg m = launch_of(101, ATT_1), *reply;
	struct rlimit was, none;

	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &was));
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &was));
	assert_failed(reply, "unavailable");
	assert_non_null(strstr(f->trouble, "Too many open files"));
	assert_string_not_equal("", launch(f, 101, ATT_1));
	assert_string_equal("", f->trouble);
	assert_int_equal(1, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

/*
 * No room for one of them, and SQLite undid only its statement: the group
 * stands, and that one is to be asked again.
 */
static void
a_full_database_fails_what_does_not_fit(void **state)
{
	struct fixture *f = *state;
	int64_t pages = sql_int(f, "PRAGMA page_count");

	sql_ok(f, "PRAGMA max_page_count = %d", (int)pages + 3);
	commits = 0;
	add_record(f, 101);
	add_large(f, 102, 100000);
	add_record(f, 103);
	fixture_turn(f);
	assert_int_equal(MSG_RECORDED, f->replies[0]->type);
	assert_failed(f->replies[1], "unavailable");
	assert_int_equal(MSG_RECORDED, f->replies[2]->type);
	assert_int_equal(2, recorded(f));
	assert_string_not_equal("", f->trouble);
	/* There is room again: the next turn says so. */
	sql_ok(f, "PRAGMA max_page_count = 1000000");
	add_large(f, 102, 100000);
	fixture_turn(f);
	assert_int_equal(MSG_RECORDED, f->replies[3]->type);
	assert_string_equal("", f->trouble);
}

/* ---- a group that is lost ---------------------------------------------- */

/* Pages leave the cache in the middle of a transaction. */
static void
small_cache(struct fixture *f)
{
	sql_ok(f, "PRAGMA cache_size = 2");
}

/*
 * An UPDATE or an INSERT without a statement journal loses all: SQLite rolls
 * the transaction back by itself. Here it is a spill that cannot be written.
 */
static void
group_lost(struct fixture *f, int rc)
{
	int i;

	small_cache(f);
	commits = 0;
	for (i = 0; i < 8; i++)
		add_large(f, 101 + i, 30000);
	fault = (struct fault){FAULT_WRITE, 60, 1, rc, 0, 0};
	fixture_turn(f);
	assert_int_equal(1, fault.hits);
}

static void
a_lost_groups_requests_run_again_alone(void **state)
{
	struct fixture *f = *state;
	size_t i;

	group_lost(f, SQLITE_IOERR_WRITE);
	assert_int_equal(8, f->reply_count);
	for (i = 0; i < 8; i++)
		assert_int_equal(MSG_RECORDED, f->replies[i]->type);
	assert_int_equal(8, commits);
	assert_int_equal(8, recorded(f));
	/* Nothing of the first try left the house. */
	assert_int_equal(8, f->line_count);
	assert_int_equal(8, f->l.depth);
}

static void
a_full_disk_in_a_group_loses_nothing(void **state)
{
	struct fixture *f = *state;
	size_t i;

	group_lost(f, SQLITE_FULL);
	for (i = 0; i < 8; i++) {
		if (f->replies[i]->type == MSG_RECORDED)
			continue;
		assert_failed(f->replies[i], "unavailable");
		add_large(f, 101 + (int64_t)i, 30000);
	}
	fixture_turn(f);
	assert_int_equal(8, recorded(f));
	assert_int_equal(8, f->line_count);
}

static int64_t
wal_size(struct fixture *f)
{
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/ledger.db-wal", f->dir);
	assert_int_equal(0, stat(path, &st));
	return st.st_size;
}

/* The one that always fails is postponed, the rest is not. */
static void
what_fails_alone_is_postponed(void **state)
{
	struct fixture *f = *state;

	small_cache(f);
	add_record(f, 101);
	add_large(f, 102, 300000);
	add_record(f, 103);
	/* The WAL takes so much more, and the large one needs more. */
	fault = (struct fault){
	    FAULT_WRITE, 0, -1, SQLITE_IOERR_WRITE, 0, wal_size(f) + 150000};
	fixture_turn(f);
	assert_int_equal(3, f->reply_count);
	assert_int_equal(MSG_RECORDED, f->replies[0]->type);
	assert_failed(f->replies[1], "unavailable");
	assert_int_equal(MSG_RECORDED, f->replies[2]->type);
	assert_int_equal(2, fault.hits); /* in the group, and alone */
	assert_int_equal(2, recorded(f));
	assert_int_equal(101, sql_int(f, "SELECT MIN(id) FROM events"));
	assert_int_equal(103, sql_int(f, "SELECT MAX(id) FROM events"));
}

/* ---- a COMMIT that fails ----------------------------------------------- */

/* The process would end here; the test leaves the turn the same way. */
static void
commit_fails(struct fixture *f, enum fault_at at)
{
	add_record(f, 101);
	fault = (struct fault){at, 0, -1, SQLITE_IOERR, 0, 0};
	if (setjmp(f->unknown) == 0) {
		fixture_turn(f);
		fail_msg("the COMMIT did not fail");
	}
	assert_true(fault.hits > 0);
	assert_int_equal(0, f->reply_count);
	assert_int_equal(0, f->line_count);
	fault.at = FAULT_NEVER;
	fixture_restart(f);
}

/* On the disk or not: a repeat finds out, and is answered. */
static void
a_failed_commit_answers_nobody(void **state)
{
	struct fixture *f = *state;
	int64_t before;

	commit_fails(f, FAULT_WRITE);
	before = recorded(f);
	assert_int_equal(before == 0, record_event(f, 101));
	assert_int_equal(1, recorded(f));
}

static void
a_failed_sync_answers_nobody(void **state)
{
	struct fixture *f = *state;
	int64_t before;

	commit_fails(f, FAULT_SYNC);
	before = recorded(f);
	assert_int_equal(before == 0, record_event(f, 101));
	assert_int_equal(1, recorded(f));
}

/* ---- the lock ---------------------------------------------------------- */

static int rc_of_another;

/* A handler that only reads; another connection wants to write meanwhile. */
static int
handle_and_be_disturbed(
    struct ledger *l, const struct request *q, struct answer *a)
{
	sqlite3 *other;

	assert_int_equal(SQLITE_OK,
	    sqlite3_open_v2(sqlite3_db_filename(l->db, "main"), &other,
		SQLITE_OPEN_READWRITE, NULL));
	rc_of_another =
	    sqlite3_exec(other, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL);
	(void)sqlite3_close(other);
	return ledger_handlers[MSG_NEXT_LIVE](l, q, a);
}

/* Also for what writes nothing: no turn asks for the lock half-way. */
static void
a_turn_has_the_write_lock_from_its_beginning(void **state)
{
	static const handler disturbed[MSG_COUNT] = {
	    [MSG_NEXT_LIVE] = handle_and_be_disturbed};
	struct msg m = {.type = MSG_NEXT_LIVE};
	struct fixture *f = *state;
	sqlite3 *other;

	fixture_handlers(f, disturbed);
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_LIVE);
	assert_int_equal(SQLITE_BUSY, rc_of_another);
	/* And it has let it go before the answer is out. */
	assert_int_equal(SQLITE_OK,
	    sqlite3_open_v2(sqlite3_db_filename(f->l.db, "main"), &other,
		SQLITE_OPEN_READWRITE, NULL));
	assert_int_equal(SQLITE_OK,
	    sqlite3_exec(other, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL));
	(void)sqlite3_close(other);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(what_waits_is_one_transaction),
	    TRAP("I18", a_turn_has_the_write_lock_from_its_beginning, setup,
		teardown),
	    TEST(lines_go_before_replies_and_notices),
	    TEST(a_notice_of_a_kind_is_told_once),
	    TEST(a_turn_is_bounded_by_count),
	    TEST(a_turn_is_bounded_by_bytes),
	    TEST(a_turn_is_bounded_by_its_answers),
	    TEST(a_constraint_is_its_requests_own),
	    TEST(a_refusal_undoes_its_request),
	    TEST(what_a_refused_request_left_is_dropped),
	    TEST(a_refused_launch_hands_out_no_pipe),
	    TEST(a_launch_without_a_pipe_is_asked_again),
	    TEST(a_full_database_fails_what_does_not_fit),
	    TEST(a_lost_groups_requests_run_again_alone),
	    TEST(a_full_disk_in_a_group_loses_nothing),
	    TEST(what_fails_alone_is_postponed),
	    TEST(a_failed_commit_answers_nobody),
	    TEST(a_failed_sync_answers_nobody),
	};

	fault_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
