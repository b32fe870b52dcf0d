#include <string.h>

#include "tests/unit/model.h"

/* ---- NEXT_STARTABLE: ledger.md 3.2.3, dispatch.md 3 ----------------- */

/* Could it be given to a task, as far as the record says? */
static bool
event_is_startable(struct model *w, const struct model_event *e)
{
	return is_in(e->state, "admitted queued") && !e->content_dropped &&
	    e->snapshot != NULL && e->routed && *e->conversation_key != '\0' &&
	    model_row_live(w, e->id) == NULL;
}

static bool
conversation_has_task(struct model *w, const char *key)
{
	for (int i = 0; i < w->task_count; i++)
		if (w->tasks[i].ended_at == NULL &&
		    is(w->tasks[i].conversation_key, key))
			return true;
	return false;
}

static bool
directory_is_taken(struct model *w, const char *route)
{
	for (int i = 0; i < w->task_count; i++)
		if (w->tasks[i].ended_at == NULL &&
		    is(w->tasks[i].work_dir, route))
			return true;
	return false;
}

/* Does E wait in that conversation for a directory that is its own? */
static bool
event_may_join(struct model *w, const struct model_event *e, const char *key,
    const char *route)
{
	return event_is_startable(w, e) && is(e->conversation_key, key) &&
	    is(e->route, route) && is(e->route, model_route(w, e->bucket_id));
}

/*
 * The same, and none goes before it: an older admitted record that cannot
 * join keeps its place in the conversation's order (I2).
 */
static bool
event_joins(struct model *w, const struct model_event *e, const char *key,
    const char *route)
{
	if (!event_may_join(w, e, key, route))
		return false;
	for (int i = 0; i < w->event_count; i++) {
		const struct model_event *o = &w->events[i];

		if (o->id < e->id && is(o->state, "admitted") &&
		    is(o->conversation_key, key) &&
		    !event_may_join(w, o, key, route))
			return false;
	}
	return true;
}

/* Has the conversation or the directory no place for FIRST (3.2.1, 4)? */
static bool
conversation_is_busy(struct model *w, const struct model_event *first)
{
	for (int i = 0; i < w->event_count; i++) {
		const struct model_event *e = &w->events[i];

		if (e != first &&
		    is(e->conversation_key, first->conversation_key) &&
		    (is(e->state, "dispatched") ||
			(is(e->state, "admitted") && e->id < first->id)))
			return true;
	}
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].retired_at == NULL &&
		    is(w->rows[i].conversation_key, first->conversation_key))
			return true;
	return conversation_has_task(w, first->conversation_key) ||
	    directory_is_taken(w, first->route);
}

/* Would LAUNCH take it? */
bool
model_can_start(struct model *w, const struct model_event *e)
{
	return event_is_startable(w, e) &&
	    is(e->route, model_route(w, e->bucket_id)) &&
	    !conversation_is_busy(w, e);
}

static bool
event_is_first(struct model *w, const struct model_event *e)
{
	for (int i = 0; i < w->event_count; i++)
		if (w->events[i].id < e->id &&
		    is(w->events[i].conversation_key, e->conversation_key) &&
		    model_can_start(w, &w->events[i]))
			return false;
	return true;
}

MODEL_HANDLER(next_startable)
{
	struct msg_startable *s = &a->m.startable;

	if (m->next_startable.generation != w->generation) {
		due_failed(a, "stale_config");
		return;
	}
	for (int i = 0; i < w->event_count; i++) {
		const struct model_event *e = &w->events[i];

		if (event_is_startable(w, e) &&
		    !is(e->route, model_route(w, e->bucket_id)))
			s->stranded++;
		if (w->hold_count > 0 || e->id <= m->next_startable.after ||
		    (s->found && s->event_id < e->id) ||
		    !model_can_start(w, e) || !event_is_first(w, e))
			continue;
		s->found = true;
		s->event_id = e->id;
		s->project_id = e->bucket_id;
	}
}

/* ---- LAUNCH: ledger.md 3.2.1 and 3.2.3 ------------------------------ */

