#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"
#include "dispatcher/attempt.h"

static void attempt_enter(struct attempt *a, enum attempt_state state);

/* ---- actions: what an event does in a state ---------------------------- */

static void
do_nothing(struct attempt *a)
{
}

static void
decide(struct attempt *a, const char *stop)
{
	if (a->stop[0] == '\0')
		a->stop = stop;
}

/* The launch was refused: nothing of this attempt exists. */
static void
do_drop(struct attempt *a)
{
	struct dispatcher *d = a->d;

	role_in_hand(&d->role, a->event_id, false);
	if (strcmp(a->refused_reason, "not_startable") != 0)
		log_info("event %lld is not launched: %s",
		    (long long)a->event_id, a->refused_text);
	attempt_free(a);
	dispatcher_attempt_gone(d);
	pass_goes_on(d);
}

void
attempt_key(struct attempt *a)
{
	struct msg m = {.type = MSG_SPAWN_MCPD};

	attempt_enter(a, AT_KEYING);
	a->keyings++;
	m.spawn_mcpd.attempt = a->id;
	m.spawn_mcpd.token = a->token;
	a->token = -1;
	attempt_ask(a, dispatcher_supervisor(a->d), &m);
}

/* By the configuration of its launch: of a newer one it is not started. */
static void
do_spawn(struct attempt *a)
{
	struct msg m = {.type = MSG_SPAWN_WORKER};

	attempt_enter(a, AT_SPAWNING);
	m.spawn_worker.attempt = a->id;
	m.spawn_worker.project_id = a->project_id;
	m.spawn_worker.generation = a->generation;
	attempt_ask(a, dispatcher_supervisor(a->d), &m);
}

/* The ledger must know who the worker is before the worker hears a word. */
static void
do_mark(struct attempt *a)
{
	struct msg m = {.type = MSG_RUNNING};

	attempt_enter(a, AT_MARKING);
	m.running.attempt = a->id;
	m.running.pid = a->pid;
	m.running.pgid = a->pgid;
	m.running.started_ticks = a->started_ticks;
	m.running.session_id = a->session_id;
	attempt_ask(a, dispatcher_ledger(a->d), &m);
}

static bool
has_left(const struct attempt *a)
{
	return a->has_exited || a->output_ended;
}

/* A worker that was gone already has its turn end at once. */
static void
do_prompt(struct attempt *a)
{
	attempt_enter(a, AT_TURN);
	attempt_ticker_begin(a);
	session_prompt(a);
	if (has_left(a))
		attempt_event(a, a->has_exited ? EV_EXIT : EV_EOF);
}

/* End the tree and wait for the proof; how it ended is decided by now. */
static void
attempt_end(struct attempt *a, int64_t grace_ms)
{
	struct msg m = {.type = MSG_END_TREE};

	attempt_enter(a, AT_ENDING);
	m.end_tree.attempt = a->id;
	m.end_tree.grace_ms = grace_ms;
	attempt_ask(a, dispatcher_supervisor(a->d), &m);
}

static void
do_end(struct attempt *a)
{
	attempt_end(a, dispatcher_grace(a->d, LIMIT_close_grace));
}

static void
do_end_failed(struct attempt *a)
{
	decide(a, "failed");
	do_end(a);
}

/* Not the agent that was asked for: it gets no grace. */
static void
do_end_unsafe(struct attempt *a)
{
	decide(a, "failed");
	attempt_end(a, 0);
}

static void
do_end_deadline(struct attempt *a)
{
	decide(a, "deadline");
	do_end(a);
}

static void
do_end_shutdown(struct attempt *a)
{
	decide(a, "shutdown");
	do_end(a);
}

static void
do_end_lost(struct attempt *a)
{
	decide(a, "lost");
	do_end(a);
}

/* Whether it may be launched is being decided: end it when that is known. */
static void
do_shutdown_later(struct attempt *a)
{
	decide(a, "shutdown");
}

static void
do_lost_later(struct attempt *a)
{
	decide(a, "lost");
}

