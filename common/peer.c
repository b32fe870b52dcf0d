#include <sys/queue.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/peer.h"
#include "common/xmalloc.h"

#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 1000

/* A request from its first sending to its answer. */
struct pending {
	TAILQ_ENTRY(pending) entry;
	uint64_t id;
	enum msg_type type;
	struct frame frame;
	peer_answer answer; /* NULL: forgotten */
	void *arg;
	int64_t not_before; /* monotonic ms */
	int tries;          /* answered `unavailable` so often */
	int64_t record;     /* the event that it is to move; 0: none */
	bool is_suspect;    /* unanswered at a death: it goes alone */
};
TAILQ_HEAD(pending_list, pending);

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
	struct pending_list sent, waiting;
	size_t sent_count, waiting_count;
	size_t suspects; /* of both lists */
	uint64_t next_id;
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
	peer->next_id = 1;
	TAILQ_INIT(&peer->sent);
	TAILQ_INIT(&peer->waiting);
	peer->retry = event_new(base, -1, 0, peer_on_retry, peer);
	if (peer->retry == NULL)
		fatalx("peer %s: no event", role_name(role));
	return peer;
}

/* The record that it is to move, which makes the ledger read it; or 0. */
static int64_t
msg_record(const struct msg *m)
{
	if (m->type == MSG_VERDICT)
		return m->verdict.event_id;
	return m->type == MSG_LAUNCH ? m->launch.event_id : 0;
}

/* In no list yet. */
static struct pending *
pending_new(struct peer *peer, struct msg *m, peer_answer answer, void *arg)
{
	struct pending *p = xcalloc(1, sizeof(*p));
	struct error e;

	if (!msg_is_request(m->type) ||
	    !msg_permitted(m->type, peer->self, peer->role))
		fatalx("%s: not ours to ask of %s", msg_name(m->type),
		    role_name(peer->role));
	m->request = p->id = peer->next_id++;
	p->type = m->type;
	p->answer = answer;
	p->arg = arg;
	p->record = msg_record(m);
	if (frame_encode(m, &p->frame, &e) == -1)
		fatalx("%s", e.text);
	return p;
}

static void
pending_free(struct pending *p)
{
	frame_free(&p->frame);
	free(p);
}

static void
pending_drop(struct pending_list *list)
{
	struct pending *p;

	while ((p = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, p, entry);
		pending_free(p);
	}
}

