#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

static void
say_nothing(struct model *w, uint64_t *dice, struct said *s)
{
}

struct kind {
	enum msg_type type;
	int weight;
	/* It is much more likely while there is one of those. */
	bool (*has_reason)(struct model *w);
	void (*say)(struct model *w, uint64_t *dice, struct said *s);
};

static bool
always(struct model *w)
{
	return true;
}

static bool
never(struct model *w)
{
	return false;
}

static bool
has_undecided(struct model *w)
{
	for (int i = 0; i < w->event_count; i++)
		if (is_in(w->events[i].state, "seen blocked"))
			return true;
	return false;
}

static bool
has_startable(struct model *w)
{
	for (int i = 0; i < w->event_count; i++)
		if (model_can_start(w, &w->events[i]))
			return true;
	return false;
}

static bool
has_launching(struct model *w)
{
	for (int i = 0; i < w->task_count; i++)
		if (is(w->attempts[i].state, "launching"))
			return true;
	return false;
}

static bool
has_attempt(struct model *w)
{
	for (int i = 0; i < w->task_count; i++)
		if (!is(w->attempts[i].state, "ended"))
			return true;
	return false;
}

static bool
has_handed(struct model *w)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].retired_at == NULL)
			return true;
	return false;
}

static bool
has_waiting(struct model *w)
{
	for (int i = 0; i < w->row_count; i++)
		if (w->rows[i].retired_at == NULL &&
		    is(w->rows[i].delivery, "admitted"))
			return true;
	return false;
}

static bool
has_unknown(struct model *w)
{
	for (int i = 0; i < w->row_count; i++)
		if (is(w->rows[i].outcome, "unknown") &&
		    w->rows[i].delivered_at != NULL &&
		    !w->rows[i].adopted_reply_id.has)
			return true;
	return false;
}

/* And not so long ago that it is refused for that. */
static bool
has_told(struct model *w)
{
	const struct model_attempt *at = model_attempt(w, w->told.attempt);

	return at != NULL && w->told.as_of + 2 >= w->intent_count &&
	    !model_row(w, at->task_id, w->told.event_id)->adopted_reply_id.has;
}

static bool
has_pulled(struct model *w)
{
	uint64_t dice = 1;

	return some_pulled(w, &dice, "exposed delivered") != NULL;
}

static bool
has_pending(struct model *w)
{
	for (int i = 0; i < w->intent_count; i++)
		if (is(w->intents[i].state, "pending") &&
		    model_ms_until(w, w->intents[i].not_before) == 0)
			return true;
	return false;
}

static bool
has_doubt(struct model *w)
{
	for (int i = 0; i < w->intent_count; i++)
		if (w->intents[i].refused ||
		    is(w->intents[i].state, "indeterminate"))
			return true;
	return false;
}

static bool
has_decidable(struct model *w)
{
	for (int i = 0; i < w->event_count; i++)
		if (is_in(w->events[i].state, "completed blocked held"))
			return true;
	return false;
}

static bool
has_hold(struct model *w)
{
	return w->hold_count > 0;
}

static bool
has_loss(struct model *w)
{
	return w->loss_count > 0;
}

static bool
has_sending(struct model *w)
{
	for (int i = 0; i < w->intent_count; i++)
		if (is(w->intents[i].state, "sending"))
			return true;
	return false;
}

