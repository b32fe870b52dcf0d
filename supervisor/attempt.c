#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "supervisor/attempt.h"
#include "supervisor/control.h"

static void act_respawn_mcpd(struct attempt *a);
static void act_prepared(struct attempt *a);
static void act_mcpd_ready(struct attempt *a);
static void act_mcpd_gone(struct attempt *a);
static void act_spawn_worker(struct attempt *a);
static void act_runs(struct attempt *a);
static void act_not_started(struct attempt *a);
static void act_ended_early(struct attempt *a);
static void act_leader_ended(struct attempt *a);
static void act_tell_end(struct attempt *a);
static void act_end_nothing(struct attempt *a);
static void act_end_tree(struct attempt *a);
static void act_end_again(struct attempt *a);
static void act_tree_gone(struct attempt *a);
static void act_tree_doubted(struct attempt *a);
static void act_settled(struct attempt *a);
static void act_ask_again(struct attempt *a);
static void act_finish(struct attempt *a);
static void act_orphaned(struct attempt *a);
static void act_orphaned_unstarted(struct attempt *a);
static void act_stopped(struct attempt *a);
static void act_stopped_unstarted(struct attempt *a);

/*
 * An attempt's life. Blanks are decisions: a worker is started once and only
 * when its mcpd has been ready; nothing is started of what is ending; an mcpd
 * that goes while an attempt ends is not missed; a held tree stays held until
 * the dispatcher asks again, a person takes it upon himself, or the run ends.
 */
static void (*const actions[ATTEMPT_STATE_COUNT][ATTEMPT_EVENT_COUNT])(
    struct attempt *) = {
    [ATTEMPT_PREPARING] =
	{
	    [ATTEMPT_SPAWN_MCPD] = act_respawn_mcpd,
	    [ATTEMPT_END_TREE] = act_end_nothing,
	    [ATTEMPT_MCPD_READY] = act_prepared,
	    [ATTEMPT_MCPD_GONE] = act_mcpd_gone,
	    [ATTEMPT_ORPHANED] = act_orphaned_unstarted,
	    [ATTEMPT_STOPPED] = act_stopped_unstarted,
	},
    [ATTEMPT_PREPARED] =
	{
	    [ATTEMPT_SPAWN_MCPD] = act_respawn_mcpd,
	    [ATTEMPT_SPAWN_WORKER] = act_spawn_worker,
	    [ATTEMPT_END_TREE] = act_end_nothing,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_MCPD_GONE] = act_mcpd_gone,
	    [ATTEMPT_ORPHANED] = act_orphaned_unstarted,
	    [ATTEMPT_STOPPED] = act_stopped_unstarted,
	},
    [ATTEMPT_STARTING] =
	{
	    [ATTEMPT_SPAWN_MCPD] = act_respawn_mcpd,
	    [ATTEMPT_END_TREE] = act_end_tree,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_MCPD_GONE] = act_mcpd_gone,
	    [ATTEMPT_RUNS] = act_runs,
	    [ATTEMPT_NOT_STARTED] = act_not_started,
	    [ATTEMPT_LEADER_ENDED] = act_ended_early,
	    [ATTEMPT_ORPHANED] = act_orphaned,
	    [ATTEMPT_STOPPED] = act_stopped,
	},
    [ATTEMPT_UNSTARTED] =
	{
	    [ATTEMPT_END_TREE] = act_end_nothing,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_ORPHANED] = act_orphaned,
	    [ATTEMPT_STOPPED] = act_stopped_unstarted,
	},
    [ATTEMPT_RUNNING] =
	{
	    [ATTEMPT_SPAWN_MCPD] = act_respawn_mcpd,
	    [ATTEMPT_END_TREE] = act_end_tree,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_MCPD_GONE] = act_mcpd_gone,
	    [ATTEMPT_LEADER_ENDED] = act_leader_ended,
	    [ATTEMPT_ORPHANED] = act_orphaned,
	    [ATTEMPT_STOPPED] = act_stopped,
	},
    [ATTEMPT_LEADERLESS] =
	{
	    [ATTEMPT_SPAWN_MCPD] = act_respawn_mcpd,
	    [ATTEMPT_END_TREE] = act_end_tree,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_MCPD_GONE] = act_mcpd_gone,
	    [ATTEMPT_ORPHANED] = act_orphaned,
	    [ATTEMPT_STOPPED] = act_stopped,
	},
    [ATTEMPT_ENDING] =
	{
	    [ATTEMPT_END_TREE] = act_end_again,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_LEADER_ENDED] = act_tell_end,
	    [ATTEMPT_TREE_GONE] = act_tree_gone,
	    [ATTEMPT_TREE_DOUBTED] = act_tree_doubted,
	    [ATTEMPT_SETTLED] = act_settled,
	    [ATTEMPT_ORPHANED] = act_orphaned,
	    [ATTEMPT_STOPPED] = act_stopped,
	},
    [ATTEMPT_HELD] =
	{
	    [ATTEMPT_END_TREE] = act_end_tree,
	    [ATTEMPT_MCPD_READY] = act_mcpd_ready,
	    [ATTEMPT_LEADER_ENDED] = act_tell_end,
	    [ATTEMPT_SETTLED] = act_tree_gone,
	    [ATTEMPT_STOPPED] = act_stopped,
	},
    [ATTEMPT_DRAINING] =
	{
	    [ATTEMPT_END_TREE] = act_ask_again,
	    [ATTEMPT_MCPD_GONE] = act_finish,
	},
};

