#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/model.h"

#define LINKS_MOST 20
#define LINK_MOST 2048
#define POSTS_MOST 20

/* ---- the token: ledger.md 6.5, I3 ----------------------------------- */

/* The task whose current token it is and whose link it came by, or NULL. */
static struct model_task *
task_of_token(struct model *w, const char *token, const char *attempt,
    struct model_answer *a)
{
	for (int i = 0; i < w->task_count; i++)
		if (is(w->tasks[i].token, token) &&
		    w->tasks[i].superseded_at == NULL &&
		    is(w->attempts[i].id, attempt))
			return &w->tasks[i];
	due_failed(a, "task_token_refused");
	return NULL;
}

MODEL_HANDLER(bind)
{
	const struct model_task *t =
	    task_of_token(w, m->bind.token, attempt, a);

	if (t == NULL)
		return;
	a->m.bound.task_id = t->id;
	a->m.bound.agent_id = w->agent_id;
	a->m.bound.attempt = w->attempts[t->id - 1].id;
}

MODEL_HANDLER(check_token)
{
	(void)task_of_token(w, m->check_token.token, attempt, a);
}

/* The event's row on the token's task, or the refusal. */
static struct model_row *
row_of_token(struct model *w, const char *token, int64_t event,
    const char *attempt, struct model_answer *a)
{
	const struct model_task *t = task_of_token(w, token, attempt, a);
	struct model_row *r;

	if (t == NULL)
		return NULL;
	r = model_row(w, t->id, event);
	if (r != NULL && r->retired_at == NULL)
		return r;
	due_failed(a, "not_on_task");
	return NULL;
}

/* The same, and the worker has pulled it: I7. */
static struct model_row *
row_pulled(struct model *w, const char *token, int64_t event,
    const char *attempt, struct model_answer *a)
{
	struct model_row *r = row_of_token(w, token, event, attempt, a);

	if (r != NULL && r->pulled_at == NULL) {
		due_failed(a, "not_exposed");
		return NULL;
	}
	return r;
}

/* ---- GET_DISPATCH: ledger.md 3.4, 6.3 ------------------------------- */

static bool
row_is_servable(struct model *w, const struct model_row *r)
{
	const struct model_event *e = model_event(w, r->event_id);

	return (is(e->state, "dispatched") ||
		   (is(e->state, "completed") && r->pulled_at != NULL)) &&
	    !e->content_dropped && e->snapshot != NULL;
}

static struct model_row *
row_earliest(struct model *w, const struct model_task *t)
{
	struct model_row *first = NULL;

	for (int i = 0; i < w->row_count; i++) {
		struct model_row *r = &w->rows[i];

		if (r->task_id == t->id && r->retired_at == NULL &&
		    is_in(r->delivery, "admitted exposed") &&
		    row_is_servable(w, r) &&
		    (first == NULL || r->event_id < first->event_id))
			first = r;
	}
	return first;
}

static void
row_pull(struct model *w, struct model_row *r)
{
	if (is(r->delivery, "admitted")) {
		r->delivery = "exposed";
		r->exposed_at = w->now;
	}
	r->pulled_at = w->now;
	if (is(r->guard, "armed")) {
		r->guard = "canceled";
		(void)model_intent_cancel(w, r->event_id, "guard_ack");
	}
}

static void
due_instruction(
    struct model *w, const struct model_row *r, struct msg_instruction *out)
{
	const struct model_event *e = model_event(w, r->event_id);

	*out = (struct msg_instruction){.found = true,
	    .event_id = e->id,
	    .event_type = e->event_type,
	    .trigger = e->trigger_name,
	    .class = e->class,
	    .bucket_id = e->bucket_id,
	    .recording_id = e->recording_id,
	    .recording_url = e->recording_url,
	    .reply_kind = e->reply_kind,
	    .reply_recording_id = e->reply_recording_id,
	    .requester_id = e->requester_id,
	    .acknowledge = e->acknowledge,
	    .guard_acknowledged = is(r->guard, "fired"),
	    .delivery = r->delivery,
	    .snapshot = {e->snapshot, strlen(e->snapshot)}};
}

