#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "intake/admission.h"
#include "intake/feed.h"
#include "intake/lists.h"
#include "intake/thread.h"
#include "tests/unit/intake_stage.h"

#define AWAIT_MS 5000

struct stage_answer {
	struct stage_answer *next;
	char *prefix;
	int status;
	char *headers, *body;
};

static struct stage *on_stage; /* for the two functions of role.h below */

/* ---- what intake needs of common/role ----------------------------------- */

struct peer *
role_peer(struct role *role, enum role_id peer, const char *attempt)
{
	size_t i;

	(void)attempt;
	for (i = 0; i < role->peer_count; i++)
		if (peer_role(role->peers[i]) == peer)
			return role->peers[i];
	fail();
	return NULL;
}

void
role_state(struct role *role, const char *name, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	(void)role;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	stage_note(on_stage, "%s = %s", name, text);
}

/* What is taken is laid down again, once. */
void
role_in_hand(struct role *role, int64_t event_id, bool taken)
{
	struct stage *s = on_stage;
	size_t i = 0;

	(void)role;
	while (i < s->hand_count && s->hand[i] != event_id)
		i++;
	assert_int_equal(taken, i == s->hand_count);
	assert_true(s->hand_count < sizeof(s->hand) / sizeof(s->hand[0]));
	if (taken)
		s->hand[s->hand_count++] = event_id;
	else
		s->hand[i] = s->hand[--s->hand_count];
}

/* ---- the journal -------------------------------------------------------- */

void
stage_note(struct stage *s, const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buffer_add_text(&s->journal, text);
	buffer_add_char(&s->journal, '\n');
}

void
stage_expect(struct stage *s, const char *text)
{
	assert_string_equal(
	    s->journal.bytes != NULL ? s->journal.bytes : "", text);
	buffer_free(&s->journal);
	s->journal = (struct buffer){0};
}

size_t
stage_count(const struct stage *s, const char *text)
{
	const char *at = s->journal.bytes;
	size_t n = 0;

	while (at != NULL && (at = strstr(at, text)) != NULL) {
		n++;
		at++;
	}
	return n;
}

void
stage_await(struct stage *s, const char *text)
{
	int64_t until = clock_monotonic_ms() + AWAIT_MS;
	struct timeval tick = {0, 10000};

	while (s->journal.bytes == NULL ||
	    strstr(s->journal.bytes, text) == NULL) {
		if (clock_monotonic_ms() > until) {
			print_error("waited for \"%s\" in\n%s\n", text,
			    s->journal.bytes);
			fail();
		}
		event_base_loopexit(s->role.base, &tick);
		event_base_loop(s->role.base, EVLOOP_ONCE);
	}
}

void
stage_linger(struct stage *s, int ms)
{
	int64_t until = clock_monotonic_ms() + ms;
	struct timeval tick = {0, 2000};

	/* A tick that stage_await() left behind ends a loop early. */
	do {
		event_base_loopexit(s->role.base, &tick);
		event_base_dispatch(s->role.base);
	} while (clock_monotonic_ms() < until);
}

/* ---- Basecamp ----------------------------------------------------------- */

static char *
expand(const struct stage *s, const char *text)
{
	struct buffer b = {0};

	for (; text != NULL && *text != '\0'; text++) {
		if (*text == '@')
			buffer_printf(&b, "%s/999", s->base_url);
		else
			buffer_add_char(&b, *text);
	}
	return buffer_take(&b, NULL);
}

void
stage_answer(struct stage *s, const char *prefix, int status,
    const char *headers, const char *body)
{
	struct stage_answer **at = &s->answers;

	while (*at != NULL)
		at = &(*at)->next;
	*at = xcalloc(1, sizeof(**at));
	(*at)->prefix = xstrdup(prefix);
	(*at)->status = status;
	(*at)->headers = expand(s, headers);
	(*at)->body = expand(s, body);
}

static void
answer_free(struct stage_answer *a)
{
	free(a->prefix);
	free(a->headers);
	free(a->body);
	free(a);
}

