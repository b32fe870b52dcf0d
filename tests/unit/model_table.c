#include <stdio.h>
#include <string.h>

#include "common/digest.h"
#include "tests/unit/eye.h"
#include "tests/unit/model.h"

enum column_kind {
	C_TEXT, /* NULL is NULL, MODEL_SOME is any but NULL */
	C_OWN,  /* the same, but NULL is anything: the ledger's wording */
	C_INT,
	C_BOOL,
	C_OPT,
	C_NZ,    /* 0 is NULL */
	C_TOKEN, /* the hash of a text; of "" nothing is known */
	C_ASKS,  /* a body whose lines are known */
	C_NOT    /* not the model's */
};

struct column {
	const char *name;
	enum column_kind kind;
	size_t offset;
};

#define COLUMNS_MOST 48

struct table {
	const char *name;
	int keys; /* the first ones of the columns are the row's key */
	size_t rows, row_size, count; /* where in struct model */
	struct column columns[COLUMNS_MOST];
};

#define TABLE(table_name, key_count, rows_name, count_name, type)            \
	.name = table_name, .keys = key_count,                               \
	.rows = offsetof(struct model, rows_name), .row_size = sizeof(type), \
	.count = offsetof(struct model, count_name)

#define E(name, kind)                                           \
	{                                                       \
#name, kind, offsetof(struct model_event, name) \
	}
#define T(name, kind)                                          \
	{                                                      \
#name, kind, offsetof(struct model_task, name) \
	}
#define R(name, kind)                                         \
	{                                                     \
#name, kind, offsetof(struct model_row, name) \
	}
#define A(name, kind)                                             \
	{                                                         \
#name, kind, offsetof(struct model_attempt, name) \
	}
#define N(name, kind)                                            \
	{                                                        \
#name, kind, offsetof(struct model_intent, name) \
	}
#define D(name, kind)                                              \
	{                                                          \
#name, kind, offsetof(struct model_decision, name) \
	}
#define L(name, kind)                                          \
	{                                                      \
#name, kind, offsetof(struct model_loss, name) \
	}
#define G(name, kind)                                         \
	{                                                     \
#name, kind, offsetof(struct model_gap, name) \
	}
#define K(name, kind)                                         \
	{                                                     \
#name, kind, offsetof(struct model_key, name) \
	}
#define H(name, kind)                                          \
	{                                                      \
#name, kind, offsetof(struct model_hold, name) \
	}
#define NOT(name)               \
	{                       \
#name, C_NOT, 0 \
	}

