/*
 * What the outbox does next, one step at a time: nothing that is being sent
 * is ever listed under its own hands (operator.md 1.6, 1.11).
 *
 *	state		a step did something	nothing (more) to do
 *	start listing	the next intent		start sending
 *	start sending	again, or in doubt: say STARTED, listing
 *						say STARTED, listing
 *	sending		again, 16 a turn; or	listing
 *			in doubt: listing
 *	listing		one a turn: sending	idle
 *	idle		(a poke or the clock: sending)
 *
 * At the start what cannot be done just now, for want of a token, is waited
 * for until the bound is over; later it goes on with the next state.
 *
 * While stopping every step leads to sending, until nothing is due: that ends
 * the process, as does its bound. What cannot be sent just now makes it idle.
 * After a doubt nothing is claimed before the tick, whatever leads to sending.
 */
#include <assert.h>

#include "common/clock.h"
#include "common/log.h"
#include "outbox/outbox.h"

#define TURN_SENDS_MOST 16
/* From an uncertain send to the next turn's first. */
#define TURN_TICK_MS 1000
/* A claim without time to be answered only makes work for a person. */
#define STOP_LEAST_MS 5000

/* ---- the start ---------------------------------------------------------- */

static void
say_started(struct outbox *o, bool settled)
{
	struct msg m = {.type = MSG_STARTED};

	if (o->started)
		return;
	o->started = true;
	o->settled = settled;
	m.started.settled = settled;
	peer_notice(role_peer(&o->role, ROLE_DISPATCHER, ""), &m);
}

/* A slow Basecamp does not stop the start. */
static void
on_start_bound(evutil_socket_t fd, short what, void *arg)
{
	struct outbox *o = arg;

	if (!o->started)
		log_warnx("messages of an earlier run are not settled yet");
	say_started(o, false);
}

/* ---- steps -------------------------------------------------------------- */

static void
begin_start_listing(struct outbox *o)
{
	reconcile_one(o, o->listed);
}

static void
begin_listing(struct outbox *o)
{
	reconcile_one(o, 0);
}

/* By state: what a step is; NULL where there is none. */
static void (*const steps[WORK_COUNT])(struct outbox *) = {
    [WORK_START_LISTING] = begin_start_listing,
    [WORK_START_SENDING] = send_one,
    [WORK_SENDING] = send_one,
    [WORK_LISTING] = begin_listing,
    [WORK_IDLE] = NULL,
};
static_assert(
    sizeof(steps) / sizeof(steps[0]) == WORK_COUNT, "every state has its step");

static void
wake_at(struct outbox *o, struct opt in_ms)
{
	struct timeval tv, left;
	int64_t ms = in_ms.value;

	if (!in_ms.has)
		return;
	if (ms < 1)
		ms = 1;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	/* An earlier wake stands. */
	if (event_pending(o->wake, EV_TIMEOUT, &left)) {
		struct timeval now;

		(void)evutil_gettimeofday(&now, NULL);
		evutil_timersub(&left, &now, &left);
		if (evutil_timercmp(&left, &tv, <))
			return;
	}
	(void)event_add(o->wake, &tv);
}

static void
work_next(struct outbox *o)
{
	if (o->busy || steps[o->work] == NULL || o->role.config == NULL)
		return;
	o->busy = true;
	steps[o->work](o);
}

/* After a step that did something. */
static enum work
work_after_step(struct outbox *o)
{
	switch (o->work) {
	case WORK_START_LISTING:
		return WORK_START_LISTING;
	case WORK_START_SENDING:
		return WORK_START_SENDING;
	case WORK_SENDING:
		return ++o->sent < TURN_SENDS_MOST ? WORK_SENDING
						   : WORK_LISTING;
	default:
		return WORK_SENDING;
	}
}

/* When a state has nothing to do (any more). */
static const enum work work_after_none[WORK_COUNT] = {
    [WORK_START_LISTING] = WORK_START_SENDING,
    [WORK_START_SENDING] = WORK_LISTING,
    [WORK_SENDING] = WORK_LISTING,
    [WORK_LISTING] = WORK_IDLE,
    [WORK_IDLE] = WORK_IDLE,
};

static void
work_enter(struct outbox *o, enum work work)
{
	if (o->work == WORK_START_SENDING && work != WORK_START_SENDING &&
	    !o->stopping)
		say_started(o, true);
	if (work != WORK_SENDING || o->work != WORK_SENDING)
		o->sent = 0;
	o->work = work;
	if (work == WORK_IDLE && o->poked) {
		o->poked = false;
		o->work = WORK_SENDING;
	}
	work_next(o);
}

