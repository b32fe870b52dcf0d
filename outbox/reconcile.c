/*
 * An intent that was left `sending` (operator.md 1.8): its destination is
 * listed and compared; what is found is the ledger's to judge. Nothing is
 * ever posted again from here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "outbox/listing.h"

struct doubt {
	struct outbox *o;
	int64_t intent_id;
	char nonce[33];
	int64_t failures;
};

static void
on_settled(struct peer *peer, struct msg *m, void *arg)
{
	struct doubt *d = arg;
	struct outbox *o = d->o;

	o->listed = d->intent_id;
	if (m->type == MSG_SETTLED)
		log_info("intent %lld, left in doubt: %s",
		    (long long)d->intent_id, m->settled.state);
	else
		log_warnx("intent %lld: the ledger does not settle it: %s",
		    (long long)d->intent_id, m->failed.text);
	free(d);
	work_step_done(o);
}

static void
settle_listed(struct doubt *d, const int64_t *candidates, size_t count)
{
	struct msg m = {.type = MSG_LISTED};

	m.listed.intent_id = d->intent_id;
	m.listed.nonce = d->nonce;
	m.listed.candidates = (struct ids){candidates, count};
	(void)peer_request(outbox_ledger(d->o), &m, on_settled, d);
}

static void
settle_in_doubt(struct doubt *d, const char *note)
{
	struct msg m = {.type = MSG_IN_DOUBT};

	m.in_doubt.intent_id = d->intent_id;
	m.in_doubt.nonce = d->nonce;
	m.in_doubt.failures = d->failures;
	m.in_doubt.note = note;
	(void)peer_request(outbox_ledger(d->o), &m, on_settled, d);
}

static void
settle_later(struct doubt *d)
{
	struct msg m = {.type = MSG_DEFER};
	int64_t delay = outbox_limit(d->o, LIMIT_reconcile_backoff);
	int64_t most = outbox_limit(d->o, LIMIT_reconcile_backoff_most);
	int64_t i;

	for (i = 1; i < d->failures && delay < most; i++)
		delay *= 2;
	m.defer.intent_id = d->intent_id;
	m.defer.nonce = d->nonce;
	m.defer.failures = d->failures;
	m.defer.delay_ms = delay < most ? delay : most;
	(void)peer_request(outbox_ledger(d->o), &m, on_settled, d);
}

/* Basecamp was not asked, so nothing has failed: it is asked later. */
static void
doubt_keep(struct doubt *d, int64_t wait_ms)
{
	struct outbox *o = d->o;

	free(d);
	work_step_wait(o, wait_ms > 0 ? wait_ms : TOKEN_PAUSE_MS);
}

static void
on_listed(enum listing_end end, const int64_t *candidates, size_t count,
    const char *why, int64_t wait_ms, void *arg)
{
	struct doubt *d = arg;
	char note[64];

	if (end == LISTING_UNASKED) {
		doubt_keep(d, wait_ms);
		return;
	}
	if (end == LISTING_WHOLE) {
		settle_listed(d, candidates, count);
		return;
	}
	log_warnx("intent %lld is in doubt and its destination not listed: %s",
	    (long long)d->intent_id, why);
	d->failures++;
	if (end == LISTING_UNLISTABLE) {
		settle_in_doubt(d, why);
	} else if (d->failures >=
	    outbox_limit(d->o, LIMIT_reconcile_failures)) {
		(void)snprintf(note, sizeof(note), "listing failed %lld times",
		    (long long)d->failures);
		settle_in_doubt(d, note);
	} else {
		settle_later(d);
	}
}

static struct doubt *
doubt_new(struct outbox *o, const struct msg_sending *s)
{
	struct doubt *d = xcalloc(1, sizeof(*d));

	d->o = o;
	d->intent_id = s->intent_id;
	d->failures = s->failures;
	(void)snprintf(d->nonce, sizeof(d->nonce), "%s", s->nonce);
	return d;
}

static void
on_sending(struct peer *peer, struct msg *m, void *arg)
{
	struct outbox *o = arg;
	const struct message_kind *kind;
	struct doubt *d;
	int64_t since = 0;
	char *text;

	if (m->type == MSG_FAILED) {
		work_step_wait(o, LEDGER_PAUSE_MS);
		return;
	}
	if (!m->sending.found) {
		work_step_none(o, m->sending.in_ms);
		return;
	}
	d = doubt_new(o, &m->sending);
	kind = message_kind(m->sending.message_kind);
	if (kind == NULL || clock_parse(m->sending.sending_at, &since) == -1) {
		settle_in_doubt(d, "no such kind of message");
		return;
	}
	since -= outbox_limit(o, LIMIT_reconcile_slack) * INT64_C(1000000);
	text = text_normalise(m->sending.body.bytes, m->sending.body.len, NULL);
	if (text[0] == '\0') {
		/* Every picture without words would look like it. */
		free(text);
		settle_in_doubt(d, "it has no words to be found by");
		return;
	}
	listing_start(
	    o, kind, m->sending.recording_id, since, text, NULL, on_listed, d);
	free(text);
}

void
reconcile_one(struct outbox *o, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_SENDING};

	m.next_sending.after = after;
	m.next_sending.least_age_ms = outbox_limit(o, LIMIT_reconcile_after);
	(void)peer_request(outbox_ledger(o), &m, on_sending, o);
}
