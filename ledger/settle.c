/*
 * What an attempt's end makes of its records (ledger.md 3.4.2). What a worker
 * may have seen and did not report is unknown, and is never started again by
 * itself; what no worker can have seen goes back.
 */
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "ledger/adopt.h"
#include "ledger/decision.h"
#include "ledger/handlers.h"
#include "ledger/hold.h"
#include "ledger/lifecycle.h"
#include "ledger/lines.h"
#include "ledger/record.h"
#include "ledger/retraction.h"
#include "ledger/task.h"

enum settlement {
	SETTLE_REPORTED,  /* the worker said how it ended */
	SETTLE_RETURNED,  /* nobody saw it */
	SETTLE_WITHDRAWN, /* exposed to a process that never was */
	SETTLE_UNKNOWN
};

/* A row of the task that was not withdrawn before. */
struct settled {
	int64_t event_id;
	enum settlement as;
};

struct settling {
	const struct msg_end *end;
	int64_t task_id;
	struct settled *rows;
	size_t count;
};

static const char *
end_fault(const struct msg_end *m)
{
	static const char *const reasons[] = {
	    "finished", "failed", "deadline", "shutdown", "lost"};
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (strcmp(m->stop_reason, reasons[i]) == 0)
			break;
	}
	if (i == sizeof(reasons) / sizeof(reasons[0]))
		return "no such stop reason";
	if (m->spawn_failed && strcmp(m->stop_reason, "failed") != 0)
		return "a failed spawn stops as failed";
	if ((m->no_retry || m->uncharged) && !m->spawn_failed)
		return "only a failed spawn is tried again";
	return NULL;
}

static enum settlement
settlement_of(const struct settling *s, sqlite3_stmt *row)
{
	const char *delivery = row_text(row, 1);

	if (strcmp(delivery, "completed") == 0)
		return SETTLE_REPORTED;
	if (strcmp(delivery, "admitted") == 0)
		return SETTLE_RETURNED;
	if (s->end->spawn_failed && strcmp(delivery, "exposed") == 0 &&
	    row_int(row, 3) == 0 &&
	    strcmp(row_text(row, 2), s->end->attempt) == 0)
		return SETTLE_WITHDRAWN;
	return SETTLE_UNKNOWN;
}

/* Retired rows count too: a redispatch may have retired them already. */
static int
settling_read(struct ledger *l, struct settling *s)
{
	sqlite3_stmt *row = sql_row(l, STMT_TASK_ROWS);
	int rc = sql_first(l, STMT_TASK_ROWS, WITH(v_int(s->task_id)));

	for (; rc == 1; rc = sql_next(l, STMT_TASK_ROWS)) {
		s->rows =
		    xreallocarray(s->rows, s->count + 1, sizeof(*s->rows));
		s->rows[s->count].event_id = row_int(row, 0);
		s->rows[s->count++].as = settlement_of(s, row);
	}
	return rc;
}

