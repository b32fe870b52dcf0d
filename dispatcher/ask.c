/*
 * What an attempt asks of ledger and supervisor, and what their answers mean.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "dispatcher/attempt.h"

/* No more are counted; the messages have no room for more. */
#define REFUSALS_MOST 1000000

/* Each returns true when the state's question was answered as asked. */
typedef bool (*answer_taker)(struct attempt *a, struct msg *m);

static bool
take_done(struct attempt *a, struct msg *m)
{
	return true;
}

static bool
take_failed(struct attempt *a, struct msg *m)
{
	(void)snprintf(a->refused_reason, sizeof(a->refused_reason), "%s",
	    m->failed.reason);
	(void)snprintf(
	    a->refused_text, sizeof(a->refused_text), "%.256s", m->failed.text);
	return false;
}

static bool
take_launched(struct attempt *a, struct msg *m)
{
	a->task_id = m->launched.task_id;
	a->project_id = m->launched.project_id;
	a->trigger = xstrdup(m->launched.trigger);
	a->url = xstrdup(m->launched.recording_url);
	a->token = m->launched.token;
	m->launched.token = -1;
	attempt_deadline_begin(a);
	return true;
}

static bool
take_spawned(struct attempt *a, struct msg *m)
{
	a->pid = m->worker_spawned.pid;
	a->pgid = m->worker_spawned.pgid;
	a->started_ticks = m->worker_spawned.started_ticks;
	(void)snprintf(a->session_id, sizeof(a->session_id), "%s",
	    m->worker_spawned.session_id);
	session_open(a, &m->worker_spawned);
	return true;
}

/* The supervisor's proof decides what kind of end this is (design 5.1). */
static bool
take_tree(struct attempt *a, struct msg *m)
{
	(void)snprintf(
	    a->refused_text, sizeof(a->refused_text), "%s", m->tree_is.text);
	if (strcmp(m->tree_is.fate, "held") == 0)
		return false;
	a->spawn_failed = strcmp(m->tree_is.fate, "never_forked") == 0;
	if (a->stop[0] == '\0')
		a->stop = "lost";
	return true;
}

static bool
take_ended(struct attempt *a, struct msg *m)
{
	a->has_unknown = m->ended.unknown > 0;
	if (strcmp(m->ended.stop_reason, "finished") == 0 &&
	    m->ended.unknown > 0)
		log_warnx("task %lld, %s: event %lld was not reported",
		    (long long)a->task_id, a->id,
		    (long long)m->ended.first_unknown);
	return true;
}

static bool
take_joined(struct attempt *a, struct msg *m)
{
	a->unexposed = m->joined.unexposed;
	return true;
}

static bool
take_exposed(struct attempt *a, struct msg *m)
{
	a->is_ours = m->exposed.by_you;
	return true;
}

static const answer_taker takers[MSG_COUNT] = {
    [MSG_DONE] = take_done,
    [MSG_FAILED] = take_failed,
    [MSG_LAUNCHED] = take_launched,
    [MSG_WORKER_SPAWNED] = take_spawned,
    [MSG_TREE_IS] = take_tree,
    [MSG_ENDED] = take_ended,
    [MSG_JOINED] = take_joined,
    [MSG_EXPOSED] = take_exposed,
};

static void
on_answer(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = arg;

	a->asked = NULL;
	attempt_event(a, takers[m->type](a, m) ? EV_DONE : EV_REFUSED);
}

void
attempt_ask(struct attempt *a, struct peer *peer, struct msg *m)
{
	a->asked = peer;
	a->request = peer_request(peer, m, on_answer, a);
}

/* ---- re-key ------------------------------------------------------------- */

/* As the state's question: the answer is a token, not yet what was asked. */
static void
on_rekeyed_first(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = arg;

	a->asked = NULL;
	if (m->type != MSG_REKEYED) {
		(void)take_failed(a, m);
		attempt_event(a, EV_REFUSED);
		return;
	}
	a->token = m->rekeyed.token;
	m->rekeyed.token = -1;
	attempt_key(a);
}

static void
attempt_rekey(struct attempt *a)
{
	struct msg m = {.type = MSG_REKEY};

	m.rekey.attempt = a->id;
	a->asked = dispatcher_ledger(a->d);
	a->request = peer_request(a->asked, &m, on_rekeyed_first, a);
}

/* No mcpd will come: bridges that wait for one are told at once. */
static void
attempt_stop_serving(struct attempt *a)
{
	struct msg m = {.type = MSG_STOP_SERVING};

	a->rekeying = false;
	m.stop_serving.attempt = a->id;
	(void)peer_request(dispatcher_supervisor(a->d), &m, NULL, NULL);
}

struct attempt_ref *
attempt_ref_new(const struct attempt *a)
{
	struct attempt_ref *r = xcalloc(1, sizeof(*r));

	r->d = a->d;
	memcpy(r->id, a->id, sizeof(r->id));
	return r;
}