static bool
attempt_id_is_sound(const char *id)
{
	return strncmp(id, "att_", 4) == 0 &&
	    strspn(id + 4, "0123456789abcdef") == 24;
}

static bool
guard_is_out(struct model *w, int64_t event)
{
	for (int i = 0; i < w->intent_count; i++)
		if (is(w->intents[i].kind, "guard_ack") &&
		    w->intents[i].event_id.value == event)
			return is_in(w->intents[i].state,
			    "sending sent indeterminate abandoned");
	return false;
}

void
model_row_add(
    struct model *w, const struct model_task *t, struct model_event *e)
{
	struct model_row *r = &w->rows[w->row_count++];

	*r = (struct model_row){.task_id = t->id,
	    .event_id = e->id,
	    .conversation_key = e->conversation_key,
	    .delivery = "admitted",
	    .guard = !e->acknowledge     ? ""
		: guard_is_out(w, e->id) ? "fired"
					 : "armed",
	    .outcome = "",
	    .links = "[]"};
	model_move(w, e, "dispatched", "");
}

static void
launch_task(
    struct model *w, const struct msg_launch *l, struct model_event *first)
{
	struct model_task *t = &w->tasks[w->task_count];
	struct model_attempt *at = &w->attempts[w->task_count];
	struct model_event *chosen[MODEL_EVENTS];
	struct model_row *r;
	int count = 0;

	for (int i = 0; i < w->event_count; i++)
		if (&w->events[i] == first ||
		    event_joins(w, &w->events[i], first->conversation_key,
			first->route))
			chosen[count++] = &w->events[i];
	*t = (struct model_task){.id = ++w->task_count,
	    .token = "",
	    .old_token = "",
	    .created_at = w->now,
	    .conversation_key = first->conversation_key,
	    .route = first->route,
	    .work_dir = first->route,
	    .driver = l->driver,
	    .originating_event_id = first->id,
	    .deadline_at = model_stamp(w->now_ns + l->deadline_ms * 1000000)};
	*at = (struct model_attempt){.id = l->attempt,
	    .task_id = t->id,
	    .seq = 1,
	    .driver = l->driver,
	    .state = "launching",
	    .session_id = "",
	    .launched_at = w->now,
	    .stop_reason = "",
	    .boot_id = w->boot_id,
	    .run_id = w->run_id,
	    .containment = l->containment};
	for (int i = 0; i < count; i++)
		model_row_add(w, t, chosen[i]);
	r = model_row(w, t->id, first->id);
	r->delivery = "exposed";
	r->exposed_at = w->now;
	r->exposed_attempt_id = at->id;
}

/* ---- follow-ups: ledger.md 3.2.4 ------------------------------------ */

/* dispatch.md 6.6: a live task whose route its project has no more. */
static bool
task_is_unauthorized(struct model *w, const struct model_task *t)
{
	const struct model_event *e = model_event(w, t->originating_event_id);

	return t->superseded_at == NULL &&
	    !is(t->route, model_route(w, e->bucket_id));
}

MODEL_HANDLER(join)
{
	const struct model_attempt *at = model_attempt(w, m->join.attempt);
	struct msg_joined *out = &a->m.joined;
	struct model_event *chosen[MODEL_EVENTS];
	struct model_task *t;

	if (m->join.generation != w->generation) {
		due_failed(a, "stale_config");
		return;
	}
	if (at == NULL) {
		due_failed(a, "not_found");
		return;
	}
	t = model_task(w, at->task_id);
	if (task_is_unauthorized(w, t)) {
		due_failed(a, "unauthorized");
		return;
	}
	for (int i = 0; i < w->event_count; i++)
		if (event_joins(
			w, &w->events[i], t->conversation_key, t->route))
			chosen[out->joined++] = &w->events[i];
	if (w->hold_count > 0 || t->superseded_at != NULL)
		out->joined = 0;
	for (int i = 0; i < out->joined; i++)
		model_row_add(w, t, chosen[i]);
	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *r = &w->rows[i];

		if (r->task_id == t->id && r->retired_at == NULL &&
		    is(r->delivery, "admitted") &&
		    (out->unexposed == 0 || r->event_id < out->unexposed))
			out->unexposed = r->event_id;
	}
}

