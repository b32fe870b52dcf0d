#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "mcpd/batch.h"
#include "mcpd/call.h"
#include "mcpd/id.h"
#include "mcpd/refusal.h"
#include "mcpd/stream.h"

static void
call_free(struct call *call)
{
	struct server *s = call->server;

	TAILQ_REMOVE(&s->calls, call, entry);
	s->call_count--;
	event_free(call->deadline);
	msg_free(call->kept);
	free(call->state);
	free(call->id);
	free(call);
	server_check_idle(s);
}

/* Nobody waits any more; what a peer owes is waited for. */
static void
call_leave(struct call *call)
{
	if (call->kept != NULL)
		call->is_asking = false; /* nobody was asked */

	call->stream->call_count--;
	call->stream = NULL;
	if (call->batch != NULL)
		batch_release(call->batch);
	call->batch = NULL;
	(void)event_del(call->deadline);
	if (!call->is_asking)
		call_free(call);
}

static void
call_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct call *call = arg;
	int64_t ms = call->server->call_deadline_ms;

	(void)fd;
	(void)what;
	if (call->late != NULL)
		call->late(call);
	else
		call_refuse(call, "cancelled",
		    "The call was cancelled: there was no answer within %lld "
		    "ms. Call again: nothing is done twice.",
		    (long long)ms);
}

struct call *
call_new(const struct origin *o)
{
	struct server *s = o->stream->server;
	struct timeval tv = {.tv_sec = s->call_deadline_ms / 1000,
	    .tv_usec = s->call_deadline_ms % 1000 * 1000};
	struct call *call;

	if (o->stream->call_count >= CALLS_IN_FLIGHT_MAX ||
	    s->call_count >= CALLS_MAX)
		return NULL;
	call = xcalloc(1, sizeof(*call));
	call->server = s;
	call->stream = o->stream;
	call->batch = o->batch;
	call->id = xmemdup(o->id.bytes, o->id.len);
	call->id_len = o->id.len;
	call->is_modern = o->is_modern;
	call->deadline = event_new(s->base, -1, 0, call_on_deadline, call);
	if (call->deadline == NULL || event_add(call->deadline, &tv) == -1)
		fatalx("call: no event");
	if (call->batch != NULL)
		batch_hold(call->batch);
	o->stream->call_count++;
	s->call_count++;
	TAILQ_INSERT_TAIL(&s->calls, call, entry);
	return call;
}

static void
call_on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	struct call *call = arg;
	struct server *s = call->server;

	(void)peer;
	call->is_asking = false;
	if (call->is_reading) {
		call->is_reading = false;
		s->read_count--;
		call_ask_kept(s);
	}
	if (call->stream == NULL)
		call_free(call);
	else
		call->answered(call, reply);
}

/* Reads wait for their turn, which their deadline does not. */
static bool
may_ask(const struct server *s, const struct msg *m)
{
	return s->reach == SERVER_LINKED &&
	    (m->type != MSG_READ_THREAD || s->read_count < READS_MOST);
}

static void
call_put(struct call *call, struct peer *peer, struct msg *m)
{
	if (m->type == MSG_READ_THREAD) {
		call->is_reading = true;
		call->server->read_count++;
	}
	(void)peer_request(peer, m, call_on_answer, call);
}

/* By way of its frame: a message is what its table can carry. */
static struct msg *
msg_copy(struct msg *m)
{
	struct msg *copy = NULL;
	struct frame f;
	struct error e;

	if (frame_encode(m, &f, &e) == -1)
		fatalx("%s", e.text);
	copy = frame_decode(f.bytes, f.len, f.fds, f.fd_count, &e);
	if (copy == NULL)
		fatalx("%s", e.text);
	f.fd_count = 0; /* they were taken over */
	frame_free(&f);
	return copy;
}

