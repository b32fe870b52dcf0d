#include "tests/unit/model.h"

/* RESOLVE: what a person says became of a message (operator.md 1.12). */

static bool
resolution_is_sound(const struct msg_resolve *r)
{
	return is_in(r->resolution, "sent abandon resend") &&
	    is(r->resolution, "sent") == (r->receipt_id > 0);
}

static bool
resolution_fits(
    struct model *w, const struct msg_resolve *r, const struct model_intent *n)
{
	if (is(r->resolution, "resend") && is(n->state, "canceled"))
		return n->refused;
	return is(n->state, "indeterminate") &&
	    (!is(r->resolution, "sent") ||
		!model_receipt_is_owned(w, n, r->receipt_id));
}

static void
intent_resolve(
    struct model *w, const struct msg_resolve *r, struct model_intent *n)
{
	n->resolved_by = r->by;
	n->finished_at = w->now;
	if (is(r->resolution, "sent")) {
		n->state = "sent";
		n->receipt_id = (struct opt){true, r->receipt_id};
		model_adopt_late(w, n);
	} else if (is(r->resolution, "abandon"))
		n->state = "abandoned";
	else {
		n->state = "pending";
		n->not_before = w->now;
		n->sending_at = n->finished_at = n->reconcile_at = NULL;
		n->failures = 0;
		n->refused = false;
	}
}

MODEL_HANDLER(resolve)
{
	const struct msg_resolve *r = &m->resolve;
	struct model_decision *d = model_decision(w, r->nonce);
	struct model_intent *n = model_intent(w, r->intent_id);

	if (!resolution_is_sound(r) ||
	    (d != NULL &&
		(!is(d->action, "resolve") ||
		    d->intent_id.value != r->intent_id ||
		    !is(d->resolution, r->resolution)))) {
		due_failed(a, "refused");
		return;
	}
	if (n == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (d == NULL) {
		if (!resolution_fits(w, r, n)) {
			due_failed(a, "refused");
			return;
		}
		d = model_decide(w, "resolve", r->nonce, r->by);
		d->intent_id = (struct opt){true, n->id};
		d->event_id = n->event_id;
		d->resolution = r->resolution;
		d->from_state = n->state;
		intent_resolve(w, r, n);
		d->to_state = n->state;
		a->m.resolved.changed = true;
	}
	a->m.resolved.state = n->state;
}
