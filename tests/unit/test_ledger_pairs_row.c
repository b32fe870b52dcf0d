/* An event on a task, pair by pair: delivery and guard (ledger.md 3.4, 3.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

/* ---- delivery ---------------------------------------------------------- */

static const struct kind row_kinds[] = {
    {'b', "a row begins unseen"},
    {'c', "only pulled work is reported"},
    {'g', "a guard settles once"},
    {'k', "what was on a task stays recorded"},
    {'p', "a pull is recorded once"},
    {'r', "delivery never goes back"},
    {'w', "a withdrawn row does not move"},
    {'x', "only what no worker saw is withdrawn"},
    {'\0', NULL},
};

/* Where two triggers refuse a pair, either may speak first: "!". */
/* clang-format off */
static const struct raw_state delivery_states[] = {
	/*		  - a e p d c w    - a e p d c w */
	{"(none)",	" mt    ",	"!.bbbbb"},
	{"admitted",	" =mt   ",	"k..pccx"},
	{"exposed",	"  =m mm",	"kr..c.."},
	{"pulled",	"   =mm ",	"k!p...x"},
	{"delivered",	"    =m ",	"k!!r..!"},
	{"completed",	"     = ",	"k!!rr.!"},
	{"withdrawn",	"      =",	"k!x!!!."},
};
/* clang-format on */

/* What is withdrawn next has lost its task; what is completed its record. */
static void
delivery_put(struct fixture *f, const char *from, const char *to)
{
	bool is_over = is(from, "withdrawn") || is(to, "withdrawn");
	bool is_pulled = is(from, "pulled") || is(from, "delivered") ||
	    is(from, "completed");

	event_put(f, 101,
	    is(from, MACHINE_NONE)    ? "admitted"
		: is(to, "completed") ? "completed"
				      : "dispatched");
	task_put(f, 1, is_over ? "'s'" : "NULL", "NULL");
	if (is(from, MACHINE_NONE))
		return;
	sql_put(f,
	    "INSERT INTO task_events (task_id, event_id, delivery, pulled_at,"
	    " withdrawn_at, retired_at) VALUES (1, 101, '%s', %s, %s, %s)",
	    is(from, "pulled") || is(from, "withdrawn") ? "exposed" : from,
	    is_pulled ? "'p'" : "NULL", is(from, "withdrawn") ? "'w'" : "NULL",
	    is_over ? "'s'" : "NULL");
}

/* In SQL: what a row in STATE has in this column, or what it has. */
static const char *
row_pulled(const char *state)
{
	if (is(state, "pulled"))
		return "'p'";
	return is(state, "admitted") || is(state, "exposed") ? "NULL"
							     : "pulled_at";
}

static void
delivery_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *delivery =
	    is(to, "pulled") || is(to, "withdrawn") ? "exposed" : to;
	const char *withdrawn = is(to, "withdrawn") ? "'w'" : "NULL";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO task_events (task_id, event_id, delivery,"
		    " pulled_at, withdrawn_at) VALUES (1, 101, '%s', %s, %s)",
		    delivery, is(to, "pulled") ? "'p'" : "NULL", withdrawn);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM task_events");
	else
		(void)snprintf(out, size,
		    "UPDATE task_events SET delivery = '%s', pulled_at = %s,"
		    " withdrawn_at = %s",
		    delivery, row_pulled(to), withdrawn);
}

static void
deliveries_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&delivery_machine,
	    delivery_states, COUNT_OF(delivery_states), row_kinds, delivery_put,
	    delivery_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- guard ------------------------------------------------------------- */

/* clang-format off */
static const struct raw_state guard_states[] = {
	/*		  - u a c f    - u a c f */
	{"(none)",	" mm t",	"!..bb"},
	{"unarmed",	" =   ",	"k.ggg"},
	{"armed",	"  =mm",	"kg..."},
	{"canceled",	"   = ",	"kgg.g"},
	{"fired",	"    =",	"kggg."},
};
/* clang-format on */

static void
guard_put(struct fixture *f, const char *from, const char *to)
{
	event_put(f, 101, is(from, MACHINE_NONE) ? "admitted" : "dispatched");
	task_put(f, 1, "NULL", "NULL");
	if (!is(from, MACHINE_NONE))
		sql_put(f,
		    "INSERT INTO task_events (task_id, event_id, guard)"
		    " VALUES (1, 101, '%s')",
		    is(from, "unarmed") ? "" : from);
}

