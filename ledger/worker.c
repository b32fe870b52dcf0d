/*
 * The worker's three actions (ledger.md 3.4.1 and 6). Which kind of error a
 * call gets is decided in this order: the token, the task's event, the pull,
 * then what the call says.
 */
#include <inttypes.h>
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/lines.h"
#include "ledger/machine.h"
#include "ledger/token.h"
#include "ledger/worker.h"

/*
 * How far an event on a task came. What is exposed a worker may have seen; it
 * did see what it pulled.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		 - a e p d c w */
	{MACHINE_NONE,	" mt    "},
	{"admitted",	" =mt   "},
	{"exposed",	"  =m mm"},
	{"pulled",	"   =mm "},
	{"delivered",	"    =m "},
	{"completed",	"     = "},
	{"withdrawn",	"      ="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "admitted", "LAUNCH, JOIN",
	    "its record waits, its task is live, its conversation is free",
	    "its record dispatched; the guard armed if acknowledge"},
	{"(none), admitted", "exposed", "LAUNCH",
	    "the event that the task began with; no hold stands",
	    "exposed_at, exposed_attempt_id"},
	{"admitted", "exposed", "EXPOSE", "on a live task; no hold stands",
	    "the same"},
	{"admitted", "pulled", "GET_DISPATCH", "servable; no hold stands",
	    "exposed_at, then pulled_at, then the guard canceled"},
	{"exposed", "pulled", "GET_DISPATCH",
	    "on a live task; servable; no hold stands",
	    "pulled_at, then the guard canceled"},
	{"pulled", "delivered", "ACK_DISPATCH", "on a live task",
	    "delivered_at, ack_id if one is named"},
	{"pulled, delivered", "completed", "COMPLETE_DISPATCH",
	    "on a live task",
	    "delivered_at if unset, completed_at, outcome, links, reply_id; "
	    "then the record completed"},
	{"exposed, pulled, delivered", "completed", "END", "not reported",
	    "the record completed; then completed_at, outcome unknown"},
	{"exposed", "withdrawn", "END",
	    "the process of the attempt that exposed it never was; the task is "
	    "superseded, and the event on no live one",
	    "withdrawn_at; then the record admitted or blocked"},
};
/* clang-format on */

const struct machine delivery_machine = {
    .name = "delivery",
    .table = "task_events",
    .state = "CASE WHEN withdrawn_at IS NOT NULL THEN 'withdrawn'"
	     " WHEN delivery = 'exposed' AND pulled_at IS NOT NULL"
	     " THEN 'pulled' ELSE delivery END",
    MACHINE_TABLES(states, edges),
};

/* Unknown, superseded or another attempt's: that is not told apart. */
static int
token_refused(struct answer *a)
{
	return answer_fail(
	    a, "task_token_refused", "this token names no current task");
}

/* The link of a guest has no attempt, and finds none, before its BIND. */
int
worker_task(struct ledger *l, const struct request *q, struct answer *a,
    const char *token, int64_t *task_id)
{
	char hash[DIGEST_HEX_SIZE];
	int rc;

	token_hash(token, hash);
	rc = sql_first(
	    l, STMT_TOKEN_TASK, WITH(v_text(hash), v_text(q->attempt)));
	if (rc == 0)
		return token_refused(a);
	if (rc == 1)
		*task_id = row_int(sql_row(l, STMT_TOKEN_TASK), 0);
	return rc;
}

int
worker_row_read(struct ledger *l, struct answer *a, int64_t task_id,
    int64_t event_id, struct worker_row *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(
	    l, STMT_WORKER_ROW, WITH(v_int(task_id), v_int(event_id)));
	if (rc == 0)
		return answer_fail(a, "not_on_task",
		    "event %" PRId64 " is not on this task", event_id);
	if (rc == -1)
		return -1;
	row = sql_row(l, STMT_WORKER_ROW);
	r->delivery = answer_text(a, row_text(row, 0));
	r->is_pulled = row_int(row, 1) != 0;
	r->is_armed = row_int(row, 2) != 0;
	r->ack_id = row_opt(row, 3);
	r->outcome = answer_text(a, row_text(row, 4));
	r->links = answer_text(a, row_text(row, 5));
	r->reply_id = row_opt(row, 6);
	r->record_state = answer_text(a, row_text(row, 7));
	r->is_servable = row_int(row, 8) != 0;
	return 1;
}

