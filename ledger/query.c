/*
 * Rows as JSON. A column becomes a member of its own name; NULL is left out;
 * a name that ends in '?' is a boolean, one that ends in '*' is JSON already.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/text.h"
#include "ledger/handlers.h"
#include "ledger/query.h"

#define EVENTS_NORMAL 20

/* Whatever it is made of, it is one printable line. */
static json_t *
text_to_json(const char *text)
{
	size_t len;
	char *line = text_single_line(text, strlen(text), &len);
	json_t *json = json_stringn(line, len);

	free(line);
	return json;
}

static json_t *
column_to_json(sqlite3_stmt *row, int column, char mark)
{
	if (mark == '?')
		return json_boolean(row_int(row, column) != 0);
	if (mark == '*')
		return json_loads(row_text(row, column), JSON_DECODE_ANY, NULL);
	if (sqlite3_column_type(row, column) == SQLITE_INTEGER)
		return json_integer(row_int(row, column));
	return text_to_json(row_text(row, column));
}

static json_t *
row_to_json(sqlite3_stmt *row)
{
	json_t *object = json_object();
	char name[64];
	size_t len;
	int i;

	for (i = 0; i < sqlite3_column_count(row); i++) {
		const char *alias = sqlite3_column_name(row, i);
		char mark;

		if (sqlite3_column_type(row, i) == SQLITE_NULL)
			continue;
		len = strlen(alias);
		mark = alias[len - 1];
		if (mark == '?' || mark == '*')
			len--;
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, alias);
		(void)json_object_set_new(
		    object, name, column_to_json(row, i, mark));
	}
	return object;
}

/* What a statement's rows become. */
enum shape {
	SHAPE_ROW,    /* an object; left out when there is no row */
	SHAPE_ROWS,   /* an array of objects, [] when there are none */
	SHAPE_COUNTS, /* {first column: second column, ...} */
	SHAPE_NUMBER  /* the only column of the only row */
};

struct part {
	const char *name;
	enum stmt stmt;
	enum shape shape;
};

static void
part_add_row(json_t *json, enum shape shape, sqlite3_stmt *row)
{
	json_t *name;

	if (shape == SHAPE_ROWS) {
		(void)json_array_append_new(json, row_to_json(row));
		return;
	}
	name = text_to_json(row_text(row, 0));
	(void)json_object_set_new(
	    json, json_string_value(name), json_integer(row_int(row, 1)));
	json_decref(name);
}

/* *JSON stays NULL for a row that is not there. */
static int
part_read(struct ledger *l, const struct part *p, const struct value *values,
    size_t count, json_t **json)
{
	sqlite3_stmt *row = sql_row(l, p->stmt);
	int rc = sql_first(l, p->stmt, values, count);

	if (p->shape == SHAPE_NUMBER || p->shape == SHAPE_ROW) {
		if (rc == 1)
			*json = p->shape == SHAPE_ROW
			    ? row_to_json(row)
			    : json_integer(row_int(row, 0));
		return rc == -1 ? -1 : 0;
	}
	*json = p->shape == SHAPE_ROWS ? json_array() : json_object();
	for (; rc == 1; rc = sql_next(l, p->stmt))
		part_add_row(*json, p->shape, row);
	return rc;
}

static int
parts_read(struct ledger *l, json_t *object, const struct part *parts,
    size_t part_count, const struct value *values, size_t count)
{
	size_t i;

	for (i = 0; i < part_count; i++) {
		json_t *json = NULL;

		if (part_read(l, &parts[i], values, count, &json) == -1) {
			json_decref(json);
			return -1;
		}
		if (json != NULL)
			(void)json_object_set_new(object, parts[i].name, json);
	}
	return 0;
}

