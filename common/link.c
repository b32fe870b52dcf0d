#include <sys/queue.h>
#include <sys/socket.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/link.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* One turn of the loop reads at most this much of one peer. */
#define READ_TURN_MAX 65536
/* A peer that does not read what we owe it is not read either. */
#define QUEUE_HIGH (256 * 1024)
/* Frames without descriptors share a chunk up to this size. */
#define CHUNK_MAX 65536
#define FDS_WAITING_MAX 64

static_assert(FRAME_FDS_MAX <= DESCRIPTORS_MOST,
    "a frame's descriptors come with one piece of it");

/* Bytes to be written; descriptors leave with the first of them. */
struct chunk {
	TAILQ_ENTRY(chunk) entry;
	unsigned char *bytes;
	size_t len, done, room;
	int fds[FRAME_FDS_MAX];
	size_t fd_count;
};
TAILQ_HEAD(chunk_list, chunk);

struct link {
	struct event_base *base;
	int fd;
	enum role_id self, peer;
	const struct link_ops *ops;
	void *arg;
	struct event *readable, *writable;
	struct chunk_list queue;
	size_t queued;
	unsigned char *in; /* bytes of frames not yet whole */
	size_t in_len, in_room;
	int fds[FDS_WAITING_MAX]; /* came with bytes, frame not yet whole */
	size_t fd_count;
	bool paused, eof, is_over, is_freed;
	int busy; /* inside callbacks: free later */
};

static void link_on_readable(evutil_socket_t fd, short what, void *arg);
static void link_on_writable(evutil_socket_t fd, short what, void *arg);

struct link *
link_new(struct event_base *base, int fd, enum role_id self, enum role_id peer,
    const struct link_ops *ops, void *arg)
{
	struct link *link = xcalloc(1, sizeof(*link));

	link->base = base;
	link->fd = fd;
	link->self = self;
	link->peer = peer;
	link->ops = ops;
	link->arg = arg;
	TAILQ_INIT(&link->queue);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)evutil_make_socket_nonblocking(fd);
	link->readable =
	    event_new(base, fd, EV_READ | EV_PERSIST, link_on_readable, link);
	link->writable = event_new(base, fd, EV_WRITE, link_on_writable, link);
	if (link->readable == NULL || link->writable == NULL ||
	    event_add(link->readable, NULL) == -1)
		fatalx("link to %s: no event", role_name(peer));
	return link;
}

static void
chunk_free(struct chunk *c)
{
	while (c->fd_count > 0)
		(void)close(c->fds[--c->fd_count]);
	xfree_wiped(c->bytes); /* a secret may have gone by here */
	free(c);
}

static void
link_drop_queue(struct link *link)
{
	struct chunk *c;

	while ((c = TAILQ_FIRST(&link->queue)) != NULL) {
		TAILQ_REMOVE(&link->queue, c, entry);
		chunk_free(c);
	}
	link->queued = 0;
}

static void
link_destroy(struct link *link)
{
	link_drop_queue(link);
	while (link->fd_count > 0)
		(void)close(link->fds[--link->fd_count]);
	event_free(link->readable);
	event_free(link->writable);
	(void)close(link->fd);
	free(link->in);
	free(link);
}

void
link_free(struct link *link)
{
	if (link == NULL)
		return;
	link->is_over = link->is_freed = true;
	if (link->busy == 0)
		link_destroy(link);
}

enum role_id
link_peer(const struct link *link)
{
	return link->peer;
}

size_t
link_queued(const struct link *link)
{
	return link->queued;
}

/* Reading follows what was asked and how much we owe. */
static void
link_reading(struct link *link)
{
	if (link->is_over || link->eof || link->paused ||
	    link->queued > QUEUE_HIGH)
		(void)event_del(link->readable);
	else
		(void)event_add(link->readable, NULL);
}