static const struct table tables[] = {
    {TABLE("events", 1, events, event_count, struct model_event),
	.columns = {E(id, C_INT), E(state, C_TEXT), E(reason, C_TEXT),
	    E(lane, C_TEXT), E(event_type, C_TEXT), E(kind, C_TEXT),
	    E(action, C_TEXT), E(bucket_id, C_INT), E(creator_id, C_INT),
	    E(performed_by_id, C_OPT), E(recording_id, C_INT),
	    E(details, C_TEXT), E(actor_type, C_TEXT),
	    E(visible_to_clients, C_OPT), E(created_at, C_TEXT),
	    E(seen_at, C_TEXT), E(updated_at, C_TEXT),
	    E(content_dropped, C_BOOL), E(revision, C_INT),
	    E(decided_at, C_TEXT), E(blocked_at, C_TEXT), E(retry_at, C_TEXT),
	    E(retry_since, C_TEXT), E(next_retry_at, C_TEXT),
	    E(trigger_name, C_TEXT), E(acknowledge, C_BOOL),
	    E(conversation_key, C_TEXT), E(reply_kind, C_TEXT),
	    E(reply_recording_id, C_INT), E(routed, C_BOOL), E(route, C_TEXT),
	    E(class, C_TEXT), E(recording_url, C_TEXT), E(requester_id, C_INT),
	    E(snapshot, C_TEXT), E(generation, C_INT), E(review, C_BOOL),
	    E(authorized_at, C_TEXT), E(authorized_by, C_TEXT),
	    E(redispatch_decision, C_NZ), E(quarantine, C_INT),
	    E(quarantine_death, C_TEXT)}},
    {TABLE("tasks", 1, tasks, task_count, struct model_task),
	.columns = {T(id, C_INT),
	    {"token_sha256", C_TOKEN, offsetof(struct model_task, token)},
	    T(rekeys, C_INT), T(created_at, C_TEXT), T(superseded_at, C_TEXT),
	    T(conversation_key, C_TEXT), T(route, C_TEXT), T(work_dir, C_TEXT),
	    T(driver, C_TEXT), T(originating_event_id, C_INT),
	    T(deadline_at, C_TEXT), T(ended_at, C_TEXT), T(taken_at, C_TEXT)}},
    {TABLE("task_events", 2, rows, row_count, struct model_row),
	.columns = {R(task_id, C_INT), R(event_id, C_INT),
	    R(conversation_key, C_TEXT), R(delivery, C_TEXT), R(guard, C_TEXT),
	    R(exposed_at, C_TEXT), R(delivered_at, C_TEXT),
	    R(completed_at, C_TEXT), R(ack_id, C_OPT), R(outcome, C_TEXT),
	    R(links, C_TEXT), R(reply_id, C_OPT), R(retired_at, C_TEXT),
	    R(pulled_at, C_TEXT), R(withdrawn_at, C_TEXT), R(uncharged, C_BOOL),
	    R(exposed_attempt_id, C_TEXT), R(adopted_reply_id, C_OPT)}},
    {TABLE("attempts", 1, attempts, task_count, struct model_attempt),
	.columns = {A(id, C_TEXT), A(task_id, C_INT), A(seq, C_INT),
	    A(driver, C_TEXT), A(state, C_TEXT), A(pid, C_OPT), A(pgid, C_OPT),
	    A(started_ticks, C_OPT), A(boot_id, C_TEXT), A(run_id, C_TEXT),
	    A(containment, C_TEXT), A(session_id, C_TEXT),
	    A(launched_at, C_TEXT), A(running_at, C_TEXT), A(ended_at, C_TEXT),
	    A(stop_reason, C_TEXT), A(spawn_failed, C_BOOL),
	    A(no_retry, C_BOOL), A(refusals, C_INT), A(progress_at, C_TEXT),
	    A(still_running, C_INT)}},
    {TABLE("outbox", 1, intents, intent_count, struct model_intent),
	.columns = {N(id, C_INT),
	    {"intent_key", C_OWN, offsetof(struct model_intent, key)},
	    N(kind, C_TEXT), N(state, C_TEXT), N(event_id, C_OPT),
	    N(task_id, C_OPT), N(attempt_id, C_TEXT), N(occurrence, C_INT),
	    N(answers_reason, C_TEXT),
	    {"argument_sha256", C_TEXT, offsetof(struct model_intent, hash)},
	    N(bucket_id, C_INT), N(message_kind, C_TEXT),
	    N(recording_id, C_INT), N(body, C_OWN),
	    {"body", C_ASKS, offsetof(struct model_intent, asks)},
	    N(created_at, C_TEXT), N(not_before, C_TEXT), N(nonce, C_TEXT),
	    N(sending_at, C_TEXT), N(finished_at, C_TEXT), N(receipt_id, C_OPT),
	    N(refused, C_BOOL), NOT(note), N(resolved_by, C_TEXT),
	    {"reconcile_failures", C_INT,
		offsetof(struct model_intent, failures)},
	    N(reconcile_at, C_TEXT), N(retracts, C_NZ)}},
    {TABLE("decisions", 1, decisions, decision_count, struct model_decision),
	.columns = {D(id, C_INT), D(nonce, C_TEXT), D(action, C_TEXT),
	    D(event_id, C_OPT), D(decided_by, C_TEXT), D(decided_at, C_TEXT),
	    D(from_state, C_TEXT), D(from_reason, C_TEXT),
	    D(from_outcome, C_TEXT), D(to_state, C_TEXT),
	    D(superseded_task_id, C_OPT), D(intent_id, C_OPT),
	    D(attempt_id, C_TEXT), NOT(note)}},
    {TABLE("generations", 1, generations, generation_count,
	 struct model_generation),
	.columns = {{"id", C_INT, offsetof(struct model_generation, id)},
	    {"cause", C_TEXT, offsetof(struct model_generation, cause)},
	    {"opened_by", C_TEXT, offsetof(struct model_generation, opened_by)},
	    {"opened_at", C_TEXT,
		offsetof(struct model_generation, opened_at)}}},
    {TABLE("hold_marker", 1, hold, hold_count, struct model_hold),
	.columns = {H(id, C_INT), H(generation, C_INT), H(cause, C_TEXT),
	    H(held_by, C_TEXT), H(held_at, C_TEXT)}},
    {TABLE("losses", 1, losses, loss_count, struct model_loss),
	.columns = {L(id, C_INT), L(nonce, C_TEXT), L(detected_at, C_TEXT),
	    L(dropped_count, C_INT), L(repair_since, C_INT),
	    L(repair_cursor, C_TEXT), L(deadline_at, C_TEXT),
	    L(resolved_at, C_TEXT), L(filters, C_TEXT)}},
    {TABLE("loss_ids", 2, loss_ids, loss_id_count, struct model_loss_id),
	.columns = {{"loss_id", C_INT, offsetof(struct model_loss_id, loss_id)},
	    {"event_id", C_INT, offsetof(struct model_loss_id, event_id)},
	    {"state", C_TEXT, offsetof(struct model_loss_id, state)}}},
    {TABLE("gaps", 1, gaps, gap_count, struct model_gap),
	.columns = {G(nonce, C_TEXT), NOT(id), G(detected_at, C_TEXT),
	    G(class, C_TEXT), G(epoch_after_id, C_OPT), G(entry_class, C_TEXT),
	    G(note, C_TEXT)}},
    {TABLE("checkpoints", 1, keys, key_count, struct model_key),
	.columns = {K(flat_key, C_TEXT), K(lineage, C_TEXT),
	    K(position, C_TEXT),
	    {"last_poll_served_id", C_INT,
		offsetof(struct model_key, served_id)},
	    K(run_id, C_TEXT), K(updated_at, C_TEXT)}},
    {TABLE("connection", 1, connection, connection_count,
	 struct model_connection),
	.columns = {{"id", C_INT, offsetof(struct model_connection, id)},
	    {"state", C_TEXT, offsetof(struct model_connection, state)},
	    {"pid", C_INT, offsetof(struct model_connection, pid)},
	    {"changed_at", C_TEXT,
		offsetof(struct model_connection, changed_at)},
	    {"detail", C_TEXT, offsetof(struct model_connection, detail)}}},
    {TABLE("retention", 1, retention, retention_count, struct model_retention),
	.columns = {{"id", C_INT, offsetof(struct model_retention, id)},
	    {"cleared", C_INT, offsetof(struct model_retention, cleared)},
	    {"ran_at", C_TEXT, offsetof(struct model_retention, ran_at)}}},
    {TABLE("renewal_holds", 1, renewals, renewal_count, struct model_renewal),
	.columns = {{"fingerprint", C_TEXT,
			offsetof(struct model_renewal, fingerprint)},
	    {"reason", C_TEXT, offsetof(struct model_renewal, reason)},
	    {"until", C_TEXT, offsetof(struct model_renewal, until)},
	    {"updated_at", C_TEXT,
		offsetof(struct model_renewal, updated_at)}}},
};

