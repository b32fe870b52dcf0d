#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "dispatcher/attempt.h"
#include "dispatcher/profile.h"

static struct dispatcher dispatcher;

struct peer *
dispatcher_ledger(struct dispatcher *d)
{
	return role_peer(&d->role, ROLE_LEDGER, "");
}

struct peer *
dispatcher_supervisor(struct dispatcher *d)
{
	return d->role.supervisor;
}

struct peer *
dispatcher_outbox(struct dispatcher *d)
{
	return role_peer(&d->role, ROLE_OUTBOX, "");
}

int64_t
dispatcher_limit(const struct dispatcher *d, enum limit limit)
{
	return d->role.config == NULL ? limit_rows[limit].normal
				      : d->role.config->limits[limit];
}

void
dispatcher_show_count(struct dispatcher *d, const char *name, int64_t count)
{
	if (count == 0)
		role_state(&d->role, name, "%s", "");
	else
		role_state(&d->role, name, "%lld", (long long)count);
}

void
dispatcher_attempt_gone(struct dispatcher *d)
{
	struct msg recovered = {.type = MSG_RECOVERED};
	int64_t held = attempts_held(d);

	dispatcher_show_count(d, "held", held);
	if (d->recovery_listed && attempts_count(d) == held) {
		d->recovery_listed = d->recovering = false;
		d->recovered = true;
		peer_notice(dispatcher_supervisor(d), &recovered);
	}
	if (d->stopping && (d->recovered || !d->recovers_first) &&
	    attempts_count(d) == held)
		role_exit(&d->role, 0);
}

void
dispatcher_attempt_over(struct dispatcher *d)
{
	dispatcher_attempt_gone(d);
	pass_wanted(d);
}

/* ---- the ledger ---------------------------------------------------------- */

static void
on_work_waits(struct peer *peer, struct msg *m, void *arg)
{
	msg_free(m);
	pass_wanted(arg);
}

static void
on_superseded(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_find(arg, m->superseded.attempt);

	msg_free(m);
	if (a != NULL)
		attempt_event(a, EV_SUPERSEDED);
}

/* One that recovery has not come to yet it will not find any more. */
static void
on_attempt_over(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_find(arg, m->attempt_over.attempt);

	if (a != NULL)
		attempt_event(a, EV_OVER);
	else
		adopt_begin(arg, m->attempt_over.attempt);
	msg_free(m);
}

/* Notices to the link before are lost: ask. */
static void
on_ledger_linked(struct peer *peer, void *arg)
{
	struct dispatcher *d = arg;

	if (d->recovered || attempts_held(d) > 0)
		decisions_look(d);
	pass_wanted(d);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_WORK_WAITS] = on_work_waits,
    [MSG_SUPERSEDED] = on_superseded,
    [MSG_ATTEMPT_OVER] = on_attempt_over,
};

static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = on_ledger_linked,
};

/* ---- the outbox ---------------------------------------------------------- */

/* Messages are settled: now the attempts, and only then anything new. */
static void
on_started(struct peer *peer, struct msg *m, void *arg)
{
	struct dispatcher *d = arg;

	msg_free(m);
	d->outbox_started = true;
	recover_begin(d);
}

static const peer_handler outbox_handlers[MSG_COUNT] = {
    [MSG_STARTED] = on_started,
};

static const struct peer_ops outbox_ops = {.handlers = outbox_handlers};

/* An outbox that cannot even start must not stop the work for ever. */
static void
on_outbox_late(evutil_socket_t fd, short what, void *arg)
{
	struct dispatcher *d = arg;

	if (!d->outbox_started)
		log_warnx("the outbox has not settled its messages in time");
	recover_begin(d);
}

/* ---- the supervisor ------------------------------------------------------ */

static void
on_worker_exited(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_find(arg, m->worker_exited.attempt);

	if (a != NULL)
		attempt_worker_exited(a, &m->worker_exited);
	msg_free(m);
}

static void
on_mcpd_exited(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_find(arg, m->mcpd_exited.attempt);

	if (a != NULL)
		attempt_mcpd_lost(a);
	msg_free(m);
}

static void
on_containment(struct peer *peer, struct msg *m, void *arg)
{
	struct dispatcher *d = arg;

	(void)snprintf(
	    d->containment, sizeof(d->containment), "%s", m->containment.base);
	msg_free(m);
}

static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_WORKER_EXITED] = on_worker_exited,
    [MSG_MCPD_EXITED] = on_mcpd_exited,
    [MSG_CONTAINMENT] = on_containment,
};

static const struct peer_ops supervisor_ops = {.handlers = supervisor_handlers};

/* ---- the row ------------------------------------------------------------- */

/* The first one says how long the outbox is waited for. */
static void
on_configured(struct role *role)
{
	struct dispatcher *d = role->arg;
	int64_t ms = dispatcher_limit(d, LIMIT_outbox_start);
	struct timeval late = {ms / 1000, ms % 1000 * 1000};

	if (!d->outbox_awaited &&
	    event_base_once(
		role->base, -1, EV_TIMEOUT, on_outbox_late, d, &late) == -1)
		fatalx("no timer");
	d->outbox_awaited = true;
	attempts_configured(d);
	pass_wanted(d);
}

/*
 * Nothing starts any more; every turn is interrupted and settled. What an
 * earlier dispatcher left, which may have died in this very stop, is settled
 * too, without waiting for the outbox, if a ledger is there to say what.
 */
static void
on_stop(struct role *role, int64_t bound_ms)
{
	struct dispatcher *d = role->arg;

	dispatcher_stop_by(d, bound_ms);
	attempts_shutdown(d);
	if (peer_is_linked(dispatcher_ledger(d))) {
		d->recovers_first = true;
		recover_begin(d);
	}
	dispatcher_attempt_over(d);
}

static const struct role_row dispatcher_row = {
    .role = ROLE_DISPATCHER,
    .title = "connectd-dispatcher",
    .nofile = 1024,
    .writes_files = true,
    .sandbox = &dispatcher_profile,
    .peers = {[ROLE_SUPERVISOR] = &supervisor_ops,
	[ROLE_LEDGER] = &ledger_ops,
	[ROLE_OUTBOX] = &outbox_ops},
    .configured = on_configured,
    .stop = on_stop,
};

int
main(void)
{
	struct dispatcher *d = &dispatcher;

	LIST_INIT(&d->attempts);
	role_start(&d->role, &dispatcher_row, d);
	pass_init(d);
	role_ready(&d->role);
	role_run(&d->role);
}
