/* What outbox_stage.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/unit/outbox_stage.h"

#define ENDPOINT "https://l.example/t"
#define WAIT_MS 10000

struct outbox_stage stage;

static struct peer *ledger, *dispatcher;
static struct msg setup;

/* ---- what the outbox stands on ------------------------------------------ */

struct peer *
outbox_ledger(struct outbox *o)
{
	return ledger;
}

int64_t
outbox_limit(const struct outbox *o, enum limit limit)
{
	return stage.limits[limit];
}

struct peer *
role_peer(struct role *role, enum role_id peer, const char *attempt)
{
	return dispatcher;
}

void
role_state(struct role *role, const char *name, const char *fmt, ...)
{
}

_Noreturn void
role_exit(struct role *role, int code)
{
	if (!stage.may_exit)
		fail_msg("it ends");
	stage.exited = true;
	stage.code = code;
	longjmp(stage.exit, 1);
}

struct http_request *
http_send(
    struct http *http, const struct http_call *call, http_done done, void *arg)
{
	struct stage_request *r = &stage.post;

	if (call->method == HTTP_GET)
		r = &stage.listing;
	else if (strcmp(call->url, ENDPOINT) == 0)
		r = &stage.mint;
	r->done = done;
	r->arg = arg;
	r->count++;
	(void)snprintf(r->bearer, sizeof(r->bearer), "%s",
	    call->bearer == NULL ? "" : call->bearer);
	return NULL;
}

void
http_cancel(struct http_request *request)
{
}

/* ---- the ledger ---------------------------------------------------------- */

static void
answer(struct peer *peer, struct msg *request, struct msg *reply)
{
	struct reply_to to = peer_reply_to(peer, request);

	peer_reply(&to, reply);
	msg_free(request);
}

static void
settled(struct peer *peer, struct msg *m, const char *state)
{
	struct msg reply = {.type = MSG_SETTLED};

	reply.settled.state = state;
	answer(peer, m, &reply);
}

static void
on_next_due(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_DUE};

	stage.asked++;
	reply.due.in_ms.has = stage.due > 0;
	answer(peer, m, &reply);
}

static void
on_claim(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_CLAIMED};

	reply.claimed.kind = reply.claimed.message_kind = "";
	if (stage.due > 0) {
		stage.due--;
		reply.claimed.found = true;
		reply.claimed.intent_id = ++stage.claimed;
		reply.claimed.kind = "completion";
		reply.claimed.message_kind = "comment";
		reply.claimed.recording_id = 7;
		reply.claimed.body = (struct blob){"words", 5};
	}
	answer(peer, m, &reply);
}

static void
on_receipt(struct peer *peer, struct msg *m, void *arg)
{
	stage.received++;
	settled(peer, m, "sent");
}

static void
on_refused(struct peer *peer, struct msg *m, void *arg)
{
	stage.refused++;
	settled(peer, m, "canceled");
}

static void
on_defer(struct peer *peer, struct msg *m, void *arg)
{
	size_t i = (size_t)m->defer.intent_id - 1;

	stage.deferred++;
	stage.delay_ms = m->defer.delay_ms;
	if (i < stage.doubt_count) {
		stage.doubts[i].failures = m->defer.failures;
		stage.doubts[i].backs_off = true;
	}
	settled(peer, m, "sending");
}

static void
doubt_over(int64_t intent_id)
{
	assert_true(intent_id <= (int64_t)stage.doubt_count);
	stage.doubts[intent_id - 1].over = true;
}

static void
on_in_doubt(struct peer *peer, struct msg *m, void *arg)
{
	stage.in_doubt++;
	doubt_over(m->in_doubt.intent_id);
	settled(peer, m, "indeterminate");
}

static void
on_listed(struct peer *peer, struct msg *m, void *arg)
{
	stage.listed++;
	doubt_over(m->listed.intent_id);
	settled(peer, m, "indeterminate");
}

/* One that backs off is due again in the limit that it was told. */
static void
on_next_sending(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_SENDING};
	struct msg_sending *s = &reply.sending;
	size_t i = (size_t)m->next_sending.after;

	stage.asked++;
	s->nonce = s->kind = s->message_kind = s->sending_at = "";
	for (; i < stage.doubt_count && !s->found; i++) {
		if (stage.doubts[i].over || stage.doubts[i].backs_off)
			continue;
		s->found = true;
		s->intent_id = (int64_t)i + 1;
		s->nonce = "0123456789abcdef0123456789abcdef";
		s->kind = "completion";
		s->message_kind = "comment";
		s->recording_id = 7;
		s->body = (struct blob){"words", 5};
		s->sending_at = "2026-01-01T00:00:00.000000000Z";
		s->failures = stage.doubts[i].failures;
	}
	answer(peer, m, &reply);
}

