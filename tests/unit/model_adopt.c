#include <string.h>

#include "common/buffer.h"
#include "common/digest.h"
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

/* A message at the event's place that is no reply of the row's own. */
static bool
is_others(const struct model_intent *n, const struct model_row *r,
    const struct model_event *e)
{
	return is(n->message_kind, e->reply_kind) &&
	    n->recording_id == e->reply_recording_id &&
	    !(is(n->kind, "worker_reply") && n->task_id.value == r->task_id &&
		n->event_id.value == r->event_id);
}

static void
json_add(struct buffer *b, const char *text)
{
	buffer_add_char(b, '"');
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			buffer_add_text(b, "\\n");
		else if (*text == '"' || *text == '\\')
			buffer_printf(b, "\\%c", *text);
		else
			buffer_add_char(b, *text);
	}
	buffer_add_char(b, '"');
}

/* The bodies of those up to AS_OF, the newest first. */
static const char *
others_words(const struct model *w, const struct model_row *r,
    const struct model_event *e, int64_t as_of)
{
	struct buffer b = {0};
	const char *words;

	buffer_add_char(&b, '[');
	for (int i = w->intent_count - 1; i >= 0; i--) {
		const struct model_intent *n = &w->intents[i];

		if (n->id > as_of || !is_others(n, r, e))
			continue;
		if (b.len > 1)
			buffer_add_char(&b, ',');
		json_add(&b, n->body != NULL ? n->body : n->read);
	}
	words = model_text("%s]", b.bytes);
	buffer_free(&b);
	return words;
}

static const char *
digest_of(const char *words)
{
	char hex[DIGEST_HEX_SIZE];

	digest_sha256_hex(words, strlen(words), hex);
	return model_text("%s", hex);
}

/*
 * Could one of ours be what was found? One that was written since it was told
 * what to leave out, or that says something else than it did then.
 */
static bool
may_be_ours(const struct model *w, const struct model_row *r,
    const struct model_event *e, const struct msg_adopt *d)
{
	for (int i = 0; i < w->intent_count; i++) {
		const struct model_intent *n = &w->intents[i];

		if (n->id > d->as_of && is_others(n, r, e) &&
		    !n->receipt_id.has)
			return true;
	}
	return !is(digest_of(others_words(w, r, e, d->as_of)), d->words);
}

MODEL_HANDLER(adoptable_next)
{
	const struct model_attempt *at =
	    model_attempt(w, m->adoptable_next.attempt);

	a->m.adoptable.as_of = w->intent_count;
	for (int i = 0;
	     i < w->event_count && at != NULL && is(at->state, "ended"); i++) {
		const struct model_event *e = &w->events[i];
		const struct model_row *r = model_row(w, at->task_id, e->id);
		const char *own;

		if (r == NULL || e->id <= m->adoptable_next.after_event ||
		    !row_may_adopt(r) || row_own(w, r).unsettled != 0 ||
		    !is_in(e->reply_kind, "comment chat_line") ||
		    e->reply_recording_id <= 0)
			continue;
		own = others_words(w, r, e, w->intent_count);
		w->told = (struct model_told){
		    at->id, e->id, w->intent_count, digest_of(own)};
		a->m.adoptable = (struct msg_adoptable){.found = true,
		    .event_id = e->id,
		    .bucket_id = e->bucket_id,
		    .message_kind = e->reply_kind,
		    .recording_id = e->reply_recording_id,
		    .since = r->delivered_at,
		    .before = later_ack(w, r),
		    .ack_id = r->ack_id,
		    .own = {own, strlen(own)},
		    .as_of = w->told.as_of,
		    .words = w->told.words};
		return;
	}
}

static bool
is_that(struct opt id, int64_t message)
{
	return id.has && id.value == message;
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
	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *o = &w->rows[i];

		if (o != r &&
		    (is_that(o->ack_id, receipt) ||
			is_that(o->reply_id, receipt) ||
			is_that(o->adopted_reply_id, receipt)))
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
	if (is_that(r->adopted_reply_id, d->reply_id)) {
		due_done(a, false);
		return;
	}
	if (!row_may_adopt(r) || row_own(w, r).unsettled != 0 ||
	    is_that(r->ack_id, d->reply_id) || is_anothers(w, r, d->reply_id) ||
	    may_be_ours(w, r, model_event(w, r->event_id), d)) {
		due_failed(a, "refused");
		return;
	}
	r->adopted_reply_id = (struct opt){true, d->reply_id};
	due_done(a, true);
}
