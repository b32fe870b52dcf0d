#include "tests/unit/model.h"

/* ---- what a hold makes of the records: ledger.md 3.6 ---------------- */

/* A person must look at it before it runs: tagged, and held if it waits. */
void
model_tag(struct model *w, struct model_event *e)
{
	bool is_over = is_in(e->state, "completed discarded");
	bool was_held = is(e->state, "held");

	if (is_over && e->redispatch_decision == 0)
		return;
	e->redispatch_decision = 0;
	e->authorized_at = NULL;
	e->authorized_by = "";
	if (is_over)
		return;
	e->review = true;
	model_review(w, e);
	if (is(e->state, "held") && !was_held)
		e->updated_at = MODEL_SOME; /* by the trigger's own clock */
}

int64_t
model_tagged(const struct model *w, const char *states)
{
	int64_t count = 0;

	for (int i = 0; i < w->event_count; i++)
		count += w->events[i].review &&
		    w->events[i].authorized_at == NULL &&
		    is_in(w->events[i].state, states);
	return count;
}

/* Of the marker that stands, or else of the one that D was about. */
static void
due_hold(
    struct model *w, const struct model_decision *d, struct model_answer *a)
{
	const struct model_hold *h = w->hold_count > 0 ? w->hold
	    : d != NULL                                ? &d->hold
						       : NULL;

	a->m.hold_is = (struct msg_hold_is){.stands = w->hold_count > 0,
	    .changed = d != NULL,
	    .tagged =
		model_tagged(w, "seen admitted queued blocked held dispatched"),
	    .held = model_tagged(w, "held")};
	if (h == NULL)
		return;
	a->m.hold_is.generation = h->generation;
	a->m.hold_is.cause = h->cause;
	a->m.hold_is.held_by = h->held_by;
	a->m.hold_is.held_at = h->held_at;
}

static struct model_decision *
hold_set(struct model *w, const struct msg_hold *m)
{
	struct model_generation *g = &w->generations[w->generation_count];
	struct model_decision *d;

	*g = (struct model_generation){
	    ++w->generation_count, m->cause, m->by, w->now};
	if (w->hold_count == 0)
		w->hold[0] =
		    (struct model_hold){1, g->id, m->cause, m->by, w->now};
	w->hold[0].generation = g->id;
	w->hold_count = 1;
	for (int i = 0; i < w->event_count; i++)
		model_tag(w, &w->events[i]);
	d = model_decide(w, m->cause, m->nonce, m->by);
	d->hold = w->hold[0];
	return d;
}

MODEL_HANDLER(hold)
{
	const struct msg_hold *h = &m->hold;
	struct model_decision *d = model_decision(w, h->nonce);

	if (!is_in(h->cause, "hold shadow_promote") ||
	    (d != NULL && !is(d->action, h->cause))) {
		due_failed(a, "refused");
		return;
	}
	due_hold(w, d != NULL ? d : hold_set(w, h), a);
}

MODEL_HANDLER(release)
{
	const struct msg_release *r = &m->release;
	struct model_decision *d = model_decision(w, r->nonce);

	if (d != NULL && !is(d->action, "release")) {
		due_failed(a, "refused");
		return;
	}
	if (d == NULL && w->hold_count > 0) {
		d = model_decide(w, "release", r->nonce, r->by);
		d->hold = w->hold[0];
		w->hold_count = 0;
	}
	due_hold(w, d, a);
}
