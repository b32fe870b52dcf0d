#include <string.h>

#include "common/clock.h"
#include "tests/unit/model.h"

#define GUARD_BODY "\xf0\x9f\x91\x80 received"

bool
model_is_stamp(const char *text)
{
	int64_t ns;

	return strlen(text) == CLOCK_STAMP_LEN && text[19] == '.' &&
	    text[29] == 'Z' && clock_parse(text, &ns) == 0;
}

static const char *
text_or_null(const char *text)
{
	return *text == '\0' ? NULL : text;
}

/* ---- RECORD: ledger.md 3.1 ------------------------------------------ */

MODEL_HANDLER(record)
{
	const struct msg_record *r = &m->record;
	struct model_event *e = model_event(w, r->event_id);

	if (!is_in(r->lane, "poll live repair") ||
	    !model_is_stamp(r->created_at)) {
		due_failed(a, "refused");
		return;
	}
	a->m.recorded.is_new = e == NULL;
	if (e == NULL) {
		e = model_event_place(w, r->event_id);
		*e = (struct model_event){.id = r->event_id,
		    .state = "seen",
		    .reason = "",
		    .lane = r->lane,
		    .event_type = r->event_type,
		    .kind = r->kind,
		    .action = r->action,
		    .bucket_id = r->bucket_id,
		    .creator_id = r->creator_id,
		    .performed_by_id = r->performed_by_id,
		    .recording_id = r->recording_id,
		    .details = r->details.len > 0
			? model_text("%.*s", (int)r->details.len,
			      (const char *)r->details.bytes)
			: NULL,
		    .actor_type = r->actor_type,
		    .visible_to_clients = r->visible_to_clients,
		    .created_at = r->created_at,
		    .seen_at = w->now,
		    .updated_at = w->now,
		    .trigger_name = "",
		    .conversation_key = "",
		    .reply_kind = "",
		    .route = "",
		    .class = "",
		    .recording_url = "",
		    .authorized_by = "",
		    .generation = w->generation_count,
		    .quarantine_death = ""};
	}
	model_recover(w, r->event_id);
	a->m.recorded.depth = model_depth(w);
}

/* ---- positions and gaps: ledger.md 3.10 ----------------------------- */

static struct model_key *
key_find(struct model *w, const char *flat_key)
{
	for (int i = 0; i < w->key_count; i++)
		if (is(w->keys[i].flat_key, flat_key))
			return &w->keys[i];
	return NULL;
}

MODEL_HANDLER(checkpoint)
{
	const struct msg_checkpoint *c = &m->checkpoint;
	struct model_key *k = key_find(w, c->flat_key);
	bool changed = k == NULL;

	if (*c->position == '\0' && c->served_id == 0) {
		due_done(a, false);
		return;
	}
	if (k == NULL) {
		k = &w->keys[w->key_count++];
		*k = (struct model_key){.flat_key = c->flat_key,
		    .lineage = c->lineage,
		    .position = "",
		    .run_id = ""};
	}
	if (*c->position != '\0' && !is(k->position, c->position)) {
		k->position = c->position;
		changed = true;
	}
	if (c->served_id > k->served_id) {
		k->served_id = c->served_id;
		changed = true;
	}
	if (changed)
		k->updated_at = w->now;
	if (*c->position != '\0')
		k->run_id = w->run_id;
	due_done(a, changed);
}

MODEL_HANDLER(drop_position)
{
	struct model_key *k = key_find(w, m->drop_position.flat_key);
	bool changed = k != NULL && is(k->position, m->drop_position.position);

	if (changed) {
		k->position = "";
		k->updated_at = w->now;
	}
	due_done(a, changed);
}

MODEL_HANDLER(entry)
{
	const struct model_key *k = key_find(w, m->entry.flat_key);
	struct msg_entry_is *out = &a->m.entry_is;

	out->position = k != NULL ? k->position : "";
	out->served_id = k != NULL ? k->served_id : 0;
	out->is_saved = k != NULL && is(k->run_id, w->run_id);
	for (int i = 0; i < w->key_count; i++) {
		if (!is(w->keys[i].lineage, m->entry.lineage))
			continue;
		out->lineage_is_known = true;
		if (w->keys[i].served_id > out->lineage_served_id)
			out->lineage_served_id = w->keys[i].served_id;
	}
	out->depth = model_depth(w);
}

