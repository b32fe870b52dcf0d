#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"

bool
is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool
names_have(const char *names, const char *state)
{
	size_t len = strlen(state);
	const char *at;

	for (at = names; at != NULL; at = strstr(at, ", ")) {
		at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
		if (strncmp(at, state, len) == 0 &&
		    (at[len] == '\0' || at[len] == ','))
			return true;
	}
	return false;
}

/* ---- rows that others hang on ------------------------------------------ */

void
event_put(struct fixture *f, int id, const char *state)
{
	sql_put(f,
	    RECORD_INSERT " (%d, '%s', '%s', 'poll', 'x', 'x', 'x', 1, 1,"
			  " 1, 'c', 's', 'u', '{}', 0)",
	    id, state,
	    is(state, "blocked") || is(state, "discarded") ? "y" : "");
}

void
task_put(struct fixture *f, int id, const char *superseded, const char *ended)
{
	sql_put(f,
	    "INSERT INTO tasks (id, token_sha256, created_at, superseded_at,"
	    " ended_at) VALUES (%d, 'hash%d', 'c', %s, %s)",
	    id, id, superseded, ended);
}

void
attempt_put(struct fixture *f, int task_id, const char *state)
{
	sql_put(f,
	    "INSERT INTO attempts (id, task_id, seq, driver, state,"
	    " launched_at, stop_reason) VALUES ('att_%d', %d, 1, 'd', '%s',"
	    " 'l', '%s')",
	    task_id, task_id, state, is(state, "ended") ? "lost" : "");
}

/* ---- a person's words -------------------------------------------------- */

#define PERSON "local:ann"

static const char *
nonce_new(void)
{
	static char nonce[33];
	static unsigned int n;

	(void)snprintf(nonce, sizeof(nonce), "%032u", 1000 + n++);
	return nonce;
}

