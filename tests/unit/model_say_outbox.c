#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

MODEL_SAY(claim)
{
	s->m.claim.nonce = some_nonce(w->claims, dice);
	s->m.claim.after =
	    dice_once(dice, 8) ? dice_side(dice, w->intent_count + 1) : 0;
}

/* An intent that is being sent and its claim's nonce, or nearly so. */
static int64_t
some_claim(struct model *w, uint64_t *dice, const char **nonce)
{
	const struct model_intent *n = some_intent(w, dice, "sending");

	*nonce = nonce_of(999);
	if (n == NULL || dice_once(dice, 40))
		return 999;
	if (n->nonce != NULL && !dice_once(dice, 15))
		*nonce = n->nonce;
	return n->id;
}

MODEL_SAY(receipt)
{
	s->m.receipt.intent_id = some_claim(w, dice, &s->m.receipt.nonce);
	s->m.receipt.receipt_id = some_message(dice);
}

MODEL_SAY(refused)
{
	s->m.refused.intent_id = some_claim(w, dice, &s->m.refused.nonce);
	s->m.refused.note = "forbidden";
}

MODEL_SAY(defer)
{
	s->m.defer.intent_id = some_claim(w, dice, &s->m.defer.nonce);
	s->m.defer.failures = dice_side(dice, 3);
	s->m.defer.delay_ms = 30000 * dice_side(dice, 3);
}

MODEL_SAY(in_doubt)
{
	s->m.in_doubt.intent_id = some_claim(w, dice, &s->m.in_doubt.nonce);
	s->m.in_doubt.failures = dice_side(dice, 11);
	s->m.in_doubt.note = "listing failed";
}

MODEL_SAY(listed)
{
	struct ids *ids = &s->m.listed.candidates;

	s->m.listed.intent_id = some_claim(w, dice, &s->m.listed.nonce);
	ids->count = (size_t)(dice_once(dice, 2) ? 1 : dice_side(dice, 4));
	for (size_t i = 0; i < ids->count; i++)
		s->ids[i] = some_message(dice);
	ids->list = s->ids;
}

MODEL_SAY(next_sending)
{
	s->m.next_sending.after =
	    dice_once(dice, 2) ? 0 : dice_side(dice, w->intent_count + 1);
	s->m.next_sending.least_age_ms = dice_once(dice, 2) ? 0 : 60000;
}

MODEL_SAY(renewal_hold)
{
	s->m.renewal_hold.fingerprint = nonce_of(dice_side(dice, 2));
	s->m.renewal_hold.reason = dice_once(dice, 3) ? "" : "revoked";
	s->m.renewal_hold.until =
	    dice_once(dice, 2) ? "" : "2026-01-05T10:00:00.000000000Z";
}

MODEL_SAY(renewal_hold_of)
{
	s->m.renewal_hold_of.fingerprint = nonce_of(dice_side(dice, 2));
}

MODEL_SAY(connection)
{
	s->m.connection.state = dice_once(dice, 2) ? "running" : "stopped";
	s->m.connection.pid = 1 + dice_side(dice, 2);
	s->m.connection.detail = "";
}