MODEL_HANDLER(expose)
{
	const struct msg_expose *x = &m->expose;
	const struct model_attempt *at = model_attempt(w, x->attempt);
	struct model_row *r;

	r = at != NULL ? model_row(w, at->task_id, x->event_id) : NULL;
	if (r == NULL || r->retired_at != NULL) {
		due_failed(a, at == NULL ? "not_found" : "refused");
		return;
	}
	if (is(r->delivery, "admitted")) {
		if (task_is_unauthorized(w, model_task(w, at->task_id))) {
			due_failed(a, "unauthorized");
			return;
		}
		if (w->hold_count > 0) {
			due_failed(a, "held");
			return;
		}
		r->delivery = "exposed";
		r->exposed_at = w->now;
		r->exposed_attempt_id = at->id;
	}
	a->m.exposed =
	    (struct msg_exposed){.by_you = is(r->exposed_attempt_id, at->id),
		.pulled = r->pulled_at != NULL,
		.delivery = r->delivery};
}

/* ---- tokens --------------------------------------------------------- */

/* A new token: its text is known when the reply has been read. */
static void
task_rekey(struct model_task *t)
{
	t->old_token = t->token;
	t->token = "";
	t->rekeys++;
}

static const char *
launch_refusal(
    struct model *w, const struct msg_launch *l, const struct model_event *e)
{
	if (!attempt_id_is_sound(l->attempt))
		return "refused";
	if (l->generation != w->generation)
		return "stale_config";
	if (e == NULL)
		return "not_found";
	if (w->hold_count > 0)
		return "held";
	if (!event_is_startable(w, e) ||
	    !is(e->route, model_route(w, e->bucket_id)))
		return "refused";
	return conversation_is_busy(w, e) ? "busy" : NULL;
}

MODEL_HANDLER(launch)
{
	const struct msg_launch *l = &m->launch;
	struct model_attempt *at = model_attempt(w, l->attempt);
	struct model_event *e = model_event(w, l->event_id);
	struct model_task *t;
	const char *refusal;

	if (at != NULL) {
		t = model_task(w, at->task_id);
		if (!is(at->state, "launching") || t->superseded_at != NULL ||
		    t->originating_event_id != l->event_id) {
			due_failed(a, "refused");
			return;
		}
		task_rekey(t);
	} else {
		refusal = launch_refusal(w, l, e);
		if (refusal != NULL) {
			due_failed(a, refusal);
			return;
		}
		launch_task(w, l, e);
		t = &w->tasks[w->task_count - 1];
	}
	a->m.launched = (struct msg_launched){.task_id = t->id,
	    .trigger = e->trigger_name,
	    .recording_url = e->recording_url,
	    .project_id = e->bucket_id};
}

/* A live attempt whose token is its own dispatcher's; or the refusal. */
static struct model_task *
task_to_key(struct model *w, const char *attempt, const char *states,
    struct model_answer *a)
{
	const struct model_attempt *at = model_attempt(w, attempt);
	struct model_task *t;

	if (at == NULL) {
		due_failed(a, "not_found");
		return NULL;
	}
	t = model_task(w, at->task_id);
	if (is_in(at->state, states) && t->superseded_at == NULL)
		return t;
	due_failed(a, "refused");
	return NULL;
}

MODEL_HANDLER(rekey)
{
	struct model_task *t =
	    task_to_key(w, m->rekey.attempt, "launching running", a);

	if (t != NULL && t->taken_at != NULL)
		due_failed(a, "refused");
	else if (t != NULL)
		task_rekey(t);
}

/* An operator takes the task over: design 6.1. */
MODEL_HANDLER(take_over)
{
	struct model_task *t =
	    task_to_key(w, m->take_over.attempt, "running", a);

	if (t == NULL)
		return;
	task_rekey(t);
	if (t->taken_at == NULL)
		t->taken_at = w->now;
	a->m.taken_over.task_id = t->id;
}

/* ---- an attempt's life: ledger.md 3.3 ------------------------------- */

static struct opt
opt_of(int64_t value)
{
	return (struct opt){value != 0, value};
}

