#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/model.h"

/* IMPORT: what a cutover found done, all or nothing (operator.md 3.8). */

struct import {
	const char *by;
	int64_t tombstoned, discarded, already_terminal;
};

static bool
entry_is_sound(const json_t *entry)
{
	const json_t *id = json_object_get(entry, "event_id");
	const char *decision =
	    json_string_value(json_object_get(entry, "decision"));

	return json_object_size(entry) == 2 && json_is_integer(id) &&
	    json_integer_value(id) > 0 && decision != NULL &&
	    is_in(decision, "done held");
}

static bool
file_is_sound(const json_t *file)
{
	const json_t *version = json_object_get(file, "version");
	json_t *entries = json_object_get(file, "entries"), *a, *b;
	size_t i, j;

	if (json_object_size(file) != 2 || !json_is_integer(version) ||
	    json_integer_value(version) != 1 || !json_is_array(entries))
		return false;
	json_array_foreach (entries, i, a) {
		if (!entry_is_sound(a))
			return false;
		for (j = 0; j < i; j++) {
			b = json_array_get(entries, j);
			if (json_equal(json_object_get(a, "event_id"),
				json_object_get(b, "event_id")))
				return false;
		}
	}
	return true;
}

/* An id that the feed may serve later, and that will not be new then. */
static void
import_tombstone(struct model *w, struct import *in, int64_t id)
{
	struct model_event *e = model_event_place(w, id);
	struct model_decision *d;

	*e = (struct model_event){.id = id,
	    .state = "discarded",
	    .reason = "imported_done",
	    .lane = "import",
	    .event_type = "",
	    .kind = "",
	    .action = "",
	    .actor_type = "",
	    .created_at = w->now,
	    .seen_at = w->now,
	    .updated_at = w->now,
	    .content_dropped = true,
	    .generation = w->generation_count,
	    .trigger_name = "",
	    .conversation_key = "",
	    .reply_kind = "",
	    .route = "",
	    .class = "",
	    .recording_url = "",
	    .authorized_by = "",
	    .quarantine_death = ""};
	d = model_decide(w, "import", NULL, in->by);
	d->event_id = (struct opt){true, id};
	d->to_state = "discarded";
	in->tombstoned++;
}

static bool
import_done(struct model *w, struct import *in, struct model_event *e)
{
	struct model_decision *d;
	bool is_over;

	if (is(e->state, "dispatched"))
		return false;
	d = model_decide_event(w, "import", NULL, in->by, e);
	is_over = is(e->state, "discarded") ||
	    (is(e->state, "completed") && is(d->from_outcome, "succeeded"));
	e->authorized_at = NULL;
	e->authorized_by = "";
	e->redispatch_decision = 0;
	(void)model_intent_cancel(w, e->id, "guard_ack holding_reply");
	if (is_over)
		in->already_terminal++;
	else {
		model_move(w, e, "discarded", "imported_done");
		model_retract(w, e);
		in->discarded++;
	}
	d->to_state = e->state;
	return true;
}

static bool
import_entry(struct model *w, struct import *in, const json_t *entry)
{
	int64_t id = json_integer_value(json_object_get(entry, "event_id"));
	struct model_event *e = model_event(w, id);

	if (is(json_string_value(json_object_get(entry, "decision")), "held"))
		return e != NULL;
	if (e != NULL)
		return import_done(w, in, e);
	import_tombstone(w, in, id);
	return true;
}

static bool
import_apply(struct model *w, const struct msg_import *m, json_t *file,
    struct model_answer *a)
{
	struct import in = {.by = m->by};
	struct model_decision *d;
	json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(file, "entries"), i, entry)
		if (!import_entry(w, &in, entry))
			return false;
	for (int n = 0; n < w->event_count; n++)
		model_tag(w, &w->events[n]);
	d = model_decide(w, "import", m->nonce, m->by);
	d->imported = (struct msg_imported){.tombstoned = in.tombstoned,
	    .discarded = in.discarded,
	    .already_terminal = in.already_terminal,
	    .tagged =
		model_tagged(w, "seen admitted queued blocked held dispatched"),
	    .held = model_tagged(w, "held")};
	a->m.imported = d->imported;
	return true;
}

MODEL_HANDLER(import)
{
	const struct msg_import *in = &m->import;
	const struct model_decision *d = model_decision(w, in->nonce);
	json_t *file;

	if (d != NULL) {
		if (is(d->action, "import"))
			a->m.imported = d->imported;
		else
			due_failed(a, "refused");
		return;
	}
	file = json_loadb(
	    in->file.bytes, in->file.len, JSON_REJECT_DUPLICATES, NULL);
	if (!file_is_sound(file) || !import_apply(w, in, file, a))
		due_failed(a, "refused");
	json_decref(file);
}
