#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "intake/admission.h"
#include "intake/decide.h"
#include "intake/timer.h"

#define WORKERS_MOST 16

/* A record in hand: being decided, then its verdict on its way. */
struct work {
	struct admission *admission; /* NULL: this place is free */
	int64_t event_id;
	struct decision *decision; /* NULL once decided */
	bool is_blocked;           /* by its verdict, or still */
};

struct admission {
	struct intake *in;
	struct work works[WORKERS_MOST];
	size_t busy;
	int64_t after;   /* the walk: the greatest id taken */
	int64_t offered; /* while asking: the least id that came, -1: none */
	bool is_asking;
	bool is_over; /* the walk's end: nothing more waits above AFTER */
	/* One that was in hand at a death goes alone: it does, or is next. */
	bool is_alone;
	struct event *retry;
};

static void admission_ask(struct admission *a);

/* Begin the walk anew from below EVENT_ID, if it has gone beyond. */
static void
walk_back(struct admission *a, int64_t event_id)
{
	int64_t after = event_id > 0 ? event_id - 1 : 0;

	a->is_over = false;
	if (after < a->after)
		a->after = after;
	/* An answer on its way was given before this. */
	if (a->is_asking && (a->offered == -1 || after < a->offered))
		a->offered = after;
}

static void
retry_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	admission_offer(arg, 0);
}

static bool
is_in_hand(const struct admission *a, int64_t event_id)
{
	size_t i;

	for (i = 0; i < WORKERS_MOST; i++)
		if (a->works[i].admission != NULL &&
		    a->works[i].event_id == event_id)
			return true;
	return false;
}

/* ---- one record --------------------------------------------------------- */

static void
work_end(struct work *w)
{
	struct admission *a = w->admission;

	role_in_hand(a->in->role, w->event_id, false);
	*w = (struct work){0};
	a->busy--;
	admission_ask(a);
}

static void
verdict_answered(struct peer *ledger, struct msg *reply, void *arg)
{
	struct work *w = arg;
	struct admission *a = w->admission;

	(void)ledger;
	if (reply->type == MSG_FAILED)
		/* It stays undecided and comes again with the next walk. */
		log_warnx("event %" PRId64 ": verdict refused: %s", w->event_id,
		    log_safe(reply->failed.text));
	else
		backlog_told(&a->in->backlog, reply->verdict_is.depth);
	if (reply->type != MSG_FAILED && !reply->verdict_is.applied) {
		log_debug(
		    "event %" PRId64 ": was decided already", w->event_id);
		/* Or a person wants it decided anew, from what is so now. */
		w->is_blocked |=
		    strcmp(reply->verdict_is.state, "blocked") == 0;
	}
	/* When it is tried again is told at the end of a walk. */
	if (w->is_blocked)
		walk_back(a, w->event_id);
	work_end(w);
}

static void
decision_done(const struct pointer *p, const struct policy *policy,
    const struct verdict *v, void *arg)
{
	struct msg m = {.type = MSG_VERDICT};
	struct verdict_stamps stamps;
	struct work *w = arg;

	w->decision = NULL;
	w->is_blocked = v->state == VERDICT_BLOCKED;
	verdict_fill(v, p, policy->config->limits, &stamps, &m.verdict);
	(void)peer_request(w->admission->in->ledger, &m, verdict_answered, w);
}

static struct work *
work_free_place(struct admission *a)
{
	size_t i;

	for (i = 0; a->works[i].admission != NULL; i++)
		;
	return &a->works[i];
}

static void
work_begin(struct admission *a, const struct msg_undecided *u)
{
	struct work *w = work_free_place(a);
	struct pointer p = {
	    .event_id = u->event_id,
	    .revision = u->revision,
	    .rerun = u->rerun,
	    .event_type = u->event_type,
	    .bucket_id = u->bucket_id,
	    .recording_id = u->recording_id,
	    .creator_id = u->creator_id,
	    .performed_by_id = u->performed_by_id,
	    .actor_type = u->actor_type,
	};

	if (clock_parse(u->seen_at, &p.seen_at_ns) == -1)
		p.seen_at_ns = clock_wall_ns();
	(void)snprintf(p.blocked_for, sizeof(p.blocked_for), "%s", u->reason);
	if (clock_parse(u->retry_since, &p.blocked_since_ns) == -1)
		p.blocked_for[0] = '\0';
	w->admission = a;
	w->event_id = u->event_id;
	role_in_hand(a->in->role, w->event_id, true);
	a->busy++;
	w->decision = decision_start(
	    &a->in->api, a->in->lists, a->in->policy, &p, decision_done, w);
}

/* ---- the walk ----------------------------------------------------------- */

/* A suspect waits for the hands to be empty, and is asked for again then. */
static void
walk_takes(struct admission *a, const struct msg_undecided *u)
{
	bool in_hand = is_in_hand(a, u->event_id);

	a->is_alone = u->suspect && !in_hand;
	if (a->is_alone && a->busy > 0)
		return;
	a->after = u->event_id;
	if (!in_hand)
		work_begin(a, u);
}

static void
walk_ended(struct admission *a, int64_t retry_in_ms)
{
	a->is_over = true;
	if (retry_in_ms > 0)
		timer_start(a->retry, retry_in_ms);
}

static void
undecided_came(struct peer *ledger, struct msg *reply, void *arg)
{
	const struct msg_undecided *u = &reply->undecided;
	struct admission *a = arg;

	(void)ledger;
	a->is_asking = false;
	if (reply->type == MSG_FAILED) {
		log_warnx(
		    "undecided records: %s", log_safe(reply->failed.reason));
		a->is_over = true;
		return;
	}
	backlog_told(&a->in->backlog, u->depth);
	if (u->found) {
		walk_takes(a, u);
	} else if (a->offered == -1) {
		walk_ended(a, u->retry_in_ms);
	}
	if (a->offered != -1) {
		a->after = a->offered < a->after ? a->offered : a->after;
		a->offered = -1;
	}
	admission_ask(a);
}

/* With a hand free, and no answer on its way: the next one. */
static void
admission_ask(struct admission *a)
{
	struct msg m = {.type = MSG_NEXT_UNDECIDED};
	size_t workers;

	if (a->in->policy == NULL || a->is_over || a->is_asking ||
	    (a->is_alone && a->busy > 0))
		return;
	workers =
	    (size_t)a->in->policy->config->limits[LIMIT_admission_workers];
	if (a->busy >= workers || a->busy >= WORKERS_MOST)
		return;
	a->is_asking = true;
	m.next_undecided.after = a->after;
	(void)peer_request(a->in->ledger, &m, undecided_came, a);
}

struct admission *
admission_new(struct intake *in)
{
	struct admission *a = xcalloc(1, sizeof(*a));

	a->in = in;
	a->offered = -1;
	a->is_over = true;
	a->retry = timer_new(in->role->base, retry_due, a);
	return a;
}

void
admission_configure(struct admission *a)
{
	admission_offer(a, 0);
}

void
admission_offer(struct admission *a, int64_t event_id)
{
	walk_back(a, event_id);
	admission_ask(a);
}

void
admission_stop(struct admission *a)
{
	size_t i;

	a->is_over = true;
	for (i = 0; i < WORKERS_MOST; i++) {
		if (a->works[i].decision == NULL)
			continue;
		decision_cancel(a->works[i].decision);
		a->works[i] = (struct work){0};
		a->busy--;
	}
}