static const char *const state_names[] = {
    [ATTEMPT_PREPARING] = "is being prepared",
    [ATTEMPT_PREPARED] = "is prepared",
    [ATTEMPT_STARTING] = "is being started",
    [ATTEMPT_UNSTARTED] = "had its start",
    [ATTEMPT_RUNNING] = "is running",
    [ATTEMPT_LEADERLESS] = "had its worker",
    [ATTEMPT_ENDING] = "is ending",
    [ATTEMPT_HELD] = "is held",
    [ATTEMPT_DRAINING] = "has ended",
};
static_assert(
    sizeof(state_names) / sizeof(state_names[0]) == ATTEMPT_STATE_COUNT,
    "words for every state");

static bool
is_request(enum attempt_event event)
{
	return event <= ATTEMPT_END_TREE;
}

void
attempt_happens(struct attempt *a, enum attempt_event event)
{
	void (*act)(struct attempt *) = actions[a->state][event];

	if (act != NULL)
		act(a); /* may free it */
	else if (is_request(event))
		peer_fail(&a->to, "refused", 0, "the attempt %s",
		    state_names[a->state]);
}

/* ---- what the actions share --------------------------------------------- */

int64_t
attempt_limit(const struct attempt *a, enum limit limit)
{
	return a->sv->settings->config->limits[limit];
}

void
asked_fail(struct asked *asked, const char *reason, const char *text)
{
	if (asked->is_open)
		peer_fail(&asked->to, reason, 0, "%s", text);
	asked->is_open = false;
}

void
asked_keep(struct asked *asked, const struct reply_to *to)
{
	asked_fail(asked, "cancelled", "asked again since");
	asked->to = *to;
	asked->is_open = true;
}

static void
attempt_answer_fate(struct attempt *a, const char *text)
{
	struct msg m = {.type = MSG_TREE_IS};

	control_attempt_over(a->sv->control, a->id, a->fate);
	if (!a->end_asked.is_open)
		return;
	a->end_asked.is_open = false;
	m.tree_is.fate = fate_name(a->fate);
	m.tree_is.text = text;
	peer_reply(&a->end_asked.to, &m);
}

/* ---- its beginning ------------------------------------------------------ */

static void
act_respawn_mcpd(struct attempt *a)
{
	mcpd_begin(a);
}

static void
act_prepared(struct attempt *a)
{
	a->state = ATTEMPT_PREPARED;
	mcpd_is_ready(a);
}

static void
act_mcpd_ready(struct attempt *a)
{
	mcpd_is_ready(a);
}

static void
act_mcpd_gone(struct attempt *a)
{
	mcpd_is_gone(a);
}

/* ---- the worker --------------------------------------------------------- */

static void
act_spawn_worker(struct attempt *a)
{
	worker_begin(a);
}

static void
act_runs(struct attempt *a)
{
	a->state = ATTEMPT_RUNNING;
	worker_runs(a);
}

/* Forked, but its program never ran: as good as never forked. */
static void
act_not_started(struct attempt *a)
{
	a->state = ATTEMPT_UNSTARTED;
	worker_reap(a);
	worker_close(a);
	asked_fail(&a->worker_asked, WORKER_NOT_STARTED, log_safe(a->failure));
}