static struct stage_answer *
answer_take(struct stage *s, const char *path)
{
	struct stage_answer **at, *a;

	for (at = &s->answers; (a = *at) != NULL; at = &a->next) {
		if (strncmp(a->prefix, path, strlen(a->prefix)) != 0)
			continue;
		*at = a->next;
		return a;
	}
	return NULL;
}

static void
add_headers(struct evhttp_request *req, char *headers)
{
	char *line, *value;

	while ((line = strsep(&headers, "\n")) != NULL) {
		value = strchr(line, ':');
		if (value == NULL)
			continue;
		*value++ = '\0';
		evhttp_add_header(evhttp_request_get_output_headers(req), line,
		    value + strspn(value, " "));
	}
}

static void
asked(struct evhttp_request *req, void *arg)
{
	const char *uri = evhttp_request_get_uri(req);
	struct stage *s = arg;
	struct stage_answer *a;
	struct evbuffer *body = evbuffer_new();

	uri += strncmp(uri, "/999/", 5) == 0 ? 5 : 0;
	stage_note(s, "GET %s", uri);
	a = answer_take(s, uri);
	if (a == NULL) {
		/* Nothing is scripted: this request is never answered. */
		evbuffer_free(body);
		return;
	}
	add_headers(req, a->headers);
	evbuffer_add(body, a->body, strlen(a->body));
	evhttp_send_reply(req, a->status, "x", body);
	evbuffer_free(body);
	answer_free(a);
}

static void
base_url_of(struct stage *s, int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(s->base_url, sizeof(s->base_url), "http://127.0.0.1:%u",
	    (unsigned)ntohs(at.sin_port));
}

static void
server_start(struct stage *s)
{
	struct evhttp_bound_socket *bound;

	s->server = evhttp_new(s->role.base);
	bound = evhttp_bind_socket_with_handle(s->server, "127.0.0.1", 0);
	assert_non_null(bound);
	base_url_of(s, evhttp_bound_socket_get_fd(bound));
	evhttp_set_gencb(s->server, asked, s);
}

/* Bound, so that no other test gets that port, and not listening. */
void
stage_nobody_answers(struct stage *s)
{
	const struct sockaddr_in any = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct error e;

	s->closed = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(
	    bind(s->closed, (const struct sockaddr *)&any, sizeof(any)), 0);
	base_url_of(s, s->closed);
	free(s->in.api.base_url);
	free(s->in.api.origin);
	s->in.api.base_url = xstrdup(s->base_url);
	assert_int_equal(
	    url_origin(s->base_url, strlen(s->base_url), &s->in.api.origin, &e),
	    0);
}

/* ---- the ledger --------------------------------------------------------- */

static void
on_entry(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_ENTRY_IS};
	struct stage *s = arg;

	stage_note(s, "ENTRY");
	r.entry_is.position = s->position;
	r.entry_is.served_id = s->served;
	r.entry_is.lineage_served_id = s->lineage_served;
	r.entry_is.lineage_is_known = s->lineage_is_known;
	r.entry_is.depth = s->depth;
	peer_reply(&to, &r);
	msg_free(m);
}

static void
on_record(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_RECORDED};
	struct stage *s = arg;

	stage_note(s, "RECORD %" PRId64 " %s %.*s", m->record.event_id,
	    m->record.lane, (int)m->record.details.len,
	    m->record.details.len > 0 ? (const char *)m->record.details.bytes
				      : "");
	r.recorded.is_new = true;
	r.recorded.depth = ++s->depth;
	peer_reply(&to, &r);
	msg_free(m);
}

static void
on_checkpoint(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);

	stage_note(arg, "CHECKPOINT \"%s\" %" PRId64, m->checkpoint.position,
	    m->checkpoint.served_id);
	peer_done(&to, true);
	msg_free(m);
}

static void
on_drop(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct stage *s = arg;

	stage_note(s, "DROP_POSITION \"%s\"", m->drop_position.position);
	s->position = "";
	peer_done(&to, true);
	msg_free(m);
}

static void
on_gap(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);

	stage_note(arg, "GAP %s %" PRId64 " %s \"%s\"", m->gap.class,
	    m->gap.epoch_after_id.value, m->gap.entry_class, m->gap.note);
	peer_done(&to, true);
	msg_free(m);
}

