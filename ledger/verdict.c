/*
 * What waits to be decided, and what intake decided (admission.md 1.12). A
 * verdict applies at the revision it was made from, and if no person has had
 * the record decided anew since; what was decided meanwhile stands, and is
 * told.
 */
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/lifecycle.h"
#include "ledger/lines.h"
#include "ledger/record.h"
#include "ledger/retraction.h"

/* The lower id of the two kinds: never decided, or blocked and due. */
static int
undecided_find(struct ledger *l, int64_t after, int64_t *id)
{
	int64_t seen, due;

	if (sql_number(l, STMT_UNDECIDED_SEEN, WITH(v_int(after)), &seen) ==
		-1 ||
	    sql_number(l, STMT_UNDECIDED_DUE,
		WITH(v_int(after), v_text(l->now)), &due) == -1)
		return -1;
	*id = seen == 0 || (due != 0 && due < seen) ? due : seen;
	return 0;
}

static int
undecided_next_retry(struct ledger *l, int64_t *ms)
{
	if (sql_first(l, STMT_UNDECIDED_NEXT_RETRY, WITH(v_text(l->now))) == -1)
		return -1;
	*ms = ledger_ms_until(
	    l, row_text(sql_row(l, STMT_UNDECIDED_NEXT_RETRY), 0));
	return 0;
}

int
handle_next_undecided(
    struct ledger *l, const struct request *q, struct answer *a)
{
	struct msg_undecided *u = &a->reply.undecided;
	sqlite3_stmt *row;
	int64_t id;
	int rc;

