#include <string.h>

#include "tests/unit/model.h"

/* ---- supersession: ledger.md 3.2.2 ---------------------------------- */

void
model_supersede(struct model *w, struct model_task *t)
{
	struct model_event *returned[MODEL_EVENTS];
	int count = 0;

	if (t->superseded_at != NULL)
		return;
	t->superseded_at = w->now;
	for (int i = 0; i < w->row_count; i++) {
		struct model_row *r = &w->rows[i];

		if (r->task_id != t->id || r->retired_at != NULL)
			continue;
		r->retired_at = w->now;
		if (is(r->delivery, "admitted"))
			returned[count++] = model_event(w, r->event_id);
	}
	for (int i = 0; i < count; i++)
		if (is(returned[i]->state, "dispatched"))
			model_move(w, returned[i], "admitted", "");
}

/* ---- the settlement of one row: 3.4.2 ------------------------------- */

static bool
row_is_withdrawn_by(const struct model_row *r, const struct model_attempt *at)
{
	return at->spawn_failed && r->pulled_at == NULL &&
	    is(r->delivery, "exposed") && is(r->exposed_attempt_id, at->id);
}

/* What nobody reported is unknown, and is not run again: I11. */
static void
row_settle(struct model *w, struct model_row *r)
{
	struct model_event *e = model_event(w, r->event_id);

	if (is(e->state, "dispatched"))
		model_move(w, e, "completed", "");
	r->delivery = "completed";
	r->completed_at = w->now;
	r->outcome = "unknown";
	model_adopt_own(w, r);
}

/* Starts that failed before and were charged to the event: I10. */
static int
withdrawals_before(struct model *w, int64_t event)
{
	int count = 0;

	for (int i = 0; i < w->row_count; i++)
		count += w->rows[i].event_id == event &&
		    w->rows[i].withdrawn_at != NULL && !w->rows[i].uncharged;
	return count;
}

static void
row_withdraw(struct model *w, struct model_row *r, const struct msg_end *end)
{
	struct model_event *e = model_event(w, r->event_id);
	int before = withdrawals_before(w, r->event_id);

	r->withdrawn_at = w->now;
	r->uncharged = end->uncharged;
	if (end->uncharged || (before == 0 && !end->no_retry))
		model_move(w, e, "admitted", "");
	else {
		r->is_given_up = true;
		model_move(w, e, "blocked", "spawn_failed");
	}
}

/* ---- the completion notice: operator.md 2.3 ------------------------- */

static bool
row_has_later(struct model *w, const struct model_row *r)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == r->event_id &&
		    w->rows[i].task_id > r->task_id)
			return true;
	return false;
}

/*
 * Has a person decided since, so that the notice no longer asks? The record
 * is not where the settlement left it, or was elsewhere in between.
 */
static bool
row_is_decided(
    struct model *w, const struct model_row *r, const struct model_attempt *at)
{
	const struct model_event *e = model_event(w, r->event_id);

	if (r->withdrawn_at == NULL
		? !is(e->state, "completed")
		: !is(e->state, "blocked") || !is(e->reason, "spawn_failed"))
		return true;
	return row_has_later(w, r) || e->redispatch_decision != 0 ||
	    (e->authorized_at != NULL &&
		strcmp(e->authorized_at, at->ended_at) > 0);
}

enum model_line { LINE_NONE, LINE_SAYS, LINE_ASKS };

static enum model_line
notice_line(
    struct model *w, const struct model_attempt *at, const struct model_row *r)
{
	if (r->withdrawn_at != NULL) {
		if (!r->is_given_up)
			return LINE_NONE;
	} else if (!is(r->delivery, "completed")) {
		return LINE_NONE;
	} else if (is(r->outcome, "succeeded"))
		return r->reply_id.has ? LINE_NONE : LINE_SAYS;
	return row_is_decided(w, r, at) ? LINE_SAYS : LINE_ASKS;
}

const char *
model_notice(struct model *w, const struct model_attempt *at)
{
	const char *lines = "";

	for (int i = 0; i < w->event_count; i++) {
		const struct model_row *r =
		    model_row(w, at->task_id, w->events[i].id);
		enum model_line line =
		    r != NULL ? notice_line(w, at, r) : LINE_NONE;

		if (line != LINE_NONE)
			lines = model_text("%s%lld%c ", lines,
			    (long long)r->event_id,
			    line == LINE_ASKS ? '?' : '.');
	}
	return lines;
}

