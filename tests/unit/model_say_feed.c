#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

MODEL_SAY(record)
{
	static const char *const lanes[] = {
	    "poll", "live", "repair", "poll", "live", "poll", "import"};
	int64_t id = dice_once(dice, 4)
	    ? EVENT_FIRST + dice_side(dice, EVENT_COUNT)
	    : EVENT_FIRST + w->event_count % EVENT_COUNT;

	s->m.record = (struct msg_record){.event_id = id,
	    .lane = ONE_OF(dice, lanes),
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = project_of(id),
	    .creator_id = OPERATOR,
	    .performed_by_id = {dice_once(dice, 2), 0},
	    .recording_id = RECORDING(id % 2),
	    .actor_type = dice_once(dice, 2) ? "" : "Person",
	    .visible_to_clients = {dice_once(dice, 2), dice_side(dice, 2)},
	    .created_at = dice_once(dice, 30)
		? "2026-01-05 08:59:00.500000000Z"
		: "2026-01-05T08:59:00.500000000Z"};
	if (s->m.record.performed_by_id.has)
		s->m.record.performed_by_id.value = AGENT;
	if (dice_once(dice, 2))
		s->m.record.details = (struct blob){"{\"n\":1}", 7};
	if (!s->m.record.visible_to_clients.has)
		s->m.record.visible_to_clients.value = 0;
}

static void
say_verdict_texts(uint64_t *dice, struct msg_verdict *v)
{
	static const char *const reasons[] = {"no_route", "no_route",
	    "read_failed", "throttled", "trust_unverified"};
	static const char *const never[] = {"not_addressed", "own_event"};

	if (is(v->state, "blocked"))
		v->reason = ONE_OF(dice, reasons);
	else if (is(v->state, "discarded"))
		v->reason = ONE_OF(dice, never);
	if (dice_once(dice, 40))
		v->reason = *v->reason == '\0' ? "no_route" : "";
	if (is(v->state, "admitted") != dice_once(dice, 40))
		v->snapshot = (struct blob){SNAPSHOT, strlen(SNAPSHOT)};
	if (dice_once(dice, 40))
		v->conversation_key = "";
	if (dice_once(dice, 25))
		v->routed = false;
	if (dice_once(dice, 12))
		v->route = "/srv/elsewhere";
	if (dice_once(dice, 12))
		v->reply_kind = "";
	if (dice_once(dice, 12))
		v->reply_recording_id = 0;
}

MODEL_SAY(verdict)
{
	static const char *const states[] = {"admitted", "admitted", "admitted",
	    "admitted", "admitted", "admitted", "admitted", "admitted",
	    "blocked", "blocked", "blocked", "discarded"};
	int64_t id = some_event(w, dice, "seen blocked");
	const struct model_event *e = model_event(w, id);
	struct msg_verdict *v = &s->m.verdict;

	*v = (struct msg_verdict){.event_id = id,
	    .revision = e == NULL ? 0 : e->revision,
	    .state = dice_once(dice, 40) ? "queued" : ONE_OF(dice, states),
	    .reason = "",
	    .trigger = dice_once(dice, 4) ? "subscribed" : "mentioned",
	    .conversation_key = key_of(id),
	    .reply_kind = id % 3 == 0 ? "chat_line" : "comment",
	    .reply_recording_id = REPLY_TO(id % 3),
	    .routed = true,
	    .route = project_of(id) == PROJECT ? ROUTE : OTHER_ROUTE,
	    .class = dice_once(dice, 2) ? "web" : "",
	    .recording_url = "https://3.basecamp.com/999/buckets/10/x",
	    .requester_id = OPERATOR,
	    .retry_at = "",
	    .next_retry_at = ""};
	v->acknowledge = is(v->trigger, "mentioned");
	v->rerun = model_newest_rerun(w, id);
	if (dice_once(dice, 12) && v->revision > 0)
		v->revision--;
	if (dice_once(dice, 12) && v->rerun > 0)
		v->rerun--;
	say_verdict_texts(dice, v);
	if (is(v->state, "blocked") != dice_once(dice, 25) &&
	    dice_once(dice, 2))
		v->next_retry_at =
		    model_stamp(w->now_ns + INT64_C(600000000000));
	if (is(v->reason, "throttled"))
		v->retry_at = model_stamp(w->now_ns + INT64_C(60000000000));
}