static void
act_ended_early(struct attempt *a)
{
	enum attempt_event verdict = worker_start_verdict(a);

	attempt_happens(a, verdict);
	if (verdict == ATTEMPT_RUNS)
		attempt_happens(a, ATTEMPT_LEADER_ENDED);
}

static void
act_leader_ended(struct attempt *a)
{
	a->state = ATTEMPT_LEADERLESS;
	worker_tell_end(a);
	if (tree_is_empty(a->tree))
		worker_reap(a);
}

static void
act_tell_end(struct attempt *a)
{
	worker_tell_end(a);
	tree_leader_ended(a->tree);
}

/* ---- its end ------------------------------------------------------------ */

static void
on_tree_done(
    struct tree *tree, enum tree_fate fate, const char *text, void *arg)
{
	struct attempt *a = arg;

	a->was_signaled = tree_was_signaled(tree);
	(void)snprintf(a->failure, sizeof(a->failure), "%s", text);
	attempt_happens(
	    a, fate == TREE_GONE ? ATTEMPT_TREE_GONE : ATTEMPT_TREE_DOUBTED);
}

static void
attempt_end_tree(struct attempt *a, int64_t grace_ms)
{
	a->state = ATTEMPT_ENDING;
	tree_end(a->tree, grace_ms, attempt_limit(a, LIMIT_cancel_grace),
	    on_tree_done, a);
}

/* Nothing of it runs but, perhaps, its mcpd; a report in its hands counts. */
static void
attempt_drain(struct attempt *a, enum fate fate)
{
	a->state = ATTEMPT_DRAINING;
	a->fate = fate;
	mcpd_forget_next(a);
	listener_free(a->listener);
	a->listener = NULL;
	if (!mcpd_drain(a))
		attempt_happens(a, ATTEMPT_MCPD_GONE);
}

static void
act_end_nothing(struct attempt *a)
{
	asked_keep(&a->end_asked, &a->to);
	attempt_drain(a, FATE_NEVER_FORKED);
}

static void
act_end_tree(struct attempt *a)
{
	asked_fail(&a->worker_asked, "cancelled", "it is being ended");
	asked_keep(&a->end_asked, &a->to);
	if (a->tree != NULL)
		attempt_end_tree(a, a->m->end_tree.grace_ms);
	else
		attempt_drain(a, FATE_GONE);
}

/* Another dispatcher, or more in a hurry. */
static void
act_end_again(struct attempt *a)
{
	asked_keep(&a->end_asked, &a->to);
	attempt_end_tree(a, a->m->end_tree.grace_ms);
}

static void
act_tree_gone(struct attempt *a)
{
	worker_reap(a);
	worker_close(a);
	attempt_drain(a, FATE_GONE);
}

/* By a person, when it was held; asked again meanwhile, it may end yet. */
static void
act_settled(struct attempt *a)
{
	a->is_settled = true;
}

static void
act_tree_doubted(struct attempt *a)
{
	if (a->is_settled) {
		act_tree_gone(a);
		return;
	}
	a->state = ATTEMPT_HELD;
	a->fate = FATE_HELD;
	log_warnx("%s: held: %s", a->id, a->failure);
	attempt_answer_fate(a, a->failure);
}

static void
act_ask_again(struct attempt *a)
{
	asked_keep(&a->end_asked, &a->to);
	(void)mcpd_drain(a);
}

static void
act_finish(struct attempt *a)
{
	past_put(&attempts.past, a->id, a->fate);
	attempt_answer_fate(a, "");
	LIST_REMOVE(a, entry);
	session_remove(a->session);
	free(a->cgroup);
	free(a);
}

/* Its answers have nowhere to go; a successor will ask to end the attempt. */
static void
act_orphaned(struct attempt *a)
{
	mcpd_forget_next(a);
	a->mcpd_asked.is_open = a->worker_asked.is_open = false;
	a->end_asked.is_open = false;
}

static void
act_orphaned_unstarted(struct attempt *a)
{
	act_orphaned(a);
	a->state = ATTEMPT_UNSTARTED;
}

/* Nobody settles it in this run: no process of it may outlive that. */
static void
act_stopped(struct attempt *a)
{
	if (a->tree != NULL)
		attempt_end_tree(a, 0);
	else
		attempt_drain(a, FATE_GONE);
}

static void
act_stopped_unstarted(struct attempt *a)
{
	attempt_drain(a, FATE_NEVER_FORKED);
}