static void
guard_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *guard = is(to, "unarmed") ? "" : to;

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO task_events (task_id, event_id, guard)"
		    " VALUES (1, 101, '%s')",
		    guard);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM task_events");
	else
		(void)snprintf(
		    out, size, "UPDATE task_events SET guard = '%s'", guard);
}

static void
guards_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&guard_machine, guard_states,
	    COUNT_OF(guard_states), row_kinds, guard_put, guard_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- through the handlers ---------------------------------------------- */

static char token[TOKEN_LEN + 1]; /* of event 101's task; "": it has none */

static void
put_none(struct fixture *f)
{
	*token = '\0';
	(void)record_event(f, 101);
	assert_string_equal("admitted", admit_event(f, 101, "k"));
}

static void
launch_to(struct fixture *f, int64_t id, const char *attempt)
{
	(void)snprintf(token, sizeof(token), "%s", launch(f, id, attempt));
	assert_int_equal(TOKEN_LEN, strlen(token));
}

static struct msg *
ask_expose(struct fixture *f)
{
	struct msg m = {.type = MSG_EXPOSE};

	m.expose = (struct msg_expose){ATT_1, 101};
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

/* Its conversation is at work. */
static void
put_waiting(struct fixture *f)
{
	(void)record_event(f, 100);
	(void)admit_event(f, 100, "k");
	launch_to(f, 100, ATT_1);
	(void)record_event(f, 101);
	assert_string_equal("queued", admit_event(f, 101, "k"));
}

/* Unexposed, on the task of another of its conversation. */
static void
put_joined(struct fixture *f)
{
	put_waiting(f);
	assert_int_equal(1, ask_join(f)->joined.joined);
}

static void
put_exposed(struct fixture *f)
{
	put_none(f);
	launch_to(f, 101, ATT_1);
}

static void
put_pulled(struct fixture *f)
{
	put_exposed(f);
	assert_int_equal(
	    MSG_INSTRUCTION, get_dispatch(f, token, 101, ATT_1)->type);
}

static void
put_delivered(struct fixture *f)
{
	put_pulled(f);
	assert_int_equal(
	    MSG_REPORT_IS, ack_dispatch(f, token, 101, 0, ATT_1)->type);
}

static void
put_reported(struct fixture *f)
{
	put_pulled(f);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 101, "succeeded", ATT_1)->type);
}

static void
put_settled(struct fixture *f)
{
	put_pulled(f);
	(void)end_attempt(f, ATT_1, "lost");
}

static void
put_withdrawn(struct fixture *f)
{
	put_exposed(f);
	(void)spawn_failed(f, ATT_1);
}

/* A person took its task's token away; the worker lives. */
static void
put_retired(struct fixture *f)
{
	put_joined(f);
	(void)get_dispatch(f, token, 100, ATT_1);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 100, "failed", ATT_1)->type);
	assert_true(ask_expose(f)->exposed.by_you);
	assert_true(redispatch(f, 100)->decided.pending);
}

static void
put_returned(struct fixture *f)
{
	put_joined(f);
	(void)end_attempt(f, ATT_1, "finished");
}

static struct msg *
ask_launch(struct fixture *f)
{
	struct msg m = launch_of(101, ATT_4);

	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

/* Where event 101 is on no task: the token of another's, and its attempt. */
static const char *
asker(struct fixture *f)
{
	if (*token != '\0')
		return ATT_1;
	(void)record_event(f, 201);
	(void)admit_event(f, 201, "l");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id = 11"
	    " WHERE id = 201");
	launch_to(f, 201, ATT_2);
	return ATT_2;
}

static struct msg *
ask_get(struct fixture *f)
{
	const char *attempt = asker(f);

	return get_dispatch(f, token, 101, attempt);
}

static struct msg *
ask_ack(struct fixture *f)
{
	const char *attempt = asker(f);

	return ack_dispatch(f, token, 101, 0, attempt);
}

static struct msg *
ask_complete(struct fixture *f)
{
	const char *attempt = asker(f);

	return complete_dispatch(f, token, 101, "succeeded", attempt);
}

