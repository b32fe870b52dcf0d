#include <string.h>

#include "tests/unit/model.h"

#define LIFECYCLE "guard_ack holding_reply still_running completion retraction"

/* ---- CLAIM: operator.md 1.6, 1.7 ------------------------------------ */

static bool
guard_is_called_for(struct model *w, const struct model_event *e)
{
	if (!e->acknowledge || !is_in(e->state, "admitted queued dispatched"))
		return false;
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == e->id &&
		    (is(w->rows[i].guard, "canceled") ||
			is_in(w->rows[i].delivery, "delivered completed")))
			return false;
	return true;
}

static bool
intent_is_called_for(struct model *w, const struct model_intent *n)
{
	struct model_event *e = model_event(w, n->event_id.value);
	const struct model_attempt *at;

	if (is(n->kind, "guard_ack"))
		return guard_is_called_for(w, e);
	if (is(n->kind, "holding_reply"))
		return is(e->state, "blocked") &&
		    is(e->reason, n->answers_reason);
	if (is(n->kind, "still_running")) {
		at = model_attempt(w, n->attempt_id);
		return !is(at->state, "ended");
	}
	if (is(n->kind, "completion"))
		return *model_notice(w, model_attempt(w, n->attempt_id)) !=
		    '\0';
	if (is(n->kind, "retraction"))
		return model_retraction_is_called_for(w, n);
	return true;
}

/* Does an ask wait, for what comes of the redispatch that it asks for? */
static bool
holding_waits(struct model *w, const struct model_intent *n)
{
	return is(n->kind, "holding_reply") &&
	    model_event(w, n->event_id.value)->is_rerun;
}

/* A hold stops the connector's own messages, not a worker's words (L8). */
static bool
intent_may_go(struct model *w, const struct model_intent *n)
{
	return is(n->state, "pending") && !holding_waits(w, n) &&
	    !(n->retracts != 0 && model_retraction_waits(w, n)) &&
	    (w->hold_count == 0 || !is_in(n->kind, LIFECYCLE));
}

static struct model_intent *
intent_next(struct model *w, int64_t after)
{
	struct model_intent *next = NULL;

	for (int i = 0; i < w->intent_count; i++) {
		struct model_intent *n = &w->intents[i];

		if (n->id > after && intent_may_go(w, n) &&
		    strcmp(n->not_before, w->now) <= 0 &&
		    (next == NULL ||
			strcmp(n->not_before, next->not_before) < 0))
			next = n;
	}
	return next;
}

/* Milliseconds until something may go; absent when nothing may. */
static struct opt
intents_due(struct model *w)
{
	struct opt due = {0};

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];
		int64_t ms;

		if (!intent_may_go(w, n))
			continue;
		ms = model_ms_until(w, n->not_before);
		if (!due.has || ms < due.value)
			due = (struct opt){true, ms};
	}
	return due;
}

static void
intent_send(struct model *w, struct model_intent *n, const char *nonce)
{
	n->state = "sending";
	n->sending_at = w->now;
	n->nonce = nonce;
	w->claims++;
	if (is(n->kind, "completion"))
		n->asks = model_notice(w, model_attempt(w, n->attempt_id));
	if (!is(n->kind, "guard_ack"))
		return;
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == n->event_id.value &&
		    is(w->rows[i].guard, "armed"))
			w->rows[i].guard = "fired";
}

static void
due_claimed(
    struct model *w, const struct model_intent *n, struct model_answer *a)
{
	struct msg_claimed *c = &a->m.claimed;
	struct opt due = intents_due(w);

	if (n != NULL)
		*c = (struct msg_claimed){.found = true,
		    .intent_id = n->id,
		    .kind = n->kind,
		    .message_kind = n->message_kind,
		    .bucket_id = n->bucket_id,
		    .recording_id = n->recording_id,
		    .body = {n->body, n->body != NULL ? strlen(n->body) : 0}};
	if (n != NULL && n->body == NULL)
		a->unknown = "body";
	if (due.has) /* 0 would say that there is none */
		c->due_in_ms = due.value > 0 ? due.value : 1;
}

MODEL_HANDLER(claim)
{
	const struct msg_claim *c = &m->claim;
	struct model_intent *n;

	for (int i = 0; i < w->intent_count; i++)
		if (is(w->intents[i].nonce, c->nonce)) {
			n = &w->intents[i];
			due_claimed(w, is(n->state, "sending") ? n : NULL, a);
			return;
		}
	for (;;) {
		n = intent_next(w, c->after);
		if (n == NULL || intent_is_called_for(w, n))
			break;
		n->state = "canceled";
		n->finished_at = w->now;
	}
	if (n != NULL)
		intent_send(w, n, c->nonce);
	due_claimed(w, n, a);
}

