/*
 * The access token's holds across a change of the credential (feed.md 6.4).
 * The ledger and the token endpoint are played here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "outbox/outbox.h"

#define ASKED_MAX 4

struct stage {
	struct outbox o;
	struct peer *ledger, *at_ledger;
	struct reply_to asked[ASKED_MAX]; /* RENEWAL_HOLD_OF, in order */
	size_t asked_count;
	int mints, answers;
	http_done minted; /* of the newest mint */
	void *minted_arg;
	int64_t wait_ms;
	enum token_answer answer;
};

static struct stage stage;

/* ---- what the token stands on ------------------------------------------- */

struct peer *
outbox_ledger(struct outbox *o)
{
	return stage.ledger;
}

int64_t
outbox_limit(const struct outbox *o, enum limit limit)
{
	/* So long that chance makes no pause short. */
	return limit == LIMIT_feed_retry || limit == LIMIT_feed_retry_most
	    ? INT64_C(1) << 50
	    : limit_rows[limit].normal;
}

void
role_state(struct role *role, const char *name, const char *fmt, ...)
{
}

struct http_request *
http_send(
    struct http *http, const struct http_call *call, http_done done, void *arg)
{
	stage.mints++;
	stage.minted = done;
	stage.minted_arg = arg;
	return NULL;
}

void
http_cancel(struct http_request *request)
{
}

static void
on_asked(struct peer *peer, struct msg *m, void *arg)
{
	assert_true(stage.asked_count < ASKED_MAX);
	stage.asked[stage.asked_count++] = peer_reply_to(peer, m);
	msg_free(m);
}

static const peer_handler none[MSG_COUNT] = {NULL};
static const peer_handler asked_handlers[MSG_COUNT] = {
    [MSG_RENEWAL_HOLD_OF] = on_asked};
static const struct peer_ops plain_ops = {.handlers = none};
static const struct peer_ops asked_ops = {.handlers = asked_handlers};

static void
turn(void)
{
	int i;

	for (i = 0; i < 20; i++)
		event_base_loop(stage.o.role.base, EVLOOP_NONBLOCK);
}

static void
stage_open(void)
{
	struct event_base *base = event_base_new();
	int fds[2];

	memset(&stage, 0, sizeof(stage));
	stage.o.role.base = base;
	stage.ledger =
	    peer_new(base, ROLE_OUTBOX, ROLE_LEDGER, "", &plain_ops, NULL);
	stage.at_ledger =
	    peer_new(base, ROLE_LEDGER, ROLE_OUTBOX, "", &asked_ops, NULL);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(stage.ledger, fds[0], 1);
	peer_attach(stage.at_ledger, fds[1], 1);
	stage.o.token = token_new(&stage.o);
}

static void
stage_close(void)
{
	peer_free(stage.ledger);
	peer_free(stage.at_ledger);
	event_base_free(stage.o.role.base);
}

static void
credential_comes(const char *secret)
{
	struct msg_credential c = {
	    "agent", secret, "https://l.example/t", "", ""};

	token_credential(stage.o.token, &c);
	turn();
}

static void
hold_is(size_t asked, const char *reason)
{
	struct msg m = {.type = MSG_RENEWAL_HOLD_IS};

	m.renewal_hold_is.found = *reason != '\0';
	m.renewal_hold_is.reason = reason;
	m.renewal_hold_is.until = "";
	peer_reply(&stage.asked[asked], &m);
	turn();
}

static void
told(enum token_answer answer, const char *bearer, int64_t serial,
    int64_t wait_ms, void *arg)
{
	stage.answers++;
	stage.answer = answer;
	stage.wait_ms = wait_ms;
}

static void
endpoint_says(int status, const char *body)
{
	const struct http_answer answer = {.outcome = HTTP_ANSWERED,
	    .status = status,
	    .body = body,
	    .body_len = strlen(body),
	    .why = ""};

	stage.minted(&answer, stage.minted_arg);
}

/* ---- stories ------------------------------------------------------------- */

static void
a_hold_answers_without_a_request(void **state)
{
	stage_open();
	credential_comes("dead");
	token_get(stage.o.token, 0, told, NULL);
	assert_int_equal(0, stage.mints);
	hold_is(0, "invalid_client");
	assert_int_equal(1, stage.answers);
	assert_int_equal(TOKEN_REFUSED, stage.answer);
	assert_int_equal(0, stage.mints);
	stage_close();
}

/* What is known of the credential before says nothing of this one. */
static void
a_hold_is_of_its_credential_only(void **state)
{
	stage_open();
	credential_comes("dead");
	credential_comes("fresh");
	assert_int_equal(2, stage.asked_count);
	token_get(stage.o.token, 0, told, NULL);
	hold_is(0, "invalid_client");
	assert_int_equal(0, stage.answers);
	hold_is(1, "");
	assert_int_equal(0, stage.answers);
	assert_int_equal(1, stage.mints);
	stage_close();
}

/* However often a token is wanted, the endpoint gets its pause. */
static void
a_failing_endpoint_is_left_alone(void **state)
{
	stage_open();
	credential_comes("good");
	hold_is(0, "");
	token_get(stage.o.token, 0, told, NULL);
	assert_int_equal(1, stage.mints);
	endpoint_says(503, "");
	assert_int_equal(1, stage.answers);
	assert_int_equal(TOKEN_TRANSIENT, stage.answer);
	assert_true(stage.wait_ms > 0);
	token_get(stage.o.token, 0, told, NULL);
	assert_int_equal(2, stage.answers);
	assert_int_equal(TOKEN_TRANSIENT, stage.answer);
	assert_true(stage.wait_ms > 0);
	assert_int_equal(1, stage.mints);
	/* Of another credential it said nothing. */
	credential_comes("another");
	hold_is(1, "");
	token_get(stage.o.token, 0, told, NULL);
	assert_int_equal(2, stage.mints);
	endpoint_says(200, "{\"access_token\":\"t\"}");
	assert_int_equal(TOKEN_GOOD, stage.answer);
	stage_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_hold_answers_without_a_request),
	    cmocka_unit_test(a_hold_is_of_its_credential_only),
	    cmocka_unit_test(a_failing_endpoint_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
