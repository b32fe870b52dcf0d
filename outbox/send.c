/*
 * One intent, sent (operator.md 1.6): claimed, which is committed before the
 * request; at most one request; its receipt, or the doubt about it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"
#include "outbox/message.h"
#include "outbox/outbox.h"

/* What is claimed now; there is one at a time. */
struct sending {
	struct outbox *o;
	char nonce[33];
	char *bearer;
	int64_t serial;
	int64_t intent_id;
	const struct message_kind *kind;
	int64_t recording_id;
	char *text;
	size_t len;
	bool replayed;       /* after a 401, with another token */
	bool waits;          /* for that one, and the log says so */
	int64_t retry_after; /* seconds, as Basecamp said */
};

static void sending_post(struct sending *s);

static void
sending_free(struct sending *s)
{
	if (s->bearer != NULL)
		explicit_bzero(s->bearer, strlen(s->bearer));
	free(s->bearer);
	free(s->text);
	free(s);
}

/* Through with it; the step is over. */
static void
sending_over(struct sending *s)
{
	s->o->posting = 0;
	sending_free(s);
}

/* ---- what became of it -------------------------------------------------- */

static void
on_settled(struct peer *peer, struct msg *m, void *arg)
{
	struct sending *s = arg;
	struct outbox *o = s->o;

	if (m->type == MSG_FAILED)
		log_warnx("intent %lld: the ledger does not take its outcome: "
			  "%s",
		    (long long)s->intent_id, m->failed.text);
	sending_over(s);
	work_step_done(o);
}

static void
on_deferred(struct peer *peer, struct msg *m, void *arg)
{
	struct sending *s = arg;
	struct outbox *o = s->o;
	int64_t retry_after = s->retry_after;

	sending_over(s);
	work_step_uncertain(o, retry_after);
}

static void
settle_receipt(struct sending *s, int64_t id)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt.intent_id = s->intent_id;
	m.receipt.nonce = s->nonce;
	m.receipt.receipt_id = id;
	(void)peer_request(outbox_ledger(s->o), &m, on_settled, s);
}

static void
settle_refused(struct sending *s, const char *note)
{
	struct msg m = {.type = MSG_REFUSED};

	log_warnx(
	    "intent %lld is not posted: %s", (long long)s->intent_id, note);
	m.refused.intent_id = s->intent_id;
	m.refused.nonce = s->nonce;
	m.refused.note = note;
	(void)peer_request(outbox_ledger(s->o), &m, on_settled, s);
}

/* It may have landed: list it later, never post it again. */
static void
settle_deferred(struct sending *s, const char *why)
{
	struct msg m = {.type = MSG_DEFER};

	log_warnx("intent %lld may or may not be posted: %s",
	    (long long)s->intent_id, why);
	m.defer.intent_id = s->intent_id;
	m.defer.nonce = s->nonce;
	m.defer.delay_ms = outbox_limit(s->o, LIMIT_reconcile_after);
	(void)peer_request(outbox_ledger(s->o), &m, on_deferred, s);
}

/* ---- the request -------------------------------------------------------- */

/* Statuses that say: nothing was created (operator.md 1.10). */
static bool
is_refusal(int status)
{
	static const int statuses[] = {400, 401, 403, 404, 410, 422};
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i] == status)
			return true;
	}
	return false;
}

static void
sending_bearer(struct sending *s, const char *bearer, int64_t serial)
{
	if (s->bearer != NULL)
		explicit_bzero(s->bearer, strlen(s->bearer));
	free(s->bearer);
	s->bearer = xstrdup(bearer);
	s->serial = serial;
}

static void sending_ask_token(struct sending *s);

static void
on_token_pause(evutil_socket_t fd, short what, void *arg)
{
	sending_ask_token(arg);
}

/*
 * The 401 proves that nothing was posted, and that is all it says of the
 * message: it waits for another token as long as the ones that are not claimed
 * do, a reload with another credential included. Nothing else is kept from
 * its turn meanwhile, for whatever the outbox does takes the same token. What
 * the message says was called for at its claim, as with a slow request. Only
 * a stop, which no wait may outlast, leaves it in doubt.
 */
static void
sending_pause(struct sending *s, enum token_answer answer, int64_t wait_ms)
{
	struct timeval tv;

	if (wait_ms <= 0)
		wait_ms = TOKEN_PAUSE_MS;
	if (s->o->stopping &&
	    (answer == TOKEN_REFUSED || !work_has_time(s->o, wait_ms))) {
		settle_deferred(s, "HTTP 401, and no other access token");
		return;
	}
	if (!s->waits)
		log_warnx("intent %lld waits for another access token",
		    (long long)s->intent_id);
	s->waits = true;
	/* Not all of it: a stop or another credential may come first. */
	if (wait_ms > TOKEN_PAUSE_MS)
		wait_ms = TOKEN_PAUSE_MS;
	tv.tv_sec = wait_ms / 1000;
	tv.tv_usec = wait_ms % 1000 * 1000;
	if (event_base_once(
		s->o->role.base, -1, EV_TIMEOUT, on_token_pause, s, &tv) == -1)
		fatalx("intent: no timer");
}

