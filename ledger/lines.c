#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/text.h"
#include "ledger/lines.h"

static void
member_name(struct buffer *b, const char *name)
{
	buffer_add_char(b, b->len == 0 ? '{' : ',');
	json_write_string(b, name, strlen(name));
	buffer_add_char(b, ':');
}

static void
member_int(struct buffer *b, const char *name, int64_t value)
{
	member_name(b, name);
	buffer_printf(b, "%" PRId64, value);
}

static void
member_text(struct buffer *b, const char *name, const char *text)
{
	size_t len;
	char *line = text_single_line(text, strlen(text), &len);

	member_name(b, name);
	json_write_string(b, line, len);
	free(line);
}

/* Left out when there is nothing to say. */
static void
member_text_if(struct buffer *b, const char *name, const char *text)
{
	if (*text != '\0')
		member_text(b, name, text);
}

static void
member_id_if(struct buffer *b, const char *name, int64_t id)
{
	if (id != 0)
		member_int(b, name, id);
}

static void
line_end(struct answer *a, struct buffer *b)
{
	buffer_add_char(b, '}');
	answer_line(a, buffer_take(b, NULL));
}

/* A stamp without the zeros of its fraction. */
static void
member_time(struct buffer *b, const char *name, const char *stamp)
{
	size_t len = strlen(stamp) - 1; /* the Z */

	while (len > 0 && stamp[len - 1] == '0')
		len--;
	if (len > 0 && stamp[len - 1] == '.')
		len--;
	member_name(b, name);
	buffer_printf(b, "\"%.*sZ\"", (int)len, stamp);
}

void
line_pointer(struct answer *a, const struct msg_record *m)
{
	struct buffer b = {0};

	member_int(&b, "event_id", m->event_id);
	member_text(&b, "event_type", m->event_type);
	member_text(&b, "kind", m->kind);
	member_text(&b, "action", m->action);
	member_int(&b, "bucket_id", m->bucket_id);
	member_int(&b, "creator_id", m->creator_id);
	member_name(&b, "performed_by_id");
	if (m->performed_by_id.has)
		buffer_printf(&b, "%" PRId64, m->performed_by_id.value);
	else
		buffer_add_text(&b, "null");
	member_int(&b, "recording_id", m->recording_id);
	member_time(&b, "created_at", m->created_at);
	member_text(&b, "lane", m->lane);
	member_text(&b, "state", "seen");
	line_end(a, &b);
}

void
line_verdict(struct answer *a, const struct msg_verdict *m,
    const char *event_type, int64_t bucket_id, int64_t recording_id,
    const char *state, const char *reason)
{
	struct buffer b = {0};

	member_text(&b, "type", "event");
	member_int(&b, "event_id", m->event_id);
	member_text(&b, "event_type", event_type);
	member_text_if(&b, "trigger", m->trigger);
	member_text_if(&b, "class", m->class);
	member_text_if(&b, "route", m->route);
	member_int(&b, "bucket_id", bucket_id);
	member_int(&b, "recording_id", recording_id);
	member_text_if(&b, "recording_url", m->recording_url);
	member_int(&b, "requester_id", m->requester_id);
	member_text(&b, "state", state);
	member_text_if(&b, "reason", reason);
	line_end(a, &b);
}

int
line_decided(struct ledger *l, struct answer *a, int64_t event_id)
{
	struct msg_verdict m = {.event_id = event_id};
	sqlite3_stmt *row;

	if (sql_first(l, STMT_DECIDED_LINE, WITH(v_int(event_id))) != 1)
		return -1;
	row = sql_row(l, STMT_DECIDED_LINE);
	m.trigger = row_text(row, 5);
	m.class = row_text(row, 6);
	m.route = row_text(row, 7);
	m.recording_url = row_text(row, 8);
	m.requester_id = row_int(row, 9);
	line_verdict(a, &m, row_text(row, 2), row_int(row, 3), row_int(row, 4),
	    row_text(row, 0), row_text(row, 1));
	return 0;
}

void
line_dispatch(struct answer *a, int64_t task_id, const char *attempt,
    int64_t event_id, const char *state, const char *stop_reason)
{
	struct buffer b = {0};

	member_text(&b, "type", "dispatch");
	member_int(&b, "task_id", task_id);
	member_text(&b, "attempt_id", attempt);
	if (event_id != 0) {
		member_name(&b, "event_ids");
		buffer_printf(&b, "[%" PRId64 "]", event_id);
	}
	member_text(&b, "state", state);
	member_text_if(&b, "stop_reason", stop_reason);
	line_end(a, &b);
}

int
line_outbox(struct ledger *l, struct answer *a, int64_t intent_id)
{
	struct buffer b = {0};
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_OUTBOX_LINE, WITH(v_int(intent_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_OUTBOX_LINE);
	member_text(&b, "type", "outbox");
	member_int(&b, "intent_id", intent_id);
	member_text(&b, "kind", row_text(row, 0));
	member_text(&b, "state", row_text(row, 1));
	member_id_if(&b, "event_id", row_int(row, 2));
	member_text_if(&b, "attempt_id", row_text(row, 3));
	member_id_if(&b, "receipt_id", row_int(row, 4));
	line_end(a, &b);
	return 0;
}