void
peer_free(struct peer *peer)
{
	if (peer == NULL)
		return;
	link_free(peer->link);
	if (peer->next_fd != -1)
		(void)close(peer->next_fd);
	pending_drop(&peer->sent);
	pending_drop(&peer->waiting);
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

/* First the death is counted, then what may have caused it is repeated. */
static void
peer_suspect_sent(struct peer *peer)
{
	struct pending *first = TAILQ_FIRST(&peer->sent), *p, *count;
	struct msg m = {.type = MSG_COUNT_DEATH};

	m.count_death.death = peer->death;
	for (p = first; p != NULL; p = TAILQ_NEXT(p, entry)) {
		if (!p->is_suspect)
			peer->suspects++;
		p->is_suspect = true;
		if (p->record == 0)
			continue;
		m.count_death.event_id = p->record;
		count = pending_new(peer, &m, NULL, NULL);
		TAILQ_INSERT_BEFORE(first, count, entry);
		peer->sent_count++;
	}
	peer->death[0] = '\0';
}

/* What was sent over the old link and not answered goes first, in order. */
static void
peer_resend_all(struct peer *peer)
{
	if (peer->death[0] != '\0')
		peer_suspect_sent(peer);
	TAILQ_CONCAT(&peer->sent, &peer->waiting, entry);
	TAILQ_CONCAT(&peer->waiting, &peer->sent, entry);
	peer->waiting_count += peer->sent_count;
	peer->sent_count = 0;
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
	peer_resend_all(peer);
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

/* ---- asking ----------------------------------------------------------- */

static void
peer_send_pending(struct peer *peer, struct pending *p)
{
	struct frame copy;

	if (frame_dup(&p->frame, &copy) == -1)
		fatal("%s: cannot copy its descriptors", msg_name(p->type));
	TAILQ_REMOVE(&peer->waiting, p, entry);
	peer->waiting_count--;
	TAILQ_INSERT_TAIL(&peer->sent, p, entry);
	peer->sent_count++;
	link_send_frame(peer->link, &copy);
}

static size_t
peer_window(const struct peer *peer)
{
	return peer->suspects > 0 ? 1 : PEER_WINDOW;
}

/* Send what the window and the pauses allow; wake for the next pause. */
static void
peer_pump(struct peer *peer)
{
	struct pending *p, *next;
	int64_t now = clock_monotonic_ms(), soonest = INT64_MAX;
	struct timeval tv;

	for (p = TAILQ_FIRST(&peer->waiting); p != NULL; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (peer->link == NULL || peer->sent_count >= peer_window(peer))
			return;
		if (p->not_before <= now)
			peer_send_pending(peer, p);
		else if (p->not_before < soonest)
			soonest = p->not_before;
	}
	if (soonest == INT64_MAX)
		return;
	tv.tv_sec = (soonest - now) / 1000;
	tv.tv_usec = (soonest - now) % 1000 * 1000;
	(void)event_add(peer->retry, &tv);
}

uint64_t
peer_request(struct peer *peer, struct msg *m, peer_answer answer, void *arg)
{
	struct pending *p = pending_new(peer, m, answer, arg);
	uint64_t id = p->id;

	TAILQ_INSERT_TAIL(&peer->waiting, p, entry);
	peer->waiting_count++;
	peer_pump(peer);
	return id;
}

static struct pending *
pending_find(struct pending_list *list, uint64_t id)
{
	struct pending *p;

	TAILQ_FOREACH (p, list, entry) {
		if (p->id == id)
			return p;
	}
	return NULL;
}

void
peer_forget(struct peer *peer, uint64_t request)
{
	struct pending *p = pending_find(&peer->sent, request);

	if (p == NULL)
		p = pending_find(&peer->waiting, request);
	if (p != NULL)
		p->answer = NULL;
}

size_t
peer_room(const struct peer *peer)
{
	size_t used = peer->sent_count + peer->waiting_count;

	return peer->link == NULL || used >= PEER_WINDOW ? 0
							 : PEER_WINDOW - used;
}

size_t
peer_unanswered(const struct peer *peer)
{
	return peer->sent_count + peer->waiting_count;
}

/* It stands; ask again after a pause that grows. */
static void
pending_postpone(struct peer *peer, struct pending *p)
{
	int64_t pause = RETRY_FIRST_MS;
	int i;

	for (i = 0; i < p->tries && pause < RETRY_MOST_MS; i++)
		pause *= 2;
	p->tries++;
	p->not_before = clock_monotonic_ms() +
	    (pause > RETRY_MOST_MS ? RETRY_MOST_MS : pause);
	TAILQ_INSERT_HEAD(&peer->waiting, p, entry);
	peer->waiting_count++;
}

static void
peer_take_reply(struct peer *peer, struct msg *m)
{
	struct pending *p = pending_find(&peer->sent, m->request);
	bool is_failed = m->type == MSG_FAILED;

	if (p == NULL || (!is_failed && msg_info(p->type)->reply != m->type)) {
		char text[128];

		(void)snprintf(text, sizeof(text), "%s: answers nothing asked",
		    msg_name(m->type));
		msg_free(m);
		peer_close(peer, text);
		return;
	}
	TAILQ_REMOVE(&peer->sent, p, entry);
	peer->sent_count--;
	if (is_failed && strcmp(m->failed.reason, "unavailable") == 0) {
		pending_postpone(peer, p);
	} else {
		/* Room before the answer, which may ask more. */
		peer_answer answer = p->answer;
		void *arg = p->arg;

		if (p->is_suspect)
			peer->suspects--;
		pending_free(p);
		peer_pump(peer);
		if (answer != NULL)
			answer(peer, m, arg);
		msg_free(m);
		return;
	}
	msg_free(m);
	peer_pump(peer);
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
