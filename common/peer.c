#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/log.h"
#include "common/peer.h"
#include "common/requests.h"
#include "common/xmalloc.h"

struct peer {
	struct event_base *base;
	enum role_id self, role;
	char attempt[32];
	int64_t guest;
	const struct peer_ops *ops;
	void *arg;
	struct link *link;
	uint64_t serial; /* of the present link */
	int64_t generation;
	bool greeted;   /* its HELLO came */
	size_t serving; /* its requests we have not answered */
	int next_fd;    /* a link that waits for the present one's end */
	int64_t next_generation;
	char death[DEATH_ID_LEN + 1]; /* that the next link follows */
	struct requests requests;
	struct event *retry;
};

static void peer_open(struct peer *peer, int fd, int64_t generation);
static void peer_pump(struct peer *peer);
static void peer_on_message(struct link *link, struct msg *m, void *arg);
static void peer_on_over(
    struct link *link, enum link_over why, const char *text, void *arg);

static const struct link_ops link_ops = {peer_on_message, peer_on_over};

static void
peer_on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	peer_pump(arg);
}

struct peer *
peer_new(struct event_base *base, enum role_id self, enum role_id role,
    const char *attempt, const struct peer_ops *ops, void *arg)
{
	struct peer *peer = xcalloc(1, sizeof(*peer));

	peer->base = base;
	peer->self = self;
	peer->role = role;
	(void)snprintf(peer->attempt, sizeof(peer->attempt), "%s", attempt);
	peer->ops = ops;
	peer->arg = arg;
	peer->next_fd = -1;
	requests_init(&peer->requests, self, role);
	peer->retry = event_new(base, -1, 0, peer_on_retry, peer);
	if (peer->retry == NULL)
		fatalx("peer %s: no event", role_name(role));
	return peer;
}

void
peer_free(struct peer *peer)
{
	if (peer == NULL)
		return;
	link_free(peer->link);
	if (peer->next_fd != -1)
		(void)close(peer->next_fd);
	requests_drop(&peer->requests);
	event_free(peer->retry);
	free(peer);
}

bool
peer_is_linked(const struct peer *peer)
{
	return peer->link != NULL;
}

enum role_id
peer_role(const struct peer *peer)
{
	return peer->role;
}

const char *
peer_attempt(const struct peer *peer)
{
	return peer->attempt;
}

int64_t
peer_generation(const struct peer *peer)
{
	return peer->generation;
}

int64_t
peer_guest(const struct peer *peer)
{
	return peer->guest;
}

void
peer_set_guest(struct peer *peer, int64_t guest)
{
	peer->guest = guest;
}

void
peer_bind(struct peer *peer, const char *attempt)
{
	(void)snprintf(peer->attempt, sizeof(peer->attempt), "%s", attempt);
}

struct link *
peer_link(struct peer *peer)
{
	return peer->link;
}

/* ---- links ------------------------------------------------------------ */

/* Descriptor 3 opens with SETUP and READY, every other link with HELLO. */
static bool
peer_greets(const struct peer *peer)
{
	return peer->self != ROLE_SUPERVISOR && peer->role != ROLE_SUPERVISOR;
}

void
peer_attach(struct peer *peer, int fd, int64_t generation)
{
	if (peer->link == NULL) {
		peer_open(peer, fd, generation);
		return;
	}
	if (peer->next_fd != -1)
		(void)close(peer->next_fd);
	peer->next_fd = fd;
	peer->next_generation = generation;
}

/* Of lives that we were never linked to nothing is in our hands. */
void
peer_mourn(struct peer *peer, const char *death)
{
	if (peer->next_fd == -1)
		(void)snprintf(peer->death, sizeof(peer->death), "%s", death);
}

static void
peer_open(struct peer *peer, int fd, int64_t generation)
{
	struct msg hello = {.type = MSG_HELLO};

	peer->link =
	    link_new(peer->base, fd, peer->self, peer->role, &link_ops, peer);
	peer->serial++;
	peer->generation = generation;
	peer->serving = 0;
	peer->greeted = !peer_greets(peer);
	if (!peer->greeted) {
		hello.hello.protocol = PROTOCOL_VERSION;
		hello.hello.schema = SCHEMA_VERSION;
		hello.hello.build = build_id;
		link_send(peer->link, &hello);
	}
	requests_repeat(&peer->requests, peer->death);
	peer->death[0] = '\0';
	peer_pump(peer);
	if (peer->ops->linked != NULL)
		peer->ops->linked(peer, peer->arg);
}

/* BROKEN: why the link is ended by us, or NULL. */
static void
peer_close(struct peer *peer, const char *broken)
{
	struct link *link = peer->link;
	int fd = peer->next_fd;

	if (link == NULL)
		return;
	peer->link = NULL;
	peer->next_fd = -1;
	link_free(link);
	if (broken != NULL && peer->ops->broken != NULL)
		peer->ops->broken(peer, broken, peer->arg);
	if (peer->ops->unlinked != NULL)
		peer->ops->unlinked(peer, peer->arg);
	if (fd != -1)
		peer_open(peer, fd, peer->next_generation);
}

static void
peer_on_over(struct link *link, enum link_over why, const char *text, void *arg)
{
	struct peer *peer = arg;

	if (link != peer->link)
		return;
	peer_close(peer, why == LINK_BROKEN ? text : NULL);
}

void
peer_catch_up(struct peer *peer)
{
	uint64_t serial;

	do {
		serial = peer->serial;
		if (peer->link != NULL)
			link_catch_up(peer->link);
	} while (peer->link != NULL && peer->serial != serial);
}

/* ---- asking ----------------------------------------------------------- */

