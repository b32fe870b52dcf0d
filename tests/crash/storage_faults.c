/*
 * The storage of a real ledger fails in the middle of a busy group (design
 * 3.1): several peers' requests are one transaction, one of them is refused by
 * a constraint, and a write or the sync of its COMMIT fails. Nobody is
 * answered early, nobody's request is lost, and none counts twice.
 *
 *	storage_faults KILLAT CONNECTD-LEDGER
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/crash/ledger_life.h"
#include "tests/unit/ledger_fixture.h"

#define LEDGER "connectd-ledger"
#define RECORDS 12
#define SPOILT 666 /* this id is refused */
#define STAMP "2026-01-05T09:10:00.000000000Z"

/* ---- who asks what ------------------------------------------------------ */

struct question {
	enum role_id from;
	struct msg m;
	unsigned answers;
	enum msg_type answer;
	char reason[41]; /* of a FAILED */
	bool was_new;    /* of a RECORDED */
};

static const struct msg progress = {.type = MSG_PROGRESS, .progress = {ATT_1}};
static const struct msg running = {
    .type = MSG_RUNNING, .running = {ATT_1, 42, 42, 7, "s"}};
static const struct msg hold = {
    .type = MSG_RENEWAL_HOLD, .renewal_hold = {NONCE_1, "throttled", STAMP}};

#define OTHERS 3
#define QUESTIONS (RECORDS + OTHERS)
static const enum role_id askers[] = {
    ROLE_INTAKE, ROLE_DISPATCHER, ROLE_OUTBOX};
#define ASKERS (sizeof(askers) / sizeof(askers[0]))

/* A busy moment: all of them, and the ledgers that they meet. */
struct crowd {
	struct nursery ledger;
	struct tracer *tracer;
	char before_dir[DIR_SIZE], dir[DIR_SIZE];
	struct peer *peers[ASKERS];
	struct question questions[QUESTIONS];
	size_t answered;
	size_t lines;
	bool is_gone;
	bool is_ponged;
};

static struct msg
record_of(int64_t id)
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
	    .created_at = STAMP};
	return m;
}

static void
questions_make(struct crowd *c)
{
	size_t i;

	for (i = 0; i < RECORDS; i++)
		c->questions[i] = (struct question){.from = ROLE_INTAKE,
		    .m = record_of(
			i == RECORDS / 2 ? SPOILT : 201 + (int64_t)i)};
	c->questions[i++] =
	    (struct question){.from = ROLE_DISPATCHER, .m = running};
	c->questions[i++] =
	    (struct question){.from = ROLE_DISPATCHER, .m = progress};
	c->questions[i++] = (struct question){.from = ROLE_OUTBOX, .m = hold};
	assert_int_equal(QUESTIONS, i);
}

/* ---- their ledger ------------------------------------------------------- */

static void
on_birth(void *arg)
{
	struct crowd *c = arg;

	if (c->tracer != NULL)
		tracer_birth(c->tracer);
}

static void
on_line(const char *text, void *arg)
{
	((struct crowd *)arg)->lines++;
}

static void
on_gone(void *arg)
{
	((struct crowd *)arg)->is_gone = true;
}

static const struct nursery_ops ledger_ops = {on_birth, on_line, on_gone};

static void
on_pong(struct peer *peer, struct msg *reply, void *arg)
{
	((struct crowd *)arg)->is_ponged = true;
	(void)event_base_loopbreak(life_base());
}

static void
ping(struct crowd *c, struct peer *peer)
{
	struct msg m = {.type = MSG_PING};

	c->is_ponged = false;
	(void)peer_request(peer, &m, on_pong, c);
}

static void
pong_await(struct crowd *c)
{
	while (!c->is_ponged && !c->is_gone)
		(void)event_base_dispatch(life_base());
}

/* All are linked, and have been heard: what was unanswered is asked again. */
static void
ledger_begin(struct crowd *c, struct tracer *tracer)
{
	struct config *config = life_config();
	size_t i;

	c->tracer = tracer;
	c->is_gone = false;
	c->ledger = (struct nursery){.ops = &ledger_ops, .arg = c};
	nursery_start(
	    &c->ledger, life_base(), ROLE_LEDGER, life_argv(), -1, c->dir);
	nursery_tell_config(&c->ledger, config);
	config_free(config);
	for (i = 0; i < ASKERS; i++)
		nursery_relink(&c->ledger, askers[i], "", c->peers[i]);
	nursery_await_ready(&c->ledger);
	for (i = 0; i < ASKERS; i++) {
		ping(c, c->peers[i]);
		pong_await(c);
	}
}

static int
ledger_end(struct crowd *c)
{
	struct msg m = {.type = MSG_STOP};

	if (!c->is_gone)
		peer_notice(c->ledger.child, &m);
	while (!c->is_gone)
		(void)event_base_dispatch(life_base());
	return nursery_bury(&c->ledger);
}