/* With another token the request is made once more. */
static void
on_fresh_token(enum token_answer answer, const char *bearer, int64_t serial,
    int64_t wait_ms, void *arg)
{
	struct sending *s = arg;

	if (answer != TOKEN_GOOD) {
		sending_pause(s, answer, wait_ms);
		return;
	}
	sending_bearer(s, bearer, serial);
	sending_post(s);
}

static void
sending_ask_token(struct sending *s)
{
	token_get(s->o->token, s->serial, on_fresh_token, s);
}

static void
on_created(struct sending *s, const struct http_answer *answer)
{
	int64_t id = message_created_id(answer->body, answer->body_len);

	if (id > 0)
		settle_receipt(s, id);
	else
		settle_deferred(s, "the answer names no id");
}

static void
on_posted(const struct http_answer *answer, void *arg)
{
	struct sending *s = arg;
	char note[64];

	s->retry_after = answer->retry_after;
	if (answer->outcome != HTTP_ANSWERED) {
		settle_deferred(s, answer->why);
	} else if (answer->status == 401 && !s->replayed) {
		s->replayed = true;
		sending_ask_token(s);
	} else if (answer->status >= 200 && answer->status < 300) {
		on_created(s, answer);
	} else if (is_refusal(answer->status)) {
		(void)snprintf(note, sizeof(note),
		    "refused; nothing was created (HTTP %d)", answer->status);
		settle_refused(s, note);
	} else {
		(void)snprintf(note, sizeof(note), "HTTP %d", answer->status);
		settle_deferred(s, note);
	}
}

static void
sending_post(struct sending *s)
{
	struct outbox *o = s->o;
	struct http_call call = {.method = HTTP_POST,
	    .bearer = s->bearer,
	    .content_type = "application/json; charset=utf-8",
	    .timeout_ms = outbox_limit(o, LIMIT_post_timeout)};
	char *url = message_url(o->role.setup->setup.base_url,
	    o->role.config->account_id, s->kind->create, s->recording_id);
	char *body = message_body(s->text, s->len, &call.body_len);

	call.url = url;
	call.body = body;
	(void)http_send(o->http, &call, on_posted, s);
	free(url);
	free(body);
}

/* ---- the claim ---------------------------------------------------------- */

static void
on_claimed(struct peer *peer, struct msg *m, void *arg)
{
	struct sending *s = arg;
	struct outbox *o = s->o;
	const struct msg_claimed *c = &m->claimed;

	if (m->type == MSG_FAILED || !c->found) {
		sending_free(s);
		/* What was due may have stood down before its turn: ask. */
		if (m->type == MSG_FAILED)
			work_step_wait(o, LEDGER_PAUSE_MS);
		else
			work_step_done(o);
		return;
	}
	o->posting = c->intent_id;
	s->intent_id = c->intent_id;
	s->recording_id = c->recording_id;
	s->kind = message_kind(c->message_kind);
	s->text = xmemdup(c->body.bytes, c->body.len);
	s->len = c->body.len;
	if (s->kind == NULL)
		settle_refused(s, "no such kind of message");
	else if (token_is_in(o->token, s->text, s->len))
		settle_refused(s, NOTE_HOLDS_CREDENTIAL);
	else
		sending_post(s);
}

/*
 * The token first: a claim without one could only end in doubt about a
 * request that was never made.
 */
static void
on_token(enum token_answer answer, const char *bearer, int64_t serial,
    int64_t wait_ms, void *arg)
{
	struct sending *s = arg;
	struct outbox *o = s->o;
	struct msg m = {.type = MSG_CLAIM};

	if (o->stopping && (answer == TOKEN_REFUSED || !work_has_time(o, 0)))
		work_stop_short(o);
	if (answer != TOKEN_GOOD) {
		sending_free(s);
		work_step_wait(o, wait_ms > 0 ? wait_ms : TOKEN_PAUSE_MS);
		return;
	}
	sending_bearer(s, bearer, serial);
	m.claim.nonce = s->nonce;
	(void)peer_request(outbox_ledger(o), &m, on_claimed, s);
}

static void
on_due(struct peer *peer, struct msg *m, void *arg)
{
	struct outbox *o = arg;
	struct sending *s;

	if (m->type == MSG_FAILED) {
		work_step_wait(o, LEDGER_PAUSE_MS);
		return;
	}
	if (!m->due.in_ms.has || m->due.in_ms.value > 0) {
		work_step_none(o, m->due.in_ms);
		return;
	}
	if (work_send_in(o) > 0) {
		work_step_wait(o, work_send_in(o));
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->o = o;
	random_hex(s->nonce, sizeof(s->nonce) / 2);
	token_get(o->token, 0, on_token, s);
}

void
send_one(struct outbox *o)
{
	struct msg m = {.type = MSG_NEXT_DUE};

	(void)peer_request(outbox_ledger(o), &m, on_due, o);
}
