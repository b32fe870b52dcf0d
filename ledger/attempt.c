/*
 * An attempt from its process to its end (ledger.md 3.3). An attempt found
 * `launching` after a crash may have a worker: it is treated as running.
 */
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/lifecycle.h"
#include "ledger/lines.h"
#include "ledger/machine.h"
#include "ledger/task.h"

/* clang-format off */
static const struct machine_state states[] = {
	/*		 - l r e */
	{MACHINE_NONE,	" m  "},
	{"launching",	" =mm"},
	{"running",	"  =m"},
	{"ended",	"   ="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "launching", "LAUNCH",
	    "no hold stands; the task has no other live one",
	    "the task; boot_id, run_id, containment"},
	{"launching", "running", "RUNNING", "",
	    "running_at, the process's identity, session_id"},
	{"launching, running", "ended", "END, or SETTLE as lost",
	    "one of five stop reasons; spawn_failed only with failed",
	    "the task's settlement; SETTLE a decision, before"},
};
/* clang-format on */

const struct machine attempt_machine = {
    .name = "attempt",
    .table = "attempts",
    .state = "state",
    MACHINE_TABLES(states, edges),
};

/* The attempt is running already: as this very process, or as another? */
static int
running_again(struct ledger *l, struct answer *a, const struct msg_running *m)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_ATTEMPT_IDENTITY, WITH(v_text(m->attempt)));
	if (rc == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_found", "no such attempt");
	row = sql_row(l, STMT_ATTEMPT_IDENTITY);
	if (strcmp(row_text(row, 0), "running") == 0 &&
	    row_int(row, 1) == m->pid && row_int(row, 3) == m->started_ticks)
		return answer_done(a, false);
	return answer_fail(a, "refused", "the attempt is %s", row_text(row, 0));
}

int
handle_running(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_running *m = &q->m->running;
	char sources[MACHINE_SOURCES_SIZE];
	int n;

	if (m->pgid != m->pid)
		return answer_fail(
		    a, "refused", "RUNNING: its group is not its own");
	machine_sources(&attempt_machine, "running", BY_MACHINE, sources);
	n = sql_run(l, STMT_ATTEMPT_RUNNING,
	    WITH(v_text(m->attempt), v_text(l->now), v_int(m->pid),
		v_int(m->pgid), v_int(m->started_ticks), v_text(m->session_id),
		v_text(sources)));
	if (n == 0)
		return running_again(l, a, m);
	if (n == -1 ||
	    sql_first(l, STMT_ATTEMPT_TASK, WITH(v_text(m->attempt))) != 1)
		return -1;
	line_dispatch(a, row_int(sql_row(l, STMT_ATTEMPT_TASK), 0), m->attempt,
	    0, "running", "");
	return answer_done(a, true);
}

int
attempt_named(struct ledger *l, struct answer *a, const char *attempt)
{
	int rc = sql_first(l, STMT_ATTEMPT_TASK, WITH(v_text(attempt)));

	return rc == 0 ? answer_fail(a, "not_found", "no such attempt") : rc;
}

/* DONE for an attempt that is there, whatever was changed of it. */
static int
attempt_noted(struct ledger *l, struct answer *a, const char *attempt, int n)
{
	int rc;

	if (n == -1)
		return -1;
	if ((rc = attempt_named(l, a, attempt)) != 1)
		return rc;
	return answer_done(a, n == 1);
}

int
handle_progress(struct ledger *l, const struct request *q, struct answer *a)
{
	const char *attempt = q->m->progress.attempt;

	return attempt_noted(l, a, attempt,
	    sql_run(l, STMT_ATTEMPT_PROGRESS,
		WITH(v_text(attempt), v_text(l->now))));
}

/* Refusals are numbered from 1 and come in order: the number is the count. */
int
handle_refusal(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_refusal *m = &q->m->refusal;

	return attempt_noted(l, a, m->attempt,
	    sql_run(l, STMT_ATTEMPT_REFUSAL,
		WITH(v_text(m->attempt), v_int(m->number))));
}

/* Numbered like refusals. Each tick has its notice, in this transaction. */
int
handle_still_running(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_still_running *m = &q->m->still_running;
	int n;

	n = sql_run(l, STMT_ATTEMPT_STILL_RUNNING,
	    WITH(v_text(m->attempt), v_int(m->number)));
	if (n == 1 &&
	    lifecycle_still_running(l, a, m->attempt, m->number) == -1)
		return -1;
	return attempt_noted(l, a, m->attempt, n);
}

/* Held by the release point: shown, not settled. */
int
handle_tree_held(struct ledger *l, const struct request *q, struct answer *a)
{
	const char *attempt = q->m->tree_held.attempt;
	int rc;

	if ((rc = attempt_named(l, a, attempt)) != 1)
		return rc;
	line_dispatch(a, row_int(sql_row(l, STMT_ATTEMPT_TASK), 0), attempt, 0,
	    "running", "held");
	return answer_done(a, false);
}

int
handle_next_live(struct ledger *l, const struct request *q, struct answer *a)
{
	struct msg_live *live = &a->reply.live;
	sqlite3_stmt *row;
	int rc;

	a->reply.type = MSG_LIVE;
	rc = sql_first(
	    l, STMT_ATTEMPT_NEXT_LIVE, WITH(v_int(q->m->next_live.after_task)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ATTEMPT_NEXT_LIVE);
	live->found = true;
	live->attempt = answer_text(a, row_text(row, 0));
	live->task_id = row_int(row, 1);
	live->state = answer_text(a, row_text(row, 2));
	live->project_id = row_int(row, 3);
	live->superseded = row_int(row, 4) != 0;
	return 0;
}

int
handle_identity(struct ledger *l, const struct request *q, struct answer *a)
{
	struct msg_identity_is *is = &a->reply.identity_is;
	sqlite3_stmt *row;
	int rc;

	a->reply.type = MSG_IDENTITY_IS;
	rc = sql_first(
	    l, STMT_ATTEMPT_IDENTITY, WITH(v_text(q->m->identity.attempt)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ATTEMPT_IDENTITY);
	is->found = true;
	is->state = answer_text(a, row_text(row, 0));
	is->pid = row_int(row, 1);
	is->pgid = row_int(row, 2);
	is->started_ticks = row_int(row, 3);
	is->boot_id = answer_text(a, row_text(row, 4));
	is->run_id = answer_text(a, row_text(row, 5));
	is->containment = answer_text(a, row_text(row, 6));
	return 0;
}
