/* A record, pair by pair (ledger.md 3.0, 3.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

/* ---- by raw SQL -------------------------------------------------------- */

static const struct kind record_kinds[] = {
    {'b', "a record begins seen"},
    {'e', "a record does not move so"},
    {'f', "a terminal record does not move"},
    {'k', "a known id stays known"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state record_states[] = {
	/*		  - s a q b d c x h    - s a q b d c x h */
	{"(none)",	" m     p ",	"!.bbbbb.b"},
	{"seen",	" =mmm  mt",	"k....ee.e"},
	{"admitted",	"  =nmm mp",	"ke....e.."},
	{"queued",	"   =mm mp",	"kee...e.."},
	{"blocked",	"  mm=n mt",	"ke....e.e"},
	{"dispatched",	"  m m=m t",	"ke.e...ee"},
	{"completed",	"  p   =p ",	"kf.fff..f"},
	{"discarded",	"       = ",	"kffffff.f"},
	{"held",	"  ppp  p=",	"ke...ee.."},
};
/* clang-format on */

/*
 * What waits is on a live task, so that it may be dispatched; what is
 * dispatched has its task behind it, unseen; what is completed has an unknown
 * outcome and a person's decisions.
 */
static void
record_put(struct fixture *f, const char *from, const char *to)
{
	const char *on_task = "INSERT INTO task_events (task_id, event_id,"
			      " delivery, outcome, completed_at, retired_at)"
			      " VALUES";

	if (is(from, MACHINE_NONE))
		return;
	event_put(f, 101, from);
	task_put(f, 1, "NULL", "NULL");
	task_put(f, 2, "'s'", "'e'");
	if (!is(from, "dispatched"))
		sql_put(f, "%s (1, 101, 'admitted', '', NULL, NULL)", on_task);
	if (is(from, "dispatched"))
		sql_put(f, "%s (2, 101, 'admitted', '', NULL, 's')", on_task);
	if (!is(from, "completed"))
		return;
	sql_put(f, "%s (2, 101, 'completed', 'unknown', 'c', 's')", on_task);
	sql_put(f,
	    "INSERT INTO decisions (action, event_id, decided_by, decided_at)"
	    " VALUES ('redispatch', 101, 'me', 'd'),"
	    " ('discard', 101, 'me', 'd');"
	    "UPDATE events SET redispatch_decision = 1");
}

static void
record_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *reason = is(to, "blocked") ? "why"
	    : is(to, "discarded")              ? "by_operator"
					       : "";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    RECORD_INSERT " (101, '%s', '%s', '%s', 'x', 'x', 'x', 1,"
				  " 1, 1, 'c', 's', 'u', NULL, %d)",
		    to, is(to, "discarded") ? "imported_done" : reason,
		    is(to, "discarded") ? "import" : "poll",
		    is(to, "discarded"));
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM events");
	else
		(void)snprintf(out, size,
		    "UPDATE events SET state = '%s', reason = '%s',"
		    " redispatch_decision = NULL",
		    to, reason);
}

static void
every_pair_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&record_machine, record_states,
	    COUNT_OF(record_states), record_kinds, record_put, record_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- through the handlers ---------------------------------------------- */

static char token[TOKEN_LEN + 1]; /* of event 101's task; "": it has none */

static void
put_unknown(struct fixture *f)
{
	*token = '\0';
}

static void
put_seen(struct fixture *f)
{
	*token = '\0';
	(void)record_event(f, 101);
}

static void
put_admitted(struct fixture *f)
{
	put_seen(f);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
put_blocked(struct fixture *f)
{
	put_seen(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

static void
put_discarded(struct fixture *f)
{
	put_seen(f);
	(void)refuse_event(f, 101, "discarded", "not_addressed");
}

/* By a hold that has gone since; what waits has become held. */
static void
tag(struct fixture *f)
{
	assert_int_equal(MSG_HOLD_IS, hold(f, "hold")->type);
	assert_int_equal(MSG_HOLD_IS, release(f)->type);
}

static void
put_seen_tagged(struct fixture *f)
{
	put_seen(f);
	tag(f);
}

static void
put_blocked_tagged(struct fixture *f)
{
	put_blocked(f);
	tag(f);
}

static void
put_held(struct fixture *f)
{
	put_admitted(f);
	tag(f);
}

static void
launch_to(struct fixture *f, int64_t id, const char *attempt)
{
	(void)snprintf(token, sizeof(token), "%s", launch(f, id, attempt));
	assert_int_equal(TOKEN_LEN, strlen(token));
}

static void
pull(struct fixture *f, int64_t id, const char *attempt)
{
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, id, attempt)->type);
}

static void
report(struct fixture *f, const char *outcome)
{
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 101, outcome, ATT_1)->type);
}

