#include <string.h>

#include "tests/unit/model.h"

/* Replies linked to outcomes that nobody reported: operator.md 2.8, I12. */

static bool
row_may_adopt(const struct model_row *r)
{
	return is(r->outcome, "unknown") && r->delivered_at != NULL &&
	    !r->reply_id.has && !r->adopted_reply_id.has;
}

/* Its own replies through the ledger: one that may still be posted counts. */
struct own {
	int count, unsettled;
	int64_t receipt; /* of the last, or 0 */
};

static struct own
row_own(const struct model *w, const struct model_row *r)
{
	struct own own = {0};

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];

		if (!is(n->kind, "worker_reply") || is(n->state, "canceled") ||
		    n->task_id.value != r->task_id ||
		    n->event_id.value != r->event_id ||
		    (n->sending_at != NULL &&
			strcmp(n->sending_at, r->delivered_at) <= 0) ||
		    (r->ack_id.has && n->receipt_id.has &&
			r->ack_id.value == n->receipt_id.value))
			continue;
		own.receipt = n->receipt_id.value;
		own.unsettled += own.receipt == 0;
		own.count++;
	}
	return own;
}

/* The worker's own reply through the ledger, if there is just one (L8). */
void
model_adopt_own(struct model *w, struct model_row *r)
{
	struct own own;

	if (!row_may_adopt(r))
		return;
	own = row_own(w, r);
	if (own.count == 1 && own.receipt != 0)
		r->adopted_reply_id = (struct opt){true, own.receipt};
}

/* N was settled, after its event was: is one left now? */
void
model_adopt_late(struct model *w, const struct model_intent *n)
{
	struct model_row *r;

	if (!is(n->kind, "worker_reply"))
		return;
	r = model_row(w, n->task_id.value, n->event_id.value);
	if (r != NULL)
		model_adopt_own(w, r);
}

/* The first acknowledgement of a later event of the same task. */
static const char *
later_ack(struct model *w, const struct model_row *r)
{
	const char *first = "";

	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *o = &w->rows[i];

		if (o->task_id == r->task_id && o->event_id > r->event_id &&
		    o->delivered_at != NULL &&
		    (*first == '\0' || strcmp(o->delivered_at, first) < 0))
			first = o->delivered_at;
	}
	return first;
}

MODEL_HANDLER(adoptable_next)
{
	const struct model_attempt *at =
	    model_attempt(w, m->adoptable_next.attempt);

	for (int i = 0;
	     i < w->event_count && at != NULL && is(at->state, "ended"); i++) {
		const struct model_event *e = &w->events[i];
		const struct model_row *r = model_row(w, at->task_id, e->id);

		if (r == NULL || e->id <= m->adoptable_next.after_event ||
		    !row_may_adopt(r) || row_own(w, r).unsettled != 0 ||
		    !is_in(e->reply_kind, "comment chat_line") ||
		    e->reply_recording_id <= 0)
			continue;
		a->m.adoptable = (struct msg_adoptable){.found = true,
		    .event_id = e->id,
		    .bucket_id = e->bucket_id,
		    .message_kind = e->reply_kind,
		    .recording_id = e->reply_recording_id,
		    .since = r->delivered_at,
		    .before = later_ack(w, r),
		    .ack_id = r->ack_id};
		a->unknown = "own";
		return;
	}
}

/* Is it the connector's own message, or one that answers something else? */
static bool
is_anothers(struct model *w, const struct model_row *r, int64_t receipt)
{
	const struct model_event *e = model_event(w, r->event_id);

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];

		if (n->receipt_id.has && n->receipt_id.value == receipt &&
		    is(n->message_kind, e->reply_kind) &&
		    !(is(n->kind, "worker_reply") &&
			n->task_id.value == r->task_id &&
			n->event_id.value == r->event_id))
			return true;
	}
	return false;
}

MODEL_HANDLER(adopt)
{
	const struct msg_adopt *d = &m->adopt;
	const struct model_attempt *at = model_attempt(w, d->attempt);
	struct model_row *r =
	    at != NULL ? model_row(w, at->task_id, d->event_id) : NULL;

	if (r == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (r->adopted_reply_id.has &&
	    r->adopted_reply_id.value == d->reply_id) {
		due_done(a, false);
		return;
	}
	if (!row_may_adopt(r) || row_own(w, r).unsettled != 0 ||
	    (r->ack_id.has && r->ack_id.value == d->reply_id) ||
	    is_anothers(w, r, d->reply_id)) {
		due_failed(a, "refused");
		return;
	}
	r->adopted_reply_id = (struct opt){true, d->reply_id};
	due_done(a, true);
}
