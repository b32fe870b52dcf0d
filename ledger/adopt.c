#include "ledger/adopt.h"

#include <inttypes.h>
#include <string.h>

#include "ledger/handlers.h"

/* The bound of ADOPTABLE.own and LIST_REPLIES.own. */
#define OWN_BYTES_MOST 8388608

int
adopt_own(struct ledger *l, int64_t task_id, int64_t event_id)
{
	return sql_run(l, STMT_ADOPT_OWN,
		   WITH(v_int(task_id), v_int(event_id))) == -1
	    ? -1
	    : 0;
}

int
adopt_posted(struct ledger *l, int64_t intent_id)
{
	sqlite3_stmt *row = sql_row(l, STMT_ADOPT_POSTED);
	int rc = sql_first(l, STMT_ADOPT_POSTED, WITH(v_int(intent_id)));

	return rc == 1 ? adopt_own(l, row_int(row, 0), row_int(row, 1)) : rc;
}

/* What stands there and is no reply of this worker to this event. */
static int
others_words_read(struct ledger *l, struct answer *a, int64_t task_id,
    struct msg_adoptable *is)
{
	struct blob words;

	if (sql_first(l, STMT_ADOPT_OTHERS_WORDS,
		WITH(v_text(is->message_kind), v_int(is->recording_id),
		    v_int(task_id), v_int(is->event_id))) != 1)
		return -1;
	words = row_blob(sql_row(l, STMT_ADOPT_OTHERS_WORDS), 0);
	is->own = answer_blob(a, words.bytes, words.len);
	return 0;
}

/*
 * The next event whose place's words one message holds: 1, 0 for none, -1.
 * What cannot be judged by all of them adopts nothing, and is passed over.
 */
static int
adoptable_read(struct ledger *l, const char *attempt, int64_t after)
{
	sqlite3_stmt *row = sql_row(l, STMT_ADOPTABLE_NEXT);
	int64_t size;
	int rc;

	while ((rc = sql_first(l, STMT_ADOPTABLE_NEXT,
		    WITH(v_text(attempt), v_int(after)))) == 1) {
		after = row_int(row, 0);
		if (sql_number(l, STMT_ADOPT_OTHERS_SIZE,
			WITH(v_text(row_text(row, 2)), v_int(row_int(row, 3)),
			    v_int(row_int(row, 4)), v_int(after)),
			&size) == -1)
			return -1;
		if (size <= OWN_BYTES_MOST)
			break;
	}
	return rc;
}

/* Where to look, and between which moments. */
int
handle_adoptable_next(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_adoptable_next *m = &q->m->adoptable_next;
	struct msg_adoptable *is = &a->reply.adoptable;
	sqlite3_stmt *row;
	int64_t task_id;
	int rc;

	a->reply.type = MSG_ADOPTABLE;
	rc = adoptable_read(l, m->attempt, m->after_event);
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ADOPTABLE_NEXT);
	is->found = true;
	is->event_id = row_int(row, 0);
	is->bucket_id = row_int(row, 1);
	is->message_kind = answer_text(a, row_text(row, 2));
	is->recording_id = row_int(row, 3);
	task_id = row_int(row, 4);
	is->since = answer_text(a, row_text(row, 5));
	is->before = answer_text(a, row_text(row, 6));
	is->ack_id = row_opt(row, 7);
	return others_words_read(l, a, task_id, is);
}

/* The row that a reply is to be linked to. */
struct adopting {
	int64_t task_id;
	bool is_unknown;
	bool is_delivered;
	bool is_own_unsettled;
	struct opt reply_id;
	struct opt adopted_id;
	struct opt ack_id;
	const char *message_kind;
};

static int
adopting_read(struct ledger *l, struct answer *a, const struct msg_adopt *m,
    struct adopting *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(
	    l, STMT_ADOPT_ROW, WITH(v_text(m->attempt), v_int(m->event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ADOPT_ROW);
	r->task_id = row_int(row, 0);
	r->is_unknown = strcmp(row_text(row, 1), "unknown") == 0;
	r->is_delivered = row_int(row, 2) != 0;
	r->reply_id = row_opt(row, 3);
	r->adopted_id = row_opt(row, 4);
	r->ack_id = row_opt(row, 5);
	r->message_kind = answer_text(a, row_text(row, 6));
	r->is_own_unsettled = row_int(row, 7) != 0;
	return 1;
}

/* Why not; NULL: nothing speaks against it. */
static const char *
adopt_fault(const struct adopting *r, int64_t reply_id)
{
	if (!r->is_unknown)
		return "its outcome is not unknown";
	if (!r->is_delivered)
		return "it was never acknowledged";
	if (r->reply_id.has)
		return "its worker named a reply";
	if (r->adopted_id.has)
		return "another reply is adopted";
	if (r->ack_id.has && r->ack_id.value == reply_id)
		return "that is its acknowledgement";
	if (r->is_own_unsettled)
		return "it may be its own reply, of which no receipt is known";
	return NULL;
}

int
handle_adopt(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_adopt *m = &q->m->adopt;
	int64_t is_anothers;
	struct adopting r;
	const char *fault;
	int n, rc;

	if ((rc = adopting_read(l, a, m, &r)) == 0)
		return answer_fail(a, "not_found",
		    "event %" PRId64 " is not on this attempt's task",
		    m->event_id);
	if (rc != 1)
		return -1;
	if (r.adopted_id.has && r.adopted_id.value == m->reply_id)
		return answer_done(a, false);
	if ((fault = adopt_fault(&r, m->reply_id)) != NULL)
		return answer_fail(a, "refused", "ADOPT: %s", fault);
	if (sql_number(l, STMT_ADOPT_IS_ANOTHERS,
		WITH(v_text(r.message_kind), v_int(m->reply_id),
		    v_int(r.task_id), v_int(m->event_id)),
		&is_anothers) == -1)
		return -1;
	if (is_anothers)
		return answer_fail(
		    a, "refused", "ADOPT: that message answers something else");
	n = sql_run(l, STMT_ADOPT,
	    WITH(v_int(r.task_id), v_int(m->event_id), v_int(m->reply_id)));
	return n == -1 ? -1 : answer_done(a, n == 1);
}