static void
do_launched(struct attempt *a)
{
	struct dispatcher *d = a->d;

	role_in_hand(&d->role, a->event_id, false);
	if (a->stop[0] != '\0')
		do_end(a);
	else
		attempt_key(a);
	pass_goes_on(d);
}

/* mcpd died before it could serve: the task gets a new token and another. */
static void
do_key_again(struct attempt *a)
{
	if (a->keyings < ATTEMPT_KEYINGS_MOST)
		attempt_key_later(a);
	else
		do_end_failed(a);
}

/* No process was ever made; what can a second try change? */
static void
do_not_spawned(struct attempt *a)
{
	a->no_retry = strcmp(a->refused_reason, "unusable") == 0;
	a->uncharged = strcmp(a->refused_reason, "stale_config") == 0;
	log_warnx("%s: worker not started: %s", a->id, a->refused_text);
	do_end_failed(a);
}

static void
attempt_cut(struct attempt *a, const char *stop)
{
	decide(a, stop);
	attempt_enter(a, AT_CUTTING);
	session_interrupt(a);
}

static void
do_cut_deadline(struct attempt *a)
{
	log_info("%s: deadline: its turn is interrupted", a->id);
	attempt_cut(a, "deadline");
}

static void
do_cut_shutdown(struct attempt *a)
{
	attempt_cut(a, "shutdown");
}

static void
do_cut_lost(struct attempt *a)
{
	log_info("%s: its task was taken away: its turn is interrupted", a->id);
	attempt_cut(a, "lost");
}

/* dispatch.md 6: a code above 0 is the agent's own failure, all else a loss. */
static const char *
stop_of_exit(const struct attempt *a)
{
	if (a->has_exited && !a->exit_signaled && a->exit_code > 0)
		return "failed";
	return a->session == NULL || a->driver->is_verified(a->session)
	    ? "lost"
	    : "failed";
}

/* Exit code and end of output are both in, or waited for long enough. */
static void
do_left(struct attempt *a)
{
	if (strcmp(a->stop, "finished") == 0 && a->has_exited &&
	    !a->exit_signaled && a->exit_code > 0)
		a->stop = "failed";
	decide(a, stop_of_exit(a));
	do_end(a);
}

static void
do_left_if_all(struct attempt *a)
{
	if (a->has_exited && a->output_ended)
		do_left(a);
}

/*
 * The worker may go, or went by itself: its input is closed, and a last
 * answer may still stand in the pipe.
 */
static void
do_leave(struct attempt *a)
{
	attempt_enter(a, AT_LEAVING);
	session_leave(a);
	do_left_if_all(a);
}

/* A last word counts while nothing is decided; it buys no time. */
static void
do_late_answer(struct attempt *a)
{
	decide(a, a->answer == STOP_END_TURN ? "finished" : "failed");
}

/* The turn is over: how, is decided now. */
static void
do_answer(struct attempt *a)
{
	do_late_answer(a);
	do_leave(a);
}

static void
do_finish(struct attempt *a)
{
	decide(a, "finished");
	do_leave(a);
}

/* A turn that ended well is followed by the next of its conversation. */
static void
do_turn_over(struct attempt *a)
{
	if (a->answer != STOP_END_TURN || !a->driver->takes_follow_ups) {
		do_answer(a);
		return;
	}
	attempt_enter(a, AT_JOINING);
	attempt_join(a);
}

/* Nothing is exposed to a worker that has gone. */
static void
do_joined(struct attempt *a)
{
	if (a->unexposed == 0 || has_left(a)) {
		do_finish(a);
		return;
	}
	attempt_enter(a, AT_EXPOSING);
	attempt_expose(a);
}

/*
 * Not authorized any more is no failure: what waits gets its own task, when
 * its route is back.
 */
static void
do_not_joined(struct attempt *a)
{
	bool is_stale = strcmp(a->refused_reason, "stale_config") == 0;
	bool is_fault =
	    !is_stale && strcmp(a->refused_reason, "unauthorized") != 0;

	if (!is_stale)
		log_warnx("%s: no follow-up: %s", a->id, a->refused_text);
	decide(a, is_fault ? "failed" : "finished");
	do_leave(a);
}