static const char *
flat_key(uint64_t *dice)
{
	static const char *const keys[] = {"999:a", "999:b"};

	return ONE_OF(dice, keys);
}

static const char *
position(uint64_t *dice)
{
	static const char *const positions[] = {"p1", "p2", "p3"};

	return ONE_OF(dice, positions);
}

MODEL_SAY(checkpoint)
{
	s->m.checkpoint = (struct msg_checkpoint){.flat_key = flat_key(dice),
	    .lineage = "999",
	    .position = dice_once(dice, 4) ? "" : position(dice),
	    .served_id =
		dice_once(dice, 4) ? 0 : EVENT_FIRST + dice_side(dice, 10)};
}

MODEL_SAY(drop_position)
{
	s->m.drop_position.flat_key = flat_key(dice);
	s->m.drop_position.position = position(dice);
}

static int64_t
some_loss(struct model *w, uint64_t *dice)
{
	return 1 +
	    dice_side(dice,
		w->loss_count + (w->loss_count == 0 || dice_once(dice, 10)));
}

MODEL_SAY(loss)
{
	static const char *const lists[] = {"[101]", "[103,102,103]",
	    "[102,104,106]", "[107,105]", "[101,102,103,104,105,106,107]", "[]",
	    "[0]", "{}"};
	const char *ids = ONE_OF(dice, lists);

	s->m.loss = (struct msg_loss){.nonce = some_nonce(w->loss_count, dice),
	    .filters = dice_once(dice, 2) ? "" : "{}",
	    .ids = {ids, strlen(ids)},
	    .window_ms = 3600000};
	if (w->loss_count == MODEL_KEYS)
		s->m.loss.nonce = nonce_of(1);
}

MODEL_SAY(loss_next)
{
	s->m.loss_next.after = dice_side(dice, w->loss_count + 1);
}

MODEL_SAY(loss_cursor)
{
	s->m.loss_cursor.loss_id = some_loss(w, dice);
	s->m.loss_cursor.cursor = dice_once(dice, 3) ? "" : position(dice);
}

MODEL_SAY(loss_entry)
{
	s->m.loss_entry.loss_id = some_loss(w, dice);
	s->m.loss_entry.epoch_after_id =
	    EVENT_FIRST + dice_side(dice, EVENT_COUNT);
}

MODEL_SAY(loss_deadline)
{
	s->m.loss_deadline.loss_id = some_loss(w, dice);
	s->m.loss_deadline.deadline_at = dice_once(dice, 6)
	    ? "2026-01-06 08:59:00.500000000Z"
	    : model_stamp(w->now_ns + INT64_C(7200000000000));
}

MODEL_SAY(loss_close)
{
	s->m.loss_close.loss_id = some_loss(w, dice);
}

MODEL_SAY(count_death)
{
	s->m.count_death.event_id =
	    some_event(w, dice, "seen admitted queued blocked");
	s->m.count_death.death = nonce_of(dice_side(dice, 3));
}

MODEL_SAY(entry)
{
	s->m.entry.flat_key = flat_key(dice);
	s->m.entry.lineage = "999";
}

MODEL_SAY(gap)
{
	static const char *const classes[] = {"epoch", "retention", "hole"};
	static const char *const entries[] = {
	    "", "present", "replay", "unknown", "other"};

	s->m.gap = (struct msg_gap){.nonce = some_nonce(w->gap_count, dice),
	    .class = ONE_OF(dice, classes),
	    .entry_class = ONE_OF(dice, entries),
	    .note = ""};
	if (is(s->m.gap.class, "epoch") != dice_once(dice, 6))
		s->m.gap.epoch_after_id =
		    (struct opt){true, dice_side(dice, 3)};
}

MODEL_SAY(next_undecided)
{
	s->m.next_undecided.after =
	    dice_once(dice, 2) ? 0 : EVENT_FIRST + dice_side(dice, EVENT_COUNT);
}

MODEL_SAY(thread_of)
{
	s->m.thread_of.attempt = some_attempt_id(w, dice, "launching running");
	s->m.thread_of.event_id = some_event(w, dice, "dispatched completed");
}
