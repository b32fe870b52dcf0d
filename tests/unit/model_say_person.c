#include <string.h>

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_say.h"

MODEL_SAY(resolve)
{
	static const char *const resolutions[] = {
	    "sent", "abandon", "resend", "resend", "forget"};
	const struct model_intent *n = some_intent(
	    w, dice, dice_once(dice, 3) ? "canceled" : "indeterminate");
	struct msg_resolve *r = &s->m.resolve;

	*r = (struct msg_resolve){.nonce = some_nonce(w->decision_count, dice),
	    .by = "local:ann",
	    .intent_id = n == NULL || dice_once(dice, 20) ? 999 : n->id,
	    .resolution = ONE_OF(dice, resolutions)};
	if (is(r->resolution, "sent") != dice_once(dice, 10))
		r->receipt_id = some_message(dice);
}

MODEL_SAY(redispatch)
{
	s->m.redispatch.nonce = some_nonce(w->decision_count, dice);
	s->m.redispatch.by = "local:ann";
	s->m.redispatch.event_id =
	    some_event(w, dice, "completed blocked held");
}

MODEL_SAY(discard)
{
	s->m.discard.nonce = some_nonce(w->decision_count, dice);
	s->m.discard.by = "local:bob";
	s->m.discard.event_id = some_event(w, dice,
	    dice_once(dice, 5) ? "discarded" : "completed blocked held");
}

MODEL_SAY(hold)
{
	static const char *const causes[] = {
	    "hold", "hold", "hold", "hold", "shadow_promote", "whim"};

	s->m.hold.nonce = some_nonce(w->decision_count, dice);
	s->m.hold.by = "local:ann";
	s->m.hold.cause = ONE_OF(dice, causes);
}

MODEL_SAY(release)
{
	s->m.release.nonce = some_nonce(w->decision_count, dice);
	s->m.release.by = "local:bob";
}

/* A reconciliation file, sound or not quite. */
MODEL_SAY(import)
{
	static const char *const odd[] = {"", "{}",
	    "{\"version\":2,\"entries\":[]}", "{\"version\":1,\"entries\":[]}x",
	    "{\"version\":1,\"entries\":[]} {}",
	    "{\"version\":1,\"entries\":[{\"event_id\":0,"
	    "\"decision\":\"done\"}]}",
	    "{\"version\":1,\"entries\":[{\"event_id\":101,"
	    "\"decision\":\"gone\"}]}",
	    "{\"version\":1,\"entries\":[],\"note\":\"\"}",
	    "{\"version\":1,\"entries\":[]}"};
	const char *text = "";
	int count = dice_side(dice, 4);

	for (int i = 0; i < count; i++)
		text = model_text("%s%s{\"event_id\":%lld,\"decision\":\"%s\"}",
		    text, i > 0 ? "," : "",
		    (long long)(EVENT_FIRST + dice_side(dice, EVENT_COUNT + 2)),
		    dice_once(dice, 5) ? "held" : "done");
	text = count == 0
	    ? ONE_OF(dice, odd)
	    : model_text("{\"version\":1,\"entries\":[%s]}\n", text);
	s->m.import =
	    (struct msg_import){.nonce = some_nonce(w->decision_count, dice),
		.by = "local:ann",
		.file = {text, strlen(text)}};
}

MODEL_SAY(settle)
{
	s->m.settle.nonce = some_nonce(w->decision_count, dice);
	s->m.settle.by = "local:ann";
	s->m.settle.attempt = some_attempt_id(w, dice, "launching running");
}
