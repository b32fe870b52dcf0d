#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/exec.h"
#include "supervisor/watchdog.h"

#define PAUSE_FIRST_MS 250
#define PAUSE_MOST_MS 30000
/* So long READY, and the deaths before do not count any more. */
#define HEALTHY_MS 10000
/* Between the watchdog's SIGABRT and SIGKILL. */
#define ABORT_MS 2000
/* Between the end of a child's link and its own. */
#define UNLINKED_MS 1000

static void act_spawn(struct child *c);
static void act_ready(struct child *c);
static void act_finish(struct child *c);
static void act_restart(struct child *c);
static void act_unwant(struct child *c);
static void act_lay_down(struct child *c);
static void act_await(struct child *c);
static void act_bury(struct child *c);
static void act_late(struct child *c);
static void act_unfit(struct child *c);
static void act_wrong(struct child *c);
static void act_silent(struct child *c);
static void act_slow(struct child *c);
static void act_kill_again(struct child *c);

/*
 * A child's life. A blank is a decision: there that event changes nothing.
 * UNFIT, WRONG and SILENT of a child that is being killed are what it is
 * killed for; a DEATH is only reported of something that lived.
 */
static void (*const actions[CHILD_STATE_COUNT][CHILD_EVENT_COUNT])(
    struct child *) = {
    [CHILD_DOWN] =
	{
	    [CHILD_START] = act_spawn,
	},
    [CHILD_STARTING] =
	{
	    [CHILD_SAID_READY] = act_ready,
	    [CHILD_UNFIT] = act_unfit,
	    [CHILD_DEATH] = act_bury,
	    [CHILD_TIMEOUT] = act_late,
	    [CHILD_WRONG] = act_wrong,
	    [CHILD_UNLINKED] = act_await,
	    [CHILD_STOP] = act_finish,
	    [CHILD_RESTART] = act_restart,
	},
    [CHILD_READY] =
	{
	    [CHILD_SAID_READY] = act_wrong,
	    [CHILD_UNFIT] = act_wrong,
	    [CHILD_DEATH] = act_bury,
	    [CHILD_WRONG] = act_wrong,
	    [CHILD_SILENT] = act_silent,
	    [CHILD_UNLINKED] = act_await,
	    [CHILD_STOP] = act_finish,
	    [CHILD_RESTART] = act_restart,
	},
    [CHILD_STOPPING] =
	{
	    [CHILD_DEATH] = act_bury,
	    [CHILD_TIMEOUT] = act_slow,
	    [CHILD_WRONG] = act_wrong,
	    [CHILD_STOP] = act_finish,
	},
    [CHILD_KILLED] =
	{
	    [CHILD_DEATH] = act_bury,
	    [CHILD_TIMEOUT] = act_kill_again,
	    [CHILD_STOP] = act_unwant,
	},
    [CHILD_BACKOFF] =
	{
	    [CHILD_START] = act_spawn,
	    [CHILD_TIMEOUT] = act_spawn,
	    [CHILD_STOP] = act_lay_down,
	    [CHILD_RESTART] = act_spawn,
	    [CHILD_RELOAD] = act_spawn,
	},
    [CHILD_PARKED] =
	{
	    [CHILD_START] = act_spawn,
	    [CHILD_STOP] = act_lay_down,
	    [CHILD_RESTART] = act_spawn,
	    [CHILD_RELOAD] = act_spawn,
	},
};

static const char *const state_names[] = {
    [CHILD_DOWN] = "down",
    [CHILD_STARTING] = "starting",
    [CHILD_READY] = "ready",
    [CHILD_STOPPING] = "stopping",
    [CHILD_KILLED] = "killed",
    [CHILD_BACKOFF] = "restarting",
    [CHILD_PARKED] = "parked",
};
static_assert(sizeof(state_names) / sizeof(state_names[0]) == CHILD_STATE_COUNT,
    "a name for every state");

void
child_happens(struct child *c, enum child_event event)
{
	void (*act)(struct child *) = actions[c->state][event];

	if (act != NULL)
		act(c);
}

/* The state's timer, if it has one, fires after BOUND_MS. */
static void
child_enter(struct child *c, enum child_state state, int64_t bound_ms)
{
	struct timeval tv = {
	    .tv_sec = bound_ms / 1000, .tv_usec = bound_ms % 1000 * 1000};

	c->state = state;
	c->since_ms = clock_monotonic_ms();
	(void)evtimer_del(c->timer);
	if (bound_ms > 0)
		(void)evtimer_add(c->timer, &tv);
	supervisor_child_changed(c->sv, c);
}

static int64_t
child_limit(const struct child *c, enum limit limit)
{
	return c->sv->settings->config->limits[limit];
}

/* ---- the actions, in the order of a life -------------------------------- */

/* How long the coming pause is; this death is counted by it. */
static int64_t
child_count_failure(struct child *c)
{
	uint32_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	return child_pause_ms(c->failures++, c->was_ready, random);
}