static void
on_next_undecided(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_UNDECIDED};
	struct stage *s = arg;
	size_t i;

	for (i = 0; i < s->undecided_count; i++)
		if (s->undecided[i].event_id > m->next_undecided.after)
			break;
	if (i < s->undecided_count)
		r.undecided = s->undecided[i];
	else
		r.undecided.retry_in_ms = s->retry_in_ms;
	r.undecided.depth = s->depth;
	peer_reply(&to, &r);
	msg_free(m);
}

static void
on_verdict(struct peer *peer, struct msg *m, void *arg)
{
	const struct msg_verdict *v = &m->verdict;
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_VERDICT_IS};
	struct stage *s = arg;
	size_t i, kept = 0;

	for (i = 0; i < s->undecided_count; i++)
		if (s->undecided[i].event_id != v->event_id)
			s->undecided[kept++] = s->undecided[i];
	s->undecided_count = kept;
	stage_note(s,
	    "VERDICT %" PRId64 " %s%s%s trigger=%s%s key=%s reply=%s:%" PRId64
	    " route=%s class=%s url=%s requester=%" PRId64 "%s%s",
	    v->event_id, v->state, *v->reason != '\0' ? " " : "", v->reason,
	    v->trigger, v->acknowledge ? " ack" : "", v->conversation_key,
	    v->reply_kind, v->reply_recording_id, v->route, v->class,
	    v->recording_url, v->requester_id,
	    *v->retry_at != '\0' ? " retry_at" : "",
	    *v->next_retry_at != '\0' ? " timed" : "");
	if (v->snapshot.len > 0)
		stage_note(s, "SNAPSHOT %.*s", (int)v->snapshot.len,
		    (const char *)v->snapshot.bytes);
	r.verdict_is.applied = true;
	r.verdict_is.state = v->state;
	r.verdict_is.depth = s->depth > 0 ? --s->depth : 0;
	peer_reply(&to, &r);
	msg_free(m);
}

static void
on_thread_of(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_THREAD_IS};
	struct stage *s = arg;

	stage_note(s, "THREAD_OF %s %" PRId64, m->thread_of.attempt,
	    m->thread_of.event_id);
	r.thread_is = s->thread;
	if (s->thread.recording_id == 0)
		peer_fail(&to, "not_exposed", 0, "pull it first");
	else
		peer_reply(&to, &r);
	msg_free(m);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_ENTRY] = on_entry,
    [MSG_RECORD] = on_record,
    [MSG_CHECKPOINT] = on_checkpoint,
    [MSG_DROP_POSITION] = on_drop,
    [MSG_GAP] = on_gap,
    [MSG_NEXT_UNDECIDED] = on_next_undecided,
    [MSG_VERDICT] = on_verdict,
    [MSG_THREAD_OF] = on_thread_of,
};

/* ---- the outbox --------------------------------------------------------- */

static void
on_token(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg r = {.type = MSG_TOKEN_IS};
	struct stage *s = arg;

	stage_note(s, "TOKEN %" PRId64, m->token.refused);
	if (s->no_token != NULL) {
		peer_fail(&to, s->no_token, 0, "none");
	} else {
		r.token_is.serial = ++s->token_serial;
		r.token_is.token = "fake";
		r.token_is.renew_in_ms = 3600000;
		peer_reply(&to, &r);
	}
	msg_free(m);
}

static const peer_handler outbox_handlers[MSG_COUNT] = {
    [MSG_TOKEN] = on_token,
};

/* ---- links -------------------------------------------------------------- */

static void
broken(struct peer *peer, const char *text, void *arg)
{
	(void)peer;
	(void)arg;
	print_error("protocol: %s\n", text);
	fail();
}

static const peer_handler none[MSG_COUNT];

static void
on_read_thread(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;

	thread_asked(s->in.threads, peer, m);
}

static const peer_handler thread_handlers[MSG_COUNT] = {
    [MSG_READ_THREAD] = on_read_thread,
};

static const struct peer_ops ledger_ops = {.handlers = ledger_handlers,
				 .broken = broken},
			     outbox_ops = {.handlers = outbox_handlers,
				 .broken = broken},
			     here_ops = {.handlers = none, .broken = broken},
			     threads_ops = {
				 .handlers = thread_handlers, .broken = broken};