MODEL_HANDLER(get_dispatch)
{
	const struct msg_get_dispatch *g = &m->get_dispatch;
	struct model_task *t = task_of_token(w, g->token, attempt, a);
	struct model_row *r;

	if (t == NULL)
		return;
	if (g->event_id == 0) {
		r = row_earliest(w, t);
		if (r == NULL)
			return;
	} else {
		r = row_of_token(w, g->token, g->event_id, attempt, a);
		if (r == NULL)
			return;
		if (!row_is_servable(w, r)) {
			due_failed(a, "not_dispatchable");
			return;
		}
	}
	if (r->pulled_at == NULL) {
		if (w->hold_count > 0) {
			due_failed(a, "held");
			return;
		}
		row_pull(w, r);
	}
	due_instruction(w, r, &a->m.instruction);
}

/* ---- reports: ledger.md 6.3 ----------------------------------------- */

static void
due_report(const struct model_row *r, struct msg_report_is *out)
{
	*out = (struct msg_report_is){.event_id = r->event_id,
	    .delivery = r->delivery,
	    .ack_id = r->ack_id,
	    .outcome = r->outcome,
	    .reply_id = r->reply_id};
	if (!is(r->links, "[]"))
		out->links = (struct blob){r->links, strlen(r->links)};
}

MODEL_HANDLER(ack_dispatch)
{
	const struct msg_ack_dispatch *k = &m->ack_dispatch;
	struct model_row *r = row_pulled(w, k->token, k->event_id, attempt, a);
	bool is_open;

	if (r == NULL)
		return;
	is_open = is(r->delivery, "exposed");
	if (k->ack_id.has &&
	    (r->ack_id.has ? r->ack_id.value != k->ack_id.value : !is_open)) {
		due_failed(a, "report_conflict");
		return;
	}
	if (is_open) {
		r->delivery = "delivered";
		r->delivered_at = w->now;
		if (k->ack_id.has)
			r->ack_id = k->ack_id;
	}
	due_report(r, &a->m.report_is);
}

static bool
link_is_sound(const char *link, size_t len)
{
	size_t scheme;

	if (len > LINK_MOST)
		return false;
	if (strncasecmp(link, "http://", 7) == 0)
		scheme = 7;
	else if (strncasecmp(link, "https://", 8) == 0)
		scheme = 8;
	else
		return false;
	return len > scheme && strchr("/?#:", link[scheme]) == NULL;
}

/* The array as it is to be stored, or NULL when one of them is not sound. */
static const char *
links_of(const struct blob *b)
{
	json_t *array, *item;
	const char *out = NULL;
	char *text;
	size_t i;

	if (b->len == 0)
		return "[]";
	array = json_loadb(b->bytes, b->len, 0, NULL);
	if (!json_is_array(array) || json_array_size(array) > LINKS_MOST)
		goto done;
	json_array_foreach (array, i, item)
		if (!json_is_string(item) ||
		    !link_is_sound(
			json_string_value(item), json_string_length(item)))
			goto done;
	text = json_dumps(array, JSON_COMPACT);
	out = model_text("%s", text);
	free(text);
done:
	json_decref(array);
	return out;
}

MODEL_HANDLER(complete_dispatch)
{
	const struct msg_complete_dispatch *c = &m->complete_dispatch;
	struct model_row *r = row_pulled(w, c->token, c->event_id, attempt, a);
	struct model_event *e;
	const char *links;

	if (r == NULL)
		return;
	links = links_of(&c->links);
	if (!is_in(c->outcome, "succeeded failed") || links == NULL) {
		due_failed(a, "invalid_report");
		return;
	}
	if (!is(r->delivery, "completed")) {
		if (r->delivered_at == NULL)
			r->delivered_at = w->now;
		r->delivery = "completed";
		r->completed_at = w->now;
		r->outcome = c->outcome;
		r->links = links;
		r->reply_id = c->reply_id;
		e = model_event(w, r->event_id);
		if (is(e->state, "dispatched"))
			model_move(w, e, "completed", "");
	} else if (!is(r->outcome, c->outcome) || !is(r->links, links) ||
	    r->reply_id.has != c->reply_id.has ||
	    r->reply_id.value != c->reply_id.value) {
		due_failed(a, "report_conflict");
		return;
	}
	due_report(r, &a->m.report_is);
}

