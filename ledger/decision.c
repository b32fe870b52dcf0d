/*
 * REDISPATCH and DISCARD: what a person may decide about a record is a table
 * by its state. A refusal has written nothing; what is decided is a row before
 * anything moves, since the database lets a finished record go only by one.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/decision.h"
#include "ledger/handlers.h"
#include "ledger/hold.h"
#include "ledger/intent.h"
#include "ledger/lines.h"
#include "ledger/record.h"
#include "ledger/retraction.h"
#include "ledger/startable.h"
#include "ledger/task.h"

/* The record as the person finds it, with its newest task that counts. */
struct found {
	int64_t event_id;
	enum record_state state;
	const char *reason;
	bool is_waiting;         /* a redispatch waits for its task's end */
	bool is_complete;        /* content, route and conversation are there */
	const char *route_fault; /* NULL: what LAUNCH wants of it is so */
	bool is_conversation_live;
	const char *outcome; /* "" while it has none */
	const char *completed_at;
	int64_t task_id; /* 0: none */
	bool is_superseded;
	bool is_ended;
};

struct decision {
	const char *nonce;
	const char *action;
	const char *by;
	struct found found;
	int64_t id; /* 0: none was written */
};

/* Decide, or refuse in A. Returns 0 or -1. */
typedef int (*decide)(struct ledger *l, struct answer *a, struct decision *d);

int
decision_by_nonce(struct ledger *l, struct answer *a, const char *nonce,
    const char *action, int64_t event_id, int64_t *id)
{
	sqlite3_stmt *row;
	int rc;

	*id = 0;
	rc = sql_first(l, STMT_DECISION_BY_NONCE, WITH(v_text(nonce)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_DECISION_BY_NONCE);
	if (strcmp(row_text(row, 1), action) != 0 ||
	    row_int(row, 2) != event_id)
		return answer_fail(a, "refused",
		    "this nonce is of another decision, %" PRId64,
		    row_int(row, 0));
	*id = row_int(row, 0);
	return 0;
}

static int
found_read(
    struct ledger *l, struct answer *a, int64_t event_id, struct found *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_DECISION_RECORD, WITH(v_int(event_id)));
	if (rc == 0)
		return answer_fail(a, "not_found",
		    "event %" PRId64 " is not in the ledger", event_id);
	if (rc == -1)
		return -1;
	row = sql_row(l, STMT_DECISION_RECORD);
	r->event_id = event_id;
	r->state = record_state_by_name(row_text(row, 0));
	r->reason = answer_text(a, row_text(row, 1));
	r->is_waiting = row_int(row, 2) != 0;
	r->is_complete = row_int(row, 3) != 0;
	r->is_conversation_live = row_int(row, 4) != 0;
	r->outcome = answer_text(a, row_text(row, 5));
	r->completed_at = answer_text(a, row_text(row, 6));
	r->task_id = row_int(row, 7);
	r->is_superseded = row_int(row, 8) != 0;
	r->is_ended = row_int(row, 9) != 0;
	r->route_fault = route_fault(l, a, row_int(row, 10), row_text(row, 11));
	return 0;
}

/* It names the event, what it is, and why that does not do. */
static int
refuse(struct answer *a, const struct found *r, const char *why)
{
	const char *detail =
	    r->state == RECORD_COMPLETED ? r->outcome : r->reason;
	bool has_detail = *detail != '\0';

	return answer_fail(a, "refused", "event %" PRId64 " is %s%s%s%s: %s",
	    r->event_id, record_state_name(r->state), has_detail ? " (" : "",
	    detail, has_detail ? ")" : "", why);
}

/* Never dated before the outcome it decides, whatever the clock says. */
static const char *
decision_moment(const struct ledger *l, const struct found *r)
{
	return strcmp(r->completed_at, l->now) > 0 ? r->completed_at : l->now;
}

static int
decision_write(struct ledger *l, struct decision *d, const char *at,
    enum record_state to, int64_t superseded_task_id)
{
	const struct found *r = &d->found;