struct msg *
hold(struct fixture *f, const char *cause)
{
	struct msg m = {.type = MSG_HOLD};

	m.hold = (struct msg_hold){nonce_new(), PERSON, cause};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
release(struct fixture *f)
{
	struct msg m = {.type = MSG_RELEASE};

	m.release = (struct msg_release){nonce_new(), PERSON};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
redispatch(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_REDISPATCH};

	m.redispatch = (struct msg_redispatch){nonce_new(), PERSON, id};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
discard(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_DISCARD};

	m.discard = (struct msg_discard){nonce_new(), PERSON, id};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
import(struct fixture *f, int64_t id, const char *decision)
{
	struct msg m = {.type = MSG_IMPORT};
	char file[128];
	int len;

	len = snprintf(file, sizeof(file),
	    "{\"version\":1,\"entries\":[{\"event_id\":%lld,"
	    "\"decision\":\"%s\"}]}",
	    (long long)id, decision);
	m.import =
	    (struct msg_import){nonce_new(), PERSON, {file, (size_t)len}};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
resolve(struct fixture *f, int64_t intent_id, const char *resolution,
    int64_t receipt_id)
{
	struct msg m = {.type = MSG_RESOLVE};

	m.resolve = (struct msg_resolve){
	    nonce_new(), PERSON, intent_id, resolution, receipt_id};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

/* ---- requests that several machines meet ------------------------------- */

struct msg *
ask_join(struct fixture *f)
{
	struct msg m = {.type = MSG_JOIN};

	m.join = (struct msg_join){ATT_1, 1};
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

struct msg *
ask_end(struct fixture *f)
{
	struct msg m = end_of(ATT_1, "finished");

	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

struct msg *
ask_spawn_failed(struct fixture *f)
{
	struct msg m = end_of(ATT_1, "failed");

	m.end.spawn_failed = true;
	return fixture_ask(f, &m, ROLE_DISPATCHER, "");
}

struct msg *
ask_hold(struct fixture *f)
{
	return hold(f, "hold");
}

struct msg *
ask_redispatch(struct fixture *f)
{
	return redispatch(f, 101);
}

struct msg *
ask_import_done(struct fixture *f)
{
	return import(f, 101, "done");
}

/* ---- by raw SQL -------------------------------------------------------- */

/* The state of the one row; "(none)" when there is none. */
static const char *
raw_where(struct fixture *f, const struct machine *m)
{
	const char *state = sql_get(f, "SELECT %s FROM %s", m->state, m->table);

	return *state == '\0' ? MACHINE_NONE : state;
}

static const char *
kind_text(const struct raw_proof *p, char letter)
{
	const struct kind *k;

	for (k = p->kinds; k->letter != '\0'; k++) {
		if (k->letter == letter)
			return k->text;
	}
	return letter == '!' ? "" : NULL;
}

/* The refusal is a trigger's, and in the words of its kind. */
static void
raw_assert_refused(struct fixture *f, const struct raw_proof *p,
    const char *from, const char *to, char letter)
{
	const char *text = kind_text(p, letter);
	const char *said = sqlite3_errmsg(f->l.db);

	if (text == NULL)
		fail_msg("%s: no kind of refusal is '%c'", from, letter);
	if (sqlite3_extended_errcode(f->l.db) != SQLITE_CONSTRAINT_TRIGGER)
		fail_msg("%s: %s -> %s: %s", p->machine->name, from, to, said);
	if (strstr(said, text) == NULL)
		fail_msg("%s: %s -> %s: %s, not %s", p->machine->name, from, to,
		    said, text);
	assert_string_equal(from, raw_where(f, p->machine));
}

static void
raw_try(struct fixture *f, const struct raw_proof *p, size_t from, size_t to)
{
	const char *from_name = p->states[from].name;
	const char *to_name = p->states[to].name;
	char letter = p->states[from].raw[to], statement[512];
	int rc;

	sql_ok(f, "SAVEPOINT pair");
	p->put(f, from_name, to_name);
	assert_string_equal(from_name, raw_where(f, p->machine));
	p->move(from_name, to_name, statement, sizeof(statement));
	rc = sql(f, "%s", statement);
	if (letter == '.') {
		if (rc != SQLITE_OK)
			fail_msg("%s: %s: %s", p->machine->name, statement,
			    sqlite3_errmsg(f->l.db));
		assert_string_equal(to_name, raw_where(f, p->machine));
	} else if (rc == SQLITE_OK) {
		fail_msg("%s: %s -> %s passed", p->machine->name, from_name,
		    to_name);
	} else {
		raw_assert_refused(f, p, from_name, to_name, letter);
	}
	sql_ok(f, "ROLLBACK TO pair; RELEASE pair");
}

/* A cell and what the database does of it say the same. */
static void
raw_assert_agrees(const struct raw_proof *p, size_t from, size_t to)
{
	char cell = p->states[from].cells[to];

	if ((strchr("=mpn", cell) != NULL) != (p->states[from].raw[to] == '.'))
		fail_msg("%s: %s -> %s is '%c' and '%c'", p->machine->name,
		    p->states[from].name, p->states[to].name, cell,
		    p->states[from].raw[to]);
}

/* The code's table is the one that this test expects. */
static void
raw_assert_same(const struct raw_proof *p)
{
	const struct machine *m = p->machine;
	size_t i;

	if (m->state_count != p->count)
		fail_msg("%s: %zu states, not %zu", m->name, m->state_count,
		    p->count);
	for (i = 0; i < p->count; i++) {
		assert_string_equal(p->states[i].name, m->states[i].name);
		assert_int_equal(p->count, strlen(p->states[i].raw));
		if (strcmp(p->states[i].cells, m->states[i].to) != 0)
			fail_msg("%s: %s: \"%s\", not \"%s\"", m->name,
			    m->states[i].name, m->states[i].to,
			    p->states[i].cells);
	}
}

void
raw_proof_run(struct fixture *f, const struct raw_proof *p)
{
	size_t from, to, tried = 0, passed = 0;

	raw_assert_same(p);
	for (from = 0; from < p->count; from++) {
		for (to = 0; to < p->count; to++) {
			if (from == 0 && to == 0)
				continue;
			raw_assert_agrees(p, from, to);
			raw_try(f, p, from, to);
			passed += p->states[from].raw[to] == '.';
			tried++;
		}
	}
	print_message("%s: %zu pairs by raw SQL, %zu allowed\n",
	    p->machine->name, tried, passed);
}

/* ---- through the handlers ---------------------------------------------- */

const char *
refusal_reason(char letter)
{
	static const struct {
		char letter;
		const char *reason;
	} reasons[] = {{'B', "busy"}, {'C', "report_conflict"},
	    {'D', "not_dispatchable"}, {'E', "not_exposed"}, {'H', "held"},
	    {'I', "invalid_report"}, {'N', "not_found"}, {'O', "not_on_task"},
	    {'R', "refused"}, {'S', "stale_config"},
	    {'T', "task_token_refused"}};
	size_t i;

	for (i = 0; i < COUNT_OF(reasons); i++) {
		if (reasons[i].letter == letter)
			return reasons[i].reason;
	}
	return NULL;
}

/* What was tried of a machine's pairs, and what came of it. */
struct path_seen {
	bool asked[16][16];
	bool moved[16][16];
};

static const char *
path_where(struct fixture *f, const struct path_proof *p)
{
	const char *state = sql_get(f, "%s", p->where);

	return *state == '\0' ? MACHINE_NONE : state;
}

static void
path_fail(const struct path_proof *p, const struct place *from,
    const struct request_row *r, const struct msg *reply, const char *state)
{
	fail_msg("%s: %s, asked %s: '%c' expected; it is %s, the answer %s %s "
		 "%s",
	    p->machine->name, from->name, r->name, r->comes[from - p->places],
	    state, msg_name(reply->type),
	    reply->type == MSG_FAILED ? reply->failed.reason : "",
	    reply->type == MSG_FAILED ? reply->failed.text : "");
}

static void
path_try(const struct path_proof *p, const struct place *from,
    const struct request_row *r, struct path_seen *seen)
{
	char letter = r->comes[from - p->places];
	const char *reason = refusal_reason(letter), *want = from->state;
	const char *state, *at;
	size_t source, target;
	struct fixture *f;
	struct msg *reply;
	void *fixture;

	assert_int_equal(0, fixture_setup(&fixture));
	f = fixture;
	from->put(f);
	assert_string_equal(from->state, path_where(f, p));
	reply = r->ask(f);
	state = path_where(f, p);
	source = machine_state(p->machine, from->state);
	if (reason == NULL && letter != '=') {
		if ((at = strchr(p->letters, letter)) == NULL)
			fail_msg("%s: what is '%c'?", r->name, letter);
		target = (size_t)(at - p->letters);
		want = p->machine->states[target].name;
		seen->moved[source][target] = true;
	}
	if (strcmp(want, state) != 0 ||
	    (reply->type == MSG_FAILED) != (reason != NULL) ||
	    (reason != NULL && strcmp(reason, reply->failed.reason) != 0))
		path_fail(p, from, r, reply, state);
	for (target = 0; target < p->machine->state_count; target++) {
		if (names_have(r->aim, p->machine->states[target].name))
			seen->asked[source][target] = true;
	}
	assert_int_equal(0, fixture_teardown(&fixture));
}

static bool
path_is_elsewhere(const struct path_proof *p, size_t from, size_t to)
{
	char pair[64];

	(void)snprintf(pair, sizeof(pair), "%s-%s ",
	    p->machine->states[from].name, p->machine->states[to].name);
	return strstr(p->elsewhere, pair) != NULL;
}

/*
 * What the table allows some request did; what it does not none did, and some
 * request was asked for it. Nobody can ask for a row to go.
 */
static void
path_assert_whole(const struct path_proof *p, const struct path_seen *seen,
    size_t from, size_t to)
{
	const struct machine *m = p->machine;
	bool may = strchr("mpt", machine_cell(m, from, to)) != NULL;
	const char *fault = NULL;

	if (to == 0 && !may)
		return;
	if (seen->moved[from][to] && !may && from != to)
		fault = "moved, and has no cell for it";
	else if (may && !seen->moved[from][to] &&
	    !path_is_elsewhere(p, from, to))
		fault = "has a cell, and no request moved it";
	else if (may && seen->moved[from][to] && path_is_elsewhere(p, from, to))
		fault = "is not elsewhere";
	else if (!seen->asked[from][to])
		fault = "was not asked for";
	if (fault != NULL)
		fail_msg("%s: %s -> %s %s", m->name, m->states[from].name,
		    m->states[to].name, fault);
}

void
path_proof_run(const struct path_proof *p)
{
	size_t from, to, tried = 0, asked = 0;
	struct path_seen seen = {0};

	assert_int_equal(strlen(p->letters), p->machine->state_count);
	for (to = 0; to < p->request_count; to++) {
		assert_int_equal(p->place_count, strlen(p->requests[to].comes));
		for (from = 0; from < p->place_count; from++, asked++)
			path_try(p, &p->places[from], &p->requests[to], &seen);
	}
	for (from = 0; from < p->machine->state_count; from++) {
		for (to = 0; to < p->machine->state_count; to++) {
			path_assert_whole(p, &seen, from, to);
			tried += seen.asked[from][to];
		}
	}
	print_message("%s: %zu pairs by the write path, %zu requests\n",
	    p->machine->name, tried, asked);
}
