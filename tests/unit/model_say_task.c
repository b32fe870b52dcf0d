#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

MODEL_SAY(next_startable)
{
	s->m.next_startable.after =
	    dice_once(dice, 2) ? 0 : EVENT_FIRST + dice_side(dice, EVENT_COUNT);
	s->m.next_startable.generation = some_generation(w, dice);
}

static int64_t
some_startable(struct model *w, uint64_t *dice)
{
	int start = dice_side(dice, MODEL_EVENTS);

	for (int i = 0; i < w->event_count && !dice_once(dice, 15); i++) {
		const struct model_event *e =
		    &w->events[(start + i) % w->event_count];

		if (model_can_start(w, e))
			return e->id;
	}
	return some_event(w, dice, "admitted queued");
}

MODEL_SAY(launch)
{
	const struct model_attempt *at;

	s->m.launch = (struct msg_launch){
	    .attempt = model_text("att_%024x", w->task_count + 1),
	    .event_id = some_startable(w, dice),
	    .generation = some_generation(w, dice),
	    .driver = dice_once(dice, 2) ? "claude" : "codex",
	    .containment = dice_once(dice, 2) ? "" : "cgroup:/a",
	    .deadline_ms = 2700000};
	if (!dice_once(dice, 6))
		return;
	at = some_attempt(w, dice, "launching");
	if (at == NULL || dice_once(dice, 6)) {
		s->m.launch.attempt = "att_00000000000000000000000G";
		return;
	}
	s->m.launch.attempt = at->id;
	if (!dice_once(dice, 6))
		s->m.launch.event_id =
		    model_task(w, at->task_id)->originating_event_id;
}

MODEL_SAY(join)
{
	s->m.join.attempt = some_attempt_id(w, dice, "launching running");
	s->m.join.generation = some_generation(w, dice);
}

MODEL_SAY(expose)
{
	int start = dice_side(dice, MODEL_ROWS);

	s->m.expose.attempt = some_attempt_id(w, dice, "launching running");
	s->m.expose.event_id = some_event(w, dice, "dispatched");
	for (int i = 0; i < w->row_count && !dice_once(dice, 15); i++) {
		const struct model_row *r =
		    &w->rows[(start + i) % w->row_count];

		if (!is(r->delivery, "admitted") || r->retired_at != NULL)
			continue;
		s->m.expose.attempt = w->attempts[r->task_id - 1].id;
		s->m.expose.event_id = r->event_id;
	}
}

MODEL_SAY(rekey)
{
	s->m.rekey.attempt = some_attempt_id(w, dice, "launching running");
}

MODEL_SAY(take_over)
{
	s->m.take_over.attempt = some_attempt_id(w, dice, "running");
}

MODEL_SAY(running)
{
	int64_t pid = dice_once(dice, 8) ? 78 : 77;

	s->m.running = (struct msg_running){
	    .attempt = some_attempt_id(w, dice, "launching"),
	    .pid = pid,
	    .pgid = dice_once(dice, 16) ? 79 : pid,
	    .started_ticks = 4711,
	    .session_id = "s"};
}

MODEL_SAY(progress)
{
	s->m.progress.attempt = some_attempt_id(w, dice, "launching running");
}

MODEL_SAY(refusal)
{
	s->m.refusal.attempt = some_attempt_id(w, dice, "launching running");
	s->m.refusal.number = 1 + dice_side(dice, 3);
}

MODEL_SAY(still_running)
{
	s->m.still_running.attempt = some_attempt_id(w, dice, "running");
	s->m.still_running.number = 1 + dice_side(dice, 3);
}

MODEL_SAY(tree_held)
{
	s->m.tree_held.attempt = some_attempt_id(w, dice, "launching running");
}

MODEL_SAY(next_live)
{
	s->m.next_live.after_task = dice_side(dice, w->task_count + 2);
}

MODEL_SAY(identity)
{
	s->m.identity.attempt = some_attempt_id(w, dice, "running ended");
}

MODEL_SAY(end)
{
	static const char *const reasons[] = {"finished", "finished",
	    "finished", "failed", "failed", "failed", "deadline", "shutdown",
	    "lost", "bored"};
	struct msg_end *end = &s->m.end;

	*end = (struct msg_end){
	    .attempt = some_attempt_id(w, dice, "launching running"),
	    .stop_reason = ONE_OF(dice, reasons),
	    .refusals = dice_side(dice, 2)};
	end->spawn_failed =
	    is(end->stop_reason, "failed") != dice_once(dice, 20);
	if (end->spawn_failed) {
		end->no_retry = dice_once(dice, 6);
		end->uncharged = dice_once(dice, 6);
	}
}

/* A message that the agent posted by itself. */
#define UNNAMED 9101

/* A row that may be adopted for, mostly; or NULL. */
static const struct model_row *
some_unknown(struct model *w, uint64_t *dice)
{
	int start = dice_side(dice, MODEL_ROWS);

	for (int i = 0; i < w->row_count && !dice_once(dice, 15); i++) {
		const struct model_row *r =
		    &w->rows[(start + i) % w->row_count];

		if (is(r->outcome, "unknown") && r->delivered_at != NULL)
			return r;
	}
	return NULL;
}

MODEL_SAY(adoptable_next)
{
	const struct model_row *r = some_unknown(w, dice);

	s->m.adoptable_next.attempt = r != NULL
	    ? w->attempts[r->task_id - 1].id
	    : some_attempt_id(w, dice, "ended");
	s->m.adoptable_next.after_event =
	    dice_once(dice, 3) ? EVENT_FIRST + dice_side(dice, EVENT_COUNT) : 0;
}

MODEL_SAY(adopt)
{
	const struct model_row *r = some_unknown(w, dice);
	struct msg_adopt *adopt = &s->m.adopt;

	*adopt = (struct msg_adopt){some_attempt_id(w, dice, "ended"),
	    some_event(w, dice, "completed"), some_message(dice), 0, NO_WORDS};
	if (r != NULL) {
		adopt->attempt = w->attempts[r->task_id - 1].id;
		adopt->event_id = r->event_id;
	}
	if (dice_once(dice, 2)) /* that nobody else can name */
		adopt->reply_id = UNNAMED + dice_side(dice, 2);
	if (w->told.attempt == NULL)
		return;
	adopt->as_of = dice_once(dice, 12) ? 0 : w->told.as_of;
	if (!dice_once(dice, 12))
		adopt->words = w->told.words;
	if (!dice_once(dice, 4)) {
		adopt->attempt = w->told.attempt;
		adopt->event_id = w->told.event_id;
	}
}
