/*
 * Follow-ups (ledger.md 3.2.4): what waits in a conversation joins its live
 * task, and is exposed before the worker is prompted about it. A worker may
 * pull what has joined by itself; then no attempt has exposed it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/record.h"
#include "ledger/task.h"

/* The row first: dispatched is what a live task carries. */
int
task_add(struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id)
{
	const struct move move = {.event_id = event_id,
	    .to = RECORD_DISPATCHED,
	    .from = RECORD_SET(RECORD_ADMITTED) | RECORD_SET(RECORD_QUEUED)};
	enum move_result moved;

	if (sql_run(l, STMT_TASK_EVENT_INSERT,
		WITH(v_int(task_id), v_int(event_id))) == -1 ||
	    (moved = record_move(l, &move)) == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return answer_fail(a, "refused", "event %" PRId64 ": %s",
		    event_id, move_result_text(moved));
	return 0;
}

int
task_join(struct ledger *l, struct answer *a, int64_t task_id, int64_t *count)
{
	int64_t barrier, *ids;
	size_t n, i;
	int rc = 0;

	*count = 0;
	if (sql_number(l, STMT_JOIN_BARRIER, WITH(v_int(task_id)), &barrier) ==
	    -1)
		return -1;
	if (sql_ids(l, STMT_JOINABLE, WITH(v_int(task_id), v_int(barrier)),
		&ids, &n) == -1)
		rc = -1;
	for (i = 0; i < n && rc == 0 && !answer_failed(a); i++)
		rc = task_add(l, a, task_id, ids[i]);
	free(ids);
	*count = (int64_t)n;
	return rc;
}

/* A worker is prompted of nothing more for a route that may start nothing. */
static int
task_check_route(struct ledger *l, struct answer *a, int64_t task_id)
{
	int64_t has_route;

	if (sql_number(
		l, STMT_TASK_HAS_ROUTE, WITH(v_int(task_id)), &has_route) == -1)
		return -1;
	if (!has_route)
		return answer_fail(a, "unauthorized",
		    l->config->readable
			? "its route is not what its project has now"
			: "connect.json does not load, so its route is not "
			  "known");
	return 0;
}

int
handle_join(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_join *m = &q->m->join;
	int64_t task_id, joined, unexposed;
	int rc;

	if (l->config == NULL || l->config->generation != m->generation)
		return answer_fail(a, "stale_config", "not this generation");
	if ((rc = attempt_named(l, a, m->attempt)) != 1)
		return rc;
	task_id = row_int(sql_row(l, STMT_ATTEMPT_TASK), 0);
	if (task_check_route(l, a, task_id) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (task_join(l, a, task_id, &joined) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_number(
		l, STMT_JOIN_UNEXPOSED, WITH(v_int(task_id)), &unexposed) == -1)
		return -1;
	a->reply.type = MSG_JOINED;
	a->reply.joined.joined = joined;
	a->reply.joined.unexposed = unexposed;
	return 0;
}

/* ---- exposure ---------------------------------------------------------- */

/*
 * EXPOSED as the row has it, and whether it is dispatched as what a task
 * carries is; 1, 0 when the event is not on the live task, -1.
 */
static int
exposed_read(struct ledger *l, struct answer *a, int64_t task_id,
    const struct msg_expose *m, bool *is_dispatched)
{
	struct msg_exposed *is = &a->reply.exposed;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(
	    l, STMT_EXPOSE_ROW, WITH(v_int(task_id), v_int(m->event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_EXPOSE_ROW);
	a->reply.type = MSG_EXPOSED;
	is->delivery = answer_text(a, row_text(row, 0));
	is->by_you = strcmp(row_text(row, 1), m->attempt) == 0;
	is->pulled = row_int(row, 2) != 0;
	*is_dispatched = row_int(row, 3) != 0;
	return 1;
}

/* What nobody was told of; its record's state and revision stay. */
static int
expose_write(struct ledger *l, struct answer *a, int64_t task_id,
    const struct msg_expose *m)
{
	int64_t is_held;
	bool unused;

	if (task_check_route(l, a, task_id) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_number(l, STMT_IS_HELD, WITH_NOTHING, &is_held) == -1)
		return -1;
	if (is_held)
		return answer_fail(a, "held", "a hold stands");
	if (sql_run(l, STMT_EXPOSE_BY_ATTEMPT,
		WITH(v_int(task_id), v_int(m->event_id), v_text(l->now),
		    v_text(m->attempt))) == -1)
		return -1;
	return exposed_read(l, a, task_id, m, &unused) == 1 ? 0 : -1;
}

int
handle_expose(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_expose *m = &q->m->expose;
	bool is_dispatched;
	int64_t task_id;
	int rc;

	if ((rc = attempt_named(l, a, m->attempt)) != 1)
		return rc;
	task_id = row_int(sql_row(l, STMT_ATTEMPT_TASK), 0);
	if ((rc = exposed_read(l, a, task_id, m, &is_dispatched)) == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "refused",
		    "event %" PRId64 " is not on the attempt's live task",
		    m->event_id);
	if (strcmp(a->reply.exposed.delivery, "admitted") != 0)
		return 0;
	if (!is_dispatched)
		return answer_fail(a, "refused",
		    "event %" PRId64 " is not dispatched", m->event_id);
	return expose_write(l, a, task_id, m);
}
