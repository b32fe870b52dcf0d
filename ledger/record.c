#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ledger/record.h"

static const char *const state_names[] = {
    [RECORD_SEEN] = "seen",
    [RECORD_ADMITTED] = "admitted",
    [RECORD_QUEUED] = "queued",
    [RECORD_BLOCKED] = "blocked",
    [RECORD_DISPATCHED] = "dispatched",
    [RECORD_COMPLETED] = "completed",
    [RECORD_DISCARDED] = "discarded",
    [RECORD_HELD] = "held",
};
static_assert(sizeof(state_names) / sizeof(state_names[0]) == RECORD_STATES,
    "every state has a name");

/*
 * The machine. `=` the same again, `m` anybody, `p` a person only, a blank
 * cell is no edge. A record becomes held by a hold's trigger, which is why no
 * machine edge leads there.
 */
/* clang-format off */
static const char edges[RECORD_STATES][RECORD_STATES + 1] = {
	/* to:                   s a q b d c x h */
	[RECORD_SEEN] =         "=mmm  m ",
	[RECORD_ADMITTED] =     " =mmm mp",
	[RECORD_QUEUED] =       "  =mm mp",
	[RECORD_BLOCKED] =      " mm=m m ",
	[RECORD_DISPATCHED] =   " m m=m  ",
	[RECORD_COMPLETED] =    " p   =p ",
	[RECORD_DISCARDED] =    "      = ",
	[RECORD_HELD] =         " ppp  p=",
};
/* clang-format on */

const char *
record_state_name(enum record_state state)
{
	return state < RECORD_STATES ? state_names[state] : "";
}

enum record_state
record_state_by_name(const char *name)
{
	int i;

	for (i = 0; i < RECORD_STATES; i++) {
		if (strcmp(name, state_names[i]) == 0)
			break;
	}
	return (enum record_state)i;
}

bool
record_edge(enum record_state from, enum record_state to, enum record_mover by)
{
	char edge = edges[from][to];

	return edge == '=' || edge == 'm' || (edge == 'p' && by == BY_PERSON);
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
		    out + used, size - used, "%s ", state_names[i]);
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
	v_int((m)->event_id), v_text(state_names[(m)->to]),                   \
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