static void
link_end(struct link *link, enum link_over why, const char *text)
{
	if (link->is_over)
		return;
	link->is_over = true;
	link_reading(link);
	(void)event_del(link->writable);
	link->ops->over(link, why, text, link->arg);
}

/* ---- writing ---------------------------------------------------------- */

/* Not by realloc, which would leave what it moves behind. */
static void
chunk_grow(struct chunk *c, size_t room)
{
	unsigned char *bytes = xmalloc(room);

	if (c->len != 0)
		memcpy(bytes, c->bytes, c->len);
	xfree_wiped(c->bytes);
	c->bytes = bytes;
	c->room = room;
}

static struct chunk *
chunk_for(struct link *link, const struct frame *f)
{
	struct chunk *c = TAILQ_LAST(&link->queue, chunk_list);

	if (c != NULL && f->fd_count == 0 && c->len + f->len <= CHUNK_MAX)
		return c;
	c = xcalloc(1, sizeof(*c));
	memcpy(c->fds, f->fds, sizeof(c->fds));
	c->fd_count = f->fd_count;
	TAILQ_INSERT_TAIL(&link->queue, c, entry);
	return c;
}

void
link_send_frame(struct link *link, struct frame *f)
{
	struct chunk *c;

	if (link->is_over) {
		frame_free(f);
		return;
	}
	c = chunk_for(link, f);
	if (c->len + f->len > c->room) {
		chunk_grow(c, c->room == 0 ? f->len : 2 * (c->len + f->len));
	}
	memcpy(c->bytes + c->len, f->bytes, f->len);
	c->len += f->len;
	link->queued += f->len;
	f->fd_count = 0; /* the chunk has them */
	frame_free(f);
	event_active(link->writable, EV_WRITE, 0);
}

void
link_send(struct link *link, struct msg *m)
{
	struct frame f;
	struct error e;

	if (!msg_permitted(m->type, link->self, link->peer))
		fatalx("%s: not ours to send to %s", msg_name(m->type),
		    role_name(link->peer));
	if (frame_encode(m, &f, &e) == -1)
		fatalx("%s", e.text);
	link_send_frame(link, &f);
}

/* True when the chunk is away and the next may follow. */
static bool
link_write_one(struct link *link, struct chunk *c)
{
	ssize_t n = descriptors_send(link->fd, c->bytes + c->done,
	    c->len - c->done, c->fds, c->fd_count, MSG_DONTWAIT);

	if (n == -1)
		return errno == EINTR;
	while (c->fd_count > 0)
		(void)close(c->fds[--c->fd_count]);
	c->done += (size_t)n;
	link->queued -= (size_t)n;
	if (c->done < c->len)
		return true;
	TAILQ_REMOVE(&link->queue, c, entry);
	chunk_free(c);
	return true;
}

/* A failure that passes by itself: the bytes wait. */
static bool
write_may_pass_later(int code)
{
	return code == EAGAIN || code == ENOBUFS || code == ETOOMANYREFS;
}

/*
 * A write that fails for good says nothing here: the peer is gone, and the
 * reading side will find what it still wrote, then its end. What was for it
 * is dropped, or it would keep the link from being read.
 */
void
link_flush(struct link *link)
{
	struct chunk *c;

	while ((c = TAILQ_FIRST(&link->queue)) != NULL) {
		if (!link_write_one(link, c))
			break;
	}
	if (c != NULL && !write_may_pass_later(errno))
		link_drop_queue(link);
	else if (c != NULL && !link->is_over)
		(void)event_add(link->writable, NULL);
	link_reading(link);
}

static void
link_on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	link_flush(arg);
}

/* ---- reading ---------------------------------------------------------- */

/*
 * As descriptors_receive(), into SIZE bytes of room behind what is read so far;
 * the descriptors wait for the frame that they came with.
 */