#define PARTS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct part status_parts[] = {
    {"schema_version", STMT_STATUS_SCHEMA, SHAPE_NUMBER},
    {"connection", STMT_STATUS_CONNECTION, SHAPE_ROW},
    {"hold", STMT_STATUS_HOLD, SHAPE_ROW},
    {"generation", STMT_STATUS_GENERATION, SHAPE_NUMBER},
    {"positions", STMT_STATUS_POSITIONS, SHAPE_ROWS},
    {"gaps", STMT_STATUS_GAPS, SHAPE_ROWS},
    {"open_losses", STMT_STATUS_LOSSES, SHAPE_ROWS},
    {"unrecovered_ids", STMT_STATUS_UNRECOVERED, SHAPE_NUMBER},
    {"queues", STMT_STATUS_QUEUES, SHAPE_COUNTS},
    {"blocked", STMT_STATUS_BLOCKED, SHAPE_COUNTS},
    {"review_tagged", STMT_STATUS_REVIEW, SHAPE_NUMBER},
    {"authorized_blocked", STMT_STATUS_AUTHORIZED, SHAPE_NUMBER},
    {"redispatch_pending", STMT_STATUS_REDISPATCH, SHAPE_NUMBER},
    {"live_tasks", STMT_STATUS_LIVE, SHAPE_ROWS},
    {"indeterminate_intents", STMT_STATUS_DOUBTS, SHAPE_ROWS},
    {"held_records", STMT_STATUS_HELD, SHAPE_ROWS},
    {"dispatches", STMT_STATUS_DISPATCHES, SHAPE_ROWS},
    {"retention", STMT_STATUS_RETENTION, SHAPE_ROW},
    {"renewal_holds", STMT_STATUS_RENEWALS, SHAPE_ROWS},
};

static const struct part show_parts[] = {
    {"event", STMT_SHOW_EVENT, SHAPE_ROW},
    {"tasks", STMT_SHOW_TASKS, SHAPE_ROWS},
    {"attempts", STMT_SHOW_ATTEMPTS, SHAPE_ROWS},
    {"outbox", STMT_SHOW_OUTBOX, SHAPE_ROWS},
    {"decisions", STMT_SHOW_DECISIONS, SHAPE_ROWS},
};

static const struct part events_parts[] = {
    {"events", STMT_EVENTS_LAST, SHAPE_ROWS},
};

static enum query_result
query_read(struct ledger *l, const char *what, int64_t event_id, int64_t count,
    json_t *object)
{
	int rc;

	if (strcmp(what, "status") == 0) {
		rc = parts_read(l, object, PARTS(status_parts), WITH_NOTHING);
	} else if (strcmp(what, "events") == 0) {
		rc = parts_read(l, object, PARTS(events_parts),
		    WITH(v_int(count == 0 ? EVENTS_NORMAL : count)));
	} else if (strcmp(what, "show") == 0) {
		rc = parts_read(
		    l, object, PARTS(show_parts), WITH(v_int(event_id)));
		if (rc == 0 && json_object_get(object, "event") == NULL)
			return QUERY_NO_RECORD;
	} else {
		return QUERY_UNKNOWN;
	}
	return rc == -1 ? QUERY_ERROR : QUERY_OK;
}

enum query_result
query_json(struct ledger *l, const char *what, int64_t event_id, int64_t count,
    char **json)
{
	json_t *object = json_object();
	enum query_result result;

	result = query_read(l, what, event_id, count, object);
	*json = result == QUERY_OK ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	return result;
}

int
handle_query(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_query *m = &q->m->query;
	char *json;

	switch (query_json(l, m->what, m->event_id, m->count, &json)) {
	case QUERY_OK:
		break;
	case QUERY_UNKNOWN:
		return answer_fail(a, "refused", "QUERY: no such thing");
	case QUERY_NO_RECORD:
		return answer_fail(
		    a, "not_found", "no event %lld", (long long)m->event_id);
	case QUERY_ERROR:
		return -1;
	}
	a->reply.type = MSG_ANSWER;
	a->reply.answer.json = answer_blob(a, json, strlen(json));
	free(json);
	return 0;
}

int
handle_connection(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_connection *m = &q->m->connection;
	int n;

	n = sql_change_or_begin(l, STMT_CONNECTION_NOTE, STMT_CONNECTION_BEGIN,
	    WITH(v_text(m->state), v_int(m->pid), v_text(l->now),
		v_text(m->detail)));
	return n == -1 ? -1 : answer_done(a, n == 1);
}