/* A record that will not move is an error: nothing else can have moved it. */
static int
settle_move(struct ledger *l, struct answer *a, const struct move *move)
{
	enum move_result moved = record_move(l, move);

	if (moved == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return answer_fail(
		    a, "refused", "its record is %s", move_result_text(moved));
	return 0;
}

/* The record first: by that the row's trigger knows a settlement. */
static int
settle_unknown(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id)
{
	const struct move move = {.event_id = event_id,
	    .to = RECORD_COMPLETED,
	    .from =
		RECORD_SET(RECORD_DISPATCHED) | RECORD_SET(RECORD_COMPLETED)};

	if (settle_move(l, a, &move) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_run(l, STMT_ROW_UNKNOWN,
		WITH(v_int(task_id), v_int(event_id), v_text(l->now))) == -1)
		return -1;
	return adopt_own(l, task_id, event_id);
}

/* One failed start is tried again; another waits for a person. */
static int
withdrawn_target(struct ledger *l, const struct msg_end *end, int64_t task_id,
    int64_t event_id, enum record_state *to)
{
	int64_t earlier;

	*to = RECORD_ADMITTED;
	if (end->uncharged)
		return 0;
	if (sql_number(l, STMT_WITHDRAWN_COUNT,
		WITH(v_int(event_id), v_int(task_id)), &earlier) == -1)
		return -1;
	if (end->no_retry || earlier > 0)
		*to = RECORD_BLOCKED;
	return 0;
}

static int
settle_withdrawn(struct ledger *l, struct answer *a, const struct msg_end *end,
    int64_t task_id, int64_t event_id)
{
	struct move move = {
	    .event_id = event_id, .from = RECORD_SET(RECORD_DISPATCHED)};

	if (withdrawn_target(l, end, task_id, event_id, &move.to) == -1 ||
	    sql_run(l, STMT_ROW_WITHDRAW,
		WITH(v_int(task_id), v_int(event_id), v_text(l->now),
		    v_int(end->uncharged))) == -1)
		return -1;
	if (move.to == RECORD_BLOCKED)
		move.reason = "spawn_failed";
	return settle_move(l, a, &move);
}

/*
 * A row that was retired with its task before this end: the supersession then
 * gave its record back, unless something had it.
 */
static int
settle_returned(struct ledger *l, int64_t event_id)
{
	const struct move move = {.event_id = event_id,
	    .to = RECORD_ADMITTED,
	    .from = RECORD_SET(RECORD_DISPATCHED)};

	if (record_move(l, &move) == MOVE_ERROR)
		return -1;
	return 0;
}

static int
settle_row(struct ledger *l, struct answer *a, const struct settling *s,
    const struct settled *row, enum settlement as)
{
	if (row->as != as || answer_failed(a))
		return 0;
	switch (as) {
	case SETTLE_UNKNOWN:
		return settle_unknown(l, a, s->task_id, row->event_id);
	case SETTLE_WITHDRAWN:
		return settle_withdrawn(
		    l, a, s->end, s->task_id, row->event_id);
	case SETTLE_RETURNED:
		return settle_returned(l, row->event_id);
	case SETTLE_REPORTED:
		break;
	}
	return 0;
}

static int
settle_rows(struct ledger *l, struct answer *a, const struct settling *s,
    enum settlement as)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (settle_row(l, a, s, &s->rows[i], as) == -1)
			return -1;
	}
	return 0;
}

/* The order is fixed: supersede, withdraw, end. */
static int
settle_steps(struct ledger *l, struct answer *a, struct settling *s)
{
	const struct msg_end *m = s->end;
	char sources[MACHINE_SOURCES_SIZE];

	machine_sources(&attempt_machine, "ended", BY_MACHINE, sources);
	if (sql_run(l, STMT_ATTEMPT_END,
		WITH(v_text(m->attempt), v_text(l->now), v_text(m->stop_reason),
		    v_int(m->spawn_failed), v_int(m->no_retry),
		    v_int(m->refusals), v_text(sources))) == -1 ||
	    settling_read(l, s) == -1 ||
	    settle_rows(l, a, s, SETTLE_UNKNOWN) == -1 ||
	    task_supersede(l, s->task_id) == -1 ||
	    settle_rows(l, a, s, SETTLE_RETURNED) == -1 ||
	    settle_rows(l, a, s, SETTLE_WITHDRAWN) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_run(l, STMT_TASK_END,
		WITH(v_int(s->task_id), v_text(l->now))) == -1 ||
	    lifecycle_ended(l, a, m->attempt) == -1 ||
	    retraction_moved_task(l, a, s->task_id) == -1)
		return -1;
	line_dispatch(a, s->task_id, m->attempt, 0, "ended", m->stop_reason);
	answer_notice(a, MSG_WORK_WAITS, 0, "");
	return 0;
}