void
call_ask(struct call *call, struct peer *peer, struct msg *m,
    void (*answered)(struct call *call, struct msg *reply))
{
	struct server *s = call->server;

	call->is_asking = true;
	call->answered = answered;
	if (may_ask(s, m)) {
		call_put(call, peer, m);
		return;
	}
	call->kept = msg_copy(m);
	if (s->reach == SERVER_AWAY)
		s->try_again(s); /* perhaps in vain: then it is refused */
}

/* The table says whose it is. */
static struct peer *
kept_peer(const struct server *s, const struct msg *m)
{
	return msg_permitted(m->type, ROLE_MCPD, ROLE_INTAKE) ? s->intake
							      : s->ledger;
}

void
call_ask_kept(struct server *s)
{
	struct call *call;
	struct msg *m;

	TAILQ_FOREACH (call, &s->calls, entry) {
		m = call->kept;
		if (m == NULL || !may_ask(s, m))
			continue;
		call->kept = NULL;
		call_put(call, kept_peer(s, m), m);
		msg_free(m);
	}
}

/* One whose message waits to be posted is told in its own words, in time. */
void
call_refuse_asking(struct server *s)
{
	struct call *call, *next;

	s->read_count = 0;
	for (call = TAILQ_FIRST(&s->calls); call != NULL; call = next) {
		next = TAILQ_NEXT(call, entry);
		if (!call->is_asking)
			continue;
		call->is_asking = call->is_reading = false;
		if (call->stream == NULL)
			call_free(call);
		else
			call_refuse(call, "unavailable",
			    "The connector is not running. Call again once it "
			    "runs: nothing is done twice.");
	}
}

static struct origin
call_origin(const struct call *call)
{
	return (struct origin){.stream = call->stream,
	    .batch = call->batch,
	    .id = {call->id, call->id_len},
	    .is_modern = call->is_modern};
}

static void
call_say(struct call *call, json_t *json, bool is_error, bool is_whole)
{
	const struct origin o = call_origin(call);

	origin_tool(&o, json, is_error, is_whole);
	call_leave(call);
}

void
call_answer(struct call *call, json_t *json, bool is_error)
{
	call_say(call, json, is_error, false);
}

void
call_answer_whole(struct call *call, json_t *json)
{
	call_say(call, json, false, true);
}

void
call_refuse(struct call *call, const char *kind, const char *fmt, ...)
{
	char text[REFUSAL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	call_answer(call, refusal_json(kind, text), true);
}

static void
token_checked(struct call *call, struct msg *reply)
{
	if (reply->type == MSG_FAILED)
		call_answer(call, refusal_of(&reply->failed), true);
	else
		call->then(call);
}

void
call_check_token(struct call *call, void (*then)(struct call *call))
{
	struct msg m = {.type = MSG_CHECK_TOKEN};

	m.check_token.token = call->server->token;
	call->then = then;
	call_ask(call, call->server->ledger, &m, token_checked);
}

static void
params_refuse(struct call *call)
{
	call_refuse(call, "invalid_params", "%s", (const char *)call->state);
}

void
call_refuse_params(struct call *call, const char *fmt, ...)
{
	char *text = xmalloc(REFUSAL_TEXT_MAX);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, REFUSAL_TEXT_MAX, fmt, ap);
	va_end(ap);
	call->state = text;
	call_check_token(call, params_refuse);
}

void
call_abandon(struct call *call)
{
	call_leave(call);
}

void
call_free_all(struct server *s)
{
	struct call *call;

	while ((call = TAILQ_FIRST(&s->calls)) != NULL)
		call_free(call);
}

void
call_cancel(struct stream *stream, const struct json_span *id)
{
	struct server *s = stream->server;
	struct call *call, *next;
	struct json_span have;

	for (call = TAILQ_FIRST(&s->calls); call != NULL; call = next) {
		next = TAILQ_NEXT(call, entry);
		have = (struct json_span){call->id, call->id_len};
		if (call->stream == stream && id_equal(&have, id))
			call_abandon(call);
	}
}