#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

/* ---- one cell ------------------------------------------------------- */

static const char *
cell_got(sqlite3_stmt *stmt, int i)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	return text != NULL ? text : "NULL";
}

/* What the cell must hold, or NULL when anything may be there. */
static const char *
cell_due(const struct column *c, const void *row, char *out, size_t size)
{
	const void *at = (const char *)row + c->offset;
	const struct opt *opt = at;
	const char *text = NULL;
	int64_t number = 0;

	switch (c->kind) {
	case C_TEXT:
	case C_OWN:
		text = *(const char *const *)at;
		return text == NULL && c->kind == C_TEXT ? "NULL" : text;
	case C_TOKEN:
		text = *(const char *const *)at;
		if (*text == '\0')
			return NULL;
		digest_sha256_hex(text, strlen(text), out);
		return out;
	case C_BOOL:
		number = *(const bool *)at;
		break;
	case C_OPT:
		if (!opt->has)
			return "NULL";
		number = opt->value;
		break;
	case C_NZ:
	case C_INT:
		number = *(const int64_t *)at;
		if (number == 0 && c->kind == C_NZ)
			return "NULL";
		break;
	default:
		return NULL;
	}
	(void)snprintf(out, size, "%lld", (long long)number);
	return out;
}

/* Does a notice ask for the events, and only for them, that it should? */
static bool
body_asks(const char *asks, const char *body)
{
	const char *at = body, *end;

	for (; asks != NULL && *asks != '\0'; asks = end + 2) {
		end = asks + strspn(asks, "0123456789");
		at = strstr(at, model_text("%.*s:", (int)(end - asks), asks));
		if (at == NULL)
			return false;
		if ((strstr(body,
			 model_text("redispatch %.*s", (int)(end - asks),
			     asks)) != NULL) != (*end == '?'))
			return false;
	}
	return true;
}

static bool
cell_matches(const struct column *c, const void *row, sqlite3_stmt *stmt, int i)
{
	char text[DIGEST_HEX_SIZE];
	const char *due = cell_due(c, row, text, sizeof(text));

	if (c->kind == C_ASKS)
		return body_asks(
		    *(const char *const *)((const char *)row + c->offset),
		    cell_got(stmt, i));
	if (is(due, MODEL_SOME))
		return sqlite3_column_type(stmt, i) != SQLITE_NULL;
	return due == NULL || strcmp(due, cell_got(stmt, i)) == 0;
}

