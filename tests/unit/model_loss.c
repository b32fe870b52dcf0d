#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/model.h"

/* What the feed's buffer dropped: ledger.md 3.8, feed.md 4.8 and 4.9. */

static struct model_loss *
loss_find(struct model *w, int64_t id)
{
	return id >= 1 && id <= w->loss_count ? &w->losses[id - 1] : NULL;
}

static int64_t
loss_missing(const struct model *w, int64_t id)
{
	int64_t count = 0;

	for (int i = 0; i < w->loss_id_count; i++)
		count += w->loss_ids[i].loss_id == id &&
		    is(w->loss_ids[i].state, "missing");
	return count;
}

static void
due_loss(
    const struct model *w, const struct model_loss *l, struct model_answer *a)
{
	a->m.loss_is = (struct msg_loss_is){.loss_id = l->id,
	    .missing = loss_missing(w, l->id),
	    .repair_since = l->repair_since,
	    .resolved = l->resolved_at != NULL};
}

static void
loss_id_add(struct model *w, struct model_loss *l, int64_t id)
{
	bool is_known = model_event(w, id) != NULL;

	for (int i = 0; i < w->loss_id_count; i++)
		if (w->loss_ids[i].loss_id == l->id &&
		    w->loss_ids[i].event_id == id)
			return;
	w->loss_ids[w->loss_id_count++] = (struct model_loss_id){
	    l->id, id, is_known ? "never_lost" : "missing"};
	l->dropped_count++;
	if (!is_known && (l->repair_since == 0 || id - 1 < l->repair_since))
		l->repair_since = id - 1;
}

static bool
loss_ids_are_sound(const json_t *ids)
{
	const json_t *id;
	size_t i;

	if (!json_is_array(ids) || json_array_size(ids) == 0)
		return false;
	json_array_foreach ((json_t *)ids, i, id)
		if (!json_is_integer(id) || json_integer_value(id) < 1)
			return false;
	return true;
}

static void
loss_add(struct model *w, const struct msg_loss *m, const json_t *ids)
{
	struct model_loss *l = &w->losses[w->loss_count];
	const json_t *id;
	size_t i;

	*l = (struct model_loss){.id = ++w->loss_count,
	    .nonce = m->nonce,
	    .detected_at = w->now,
	    .repair_cursor = "",
	    .deadline_at = model_stamp(w->now_ns + m->window_ms * 1000000),
	    .filters = m->filters};
	json_array_foreach ((json_t *)ids, i, id)
		loss_id_add(w, l, json_integer_value(id));
	if (loss_missing(w, l->id) == 0)
		l->resolved_at = w->now;
}

MODEL_HANDLER(loss)
{
	json_t *ids;

	for (int i = 0; i < w->loss_count; i++)
		if (is(w->losses[i].nonce, m->loss.nonce)) {
			due_loss(w, &w->losses[i], a);
			return;
		}
	ids = json_loadb(m->loss.ids.bytes, m->loss.ids.len, 0, NULL);
	if (loss_ids_are_sound(ids)) {
		loss_add(w, &m->loss, ids);
		due_loss(w, &w->losses[w->loss_count - 1], a);
	} else
		due_failed(a, "refused");
	json_decref(ids);
}

MODEL_HANDLER(loss_next)
{
	for (int i = 0; i < w->loss_count; i++) {
		const struct model_loss *l = &w->losses[i];

		if (l->id <= m->loss_next.after || l->resolved_at != NULL)
			continue;
		a->m.loss_open = (struct msg_loss_open){.found = true,
		    .loss_id = l->id,
		    .detected_at = l->detected_at,
		    .deadline_at = l->deadline_at,
		    .repair_since = l->repair_since,
		    .repair_cursor = l->repair_cursor,
		    .filters = l->filters,
		    .missing = loss_missing(w, l->id)};
		return;
	}
}

/* An open loss, or the answer: it is closed, or there is none. */
static struct model_loss *
loss_open(struct model *w, int64_t id, struct model_answer *a)
{
	struct model_loss *l = loss_find(w, id);

	if (l == NULL)
		due_failed(a, "not_found");
	else if (l->resolved_at != NULL)
		due_loss(w, l, a);
	return l != NULL && l->resolved_at == NULL ? l : NULL;
}

static void
loss_give_up(struct model *w, int64_t loss, int64_t most)
{
	for (int i = 0; i < w->loss_id_count; i++)
		if (w->loss_ids[i].loss_id == loss &&
		    w->loss_ids[i].event_id <= most &&
		    is(w->loss_ids[i].state, "missing"))
			w->loss_ids[i].state = "unrecovered";
}

MODEL_HANDLER(loss_cursor)
{
	struct model_loss *l = loss_open(w, m->loss_cursor.loss_id, a);

	if (l == NULL)
		return;
	l->repair_cursor = m->loss_cursor.cursor;
	due_loss(w, l, a);
}

MODEL_HANDLER(loss_entry)
{
	struct model_loss *l = loss_open(w, m->loss_entry.loss_id, a);

	if (l == NULL)
		return;
	loss_give_up(w, l->id, m->loss_entry.epoch_after_id);
	l->repair_since = m->loss_entry.epoch_after_id;
	l->repair_cursor = "";
	due_loss(w, l, a);
}

MODEL_HANDLER(loss_deadline)
{
	struct model_loss *l;

	if (!model_is_stamp(m->loss_deadline.deadline_at)) {
		due_failed(a, "refused");
		return;
	}
	l = loss_open(w, m->loss_deadline.loss_id, a);
	if (l == NULL)
		return;
	l->deadline_at = m->loss_deadline.deadline_at;
	due_loss(w, l, a);
}

MODEL_HANDLER(loss_close)
{
	struct model_loss *l = loss_open(w, m->loss_close.loss_id, a);

	if (l == NULL)
		return;
	loss_give_up(w, l->id, INT64_MAX);
	l->resolved_at = w->now;
	due_loss(w, l, a);
}

/* It came after all, by whatever lane, to open and closed losses alike. */
void
model_recover(struct model *w, int64_t event)
{
	for (int i = 0; i < w->loss_id_count; i++)
		if (w->loss_ids[i].event_id == event &&
		    is_in(w->loss_ids[i].state, "missing unrecovered"))
			w->loss_ids[i].state = "recovered";
}