/* ---- POST: design L8 ------------------------------------------------ */

static struct model_intent *
post_find(struct model *w, int64_t task, const struct msg_post *p, int *count)
{
	*count = 0;
	for (int i = 0; i < w->intent_count; i++) {
		struct model_intent *n = &w->intents[i];

		if (!is(n->kind, p->kind) || n->task_id.value != task ||
		    n->event_id.value != p->event_id)
			continue;
		++*count;
		if (is(n->hash, p->hash))
			return n;
	}
	return NULL;
}

static struct model_intent *
post_add(struct model *w, const struct msg_post *p, int64_t task,
    struct model_answer *a)
{
	const struct model_event *e = model_event(w, p->event_id);
	bool is_ack = is(p->kind, "worker_ack");
	const char *where = is_ack ? "boost" : e->reply_kind;
	const struct blob *body = is(where, "comment") ? &p->comment : &p->line;
	int64_t recording = is_ack ? e->recording_id : e->reply_recording_id;
	struct model_intent *n;

	if (!is_in(where, "boost comment chat_line") || recording <= 0) {
		due_failed(a, "not_dispatchable");
		return NULL;
	}
	if (body->len == 0) {
		due_failed(a, "invalid_report");
		return NULL;
	}
	n = model_intent_add(
	    w, p->kind, NULL, where, e->bucket_id, recording, w->now);
	n->event_id = (struct opt){true, e->id};
	n->task_id = (struct opt){true, task};
	n->hash = p->hash;
	n->body = model_text("%.*s", (int)body->len, (const char *)body->bytes);
	return n;
}

MODEL_HANDLER(post)
{
	const struct msg_post *p = &m->post;
	const struct model_row *r =
	    row_pulled(w, p->token, p->event_id, attempt, a);
	struct model_intent *n;
	int count;

	if (r == NULL)
		return;
	if (!is_in(p->kind, "worker_ack worker_reply")) {
		due_failed(a, "refused");
		return;
	}
	n = post_find(w, r->task_id, p, &count);
	if (n == NULL && count >= POSTS_MOST) {
		due_failed(a, "invalid_report");
		return;
	}
	if (n == NULL)
		n = post_add(w, p, r->task_id, a);
	if (n == NULL)
		return;
	a->m.post_is = (struct msg_post_is){.intent_id = n->id,
	    .state = n->state,
	    .message_kind = n->message_kind,
	    .receipt_id = n->receipt_id,
	    .refused = n->refused};
	a->unknown = "note";
}

/* ---- THREAD_OF: design 6 -------------------------------------------- */

MODEL_HANDLER(thread_of)
{
	const struct msg_thread_of *q = &m->thread_of;
	const struct model_attempt *at = model_attempt(w, q->attempt);
	const struct model_row *r;
	const struct model_event *e;

	r = at != NULL ? model_row(w, at->task_id, q->event_id) : NULL;
	if (r == NULL || r->retired_at != NULL) {
		due_failed(a, "not_on_task");
		return;
	}
	if (r->pulled_at == NULL) {
		due_failed(a, "not_exposed");
		return;
	}
	e = model_event(w, r->event_id);
	a->m.thread_is = (struct msg_thread_is){.event_type = e->event_type,
	    .bucket_id = e->bucket_id,
	    .recording_id = e->recording_id,
	    .reply_kind = e->reply_kind,
	    .reply_recording_id = e->reply_recording_id};
}