static ssize_t
link_read(struct link *link, size_t size)
{
	int fds[FRAME_FDS_MAX];
	ssize_t n = descriptors_receive(link->fd, link->in + link->in_len, size,
	    fds, FRAME_FDS_MAX, MSG_DONTWAIT);
	size_t i;

	if (n > 0)
		link->in_len += (size_t)n;
	for (i = 0; i < FRAME_FDS_MAX && fds[i] != -1; i++) {
		if (link->fd_count < FDS_WAITING_MAX) {
			link->fds[link->fd_count++] = fds[i];
			continue;
		}
		(void)close(fds[i]);
		errno = EBADMSG;
		n = -1;
	}
	return n;
}

/* >0 bytes came, 0 nothing now, -1 it is over (eof set, or a text). */
static ssize_t
link_receive(struct link *link, const char **text)
{
	ssize_t n;

	if (link->in_room - link->in_len < FRAME_MAX) {
		link->in_room = link->in_len + 2 * FRAME_MAX;
		link->in = xreallocarray(link->in, 1, link->in_room);
	}
	n = link_read(link, link->in_room - link->in_len);
	if (n > 0)
		return n;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == -1 && errno == EBADMSG)
		*text = "a descriptor was lost";
	else
		link->eof = true;
	return -1;
}

/* The first frame's length once its header is whole and sane; 0: not yet. */
static size_t
link_frame_len(const struct link *link, size_t at, const char **wrong)
{
	struct frame_header h;

	if (link->in_len - at < FRAME_HEADER_SIZE)
		return 0;
	frame_header_read(link->in + at, &h);
	if (h.body_len > FRAME_MAX - FRAME_HEADER_SIZE)
		*wrong = "frame too long";
	else if (!msg_permitted(h.type, link->peer, link->self))
		*wrong = "not its to send";
	else if (h.fd_count > FRAME_FDS_MAX)
		*wrong = "too many descriptors";
	if (*wrong != NULL ||
	    link->in_len - at < FRAME_HEADER_SIZE + h.body_len)
		return 0;
	return FRAME_HEADER_SIZE + h.body_len;
}

static struct msg *
link_decode(struct link *link, size_t at, size_t len, struct error *e)
{
	struct frame_header h;
	struct msg *m;

	frame_header_read(link->in + at, &h);
	if (h.fd_count > link->fd_count) {
		(void)error_set(
		    e, "%s: misses its descriptor", msg_name(h.type));
		return NULL;
	}
	m = frame_decode(link->in + at, len, link->fds, h.fd_count, e);
	link->fd_count -= h.fd_count;
	memmove(link->fds, link->fds + h.fd_count,
	    link->fd_count * sizeof(link->fds[0]));
	return m;
}

/*
 * Of a dead peer, what was told and what reports a fact still counts: its last
 * log line says why it died, and a published line is published. A request it
 * did not live to see answered must not be begun, and its replies come again
 * from its successor (design 3.1).
 */
static bool
counts_after_death(const struct msg *m)
{
	enum msg_kind kind = msg_info(m->type)->kind;

	return kind == MSG_FACT || kind == MSG_NOTICE;
}

static void
link_deliver(struct link *link, struct msg *m)
{
	if (link->eof && !counts_after_death(m))
		msg_free(m);
	else
		link->ops->message(link, m, link->arg);
}

/* Hand out the whole frames read so far; stops when told to pause. */
static void
link_parse(struct link *link)
{
	const char *wrong = NULL;
	struct error e = {0, ""};
	struct msg *m;
	size_t at = 0, len;

	while (!link->is_over && !link->paused &&
	    (len = link_frame_len(link, at, &wrong)) != 0) {
		m = link_decode(link, at, len, &e);
		if (m == NULL)
			break;
		at += len;
		link_deliver(link, m);
	}
	if (link->is_over)
		return;
	if (wrong != NULL) {
		struct frame_header h;

		frame_header_read(link->in + at, &h);
		(void)error_set(&e, "%s: %s", msg_name(h.type), wrong);
	}
	memmove(link->in, link->in + at, link->in_len - at);
	link->in_len -= at;
	if (e.text[0] == '\0' && link->in_len == 0 && link->fd_count != 0)
		(void)error_set(&e, "a surplus descriptor");
	if (e.text[0] != '\0')
		link_end(link, LINK_BROKEN, e.text);
}

