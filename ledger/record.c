#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ledger/record.h"

/*
 * A record's way, from what the feed served to its end. It becomes held by a
 * trigger, wherever it would wait while a hold has tagged it.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		 - s a q b d c x h */
	{MACHINE_NONE,	" m     p "},
	{"seen",	" =mmm  mt"},
	{"admitted",	"  =nmm mp"},
	{"queued",	"   =mm mp"},
	{"blocked",	"  mm=n mt"},
	{"dispatched",	"  m m=m t"},
	{"completed",	"  p   =p "},
	{"discarded",	"       = "},
	{"held",	"  ppp  p="},
};
static_assert(sizeof(states) / sizeof(states[0]) == 1 + RECORD_STATES,
    "every state has its row, behind that of none");

static const struct edge edges[] = {
	{MACHINE_NONE, "seen", "RECORD", "its id is unknown",
	    "the generation; its lost ids are recovered, also when it is known"},
	{MACHINE_NONE, "discarded", "IMPORT, done", "its id is unknown",
	    "content_dropped, lane import; a decision"},
	{"seen, blocked", "admitted", "VERDICT",
	    "of this revision; its conversation is not live",
	    "the verdict's columns and snapshot; guard_ack if acknowledge"},
	{"seen, blocked", "queued", "VERDICT",
	    "the same, of a live conversation", "the same"},
	{"seen, blocked", "held", "VERDICT",
	    "the same, of a tagged and unauthorized record",
	    "the verdict's columns and snapshot, no guard_ack"},
	{"seen", "blocked", "VERDICT", "of this revision, with a reason",
	    "blocked_at; holding_reply if no_route, acknowledge and a place"},
	{"blocked", "blocked", "VERDICT", "the same",
	    "retry_at and next_retry_at; blocked_at stays"},
	{"seen, admitted, queued, blocked", "blocked", "COUNT_DEATH",
	    "in hand at two deaths: quarantined",
	    "the deaths' count; the snapshot goes"},
	{"seen, blocked", "discarded", "VERDICT",
	    "of this revision, with a reason", ""},
	{"admitted, queued", "dispatched", "LAUNCH",
	    "its row on the live task is there",
	    "task, rows, attempt, exposure"},
	{"admitted, queued", "dispatched", "JOIN",
	    "the same; in the task's conversation, on its route", "its row"},
	{"dispatched", "admitted", "END, REDISPATCH of another on its task",
	    "nobody saw it", "the task superseded, its rows retired"},
	{"dispatched", "admitted", "END, spawn_failed",
	    "exposed to a worker that never was, for the first time",
	    "the same; withdrawn_at, before"},
	{"dispatched", "held", "as to admitted",
	    "tagged and unauthorized", "the same"},
	{"dispatched", "blocked", "END, spawn_failed",
	    "exposed to a worker that never was, again or for good",
	    "the same; reason spawn_failed; the snapshot goes"},
	{"dispatched", "completed", "COMPLETE_DISPATCH", "",
	    "the row's delivery and outcome, before"},
	{"dispatched", "completed", "END", "exposed and not reported",
	    "the row's delivery and outcome unknown, after"},
	{"admitted", "queued", "nobody", "", ""},
	{"blocked", "dispatched", "nobody",
	    "it has no snapshot, so it joins no task", ""},
	{"admitted, queued", "held", "HOLD, IMPORT",
	    "of an older generation, not authorized",
	    "review; a pending guard_ack is canceled"},
	{"held", "admitted", "REDISPATCH",
	    "without a reason; its content, route and conversation are there",
	    "authorized_at and _by; a decision"},
	{"held", "queued", "REDISPATCH", "the same, of a live conversation",
	    "the same"},
	{"held", "blocked", "REDISPATCH",
	    "with a reason, incomplete, or its route is gone",
	    "the same; due at once"},
	{"blocked, held, completed", "discarded", "DISCARD",
	    "by_operator; what completed: unknown",
	    "a decision, before; its pending messages are canceled"},
	{"seen, admitted, queued, blocked, held, completed", "discarded",
	    "IMPORT, done",
	    "imported_done; what completed: unknown or failed; on no live task",
	    "the same"},
	{"completed", "admitted", "REDISPATCH, or END for one that waits",
	    "unknown or failed, its content there, its task ended; at "
	    "REDISPATCH, its route there",
	    "a decision, before; redispatch_decision cleared"},
};
/* clang-format on */

const struct machine record_machine = {
    .name = "record",
    .table = "events",
    .state = "state",
    MACHINE_TABLES(states, edges),
};

const char *
record_state_name(enum record_state state)
{
	return state < RECORD_STATES ? states[1 + state].name : "";
}

enum record_state
record_state_by_name(const char *name)
{
	size_t place = machine_state(&record_machine, name);

	return place == 0 ? RECORD_STATES : (enum record_state)(place - 1);
}

bool
record_edge(enum record_state from, enum record_state to, enum mover by)
{
	return machine_edge(&record_machine, 1 + from, 1 + to, by);
}

