#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/lines.h"
#include "ledger/machine.h"
#include "ledger/record.h"
#include "ledger/startable.h"
#include "ledger/task.h"
#include "ledger/token.h"

/*
 * A task's token is good while it is live; its conversation and its directory
 * are its own until it has ended.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		 - l s e */
	{MACHINE_NONE,	" m  "},
	{"live",	" =mm"},
	{"superseded",	"  =m"},
	{"ended",	"   ="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "live", "LAUNCH",
	    "its record may start, no hold stands, and no other task has its "
	    "conversation or its directory",
	    "rows admitted, their records dispatched; the attempt; exposure"},
	{"live", "live", "REKEY; LAUNCH again while launching",
	    "its attempt is live", "another token; the old one is refused"},
	{"live", "live", "TAKE_OVER", "its attempt is running",
	    "the same; no REKEY takes it back"},
	{"live", "superseded", "REDISPATCH",
	    "of an event that completed on it, unknown or failed",
	    "rows retired, records that nobody saw given back; a decision"},
	{"live, superseded", "ended", "END", "its attempt is live",
	    "attempt ended, rows settled, superseded, withdrawals; what waited "
	    "for it is admitted"},
};
/* clang-format on */

const struct machine task_machine = {
    .name = "task",
    .table = "tasks",
    .state = "CASE WHEN ended_at IS NOT NULL THEN 'ended'"
	     " WHEN superseded_at IS NOT NULL THEN 'superseded'"
	     " ELSE 'live' END",
    MACHINE_TABLES(states, edges),
};

bool
attempt_id_ok(const char *id)
{
	return strlen(id) == ATTEMPT_ID_LEN && strncmp(id, "att_", 4) == 0 &&
	    strspn(id + 4, "0123456789abcdef") == ATTEMPT_ID_LEN - 4;
}

/* ---- launch ------------------------------------------------------------ */

/* The record to be launched, and what stands in its way. */
struct launch_record {
	int64_t project_id;
	const char *route;
	const char *conversation_key;
	const char *trigger;
	const char *recording_url;
	const char *state;
	bool is_on_task;
	bool is_dispatchable; /* content, route and conversation are there */
	int64_t before_it;    /* the record that goes first; 0: none */
	bool is_conversation_busy;
	bool is_directory_busy;
};