struct attempt *
attempt_ref_take(struct attempt_ref *r)
{
	struct attempt *a = attempt_find(r->d, r->id);

	free(r);
	return a;
}

static void
on_respawned(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_ref_take(arg);

	if (a == NULL)
		return;
	a->rekeying = false;
	if (m->type == MSG_FAILED)
		attempt_mcpd_lost(a);
}

static void
on_rekeyed(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt_ref *r = arg;
	struct attempt *a = attempt_find(r->d, r->id);
	struct msg spawn = {.type = MSG_SPAWN_MCPD};

	if (a == NULL || m->type != MSG_REKEYED || a->state >= AT_ENDING) {
		if (a != NULL && a->state < AT_ENDING)
			attempt_stop_serving(a);
		free(r);
		return;
	}
	spawn.spawn_mcpd.attempt = a->id;
	spawn.spawn_mcpd.token = m->rekeyed.token;
	m->rekeyed.token = -1;
	(void)peer_request(
	    dispatcher_supervisor(r->d), &spawn, on_respawned, r);
}

void
attempt_mcpd_lost(struct attempt *a)
{
	if (a->state < AT_SPAWNING || a->state >= AT_ENDING || a->rekeying)
		return;
	if (a->keyings++ >= ATTEMPT_KEYINGS_MOST) {
		log_warnx("%s: mcpd died %d times: no more are started", a->id,
		    a->keyings);
		attempt_stop_serving(a);
		return;
	}
	a->rekeying = true;
	attempt_key_later(a);
}

/* Beside the state of a live worker. */
static void
rekey_beside(struct attempt *a)
{
	struct msg m = {.type = MSG_REKEY};

	m.rekey.attempt = a->id;
	(void)peer_request(
	    dispatcher_ledger(a->d), &m, on_rekeyed, attempt_ref_new(a));
}

void
attempt_key_now(struct attempt *a)
{
	if (a->state == AT_KEYING)
		attempt_rekey(a);
	else if (a->state < AT_ENDING)
		rekey_beside(a);
}

/* ---- notes -------------------------------------------------------------- */

static void refusals_tell(struct attempt *a);

/* What the ledger did not take is added when the attempt ends. */
static void
on_refusals_noted(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_ref_take(arg);

	if (a == NULL)
		return;
	if (m->type == MSG_FAILED) {
		a->refusals_told = a->refusals_noted;
		return;
	}
	a->refusals_noted = a->refusals_told;
	refusals_tell(a);
}

/*
 * One request at a time, with the count so far: however many a worker claims
 * at once, what others wait for is not behind them.
 */
static void
refusals_tell(struct attempt *a)
{
	struct msg m = {.type = MSG_REFUSAL};

	if (a->refusals_told != a->refusals_noted ||
	    a->refusals_told == a->refusals)
		return;
	a->refusals_told = a->refusals;
	m.refusal.attempt = a->id;
	m.refusal.number = a->refusals;
	(void)peer_request(
	    dispatcher_ledger(a->d), &m, on_refusals_noted, attempt_ref_new(a));
}

void
attempt_note_refusals(struct attempt *a, size_t count)
{
	size_t room = (size_t)(REFUSALS_MOST - a->refusals);

	a->refusals += (int64_t)(count < room ? count : room);
	refusals_tell(a);
}

void
attempt_note_progress(struct attempt *a)
{
	struct msg m = {.type = MSG_PROGRESS};
	int64_t now = clock_monotonic_ms();

	if (now - a->progress_at <
	    dispatcher_limit(a->d, LIMIT_progress_interval))
		return;
	a->progress_at = now;
	m.progress.attempt = a->id;
	(void)peer_request(dispatcher_ledger(a->d), &m, NULL, NULL);
}

void
attempt_note_still_running(struct attempt *a)
{
	struct msg m = {.type = MSG_STILL_RUNNING};

	m.still_running.attempt = a->id;
	m.still_running.number = ++a->still_running;
	(void)peer_request(dispatcher_ledger(a->d), &m, NULL, NULL);
}

/* That a person settled it may have been told us before it was held. */
static void
on_held_noted(struct peer *peer, struct msg *m, void *arg)
{
	decisions_look(arg);
}

void
attempt_note_held(struct attempt *a)
{
	struct msg m = {.type = MSG_TREE_HELD};

	m.tree_held.attempt = a->id;
	(void)peer_request(dispatcher_ledger(a->d), &m, on_held_noted, a->d);
}

void
attempt_drop_declaration(struct attempt *a)
{
	struct msg m = {.type = MSG_DROP_DECLARATION};

	m.drop_declaration.attempt = a->id;
	(void)peer_request(dispatcher_supervisor(a->d), &m, NULL, NULL);
}
