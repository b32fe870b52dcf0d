#include <string.h>

#include "ledger/intent.h"

bool
intent_is_text_kind(const char *message_kind)
{
	return strcmp(message_kind, "comment") == 0 ||
	    strcmp(message_kind, "chat_line") == 0;
}

bool
intent_is_worker_kind(const char *kind)
{
	return strcmp(kind, "worker_ack") == 0 ||
	    strcmp(kind, "worker_reply") == 0;
}

static struct opt
id_or_null(int64_t id)
{
	return (struct opt){.has = id != 0, .value = id};
}

static struct value
v_text_if(const char *text)
{
	return v_text(text == NULL ? "" : text);
}

int
intent_write(struct ledger *l, struct answer *a, const struct intent *i)
{
	struct blob body = {i->body, i->body_len};
	int n;

	if (body.len == 0 && i->body != NULL)
		body.len = strlen(i->body);
	if (i->recording_id <= 0 || body.len == 0)
		return 0;
	n = sql_run(l, STMT_INTENT_INSERT,
	    WITH(v_text(i->key), v_text(i->kind),
		v_opt(id_or_null(i->event_id)), v_opt(id_or_null(i->task_id)),
		v_text_or_null(i->attempt_id == NULL ? "" : i->attempt_id),
		v_int(i->occurrence), v_text_if(i->answers_reason),
		v_text_if(i->argument_sha256), v_int(i->bucket_id),
		v_text(i->message_kind), v_int(i->recording_id),
		v_text_of(body), v_text(l->now), v_text(i->not_before)));
	if (n == 1)
		answer_notice(
		    a, MSG_POST_WAITS, sqlite3_last_insert_rowid(l->db), "");
	return n == -1 ? -1 : 0;
}

int
intent_tell_worker(struct ledger *l, struct answer *a, int64_t intent_id)
{
	int rc;

	rc = sql_first(l, STMT_INTENT_WORKER, WITH(v_int(intent_id)));
	if (rc != 1)
		return rc;
	answer_notice(a, MSG_POST_SETTLED, intent_id,
	    row_text(sql_row(l, STMT_INTENT_WORKER), 0));
	return 0;
}