MODEL_HANDLER(next_due)
{
	a->m.due.in_ms = intents_due(w);
}

/* ---- what came of it: ledger.md 3.7 --------------------------------- */

static void
intent_settle(
    struct model *w, struct model_intent *n, const char *state, int64_t receipt)
{
	n->state = state;
	n->finished_at = w->now;
	n->receipt_id = (struct opt){receipt != 0, receipt};
	model_adopt_late(w, n);
}

/* The claim's intent, or its refusal. Is it to be changed still? */
static struct model_intent *
intent_claimed(struct model *w, int64_t id, const char *nonce,
    struct model_answer *a, bool *is_open)
{
	struct model_intent *n = model_intent(w, id);

	if (n == NULL || !is(n->nonce, nonce)) {
		due_failed(a, n == NULL ? "not_found" : "refused");
		return NULL;
	}
	*is_open = is(n->state, "sending");
	return n;
}

bool
model_receipt_is_owned(
    struct model *w, const struct model_intent *n, int64_t receipt)
{
	for (int i = 0; i < w->intent_count; i++)
		if (&w->intents[i] != n && w->intents[i].receipt_id.has &&
		    w->intents[i].receipt_id.value == receipt &&
		    is(w->intents[i].message_kind, n->message_kind))
			return true;
	return false;
}

MODEL_HANDLER(receipt)
{
	const struct msg_receipt *r = &m->receipt;
	bool is_open;
	struct model_intent *n =
	    intent_claimed(w, r->intent_id, r->nonce, a, &is_open);

	if (n == NULL)
		return;
	if (is_open
		? model_receipt_is_owned(w, n, r->receipt_id)
		: n->receipt_id.has && n->receipt_id.value != r->receipt_id) {
		due_failed(a, "refused");
		return;
	}
	if (is_open) {
		intent_settle(w, n, "sent", r->receipt_id);
	}
	a->m.settled.state = n->state;
}

MODEL_HANDLER(refused)
{
	bool is_open;
	struct model_intent *n = intent_claimed(
	    w, m->refused.intent_id, m->refused.nonce, a, &is_open);

	if (n == NULL)
		return;
	if (is_open) {
		intent_settle(w, n, "canceled", 0);
		n->refused = true;
	}
	a->m.settled.state = n->state;
}

MODEL_HANDLER(defer)
{
	const struct msg_defer *d = &m->defer;
	bool is_open;
	struct model_intent *n =
	    intent_claimed(w, d->intent_id, d->nonce, a, &is_open);

	if (n == NULL)
		return;
	if (is_open) {
		n->failures = d->failures;
		n->reconcile_at =
		    model_stamp(w->now_ns + d->delay_ms * 1000000);
	}
	a->m.settled.state = n->state;
}

MODEL_HANDLER(in_doubt)
{
	const struct msg_in_doubt *d = &m->in_doubt;
	bool is_open;
	struct model_intent *n =
	    intent_claimed(w, d->intent_id, d->nonce, a, &is_open);

	if (n == NULL)
		return;
	if (is_open) {
		intent_settle(w, n, "indeterminate", 0);
		n->failures = d->failures;
	}
	a->m.settled.state = n->state;
}

/* ---- LISTED: operator.md 1.8 ---------------------------------------- */

/* Is N a reply to the event of that row, as what was adopted for it may be? */
static bool
is_reply_of(const struct model_intent *n, const struct model_row *r)
{
	return is(n->kind, "worker_reply") && n->task_id.value == r->task_id &&
	    n->event_id.value == r->event_id;
}

/* Did a worker report that message as its own, or is it adopted as that? */
static bool
is_worker_message(struct model *w, const struct model_intent *n, int64_t id)
{
	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *r = &w->rows[i];

		if (r->ack_id.has && r->ack_id.value == id)
			return true;
		if (!is(n->message_kind, "boost") &&
		    ((r->reply_id.has && r->reply_id.value == id) ||
			(r->adopted_reply_id.has && !is_reply_of(n, r) &&
			    r->adopted_reply_id.value == id)))
			return true;
	}
	return false;
}

/* The words of a body, tags aside; those of the ledger's own as they are. */
static const char *
words_of(const struct model_intent *n)
{
	const char *at = n->body;
	char words[256];
	size_t len = 0;

	if (at == NULL)
		return n->read;
	for (; *at != '\0' && len + 1 < sizeof(words); at++) {
		if (*at == '<')
			at = strchr(at, '>');
		else if (*at != ' ' || (len > 0 && words[len - 1] != ' '))
			words[len++] = *at;
	}
	while (len > 0 && words[len - 1] == ' ')
		len--;
	return model_text("%.*s", (int)len, words);
}