MODEL_HANDLER(gap)
{
	const struct msg_gap *g = &m->gap;

	if (!is_in(g->class, "epoch retention") ||
	    is(g->class, "epoch") != g->epoch_after_id.has ||
	    (*g->entry_class != '\0' &&
		!is_in(g->entry_class, "present replay unknown"))) {
		due_failed(a, "refused");
		return;
	}
	for (int i = 0; i < w->gap_count; i++)
		if (is(w->gaps[i].nonce, g->nonce)) {
			due_done(a, false);
			return;
		}
	w->gaps[w->gap_count] = (struct model_gap){w->gap_count + 1, w->now,
	    g->class, g->epoch_after_id, g->entry_class, g->note, g->nonce};
	w->gap_count++;
	due_done(a, true);
}

/* ---- VERDICT: ledger.md 3.1, operator.md 2.2 ------------------------ */

static bool
verdict_is_sound(const struct msg_verdict *v)
{
	bool is_admitted = is(v->state, "admitted");

	if (!is_in(v->state, "admitted blocked discarded") ||
	    is_admitted != (*v->reason == '\0') ||
	    is_admitted != (v->snapshot.len > 0) ||
	    (is_admitted && *v->conversation_key == '\0'))
		return false;
	if (*v->retry_at == '\0' && *v->next_retry_at == '\0')
		return true;
	return is(v->state, "blocked") &&
	    (*v->retry_at == '\0' || model_is_stamp(v->retry_at)) &&
	    (*v->next_retry_at == '\0' || model_is_stamp(v->next_retry_at));
}

/* What the connector itself says of a verdict that acknowledges. */
static void
verdict_post(struct model *w, struct model_event *e)
{
	struct model_intent *n = NULL;

	if (!e->acknowledge)
		return;
	if (is_in(e->state, "admitted queued")) {
		n = model_intent_add(w, "guard_ack",
		    model_text("guard_ack:event:%lld", (long long)e->id),
		    "boost", e->bucket_id, e->recording_id,
		    model_stamp(w->now_ns + INT64_C(30000000000)));
		if (n != NULL)
			n->body = GUARD_BODY;
	} else if (is(e->state, "blocked") && is(e->reason, "no_route") &&
	    is_in(e->reply_kind, "comment chat_line") &&
	    e->reply_recording_id > 0)
		n = model_intent_add(w, "holding_reply",
		    model_text("holding_reply:event:%lld:%s", (long long)e->id,
			e->reason),
		    e->reply_kind, e->bucket_id, e->reply_recording_id, w->now);
	if (n == NULL)
		return;
	n->event_id = (struct opt){true, e->id};
	if (is(n->kind, "holding_reply"))
		n->answers_reason = e->reason;
}

static void
verdict_apply(
    struct model *w, struct model_event *e, const struct msg_verdict *v)
{
	const char *state = v->state;

	e->trigger_name = v->trigger;
	e->acknowledge = v->acknowledge;
	e->conversation_key = v->conversation_key;
	e->reply_kind = v->reply_kind;
	e->reply_recording_id = v->reply_recording_id;
	e->routed = v->routed;
	e->route = v->route;
	e->class = v->class;
	e->recording_url = v->recording_url;
	e->requester_id = v->requester_id;
	e->decided_at = w->now;
	if (is(state, "admitted")) {
		e->snapshot = v->snapshot.bytes;
		if (model_is_live(w, e))
			state = "queued";
	}
	model_move(w, e, state, v->reason);
	e->retry_at = text_or_null(v->retry_at);
	e->next_retry_at = text_or_null(v->next_retry_at);
	verdict_post(w, e);
}

int64_t
model_newest_rerun(const struct model *w, int64_t event)
{
	int64_t id = 0;

	for (int i = 0; i < w->decision_count; i++) {
		const struct model_decision *d = &w->decisions[i];

		if (is(d->action, "redispatch") && d->event_id.has &&
		    d->event_id.value == event)
			id = d->id;
	}
	return id;
}

MODEL_HANDLER(verdict)
{
	const struct msg_verdict *v = &m->verdict;
	struct model_event *e = model_event(w, v->event_id);
	bool applies;

	if (!verdict_is_sound(v) || e == NULL) {
		due_failed(a,
		    e != NULL || !verdict_is_sound(v) ? "refused"
						      : "not_found");
		return;
	}
	applies = e->revision == v->revision &&
	    model_newest_rerun(w, e->id) == v->rerun &&
	    is_in(e->state, "seen blocked");
	if (applies)
		verdict_apply(w, e, v);
	a->m.verdict_is = (struct msg_verdict_is){
	    .applied = applies, .state = e->state, .depth = model_depth(w)};
}

/* ---- NEXT_UNDECIDED ------------------------------------------------- */