void
work_step_done(struct outbox *o)
{
	o->busy = false;
	work_enter(o, o->stopping ? WORK_SENDING : work_after_step(o));
}

/* The next would meet the same Basecamp, and end in doubt as well. */
void
work_step_uncertain(struct outbox *o, int64_t retry_after)
{
	int64_t ms = 1000 *
	    (retry_after < HOLD_MOST_S ? retry_after : (int64_t)HOLD_MOST_S);

	if (ms < TURN_TICK_MS)
		ms = TURN_TICK_MS;
	/* What is due besides is left. */
	if (o->work == WORK_START_SENDING && !o->stopping)
		say_started(o, false);
	o->busy = false;
	o->send_at = clock_monotonic_ms() + ms;
	wake_at(o, (struct opt){true, ms});
	wake_at(o, (struct opt){true, outbox_limit(o, LIMIT_reconcile_after)});
	work_enter(o, o->stopping ? WORK_SENDING : WORK_LISTING);
}

int64_t
work_send_in(const struct outbox *o)
{
	int64_t left = o->send_at - clock_monotonic_ms();

	return left > 0 ? left : 0;
}

/* Only a step of sending says that nothing is due, and no poke came since. */
static bool
is_flushed(const struct outbox *o)
{
	return steps[o->work] == send_one && !o->poked;
}

void
work_step_none(struct outbox *o, struct opt in_ms)
{
	o->busy = false;
	wake_at(o, in_ms);
	if (!o->stopping) {
		work_enter(o, work_after_none[o->work]);
		return;
	}
	if (is_flushed(o))
		role_exit(&o->role, 0);
	o->poked = false;
	work_enter(o, WORK_SENDING);
}

void
work_step_wait(struct outbox *o, int64_t ms)
{
	o->busy = false;
	if (o->stopping && steps[o->work] != send_one) {
		/* Whether all is sent is what it asks then. */
		work_enter(o, WORK_SENDING);
		return;
	}
	if (o->stopping && !work_has_time(o, ms))
		work_stop_short(o);
	wake_at(o, (struct opt){true, ms});
	if (o->stopping)
		work_enter(o, WORK_IDLE);
	else if (o->started)
		work_enter(o, work_after_none[o->work]);
}

void
work_poke(struct outbox *o)
{
	if (o->work != WORK_IDLE) {
		o->poked = true;
		work_next(o);
		return;
	}
	work_enter(o, WORK_SENDING);
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	work_poke(arg);
}

bool
work_has_time(const struct outbox *o, int64_t in_ms)
{
	int64_t least = outbox_limit(o, LIMIT_post_timeout);

	if (least > STOP_LEAST_MS)
		least = STOP_LEAST_MS;
	return !o->stopping ||
	    o->stop_at - clock_monotonic_ms() - in_ms >= least;
}

/* What was claimed is not sent again: whether it arrived is looked for. */
_Noreturn void
work_stop_short(struct outbox *o)
{
	if (o->posting != 0)
		log_warnx("stopped while intent %lld is posted: the next start "
			  "looks whether it arrived",
		    (long long)o->posting);
	else
		log_warnx("stopped before all was sent: what waits still is "
			  "sent from the next start on");
	role_exit(&o->role, 0);
}

static void
on_stop_bound(evutil_socket_t fd, short what, void *arg)
{
	work_stop_short(arg);
}

void
work_stop(struct outbox *o, int64_t bound_ms)
{
	int64_t most = outbox_limit(o, LIMIT_outbox_flush);
	struct timeval tv;

	if (bound_ms > most)
		bound_ms = most;
	o->stopping = true;
	o->stop_at = clock_monotonic_ms() + bound_ms;
	tv.tv_sec = bound_ms / 1000;
	tv.tv_usec = bound_ms % 1000 * 1000;
	if (event_base_once(
		o->role.base, -1, EV_TIMEOUT, on_stop_bound, o, &tv) == -1)
		fatalx("stop: no timer");
	if (o->work == WORK_IDLE)
		work_enter(o, WORK_SENDING);
	else
		work_next(o);
}

void
work_init(struct outbox *o)
{
	o->work = WORK_START_LISTING;
	o->wake = event_new(o->role.base, -1, 0, on_wake, o);
	if (o->wake == NULL)
		fatalx("outbox: no timer");
}

void
work_configured(struct outbox *o)
{
	int64_t ms = outbox_limit(o, LIMIT_outbox_start);
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (!o->bounded &&
	    event_base_once(
		o->role.base, -1, EV_TIMEOUT, on_start_bound, o, &tv) == -1)
		fatalx("outbox: no timer");
	o->bounded = true;
	work_poke(o);
}