static void
act_spawn(struct child *c)
{
	enum spawn_result result;
	struct error e;

	child_values_clear(c);
	c->killed_for = NULL;
	c->asked = c->was_ready = c->link_ended = false;
	watchdog_forget(c);
	c->generation++;
	result = child_spawn(c, &e);
	if (result == SPAWN_DONE) {
		child_enter(
		    c, CHILD_STARTING, child_limit(c, LIMIT_ready_deadline));
		return;
	}
	(void)snprintf(c->last_words, sizeof(c->last_words), "%s", e.text);
	log_warnx("%s: not started: %s", c->name, e.text);
	if (c->role == ROLE_MCPD)
		child_enter(c, CHILD_DOWN, 0);
	else if (result == SPAWN_UNCONFIGURED)
		child_enter(c, CHILD_PARKED, 0);
	else
		child_enter(c, CHILD_BACKOFF, child_count_failure(c));
}

static void
act_ready(struct child *c)
{
	c->was_ready = true;
	c->ready_ms = clock_monotonic_ms();
	child_enter(c, CHILD_READY, 0);
	if (c->role == ROLE_MCPD)
		attempt_mcpd_ready(c->sv, c->attempt);
}

static void
act_finish(struct child *c)
{
	c->wanted = false;
	child_finish(c, c->stop_bound_ms);
}

static void
act_restart(struct child *c)
{
	c->asked = true;
	child_finish(c, child_limit(c, LIMIT_stop_bound));
}

static void
act_unwant(struct child *c)
{
	c->wanted = false;
}

/* No process, and none to come. */
static void
act_lay_down(struct child *c)
{
	c->wanted = false;
	child_enter(c, CHILD_DOWN, 0);
	stop_child_down(c->sv);
}

/* Its exit should follow within moments; if not, it is helped. */
static void
act_await(struct child *c)
{
	child_enter(c, CHILD_STOPPING, UNLINKED_MS);
}

static void
child_kill_for(struct child *c, const char *why, int signal, int64_t bound_ms)
{
	log_warnx("%s (pid %ld): %s: ending it", c->name, (long)c->pid, why);
	c->killed_for = why;
	child_signal(c, signal);
	child_enter(c, CHILD_KILLED, bound_ms);
}

static void
act_late(struct child *c)
{
	child_kill_for(c, "not ready in time", SIGKILL, 0);
}

static void
act_unfit(struct child *c)
{
	child_kill_for(c, "not fit to run", SIGKILL, 0);
}

static void
act_wrong(struct child *c)
{
	child_kill_for(c, "broke the protocol", SIGKILL, 0);
}

/* SIGABRT first: a core where the operator allowed one. */
static void
act_silent(struct child *c)
{
	c->silences++;
	child_kill_for(c, "does not answer", SIGABRT, ABORT_MS);
}

/* It was told to finish and had its time. */
static void
act_slow(struct child *c)
{
	log_warnx("%s (pid %ld): did not finish in time: ending it", c->name,
	    (long)c->pid);
	child_signal(c, SIGKILL);
	child_enter(c, CHILD_KILLED, 0);
}

static void
act_kill_again(struct child *c)
{
	child_signal(c, SIGKILL);
}

/* ---- the end of a life --------------------------------------------------- */

int64_t
child_pause_ms(unsigned failures, bool was_ready, uint32_t random)
{
	int64_t pause = PAUSE_FIRST_MS;
	unsigned i;

	if (failures == 0 && was_ready)
		return 0;
	for (i = 1; i < failures && pause < PAUSE_MOST_MS; i++)
		pause *= 2;
	if (pause > PAUSE_MOST_MS)
		pause = PAUSE_MOST_MS;
	/* Up to a quarter less, so that children do not march in step. */
	return pause - (int64_t)((uint64_t)(pause / 4) * random / UINT32_MAX);
}

bool
child_end_is_own(const siginfo_t *end, const char *killed_for)
{
	static const int own[] = {SIGSEGV, SIGABRT, SIGBUS, SIGSYS, SIGILL,
	    SIGFPE, SIGTRAP, SIGXFSZ, SIGXCPU};
	size_t i;

	if (killed_for != NULL)
		return true;
	if (end->si_code == CLD_EXITED)
		return end->si_status != 0 && end->si_status != EXIT_STORAGE;
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (end->si_status == own[i])
			return true;
	}
	return false;
}

static void
child_log_end(const struct child *c, bool is_own)
{
	const siginfo_t *end = &c->end;

	if (c->killed_for != NULL || (!is_own && (!c->wanted || c->asked)))
		return; /* that was said, or is as it was told */
	if (end->si_code == CLD_EXITED)
		log_warnx("%s (pid %ld): exited with %d", c->name,
		    (long)end->si_pid, end->si_status);
	else
		log_warnx("%s (pid %ld): ended by signal %d (%s)%s", c->name,
		    (long)end->si_pid, end->si_status,
		    strsignal(end->si_status),
		    end->si_status == SIGSYS
			? ": a system call that its walls refuse"
			: "");
}

