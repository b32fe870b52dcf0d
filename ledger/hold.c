#include <stdlib.h>
#include <string.h>

#include "ledger/decision.h"
#include "ledger/handlers.h"
#include "ledger/hold.h"
#include "ledger/lines.h"
#include "ledger/machine.h"

/*
 * While the marker stands, nothing new is launched, handed over or posted
 * (ledger.md 3.6). Its first setter, cause and time stay.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		 - s */
	{MACHINE_NONE,	" p"},
	{"standing",	"p="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "standing", "HOLD", "a person is named",
	    "a generation, a decision; older records tagged and held, waiting "
	    "redispatches revoked"},
	{"standing", "standing", "HOLD", "the same",
	    "the same; only the marker's generation moves"},
	{"standing", MACHINE_NONE, "RELEASE", "a person is named",
	    "a decision; held records stay held"},
};
/* clang-format on */

const struct machine hold_machine = {
    .name = "hold",
    .table = "hold_marker",
    .state = "'standing'",
    MACHINE_TABLES(states, edges),
};

/* The update that tags makes them held, by a trigger: that is verified. */
static int
tags_write(struct ledger *l, struct answer *a)
{
	int64_t is_waiting;

	if (sql_run(l, STMT_RECORDS_TAG, WITH_NOTHING) == -1 ||
	    sql_run(l, STMT_REDISPATCHES_REVOKE, WITH_NOTHING) == -1 ||
	    sql_number(l, STMT_TAGGED_IS_WAITING, WITH_NOTHING, &is_waiting) ==
		-1)
		return -1;
	if (is_waiting)
		return answer_fail(
		    a, "refused", "a tagged record did not become held");
	return 0;
}

int
guards_of_task(struct ledger *l, int64_t task_id, struct guards *g)
{
	return sql_ids(
	    l, STMT_GUARDS_OF_TASK, WITH(v_int(task_id)), &g->ids, &g->count);
}

int
guards_tell(struct ledger *l, struct answer *a, struct guards *g, int rc)
{
	int64_t is_pending;
	size_t i;

	for (i = 0; i < g->count && rc == 0; i++) {
		rc = sql_number(l, STMT_GUARD_IS_PENDING,
		    WITH(v_int(g->ids[i])), &is_pending);
		if (rc == 0 && !is_pending)
			rc = line_outbox(l, a, g->ids[i]);
	}
	free(g->ids);
	return rc;
}

int
records_tag(struct ledger *l, struct answer *a)
{
	struct guards g;
	int rc;

	rc = sql_ids(l, STMT_GUARDS_WAITING, WITH_NOTHING, &g.ids, &g.count);
	return guards_tell(l, a, &g, rc == 0 ? tags_write(l, a) : rc);
}

/* With the marker as it stands at this moment for its note. */
static int
hold_decide(struct ledger *l, const char *nonce, const char *action,
    const char *by, int64_t *decision_id)
{
	int n;

	n = sql_run(l, STMT_HOLD_DECISION,
	    WITH(v_text(nonce), v_text(action), v_text(by), v_text(l->now)));
	*decision_id = n == 1 ? sqlite3_last_insert_rowid(l->db) : 0;
	return n == -1 ? -1 : 0;
}

/* The marker of a new generation, whether one stands or not. */
static int
marker_set(struct ledger *l, const char *by, const char *cause)
{
	int64_t generation;
	int n;

	if (sql_run(l, STMT_GENERATION_INSERT,
		WITH(v_text(cause), v_text(by), v_text(l->now))) == -1)
		return -1;
	generation = sqlite3_last_insert_rowid(l->db);
	n = sql_run(l, STMT_HOLD_MOVE, WITH(v_int(generation)));
	if (n != 0)
		return n;
	return sql_run(l, STMT_HOLD_SET,
	    WITH(v_int(generation), v_text(cause), v_text(by), v_text(l->now)));
}

int
hold_set(struct ledger *l, struct answer *a, const char *nonce, const char *by,
    const char *cause, int64_t *decision_id)
{
	if (marker_set(l, by, cause) == -1 || records_tag(l, a) == -1)
		return -1;
	return answer_failed(a) ? 0
				: hold_decide(l, nonce, cause, by, decision_id);
}

int
hold_release(struct ledger *l, struct answer *a, const char *nonce,
    const char *by, int64_t *decision_id)
{
	if (hold_decide(l, nonce, "release", by, decision_id) == -1)
		return -1;
	if (*decision_id == 0)
		return 0;
	if (sql_run(l, STMT_HOLD_RELEASE, WITH_NOTHING) == -1)
		return -1;
	answer_notice(a, MSG_WORK_WAITS, 0, "");
	answer_notice(a, MSG_POST_WAITS, 0, "");
	return 0;
}

/* HOLD_IS: what stands, whether asked for the first time or again. */
static int
hold_tell(struct ledger *l, struct answer *a, int64_t decision_id)
{
	struct msg_hold_is *is = &a->reply.hold_is;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_HOLD_IS, WITH(v_int(decision_id))) != 1)
		return -1;
	row = sql_row(l, STMT_HOLD_IS);
	a->reply.type = MSG_HOLD_IS;
	is->stands = row_int(row, 0) != 0;
	is->changed = decision_id != 0;
	is->generation = row_int(row, 1);
	is->cause = answer_text(a, row_text(row, 2));
	is->held_by = answer_text(a, row_text(row, 3));
	is->held_at = answer_text(a, row_text(row, 4));
	is->tagged = row_int(row, 5);
	is->held = row_int(row, 6);
	return 0;
}

int
handle_hold(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_hold *m = &q->m->hold;
	int64_t id;

	if (strcmp(m->cause, "hold") != 0 &&
	    strcmp(m->cause, "shadow_promote") != 0)
		return answer_fail(a, "refused", "HOLD: no such cause");
	if (decision_by_nonce(l, a, m->nonce, m->cause, 0, &id) == -1 ||
	    (id == 0 && !answer_failed(a) &&
		hold_set(l, a, m->nonce, m->by, m->cause, &id) == -1))
		return -1;
	return answer_failed(a) ? 0 : hold_tell(l, a, id);
}

int
handle_release(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_release *m = &q->m->release;
	int64_t id;

	if (decision_by_nonce(l, a, m->nonce, "release", 0, &id) == -1 ||
	    (id == 0 && !answer_failed(a) &&
		hold_release(l, a, m->nonce, m->by, &id) == -1))
		return -1;
	return answer_failed(a) ? 0 : hold_tell(l, a, id);
}
