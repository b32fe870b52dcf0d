/* What came of the feed, pair by pair (ledger.md 3.8, 3.10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"
#include "tests/unit/trap.h"

/* ---- loss, lost id ----------------------------------------------------- */

static const struct kind loss_kinds[] = {
    {'b', "a lost id begins missing"},
    {'e', "a lost id does not move so"},
    {'f', "a loss is resolved once"},
    {'k', "stays recorded"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state loss_states[] = {
	/*		  - o r    - o r */
	{"(none)",	" mm",	"!.."},
	{"open",	" =m",	"k.."},
	{"resolved",	"  =",	"kf."},
};

static const struct raw_state lost_id_states[] = {
	/*		  - m n r u    - m n r u */
	{"(none)",	" mm  ",	"!..bb"},
	{"missing",	" = mm",	"k.e.."},
	{"never_lost",	"  =  ",	"ke.ee"},
	{"recovered",	"   = ",	"kee.e"},
	{"unrecovered",	"   m=",	"kee.."},
};
/* clang-format on */

#define LOSS_INSERT                                                     \
	"INSERT INTO losses (detected_at, dropped_count, repair_since," \
	" deadline_at, resolved_at) VALUES ('d', 1, 100, 'd', %s)"

static void
loss_put(struct fixture *f, const char *from, const char *to)
{
	if (!is(from, MACHINE_NONE))
		sql_put(f, LOSS_INSERT, is(from, "open") ? "NULL" : "'r'");
}

static void
loss_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *resolved = is(to, "open") ? "NULL" : "'r'";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size, LOSS_INSERT, resolved);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM losses");
	else
		(void)snprintf(
		    out, size, "UPDATE losses SET resolved_at = %s", resolved);
}

static void
losses_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&loss_machine, loss_states,
	    COUNT_OF(loss_states), loss_kinds, loss_put, loss_move_sql};

	raw_proof_run(*state, &proof);
}

static void
lost_id_put(struct fixture *f, const char *from, const char *to)
{
	sql_put(f, LOSS_INSERT, "NULL");
	if (!is(from, MACHINE_NONE))
		sql_put(f, "INSERT INTO loss_ids VALUES (1, 101, '%s')", from);
}

static void
lost_id_move_sql(const char *from, const char *to, char *out, size_t size)
{
	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO loss_ids VALUES (1, 101, '%s')", to);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM loss_ids");
	else
		(void)snprintf(
		    out, size, "UPDATE loss_ids SET state = '%s'", to);
}

static void
lost_ids_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&lost_id_machine, lost_id_states,
	    COUNT_OF(lost_id_states), loss_kinds, lost_id_put,
	    lost_id_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- checkpoint -------------------------------------------------------- */

static const struct kind checkpoint_kinds[] = {
    {'k', "a checkpoint keeps its served id"},
    {'\0', NULL},
};

/* clang-format off */
static const struct raw_state checkpoint_states[] = {
	/*		  - u p    - u p */
	{"(none)",	" mm",	"!.."},
	{"unplaced",	" =m",	"k.."},
	{"placed",	" m=",	"k.."},
};
/* clang-format on */

#define CHECKPOINT_INSERT                                           \
	"INSERT INTO checkpoints (flat_key, lineage, position,"     \
	" last_poll_served_id, updated_at) VALUES ('k', 'l', '%s'," \
	" 100, 'u')"

static void
checkpoint_put(struct fixture *f, const char *from, const char *to)
{
	if (!is(from, MACHINE_NONE))
		sql_put(f, CHECKPOINT_INSERT, is(from, "placed") ? "p" : "");
}

static void
checkpoint_move_sql(const char *from, const char *to, char *out, size_t size)
{
	const char *position = is(to, "placed") ? "p" : "";

	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size, CHECKPOINT_INSERT, position);
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM checkpoints");
	else
		(void)snprintf(out, size,
		    "UPDATE checkpoints SET position = '%s',"
		    " last_poll_served_id = 101",
		    position);
}

static void
checkpoints_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&checkpoint_machine,
	    checkpoint_states, COUNT_OF(checkpoint_states), checkpoint_kinds,
	    checkpoint_put, checkpoint_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- losses through the handlers --------------------------------------- */

static void
put_none(struct fixture *f)
{
}

