/*
 * POST: what a worker asks to post is an intent of the outbox like any other
 * (design L8). Its key holds the hash of the worker's own argument, so that
 * asking again is the same message; its body is fixed from here on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger/handlers.h"
#include "common/digest.h"
#include "ledger/intent.h"
#include "ledger/worker.h"

#define POSTS_MAX                                                  \
	20 /* of a kind, for a task's event; a trigger says so too \
	    */

/* Where it goes and what it says there. */
struct post_place {
	int64_t bucket_id;
	int64_t recording_id;
	const char *message_kind;
	struct blob body;
};

/* A boost goes to what happened, a reply to the event's own destination. */
static int
post_place_read(struct ledger *l, struct answer *a, const struct msg_post *m,
    struct post_place *p)
{
	bool is_ack = strcmp(m->kind, "worker_ack") == 0;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_LIFECYCLE_EVENT, WITH(v_int(m->event_id)));
	if (rc != 1)
		return -1; /* the row on the task refers to it */
	row = sql_row(l, STMT_LIFECYCLE_EVENT);
	p->bucket_id = row_int(row, 1);
	p->recording_id = row_int(row, is_ack ? 2 : 4);
	p->message_kind = is_ack ? "boost" : answer_text(a, row_text(row, 3));
	p->body =
	    strcmp(p->message_kind, "comment") == 0 ? m->comment : m->line;
	return 0;
}

static int
post_check(
    struct answer *a, const struct msg_post *m, const struct post_place *p)
{
	if (p->recording_id <= 0 ||
	    (strcmp(m->kind, "worker_reply") == 0 &&
		!intent_is_text_kind(p->message_kind)))
		return answer_fail(a, "not_dispatchable",
		    "event %" PRId64 " has no place for it", m->event_id);
	if (p->body.len == 0)
		return answer_fail(a, "invalid_report", "there is no text");
	if (memchr(p->body.bytes, '\0', p->body.len) != NULL)
		return answer_fail(a, "invalid_report", "the text holds a NUL");
	return 0;
}

/* What stands of it now. 1, 0 when it is not there yet, -1. */
static int
post_read(struct ledger *l, struct answer *a, const char *key)
{
	struct msg_post_is *is = &a->reply.post_is;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_POST_ROW, WITH(v_text(key)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_POST_ROW);
	a->reply.type = MSG_POST_IS;
	is->intent_id = row_int(row, 0);
	is->state = answer_text(a, row_text(row, 1));
	is->message_kind = answer_text(a, row_text(row, 2));
	is->receipt_id = row_opt(row, 3);
	is->refused = row_int(row, 4) != 0;
	is->note = answer_text(a, row_text(row, 5));
	return 1;
}

static int
post_write(struct ledger *l, struct answer *a, const struct msg_post *m,
    int64_t task_id, const char *key)
{
	struct post_place p;
	int64_t count;

	if (post_place_read(l, a, m, &p) == -1)
		return -1;
	if (post_check(a, m, &p), answer_failed(a))
		return 0;
	if (sql_number(l, STMT_POST_COUNT,
		WITH(v_int(task_id), v_int(m->event_id), v_text(m->kind)),
		&count) == -1)
		return -1;
	if (count >= POSTS_MAX)
		return answer_fail(a, "invalid_report",
		    "at most %d of these for an event", POSTS_MAX);
	return intent_write(l, a,
	    &(struct intent){.key = key,
		.kind = m->kind,
		.event_id = m->event_id,
		.task_id = task_id,
		.argument_sha256 = m->hash,
		.bucket_id = p.bucket_id,
		.message_kind = p.message_kind,
		.recording_id = p.recording_id,
		.body = p.body.bytes,
		.body_len = p.body.len,
		.not_before = l->now});
}

int
handle_post(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_post *m = &q->m->post;
	struct worker_row r;
	int64_t task_id;
	char key[160];
	int rc;

	rc = worker_pulled(l, q, a, m->token, m->event_id, &task_id, &r);
	if (rc != 1)
		return rc;
	if (!intent_is_worker_kind(m->kind) ||
	    strspn(m->hash, "0123456789abcdef") != DIGEST_HEX_LEN)
		return answer_fail(a, "refused", "POST: kind or hash is none");
	(void)snprintf(key, sizeof(key),
	    "%s:task:%" PRId64 ":event:%" PRId64 ":%s", m->kind, task_id,
	    m->event_id, m->hash);
	if ((rc = post_read(l, a, key)) != 0)
		return rc == 1 ? 0 : -1;
	if (post_write(l, a, m, task_id, key) == -1)
		return -1;
	return answer_failed(a) || post_read(l, a, key) == 1 ? 0 : -1;
}
