/*
 * What an earlier dispatcher left (dispatch.md 9): every attempt that has not
 * ended is ended as a tree and settled, or held, before the first pass.
 */
#include "common/log.h"
#include "dispatcher/attempt.h"

static void recover_next(struct dispatcher *d, int64_t after);

/* All that there are, are known; those that end still are waited for. */
static void
recover_end(struct dispatcher *d)
{
	d->recovery_listed = true;
	dispatcher_attempt_over(d);
}

static void
on_live(struct peer *peer, struct msg *m, void *arg)
{
	struct dispatcher *d = arg;

	if (m->type == MSG_FAILED) {
		log_warnx("recovery: %s", m->failed.text);
		d->recovering = false;
		pass_later(d);
		return;
	}
	if (!m->live.found) {
		recover_end(d);
		return;
	}
	log_info("%s was left by an earlier run", m->live.attempt);
	attempt_recover(d, &m->live);
	recover_next(d, m->live.task_id);
}

static void
recover_next(struct dispatcher *d, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_LIVE};

	m.next_live.after_task = after;
	(void)peer_request(dispatcher_ledger(d), &m, on_live, d);
}

void
recover_begin(struct dispatcher *d)
{
	if (d->recovering || d->recovered)
		return;
	d->recovering = true;
	recover_next(d, 0);
}