static struct msg *
ask_loss(struct fixture *f)
{
	struct msg m = {.type = MSG_LOSS};

	m.loss = (struct msg_loss){.nonce = NONCE_1,
	    .filters = "",
	    .ids = {"[101]", 5},
	    .window_ms = 600000};
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_record(struct fixture *f)
{
	struct msg m = {.type = MSG_LOSS_NEXT};

	(void)record_event(f, 101);
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

/* Of an event that is a record already. */
static struct msg *
ask_loss_of_known(struct fixture *f)
{
	(void)record_event(f, 101);
	return ask_loss(f);
}

static struct msg *
ask_close(struct fixture *f)
{
	struct msg m = {.type = MSG_LOSS_CLOSE};

	m.loss_close.loss_id = 1;
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
entry(struct fixture *f, int64_t epoch)
{
	struct msg m = {.type = MSG_LOSS_ENTRY};

	m.loss_entry = (struct msg_loss_entry){1, epoch};
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_entry_above(struct fixture *f)
{
	return entry(f, 101);
}

static struct msg *
ask_entry_below(struct fixture *f)
{
	return entry(f, 100);
}

static void
put_missing(struct fixture *f)
{
	(void)ask_loss(f);
}

static void
put_never_lost(struct fixture *f)
{
	(void)ask_loss_of_known(f);
}

static void
put_recovered(struct fixture *f)
{
	put_missing(f);
	(void)record_event(f, 101);
}

static void
put_closed(struct fixture *f)
{
	put_missing(f);
	(void)ask_close(f);
}

static void
put_below_an_epoch(struct fixture *f)
{
	put_missing(f);
	(void)ask_entry_above(f);
}

static void
losses_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"open, missing", "open", put_missing},
	    {"open, recovered", "open", put_recovered},
	    {"of a known event", "resolved", put_never_lost},
	    {"closed", "resolved", put_closed},
	};
	static const struct request_row requests[] = {
	    {"LOSS", "open", ask_loss, "o===="},
	    {"LOSS of a known event", "resolved", ask_loss_of_known, "r===="},
	    {"RECORD", "resolved", ask_record, "====="},
	    {"LOSS_CLOSE", "resolved", ask_close, "Nrr=="},
	    {"LOSS_ENTRY", "open, resolved", ask_entry_above, "N===="},
	};
	static const struct path_proof proof = {&loss_machine, "-or",
	    "SELECT CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved'"
	    " END FROM losses WHERE id = 1",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

static void
lost_ids_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"missing", "missing", put_missing},
	    {"never lost", "never_lost", put_never_lost},
	    {"recovered", "recovered", put_recovered},
	    {"below an epoch", "unrecovered", put_below_an_epoch},
	    {"given up", "unrecovered", put_closed},
	};
	static const struct request_row requests[] = {
	    {"LOSS", "missing", ask_loss, "m====="},
	    {"LOSS of a known event", "never_lost", ask_loss_of_known,
		"nr==rr"},
	    {"RECORD", "recovered", ask_record, "=r==rr"},
	    {"LOSS_CLOSE", "unrecovered", ask_close, "Nu===="},
	    {"LOSS_ENTRY", "unrecovered", ask_entry_above, "Nu===="},
	    {"LOSS_ENTRY below it", "unrecovered", ask_entry_below, "N====="},
	};
	static const struct path_proof proof = {&lost_id_machine, "-mnru",
	    "SELECT state FROM loss_ids WHERE loss_id = 1 AND event_id = 101",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

/* ---- checkpoints through the handlers ---------------------------------- */

static struct msg *
checkpoint(struct fixture *f, const char *position, int64_t served_id)
{
	struct msg m = {.type = MSG_CHECKPOINT};

	m.checkpoint = (struct msg_checkpoint){"k", "l", position, served_id};
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_served(struct fixture *f)
{
	return checkpoint(f, "", 100);
}

static struct msg *
ask_position(struct fixture *f)
{
	return checkpoint(f, "p", 0);
}

static struct msg *
drop(struct fixture *f, const char *position)
{
	struct msg m = {.type = MSG_DROP_POSITION};

	m.drop_position = (struct msg_drop_position){"k", position};
	return fixture_ask(f, &m, ROLE_INTAKE, "");
}

static struct msg *
ask_drop(struct fixture *f)
{
	return drop(f, "p");
}

static struct msg *
ask_drop_another(struct fixture *f)
{
	return drop(f, "q");
}

static void
put_served(struct fixture *f)
{
	(void)ask_served(f);
}

static void
put_position(struct fixture *f)
{
	(void)ask_position(f);
}

static void
put_dropped(struct fixture *f)
{
	put_position(f);
	(void)ask_drop(f);
}

static void
checkpoints_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"served", "unplaced", put_served},
	    {"placed", "placed", put_position},
	    {"dropped", "unplaced", put_dropped},
	};
	static const struct request_row requests[] = {
	    {"CHECKPOINT, served id", "unplaced", ask_served, "u==="},
	    {"CHECKPOINT, position", "placed", ask_position, "pp=p"},
	    {"DROP_POSITION", "unplaced", ask_drop, "==u="},
	    {"DROP_POSITION, another", "unplaced", ask_drop_another, "===="},
	};
	static const struct path_proof proof = {&checkpoint_machine, "-up",
	    "SELECT CASE position WHEN '' THEN 'unplaced' ELSE 'placed' END"
	    " FROM checkpoints WHERE flat_key = 'k'",
	    places, COUNT_OF(places), requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
#define RAW(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    RAW(losses_by_raw_sql),
	    RAW(lost_ids_by_raw_sql),
	    RAW(checkpoints_by_raw_sql),
	    cmocka_unit_test(losses_by_the_write_path),
	    cmocka_unit_test(lost_ids_by_the_write_path),
	    cmocka_unit_test(checkpoints_by_the_write_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