static const struct kind kinds[] = {
    {STEP_WAIT, 12, always, say_nothing},
    {STEP_RESTART, 8, never, say_nothing}, /* it takes long */
    {STEP_RETAIN, 2, always, say_nothing},
    {STEP_CONFIGURE, 2, always, say_nothing},
    {MSG_RECORD, 16, always, say_record},
    {MSG_CHECKPOINT, 3, always, say_checkpoint},
    {MSG_DROP_POSITION, 2, always, say_drop_position},
    {MSG_ENTRY, 2, always, say_entry},
    {MSG_GAP, 2, always, say_gap},
    {MSG_LOSS, 3, always, say_loss},
    {MSG_LOSS_NEXT, 2, has_loss, say_loss_next},
    {MSG_LOSS_CURSOR, 2, has_loss, say_loss_cursor},
    {MSG_LOSS_ENTRY, 2, has_loss, say_loss_entry},
    {MSG_LOSS_DEADLINE, 2, has_loss, say_loss_deadline},
    {MSG_LOSS_CLOSE, 2, has_loss, say_loss_close},
    {MSG_COUNT_DEATH, 2, has_undecided, say_count_death},
    {MSG_NEXT_UNDECIDED, 3, has_undecided, say_next_undecided},
    {MSG_VERDICT, 40, has_undecided, say_verdict},
    {MSG_CONNECTION, 1, always, say_connection},
    {MSG_NEXT_STARTABLE, 5, has_startable, say_next_startable},
    {MSG_LAUNCH, 40, has_startable, say_launch},
    {MSG_JOIN, 8, has_attempt, say_join},
    {MSG_EXPOSE, 8, has_waiting, say_expose},
    {MSG_REKEY, 3, has_attempt, say_rekey},
    {MSG_TAKE_OVER, 1, has_attempt, say_take_over},
    {MSG_RUNNING, 12, has_launching, say_running},
    {MSG_PROGRESS, 2, has_attempt, say_progress},
    {MSG_REFUSAL, 2, has_attempt, say_refusal},
    {MSG_STILL_RUNNING, 3, has_attempt, say_still_running},
    {MSG_TREE_HELD, 1, has_attempt, say_tree_held},
    {MSG_NEXT_LIVE, 2, has_attempt, say_next_live},
    {MSG_IDENTITY, 2, has_attempt, say_identity},
    {MSG_END, 9, has_attempt, say_end},
    {MSG_ADOPTABLE_NEXT, 20, has_unknown, say_adoptable_next},
    {MSG_ADOPT, 20, has_told, say_adopt},
    {MSG_BIND, 3, has_attempt, say_bind},
    {MSG_CHECK_TOKEN, 3, has_attempt, say_check_token},
    {MSG_GET_DISPATCH, 24, has_handed, say_get_dispatch},
    {MSG_ACK_DISPATCH, 12, has_pulled, say_ack_dispatch},
    {MSG_COMPLETE_DISPATCH, 12, has_pulled, say_complete_dispatch},
    {MSG_POST, 14, has_pulled, say_post},
    {MSG_THREAD_OF, 3, has_pulled, say_thread_of},
    {MSG_CLAIM, 20, has_pending, say_claim},
    {MSG_RECEIPT, 8, has_sending, say_receipt},
    {MSG_REFUSED, 3, has_sending, say_refused},
    {MSG_DEFER, 3, has_sending, say_defer},
    {MSG_IN_DOUBT, 3, has_sending, say_in_doubt},
    {MSG_LISTED, 6, has_sending, say_listed},
    {MSG_NEXT_SENDING, 4, has_sending, say_next_sending},
    {MSG_RESOLVE, 10, has_doubt, say_resolve},
    {MSG_REDISPATCH, 10, has_decidable, say_redispatch},
    {MSG_DISCARD, 3, has_decidable, say_discard},
    {MSG_HOLD, 1, always, say_hold},
    {MSG_RELEASE, 12, has_hold, say_release},
    {MSG_SETTLE, 1, has_attempt, say_settle},
    {MSG_IMPORT, 1, always, say_import},
    {MSG_NEXT_DUE, 2, has_pending, say_nothing},
    {MSG_RENEWAL_HOLD, 1, always, say_renewal_hold},
    {MSG_RENEWAL_HOLD_OF, 1, always, say_renewal_hold_of},
};

#define KIND_COUNT ((int)(sizeof(kinds) / sizeof(kinds[0])))

struct step
story_next(struct model *w, uint64_t *dice)
{
	struct step s = {.is_joined = dice_once(dice, 5)};
	int weights[KIND_COUNT], sum = 0, at;

	for (int i = 0; i < KIND_COUNT; i++) {
		weights[i] = kinds[i].weight * 24;
		if (!kinds[i].has_reason(w))
			weights[i] /= 24;
		sum += weights[i];
	}
	at = dice_side(dice, sum);
	for (int i = 0; i < KIND_COUNT; i++) {
		if (at < weights[i]) {
			s.type = kinds[i].type;
			break;
		}
		at -= weights[i];
	}
	s.dice = dice_throw(dice) | 1;
	return s;
}

static enum role_id
sender_of(enum msg_type type)
{
	enum role_id from = 0;

	if (!model_knows(type))
		return from;
	while (!msg_permitted(type, from, ROLE_LEDGER))
		from++;
	return from;
}

void
story_say(struct model *w, const struct step *s, struct said *out)
{
	uint64_t dice = s->dice;

	memset(out, 0, sizeof(*out));
	out->m.type = s->type;
	out->attempt = "";
	out->from = sender_of(s->type);
	for (int i = 0; i < KIND_COUNT; i++)
		if (kinds[i].type == s->type)
			kinds[i].say(w, &dice, out);
}

int64_t
story_wait(const struct step *s)
{
	static const int64_t waits[] = {1, 500, 29999, 30000, 31000, 60000,
	    600000, 3600000, KEEP_MS, -1, -45000};
	uint64_t dice = s->dice;

	return ONE_OF(&dice, waits);
}

void
story_configure(struct model *w, const struct step *s)
{
	static const char *const paths[] = {
	    OTHER_ROUTE, OTHER_ROUTE, "/srv/moved", NULL};
	uint64_t dice = s->dice;
	const char *path = ONE_OF(&dice, paths);

	w->generation++;
	w->routes[0] = (struct model_route){PROJECT, ROUTE};
	w->routes[1] = (struct model_route){OTHER_PROJECT, path};
	w->route_count = path == NULL ? 1 : 2;
}