/* Send what may go; wake for the next pause. */
static void
peer_pump(struct peer *peer)
{
	struct timeval tv;
	int64_t ms;

	if (peer->link == NULL)
		return;
	ms = requests_send(&peer->requests, peer->link);
	if (ms == -1)
		return;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	(void)event_add(peer->retry, &tv);
}

uint64_t
peer_request(struct peer *peer, struct msg *m, peer_answer answer, void *arg)
{
	bool waits = requests_count(&peer->requests) > 0;
	uint64_t id = requests_add(&peer->requests, m, answer, arg);

	peer_pump(peer);
	if (!waits && peer->ops->waits != NULL)
		peer->ops->waits(peer, peer->arg);
	return id;
}

void
peer_forget(struct peer *peer, uint64_t request)
{
	requests_forget(&peer->requests, request);
}

size_t
peer_room(const struct peer *peer)
{
	size_t used = peer_unanswered(peer);

	return peer->link == NULL || used >= PEER_WINDOW ? 0
							 : PEER_WINDOW - used;
}

size_t
peer_unanswered(const struct peer *peer)
{
	return requests_count(&peer->requests);
}

static void
peer_take_reply(struct peer *peer, struct msg *m)
{
	peer_answer answer;
	char text[128];
	void *arg;

	if (requests_answered(&peer->requests, m, &answer, &arg) == -1) {
		(void)snprintf(text, sizeof(text), "%s: answers nothing asked",
		    msg_name(m->type));
		msg_free(m);
		peer_close(peer, text);
		return;
	}
	/* Room before the answer, which may ask more. */
	peer_pump(peer);
	if (answer != NULL)
		answer(peer, m, arg);
	msg_free(m);
}

/* ---- being asked ------------------------------------------------------ */

static void
peer_take_hello(struct peer *peer, struct msg *m)
{
	const char *wrong = NULL;

	if (m->type != MSG_HELLO)
		wrong = "first message is not HELLO";
	else if (m->hello.protocol != PROTOCOL_VERSION)
		wrong = "HELLO: another protocol version";
	else if (m->hello.schema != SCHEMA_VERSION)
		wrong = "HELLO: another schema version";
	else if (strcmp(m->hello.build, build_id) != 0)
		wrong = "HELLO: another build; a restart is pending";
	msg_free(m);
	if (wrong != NULL)
		peer_close(peer, wrong);
	else
		peer->greeted = true;
}

static void
peer_take_ping(struct peer *peer, struct msg *m)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg pong = {.type = MSG_PONG};

	pong.pong.nonce = m->ping.nonce;
	msg_free(m);
	peer_reply(&to, &pong);
}

static void
peer_take_other(struct peer *peer, struct msg *m)
{
	peer_handler handler = peer->ops->handlers[m->type];
	char text[128];

	if (msg_is_request(m->type) && ++peer->serving > PEER_WINDOW) {
		(void)snprintf(text, sizeof(text), "%s: over its window",
		    msg_name(m->type));
	} else if (m->type == MSG_PING) {
		peer_take_ping(peer, m);
		return;
	} else if (handler != NULL) {
		handler(peer, m, peer->arg);
		return;
	} else {
		(void)snprintf(text, sizeof(text), "%s: not handled here",
		    msg_name(m->type));
	}
	msg_free(m);
	peer_close(peer, text);
}

static void
peer_on_message(struct link *link, struct msg *m, void *arg)
{
	struct peer *peer = arg;

	if (link != peer->link) {
		msg_free(m);
		return;
	}
	if (!peer->greeted)
		peer_take_hello(peer, m);
	else if (msg_info(m->type)->kind == MSG_REPLY)
		peer_take_reply(peer, m);
	else
		peer_take_other(peer, m);
}

struct reply_to
peer_reply_to(struct peer *peer, const struct msg *request)
{
	return (struct reply_to){.peer = peer,
	    .link = peer->serial,
	    .request = request->request,
	    .type = request->type};
}

void
peer_reply(const struct reply_to *to, struct msg *m)
{
	struct peer *peer = to->peer;
	struct error e;
	struct frame f;

	if (m->type != MSG_FAILED && m->type != msg_info(to->type)->reply)
		fatalx("%s: not the reply to %s", msg_name(m->type),
		    msg_name(to->type));
	m->request = to->request;
	if (peer->link != NULL && peer->serial == to->link) {
		if (peer->serving > 0)
			peer->serving--;
		link_send(peer->link, m);
	} else if (frame_encode(m, &f, &e) == 0) {
		frame_free(&f); /* nobody to tell; the descriptors are ours */
	}
}

void
peer_fail(const struct reply_to *to, const char *reason, int64_t wait_ms,
    const char *fmt, ...)
{
	struct msg m = {.type = MSG_FAILED};
	char text[513];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	m.failed.reason = reason;
	m.failed.text = text;
	m.failed.wait_ms = wait_ms;
	peer_reply(to, &m);
}

void
peer_done(const struct reply_to *to, bool changed)
{
	struct msg m = {.type = MSG_DONE};

	m.done.changed = changed;
	peer_reply(to, &m);
}

/* ---- telling ---------------------------------------------------------- */

void
peer_notice(struct peer *peer, struct msg *m)
{
	(void)peer_notice_droppable(peer, m, SIZE_MAX);
}

bool
peer_notice_droppable(struct peer *peer, struct msg *m, size_t bound)
{
	struct error e;
	struct frame f;

	if (peer->link != NULL && link_queued(peer->link) <= bound) {
		link_send(peer->link, m);
		return true;
	}
	if (frame_encode(m, &f, &e) == 0)
		frame_free(&f);
	return false;
}