static struct peer *
peer_of(struct crowd *c, enum role_id from)
{
	size_t i = 0;

	while (askers[i] != from)
		i++;
	return c->peers[i];
}

static struct crowd *
crowd_new(const char *before_dir)
{
	struct crowd *c = xcalloc(1, sizeof(*c));
	size_t i;

	dir_make("ledger", c->dir);
	dir_copy(before_dir, c->dir);
	questions_make(c);
	for (i = 0; i < ASKERS; i++)
		c->peers[i] = peer_new(
		    life_base(), askers[i], ROLE_LEDGER, "", life_asker(), c);
	return c;
}

static void
crowd_free(struct crowd *c)
{
	size_t i;

	for (i = 0; i < ASKERS; i++)
		peer_free(c->peers[i]);
	free(c);
}

/* ---- the busy moment ---------------------------------------------------- */

struct asked {
	struct crowd *crowd;
	size_t i;
};

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	struct asked *asked = arg;
	struct crowd *c = asked->crowd;
	struct question *q = &c->questions[asked->i];

	q->answers++;
	q->answer = reply->type;
	if (reply->type == MSG_FAILED)
		(void)snprintf(
		    q->reason, sizeof(q->reason), "%s", reply->failed.reason);
	if (reply->type == MSG_RECORDED)
		q->was_new = reply->recorded.is_new;
	c->answered++;
	(void)event_base_loopbreak(life_base());
}

static void
answers_await(struct crowd *c)
{
	while (c->answered < QUESTIONS && !c->is_gone)
		(void)event_base_dispatch(life_base());
}

static bool
is_all_sent(const struct crowd *c)
{
	size_t i;

	for (i = 0; i < ASKERS; i++) {
		if (link_queued(peer_link(c->peers[i])) != 0)
			return false;
	}
	return true;
}

/*
 * The ledger stands at the reading of a PING while everyone asks, and then
 * finds all of it at once. Rule 1 holds it, the others are the faults.
 */
static void
all_ask_at_once(struct crowd *c, struct tracer *t, int faults)
{
	static struct asked asked[QUESTIONS];
	int i;

	for (i = 0; i <= faults; i++)
		tracer_await_armed(t, i + 1);
	ping(c, c->ledger.child);
	link_flush(peer_link(c->ledger.child));
	tracer_await(t, "hold");
	for (i = 0; i < QUESTIONS; i++) {
		asked[i] = (struct asked){c, (size_t)i};
		(void)peer_request(peer_of(c, c->questions[i].from),
		    &c->questions[i].m, on_answer, &asked[i]);
	}
	while (!is_all_sent(c))
		(void)event_base_loop(life_base(), EVLOOP_ONCE);
	tracer_go(t, 1);
	answers_await(c);
}

/* ---- before it ---------------------------------------------------------- */

/* A running attempt, and a trigger that refuses one record. */
static void
story_prepare(char before_dir[static DIR_SIZE])
{
	struct fixture *f;
	void *state;

	dir_make("before", before_dir);
	(void)fixture_setup(&state);
	f = state;
	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
	(void)launch(f, 101, ATT_1);
	sql_ok(f,
	    "CREATE TRIGGER spoil AFTER INSERT ON events WHEN NEW.id = %d"
	    " BEGIN SELECT RAISE(ABORT, 'spoilt'); END",
	    SPOILT);
	dir_copy(f->dir, before_dir);
	(void)fixture_teardown(&state);
}

/* ---- what must be ------------------------------------------------------- */

static void
assert_all_answered(const struct crowd *c)
{
	const struct question *q;
	size_t i;

	for (i = 0; i < QUESTIONS; i++) {
		q = &c->questions[i];
		if (q->answers != 1)
			fail_msg("question %zu: %u answers", i, q->answers);
		if (i == RECORDS / 2)
			assert_string_equal("refused", q->reason);
		else
			assert_int_equal(msg_info(q->m.type)->reply, q->answer);
	}
}

/* The group is one: all of it was committed before the end, or nothing. */
static void
assert_one_group(const struct crowd *c, bool was_committed)
{
	size_t i;

	for (i = 0; i < RECORDS; i++) {
		if (i != RECORDS / 2)
			assert_int_equal(
			    !was_committed, c->questions[i].was_new);
	}
}

/* What an undisturbed ledger makes of it. */
static struct {
	char before_dir[DIR_SIZE];
	char *after;
	size_t lines;
	int writes;
	bool is_one_commit; /* no write follows the first sync */
} course;

static void
course_note(const json_t *record)
{
	static bool is_synced;
	const char *call = json_string_value(json_object_get(record, "call"));

	if (strcmp(call, "fdatasync") == 0) {
		is_synced = true;
	} else {
		course.writes++;
		course.is_one_commit = !is_synced;
	}
}