static struct msg *
ask_claim(struct fixture *f)
{
	struct msg m = {.type = MSG_CLAIM};

	fixture_wait(30000);
	m.claim.nonce = NONCE_3;
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static void
deliveries_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"none, its conversation at work", MACHINE_NONE, put_waiting},
	    {"joined", "admitted", put_joined},
	    {"returned", "admitted", put_returned},
	    {"exposed", "exposed", put_exposed},
	    {"exposed, retired", "exposed", put_retired},
	    {"pulled", "pulled", put_pulled},
	    {"delivered", "delivered", put_delivered},
	    {"reported", "completed", put_reported},
	    {"settled", "completed", put_settled},
	    {"withdrawn", "withdrawn", put_withdrawn},
	};
	static const struct request_row requests[] = {
	    {"LAUNCH", "exposed", ask_launch, "eBR=RRRRRR="},
	    {"JOIN", "admitted", ask_join, "Na========="},
	    {"EXPOSE", "exposed", ask_expose, "NReR=R===RR"},
	    {"GET_DISPATCH", "pulled", ask_get, "OOpTpT===TT"},
	    {"ACK_DISPATCH", "delivered", ask_ack, "OOETETd==TT"},
	    {"COMPLETE_DISPATCH", "completed", ask_complete, "OOETETcc=TT"},
	    {"END", "completed", ask_end, "N===cccc==="},
	    {"END, spawn_failed", "withdrawn", ask_spawn_failed, "N===wwcc==="},
	};
	static const struct path_proof proof = {&delivery_machine, "-aepdcw",
	    "SELECT CASE WHEN withdrawn_at IS NOT NULL THEN 'withdrawn'"
	    " WHEN delivery = 'exposed' AND pulled_at IS NOT NULL"
	    " THEN 'pulled' ELSE delivery END FROM task_events"
	    " WHERE task_id = 1 AND event_id = 101",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

/* ---- the worker's actions (ledger.md 3.4.1) ----------------------------- */

/* Everything of the row. */
static const char *
row(struct fixture *f)
{
	return sql_get(f,
	    "SELECT json_array(delivery, guard, exposed_at, pulled_at,"
	    " delivered_at, completed_at, ack_id, outcome, links, reply_id,"
	    " retired_at, withdrawn_at, uncharged, exposed_attempt_id,"
	    " adopted_reply_id) FROM task_events"
	    " WHERE task_id = 1 AND event_id = 101");
}

/* What a record shows of any write. */
static int64_t
revision(struct fixture *f)
{
	return sql_int(f, "SELECT revision FROM events WHERE id = 101");
}

static struct msg *
ask_ack_named(struct fixture *f)
{
	return ack_dispatch(f, token, 101, 7, ATT_1);
}

static struct msg *
ask_complete_otherwise(struct fixture *f)
{
	return complete_dispatch(f, token, 101, "failed", ATT_1);
}

/* One cell: a refusal and a repeat write nothing, not even a stamp. */
static void
matrix_try(void (*put)(struct fixture *f), bool is_superseded,
    struct msg *(*ask)(struct fixture *f), const char *what, char cell)
{
	const char *before, *after, *delivery;
	struct fixture *f;
	struct msg *reply;
	int64_t revised;
	void *fixture;

	assert_int_equal(0, fixture_setup(&fixture));
	f = fixture;
	put(f);
	if (is_superseded)
		sql_ok(f, "UPDATE tasks SET superseded_at = created_at");
	before = row(f);
	revised = revision(f);
	fixture_wait(1000);
	reply = ask(f);
	after = row(f);
	delivery =
	    sql_get(f, "SELECT delivery FROM task_events WHERE event_id = 101");
	if (cell == '=' && reply->type == MSG_FAILED)
		fail_msg("%s: %s", what, reply->failed.text);
	if (refusal_reason(cell) != NULL)
		assert_failed(reply, refusal_reason(cell));
	if (cell == '=' || refusal_reason(cell) != NULL) {
		assert_string_equal(before, after);
		assert_int_equal(revised, revision(f));
	} else if (*delivery != cell) {
		fail_msg("%s: it is %s, not '%c'", what, delivery, cell);
	}
	assert_int_equal(0, fixture_teardown(&fixture));
}

static void
every_action_on_every_delivery(void **state)
{
	static const struct {
		const char *name;
		struct msg *(*ask)(struct fixture *f);
	} actions[] = {{"get", ask_get}, {"ack", ask_ack},
	    {"ack with an id", ask_ack_named}, {"complete", ask_complete},
	    {"complete otherwise", ask_complete_otherwise}};
	/* Columns: the actions. Letters: the delivery that it becomes. */
	static const struct {
		void (*put)(struct fixture *f);
		const char *cells;
	} rows[] = {
	    {put_joined, "eEEEE"},
	    {put_exposed, "eEEEE"}, /* nobody pulled it */
	    {put_pulled, "=ddcc"},
	    {put_delivered, "==Ccc"},
	    {put_reported, "==C=C"},
	};
	size_t r, i, tried = 0;

	for (r = 0; r < COUNT_OF(rows); r++) {
		for (i = 0; i < COUNT_OF(actions); i++, tried += 2) {
			matrix_try(rows[r].put, false, actions[i].ask,
			    actions[i].name, rows[r].cells[i]);
			matrix_try(rows[r].put, true, actions[i].ask,
			    actions[i].name, 'T');
		}
	}
	print_message("a worker's actions: %zu cells\n", tried);
}

/* Not even when the worker of the retry ends well. */
static void
a_withdrawn_row_never_moves_again(void **state)
{
	struct fixture *f = *state;
	const char *before;

	put_withdrawn(f);
	before = row(f);
	launch_to(f, 101, ATT_2);
	(void)get_dispatch(f, token, 101, ATT_2);
	assert_int_equal(MSG_REPORT_IS,
	    complete_dispatch(f, token, 101, "succeeded", ATT_2)->type);
	(void)end_attempt(f, ATT_2, "finished");
	assert_string_equal("completed", state_of(f, 101));
	sql_refused(f,
	    "UPDATE task_events SET delivery = 'completed' WHERE task_id = 1");
	sql_refused(
	    f, "UPDATE task_events SET withdrawn_at = NULL WHERE task_id = 1");
	sql_refused(
	    f, "UPDATE task_events SET pulled_at = 'p' WHERE task_id = 1");
	assert_string_equal(before, row(f));
}

/* ---- the guard, through the handlers ----------------------------------- */

/* Nobody waits for a word. */
static void
put_none_unacknowledged(struct fixture *f)
{
	struct msg m;

	*token = '\0';
	(void)record_event(f, 101);
	m = verdict_of(f, 101, "admitted");
	m.verdict.acknowledge = false;
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
}

/* The guard was claimed while the record waited. */
static void
put_none_claimed(struct fixture *f)
{
	put_none(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
}

static void
put_unarmed(struct fixture *f)
{
	put_none_unacknowledged(f);
	launch_to(f, 101, ATT_1);
}

static void
put_fired(struct fixture *f)
{
	put_exposed(f);
	fixture_wait(30000);
	assert_true(claim(f, NONCE_1)->claimed.found);
}

static void
put_born_fired(struct fixture *f)
{
	put_none_claimed(f);
	launch_to(f, 101, ATT_1);
}

static void
guards_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"none, unacknowledged", MACHINE_NONE, put_none_unacknowledged},
	    {"none, guard_ack sending", MACHINE_NONE, put_none_claimed},
	    {"none, its conversation at work", MACHINE_NONE, put_waiting},
	    {"unarmed", "unarmed", put_unarmed},
	    {"armed", "armed", put_exposed},
	    {"armed, settled", "armed", put_withdrawn},
	    {"canceled", "canceled", put_pulled},
	    {"fired", "fired", put_fired},
	    {"born fired", "fired", put_born_fired},
	};
	static const struct request_row requests[] = {
	    {"LAUNCH", "unarmed, armed, fired", ask_launch, "aufBRR=RRR"},
	    {"JOIN", "unarmed, armed, fired", ask_join, "NNNa======"},
	    {"GET_DISPATCH", "canceled", ask_get, "OOOO=cT==="},
	    {"ACK_DISPATCH", "canceled", ask_ack, "OOOOEET=EE"},
	    {"CLAIM", "fired", ask_claim, "=====ff==="},
	    {"END", "canceled", ask_end, "NNN======="},
	};
	static const struct path_proof proof = {&guard_machine, "-uacf",
	    "SELECT CASE guard WHEN '' THEN 'unarmed' ELSE guard END"
	    " FROM task_events WHERE task_id = 1 AND event_id = 101",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    TRAP("T30", deliveries_by_raw_sql, fixture_setup, fixture_teardown),
	    TRAP("T25", a_withdrawn_row_never_moves_again, fixture_setup,
		fixture_teardown),
	    TRAP("I7", every_action_on_every_delivery, NULL, NULL),
	    cmocka_unit_test_setup_teardown(
		guards_by_raw_sql, fixture_setup, fixture_teardown),
	    cmocka_unit_test(deliveries_by_the_write_path),
	    cmocka_unit_test(guards_by_the_write_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