int
worker_pulled(struct ledger *l, const struct request *q, struct answer *a,
    const char *token, int64_t event_id, int64_t *task_id, struct worker_row *r)
{
	int rc;

	if ((rc = worker_task(l, q, a, token, task_id)) != 1 ||
	    (rc = worker_row_read(l, a, *task_id, event_id, r)) != 1)
		return rc;
	if (!r->is_pulled)
		return answer_fail(a, "not_exposed",
		    "event %" PRId64 " was not handed to this worker; call "
		    "get_dispatch first",
		    event_id);
	return 1;
}

/*
 * The attempt is the link's; a guest's is the one that its token leads to, and
 * becomes its link's once this is committed (ledger.c).
 */
int
handle_bind(struct ledger *l, const struct request *q, struct answer *a)
{
	char hash[DIGEST_HEX_SIZE];
	sqlite3_stmt *row;
	int rc;

	token_hash(q->m->bind.token, hash);
	rc = sql_first(
	    l, STMT_TOKEN_ATTEMPT, WITH(v_text(hash), v_text(q->attempt)));
	if (rc == -1)
		return -1;
	if (rc == 0)
		return token_refused(a);
	if (l->config == NULL)
		return answer_fail(a, "unavailable", "no configuration yet");
	row = sql_row(l, STMT_TOKEN_ATTEMPT);
	a->reply.type = MSG_BOUND;
	a->reply.bound.task_id = row_int(row, 0);
	a->reply.bound.agent_id = l->config->agent_id;
	a->reply.bound.attempt = answer_text(a, row_text(row, 1));
	return 0;
}

int
handle_check_token(struct ledger *l, const struct request *q, struct answer *a)
{
	int64_t task_id;
	int rc;

	rc = worker_task(l, q, a, q->m->check_token.token, &task_id);
	if (rc == 1)
		a->reply.type = MSG_DONE;
	return rc == -1 ? -1 : 0;
}

/* ---- get --------------------------------------------------------------- */

/* Expose, pull, stand the guard down: three statements, in this order. */
static int
pull_write(struct ledger *l, struct answer *a, int64_t task_id,
    int64_t event_id, const struct worker_row *r)
{
	int64_t guard = 0;

	if (strcmp(r->delivery, "admitted") == 0 &&
	    sql_run(l, STMT_EXPOSE_BY_WORKER,
		WITH(v_int(task_id), v_int(event_id), v_text(l->now))) == -1)
		return -1;
	if (!r->is_pulled &&
	    sql_run(l, STMT_PULL,
		WITH(v_int(task_id), v_int(event_id), v_text(l->now))) == -1)
		return -1;
	if (!r->is_armed)
		return 0;
	if (sql_number(l, STMT_GUARD_PENDING, WITH(v_int(event_id)), &guard) ==
		-1 ||
	    sql_run(l, STMT_GUARD_CANCEL,
		WITH(v_int(task_id), v_int(event_id))) == -1)
		return -1;
	return guard == 0 ? 0 : line_outbox(l, a, guard);
}

/* Read back, so that the answer is what stands. */
static int
instruction_read(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id)
{
	struct msg_instruction *i = &a->reply.instruction;
	struct blob snapshot;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_INSTRUCTION,
		WITH(v_int(task_id), v_int(event_id))) != 1)
		return -1;
	row = sql_row(l, STMT_INSTRUCTION);
	i->found = true;
	i->event_id = event_id;
	i->event_type = answer_text(a, row_text(row, 0));
	i->trigger = answer_text(a, row_text(row, 1));
	i->class = answer_text(a, row_text(row, 2));
	i->bucket_id = row_int(row, 3);
	i->recording_id = row_int(row, 4);
	i->recording_url = answer_text(a, row_text(row, 5));
	i->reply_kind = answer_text(a, row_text(row, 6));
	i->reply_recording_id = row_int(row, 7);
	i->requester_id = row_int(row, 8);
	i->acknowledge = row_int(row, 9) != 0;
	i->guard_acknowledged = row_int(row, 10) != 0;
	i->delivery = answer_text(a, row_text(row, 11));
	snapshot = row_blob(row, 12);
	i->snapshot = answer_blob(a, snapshot.bytes, snapshot.len);
	return 0;
}