static void
on_hold_of(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_RENEWAL_HOLD_IS};

	reply.renewal_hold_is.reason = reply.renewal_hold_is.until = "";
	answer(peer, m, &reply);
}

static void
on_hold(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_DONE};

	answer(peer, m, &reply);
}

static const peer_handler none[MSG_COUNT] = {NULL};
static const peer_handler handlers[MSG_COUNT] = {
    [MSG_NEXT_DUE] = on_next_due,
    [MSG_CLAIM] = on_claim,
    [MSG_RECEIPT] = on_receipt,
    [MSG_REFUSED] = on_refused,
    [MSG_DEFER] = on_defer,
    [MSG_IN_DOUBT] = on_in_doubt,
    [MSG_LISTED] = on_listed,
    [MSG_NEXT_SENDING] = on_next_sending,
    [MSG_RENEWAL_HOLD_OF] = on_hold_of,
    [MSG_RENEWAL_HOLD] = on_hold,
};
static const struct peer_ops plain_ops = {.handlers = none};
static const struct peer_ops ledger_ops = {.handlers = handlers};

/* ---- the stage ----------------------------------------------------------- */

void
stage_open(void)
{
	struct event_base *base = event_base_new();
	int fds[2], i;

	memset(&stage, 0, sizeof(stage));
	for (i = 0; i < LIMIT_COUNT; i++)
		stage.limits[i] = limit_rows[i].normal;
	setup.setup.base_url = "https://b.example";
	stage.o.role.base = base;
	stage.o.role.setup = &setup;
	ledger = peer_new(base, ROLE_OUTBOX, ROLE_LEDGER, "", &plain_ops, NULL);
	stage.at_ledger =
	    peer_new(base, ROLE_LEDGER, ROLE_OUTBOX, "", &ledger_ops, NULL);
	dispatcher =
	    peer_new(base, ROLE_OUTBOX, ROLE_DISPATCHER, "", &plain_ops, NULL);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(ledger, fds[0], 1);
	peer_attach(stage.at_ledger, fds[1], 1);
	stage.o.token = token_new(&stage.o);
	work_init(&stage.o);
	stage_credential("secret-of-the-agent");
}

void
stage_close(void)
{
	event_free(stage.o.wake);
	peer_free(ledger);
	peer_free(stage.at_ledger);
	peer_free(dispatcher);
	config_free(stage.o.role.config);
	event_base_free(stage.o.role.base);
}

void
stage_configure(void)
{
	stage.o.role.config = config_new();
	stage.o.role.config->account_id = 999;
	stage.o.role.config->agent_id = 5;
	work_configured(&stage.o);
}

void
stage_credential(const char *secret)
{
	struct msg_credential c = {"agent", secret, ENDPOINT, "", ""};

	token_credential(stage.o.token, &c);
	work_poke(&stage.o);
}

static void
turn(int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	(void)event_base_loopexit(stage.o.role.base, &tv);
	(void)event_base_dispatch(stage.o.role.base);
}

void
stage_until(const int *count, int wanted)
{
	int64_t until = clock_monotonic_ms() + WAIT_MS;

	while (*count < wanted && clock_monotonic_ms() < until)
		turn(10);
	assert_in_range(*count, wanted, INT32_MAX);
}

void
stage_run(int64_t ms)
{
	turn(ms);
}

void
stage_until_exit(void)
{
	int64_t until = clock_monotonic_ms() + WAIT_MS;

	stage.may_exit = true;
	if (setjmp(stage.exit) == 0) {
		while (clock_monotonic_ms() < until)
			turn(10);
	}
	assert_true(stage.exited);
}

void
stage_answer(
    struct stage_request *r, int status, const char *body, int64_t retry_after)
{
	const struct http_answer it = {.outcome = HTTP_ANSWERED,
	    .status = status,
	    .retry_after = retry_after,
	    .total_count = -1,
	    .body = body,
	    .body_len = strlen(body),
	    .why = ""};
	http_done done = r->done;

	assert_non_null(done);
	r->done = NULL;
	done(&it, r->arg);
}

void
stage_mint(const char *token)
{
	char body[64];

	stage_until(&stage.mint.count, stage.mint.count + !stage.mint.done);
	(void)snprintf(body, sizeof(body), "{\"access_token\":\"%s\"}", token);
	stage_answer(&stage.mint, 200, body, 0);
}
