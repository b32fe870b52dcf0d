#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

/* The token of task T as its mcpd holds it; now and then another's. */
static const char *
token_of(
    struct model *w, uint64_t *dice, const struct model_task *t, struct said *s)
{
	const char *token = dice_once(dice, 30) ? t->old_token : t->token;

	s->attempt = dice_once(dice, 40)
	    ? some_attempt(w, dice, "launching running ended")->id
	    : w->attempts[t->id - 1].id;
	return *token == '\0' ? NO_TOKEN : token;
}

/* A link's attempt and its token. */
static const char *
some_token(struct model *w, uint64_t *dice, struct said *s)
{
	const struct model_attempt *at =
	    some_attempt(w, dice, "launching running");

	if (at != NULL)
		return token_of(w, dice, model_task(w, at->task_id), s);
	s->attempt = NO_ATTEMPT;
	return NO_TOKEN;
}

/* An event of the link's task, at any delivery. */
static int64_t
some_handed(struct model *w, uint64_t *dice, const char *attempt)
{
	const struct model_attempt *at = model_attempt(w, attempt);
	int start = dice_side(dice, MODEL_ROWS);

	for (int i = 0; i < w->row_count && at != NULL && !dice_once(dice, 30);
	     i++) {
		const struct model_row *r =
		    &w->rows[(start + i) % w->row_count];

		if (r->task_id == at->task_id)
			return r->event_id;
	}
	return some_event(w, dice, "dispatched completed");
}

/* What a report may be about: a pulled row, but not always. */
static const char *
some_report(struct model *w, uint64_t *dice, struct said *s,
    const char *deliveries, int64_t *event)
{
	const struct model_row *r = some_pulled(w, dice, deliveries);
	const char *token;

	if (r == NULL || dice_once(dice, 10)) {
		token = some_token(w, dice, s);
		*event = some_handed(w, dice, s->attempt);
		return token;
	}
	*event = r->event_id;
	return token_of(w, dice, model_task(w, r->task_id), s);
}

MODEL_SAY(bind)
{
	s->m.bind.token = some_token(w, dice, s);
}

MODEL_SAY(check_token)
{
	s->m.check_token.token = some_token(w, dice, s);
}

MODEL_SAY(get_dispatch)
{
	s->m.get_dispatch.token = some_token(w, dice, s);
	if (!dice_once(dice, 2))
		s->m.get_dispatch.event_id = some_handed(w, dice, s->attempt);
}

MODEL_SAY(ack_dispatch)
{
	s->m.ack_dispatch.token = some_report(w, dice, s,
	    dice_once(dice, 2) ? "exposed" : "exposed delivered completed",
	    &s->m.ack_dispatch.event_id);
	s->m.ack_dispatch.ack_id = maybe_message(dice);
}

MODEL_SAY(complete_dispatch)
{
	static const char *const outcomes[] = {"succeeded", "succeeded",
	    "failed", "failed", "failed", "succeeded", "failed", "succeeded",
	    "failed", "succeeded", "unknown", "maybe"};
	static const char *const links[] = {"", "", "[]",
	    "[\"https://a.example/b\"]", "[\"HTTP://a.example\"]",
	    "[\"https://a.example/b\",\"http://c.example:8080/?d\"]",
	    "[\"ftp://a.example\"]", "[\"https:///b\"]", "[7]", "{}", "[\"\"]",
	    "[\"/path\"]"};
	struct msg_complete_dispatch *c = &s->m.complete_dispatch;
	const char *text = ONE_OF(dice, links);

	c->token = some_report(w, dice, s,
	    dice_once(dice, 2) ? "exposed delivered" : "delivered completed",
	    &c->event_id);
	c->outcome = ONE_OF(dice, outcomes);
	if (!dice_once(dice, 4))
		text = "";
	c->links = (struct blob){text, strlen(text)};
	c->reply_id = maybe_message(dice);
}

MODEL_SAY(post)
{
	static const char *const bodies[][2] = {{"<div>one</div>", "one"},
	    {"<div>one<br></div>", "one"}, {"<div>two</div>", "two"}, {"", ""}};
	struct msg_post *p = &s->m.post;
	int n = dice_side(dice, 4), hash = dice_side(dice, 6);

	p->token = some_report(
	    w, dice, s, "exposed delivered completed", &p->event_id);
	p->kind = dice_once(dice, 30) ? "worker_song"
	    : dice_once(dice, 2)      ? "worker_ack"
				      : "worker_reply";
	p->hash = model_text("%064x", hash);
	p->comment = (struct blob){bodies[n][0], strlen(bodies[n][0])};
	p->line = (struct blob){bodies[n][1], strlen(bodies[n][1])};
}