/* Is this a form that the state allows? */
static bool
move_is_valid(const struct move *m)
{
	bool has_reason = m->reason != NULL && *m->reason != '\0';

	if (m->to >= RECORD_STATES)
		return false;
	if (m->to != RECORD_BLOCKED &&
	    (m->retry_at != NULL || m->next_retry_at != NULL))
		return false;
	if (m->to == RECORD_BLOCKED || m->to == RECORD_DISCARDED)
		return has_reason;
	return !has_reason || m->to == RECORD_HELD;
}

/* " seen blocked ": the states that the write accepts, for its WHERE. */
static void
move_sources(const struct move *m, char *out, size_t size)
{
	unsigned int from = m->from == 0 ? RECORD_ANY : m->from;
	size_t used = 1;
	int i;

	(void)snprintf(out, size, " ");
	for (i = 0; i < RECORD_STATES; i++) {
		if ((from & RECORD_SET(i)) == 0 ||
		    !record_edge((enum record_state)i, m->to, m->by))
			continue;
		used += (size_t)snprintf(
		    out + used, size - used, "%s ", record_state_name(i));
	}
}

/* Nothing was written; a second look says why. */
static enum move_result
move_diagnose(struct ledger *l, const struct move *m)
{
	enum record_state state;
	bool is_handed, is_on_task, has_edge;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_RECORD_WHERE, WITH(v_int(m->event_id)));
	if (rc != 1)
		return rc == -1 ? MOVE_ERROR : MOVE_NO_RECORD;
	row = sql_row(l, STMT_RECORD_WHERE);
	state = record_state_by_name(row_text(row, 0));
	is_handed = row_int(row, 1) != 0;
	is_on_task = row_int(row, 2) != 0;
	has_edge = state < RECORD_STATES && record_edge(state, m->to, m->by);
	if (has_edge && is_handed && m->to != RECORD_DISPATCHED &&
	    m->to != RECORD_COMPLETED)
		return MOVE_HELD_BY_WORKER;
	if (has_edge && m->to == RECORD_DISPATCHED && !is_on_task)
		return MOVE_NOT_ON_LIVE_TASK;
	if (has_edge && state == RECORD_DISPATCHED && is_on_task &&
	    m->to != RECORD_DISPATCHED && m->to != RECORD_COMPLETED)
		return MOVE_ON_LIVE_TASK;
	return MOVE_NO_TRANSITION;
}

static struct value
v_stamp(const char *stamp)
{
	return v_text_or_null(stamp == NULL ? "" : stamp);
}

#define MOVE_VALUES(l, m, sources)                                            \
	v_int((m)->event_id), v_text(record_state_name((m)->to)),             \
	    v_text((m)->reason == NULL ? "" : (m)->reason), v_text((l)->now), \
	    v_stamp((m)->retry_at), v_stamp((m)->next_retry_at),              \
	    v_text(sources), v_opt((m)->revision)

static enum move_result
move_outcome(struct ledger *l, const struct move *m, int changes)
{
	if (changes == -1)
		return MOVE_ERROR;
	return changes == 1 ? MOVED : move_diagnose(l, m);
}

enum move_result
record_move(struct ledger *l, const struct move *m)
{
	char sources[96];

	if (!move_is_valid(m))
		return MOVE_INVALID;
	move_sources(m, sources, sizeof(sources));
	return move_outcome(l, m,
	    sql_run(l, STMT_RECORD_MOVE, WITH(MOVE_VALUES(l, m, sources))));
}

enum move_result
record_move_verdict(
    struct ledger *l, const struct move *m, const struct msg_verdict *v)
{
	char sources[96];

	if (!move_is_valid(m))
		return MOVE_INVALID;
	move_sources(m, sources, sizeof(sources));
	return move_outcome(l, m,
	    sql_run(l, STMT_RECORD_MOVE_VERDICT,
		WITH(MOVE_VALUES(l, m, sources), v_text(v->trigger),
		    v_int(v->acknowledge), v_text(v->conversation_key),
		    v_text(v->reply_kind), v_int(v->reply_recording_id),
		    v_int(v->routed), v_text(v->route), v_text(v->class),
		    v_text(v->recording_url), v_int(v->requester_id),
		    v_blob(v->snapshot))));
}

const char *
move_result_text(enum move_result result)
{
	static const char *const texts[] = {
	    [MOVED] = "moved",
	    [MOVE_NO_RECORD] = "no such record",
	    [MOVE_HELD_BY_WORKER] = "held by a worker",
	    [MOVE_NOT_ON_LIVE_TASK] = "not on a live task",
	    [MOVE_ON_LIVE_TASK] = "on a live task",
	    [MOVE_NO_TRANSITION] = "no such transition",
	    [MOVE_INVALID] = "reason or deadline do not fit the state",
	    [MOVE_ERROR] = "the ledger could not write it",
	};

	return texts[result];
}

int
record_state_of(struct ledger *l, int64_t event_id, enum record_state *state)
{
	int rc = sql_first(l, STMT_RECORD_STATE, WITH(v_int(event_id)));

	if (rc == -1)
		return -1;
	*state = rc == 0
	    ? RECORD_STATES
	    : record_state_by_name(row_text(sql_row(l, STMT_RECORD_STATE), 0));
	return 0;
}