MODEL_HANDLER(running)
{
	const struct msg_running *r = &m->running;
	struct model_attempt *at = model_attempt(w, r->attempt);

	if (r->pgid != r->pid) {
		due_failed(a, "refused");
		return;
	}
	if (at == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (is(at->state, "running") && at->pid.value == r->pid &&
	    at->pgid.value == r->pgid &&
	    at->started_ticks.value == r->started_ticks &&
	    is(at->session_id, r->session_id)) {
		due_done(a, false);
		return;
	}
	if (!is(at->state, "launching")) {
		due_failed(a, "refused");
		return;
	}
	at->state = "running";
	at->running_at = w->now;
	at->pid = opt_of(r->pid);
	at->pgid = opt_of(r->pgid);
	at->started_ticks = (struct opt){true, r->started_ticks};
	at->session_id = r->session_id;
	due_done(a, true);
}

/* A live attempt; else the answer is that nothing changed. */
static struct model_attempt *
attempt_live(struct model *w, const char *id, struct model_answer *a)
{
	struct model_attempt *at = model_attempt(w, id);

	if (at != NULL && !is(at->state, "ended"))
		return at;
	if (at == NULL)
		due_failed(a, "not_found");
	else
		due_done(a, false);
	return NULL;
}

MODEL_HANDLER(progress)
{
	struct model_attempt *at = attempt_live(w, m->progress.attempt, a);

	if (at == NULL)
		return;
	at->progress_at = w->now;
	due_done(a, true);
}

/* Numbered by the dispatcher: the highest one heard of counts. */
MODEL_HANDLER(refusal)
{
	struct model_attempt *at = attempt_live(w, m->refusal.attempt, a);

	if (at == NULL)
		return;
	due_done(a, at->refusals < m->refusal.number);
	if (at->refusals < m->refusal.number)
		at->refusals = m->refusal.number;
}

/* A long turn goes on: operator.md 2.2. */
MODEL_HANDLER(still_running)
{
	const struct msg_still_running *s = &m->still_running;
	struct model_attempt *at = attempt_live(w, s->attempt, a);
	const struct model_event *e;
	struct model_intent *n;

	if (at == NULL)
		return;
	due_done(a, s->number > at->still_running);
	if (s->number <= at->still_running)
		return;
	at->still_running = s->number;
	e = model_event(w, model_task(w, at->task_id)->originating_event_id);
	if (!is_in(e->reply_kind, "comment chat_line") ||
	    e->reply_recording_id <= 0)
		return;
	n = model_intent_add(w, "still_running",
	    model_text(
		"still_running:attempt:%s:%lld", at->id, (long long)s->number),
	    e->reply_kind, e->bucket_id, e->reply_recording_id, w->now);
	n->task_id = (struct opt){true, at->task_id};
	n->attempt_id = at->id;
	n->occurrence = s->number;
}

MODEL_HANDLER(tree_held)
{
	if (attempt_live(w, m->tree_held.attempt, a) != NULL)
		due_done(a, false);
}

MODEL_HANDLER(next_live)
{
	for (int i = 0; i < w->task_count; i++) {
		const struct model_attempt *at = &w->attempts[i];

		if (at->task_id <= m->next_live.after_task ||
		    is(at->state, "ended"))
			continue;
		a->m.live = (struct msg_live){.found = true,
		    .attempt = at->id,
		    .task_id = at->task_id,
		    .state = at->state,
		    .superseded =
			model_task(w, at->task_id)->superseded_at != NULL,
		    .project_id = model_event(
			w, model_task(w, at->task_id)->originating_event_id)
				      ->bucket_id};
		return;
	}
}

MODEL_HANDLER(identity)
{
	const struct model_attempt *at = model_attempt(w, m->identity.attempt);

	if (at == NULL)
		return;
	a->m.identity_is = (struct msg_identity_is){.found = true,
	    .state = at->state,
	    .pid = at->pid.value,
	    .pgid = at->pgid.value,
	    .started_ticks = at->started_ticks.value,
	    .boot_id = at->boot_id,
	    .run_id = at->run_id,
	    .containment = at->containment};
}
