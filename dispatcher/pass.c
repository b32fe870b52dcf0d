#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "dispatcher/attempt.h"

/* May a pass start anything at all? */
static bool
pass_may_run(const struct dispatcher *d)
{
	return d->recovered && !d->stopping && d->role.config != NULL &&
	    d->role.config->readable;
}

static int64_t
places_free(const struct dispatcher *d)
{
	return d->role.config->concurrency - attempts_count(d);
}

/*
 * Nothing polls for what the ledger says by itself; the tick is the safety
 * net for a pass that ended in a failure while something was outstanding.
 */
void
pass_later(struct dispatcher *d)
{
	int64_t ms = dispatcher_limit(d, LIMIT_dispatch_tick);
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	(void)event_add(d->tick, &tv);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct dispatcher *d = arg;

	if (d->recovered)
		pass_wanted(d);
	else
		recover_begin(d);
}

void
pass_init(struct dispatcher *d)
{
	d->stranded = -1;
	d->tick = event_new(d->role.base, -1, 0, on_tick, d);
	if (d->tick == NULL)
		fatalx("tick: no event");
}

/* Records that wait under a route which connect.json no longer has. */
static void
note_stranded(struct dispatcher *d, int64_t stranded)
{
	int64_t now = clock_monotonic_ms();

	if (stranded != d->stranded)
		dispatcher_show_count(d, "stranded", stranded);
	if (stranded > 0 &&
	    (d->stranded <= 0 ||
		now - d->stranded_at >=
		    dispatcher_limit(d, LIMIT_stranded_report))) {
		log_warnx("%lld records wait for a route that connect.json "
			  "does not have",
		    (long long)stranded);
		d->stranded_at = now;
	}
	d->stranded = stranded;
}

static void
pass_end(struct dispatcher *d)
{
	d->passing = false;
	if (d->pass_again) {
		d->pass_again = false;
		pass_wanted(d);
	}
}

static void
on_startable(struct peer *peer, struct msg *m, void *arg)
{
	struct dispatcher *d = arg;

	if (m->type == MSG_FAILED) {
		/* A newer configuration is on its way to us, or a fault. */
		pass_later(d);
		pass_end(d);
		return;
	}
	note_stranded(d, m->startable.stranded);
	if (!m->startable.found || !pass_may_run(d) || places_free(d) <= 0) {
		pass_end(d);
		return;
	}
	d->pass_after = m->startable.event_id;
	attempt_start(d, m->startable.event_id);
}

void
pass_goes_on(struct dispatcher *d)
{
	struct msg m = {.type = MSG_NEXT_STARTABLE};

	if (!d->passing)
		return;
	/* Free places are counted anew: a start may have been held. */
	if (!pass_may_run(d) || places_free(d) <= 0) {
		pass_end(d);
		return;
	}
	m.next_startable.after = d->pass_after;
	m.next_startable.generation = d->role.config->generation;
	(void)peer_request(dispatcher_ledger(d), &m, on_startable, d);
}

void
pass_wanted(struct dispatcher *d)
{
	if (!pass_may_run(d))
		return;
	if (d->passing) {
		d->pass_again = true;
		return;
	}
	d->passing = true;
	d->pass_after = 0;
	attempts_join(d);
	pass_goes_on(d);
}
