#include <stdio.h>
#include <string.h>

#include "tests/unit/model.h"

/* ---- decisions ------------------------------------------------------ */

struct model_decision *
model_decision(struct model *w, const char *nonce)
{
	for (int i = 0; i < w->decision_count; i++)
		if (is(w->decisions[i].nonce, nonce))
			return &w->decisions[i];
	return NULL;
}

struct model_decision *
model_decide(
    struct model *w, const char *action, const char *nonce, const char *by)
{
	struct model_decision *d = &w->decisions[w->decision_count];

	*d = (struct model_decision){.id = ++w->decision_count,
	    .nonce = nonce,
	    .action = action,
	    .decided_by = by,
	    .decided_at = w->now,
	    .from_state = "",
	    .from_reason = "",
	    .from_outcome = "",
	    .to_state = ""};
	return d;
}

static const char *
later(const char *a, const char *b)
{
	return b != NULL && strcmp(b, a) > 0 ? b : a;
}

/* The newest row of E that was not taken back, or NULL. */
static struct model_row *
row_latest(struct model *w, const struct model_event *e)
{
	struct model_row *latest = NULL;

	for (int i = 0; i < w->row_count; i++) {
		struct model_row *r = &w->rows[i];

		if (r->event_id == e->id && r->withdrawn_at == NULL &&
		    (latest == NULL || r->task_id > latest->task_id))
			latest = r;
	}
	return latest;
}

static const char *
outcome_of(struct model *w, const struct model_event *e)
{
	const struct model_row *r = row_latest(w, e);

	return r != NULL ? r->outcome : "";
}

struct model_decision *
model_decide_event(struct model *w, const char *action, const char *nonce,
    const char *by, const struct model_event *e)
{
	struct model_decision *d = model_decide(w, action, nonce, by);
	const struct model_row *r = row_latest(w, e);

	if (r != NULL) /* never before the outcome it decides: T64 */
		d->decided_at = later(w->now, r->completed_at);
	d->event_id = (struct opt){true, e->id};
	d->from_state = e->state;
	d->from_reason = e->reason;
	d->from_outcome = outcome_of(w, e);
	return d;
}

static void
due_decided(
    struct model *w, const struct model_decision *d, struct model_answer *a)
{
	const struct model_event *e = model_event(w, d->event_id.value);
	const struct model_attempt *at;

	a->m.decided = (struct msg_decided){.decision_id = d->id,
	    .from_state = d->from_state,
	    .from_reason = d->from_reason,
	    .from_outcome = d->from_outcome,
	    .state = e->state,
	    .pending = e->redispatch_decision == d->id,
	    .rerun = is(d->to_state, "blocked"),
	    .held = w->hold_count > 0,
	    .superseded_task_id = d->superseded_task_id.value,
	    .canceled = d->canceled};
	if (!d->superseded_task_id.has)
		return;
	at = &w->attempts[d->superseded_task_id.value - 1];
	if (!is(at->state, "ended"))
		a->m.decided.attempt = at->id;
}

/* ---- redispatches that wait for a task's end: ledger.md 2, tasks ---- */

void
model_redispatch_waiting(struct model *w, const struct model_task *t)
{
	for (int i = 0; i < w->row_count; i++) {
		struct model_event *e;

		if (w->rows[i].task_id != t->id)
			continue;
		e = model_event(w, w->rows[i].event_id);
		if (!is(e->state, "completed") || e->redispatch_decision == 0 ||
		    e->content_dropped || e->snapshot == NULL)
			continue;
		e->redispatch_decision = 0;
		model_move(w, e, "admitted", "");
	}
}

/* ---- REDISPATCH: operator.md 3.3 ------------------------------------ */

/* As LAUNCH would judge it now: the route is still its project's. */
static bool
event_can_run(const struct model *w, const struct model_event *e)
{
	return !e->content_dropped && e->snapshot != NULL && e->routed &&
	    *e->conversation_key != '\0' &&
	    is(e->route, model_route(w, e->bucket_id));
}

static struct model_decision *
redispatch_completed(
    struct model *w, const struct msg_redispatch *m, struct model_event *e)
{
	struct model_row *r = row_latest(w, e);
	struct model_decision *d;
	struct model_task *t;

