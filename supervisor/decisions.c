/*
 * An operator's decisions, put to the ledger (operator.md 1.12, 3.3, 3.4). Who
 * decided is what the kernel says of the client. A decision may be made
 * although its answer was not waited for: the nonce is the decision's own.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "supervisor/command.h"

#define NONCE_LEN 32
#define BY_SIZE 129
#define OVERDUE                                               \
	"no answer yet; it may be decided all the same: see " \
	"`connectctl show` and `connectctl status`"

/* "local:NAME", as the ledger keeps it. */
static void
decider(const struct client *client, char by[static BY_SIZE])
{
	const struct passwd *pw = getpwuid(client->uid);
	size_t len;
	char *name;

	if (pw == NULL) {
		(void)snprintf(by, BY_SIZE, "local:%ld", (long)client->uid);
		return;
	}
	name = text_single_line(pw->pw_name, strlen(pw->pw_name), &len);
	(void)snprintf(by, BY_SIZE, "local:%s", name);
	free(name);
}

static bool
nonce_is_ok(const struct json_text *nonce)
{
	return nonce->bytes != NULL && nonce->len == NONCE_LEN &&
	    strspn(nonce->bytes, "0123456789abcdef") == NONCE_LEN;
}

static void
add_text(struct buffer *b, const char *name, const char *text)
{
	buffer_printf(b, ",\"%s\":", name);
	if (*text == '\0')
		buffer_add_text(b, "null");
	else
		json_write_string(b, text, strlen(text));
}

static void
add_bool(struct buffer *b, const char *name, bool value)
{
	buffer_printf(b, ",\"%s\":%s", name, value ? "true" : "false");
}

/* The ledger has answered; false when the client was told that it refused. */
static bool
query_went_well(struct client *client, const struct msg *reply)
{
	client->query = 0;
	if (reply->type == MSG_FAILED) {
		command_failed(client, &reply->failed);
		return false;
	}
	command_forget(client);
	return true;
}

/* ---- the worker of a task that was taken away ---------------------------- */

static const char *const worker_words[FATE_COUNT] = {
    [FATE_OPEN] = "running",
    [FATE_GONE] = "stopped",
    [FATE_NEVER_FORKED] = "not started",
    [FATE_HELD] = "held",
};

/* Of an earlier run, perhaps, that is being looked into only now. */
#define HELD_NOTE                                                           \
	"it is not proved that it is gone; the event waits until that is, " \
	"or `connectctl settle` says so"

/* What is left to do, where it has not ended. */
static const char *const worker_notes[FATE_COUNT] = {
    [FATE_OPEN] = "it is being ended still; the event waits for that",
    [FATE_GONE] = "",
    [FATE_NEVER_FORKED] = "",
    [FATE_HELD] = HELD_NOTE,
};