/* ---- rows ----------------------------------------------------------- */

static sqlite3_stmt *
table_read(const struct table *t, sqlite3 *eye)
{
	char text[2048];
	size_t len = (size_t)snprintf(text, sizeof(text), "SELECT ");

	for (int i = 0; t->columns[i].name != NULL; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
		    i > 0 ? ", " : "", t->columns[i].name);
	(void)snprintf(text + len, sizeof(text) - len, " FROM %s", t->name);
	return eye_ask(eye, text);
}

/* The model's row with the key of the one that STMT is at, or NULL. */
static const char *
row_with_key(const struct table *t, const struct model *w, sqlite3_stmt *stmt)
{
	const char *rows = (const char *)w + t->rows;
	int count = *(const int *)((const char *)w + t->count);

	for (int n = 0; n < count; n++) {
		const char *row = rows + (size_t)n * t->row_size;
		int i = 0;

		while (
		    i < t->keys && cell_matches(&t->columns[i], row, stmt, i))
			i++;
		if (i == t->keys)
			return row;
	}
	return NULL;
}

static bool
row_matches(const struct table *t, const struct model *w, sqlite3_stmt *stmt,
    char *why, size_t size)
{
	const char *row = row_with_key(t, w, stmt);
	char due[DIGEST_HEX_SIZE];

	if (row == NULL) {
		(void)snprintf(why, size, "%s: a row %s that is not due",
		    t->name, cell_got(stmt, 0));
		return false;
	}
	for (int i = 0; t->columns[i].name != NULL; i++) {
		const struct column *c = &t->columns[i];
		const char *text;

		if (cell_matches(c, row, stmt, i))
			continue;
		text = c->kind == C_ASKS
		    ? *(const char *const *)(row + c->offset)
		    : cell_due(c, row, due, sizeof(due));
		(void)snprintf(why, size, "%s %s %s: %s is due, got %s",
		    t->name, cell_got(stmt, 0), c->name, text,
		    cell_got(stmt, i));
		return false;
	}
	return true;
}

static bool
table_matches(const struct table *t, const struct model *w, sqlite3 *eye,
    char *why, size_t size)
{
	sqlite3_stmt *stmt = table_read(t, eye);
	int due = *(const int *)((const char *)w + t->count), got = 0;
	bool matches = true;

	while (matches && sqlite3_step(stmt) == SQLITE_ROW) {
		matches = row_matches(t, w, stmt, why, size);
		got++;
	}
	(void)sqlite3_reset(stmt);
	if (matches && due != got)
		(void)snprintf(why, size, "%s: %d rows are due, got %d",
		    t->name, due, got);
	return matches && due == got;
}

bool
model_tables_match(struct model *w, sqlite3 *eye, char *why, size_t size)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (!table_matches(&tables[i], w, eye, why, size))
			return false;
	return true;
}

void
model_read_bodies(struct model *w, sqlite3 *eye)
{
	sqlite3_stmt *stmt =
	    eye_ask(eye, "SELECT body FROM outbox WHERE id = ?");

	for (int i = 0; i < w->intent_count; i++) {
		if (w->intents[i].body != NULL)
			continue;
		(void)sqlite3_bind_int64(stmt, 1, w->intents[i].id);
		if (sqlite3_step(stmt) == SQLITE_ROW &&
		    !is(w->intents[i].read, cell_got(stmt, 0)))
			w->intents[i].read =
			    model_text("%s", cell_got(stmt, 0));
		(void)sqlite3_reset(stmt);
	}
}

/* ---- what the model leaves out -------------------------------------- */

static bool
column_is_known(const char *table, const char *column)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct column *c = tables[i].columns;

		if (strcmp(tables[i].name, table) != 0)
			continue;
		for (; c->name != NULL; c++)
			if (strcmp(c->name, column) == 0)
				return true;
	}
	return false;
}

void
model_columns_unknown(sqlite3 *eye, char *out, size_t size)
{
	sqlite3_stmt *stmt = eye_ask(eye,
	    "SELECT m.name, c.name FROM sqlite_schema m"
	    " JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
	    " AND m.name NOT IN ('sqlite_sequence', 'schema_migrations')");
	size_t len = 0;

	*out = '\0';
	while (sqlite3_step(stmt) == SQLITE_ROW)
		if (!column_is_known(cell_got(stmt, 0), cell_got(stmt, 1)) &&
		    len < size)
			len += (size_t)snprintf(out + len, size - len, "%s.%s ",
			    cell_got(stmt, 0), cell_got(stmt, 1));
	(void)sqlite3_reset(stmt);
}
