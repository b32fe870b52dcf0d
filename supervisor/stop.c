#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/lines.h"
#include "supervisor/notify.h"
#include "supervisor/stop.h"

/* A dispatcher that dies and dies again settles nothing. */
#define SUCCESSORS_MOST 3

enum stage {
	STAGE_DISPATCHER,
	STAGE_ATTEMPTS,
	STAGE_OUTBOX,
	STAGE_INTAKE,
	STAGE_LEDGER,
	STAGE_OVER
};

/* Which role a stage is about; ROLE_MCPD stands for whole attempts. */
static const enum role_id stage_roles[] = {
    [STAGE_DISPATCHER] = ROLE_DISPATCHER,
    [STAGE_ATTEMPTS] = ROLE_MCPD,
    [STAGE_OUTBOX] = ROLE_OUTBOX,
    [STAGE_INTAKE] = ROLE_INTAKE,
    [STAGE_LEDGER] = ROLE_LEDGER,
};
static_assert(sizeof(stage_roles) / sizeof(stage_roles[0]) == STAGE_OVER,
    "a role for every stage");

struct stop {
	struct supervisor *sv;
	enum stage stage;
	struct event *timer;    /* the whole bound */
	struct event *advance;  /* outside the callback of a child's end */
	struct event *patience; /* with what a dead dispatcher left */
	int64_t settled_by;     /* the dispatcher's bound, monotonic ms */
	int successors;         /* of a dispatcher that died meanwhile */
	bool impatient;
	bool noted; /* the ledger wrote "stopped" */
};

/*
 * How long a stage may take. The outbox gets its flush, intake and ledger a
 * twentieth each, the dispatcher what then is left.
 */
static int64_t
stage_bound_ms(const struct supervisor *sv, enum stage stage)
{
	const int64_t *limits = sv->settings->config->limits;
	int64_t whole = limits[LIMIT_stop_bound], part = whole / 20;
	int64_t flush = limits[LIMIT_outbox_flush];

	if (flush > whole / 4)
		flush = whole / 4;
	switch (stage) {
	case STAGE_DISPATCHER:
		return whole - flush - 4 * part;
	case STAGE_OUTBOX:
		return flush + part;
	default:
		return part > 0 ? part : 1;
	}
}

static bool
stage_is_over(const struct stop *stop)
{
	const struct supervisor *sv = stop->sv;
	enum role_id role = stage_roles[stop->stage];

	if (role == ROLE_MCPD)
		return TAILQ_EMPTY(&sv->mcpds) &&
		    (stop->impatient || attempts_left(sv) == 0);
	return sv->children[role] == NULL ||
	    sv->children[role]->state == CHILD_DOWN;
}

static void
child_stop(struct child *c, int64_t bound_ms)
{
	c->stop_bound_ms = bound_ms;
	child_happens(c, CHILD_STOP);
}

static void
ledger_noted(struct peer *peer, struct msg *reply, void *arg)
{
	struct stop *stop = arg;

	(void)peer;
	(void)reply;
	stop->noted = true;
	event_active(stop->advance, EV_TIMEOUT, 0);
}

/* The run's last word for a later status, then the ledger's own stop. */
static void
ledger_stop(struct stop *stop)
{
	struct supervisor *sv = stop->sv;
	struct peer *ledger = supervisor_peer(sv, ROLE_LEDGER);
	struct msg m = {.type = MSG_CONNECTION};

	if (ledger == NULL || stop->noted) {
		child_stop(sv->children[ROLE_LEDGER],
		    stage_bound_ms(sv, STAGE_LEDGER));
		return;
	}
	m.connection.state = "stopped";
	m.connection.pid = getpid();
	(void)peer_request(ledger, &m, ledger_noted, stop);
}

/*
 * A dispatcher that stopped in order left no attempt but held ones. Else trees
 * are being ended by us, which takes its time; then their mcpds go.
 */
static void
attempts_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct stop *stop = arg;
	struct child *c;

	(void)fd;
	(void)what;
	stop->impatient = true;
	TAILQ_FOREACH (c, &stop->sv->mcpds, entry)
		child_stop(c, stage_bound_ms(stop->sv, STAGE_ATTEMPTS) / 2 + 1);
	event_active(stop->advance, EV_TIMEOUT, 0);
}

