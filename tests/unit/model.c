#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/model.h"

/* ---- texts ---------------------------------------------------------- */

static char texts[1 << 20];
static size_t texts_used;

const char *
model_text(const char *fmt, ...)
{
	char *out = texts + texts_used;
	size_t room = sizeof(texts) - texts_used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		abort();
	texts_used += (size_t)n + 1;
	return out;
}

const char *
model_stamp(int64_t ns)
{
	char stamp[CLOCK_STAMP_SIZE];

	clock_stamp_ns(ns, stamp);
	return model_text("%s", stamp);
}

bool
is(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

bool
is_in(const char *a, const char *list)
{
	size_t len = strlen(a), word;

	for (; *list != '\0'; list += word + (list[word] == ' ')) {
		word = strcspn(list, " ");
		if (word == len && memcmp(a, list, len) == 0)
			return true;
	}
	return false;
}

/* ---- rows ----------------------------------------------------------- */

struct model_event *
model_event(struct model *w, int64_t id)
{
	for (int i = 0; i < w->event_count; i++)
		if (w->events[i].id == id)
			return &w->events[i];
	return NULL;
}

struct model_task *
model_task(struct model *w, int64_t id)
{
	return id >= 1 && id <= w->task_count ? &w->tasks[id - 1] : NULL;
}

struct model_attempt *
model_attempt(struct model *w, const char *id)
{
	for (int i = 0; i < w->task_count; i++)
		if (is(w->attempts[i].id, id))
			return &w->attempts[i];
	return NULL;
}

struct model_intent *
model_intent(struct model *w, int64_t id)
{
	return id >= 1 && id <= w->intent_count ? &w->intents[id - 1] : NULL;
}

struct model_row *
model_row(struct model *w, int64_t task, int64_t event)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].task_id == task && w->rows[i].event_id == event)
			return &w->rows[i];
	return NULL;
}

struct model_row *
model_row_live(struct model *w, int64_t event)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].event_id == event &&
		    w->rows[i].retired_at == NULL)
			return &w->rows[i];
	return NULL;
}

const char *
model_route(const struct model *w, int64_t project)
{
	for (int i = 0; i < w->route_count; i++)
		if (w->routes[i].project_id == project)
			return w->routes[i].path;
	return NULL;
}

/* What intake has not decided yet (design L11). */
int64_t
model_depth(const struct model *w)
{
	int64_t depth = 0;

	for (int i = 0; i < w->event_count; i++)
		depth += is(w->events[i].state, "seen");
	return depth;
}

int64_t
model_ms_until(const struct model *w, const char *stamp)
{
	int64_t ns;

	if (clock_parse(stamp, &ns) == -1)
		abort();
	return ns <= w->now_ns ? 0 : (ns - w->now_ns + 999999) / 1000000;
}

struct model_event *
model_event_place(struct model *w, int64_t id)
{
	int at = w->event_count++;

	for (; at > 0 && w->events[at - 1].id > id; at--)
		w->events[at] = w->events[at - 1];
	return &w->events[at];
}

/* ---- a record's state ----------------------------------------------- */

void
model_review(struct model *w, struct model_event *e)
{
	if (!is_in(e->state, "admitted queued") || !e->review ||
	    e->authorized_at != NULL)
		return;
	e->state = "held";
	e->reason = "";
	e->revision++;
	(void)model_intent_cancel(w, e->id, "guard_ack");
}

void
model_move(
    struct model *w, struct model_event *e, const char *state, const char *why)
{
	bool was_blocked = is(e->state, "blocked");
	bool is_blocked = is(state, "blocked");

	if (!is(e->state, state))
		e->updated_at = w->now;
	if (!is_blocked)
		e->blocked_at = e->retry_since = NULL;
	else {
		if (!was_blocked || !is(e->reason, why))
			e->retry_since = w->now;
		if (!was_blocked)
			e->blocked_at = w->now;
	}
	e->retry_at = e->next_retry_at = NULL;
	e->is_rerun = false;
	if (is_in(state, "blocked discarded"))
		e->snapshot = NULL;
	e->state = state;
	e->reason = why;
	e->revision++;
	model_review(w, e);
}

bool
model_is_live(struct model *w, const struct model_event *e)
{
	for (int i = 0; i < w->event_count; i++) {
		const struct model_event *other = &w->events[i];

		if (other->id != e->id && *e->conversation_key != '\0' &&
		    is(other->conversation_key, e->conversation_key) &&
		    is_in(other->state, "admitted dispatched"))
			return true;
	}
	return false;
}

/* ---- intents -------------------------------------------------------- */

struct model_intent *
model_intent_add(struct model *w, const char *kind, const char *key,
    const char *message_kind, int64_t bucket, int64_t recording,
    const char *due)
{
	struct model_intent *n = &w->intents[w->intent_count];

	for (int i = 0; i < w->intent_count; i++)
		if (is(w->intents[i].key, key))
			return NULL;
	if (w->intent_count == MODEL_INTENTS)
		abort();
	*n = (struct model_intent){.id = ++w->intent_count,
	    .key = key,
	    .kind = kind,
	    .state = "pending",
	    .bucket_id = bucket,
	    .message_kind = message_kind,
	    .recording_id = recording,
	    .created_at = w->now,
	    .not_before = due,
	    .answers_reason = "",
	    .hash = "",
	    .resolved_by = ""};
	return n;
}

