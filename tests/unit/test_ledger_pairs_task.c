/* A task and its attempts, pair by pair (ledger.md 3.2, 3.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

/* ---- task -------------------------------------------------------------- */

static const struct kind task_kinds[] = {
    {'b', "a task begins live"},
    {'f', "final"}, /* the supersession, or the end */
    {'k', "a task stays recorded"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state task_states[] = {
	/*		  - l s e    - l s e */
	{"(none)",	" m  ",	"!.bb"},
	{"live",	" =mm",	"k..."},
	{"superseded",	"  =m",	"kf.."},
	{"ended",	"   =",	"kff."},
};
/* clang-format on */

static const char *
task_column(const char *state, bool is_end)
{
	if (is(state, "ended"))
		return is_end ? "'e'" : "'s'";
	return is(state, "superseded") && !is_end ? "'s'" : "NULL";
}

static void
task_put_state(struct fixture *f, const char *from, const char *to)
{
	if (is(from, MACHINE_NONE))
		return;
	task_put(f, 1, task_column(from, false), task_column(from, true));
	attempt_put(f, 1, is(from, "ended") ? "ended" : "running");
}

static void
task_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *superseded = task_column(to, false);
	const char *ended = task_column(to, true);

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO tasks (token_sha256, created_at,"
		    " superseded_at, ended_at) VALUES ('h', 'c', %s, %s)",
		    superseded, ended);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM tasks");
	else
		(void)snprintf(out, size,
		    "UPDATE tasks SET superseded_at = %s, ended_at = %s",
		    superseded, ended);
}

static void
tasks_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&task_machine, task_states,
	    COUNT_OF(task_states), task_kinds, task_put_state, task_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- attempt ----------------------------------------------------------- */

static const struct kind attempt_kinds[] = {
    {'b', "an attempt begins launching"},
    {'f', "an attempt never goes back"},
    {'k', "an attempt stays recorded"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state attempt_states[] = {
	/*		  - l r e    - l r e */
	{"(none)",	" m  ",	"!.bb"},
	{"launching",	" =mm",	"k..."},
	{"running",	"  =m",	"kf.."},
	{"ended",	"   =",	"kff."},
};
/* clang-format on */

static void
attempt_put_state(struct fixture *f, const char *from, const char *to)
{
	task_put(f, 1, "NULL", "NULL");
	if (!is(from, MACHINE_NONE))
		attempt_put(f, 1, from);
}

static void
attempt_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *stop = is(to, "ended") ? "lost" : "";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO attempts (id, task_id, seq, driver, state,"
		    " launched_at, stop_reason) VALUES ('a', 1, 1, 'd', '%s',"
		    " 'l', '%s')",
		    to, stop);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM attempts");
	else
		(void)snprintf(out, size,
		    "UPDATE attempts SET state = '%s', stop_reason = '%s'", to,
		    stop);
}

static void
attempts_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&attempt_machine, attempt_states,
	    COUNT_OF(attempt_states), attempt_kinds, attempt_put_state,
	    attempt_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- through the handlers ---------------------------------------------- */

static void
put_none(struct fixture *f)
{
	(void)record_event(f, 101);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
put_launched(struct fixture *f)
{
	put_none(f);
	assert_int_equal(TOKEN_LEN, strlen(launch(f, 101, ATT_1)));
}

static void
put_running(struct fixture *f)
{
	put_launched(f);
	run_attempt(f, ATT_1, 4242);
}

/* The worker of a running attempt reported its failure. */
static void
put_failed(struct fixture *f)
{
	const char *token;

	put_none(f);
	token = launch(f, 101, ATT_1);
	run_attempt(f, ATT_1, 4242);
	(void)get_dispatch(f, token, 101, ATT_1);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 101, "failed", ATT_1)->type);
}

static void
put_superseded(struct fixture *f)
{
	put_failed(f);
	assert_true(redispatch(f, 101)->decided.pending);
}

static void
put_ended(struct fixture *f)
{
	put_running(f);
	(void)end_attempt(f, ATT_1, "finished");
}

static void
put_never_run(struct fixture *f)
{
	put_launched(f);
	(void)spawn_failed(f, ATT_1);
}

static struct msg *
ask_launch(struct fixture *f)
{
	struct msg m = launch_of(101, ATT_1);

	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

static struct msg *
ask_rekey(struct fixture *f)
{
	struct msg m = {.type = MSG_REKEY};

	m.rekey.attempt = ATT_1;
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

static struct msg *
ask_take_over(struct fixture *f)
{
	struct msg m = {.type = MSG_TAKE_OVER};

	m.take_over.attempt = ATT_1;
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

static struct msg *
running_as(struct fixture *f, int64_t pid)
{
	struct msg m = {.type = MSG_RUNNING};

	m.running = (struct msg_running){.attempt = ATT_1,
	    .pid = pid,
	    .pgid = pid,
	    .started_ticks = 4711,
	    .session_id = "s"};
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

static struct msg *
ask_running(struct fixture *f)
{
	return running_as(f, 4242);
}

static struct msg *
ask_running_another(struct fixture *f)
{
	return running_as(f, 4343);
}

static struct msg *
ask_progress(struct fixture *f)
{
	struct msg m = {.type = MSG_PROGRESS};

	m.progress.attempt = ATT_1;
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

static void
tasks_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"launching", "live", put_launched},
	    {"running", "live", put_running},
	    {"failed", "live", put_failed},
	    {"superseded", "superseded", put_superseded},
	    {"ended", "ended", put_ended},
	    {"its worker never was", "ended", put_never_run},
	};
	static const struct request_row requests[] = {
	    {"LAUNCH", "live", ask_launch, "l=RRRRR"},
	    {"REKEY", "live", ask_rekey, "N===RRR"},
	    {"TAKE_OVER", "live", ask_take_over, "NR==RRR"},
	    {"REDISPATCH", "superseded", ask_redispatch, "RRRsR=R"},
	    {"END", "ended", ask_end, "Neeee=="},
	    {"END, spawn_failed", "ended", ask_spawn_failed, "Neeee=="},
	};
	static const struct path_proof proof = {&task_machine, "-lse",
	    "SELECT CASE WHEN ended_at IS NOT NULL THEN 'ended'"
	    " WHEN superseded_at IS NOT NULL THEN 'superseded' ELSE 'live' END"
	    " FROM tasks WHERE id = 1",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

static void
attempts_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"launching", "launching", put_launched},
	    {"running", "running", put_running},
	    {"of a superseded task", "running", put_superseded},
	    {"ended", "ended", put_ended},
	    {"never run", "ended", put_never_run},
	};
	static const struct request_row requests[] = {
	    {"LAUNCH", "launching", ask_launch, "l=RRRR"},
	    {"REKEY", "launching", ask_rekey, "N==RRR"},
	    {"RUNNING", "running", ask_running, "Nr==RR"},
	    {"RUNNING, another process", "running", ask_running_another,
		"NrRRRR"},
	    {"PROGRESS", "running", ask_progress, "N====="},
	    {"REDISPATCH", "ended", ask_redispatch, "RRRR=R"},
	    {"END", "ended", ask_end, "Neee=="},
	    {"END, spawn_failed", "ended", ask_spawn_failed, "Neee=="},
	};
	static const struct path_proof proof = {&attempt_machine, "-lre",
	    "SELECT state FROM attempts WHERE id = '" ATT_1 "'", places,
	    COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    TRAP("T16", tasks_by_raw_sql, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(
		attempts_by_raw_sql, fixture_setup, fixture_teardown),
	    cmocka_unit_test(tasks_by_the_write_path),
	    cmocka_unit_test(attempts_by_the_write_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