	a->reply.type = MSG_UNDECIDED;
	u->depth = l->depth;
	if (undecided_find(l, q->m->next_undecided.after, &id) == -1 ||
	    undecided_next_retry(l, &u->retry_in_ms) == -1)
		return -1;
	if (id == 0)
		return 0;
	rc = sql_first(l, STMT_UNDECIDED_RECORD, WITH(v_int(id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_UNDECIDED_RECORD);
	u->found = true;
	u->event_id = id;
	u->revision = row_int(row, 0);
	u->event_type = answer_text(a, row_text(row, 1));
	u->bucket_id = row_int(row, 2);
	u->creator_id = row_int(row, 3);
	u->performed_by_id = row_opt(row, 4);
	u->recording_id = row_int(row, 5);
	u->actor_type = answer_text(a, row_text(row, 6));
	u->seen_at = answer_text(a, row_text(row, 7));
	u->reason = answer_text(a, row_text(row, 8));
	u->retry_since = answer_text(a, row_text(row, 9));
	u->suspect = row_int(row, 10) != 0;
	u->rerun = row_int(row, 11);
	return 0;
}

/* What a verdict must be made of, whatever it is about. */
static const char *
verdict_fault(const struct msg_verdict *v, enum record_state to)
{
	if (to != RECORD_ADMITTED && to != RECORD_BLOCKED &&
	    to != RECORD_DISCARDED)
		return "state is no verdict";
	if (to == RECORD_ADMITTED &&
	    (v->snapshot.len == 0 || *v->conversation_key == '\0'))
		return "admitted needs a snapshot and a conversation";
	if (to != RECORD_ADMITTED && v->snapshot.len != 0)
		return "only admitted keeps a snapshot";
	if ((to == RECORD_ADMITTED) != (*v->reason == '\0'))
		return "blocked and discarded, and no other, have a reason";
	if (*v->retry_at != '\0' && !ledger_is_stamp(v->retry_at))
		return "retry_at is no stamp";
	if (*v->next_retry_at != '\0' && !ledger_is_stamp(v->next_retry_at))
		return "next_retry_at is no stamp";
	if (to != RECORD_BLOCKED &&
	    (*v->retry_at != '\0' || *v->next_retry_at != '\0'))
		return "only blocked is tried again";
	return NULL;
}

/*
 * Behind a conversation that is at work a record waits its turn. Queued ones
 * alone do not make a conversation live: nothing would ever start them.
 */
static int
verdict_target(
    struct ledger *l, const struct msg_verdict *v, enum record_state *to)
{
	int64_t is_live;

	if (*to != RECORD_ADMITTED)
		return 0;
	if (sql_number(l, STMT_CONVERSATION_IS_LIVE,
		WITH(v_text(v->conversation_key), v_int(v->event_id)),
		&is_live) == -1)
		return -1;
	if (is_live)
		*to = RECORD_QUEUED;
	return 0;
}

/* The record as it was before, which is what the line tells of it. */
struct verdict_record {
	enum record_state state;
	int64_t revision, rerun;
	const char *event_type;
	int64_t bucket_id;
	int64_t recording_id;
};

static int
verdict_record_read(
    struct ledger *l, struct answer *a, int64_t id, struct verdict_record *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_VERDICT_RECORD, WITH(v_int(id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_VERDICT_RECORD);
	r->state = record_state_by_name(row_text(row, 0));
	r->revision = row_int(row, 1);
	r->event_type = answer_text(a, row_text(row, 2));
	r->bucket_id = row_int(row, 3);
	r->recording_id = row_int(row, 4);
	r->rerun = row_int(row, 5);
	return 1;
}

/* Committed as STATE, which a hold's trigger may have chosen. */
static int
verdict_tell(struct ledger *l, struct answer *a, const struct msg_verdict *v,
    const struct verdict_record *was, enum record_state state)
{
	line_verdict(a, v, was->event_type, was->bucket_id, was->recording_id,
	    record_state_name(state), state == RECORD_HELD ? "" : v->reason);
	/* One that is queued joins the task that is alive there. */
	if (state == RECORD_ADMITTED || state == RECORD_QUEUED)
		answer_notice(a, MSG_WORK_WAITS, v->event_id, "");
	if (was->state == RECORD_SEEN)
		l->depth--;
	a->reply.type = MSG_VERDICT_IS;
	a->reply.verdict_is.applied = true;
	a->reply.verdict_is.state = record_state_name(state);
	a->reply.verdict_is.depth = l->depth;
	return 0;
}

static const char *
text_or_null(const char *text)
{
	return *text == '\0' ? NULL : text;
}

static int
verdict_move(struct ledger *l, struct answer *a, const struct msg_verdict *v,
    enum record_state to)
{
	const struct move move = {.event_id = v->event_id,
	    .to = to,
	    .reason = v->reason,
	    .from = RECORD_SET(RECORD_SEEN) | RECORD_SET(RECORD_BLOCKED),
	    .revision = {true, v->revision},
	    .retry_at = text_or_null(v->retry_at),
	    .next_retry_at = text_or_null(v->next_retry_at)};
	enum move_result moved = record_move_verdict(l, &move, v);

	if (moved == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return answer_fail(
		    a, "refused", "VERDICT: %s", move_result_text(moved));
	return 0;
}

/* It was decided meanwhile: what stands is the answer, and no failure. */
static int
verdict_stands(struct ledger *l, struct answer *a, enum record_state state)
{
	a->reply.type = MSG_VERDICT_IS;
	a->reply.verdict_is.state = record_state_name(state);
	a->reply.verdict_is.depth = l->depth;
	return 0;
}

/* What it asks for may be over by now, or to be asked after all. */
static int
holding_wake(struct ledger *l, struct answer *a, int64_t event_id)
{
	int64_t intent_id;

	if (sql_number(l, STMT_HOLDING_WAITING, WITH(v_int(event_id)),
		&intent_id) == -1)
		return -1;
	if (intent_id != 0)
		answer_notice(a, MSG_POST_WAITS, intent_id, "");
	return 0;
}

int
handle_verdict(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_verdict *v = &q->m->verdict;
	enum record_state to = record_state_by_name(v->state), state;
	const char *fault = verdict_fault(v, to);
	struct verdict_record was;
	int rc;

	if (fault != NULL)
		return answer_fail(a, "refused", "VERDICT: %s", fault);
	if ((rc = verdict_record_read(l, a, v->event_id, &was)) == 0)
		return answer_fail(a, "not_found", "no such record");
	if (rc != 1)
		return -1;
	if (was.revision != v->revision || was.rerun != v->rerun ||
	    (was.state != RECORD_SEEN && was.state != RECORD_BLOCKED))
		return verdict_stands(l, a, was.state);
	if (verdict_target(l, v, &to) == -1 || verdict_move(l, a, v, to) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (record_state_of(l, v->event_id, &state) == -1 ||
	    holding_wake(l, a, v->event_id) == -1 ||
	    lifecycle_verdict(l, a, v->event_id, state) == -1 ||
	    retraction_moved(l, a, v->event_id) == -1)
		return -1;
	return verdict_tell(l, a, v, &was, state);
}