int
model_intent_cancel(struct model *w, int64_t event, const char *kinds)
{
	int count = 0;

	for (int i = 0; i < w->intent_count; i++) {
		struct model_intent *n = &w->intents[i];

		if (n->event_id.value != event || !is(n->state, "pending") ||
		    !is_in(n->kind, kinds))
			continue;
		n->state = "canceled";
		n->finished_at = MODEL_SOME;
		count++;
	}
	return count;
}

/* ---- being asked ---------------------------------------------------- */

void
due_failed(struct model_answer *a, const char *reason)
{
	a->m.type = MSG_FAILED;
	a->m.failed = (struct msg_failed){.reason = reason};
	a->unknown = "text wait_ms";
}

void
due_done(struct model_answer *a, bool changed)
{
	a->m.type = MSG_DONE;
	a->m.done.changed = changed;
}

static const model_handler handlers[MSG_COUNT] = {
    [MSG_RECORD] = model_record,
    [MSG_CHECKPOINT] = model_checkpoint,
    [MSG_DROP_POSITION] = model_drop_position,
    [MSG_ENTRY] = model_entry,
    [MSG_GAP] = model_gap,
    [MSG_VERDICT] = model_verdict,
    [MSG_NEXT_UNDECIDED] = model_next_undecided,
    [MSG_CONNECTION] = model_connection,
    [MSG_COUNT_DEATH] = model_count_death,
    [MSG_LOSS] = model_loss,
    [MSG_LOSS_NEXT] = model_loss_next,
    [MSG_LOSS_CURSOR] = model_loss_cursor,
    [MSG_LOSS_ENTRY] = model_loss_entry,
    [MSG_LOSS_DEADLINE] = model_loss_deadline,
    [MSG_LOSS_CLOSE] = model_loss_close,
    [MSG_NEXT_STARTABLE] = model_next_startable,
    [MSG_LAUNCH] = model_launch,
    [MSG_JOIN] = model_join,
    [MSG_EXPOSE] = model_expose,
    [MSG_REKEY] = model_rekey,
    [MSG_TAKE_OVER] = model_take_over,
    [MSG_RUNNING] = model_running,
    [MSG_PROGRESS] = model_progress,
    [MSG_REFUSAL] = model_refusal,
    [MSG_STILL_RUNNING] = model_still_running,
    [MSG_TREE_HELD] = model_tree_held,
    [MSG_NEXT_LIVE] = model_next_live,
    [MSG_IDENTITY] = model_identity,
    [MSG_END] = model_end,
    [MSG_ADOPTABLE_NEXT] = model_adoptable_next,
    [MSG_ADOPT] = model_adopt,
    [MSG_BIND] = model_bind,
    [MSG_CHECK_TOKEN] = model_check_token,
    [MSG_GET_DISPATCH] = model_get_dispatch,
    [MSG_ACK_DISPATCH] = model_ack_dispatch,
    [MSG_COMPLETE_DISPATCH] = model_complete_dispatch,
    [MSG_POST] = model_post,
    [MSG_THREAD_OF] = model_thread_of,
    [MSG_CLAIM] = model_claim,
    [MSG_RECEIPT] = model_receipt,
    [MSG_REFUSED] = model_refused,
    [MSG_DEFER] = model_defer,
    [MSG_IN_DOUBT] = model_in_doubt,
    [MSG_LISTED] = model_listed,
    [MSG_NEXT_SENDING] = model_next_sending,
    [MSG_NEXT_DUE] = model_next_due,
    [MSG_RENEWAL_HOLD] = model_renewal_hold,
    [MSG_RENEWAL_HOLD_OF] = model_renewal_hold_of,
    [MSG_SETTLE] = model_settle,
    [MSG_RESOLVE] = model_resolve,
    [MSG_REDISPATCH] = model_redispatch,
    [MSG_DISCARD] = model_discard,
    [MSG_HOLD] = model_hold,
    [MSG_RELEASE] = model_release,
    [MSG_IMPORT] = model_import,
};

bool
model_knows(enum msg_type type)
{
	return handlers[type] != NULL;
}

/* A refusal has written nothing, whatever its handler did before it. */
void
model_ask(struct model *w, const struct msg *m, const char *attempt,
    struct model_answer *a)
{
	static struct model before;

	before = *w;
	memset(a, 0, sizeof(*a));
	a->m.type = msg_info(m->type)->reply;
	handlers[m->type](w, m, attempt, a);
	if (a->m.type == MSG_FAILED)
		*w = before;
}

void
model_time(struct model *w, int64_t ns)
{
	w->now_ns = ns;
	w->now = model_stamp(ns);
}

void
model_init(struct model *w, int64_t ns)
{
	texts_used = 0;
	memset(w, 0, sizeof(*w));
	w->boot_id = w->run_id = "";
	model_time(w, ns);
}