/*
 * Read first, hand out then: whether the peer is dead decides what its last
 * frames still mean.
 */
static size_t
link_turn(struct link *link, bool read_more)
{
	const char *text = NULL;
	size_t total = 0;
	ssize_t n = 1;

	link->busy++;
	while (read_more && n > 0 && total < READ_TURN_MAX && !link->eof) {
		n = link_receive(link, &text);
		total += n > 0 ? (size_t)n : 0;
	}
	if (text != NULL)
		link_end(link, LINK_BROKEN, text);
	else
		link_parse(link);
	if (link->eof && !link->paused)
		link_end(link, LINK_EOF, "closed");
	if (!link->is_freed)
		link_reading(link);
	if (--link->busy == 0 && link->is_freed)
		link_destroy(link);
	return total;
}

void
link_catch_up(struct link *link)
{
	link->busy++;
	while (!link->is_over && link_turn(link, true) >= READ_TURN_MAX)
		continue;
	if (--link->busy == 0 && link->is_freed)
		link_destroy(link);
}

static void
link_on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	/* event_active() by link_resume() asks for the parse alone. */
	(void)link_turn(arg, (what & EV_READ) != 0);
}

void
link_pause(struct link *link)
{
	link->paused = true;
	if (!link->is_over)
		link_reading(link);
}

void
link_resume(struct link *link)
{
	if (!link->paused)
		return;
	link->paused = false;
	if (link->is_over)
		return;
	link_reading(link);
	if (link->in_len != 0 || link->eof)
		event_active(link->readable, EV_TIMEOUT, 0);
}

/* ---- start-up --------------------------------------------------------- */

/* For link_read_one(): the bytes of exactly one frame, no more. */
static int
read_exact(struct link *tmp, size_t want, int64_t until, struct error *e)
{
	struct pollfd pfd = {.fd = tmp->fd, .events = POLLIN};
	int64_t left;
	ssize_t n;

	while (tmp->in_len < want) {
		left = until - clock_monotonic_ms();
		if (left <= 0 || poll(&pfd, 1, (int)left) == 0)
			return error_set(e, "no message in time");
		n = link_read(tmp, want - tmp->in_len);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n == -1 && errno == EBADMSG)
			return error_set(e, "a descriptor was lost");
		if (n == -1)
			return error_errno(e, "recvmsg");
		if (n == 0)
			return error_set(e, "closed before its first message");
	}
	return 0;
}

struct msg *
link_read_one(int fd, enum role_id self, enum role_id peer, int timeout_ms,
    struct error *e)
{
	unsigned char bytes[FRAME_MAX];
	struct link tmp = {.fd = fd, .self = self, .peer = peer, .in = bytes};
	int64_t until = clock_monotonic_ms() + timeout_ms;
	struct frame_header h;
	struct msg *m = NULL;

	if (read_exact(&tmp, FRAME_HEADER_SIZE, until, e) == -1)
		goto out;
	frame_header_read(bytes, &h);
	if (h.body_len > FRAME_MAX - FRAME_HEADER_SIZE ||
	    !msg_permitted(h.type, peer, self)) {
		(void)error_set(e, "%s: not its to send", msg_name(h.type));
		goto out;
	}
	if (read_exact(&tmp, FRAME_HEADER_SIZE + h.body_len, until, e) == -1)
		goto out;
	m = link_decode(&tmp, 0, tmp.in_len, e);
out:
	while (tmp.fd_count > 0)
		(void)close(tmp.fds[--tmp.fd_count]);
	return m;
}