static void
stage_enter(struct stop *stop)
{
	struct supervisor *sv = stop->sv;
	int64_t bound = stage_bound_ms(sv, stop->stage);
	enum role_id role = stage_roles[stop->stage];
	struct timeval tv = {
	    .tv_sec = bound / 2000, .tv_usec = bound / 2 % 1000 * 1000};

	if (role == ROLE_LEDGER) {
		ledger_stop(stop);
	} else if (role == ROLE_MCPD) {
		attempts_end(sv);
		(void)evtimer_add(stop->patience, &tv);
	} else {
		child_stop(sv->children[role], bound);
	}
}

/*
 * A dispatcher that died, in the stop or in a pause before it, has left
 * attempts unsettled: a successor is started, and told to stop at once, which
 * settles them first. False: there was no such death, or no time is left.
 */
static bool
dispatcher_rises(struct stop *stop)
{
	struct child *c = stop->sv->children[ROLE_DISPATCHER];
	int64_t left = stop->settled_by - clock_monotonic_ms();

	if (stop->stage != STAGE_DISPATCHER || c == NULL || left <= 0 ||
	    stop->successors >= SUCCESSORS_MOST || c->end.si_pid == 0 ||
	    (c->end.si_code == CLD_EXITED && c->end.si_status == EXIT_OK))
		return false;
	stop->successors++;
	log_info("%s: a successor settles what it left", c->name);
	child_happens(c, CHILD_START);
	child_stop(c, left);
	return true;
}

/* Enter each stage once; a stage with nothing to wait for is passed by. */
static void
stop_advance(evutil_socket_t fd, short what, void *arg)
{
	struct stop *stop = arg;
	bool entering = false;

	(void)fd;
	(void)what;
	if (stop->stage == STAGE_LEDGER && stop->noted &&
	    !stage_is_over(stop)) {
		stage_enter(stop);
		return;
	}
	while (stop->stage != STAGE_OVER && stage_is_over(stop)) {
		if (dispatcher_rises(stop))
			return;
		stop->stage++;
		entering = true;
	}
	if (stop->stage == STAGE_OVER)
		(void)event_base_loopbreak(stop->sv->base);
	else if (entering)
		stage_enter(stop);
}

void
stop_child_down(struct supervisor *sv)
{
	if (sv->stop != NULL)
		event_active(sv->stop->advance, EV_TIMEOUT, 0);
}

/* The bound is over: what still runs is not waited for. */
static void
stop_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct stop *stop = arg;

	(void)fd;
	(void)what;
	log_warnx("the orderly stop took too long at %s",
	    role_name(stage_roles[stop->stage]));
	attempts_kill(stop->sv);
	stop_now(stop->sv, stop->sv->exit_code);
}

void
stop_begin(struct supervisor *sv)
{
	int64_t bound = sv->settings->config->limits[LIMIT_stop_bound];
	struct timeval tv = {
	    .tv_sec = bound / 1000, .tv_usec = bound % 1000 * 1000};
	struct stop *stop = xcalloc(1, sizeof(*stop));

	(void)notify_send("STOPPING=1\n");
	stop->sv = sv;
	stop->timer = evtimer_new(sv->base, stop_overdue, stop);
	stop->advance = evtimer_new(sv->base, stop_advance, stop);
	stop->patience = evtimer_new(sv->base, attempts_overdue, stop);
	if (stop->timer == NULL || stop->advance == NULL ||
	    stop->patience == NULL)
		fatalx("stop: no event");
	(void)evtimer_add(stop->timer, &tv);
	stop->settled_by =
	    clock_monotonic_ms() + stage_bound_ms(sv, STAGE_DISPATCHER);
	sv->stop = stop;
	stage_enter(stop);
	stop_child_down(sv);
}

/*
 * Kill every role; the kernel does the rest when we exit. Workers live on as
 * leaders of their groups, so that the next start can prove and end them.
 */
void
stop_now(struct supervisor *sv, int code)
{
	struct child *c;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		if (sv->children[role] != NULL)
			child_signal(sv->children[role], SIGKILL);
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry)
		child_signal(c, SIGKILL);
	lines_end();
	exit_now((enum exit_code)code);
}
