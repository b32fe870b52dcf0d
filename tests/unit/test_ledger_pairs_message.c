/* A message, pair by pair (ledger.md 3.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

/* ---- message ----------------------------------------------------------- */

static const struct kind message_kinds[] = {
    {'b', "a message begins pending"},
    {'e', "a message does not move so"},
    {'k', "a message stays recorded"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state message_states[] = {
	/*		   - p s t i c r a    - p s t i c r a */
	{"(none)",	 " m      ",	"!.bbbbbb"},
	{"pending",	 " =m  m  ",	"k..ee.ee"},
	{"sending",	 "  =mm m ",	"ke...e.e"},
	{"sent",	 "   =    ",	"k!!.!!!!"},
	{"indeterminate", " p p=  p",	"k.e..ee."},
	{"canceled",	 "     =  ",	"keeee.ee"},
	{"refused",	 " p    = ",	"k.eeee.e"},
	{"abandoned",	 "       =",	"keeeeee."},
};
/* clang-format on */

static const char *
message_column(const char *state)
{
	return is(state, "refused") ? "canceled" : state;
}

static void
message_put(struct fixture *f, const char *from, const char *to)
{
	if (is(from, MACHINE_NONE))
		return;
	sql_put(f,
	    "INSERT INTO outbox (intent_key, kind, state, bucket_id,"
	    " message_kind, recording_id, body, created_at, not_before,"
	    " sending_at, receipt_id, refused) VALUES ('k', 'completion',"
	    " '%s', 1, 'comment', 1, 'b', 'c', 'n', 's', %s, %d)",
	    message_column(from), is(from, "sent") ? "7" : "NULL",
	    is(from, "refused"));
}

static void
message_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *receipt = is(to, "sent") ? "7" : "NULL";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO outbox (intent_key, kind, state, bucket_id,"
		    " message_kind, recording_id, body, created_at,"
		    " not_before, sending_at, receipt_id, refused) VALUES"
		    " ('k', 'completion', '%s', 1, 'comment', 1, 'b', 'c',"
		    " 'n', 's', %s, %d)",
		    message_column(to), receipt, is(to, "refused"));
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM outbox");
	else
		(void)snprintf(out, size,
		    "UPDATE outbox SET state = '%s', refused = %d,"
		    " receipt_id = %s",
		    message_column(to), is(to, "refused"), receipt);
}

static void
every_pair_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&message_machine, message_states,
	    COUNT_OF(message_states), message_kinds, message_put,
	    message_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- through the handlers ---------------------------------------------- */

/* The message is the first: the guard of event 101. */
static void
put_none(struct fixture *f)
{
	(void)record_event(f, 101);
}

static void
put_early(struct fixture *f)
{
	put_none(f);
	(void)admit_event(f, 101, "k");
}

static void
put_due(struct fixture *f)
{
	put_early(f);
	fixture_wait(30000);
}

static void
put_sending(struct fixture *f)
{
	put_due(f);
	assert_int_equal(1, claim(f, NONCE_1)->claimed.intent_id);
}

static struct msg *
ask_receipt(struct fixture *f)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt = (struct msg_receipt){1, NONCE_1, 77};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
ask_refused(struct fixture *f)
{
	struct msg m = {.type = MSG_REFUSED};

	m.refused = (struct msg_refused){1, NONCE_1, "404"};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
ask_in_doubt(struct fixture *f)
{
	struct msg m = {.type = MSG_IN_DOUBT};

	m.in_doubt = (struct msg_in_doubt){1, NONCE_1, 10, "listing failed"};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
listed(struct fixture *f, size_t count)
{
	int64_t found[] = {77, 78};
	struct msg m = {.type = MSG_LISTED};

	m.listed.intent_id = 1;
	m.listed.nonce = NONCE_1;
	m.listed.candidates = (struct ids){found, count};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

static struct msg *
ask_listed_none(struct fixture *f)
{
	return listed(f, 0);
}

static struct msg *
ask_listed_one(struct fixture *f)
{
	return listed(f, 1);
}

static struct msg *
ask_listed_two(struct fixture *f)
{
	return listed(f, 2);
}

static struct msg *
ask_resolve_sent(struct fixture *f)
{
	return resolve(f, 1, "sent", 77);
}

static struct msg *
ask_abandon(struct fixture *f)
{
	return resolve(f, 1, "abandon", 0);
}

static struct msg *
ask_resend(struct fixture *f)
{
	return resolve(f, 1, "resend", 0);
}

static struct msg *
ask_verdict(struct fixture *f)
{
	struct msg m = verdict_of(f, 101, "admitted");

	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_claim(struct fixture *f)
{
	struct msg m = {.type = MSG_CLAIM};

	m.claim.nonce = NONCE_2;
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

/* By the worker that LAUNCH starts, if it does. */
static struct msg *
ask_get(struct fixture *f)
{
	struct msg m = launch_of(101, ATT_1), *reply;

	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	if (reply->type == MSG_FAILED)
		return reply;
	return get_dispatch(f, token_read(&reply->launched.token), 101, ATT_1);
}

static void
put_sent(struct fixture *f)
{
	put_sending(f);
	(void)ask_receipt(f);
}

static void
put_indeterminate(struct fixture *f)
{
	put_sending(f);
	(void)ask_in_doubt(f);
}

static void
put_refused(struct fixture *f)
{
	put_sending(f);
	(void)ask_refused(f);
}

static void
put_abandoned(struct fixture *f)
{
	put_indeterminate(f);
	(void)ask_abandon(f);
}

static void
put_canceled(struct fixture *f)
{
	put_due(f);
	(void)ask_get(f);
}

static void
every_pair_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"pending, early", "pending", put_early},
	    {"pending, due", "pending", put_due},
	    {"sending", "sending", put_sending},
	    {"sent", "sent", put_sent},
	    {"indeterminate", "indeterminate", put_indeterminate},
	    {"canceled", "canceled", put_canceled},
	    {"refused", "refused", put_refused},
	    {"abandoned", "abandoned", put_abandoned},
	};
	static const struct request_row requests[] = {
	    {"VERDICT", "pending", ask_verdict, "p========"},
	    {"CLAIM", "sending", ask_claim, "==s======"},
	    {"RECEIPT", "sent", ask_receipt, "NRRt==R=="},
	    {"REFUSED", "refused", ask_refused, "NRRr==R=="},
	    {"IN_DOUBT", "indeterminate", ask_in_doubt, "NRRi==R=="},
	    {"LISTED, none", "indeterminate", ask_listed_none, "NRRi==R=="},
	    {"LISTED, one", "sent", ask_listed_one, "NRRt==R=="},
	    {"LISTED, two", "indeterminate", ask_listed_two, "NRRi==R=="},
	    {"GET_DISPATCH", "canceled", ask_get, "Rcc======"},
	    {"HOLD", "canceled", ask_hold, "=cc======"},
	    {"IMPORT, done", "canceled", ask_import_done, "=cc===R=="},
	    {"RESOLVE, sent", "sent", ask_resolve_sent, "NRRRRtRRR"},
	    {"RESOLVE, abandon", "abandoned", ask_abandon, "NRRRRaRRR"},
	    {"RESOLVE, resend", "pending", ask_resend, "NRRRRpRpR"},
	};
	static const struct path_proof proof = {&message_machine, "-psticra",
	    "SELECT CASE refused WHEN 1 THEN 'refused' ELSE state END"
	    " FROM outbox WHERE id = 1",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
#define RAW(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    RAW(every_pair_by_raw_sql),
	    cmocka_unit_test(every_pair_by_the_write_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