static int
launch_record_read(struct ledger *l, struct answer *a, int64_t event_id,
    struct launch_record *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_LAUNCH_RECORD, WITH(v_int(event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_LAUNCH_RECORD);
	r->project_id = row_int(row, 0);
	r->route = answer_text(a, row_text(row, 1));
	r->conversation_key = answer_text(a, row_text(row, 2));
	r->trigger = answer_text(a, row_text(row, 3));
	r->recording_url = answer_text(a, row_text(row, 4));
	r->state = answer_text(a, row_text(row, 5));
	r->is_on_task = row_int(row, 6) != 0;
	r->is_dispatchable = row_int(row, 7) != 0;
	r->before_it = row_int(row, 8);
	r->is_conversation_busy = row_int(row, 9) != 0;
	r->is_directory_busy = row_int(row, 10) != 0;
	return 1;
}

/* The conversation's order, and one task for it and for its directory. */
static int
launch_check_turn(
    struct answer *a, int64_t event_id, const struct launch_record *r)
{
	if (r->before_it != 0)
		return answer_fail(a, "busy",
		    "record %" PRId64 " goes before %" PRId64
		    " in its conversation",
		    r->before_it, event_id);
	if (r->is_conversation_busy)
		return answer_fail(a, "busy", "its conversation has a task");
	if (r->is_directory_busy)
		return answer_fail(a, "busy", "its directory has a task");
	return 0;
}

/* Every refusal is here, before anything is written. */
static int
launch_check(struct ledger *l, struct answer *a, const struct msg_launch *m,
    const struct launch_record *r)
{
	const char *fault;
	int64_t is_held;

	if (sql_number(l, STMT_IS_HELD, WITH_NOTHING, &is_held) == -1)
		return -1;
	if (is_held)
		return answer_fail(a, "held", "a hold stands");
	if (r->is_on_task)
		return answer_fail(a, "refused", "it is on a live task");
	if (strcmp(r->state, "admitted") != 0 &&
	    strcmp(r->state, "queued") != 0)
		return answer_fail(a, "refused", "it is %s", r->state);
	if (!r->is_dispatchable)
		return answer_fail(a, "refused", "it is not dispatchable");
	if ((fault = route_fault(l, a, r->project_id, r->route)) != NULL)
		return answer_fail(a, "refused", "%s", fault);
	return launch_check_turn(a, m->event_id, r);
}

/* The task, its rows, the attempt, one exposure: together or not at all. */
static int
launch_write(struct ledger *l, struct answer *a, const struct msg_launch *m,
    const struct launch_record *r, int64_t *task_id)
{
	char deadline[CLOCK_STAMP_SIZE], hash[DIGEST_HEX_SIZE];
	int64_t joined;

	token_mint(a->token);
	token_hash(a->token, hash);
	ledger_stamp_in(l, m->deadline_ms, deadline);
	if (sql_run(l, STMT_TASK_INSERT,
		WITH(v_text(hash), v_text(l->now), v_text(r->conversation_key),
		    v_text(r->route), v_text(m->driver), v_int(m->event_id),
		    v_text(deadline))) == -1)
		return -1;
	*task_id = sqlite3_last_insert_rowid(l->db);
	if (task_add(l, a, *task_id, m->event_id) == -1)
		return -1;
	if (!answer_failed(a) && task_join(l, a, *task_id, &joined) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_run(l, STMT_ATTEMPT_INSERT,
		WITH(v_text(m->attempt), v_int(*task_id), v_text(m->driver),
		    v_text(l->boot_id), v_text(l->run_id),
		    v_text(m->containment), v_text(l->now))) == -1 ||
	    sql_run(l, STMT_EXPOSE_BY_ATTEMPT,
		WITH(v_int(*task_id), v_int(m->event_id), v_text(l->now),
		    v_text(m->attempt))) == -1)
		return -1;
	return 0;
}

static void
launched(struct answer *a, int64_t task_id, const struct launch_record *r)
{
	a->reply.type = MSG_LAUNCHED;
	a->reply.launched.task_id = task_id;
	a->reply.launched.trigger = r->trigger;
	a->reply.launched.recording_url = r->recording_url;
	a->reply.launched.project_id = r->project_id;
}

static int
launch_first(struct ledger *l, struct answer *a, const struct msg_launch *m)
{
	struct launch_record r;
	int64_t task_id = 0;
	int rc;

	if (l->config == NULL || l->config->generation != m->generation)
		return answer_fail(a, "stale_config", "not this generation");
	if ((rc = launch_record_read(l, a, m->event_id, &r)) == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_found", "no such record");
	if (launch_check(l, a, m, &r) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (launch_write(l, a, m, &r, &task_id) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	line_dispatch(a, task_id, m->attempt, m->event_id, "launching", "");
	launched(a, task_id, &r);
	return 0;
}

/* ---- re-key ------------------------------------------------------------ */

/* Mint again for the attempt's task: 1, 0 when it is over, -1. */
static int
task_rekey(struct ledger *l, struct answer *a, const char *attempt)
{
	char hash[DIGEST_HEX_SIZE];

	token_mint(a->token);
	token_hash(a->token, hash);
	return sql_run(l, STMT_TASK_REKEY, WITH(v_text(hash), v_text(attempt)));
}

/* The answer to a LAUNCH got lost: its token with it. */
static int
launch_again(struct ledger *l, struct answer *a, const struct msg_launch *m)
{
	sqlite3_stmt *row = sql_row(l, STMT_ATTEMPT_TASK);
	int64_t task_id = row_int(row, 0);
	struct launch_record r;
	int rc;

	if (strcmp(row_text(row, 1), "launching") != 0)
		return answer_fail(
		    a, "refused", "the attempt is %s", row_text(row, 1));
	if (row_int(row, 2) != m->event_id)
		return answer_fail(
		    a, "refused", "the attempt is of another event");
	if ((rc = launch_record_read(l, a, m->event_id, &r)) != 1)
		return rc;
	if ((rc = task_rekey(l, a, m->attempt)) == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "refused", "its task is superseded");
	launched(a, task_id, &r);
	return 0;
}

int
handle_launch(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_launch *m = &q->m->launch;
	int rc;

	if (!attempt_id_ok(m->attempt))
		return answer_fail(a, "refused", "no attempt id");
	rc = sql_first(l, STMT_ATTEMPT_TASK, WITH(v_text(m->attempt)));
	if (rc == -1)
		return -1;
	return rc == 1 ? launch_again(l, a, m) : launch_first(l, a, m);
}

int
handle_rekey(struct ledger *l, const struct request *q, struct answer *a)
{
	const char *attempt = q->m->rekey.attempt;
	int rc;

	if ((rc = attempt_named(l, a, attempt)) != 1)
		return rc;
	if ((rc = task_rekey(l, a, attempt)) == -1)
		return -1;
	if (rc == 0)
		return answer_fail(
		    a, "refused", "its task is over, or taken over");
	a->reply.type = MSG_REKEYED;
	return 0;
}

/*
 * Only of an attempt that has its worker: before that the dispatcher still
 * needs the token itself, and may have to re-key.
 */
int
handle_take_over(struct ledger *l, const struct request *q, struct answer *a)
{
	const char *attempt = q->m->take_over.attempt;
	char hash[DIGEST_HEX_SIZE];
	int rc;

	rc = sql_first(l, STMT_ATTEMPT_TASK, WITH(v_text(attempt)));
	if (rc == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_found", "no attempt %s", attempt);
	a->reply.type = MSG_TAKEN_OVER;
	a->reply.taken_over.task_id = row_int(sql_row(l, STMT_ATTEMPT_TASK), 0);
	token_mint(a->token);
	token_hash(a->token, hash);
	rc = sql_run(l, STMT_TASK_TAKE_OVER,
	    WITH(v_text(hash), v_text(attempt), v_text(l->now)));
	if (rc == 0)
		return answer_fail(a, "refused",
		    "%s is not running, or its task is superseded", attempt);
	return rc == -1 ? -1 : 0;
}

/* ---- supersession ------------------------------------------------------ */

int
task_supersede(struct ledger *l, int64_t task_id)
{
	int64_t exists, *ids = NULL;
	size_t count = 0, i;
	int rc = -1;

	if (sql_number(l, STMT_TASK_EXISTS, WITH(v_int(task_id)), &exists) ==
	    -1)
		return -1;
	if (!exists)
		return 0;
	/* Its records that no worker has seen, while they are still its own. */
	if (sql_ids(l, STMT_TASK_UNEXPOSED, WITH(v_int(task_id)), &ids,
		&count) == -1 ||
	    sql_run(l, STMT_TASK_SUPERSEDE,
		WITH(v_int(task_id), v_text(l->now))) == -1)
		goto out;
	for (i = 0; i < count; i++) {
		/* A refusal is an answer: something else has it by now. */
		if (record_move(l,
			&(struct move){.event_id = ids[i],
			    .to = RECORD_ADMITTED,
			    .from = RECORD_SET(RECORD_DISPATCHED)}) ==
		    MOVE_ERROR)
			goto out;
	}
	rc = 1;
out:
	free(ids);
	return rc;
}