	if (sql_run(l, STMT_DECISION_INSERT,
		WITH(v_text(d->nonce), v_text(d->action), v_int(r->event_id),
		    v_text(d->by), v_text(at),
		    v_text(record_state_name(r->state)), v_text(r->reason),
		    v_text(r->outcome), v_text(record_state_name(to)),
		    v_opt((struct opt){
			superseded_task_id != 0, superseded_task_id}))) == -1)
		return -1;
	d->id = sqlite3_last_insert_rowid(l->db);
	return 0;
}

static int
decision_move(struct ledger *l, struct answer *a, const struct move *move)
{
	enum move_result moved = record_move(l, move);

	if (moved == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return answer_fail(a, "refused", "event %" PRId64 ": %s",
		    move->event_id, move_result_text(moved));
	return 0;
}

/* ---- redispatch ---------------------------------------------------------- */

static const char *
redispatch_fault(const struct found *r)
{
	if (*r->outcome == '\0')
		return "it has no settled outcome";
	if (strcmp(r->outcome, "succeeded") == 0)
		return "it is done; only failed or unknown work runs again";
	if (r->is_waiting)
		return "a redispatch waits for the end of its task already";
	if (!r->is_complete)
		return "its content, route or conversation is gone";
	return r->route_fault;
}

/* What its siblings' records become may take their guards back. */
static int
redispatch_supersede(struct ledger *l, struct answer *a, int64_t task_id)
{
	struct guards g;
	int rc = guards_of_task(l, task_id, &g);

	if (rc == 0 && task_supersede(l, task_id) != 1)
		rc = -1;
	return guards_tell(l, a, &g, rc);
}

/*
 * A task that has not ended has a worker: its token is retired at once, with
 * all that supersession means, and the record waits for the task's end.
 */
static int
redispatch_completed(struct ledger *l, struct answer *a, struct decision *d)
{
	const struct found *r = &d->found;
	const char *fault = redispatch_fault(r), *at = decision_moment(l, r);

	if (fault != NULL)
		return refuse(a, r, fault);
	if (decision_write(l, d, at,
		r->is_ended ? RECORD_ADMITTED : RECORD_COMPLETED,
		r->is_superseded && r->is_ended ? 0 : r->task_id) == -1 ||
	    sql_run(l, STMT_RECORD_REDISPATCH,
		WITH(v_int(r->event_id), v_int(d->id), v_text(at),
		    v_text(d->by))) == -1 ||
	    (!r->is_superseded && redispatch_supersede(l, a, r->task_id) == -1))
		return -1;
	if (!r->is_ended)
		return 0;
	return decision_move(l, a,
	    &(struct move){.event_id = r->event_id,
		.to = RECORD_ADMITTED,
		.by = BY_PERSON});
}

/* Authorized first: what is not would be held again by the very move. */
static int
redispatch_held(struct ledger *l, struct answer *a, struct decision *d)
{
	const struct found *r = &d->found;
	const char *at = decision_moment(l, r);
	struct move move = {.event_id = r->event_id, .by = BY_PERSON};

	if (*r->reason != '\0' || !r->is_complete || r->route_fault != NULL) {
		move.to = RECORD_BLOCKED;
		move.reason =
		    *r->reason != '\0' ? r->reason : "held_incomplete";
		move.next_retry_at = l->now;
	} else {
		move.to =
		    r->is_conversation_live ? RECORD_QUEUED : RECORD_ADMITTED;
	}
	if (decision_write(l, d, at, move.to, 0) == -1 ||
	    sql_run(l, STMT_RECORD_AUTHORIZE,
		WITH(v_int(r->event_id), v_text(at), v_text(d->by))) == -1)
		return -1;
	return decision_move(l, a, &move);
}

/* It needs none, but where its route is gone it does not start either. */
static int
redispatch_waiting(struct ledger *l, struct answer *a, struct decision *d)
{
	const struct found *r = &d->found;

	(void)l;
	return refuse(a, r,
	    r->route_fault != NULL ? r->route_fault : "it starts without one");
}

/* Neither state nor revision change: intake decides it anew, at once. */
static int
redispatch_blocked(struct ledger *l, struct answer *a, struct decision *d)
{
	const char *at = decision_moment(l, &d->found);
	int64_t id = d->found.event_id;

	if (decision_write(l, d, at, RECORD_BLOCKED, 0) == -1 ||
	    sql_run(l, STMT_RECORD_RERUN,
		WITH(v_int(id), v_text(l->now), v_text(d->by))) != 1)
		return -1;
	return 0;
}

/* ---- discard ------------------------------------------------------------- */

/* A waiting redispatch ends with the state it waited in. */
static int
discard_open(struct ledger *l, struct answer *a, struct decision *d)
{
	const struct found *r = &d->found;

	if (decision_write(l, d, decision_moment(l, r), RECORD_DISCARDED, 0) ==
	    -1)
		return -1;
	return decision_move(l, a,
	    &(struct move){.event_id = r->event_id,
		.to = RECORD_DISCARDED,
		.by = BY_PERSON,
		.reason = "by_operator"});
}

static int
discard_completed(struct ledger *l, struct answer *a, struct decision *d)
{
	if (strcmp(d->found.outcome, "unknown") != 0)
		return refuse(
		    a, &d->found, "only an unknown outcome is closed");
	return discard_open(l, a, d);
}

/* Closed by a person before: nothing is written, and that is success. */
static int
discard_again(struct ledger *l, struct answer *a, struct decision *d)
{
	const struct found *r = &d->found;
	struct msg_decided *is = &a->reply.decided;
	int64_t is_held;

	if (strcmp(r->reason, "by_operator") != 0)
		return refuse(a, r, "it is closed for another reason");
	if (sql_number(l, STMT_IS_HELD, WITH_NOTHING, &is_held) == -1)
		return -1;
	a->reply.type = MSG_DECIDED;
	is->from_state = is->state = record_state_name(r->state);
	is->from_reason = r->reason;
	is->from_outcome = r->outcome;
	is->already = true;
	is->held = is_held != 0;
	is->attempt = "";
	return 0;
}

/* ---- either -------------------------------------------------------------- */

/* By the record's state: how it is done, or why it is not. */
static const struct way {
	decide decide;
	const char *refusal;
} redispatches[] =
    {
	[RECORD_SEEN] = {NULL, "it is being decided and needs none"},
	[RECORD_ADMITTED] = {redispatch_waiting, NULL},
	[RECORD_QUEUED] = {redispatch_waiting, NULL},
	[RECORD_BLOCKED] = {redispatch_blocked, NULL},
	[RECORD_DISPATCHED] = {NULL, "a worker has it"},
	[RECORD_COMPLETED] = {redispatch_completed, NULL},
	[RECORD_DISCARDED] = {NULL, "it is closed for good"},
	[RECORD_HELD] = {redispatch_held, NULL},
},
  discards[] = {
      [RECORD_SEEN] = {NULL, "it is not decided yet"},
      [RECORD_ADMITTED] = {NULL, "it waits for a worker"},
      [RECORD_QUEUED] = {NULL, "it waits for a worker"},
      [RECORD_BLOCKED] = {discard_open, NULL},
      [RECORD_DISPATCHED] = {NULL, "a worker has it"},
      [RECORD_COMPLETED] = {discard_completed, NULL},
      [RECORD_DISCARDED] = {discard_again, NULL},
      [RECORD_HELD] = {discard_open, NULL},
};
static_assert(sizeof(redispatches) / sizeof(*redispatches) == RECORD_STATES &&
	sizeof(discards) / sizeof(*discards) == RECORD_STATES,
    "a decision answers every state");

/*
 * A worker's words that wait are not sent any more (design L8); with a
 * discard, neither are the connector's that called for this event.
 */
static int
intents_cancel(struct ledger *l, struct answer *a, const struct decision *d)
{
	bool is_discard = strcmp(d->action, "discard") == 0;
	size_t count, i;
	int64_t *ids;
	int rc;

	rc = sql_ids(l, STMT_INTENTS_WAITING,
	    WITH(v_int(d->found.event_id), v_int(is_discard)), &ids, &count);
	for (i = 0; i < count && rc == 0; i++) {
		if (sql_run(l, STMT_INTENT_CANCEL,
			WITH(v_int(ids[i]), v_text(l->now), v_int(d->id))) ==
			-1 ||
		    line_outbox(l, a, ids[i]) == -1 ||
		    intent_tell_worker(l, a, ids[i]) == -1)
			rc = -1;
	}
	free(ids);
	return rc;
}

/* DECIDED: what the decision's row and the record say now. */
static int
decision_tell(
    struct ledger *l, struct answer *a, int64_t id, struct msg_decided *is)
{
	sqlite3_stmt *row;

	if (sql_first(l, STMT_DECISION_IS, WITH(v_int(id))) != 1)
		return -1;
	row = sql_row(l, STMT_DECISION_IS);
	a->reply.type = MSG_DECIDED;
	is->decision_id = id;
	is->from_state = answer_text(a, row_text(row, 0));
	is->from_reason = answer_text(a, row_text(row, 1));
	is->from_outcome = answer_text(a, row_text(row, 2));
	is->state = answer_text(a, row_text(row, 3));
	is->pending = row_int(row, 4) != 0;
	is->rerun = row_int(row, 5) != 0;
	is->held = row_int(row, 6) != 0;
	is->superseded_task_id = row_int(row, 7);
	is->attempt = answer_text(a, row_text(row, 8));
	is->canceled = row_int(row, 9);
	return 0;
}

/* Who has to look again, or to end a worker's tree. */
static void
decision_notify(struct answer *a, const struct found *r)
{
	const struct msg_decided *is = &a->reply.decided;

	if (*is->attempt != '\0' && !r->is_superseded)
		answer_notice(a, MSG_SUPERSEDED, 0, is->attempt);
	if (is->rerun)
		answer_notice(a, MSG_UNDECIDED_WAITS, r->event_id, "");
	else if (strcmp(is->state, "discarded") != 0)
		answer_notice(a, MSG_WORK_WAITS, r->event_id, "");
}

static int
decision_make(struct ledger *l, struct answer *a, struct decision *d,
    const struct way *ways)
{
	struct found *r = &d->found;
	const struct way *way;

	/* No CHECK holds the column: the index is made sure of here. */
	if (r->state >= RECORD_STATES)
		return answer_fail(a, "refused", "its state is not known");
	way = &ways[r->state];
	if (way->decide == NULL)
		return refuse(a, r, way->refusal);
	if (way->decide(l, a, d) == -1)
		return -1;
	if (answer_failed(a) || d->id == 0)
		return 0;
	if (intents_cancel(l, a, d) == -1 ||
	    retraction_decided(l, a, r->event_id) == -1 ||
	    decision_tell(l, a, d->id, &a->reply.decided) == -1)
		return -1;
	if (strcmp(a->reply.decided.state, a->reply.decided.from_state) != 0 &&
	    line_decided(l, a, r->event_id) == -1)
		return -1;
	decision_notify(a, r);
	return 0;
}

static int
decision_handle(struct ledger *l, struct answer *a, struct decision *d,
    int64_t event_id, const struct way *ways)
{
	if (decision_by_nonce(l, a, d->nonce, d->action, event_id, &d->id) ==
	    -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (d->id != 0)
		return decision_tell(l, a, d->id, &a->reply.decided);
	if (found_read(l, a, event_id, &d->found) == -1)
		return -1;
	return answer_failed(a) ? 0 : decision_make(l, a, d, ways);
}

int
handle_redispatch(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_redispatch *m = &q->m->redispatch;

	return decision_handle(l, a,
	    &(struct decision){
		.nonce = m->nonce, .action = "redispatch", .by = m->by},
	    m->event_id, redispatches);
}

int
handle_discard(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_discard *m = &q->m->discard;

	return decision_handle(l, a,
	    &(struct decision){
		.nonce = m->nonce, .action = "discard", .by = m->by},
	    m->event_id, discards);
}
