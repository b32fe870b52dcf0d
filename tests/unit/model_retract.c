#include "tests/unit/model.h"

/* Asks that were posted and that a person has answered: operator.md 2.6. */

static bool
asks_for(const struct model_intent *n, int64_t event)
{
	const char *ask = model_text("%lld?", (long long)event);

	if (is(n->kind, "holding_reply"))
		return n->event_id.value == event;
	return is(n->kind, "completion") && n->asks != NULL &&
	    is_in(ask, n->asks);
}

static bool
is_retracted(struct model *w, const struct model_intent *n, int64_t event)
{
	for (int i = 0; i < w->intent_count; i++)
		if (w->intents[i].retracts == n->id &&
		    w->intents[i].event_id.value == event)
			return true;
	return false;
}

void
model_retract(struct model *w, const struct model_event *e)
{
	int before = w->intent_count;

	for (int i = 0; i < before; i++) {
		const struct model_intent *n = &w->intents[i];
		struct model_intent *r;

		if (!is_in(n->state, "sent sending") || !asks_for(n, e->id) ||
		    is_retracted(w, n, e->id))
			continue;
		r = model_intent_add(w, "retraction", NULL, n->message_kind,
		    n->bucket_id, n->recording_id, w->now);
		r->event_id = (struct opt){true, e->id};
		r->retracts = n->id;
	}
}

/* Is what N asks still for a person to decide? */
static bool
ask_is_open(
    struct model *w, const struct model_intent *n, const struct model_event *e)
{
	const struct model_row *latest = NULL;

	if (is(n->kind, "holding_reply"))
		return is(e->state, "blocked") &&
		    is(e->reason, n->answers_reason);
	if (is(e->state, "blocked"))
		return is(e->reason, "spawn_failed");
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == e->id &&
		    w->rows[i].withdrawn_at == NULL &&
		    (latest == NULL || w->rows[i].task_id > latest->task_id))
			latest = &w->rows[i];
	return is(e->state, "completed") && e->redispatch_decision == 0 &&
	    latest != NULL && is_in(latest->outcome, "unknown failed");
}

/* Does the retraction R wait, for its message or for its record? */
bool
model_retraction_waits(struct model *w, const struct model_intent *r)
{
	const struct model_intent *n = model_intent(w, r->retracts);
	const struct model_event *e = model_event(w, r->event_id.value);

	return is_in(n->state, "pending sending indeterminate") ||
	    ask_is_open(w, n, e);
}

bool
model_retraction_is_called_for(struct model *w, const struct model_intent *r)
{
	const struct model_intent *n = model_intent(w, r->retracts);

	/* Resent since, it may have been posted without the ask. */
	return is(n->state, "sent") && asks_for(n, r->event_id.value);
}