/* Is this the worker's first sight of it, and does a hold forbid that? */
static int
pull_is_held(struct ledger *l, const struct worker_row *r, bool *is_held)
{
	int64_t held = 0;

	if (!r->is_pulled &&
	    sql_number(l, STMT_IS_HELD, WITH_NOTHING, &held) == -1)
		return -1;
	*is_held = held != 0;
	return 0;
}

static int
get_one(struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id)
{
	struct worker_row r;
	bool is_held;
	int rc;

	if ((rc = worker_row_read(l, a, task_id, event_id, &r)) != 1)
		return rc;
	if (!r.is_servable)
		return answer_fail(a, "not_dispatchable",
		    "event %" PRId64 " can no longer be dispatched", event_id);
	if (pull_is_held(l, &r, &is_held) == -1)
		return -1;
	if (is_held)
		return answer_fail(a, "held",
		    "nothing new is handed over until a hold is released");
	if (pull_write(l, a, task_id, event_id, &r) == -1)
		return -1;
	return instruction_read(l, a, task_id, event_id);
}

int
handle_get_dispatch(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_get_dispatch *m = &q->m->get_dispatch;
	int64_t task_id, event_id = m->event_id;
	int rc;

	a->reply.type = MSG_INSTRUCTION;
	if ((rc = worker_task(l, q, a, m->token, &task_id)) != 1)
		return rc;
	if (event_id == 0 &&
	    sql_number(
		l, STMT_WORKER_EARLIEST, WITH(v_int(task_id)), &event_id) == -1)
		return -1;
	return event_id == 0 ? 0 : get_one(l, a, task_id, event_id);
}

/* ---- reports ----------------------------------------------------------- */

int
worker_report(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id)
{
	struct msg_report_is *is = &a->reply.report_is;
	struct worker_row r;
	int rc;

	a->reply.type = MSG_REPORT_IS;
	rc = worker_row_read(l, a, task_id, event_id, &r);
	if (rc != 1)
		return rc;
	is->event_id = event_id;
	is->delivery = r.delivery;
	is->ack_id = r.ack_id;
	is->outcome = r.outcome;
	is->reply_id = r.reply_id;
	if (strcmp(r.links, "[]") != 0)
		is->links = (struct blob){r.links, strlen(r.links)};
	return 0;
}

int
handle_ack_dispatch(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_ack_dispatch *m = &q->m->ack_dispatch;
	struct worker_row r;
	int64_t task_id;
	bool is_first;
	int rc;

	rc = worker_pulled(l, q, a, m->token, m->event_id, &task_id, &r);
	if (rc != 1)
		return rc;
	is_first = strcmp(r.delivery, "exposed") == 0;
	if (m->ack_id.has &&
	    (r.ack_id.has ? r.ack_id.value != m->ack_id.value : !is_first))
		return answer_fail(a, "report_conflict",
		    "another acknowledgement of event %" PRId64 " stands",
		    m->event_id);
	if (is_first &&
	    sql_run(l, STMT_ACKNOWLEDGE,
		WITH(v_int(task_id), v_int(m->event_id), v_text(l->now),
		    v_opt(m->ack_id))) == -1)
		return -1;
	return worker_report(l, a, task_id, m->event_id);
}

int
handle_thread_of(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_thread_of *m = &q->m->thread_of;
	struct msg_thread_is *is = &a->reply.thread_is;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(
	    l, STMT_THREAD_OF, WITH(v_text(m->attempt), v_int(m->event_id)));
	if (rc == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_on_task",
		    "event %" PRId64 " is not on this task", m->event_id);
	row = sql_row(l, STMT_THREAD_OF);
	if (row_int(row, 0) == 0)
		return answer_fail(a, "not_exposed",
		    "event %" PRId64 " was not handed to this worker; call "
		    "get_dispatch first",
		    m->event_id);
	if (row_int(row, 1) != 0)
		return answer_fail(a, "not_dispatchable",
		    "event %" PRId64 " can no longer be dispatched",
		    m->event_id);
	a->reply.type = MSG_THREAD_IS;
	is->event_type = answer_text(a, row_text(row, 2));
	is->bucket_id = row_int(row, 3);
	is->recording_id = row_int(row, 4);
	is->reply_kind = answer_text(a, row_text(row, 5));
	is->reply_recording_id = row_int(row, 6);
	return 0;
}