/* Behind another of its conversation, which is at work. */
static void
queue_behind(struct fixture *f, const char *attempt)
{
	(void)record_event(f, 100);
	(void)admit_event(f, 100, "k");
	launch_to(f, 100, attempt);
	(void)record_event(f, 101);
	assert_string_equal("queued", admit_event(f, 101, "k"));
}

static void
put_queued_behind(struct fixture *f)
{
	queue_behind(f, ATT_1);
}

/* The other has ended since. */
static void
put_queued(struct fixture *f)
{
	queue_behind(f, ATT_3);
	(void)end_attempt(f, ATT_3, "lost");
	*token = '\0';
}

static void
put_launched(struct fixture *f)
{
	put_admitted(f);
	launch_to(f, 101, ATT_1);
}

static void
put_launched_tagged(struct fixture *f)
{
	put_launched(f);
	tag(f);
}

/* Its first worker never was. */
static void
put_launched_again(struct fixture *f)
{
	put_admitted(f);
	launch_to(f, 101, ATT_3);
	(void)spawn_failed(f, ATT_3);
	launch_to(f, 101, ATT_1);
}

static void
put_pulled(struct fixture *f)
{
	put_launched(f);
	pull(f, 101, ATT_1);
}

/* Unexposed, on the task of the other. */
static void
put_joined(struct fixture *f)
{
	put_queued_behind(f);
	assert_int_equal(1, ask_join(f)->joined.joined);
}

/* And the other one failed. */
static void
put_joined_to_failed(struct fixture *f)
{
	put_joined(f);
	pull(f, 100, ATT_1);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 100, "failed", ATT_1)->type);
}

/* Pulled, and then a person took the task's token away. */
static void
put_handed(struct fixture *f)
{
	put_joined_to_failed(f);
	pull(f, 101, ATT_1);
	assert_int_equal(MSG_DECIDED, redispatch(f, 100)->type);
}

static void
put_succeeded_live(struct fixture *f)
{
	put_pulled(f);
	report(f, "succeeded");
}

static void
put_failed_live(struct fixture *f)
{
	put_pulled(f);
	report(f, "failed");
}

static void
put_failed_waiting(struct fixture *f)
{
	put_failed_live(f);
	assert_true(redispatch(f, 101)->decided.pending);
}

static void
put_held_incomplete(struct fixture *f)
{
	put_held(f);
	sql_ok(f, "UPDATE events SET routed = 0 WHERE id = 101");
}

static void
put_held_behind(struct fixture *f)
{
	put_queued_behind(f);
	tag(f);
}

static void
put_succeeded(struct fixture *f)
{
	put_succeeded_live(f);
	(void)end_attempt(f, ATT_1, "finished");
}

static void
put_failed(struct fixture *f)
{
	put_failed_live(f);
	(void)end_attempt(f, ATT_1, "finished");
}

static void
put_unreported(struct fixture *f)
{
	put_pulled(f);
	(void)end_attempt(f, ATT_1, "lost");
}

static const struct place places[] = {
    {"unknown", MACHINE_NONE, put_unknown},
    {"seen", "seen", put_seen},
    {"seen, tagged", "seen", put_seen_tagged},
    {"admitted", "admitted", put_admitted},
    {"queued", "queued", put_queued},
    {"queued behind one at work", "queued", put_queued_behind},
    {"blocked", "blocked", put_blocked},
    {"blocked, tagged", "blocked", put_blocked_tagged},
    {"launched", "dispatched", put_launched},
    {"launched, tagged", "dispatched", put_launched_tagged},
    {"launched again", "dispatched", put_launched_again},
    {"pulled", "dispatched", put_pulled},
    {"joined", "dispatched", put_joined},
    {"handed", "dispatched", put_handed},
    {"succeeded, task live", "completed", put_succeeded_live},
    {"failed, task live", "completed", put_failed_live},
    {"succeeded", "completed", put_succeeded},
    {"failed", "completed", put_failed},
    {"unreported", "completed", put_unreported},
    {"discarded", "discarded", put_discarded},
    {"held", "held", put_held},
    {"held, incomplete", "held", put_held_incomplete},
    {"held behind one at work", "held", put_held_behind},
    {"failed, its redispatch waits", "completed", put_failed_waiting},
    {"joined to one that failed", "dispatched", put_joined_to_failed},
};