/* A link between intake and ROLE; returns the other end. */
static struct peer *
join(struct stage *s, enum role_id role, const char *attempt,
    const struct peer_ops *here, const struct peer_ops *there,
    struct peer **ours)
{
	struct peer *other;
	int fds[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	*ours = peer_new(s->role.base, ROLE_INTAKE, role, attempt, here, s);
	other = peer_new(s->role.base, role, ROLE_INTAKE, "", there, s);
	peer_attach(*ours, fds[0], 1);
	peer_attach(other, fds[1], 1);
	s->role.peers[s->role.peer_count++] = *ours;
	return other;
}

/* ---- the stage ---------------------------------------------------------- */

static void
resumed(void *arg)
{
	struct stage *s = arg;

	feed_resume(s->in.feed);
}

static struct config *
stage_config(void)
{
	struct config *c = config_new();

	c->generation = 1;
	c->readable = true;
	c->account_id = 999;
	c->agent_id = STAGE_AGENT;
	c->operator_id = STAGE_OPERATOR;
	c->concurrency = 2;
	c->deadline_ms = 60000;
	(void)snprintf(c->trust_mode, sizeof(c->trust_mode), "operator");
	(void)snprintf(c->driver, sizeof(c->driver), "claude");
	(void)snprintf(c->profile, sizeof(c->profile), "demo");
	config_route_add(c, STAGE_PROJECT, "/srv/site", "web", false);
	c->limits[LIMIT_feed_poll] = 3600000;
	c->limits[LIMIT_feed_retry] = 10;
	c->limits[LIMIT_feed_retry_most] = 20;
	c->limits[LIMIT_read_retry] = 10;
	c->limits[LIMIT_read_retry_most] = 20;
	c->limits[LIMIT_http_timeout] = 2000;
	return c;
}

struct stage *
stage_new(void)
{
	struct stage *s = xcalloc(1, sizeof(*s));
	struct peer *outbox;
	struct error e;

	on_stage = s;
	s->position = "";
	s->role.base = event_base_new();
	s->config = stage_config();
	server_start(s);
	s->in.role = &s->role;
	s->ledger =
	    join(s, ROLE_LEDGER, "", &here_ops, &ledger_ops, &s->in.ledger);
	s->outbox = join(s, ROLE_OUTBOX, "", &here_ops, &outbox_ops, &outbox);
	s->mcpd = join(s, ROLE_MCPD, "att_0123456789abcdef01234567",
	    &threads_ops, &here_ops, &s->mcpd_here);
	assert_int_equal(
	    api_init(&s->in.api, &s->role, s->base_url, "test/1", &e), 0);
	s->in.lists = lists_new(&s->in.api);
	s->in.backlog.resumed = resumed;
	s->in.backlog.arg = s;
	s->in.feed = feed_new(&s->in);
	s->in.admission = admission_new(&s->in);
	s->in.threads = threads_new(&s->in);
	return s;
}

/* Without the feed: what a decision or a thread needs. */
static void
configure_api(struct stage *s)
{
	policy_unref(s->in.policy);
	s->in.policy = policy_new(s->config);
	s->in.api.account_id = s->config->account_id;
	s->in.api.timeout_ms = s->config->limits[LIMIT_http_timeout];
	s->in.backlog.pause_depth = s->config->limits[LIMIT_pause_depth];
	s->in.backlog.resume_depth = s->config->limits[LIMIT_resume_depth];
}

void
stage_configure(struct stage *s)
{
	configure_api(s);
	feed_configure(s->in.feed);
}

void
stage_free(struct stage *s)
{
	struct stage_answer *a;

	feed_stop(s->in.feed);
	admission_stop(s->in.admission);
	threads_forget(s->in.threads, s->mcpd_here);
	stage_linger(s, 1);
	http_free(s->in.api.http);
	while ((a = s->answers) != NULL) {
		s->answers = a->next;
		answer_free(a);
	}
	peer_free(s->ledger);
	peer_free(s->outbox);
	peer_free(s->mcpd);
	evhttp_free(s->server);
	if (s->closed != 0)
		(void)close(s->closed);
	config_free(s->config);
	buffer_free(&s->journal);
	free(s);
}