static bool
is_undecided(const struct model *w, const struct model_event *e)
{
	return is(e->state, "seen") ||
	    (is(e->state, "blocked") && e->next_retry_at != NULL &&
		strcmp(e->next_retry_at, w->now) <= 0);
}

MODEL_HANDLER(next_undecided)
{
	struct msg_undecided *u = &a->m.undecided;
	const struct model_event *found = NULL;
	const char *next = NULL;

	for (int i = 0; i < w->event_count; i++) {
		const struct model_event *e = &w->events[i];

		if (is_undecided(w, e)) {
			if (e->id > m->next_undecided.after &&
			    (found == NULL || e->id < found->id))
				found = e;
		} else if (e->next_retry_at != NULL &&
		    (next == NULL || strcmp(e->next_retry_at, next) < 0))
			next = e->next_retry_at;
	}
	if (found != NULL)
		*u = (struct msg_undecided){.found = true,
		    .event_id = found->id,
		    .revision = found->revision,
		    .rerun = model_newest_rerun(w, found->id),
		    .event_type = found->event_type,
		    .bucket_id = found->bucket_id,
		    .creator_id = found->creator_id,
		    .performed_by_id = found->performed_by_id,
		    .recording_id = found->recording_id,
		    .actor_type = found->actor_type,
		    .seen_at = found->seen_at,
		    .reason = found->reason,
		    .suspect = found->quarantine > 0 ||
			is(found->reason, "quarantined"),
		    .retry_since = found->retry_since};
	u->depth = model_depth(w);
	u->retry_in_ms = next == NULL ? 0 : model_ms_until(w, next);
}

/* ---- COUNT_DEATH: design 3.1, poison -------------------------------- */

MODEL_HANDLER(count_death)
{
	struct model_event *e = model_event(w, m->count_death.event_id);

	if (e == NULL) {
		due_failed(a, "not_found");
		return;
	}
	if (!is(e->quarantine_death, m->count_death.death) &&
	    (is_in(e->state, "seen admitted queued") ||
		(is(e->state, "blocked") && e->next_retry_at != NULL))) {
		e->quarantine_death = m->count_death.death;
		if (++e->quarantine >= 2)
			model_move(w, e, "blocked", "quarantined");
	}
	a->m.death_counted.count = e->quarantine;
	a->m.death_counted.quarantined =
	    is(e->state, "blocked") && is(e->reason, "quarantined");
}

/* ---- CONNECTION: ledger.md 1.12 ------------------------------------- */

MODEL_HANDLER(connection)
{
	const struct msg_connection *c = &m->connection;
	struct model_connection *now = w->connection;
	bool changed = w->connection_count == 0 || !is(now->state, c->state) ||
	    now->pid != c->pid || !is(now->detail, c->detail);

	if (changed)
		*now = (struct model_connection){
		    1, c->state, c->detail, w->now, c->pid};
	w->connection_count = 1;
	due_done(a, changed);
}

/* ---- retention: ledger.md 4, after I18 ------------------------------ */

static void
event_drop(struct model_event *e)
{
	e->details = e->snapshot = NULL;
	e->event_type = e->kind = e->action = e->actor_type = "";
	e->trigger_name = e->conversation_key = e->reply_kind = "";
	e->route = e->class = e->recording_url = "";
	e->bucket_id = e->creator_id = e->recording_id = 0;
	e->reply_recording_id = e->requester_id = 0;
	e->performed_by_id = e->visible_to_clients = (struct opt){0};
	e->acknowledge = e->routed = false;
	e->content_dropped = true;
}

/* A live task's notices go where its records say. */
static bool
is_on_live_task(const struct model *w, const struct model_event *e)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == e->id &&
		    w->tasks[w->rows[i].task_id - 1].ended_at == NULL)
			return true;
	return false;
}

void
model_retain(struct model *w, int64_t discarded_ms, int64_t completed_ms)
{
	const char *discarded = model_stamp(w->now_ns - discarded_ms * 1000000);
	const char *completed = model_stamp(w->now_ns - completed_ms * 1000000);
	int64_t cleared = 0;

	for (int i = 0; i < w->event_count; i++) {
		struct model_event *e = &w->events[i];

		if (e->content_dropped || e->redispatch_decision != 0 ||
		    is_on_live_task(w, e) ||
		    !is_in(e->state, "completed discarded") ||
		    strcmp(e->updated_at,
			is(e->state, "completed") ? completed : discarded) >= 0)
			continue;
		event_drop(e);
		cleared++;
	}
	w->retention[0] = (struct model_retention){1, cleared, w->now};
	w->retention_count = 1;
}
