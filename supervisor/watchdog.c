#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/notify.h"
#include "supervisor/watchdog.h"

#define INTERVAL_LEAST_MS 20

struct watchdog {
	struct supervisor *sv;
	struct event *timer;
	int64_t tick_ms; /* of the last tick; 0: it does not run */
	int64_t nonce;
	bool stirred; /* since the last tick */
};

/* With a service manager, a stuck child is ended before all of us are. */
static int64_t
silence_bound_ms(const struct supervisor *sv)
{
	int64_t bound = sv->settings->config->limits[LIMIT_watchdog];
	int64_t manager = notify_watchdog_ms();

	return manager > 0 && manager / 2 < bound ? manager / 2 : bound;
}

static int64_t
interval_ms(const struct supervisor *sv)
{
	int64_t interval = silence_bound_ms(sv) / 3;

	return interval < INTERVAL_LEAST_MS ? INTERVAL_LEAST_MS : interval;
}

static void
watchdog_arm(struct watchdog *w)
{
	int64_t interval = interval_ms(w->sv);
	struct timeval tv = {
	    .tv_sec = interval / 1000, .tv_usec = interval % 1000 * 1000};

	w->tick_ms = clock_monotonic_ms();
	(void)evtimer_add(w->timer, &tv);
}

static void
ping_answered(struct peer *peer, struct msg *reply, void *arg)
{
	struct child *c = arg;

	(void)peer;
	c->ping = 0;
	if (reply->type != MSG_PONG || reply->pong.nonce != c->ping_nonce)
		child_happens(c, CHILD_WRONG);
}

static void
child_ask(struct watchdog *w, struct child *c)
{
	struct msg m = {.type = MSG_PING};

	c->ping_ms = clock_monotonic_ms();
	c->ping_nonce = m.ping.nonce = w->nonce++;
	c->ping = peer_request(c->peer, &m, ping_answered, c);
}

/* True when it owes an answer after that. LATE: we were the ones asleep. */
static bool
child_look_after(struct watchdog *w, struct child *c, bool late)
{
	int64_t now = clock_monotonic_ms();

	if (c->state != CHILD_READY)
		return false;
	if (c->ping == 0) {
		child_ask(w, c);
		return false;
	}
	if (late)
		c->ping_ms = now;
	if (now - c->ping_ms < silence_bound_ms(w->sv))
		return true;
	child_happens(c, CHILD_SILENT);
	return false;
}

void
watchdog_ask(struct supervisor *sv)
{
	struct child *c;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		c = sv->children[role];
		if (c != NULL && c->state == CHILD_READY && c->ping == 0)
			child_ask(sv->watchdog, c);
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry) {
		if (c->state == CHILD_READY && c->ping == 0)
			child_ask(sv->watchdog, c);
	}
	watchdog_wake(sv);
}

/* Does anybody wait for anything? */
static bool
is_busy(struct supervisor *sv)
{
	const struct child *c;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		c = sv->children[role];
		if (c != NULL &&
		    (peer_unanswered(c->peer) > 0 || c->hand_count > 0))
			return true;
	}
	return !TAILQ_EMPTY(&sv->mcpds) || attempts_live(sv) > 0;
}

/*
 * WATCHDOG=1 only if nobody who is ready owes an answer: a ticker that always
 * ticks proves nothing. One that is being restarted has its own deadlines.
 */
static void
watchdog_tick(evutil_socket_t fd, short what, void *arg)
{
	struct watchdog *w = arg;
	struct supervisor *sv = w->sv;
	bool late, busy = is_busy(sv), owed = false;
	struct child *c;
	int role;

	(void)fd;
	(void)what;
	busy |= w->stirred;
	w->stirred = false;
	late = clock_monotonic_ms() - w->tick_ms > 2 * interval_ms(sv);
	w->tick_ms = 0;
	if (!busy && notify_watchdog_ms() == 0)
		return;
	for (role = 0; role < ROLE_COUNT; role++) {
		if (sv->children[role] != NULL)
			owed |= child_look_after(w, sv->children[role], late);
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry)
		(void)child_look_after(w, c, late);
	if (!owed && notify_watchdog_ms() > 0)
		(void)notify_send("WATCHDOG=1\n");
	watchdog_arm(w);
}

void
watchdog_init(struct supervisor *sv)
{
	struct watchdog *w = xcalloc(1, sizeof(*w));

	w->sv = sv;
	w->timer = evtimer_new(sv->base, watchdog_tick, w);
	if (w->timer == NULL)
		fatalx("watchdog: no event");
	sv->watchdog = w;
	if (notify_watchdog_ms() > 0)
		watchdog_arm(w);
}

void
watchdog_end(struct supervisor *sv)
{
	if (sv->watchdog == NULL)
		return;
	event_free(sv->watchdog->timer);
	free(sv->watchdog);
	sv->watchdog = NULL;
}

void
watchdog_wake(struct supervisor *sv)
{
	if (sv->watchdog != NULL && sv->watchdog->tick_ms == 0)
		watchdog_arm(sv->watchdog);
}

void
watchdog_stir(struct supervisor *sv)
{
	if (sv->watchdog != NULL)
		sv->watchdog->stirred = true;
	watchdog_wake(sv);
}

void
watchdog_forget(struct child *c)
{
	if (c->ping != 0)
		peer_forget(c->peer, c->ping);
	c->ping = 0;
}
