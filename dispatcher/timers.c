#include "common/clock.h"
#include "common/log.h"
#include "dispatcher/attempt.h"

#define KEY_PAUSE_MS 10 /* the second time, and doubled from there */
#define KEY_PAUSE_MOST_MS 1000

/*
 * A quarter is kept for what follows SIGKILL: the proof, a report in mcpd's
 * hands, the settlement. Before it a tree that was asked to end has its grace,
 * before that a turn that was interrupted.
 */
void
dispatcher_stop_by(struct dispatcher *d, int64_t bound_ms)
{
	int64_t now = clock_monotonic_ms(), part = bound_ms / 4;
	int64_t grace = dispatcher_limit(d, LIMIT_close_grace);

	d->stopping = true;
	d->kill_at = now + bound_ms - part;
	d->cut_until = d->kill_at - (grace < part ? grace : part);
}

int64_t
dispatcher_grace(const struct dispatcher *d, enum limit limit)
{
	int64_t ms = dispatcher_limit(d, limit), left;

	if (!d->stopping)
		return ms;
	left = (limit == LIMIT_cancel_grace ? d->cut_until : d->kill_at) -
	    clock_monotonic_ms();
	if (ms < left)
		return ms;
	return left > 0 ? left : 1;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	attempt_event(arg, EV_TIMER);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	attempt_event(arg, EV_DEADLINE);
}

/* 0: it is not to be told of at all. */
static int64_t
ticker_ms(const struct attempt *a)
{
	return dispatcher_limit(a->d, LIMIT_still_running);
}

/* Only a turn is told of: what ends is not still running. */
static void
on_ticker(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;

	if (a->state < AT_TURN || a->state > AT_CUTTING || ticker_ms(a) == 0)
		return;
	attempt_note_still_running(a);
	attempt_ticker_begin(a);
}

static void
timer_begin(struct attempt *a, struct event **timer, event_callback_fn callback,
    int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (*timer == NULL)
		*timer = event_new(a->d->role.base, -1, 0, callback, a);
	if (*timer == NULL || event_add(*timer, &tv) == -1)
		fatalx("%s: no timer", a->id);
}

void
attempt_wait(struct attempt *a, int64_t ms)
{
	if (ms != 0)
		timer_begin(a, &a->timer, on_timer, ms);
	else if (a->timer != NULL)
		(void)event_del(a->timer);
	a->waits_until = ms == 0 ? 0 : clock_monotonic_ms() + ms;
}

void
attempt_hurry(struct attempt *a, int64_t ms)
{
	if (a->waits_until > clock_monotonic_ms() + ms)
		attempt_wait(a, ms);
}

void
attempt_deadline_begin(struct attempt *a)
{
	timer_begin(
	    a, &a->deadline, on_deadline, a->d->role.config->deadline_ms);
}

void
attempt_ticker_begin(struct attempt *a)
{
	if (ticker_ms(a) != 0 &&
	    (a->ticker == NULL || !event_pending(a->ticker, EV_TIMEOUT, NULL)))
		timer_begin(a, &a->ticker, on_ticker, ticker_ms(a));
}

static void
on_key_time(evutil_socket_t fd, short what, void *arg)
{
	attempt_key_now(arg);
}

void
attempt_key_later(struct attempt *a)
{
	int64_t ms = a->keyings <= 1 ? 0 : KEY_PAUSE_MS << (a->keyings - 2);

	timer_begin(a, &a->key_timer, on_key_time,
	    ms < KEY_PAUSE_MOST_MS ? ms : KEY_PAUSE_MOST_MS);
}

void
attempt_timers_free(struct attempt *a)
{
	if (a->key_timer != NULL)
		event_free(a->key_timer);
	if (a->timer != NULL)
		event_free(a->timer);
	if (a->deadline != NULL)
		event_free(a->deadline);
	if (a->ticker != NULL)
		event_free(a->ticker);
}