/* What the worker pulled by itself needs no prompt. */
static void
do_exposed(struct attempt *a)
{
	if (a->is_ours) {
		a->follow_up = a->unexposed;
		do_prompt(a);
		return;
	}
	attempt_enter(a, AT_JOINING);
	attempt_join(a);
}

/* What the supervisor found decides what is settled (design 5.1). */
static void
do_settle(struct attempt *a)
{
	struct msg m = {.type = MSG_END};

	attempt_enter(a, AT_SETTLING);
	session_close(a);
	if (a->spawn_failed) {
		/* We stopped it ourselves: its start was not even tried. */
		if (strcmp(a->stop, "shutdown") == 0)
			a->uncharged = true;
		a->stop = "failed";
	}
	m.end.attempt = a->id;
	m.end.stop_reason = a->stop;
	m.end.spawn_failed = a->spawn_failed;
	m.end.no_retry = a->spawn_failed && a->no_retry;
	m.end.uncharged = a->spawn_failed && a->uncharged;
	m.end.refusals = a->refusals - a->refusals_told;
	attempt_ask(a, dispatcher_ledger(a->d), &m);
}

static void
do_settled(struct attempt *a)
{
	struct dispatcher *d = a->d;

	if (a->has_unknown)
		adopt_begin(d, a->id);
	attempt_free(a);
	dispatcher_attempt_over(d);
}

/* What that left unknown was told to the person, not to us. */
static void
do_over(struct attempt *a)
{
	a->has_unknown = true;
	do_settled(a);
}

/* Counts against the places, holds its conversation, settles nothing. */
static void
do_hold(struct attempt *a)
{
	log_warnx("%s is held: %s", a->id, a->refused_text);
	attempt_note_held(a);
	session_close(a);
	attempt_enter(a, AT_HELD);
	dispatcher_attempt_over(a->d);
}

/* How long a state may wait by itself; the others wait for an answer. */
static int64_t
state_bound(const struct attempt *a)
{
	if (a->state == AT_CUTTING)
		return dispatcher_grace(a->d, LIMIT_cancel_grace);
	if (a->state == AT_LEAVING)
		return dispatcher_grace(a->d,
		    a->stop[0] != '\0' && !a->has_exited ? LIMIT_close_grace
							 : LIMIT_exit_wait);
	return 0;
}

/* A stop gives less time than was given before: the timer comes sooner. */
static void
do_hurry(struct attempt *a)
{
	attempt_hurry(a, state_bound(a));
}

/* ---- the table --------------------------------------------------------- */

/*
 * A blank cell does nothing: the event is late, or what it says is known. An
 * EXIT or EOF before the turn is remembered and judged when the turn begins.
 */
