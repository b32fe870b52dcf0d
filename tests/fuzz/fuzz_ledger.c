/*
 * Hostile requests to the ledger, from every role that may ask it: pieces of
 * [sender][attempt][length][frame], as a compromised peer could send them
 * behind its HELLO. Nothing may crash it, stop its turns, or lead it past the
 * lifecycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "common/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/ledger_fixture.h"

#define PIECES_MOST 24
#define RUNS_OF_ONE_LEDGER 256

/* What must hold in any ledger; each answers 0. */
static const char *const promises[] = {
    "SELECT count(*) FROM tasks WHERE ended_at IS NOT NULL"
    " AND superseded_at IS NULL",
    "SELECT count(*) FROM task_events t JOIN tasks k ON k.id = t.task_id"
    " WHERE k.superseded_at IS NOT NULL AND t.retired_at IS NULL",
    "SELECT count(*) FROM outbox WHERE (state = 'sent') <>"
    " (receipt_id IS NOT NULL)",
    "SELECT count(*) FROM task_events WHERE delivery = 'delivered'"
    " AND pulled_at IS NULL",
    "SELECT count(*) FROM events WHERE state IN ('admitted', 'queued')"
    " AND (snapshot IS NULL OR conversation_key = '')",
    "SELECT count(*) FROM events WHERE state IN ('admitted', 'queued')"
    " AND review = 1 AND authorized_at IS NULL",
    "SELECT count(*) FROM events WHERE redispatch_decision IS NOT NULL"
    " AND state <> 'completed'",
};

static struct fixture *fixture;

static void
silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* A ledger in the middle of its work: decided, launched, pulled, claimed. */
static void
set_up(void)
{
	void *state;
	const char *token;

	log_set_sink(silent);
	MUST(fixture_setup(&state) == 0);
	fixture = state;
	(void)record_event(fixture, 1);
	(void)record_event(fixture, 2);
	(void)record_event(fixture, 3);
	(void)admit_event(fixture, 1, "recording:1");
	(void)admit_event(fixture, 2, "recording:1");
	token = launch(fixture, 1, ATT_1);
	run_attempt(fixture, ATT_1, 4242);
	(void)get_dispatch(fixture, token, 1, ATT_1);
	fixture_forget(fixture);
}

static void
ask(const uint8_t *data, size_t len, enum role_id from, const char *attempt)
{
	struct error e;
	struct msg *m = frame_decode(data, len, NULL, 0, &e);

	if (m == NULL)
		return;
	if (msg_permitted(m->type, from, ROLE_LEDGER) &&
	    msg_is_request(m->type) && ledger_handlers[m->type] != NULL) {
		fixture_add(fixture, m, from, attempt);
		fixture_turn(fixture);
		fixture_forget(fixture);
	}
	msg_free(m);
}

static void
check_promises(void)
{
	size_t i;

	for (i = 0; i < sizeof(promises) / sizeof(promises[0]); i++)
		MUST(sql_int(fixture, "%s", promises[i]) == 0);
	MUST(sqlite3_get_autocommit(fixture->l.db));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const attempts[] = {ATT_1, ATT_2, "", ATT_3};
	static unsigned int runs;
	size_t len, pieces;
	void *state;

	if (fixture == NULL)
		set_up();
	for (pieces = 0; size > 4 && pieces < PIECES_MOST; pieces++) {
		len = (size_t)data[2] | (size_t)data[3] << 8;
		if (len > size - 4)
			len = size - 4;
		ask(data + 4, len, data[0] % ROLE_COUNT, attempts[data[1] % 4]);
		data += 4 + len;
		size -= 4 + len;
	}
	check_promises();
	if (++runs % RUNS_OF_ONE_LEDGER == 0) {
		state = fixture;
		(void)fixture_teardown(&state);
		fixture = NULL;
	}
	return 0;
}