/* What goes back may become held, which takes its guard back. */
static int
settle(struct ledger *l, struct answer *a, struct settling *s)
{
	struct guards g;
	int rc = guards_of_task(l, s->task_id, &g);

	return guards_tell(l, a, &g, rc == 0 ? settle_steps(l, a, s) : rc);
}

/* What the rows say, now or since the first time. */
static int
settled_read(struct ledger *l, struct answer *a, const char *attempt)
{
	struct msg_ended *ended = &a->reply.ended;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_SETTLEMENT, WITH(v_text(attempt))) != 1)
		return -1;
	row = sql_row(l, STMT_SETTLEMENT);
	a->reply.type = MSG_ENDED;
	ended->stop_reason = answer_text(a, row_text(row, 0));
	ended->unknown = row_int(row, 1);
	ended->withdrawn = row_int(row, 2);
	ended->first_unknown = row_int(row, 3);
	return 0;
}

int
handle_end(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_end *m = &q->m->end;
	const char *fault = end_fault(m);
	struct settling s = {.end = m};
	int rc;

	if (fault != NULL)
		return answer_fail(a, "refused", "END: %s", fault);
	if ((rc = attempt_named(l, a, m->attempt)) != 1)
		return rc;
	s.task_id = row_int(sql_row(l, STMT_ATTEMPT_TASK), 0);
	if (strcmp(row_text(sql_row(l, STMT_ATTEMPT_TASK), 1), "ended") != 0)
		rc = settle(l, a, &s);
	free(s.rows);
	if (rc == -1 || answer_failed(a))
		return rc == -1 ? -1 : 0;
	return settled_read(l, a, m->attempt);
}

/* ---- by a person --------------------------------------------------------- */

static int
settled_tell(
    struct ledger *l, struct answer *a, int64_t task_id, const char *attempt)
{
	if (settled_read(l, a, attempt) == -1)
		return -1;
	a->reply.attempt_settled =
	    (struct msg_attempt_settled){task_id, a->reply.ended.unknown};
	a->reply.type = MSG_ATTEMPT_SETTLED;
	return 0;
}

static int
settle_by_person(struct ledger *l, struct answer *a, const struct msg_settle *m,
    int64_t task_id)
{
	const struct msg_end end = {
	    .attempt = m->attempt, .stop_reason = "lost"};
	struct settling s = {.end = &end, .task_id = task_id};
	int rc;

	if (sql_run(l, STMT_DECISION_SETTLE,
		WITH(v_text(m->nonce), v_text(m->attempt), v_text(m->by),
		    v_text(l->now), v_int(task_id))) == -1)
		return -1;
	rc = settle(l, a, &s);
	free(s.rows);
	if (rc == -1 || answer_failed(a))
		return rc == -1 ? -1 : 0;
	answer_notice(a, MSG_ATTEMPT_OVER, 0, m->attempt);
	return settled_tell(l, a, task_id, m->attempt);
}

int
handle_settle(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_settle *m = &q->m->settle;
	int64_t task_id, decision_id, is_repeat;
	const char *state;
	int rc;

	if (decision_by_nonce(l, a, m->nonce, "settle", 0, &decision_id) ==
		-1 ||
	    sql_number(l, STMT_IS_SETTLED_BY,
		WITH(v_text(m->nonce), v_text(m->attempt)), &is_repeat) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (decision_id != 0 && !is_repeat)
		return answer_fail(
		    a, "refused", "this nonce is of another attempt");
	if ((rc = attempt_named(l, a, m->attempt)) != 1)
		return rc;
	task_id = row_int(sql_row(l, STMT_ATTEMPT_TASK), 0);
	state = row_text(sql_row(l, STMT_ATTEMPT_TASK), 1);
	if (is_repeat)
		return settled_tell(l, a, task_id, m->attempt);
	if (strcmp(state, "ended") == 0)
		return answer_fail(
		    a, "refused", "attempt %s has ended already", m->attempt);
	return settle_by_person(l, a, m, task_id);
}