static bool
intent_has_rival(struct model *w, const struct model_intent *n)
{
	const char *words = words_of(n);

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *o = &w->intents[i];

		if (o != n && is(o->message_kind, n->message_kind) &&
		    o->recording_id == n->recording_id &&
		    is_in(
			o->state, "pending sending indeterminate abandoned") &&
		    is(words_of(o), words))
			return true;
	}
	return false;
}

MODEL_HANDLER(listed)
{
	const struct msg_listed *l = &m->listed;
	bool is_open;
	struct model_intent *n =
	    intent_claimed(w, l->intent_id, l->nonce, a, &is_open);
	int64_t found = 0;
	int count = 0;

	if (n == NULL)
		return;
	for (size_t i = 0; i < l->candidates.count; i++) {
		int64_t id = l->candidates.list[i];

		if (id == found || model_receipt_is_owned(w, n, id) ||
		    is_worker_message(w, n, id))
			continue;
		found = id;
		count++;
	}
	if (is_open && count == 1 && !intent_has_rival(w, n)) {
		intent_settle(w, n, "sent", found);
	} else if (is_open)
		intent_settle(w, n, "indeterminate", 0);
	a->m.settled.state = n->state;
}

/* ---- NEXT_SENDING --------------------------------------------------- */

static bool
is_to_be_listed(
    const struct model *w, const struct model_intent *n, int64_t age_ms)
{
	const char *youngest = model_stamp(w->now_ns - age_ms * 1000000);

	return is(n->state, "sending") &&
	    strcmp(n->sending_at, youngest) <= 0 &&
	    (n->reconcile_at == NULL || strcmp(n->reconcile_at, w->now) <= 0);
}

#define LOOK_AGAIN_MS 3600000

/* Milliseconds until one of them is old enough and has backed off. */
static struct opt
listing_due(const struct model *w, int64_t age_ms)
{
	struct model then = {.now_ns = w->now_ns - age_ms * 1000000};
	struct opt due = {0};

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];
		int64_t ms, back;

		if (!is(n->state, "sending"))
			continue;
		ms = model_ms_until(&then, n->sending_at);
		back = n->reconcile_at != NULL
		    ? model_ms_until(w, n->reconcile_at)
		    : 0;
		if (back > ms)
			ms = back;
		if (!due.has || ms < due.value)
			due = (struct opt){true, ms};
	}
	if (due.value > LOOK_AGAIN_MS)
		due.value = LOOK_AGAIN_MS;
	return due;
}

MODEL_HANDLER(next_sending)
{
	const struct msg_next_sending *q = &m->next_sending;

	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];

		if (n->id <= q->after ||
		    !is_to_be_listed(w, n, q->least_age_ms))
			continue;
		a->m.sending = (struct msg_sending){.found = true,
		    .intent_id = n->id,
		    .nonce = n->nonce,
		    .kind = n->kind,
		    .message_kind = n->message_kind,
		    .bucket_id = n->bucket_id,
		    .recording_id = n->recording_id,
		    .body = {n->body, n->body != NULL ? strlen(n->body) : 0},
		    .sending_at = n->sending_at,
		    .failures = n->failures};
		a->unknown = n->body == NULL ? "body" : NULL;
		return;
	}
	a->m.sending.in_ms = listing_due(w, q->least_age_ms);
}

/* ---- the credential's renewal: design 4, L1 ------------------------- */

static struct model_renewal *
renewal_find(struct model *w, const char *fingerprint)
{
	for (int i = 0; i < w->renewal_count; i++)
		if (is(w->renewals[i].fingerprint, fingerprint))
			return &w->renewals[i];
	return NULL;
}

MODEL_HANDLER(renewal_hold)
{
	const struct msg_renewal_hold *r = &m->renewal_hold;
	struct model_renewal *h = renewal_find(w, r->fingerprint);
	bool changed = h == NULL
	    ? *r->reason != '\0'
	    : !is(h->reason, r->reason) || !is(h->until, r->until);

	due_done(a, changed);
	if (*r->reason == '\0') {
		if (h != NULL)
			*h = w->renewals[--w->renewal_count];
		return;
	}
	if (h == NULL)
		h = &w->renewals[w->renewal_count++];
	if (changed)
		*h = (struct model_renewal){
		    r->fingerprint, r->reason, r->until, w->now};
}

MODEL_HANDLER(renewal_hold_of)
{
	const struct model_renewal *h =
	    renewal_find(w, m->renewal_hold_of.fingerprint);

	if (h != NULL)
		a->m.renewal_hold_is =
		    (struct msg_renewal_hold_is){true, h->reason, h->until};
}