static void
notice_post(
    struct model *w, const struct model_task *t, const struct model_attempt *at)
{
	const struct model_event *e = model_event(w, t->originating_event_id);
	const char *lines = model_notice(w, at);
	struct model_intent *n;

	if (*lines == '\0' || !is_in(e->reply_kind, "comment chat_line") ||
	    e->reply_recording_id <= 0)
		return;
	n = model_intent_add(w, "completion",
	    model_text("completion:attempt:%s", at->id), e->reply_kind,
	    e->bucket_id, e->reply_recording_id, w->now);
	n->task_id = (struct opt){true, t->id};
	n->attempt_id = at->id;
	n->asks = lines;
}

/* ---- END ------------------------------------------------------------ */

static void
due_ended(
    struct model *w, const struct model_attempt *at, struct msg_ended *out)
{
	out->stop_reason = at->stop_reason;
	for (int i = 0; i < w->row_count; i++) {
		const struct model_row *r = &w->rows[i];

		if (r->task_id != at->task_id)
			continue;
		out->withdrawn += r->withdrawn_at != NULL;
		if (!is(r->outcome, "unknown"))
			continue;
		out->unknown++;
		if (out->first_unknown == 0 || r->event_id < out->first_unknown)
			out->first_unknown = r->event_id;
	}
}

static void
attempt_end(
    struct model *w, struct model_attempt *at, const struct msg_end *end)
{
	struct model_task *t = model_task(w, at->task_id);
	struct model_row *withdrawn[MODEL_EVENTS];
	int count = 0;

	at->state = "ended";
	at->ended_at = w->now;
	at->stop_reason = end->stop_reason;
	at->spawn_failed = end->spawn_failed;
	at->no_retry = end->no_retry;
	at->refusals += end->refusals;
	for (int i = 0; i < w->row_count; i++) {
		struct model_row *r = &w->rows[i];

		if (r->task_id != t->id || r->withdrawn_at != NULL ||
		    is_in(r->delivery, "admitted completed"))
			continue;
		if (row_is_withdrawn_by(r, at))
			withdrawn[count++] = r;
		else
			row_settle(w, r);
	}
	model_supersede(w, t);
	for (int i = 0; i < count; i++)
		row_withdraw(w, withdrawn[i], end);
	t->ended_at = w->now;
	model_redispatch_waiting(w, t);
	notice_post(w, t, at);
}

MODEL_HANDLER(end)
{
	const struct msg_end *end = &m->end;
	struct model_attempt *at = model_attempt(w, end->attempt);

	if (!is_in(
		end->stop_reason, "finished failed deadline shutdown lost") ||
	    (end->spawn_failed && !is(end->stop_reason, "failed"))) {
		due_failed(a, "refused");
		return;
	}
	if (at == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (!is(at->state, "ended"))
		attempt_end(w, at, end);
	due_ended(w, at, &a->m.ended);
}

/* A person has looked, and nothing of it runs: operator.md 3, settle. */
MODEL_HANDLER(settle)
{
	const struct msg_settle *s = &m->settle;
	const struct msg_end end = {.stop_reason = "lost"};
	struct model_decision *d = model_decision(w, s->nonce);
	struct model_attempt *at = model_attempt(w, s->attempt);
	struct msg_ended ended = {0};

	if (d == NULL && at == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (d != NULL
		? !is(d->action, "settle") || !is(d->attempt_id, s->attempt)
		: is(at->state, "ended")) {
		due_failed(a, "refused");
		return;
	}
	if (d == NULL) {
		d = model_decide(w, "settle", s->nonce, s->by);
		d->attempt_id = at->id;
		d->superseded_task_id = (struct opt){true, at->task_id};
		d->from_state = at->state;
		d->to_state = "ended";
		attempt_end(w, at, &end);
	}
	due_ended(w, at, &ended);
	a->m.attempt_settled.task_id = at->task_id;
	a->m.attempt_settled.unknown = ended.unknown;
}