/* A death after which it is wanted: at once, after a pause, or parked. */
static void
child_rise_again(struct child *c)
{
	int64_t pause;

	c->restarts++;
	if (c->end.si_code == CLD_EXITED && c->end.si_status == EXIT_CONFIG) {
		child_enter(c, CHILD_PARKED, 0);
		return;
	}
	if (c->was_ready && clock_monotonic_ms() - c->ready_ms >= HEALTHY_MS)
		c->failures = 0;
	pause = c->asked ? 0 : child_count_failure(c);
	if (pause == 0)
		act_spawn(c);
	else
		child_enter(c, CHILD_BACKOFF, pause);
}

/* An mcpd has one life; whoever wants another one asks for it. */
static void
mcpd_bury(struct child *c)
{
	struct supervisor *sv = c->sv;
	char attempt[sizeof(c->attempt)];

	memcpy(attempt, c->attempt, sizeof(attempt));
	c->state = CHILD_DOWN;
	TAILQ_REMOVE(&sv->mcpds, c, entry);
	child_free(c);
	attempt_mcpd_exited(sv, attempt);
	stop_child_down(sv);
}

static void
act_bury(struct child *c)
{
	bool is_own = child_end_is_own(&c->end, c->killed_for);

	child_log_end(c, is_own);
	if (is_own)
		c->own_deaths++;
	hand_bury(c, is_own);
	if (c->role == ROLE_DISPATCHER)
		attempts_dispatcher_gone(c->sv);
	if (c->role == ROLE_MCPD) {
		mcpd_bury(c);
		return;
	}
	if (c->end.si_code == CLD_EXITED && c->end.si_status == EXIT_WALLS)
		supervisor_walls_missing(c->sv);
	if (c->wanted)
		child_rise_again(c);
	else
		act_lay_down(c);
}

/* Both halves of its end are known: the table may hear of it. */
static void
child_on_death(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	child_happens(arg, CHILD_DEATH);
}

static void
child_check_death(struct child *c)
{
	if (c->pid == 0 && c->link_ended)
		event_active(c->death, EV_TIMEOUT, 0);
}

void
child_process_ended(struct child *c)
{
	c->pid = 0;
	child_check_death(c);
}

void
child_link_ended(struct child *c)
{
	c->link_ended = true;
	if (c->pid != 0)
		child_happens(c, CHILD_UNLINKED);
	child_check_death(c);
}

/* ---- what others see and ask --------------------------------------------- */

static void
child_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	child_happens(arg, CHILD_TIMEOUT);
}

struct child *
child_new(struct supervisor *sv, enum role_id role, const char *attempt)
{
	struct child *c = xcalloc(1, sizeof(*c));

	c->sv = sv;
	c->role = role;
	c->token = -1;
	c->stop_bound_ms = child_limit(c, LIMIT_stop_bound);
	(void)snprintf(c->attempt, sizeof(c->attempt), "%s", attempt);
	(void)snprintf(c->name, sizeof(c->name), "%s%s%s", exec_name(role),
	    attempt[0] == '\0' ? "" : " ", attempt);
	c->peer = peer_new(
	    sv->base, ROLE_SUPERVISOR, role, attempt, &child_peer_ops, sv);
	c->timer = evtimer_new(sv->base, child_on_timer, c);
	c->death = evtimer_new(sv->base, child_on_death, c);
	if (c->timer == NULL || c->death == NULL)
		fatalx("%s: no event", c->name);
	return c;
}

void
child_free(struct child *c)
{
	child_values_clear(c);
	if (c->token != -1)
		(void)close(c->token);
	peer_free(c->peer);
	event_free(c->timer);
	event_free(c->death);
	free(c);
}

void
child_finish(struct child *c, int64_t bound_ms)
{
	struct msg m = {.type = MSG_STOP};

	m.stop.bound_ms = bound_ms;
	peer_notice(c->peer, &m);
	child_enter(c, CHILD_STOPPING, bound_ms > 0 ? bound_ms : 1);
}

void
child_drain(struct child *c, int64_t bound_ms)
{
	c->stop_bound_ms = bound_ms;
	child_happens(c, CHILD_STOP);
}

void
child_more_time(struct child *c)
{
	if (c->state == CHILD_STARTING)
		child_enter(
		    c, CHILD_STARTING, child_limit(c, LIMIT_ready_deadline));
}

struct peer *
child_peer(struct child *c)
{
	return c->peer;
}

bool
child_is_there(const struct child *c)
{
	return c->pid != 0 && !c->link_ended &&
	    (c->state == CHILD_STARTING || c->state == CHILD_READY ||
		c->state == CHILD_STOPPING);
}

bool
child_is_failing(const struct child *c)
{
	if (c->state == CHILD_PARKED)
		return true;
	return c->failures >= CHILD_FAILING_FROM &&
	    (c->state == CHILD_BACKOFF || c->state == CHILD_STARTING ||
		c->state == CHILD_KILLED);
}

const char *
child_state_name(const struct child *c)
{
	if (c->state != CHILD_PARKED && child_is_failing(c))
		return "failing";
	return state_names[c->state];
}