	if (r == NULL || !is_in(r->outcome, "unknown failed") ||
	    e->redispatch_decision != 0 || !event_can_run(w, e))
		return NULL;
	d = model_decide_event(w, "redispatch", m->nonce, m->by, e);
	t = model_task(w, r->task_id);
	/* What it waits for is named, also when another has superseded it. */
	if (t->superseded_at == NULL || t->ended_at == NULL)
		d->superseded_task_id = (struct opt){true, t->id};
	if (t->superseded_at == NULL)
		model_supersede(w, t);
	e->authorized_at = d->decided_at;
	e->authorized_by = m->by;
	if (t->ended_at != NULL)
		model_move(w, e, "admitted", "");
	else
		e->redispatch_decision = d->id;
	return d;
}

static struct model_decision *
redispatch_held(
    struct model *w, const struct msg_redispatch *m, struct model_event *e)
{
	struct model_decision *d =
	    model_decide_event(w, "redispatch", m->nonce, m->by, e);
	bool runs = *e->reason == '\0' && event_can_run(w, e);

	e->authorized_at = d->decided_at;
	e->authorized_by = m->by;
	if (runs)
		model_move(
		    w, e, model_is_live(w, e) ? "queued" : "admitted", "");
	else {
		model_move(w, e, "blocked",
		    *e->reason != '\0' ? e->reason : "held_incomplete");
		e->next_retry_at = w->now;
		e->is_rerun = true;
	}
	return d;
}

static struct model_decision *
redispatch_blocked(
    struct model *w, const struct msg_redispatch *m, struct model_event *e)
{
	struct model_decision *d =
	    model_decide_event(w, "redispatch", m->nonce, m->by, e);

	e->quarantine = 0; /* deaths are counted anew */
	e->authorized_at = later(w->now, e->blocked_at);
	e->authorized_by = m->by;
	e->next_retry_at = w->now;
	e->is_rerun = true;
	return d;
}

/* Is the nonce that of another decision than this one about E? */
static bool
is_another(const struct model_decision *d, const char *action, int64_t event)
{
	return !is(d->action, action) || d->event_id.value != event;
}

MODEL_HANDLER(redispatch)
{
	const struct msg_redispatch *r = &m->redispatch;
	struct model_decision *d = model_decision(w, r->nonce);
	struct model_event *e = model_event(w, r->event_id);

	if (d == NULL && e == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (d == NULL) {
		d = is(e->state, "completed") ? redispatch_completed(w, r, e)
		    : is(e->state, "held")    ? redispatch_held(w, r, e)
		    : is(e->state, "blocked") ? redispatch_blocked(w, r, e)
					      : NULL;
		if (d == NULL) {
			due_failed(a, "refused");
			return;
		}
		d->to_state = e->state;
		d->canceled =
		    model_intent_cancel(w, e->id, "worker_ack worker_reply");
		model_retract(w, e);
	} else if (is_another(d, "redispatch", r->event_id)) {
		due_failed(a, "refused");
		return;
	}
	due_decided(w, d, a);
}

/* ---- DISCARD: operator.md 3.4
 * ------------------------------------------------ */

static bool
event_can_close(struct model *w, const struct model_event *e)
{
	const struct model_row *r = row_latest(w, e);

	return is_in(e->state, "held blocked") ||
	    (is(e->state, "completed") && r != NULL &&
		is(r->outcome, "unknown"));
}

static struct model_decision *
discard_event(
    struct model *w, const struct msg_discard *m, struct model_event *e)
{
	struct model_decision *d =
	    model_decide_event(w, "discard", m->nonce, m->by, e);

	e->redispatch_decision = 0;
	d->canceled = model_intent_cancel(
	    w, e->id, "guard_ack holding_reply worker_ack worker_reply");
	model_move(w, e, "discarded", "by_operator");
	d->to_state = e->state;
	model_retract(w, e);
	return d;
}

MODEL_HANDLER(discard)
{
	const struct msg_discard *c = &m->discard;
	struct model_decision *d = model_decision(w, c->nonce);
	struct model_event *e = model_event(w, c->event_id);

	if (d != NULL && is_another(d, "discard", c->event_id)) {
		due_failed(a, "refused");
		return;
	}
	if (e == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (d == NULL && is(e->state, "discarded") &&
	    is(e->reason, "by_operator")) {
		a->m.decided = (struct msg_decided){.from_state = e->state,
		    .from_reason = e->reason,
		    .from_outcome = outcome_of(w, e),
		    .state = e->state,
		    .already = true,
		    .held = w->hold_count > 0};
		return;
	}
	if (d == NULL && !event_can_close(w, e)) {
		due_failed(a, "refused");
		return;
	}
	if (d == NULL)
		d = discard_event(w, c, e);
	due_decided(w, d, a);
}