static struct msg *
ask_record(struct fixture *f)
{
	struct msg m = {.type = MSG_RECORD};

	m.record = (struct msg_record){.event_id = 101,
	    .lane = "repair",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = PROJECT,
	    .creator_id = OPERATOR,
	    .recording_id = RECORDING(101),
	    .created_at = "2026-01-05T08:59:00.500000000Z"};
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_verdict(struct fixture *f, const char *state, const char *reason)
{
	struct msg m = verdict_of(f, 101, state);

	m.verdict.conversation_key = "k";
	m.verdict.reason = reason;
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_admitted(struct fixture *f)
{
	return ask_verdict(f, "admitted", "");
}

/* Of a conversation that another record keeps at work. */
static struct msg *
ask_admitted_behind(struct fixture *f)
{
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
	return ask_verdict(f, "admitted", "");
}

static struct msg *
ask_blocked(struct fixture *f)
{
	return ask_verdict(f, "blocked", "no_route");
}

static struct msg *
ask_discarded(struct fixture *f)
{
	return ask_verdict(f, "discarded", "not_addressed");
}

/* It was in hand when two processes died. */
static struct msg *
ask_count_death(struct fixture *f)
{
	struct msg m = {.type = MSG_COUNT_DEATH};

	m.count_death = (struct msg_count_death){101, NONCE_1};
	(void)fixture_ask(f, &m, ROLE_INTAKE, "");
	m.count_death.death = NONCE_2;
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_redispatch_other(struct fixture *f)
{
	return redispatch(f, 100);
}

static struct msg *
ask_discard(struct fixture *f)
{
	return discard(f, 101);
}

static struct msg *
ask_import_held(struct fixture *f)
{
	return import(f, 101, "held");
}

static struct msg *
ask_launch(struct fixture *f)
{
	struct msg m = launch_of(101, ATT_4);

	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

/* By its own task's worker; where it is on none, by another's. */
static struct msg *
ask_complete(struct fixture *f)
{
	if (*token != '\0')
		return complete_dispatch(f, token, 101, "succeeded", ATT_1);
	(void)record_event(f, 201);
	(void)admit_event(f, 201, "l");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id = 11"
	    " WHERE id = 201");
	launch_to(f, 201, ATT_2);
	return complete_dispatch(f, token, 101, "succeeded", ATT_2);
}

/* clang-format off */
static const struct request_row requests[] = {
	/* unknown, seen, s tagged, admitted, queued, q behind, blocked,
	 * b tagged,
	 * launched, l tagged, l again, pulled, joined, handed,
	 * succeeded live, failed live, succeeded, failed, unreported,
	 * discarded, held, h incomplete, h behind,
	 * failed waiting, joined to failed */
	{"RECORD",	"seen",		ask_record,
	    "s=======" "======" "=====" "====" "=="},
	{"VERDICT admitted", "admitted", ask_admitted,
	    "Nah===ah" "======" "=====" "====" "=="},
	{"VERDICT admitted behind another", "queued", ask_admitted_behind,
	    "Nqh===qh" "======" "=====" "====" "=="},
	{"VERDICT blocked", "blocked", ask_blocked,
	    "Nbb=====" "======" "=====" "====" "=="},
	{"VERDICT discarded", "discarded", ask_discarded,
	    "Nxx===xx" "======" "=====" "====" "=="},
	{"COUNT_DEATH, twice", "blocked", ask_count_death,
	    "Nbbbbb==" "======" "=====" "====" "=="},
	{"LAUNCH",	"dispatched",	ask_launch,
	    "NRRddBRR" "RRRRRR" "RRRRR" "RRRR" "RR"},
	{"JOIN",	"dispatched",	ask_join,
	    "NNNNNdNN" "======" "=====" "NNN=" "=="},
	{"COMPLETE_DISPATCH", "completed", ask_complete,
	    "OOOOOOOO" "EEEcET" "=CTTT" "OOOO" "TE"},
	{"END",		"completed",	ask_end,
	    "NNNNN=NN" "ccccac" "=====" "NNN=" "aa"},
	{"END, spawn_failed", "admitted, held", ask_spawn_failed,
	    "NNNNN=NN" "ahbcac" "=====" "NNN=" "aa"},
	{"HOLD",	"held",		ask_hold,
	    "===hhh==" "======" "=====" "====" "=="},
	{"REDISPATCH",	"admitted, queued, blocked", ask_redispatch,
	    "NRRRRR==" "RRRRRR" "R=Raa" "Rabq" "RR"},
	{"REDISPATCH of another", "admitted", ask_redispatch_other,
	    "NNNN=RNN" "NNNNRR" "NNNNN" "NNNR" "Na"},
	{"DISCARD",	"discarded",	ask_discard,
	    "NRRRRRxx" "RRRRRR" "RRRRx" "Rxxx" "RR"},
	{"IMPORT, done", "discarded",	ask_import_done,
	    "xxxxxxxx" "RRRRRR" "=x=xx" "=xxx" "xR"},
	{"IMPORT, held", "held",	ask_import_held,
	    "R==hhh==" "======" "=====" "====" "=="},
};
/* clang-format on */

static void
every_pair_by_the_write_path(void **state)
{
	static const struct path_proof proof = {&record_machine, "-saqbdcxh",
	    "SELECT state FROM events WHERE id = 101", places, COUNT_OF(places),
	    requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    TRAP("I13 T14", every_pair_by_raw_sql, fixture_setup,
		fixture_teardown),
	    TRAP("T14 T15", every_pair_by_the_write_path, NULL, NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