static void (*const actions[AT_STATES][EV_COUNT])(struct attempt *) = {
    [AT_LAUNCHING] = {[EV_DONE] = do_launched,
	[EV_REFUSED] = do_drop,
	[EV_SHUTDOWN] = do_shutdown_later,
	[EV_SUPERSEDED] = do_lost_later},
    [AT_KEYING] = {[EV_DONE] = do_spawn,
	[EV_REFUSED] = do_key_again,
	[EV_DEADLINE] = do_end_deadline,
	[EV_SHUTDOWN] = do_end_shutdown,
	[EV_SUPERSEDED] = do_end_lost},
    [AT_SPAWNING] = {[EV_DONE] = do_mark,
	[EV_REFUSED] = do_not_spawned,
	[EV_DEADLINE] = do_end_deadline,
	[EV_SHUTDOWN] = do_end_shutdown,
	[EV_SUPERSEDED] = do_end_lost},
    [AT_MARKING] = {[EV_DONE] = do_prompt,
	[EV_REFUSED] = do_end_failed,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_DEADLINE] = do_end_deadline,
	[EV_SHUTDOWN] = do_end_shutdown,
	[EV_SUPERSEDED] = do_end_lost},
    [AT_TURN] = {[EV_ANSWER] = do_turn_over,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_EXIT] = do_leave,
	[EV_EOF] = do_leave,
	[EV_DEADLINE] = do_cut_deadline,
	[EV_SHUTDOWN] = do_cut_shutdown,
	[EV_SUPERSEDED] = do_cut_lost},
    [AT_JOINING] = {[EV_DONE] = do_joined,
	[EV_REFUSED] = do_not_joined,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_EXIT] = do_finish,
	[EV_EOF] = do_finish,
	[EV_DEADLINE] = do_end_deadline,
	[EV_SHUTDOWN] = do_end_shutdown,
	[EV_SUPERSEDED] = do_end_lost},
    [AT_EXPOSING] = {[EV_DONE] = do_exposed,
	[EV_REFUSED] = do_not_joined,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_DEADLINE] = do_end_deadline,
	[EV_SHUTDOWN] = do_end_shutdown,
	[EV_SUPERSEDED] = do_end_lost},
    [AT_CUTTING] = {[EV_ANSWER] = do_answer,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_EXIT] = do_leave,
	[EV_EOF] = do_leave,
	[EV_TIMER] = do_end,
	[EV_SHUTDOWN] = do_hurry},
    [AT_LEAVING] = {[EV_ANSWER] = do_late_answer,
	[EV_UNSAFE] = do_end_unsafe,
	[EV_EXIT] = do_left_if_all,
	[EV_EOF] = do_left_if_all,
	[EV_TIMER] = do_left,
	[EV_SHUTDOWN] = do_hurry},
    [AT_ENDING] =
	{[EV_DONE] = do_settle, [EV_REFUSED] = do_hold, [EV_SHUTDOWN] = do_end},
    [AT_SETTLING] = {[EV_DONE] = do_settled, [EV_REFUSED] = do_hold},
    [AT_HELD] = {[EV_DONE] = do_nothing, [EV_OVER] = do_over},
};
static_assert(sizeof(actions) / sizeof(actions[0]) == AT_STATES,
    "every state has its row");

void
attempt_event(struct attempt *a, enum attempt_event event)
{
	if (actions[a->state][event] != NULL)
		actions[a->state][event](a);
}

static void
attempt_enter(struct attempt *a, enum attempt_state state)
{
	/* What an earlier state asked decides nothing any more. */
	if (a->asked != NULL)
		peer_forget(a->asked, a->request);
	a->asked = NULL;
	a->state = state;
	attempt_wait(a, state_bound(a));
}

/* ---- its first states ---------------------------------------------------- */

/* att_ and 24 hex digits of 12 random bytes. */
static void
attempt_id_make(char id[static ATTEMPT_ID_LEN + 1])
{
	(void)snprintf(id, ATTEMPT_ID_LEN + 1, "att_");
	random_hex(id + 4, 12);
}

void
attempt_start(struct dispatcher *d, int64_t event_id)
{
	struct msg m = {.type = MSG_LAUNCH};
	char id[ATTEMPT_ID_LEN + 1], containment[4097] = "";
	struct attempt *a;

	attempt_id_make(id);
	a = attempt_new(d, id);
	a->event_id = event_id;
	a->generation = d->role.config->generation;
	a->driver = driver_by_name(d->role.config->driver);
	attempt_enter(a, AT_LAUNCHING);
	if (d->containment[0] != '\0')
		(void)snprintf(containment, sizeof(containment), "%s%s",
		    d->containment, id);
	m.launch.attempt = id;
	m.launch.event_id = event_id;
	m.launch.generation = a->generation;
	m.launch.driver = d->role.config->driver;
	m.launch.containment = containment;
	m.launch.deadline_ms = d->role.config->deadline_ms;
	role_in_hand(&d->role, event_id, true);
	attempt_ask(a, dispatcher_ledger(d), &m);
}

void
attempt_recover(struct dispatcher *d, const struct msg_live *live)
{
	struct attempt *a = attempt_new(d, live->attempt);

	a->task_id = live->task_id;
	a->project_id = live->project_id;
	attempt_end(a, dispatcher_grace(d, LIMIT_recover_grace));
}

void
attempt_worker_exited(struct attempt *a, const struct msg_worker_exited *said)
{
	a->has_exited = true;
	a->exit_signaled = said->signaled;
	a->exit_code = (int)said->code;
	attempt_event(a, EV_EXIT);
}