/* Until what was armed, once more, is: all before was before the answers. */
static void
course_note_all(struct tracer *t)
{
	json_t *record;
	bool is_armed = false;

	tracer_arm(t, 2);
	while (!is_armed && (record = tracer_next(t)) != NULL) {
		if (tracer_said(record, "note"))
			course_note(record);
		is_armed = tracer_said(record, "armed");
		json_decref(record);
	}
}

static void
a_constraint_in_a_busy_group_is_its_own(void **state)
{
	static const char *const rules[] = {"later:hold@" LEDGER ":recvmsg:1",
	    "later:note@" LEDGER ":pwrite64:1+",
	    "later:note@" LEDGER ":fdatasync:1+", NULL};
	struct tracer tracer;
	struct crowd *c;

	story_prepare(course.before_dir);
	c = crowd_new(course.before_dir);
	tracer_start(&tracer, life_killat(), rules);
	ledger_begin(c, &tracer);
	all_ask_at_once(c, &tracer, 2);
	course_note_all(&tracer);
	assert_all_answered(c);
	assert_one_group(c, false);
	assert_true(course.is_one_commit);
	course.lines = c->lines;
	assert_int_equal(0, ledger_end(c));
	assert_int_equal(0, tracer_end(&tracer));
	course.after = dir_dump(c->dir, "progress_at");
	crowd_free(c);
}

/* ---- the faults --------------------------------------------------------- */

static size_t tried;

/* The first ledger: nobody hears anything, and it ends with its own code. */
static void
group_fails(struct crowd *c, const char *fault)
{
	struct tracer tracer;
	char rule[128];
	int status;

	(void)snprintf(rule, sizeof(rule), "later:fail=%s", fault);
	tracer_start(&tracer, life_killat(),
	    (const char *[]){"later:hold@" LEDGER ":recvmsg:1", rule, NULL});
	ledger_begin(c, &tracer);
	all_ask_at_once(c, &tracer, 1);
	if (c->answered != 0 || c->lines != 0)
		fail_msg(
		    "%s: %zu answers, %zu lines", fault, c->answered, c->lines);
	status = ledger_end(c);
	if (tracer_end(&tracer) != 0)
		fail_msg("%s: did not happen", fault);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_STORAGE)
		fail_msg("%s: ended with %#x", fault, status);
}

/* The second: the peers ask again by themselves. */
static void
group_runs_again(struct crowd *c, const char *fault)
{
	char *between = dir_dump(c->dir, "progress_at"), *after;
	bool was_committed = strcmp(between, course.after) == 0;

	free(between);
	ledger_begin(c, NULL);
	answers_await(c);
	assert_all_answered(c);
	assert_one_group(c, was_committed);
	assert_int_equal(was_committed ? 0 : course.lines, c->lines);
	assert_int_equal(0, ledger_end(c));
	after = dir_dump(c->dir, "progress_at");
	assert_string_equal(course.after, after);
	free(after);
	print_message("%s: %s\n", fault,
	    was_committed ? "committed all the same" : "nothing committed");
}

static void
fault_try(const char *error, const char *call, int n, const char *onwards)
{
	struct crowd *c = crowd_new(course.before_dir);
	char fault[64];

	(void)snprintf(fault, sizeof(fault), "%s@" LEDGER ":%s:%d%s", error,
	    call, n, onwards);
	group_fails(c, fault);
	group_runs_again(c, fault);
	crowd_free(c);
	tried++;
}

static void
a_full_disk_in_commit_answers_nobody(void **state)
{
	int n;

	assert_true(course.writes > 0);
	for (n = 1; n <= course.writes; n++)
		fault_try("ENOSPC", "pwrite64", n, "");
	fault_try("ENOSPC", "pwrite64", 1, "+");
}

static void
a_failed_write_in_commit_answers_nobody(void **state)
{
	assert_true(course.writes > 0);
	fault_try("EIO", "pwrite64", 1, "");
	fault_try("EIO", "pwrite64", course.writes, "");
}

static void
a_failed_sync_in_commit_answers_nobody(void **state)
{
	fault_try("EIO", "fdatasync", 1, "");
	fault_try("ENOSPC", "fdatasync", 1, "");
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_constraint_in_a_busy_group_is_its_own),
	    cmocka_unit_test(a_full_disk_in_commit_answers_nobody),
	    cmocka_unit_test(a_failed_write_in_commit_answers_nobody),
	    cmocka_unit_test(a_failed_sync_in_commit_answers_nobody),
	};
	int rc;

	if (argc != 3)
		fatalx("usage: storage_faults KILLAT CONNECTD-LEDGER");
	log_init("storage_faults", LOG_LEVEL_WARN);
	life_init(argv[1], argv[2]);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	print_message("%d requests of %zu peers in one group, %zu faults\n",
	    QUESTIONS, ASKERS, tried);
	free(course.after);
	life_done();
	return rc;
}