/* Whether it was signalled is not kept beyond its end: null, then. */
static void
worker_tell(struct client *client, enum fate fate)
{
	char attempt[ATTEMPT_ID_LEN + 1];
	struct buffer b = {0};
	bool was_signaled;

	memcpy(attempt, client->awaits, sizeof(attempt));
	command_forget(client);
	buffer_printf(&b, "{\"worker\":{\"attempt_id\":\"%s\"", attempt);
	add_text(&b, "state", worker_words[fate]);
	if (attempts_signaled(client->sv, attempt, &was_signaled))
		add_bool(&b, "signaled", was_signaled);
	else
		add_text(&b, "signaled", "");
	add_text(&b, "note", worker_notes[fate]);
	buffer_add_text(&b, "}}");
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

void
command_attempt_over(struct client *client, const char *attempt, enum fate fate)
{
	if (strcmp(client->awaits, attempt) == 0)
		worker_tell(client, fate);
}

static void
on_worker_overdue(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	worker_tell(arg, FATE_OPEN);
}

/* Both graces, and what the dispatcher and the kernel need beside them. */
static int64_t
worker_patience_ms(const struct supervisor *sv)
{
	const int64_t *limits = sv->settings->config->limits;

	return limits[LIMIT_cancel_grace] * 2 + limits[LIMIT_close_grace] +
	    limits[LIMIT_mcpd_drain] + CONTROL_QUERY_MS;
}

static void
worker_await(struct client *client, const char *attempt)
{
	int64_t ms = worker_patience_ms(client->sv);
	const struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	enum fate fate;

	(void)snprintf(client->awaits, sizeof(client->awaits), "%s", attempt);
	fate = attempts_fate(client->sv, attempt);
	if (fate != FATE_OPEN) {
		worker_tell(client, fate);
		return;
	}
	client_waits(client);
	client->patience =
	    evtimer_new(client->sv->base, on_worker_overdue, client);
	if (client->patience == NULL)
		fatalx("control socket: no event");
	(void)evtimer_add(client->patience, &tv);
}

/* ---- of an event --------------------------------------------------------- */

static void
decided_write(struct buffer *b, const struct msg_decided *d)
{
	buffer_printf(b, "{\"decision_id\":%lld", (long long)d->decision_id);
	add_text(b, "from_state", d->from_state);
	add_text(b, "from_reason", d->from_reason);
	add_text(b, "from_outcome", d->from_outcome);
	add_text(b, "state", d->state);
	add_bool(b, "already", d->already);
	add_bool(b, "pending", d->pending);
	add_bool(b, "rerun", d->rerun);
	add_bool(b, "held", d->held);
	buffer_add_text(b, ",\"superseded_task_id\":");
	if (d->superseded_task_id == 0)
		buffer_add_text(b, "null");
	else
		buffer_printf(b, "%lld", (long long)d->superseded_task_id);
	add_text(b, "attempt_id", d->attempt);
	buffer_printf(b, ",\"canceled\":%lld}", (long long)d->canceled);
}

static void
on_decided(struct peer *peer, struct msg *reply, void *arg)
{
	struct client *client = arg;
	bool follow = client->will_follow;
	struct buffer b = {0};

	(void)peer;
	if (!query_went_well(client, reply))
		return;
	client->follows = follow;
	decided_write(&b, &reply->decided);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
	if (reply->decided.attempt[0] != '\0')
		worker_await(client, reply->decided.attempt);
}

/* Who decides, into BY. False when the client was told what is missing. */
static bool
decision_begin(struct client *client, const char *command, int64_t id,
    const char *name, const struct command_request *r, char by[static BY_SIZE])
{
	client->asks_status = false;
	decider(client, by);
	if (id == 0)
		client_refuse(
		    client, "usage", "%s: `%s` is missing", command, name);
	else if (!nonce_is_ok(&r->nonce))
		client_refuse(client, "usage",
		    "%s: `nonce` is %d hexadecimal digits", command, NONCE_LEN);
	else
		return true;
	return false;
}

void
run_redispatch(struct client *client, const struct command_request *r)
{
	struct msg m = {.type = MSG_REDISPATCH};
	char by[BY_SIZE];

	if (!decision_begin(client, "redispatch", r->event, "event", r, by))
		return;
	m.redispatch.nonce = r->nonce.bytes;
	m.redispatch.by = by;
	m.redispatch.event_id = r->event;
	client->will_follow = r->follow;
	(void)command_ask_ledger(client, &m, on_decided, client, OVERDUE);
}

void
run_discard(struct client *client, const struct command_request *r)
{
	struct msg m = {.type = MSG_DISCARD};
	char by[BY_SIZE];

	if (!decision_begin(client, "discard", r->event, "event", r, by))
		return;
	m.discard.nonce = r->nonce.bytes;
	m.discard.by = by;
	m.discard.event_id = r->event;
	(void)command_ask_ledger(client, &m, on_decided, client, OVERDUE);
}

/* ---- of a message -------------------------------------------------------- */

static void
on_resolved(struct peer *peer, struct msg *reply, void *arg)
{
	struct client *client = arg;
	struct buffer b = {0};

	(void)peer;
	if (!query_went_well(client, reply))
		return;
	buffer_add_text(&b, "{\"state\":");
	json_write_string(
	    &b, reply->resolved.state, strlen(reply->resolved.state));
	add_bool(&b, "changed", reply->resolved.changed);
	buffer_add_char(&b, '}');
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

void
run_resolve(struct client *client, const struct command_request *r)
{
	static const char *const words[] = {"sent", "abandon", "resend"};
	struct msg m = {.type = MSG_RESOLVE};
	char by[BY_SIZE];
	size_t i;

	if (!decision_begin(client, "resolve", r->intent, "intent", r, by))
		return;
	for (i = 0; i < 3; i++) {
		if (r->resolution.bytes != NULL && !r->resolution.has_nul &&
		    strcmp(r->resolution.bytes, words[i]) == 0)
			break;
	}
	if (i == 3 || (i == 0) != (r->receipt != 0)) {
		client_refuse(client, "usage",
		    "resolve: `resolution` is sent, with a `receipt`, abandon "
		    "or resend");
		return;
	}
	m.resolve.nonce = r->nonce.bytes;
	m.resolve.by = by;
	m.resolve.intent_id = r->intent;
	m.resolve.resolution = words[i];
	m.resolve.receipt_id = r->receipt;
	(void)command_ask_ledger(client, &m, on_resolved, client, OVERDUE);
}

/* ---- of an attempt that nobody can prove gone ---------------------------- */

/*
 * A SETTLE from its asking to its answer, which is ours whoever waits: what the
 * ledger then has as over is let go here, or would be held for the rest of the
 * run. It is freed by the answer; there is one, for the ledger's successor is
 * asked again, unless the run ends before.
 */
struct settlement {
	struct supervisor *sv;
	struct client *client; /* NULL: nobody waits any more */
	char attempt[ATTEMPT_ID_LEN + 1];
};

void
settlement_forget(struct settlement *s)
{
	s->client = NULL;
}

static void
settlement_tell(struct client *client, const char *attempt, struct msg *reply)
{
	struct buffer b = {0};

	client->settlement = NULL;
	if (!query_went_well(client, reply))
		return;
	buffer_printf(&b,
	    "{\"attempt_id\":\"%s\",\"task_id\":%lld,\"unknown\":%lld}",
	    attempt, (long long)reply->attempt_settled.task_id,
	    (long long)reply->attempt_settled.unknown);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

static void
on_attempt_settled(struct peer *peer, struct msg *reply, void *arg)
{
	struct settlement *s = arg;

	(void)peer;
	if (reply->type != MSG_FAILED)
		attempts_settled(s->sv, s->attempt);
	if (s->client != NULL)
		settlement_tell(s->client, s->attempt, reply);
	free(s);
}

/* Nothing provable runs: what the person says of the rest counts. */
static void
settle_ask(struct client *client)
{
	struct settlement *s = xcalloc(1, sizeof(*s));
	struct msg m = {.type = MSG_SETTLE};
	char by[BY_SIZE];

	decider(client, by);
	s->sv = client->sv;
	s->client = client;
	memcpy(s->attempt, client->settles.attempt, sizeof(s->attempt));
	client->settlement = s;
	m.settle.nonce = client->settles.nonce;
	m.settle.by = by;
	m.settle.attempt = s->attempt;
	if (!command_ask_ledger(client, &m, on_attempt_settled, s, OVERDUE))
		free(s);
}

/*
 * Why it is nobody's to settle; NULL: nothing speaks against it. Whatever this
 * run launches comes here to be started, or to be ended unstarted.
 */
static const char *
settle_fault(const struct supervisor *sv, const char *attempt,
    const struct msg_identity_is *known)
{
	if (attempts_fate(sv, attempt) == FATE_OPEN)
		return "it is not held: it ends by itself";
	if (strcmp(known->run_id, sv->run_id) == 0 &&
	    !attempts_had(sv, attempt))
		return "it is not held: it is being launched";
	return recovery_finds(sv, attempt, known);
}

static void
on_identity_known(struct peer *peer, struct msg *reply, void *arg)
{
	struct client *client = arg;
	const char *attempt = client->settles.attempt, *fault;

	(void)peer;
	if (!query_went_well(client, reply))
		return;
	if (!reply->identity_is.found) {
		client_refuse(client, "not_found", "no attempt %s", attempt);
		return;
	}
	fault = settle_fault(client->sv, attempt, &reply->identity_is);
	if (fault != NULL) {
		client_refuse(client, "failed", "%s: %s", attempt, fault);
		return;
	}
	/* Settled before, and its answer met it in another state here. */
	if (strcmp(reply->identity_is.state, "ended") == 0 &&
	    attempts_fate(client->sv, attempt) == FATE_HELD)
		attempts_settled(client->sv, attempt);
	settle_ask(client);
}

void
run_settle(struct client *client, const struct command_request *r)
{
	struct msg m = {.type = MSG_IDENTITY};

	client->asks_status = false;
	if (r->attempt.len != ATTEMPT_ID_LEN || r->attempt.has_nul) {
		client_refuse(client, "usage", "settle: `attempt` is no id");
		return;
	}
	if (!r->gone || !nonce_is_ok(&r->nonce)) {
		client_refuse(client, "usage",
		    "settle: `gone` says that nothing of it runs, `nonce` is "
		    "%d hexadecimal digits",
		    NONCE_LEN);
		return;
	}
	(void)snprintf(client->settles.attempt, sizeof(client->settles.attempt),
	    "%s", r->attempt.bytes);
	(void)snprintf(client->settles.nonce, sizeof(client->settles.nonce),
	    "%s", r->nonce.bytes);
	m.identity.attempt = client->settles.attempt;
	(void)command_ask_ledger(client, &m, on_identity_known, client,
	    "no answer yet; nothing is decided");
}

/* ---- of a running task --------------------------------------------------- */

/* The pipe goes on as it came: the token itself is not ours to read. */
static void
token_answered(struct peer *peer, struct msg *reply, void *arg)
{
	struct client *client = arg;
	struct buffer b = {0};

	(void)peer;
	if (!query_went_well(client, reply))
		return;
	log_info("uid %ld has taken task %lld over", (long)client->uid,
	    (long long)reply->taken_over.task_id);
	buffer_printf(
	    &b, "{\"task_id\":%lld}", (long long)reply->taken_over.task_id);
	client_reply_fd(client, b.bytes, b.len, reply->taken_over.token);
	reply->taken_over.token = -1;
	buffer_free(&b);
}

void
run_token(struct client *client, const struct command_request *r)
{
	struct msg m = {.type = MSG_TAKE_OVER};

	client->asks_status = false;
	if (r->attempt.len != ATTEMPT_ID_LEN || r->attempt.has_nul) {
		client_refuse(client, "usage", "token: `attempt` is no id");
	} else if (!client->sv->settings->mcp_socket) {
		client_refuse(client, "failed",
		    "token: mcp.socket is not set in connect.json: nobody "
		    "could serve the task");
	} else if (!client_is_quiet(client)) {
		client_refuse(client, "busy",
		    "token: on a connection of its own, please");
	} else {
		m.take_over.attempt = r->attempt.bytes;
		(void)command_ask_ledger(
		    client, &m, token_answered, client, OVERDUE);
	}
}
