#include <sys/socket.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "mcpd/message.h"
#include "mcpd/stream.h"
#include "mcpd/wire.h"

#define READ_SIZE 65536
/* Above this we take no line; above that the reader is given up. */
#define QUEUE_HIGH (1024 * 1024)
#define QUEUE_MAX (4 * 1024 * 1024)
#define STUCK_S 30

enum receive { RECEIVED, RECEIVED_NOTHING, RECEIVED_END };

/*
 * Without waiting, whatever the descriptor and its mode: a socket is told so,
 * anything else is asked by poll first. A pipe that poll calls writable takes
 * PIPE_BUF bytes at once.
 */
static bool
is_ready(int fd, short events)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	if (poll(&pfd, 1, 0) > 0)
		return true;
	errno = EAGAIN;
	return false;
}

static ssize_t
read_now(int fd, void *room, size_t size)
{
	ssize_t n = recv(fd, room, size, MSG_DONTWAIT);

	if (n != -1 || errno != ENOTSOCK)
		return n;
	return is_ready(fd, POLLIN) ? read(fd, room, size) : -1;
}

static ssize_t
write_now(int fd, const void *bytes, size_t len)
{
	ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n != -1 || errno != ENOTSOCK)
		return n;
	if (!is_ready(fd, POLLOUT))
		return -1;
	return write(fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
}

static size_t
stream_queued(const struct stream *stream)
{
	return stream->out.len - stream->written;
}

/* ---- writing ---------------------------------------------------------- */

/* What was computed for a reader that is gone goes nowhere. */
static void
stream_deafen(struct stream *stream)
{
	stream->is_deaf = true;
	buffer_free(&stream->out);
	stream->written = 0;
	(void)event_del(stream->writable);
	(void)event_del(stream->stuck);
}

static bool
is_full(const struct stream *stream)
{
	return stream_queued(stream) > QUEUE_HIGH;
}

/* With the lines that were held back, which no poll() tells of. */
static void
stream_go_on(struct stream *stream)
{
	(void)event_add(stream->readable, NULL);
	if (stream->is_held)
		event_active(stream->readable, EV_READ, 0);
}

/* Reading follows how much we owe; the stuck timer, whether it moves. */
static void
stream_pace(struct stream *stream, bool has_moved)
{
	static const struct timeval stuck = {.tv_sec = STUCK_S};

	if (is_full(stream))
		(void)event_del(stream->readable);
	else
		stream_go_on(stream);
	if (stream_queued(stream) == 0) {
		(void)event_del(stream->writable);
		(void)event_del(stream->stuck);
		return;
	}
	(void)event_add(stream->writable, NULL);
	if (has_moved || !event_pending(stream->stuck, EV_TIMEOUT, NULL))
		(void)event_add(stream->stuck, &stuck);
}

/*
 * Its reader is gone. What the worker still wrote over a socket is read to its
 * end; beside a pipe that broke nothing is waited for (mcp.md 1.1).
 */
static void
stream_lost(struct stream *stream)
{
	stream_deafen(stream);
	if (stream->in_fd == stream->out_fd)
		stream_go_on(stream);
	else
		event_active(stream->stuck, EV_TIMEOUT, 0);
}

static void
stream_flush(struct stream *stream)
{
	bool has_moved = false;
	ssize_t n;

	while (stream_queued(stream) != 0) {
		n = write_now(stream->out_fd,
		    stream->out.bytes + stream->written, stream_queued(stream));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && (errno == EAGAIN || errno == ENOBUFS))
			break;
		if (n == -1) {
			stream_lost(stream);
			return;
		}
		stream->written += (size_t)n;
		has_moved = true;
	}
	if (stream_queued(stream) == 0) {
		buffer_free(&stream->out);
		stream->written = 0;
	}
	stream_pace(stream, has_moved);
}

/* A reader that is never quite done must not make it grow. */
static void
stream_forget_written(struct stream *stream)
{
	if (stream->written < stream_queued(stream))
		return;
	memmove(stream->out.bytes, stream->out.bytes + stream->written,
	    stream_queued(stream));
	stream->out.len -= stream->written;
	stream->written = 0;
}

/* Not in a later turn: a call is answered a wake-up sooner. */
void
stream_send(struct stream *stream, const char *bytes, size_t len)
{
	if (stream->is_deaf)
		return;
	if (stream_queued(stream) + len > QUEUE_MAX) {
		log_warnx("the worker does not read its answers");
		stream_deafen(stream);
		event_active(stream->stuck, EV_TIMEOUT, 0);
		return;
	}
	if (stream->written != 0)
		stream_forget_written(stream);
	buffer_add(&stream->out, bytes, len);
	buffer_add_char(&stream->out, '\n');
	stream_flush(stream);
}

static void
stream_on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	stream_flush(arg);
}

static void
stream_on_stuck(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	if (!stream->is_deaf)
		log_warnx("a worker's connection is stuck: closed");
	server_disconnect(stream->server, stream);
}

/* ---- reading ---------------------------------------------------------- */

/* One read holds more lines than there may be answers. */
static void
stream_take_lines(struct stream *stream)
{
	struct json_span line;
	enum lines_got got;

	while (!(stream->is_held = is_full(stream)) &&
	    (got = lines_next(&stream->in, &line)) != LINES_NONE) {
		if (got == LINES_WHOLE)
			wire_take(stream, &line);
		else
			wire_take_cut(stream, &line);
	}
}

void
stream_feed(struct stream *stream, const char *bytes, size_t len)
{
	memcpy(lines_room(&stream->in, len), bytes, len);
	lines_added(&stream->in, len);
	stream_take_lines(stream);
}

/* A reset is an end as well: Node's parents use sockets (mcp.md 1.1). */
static enum receive
stream_receive(struct stream *stream)
{
	ssize_t n;

	stream_take_lines(stream);
	if (stream->is_held)
		return RECEIVED_NOTHING;
	n = read_now(
	    stream->in_fd, lines_room(&stream->in, READ_SIZE), READ_SIZE);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return RECEIVED_NOTHING;
	if (n <= 0)
		return RECEIVED_END;
	lines_added(&stream->in, (size_t)n);
	stream_take_lines(stream);
	return RECEIVED;
}

static void
stream_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	if (stream_receive(stream) == RECEIVED_END)
		server_disconnect(stream->server, stream);
}

void
stream_end(struct stream *stream)
{
	stream_deafen(stream);
	stream_take_lines(stream);
}

void
stream_drain(struct stream *stream)
{
	stream_deafen(stream);
	while (stream_receive(stream) == RECEIVED)
		continue;
}

void
stream_finish(struct stream *stream, int64_t bound_ms)
{
	int64_t until = clock_monotonic_ms() + bound_ms, left;
	struct pollfd pfd = {.fd = stream->out_fd, .events = POLLOUT};

	while (stream_queued(stream) != 0) {
		left = until - clock_monotonic_ms();
		if (left <= 0 || poll(&pfd, 1, (int)left) == 0)
			break;
		stream_flush(stream);
	}
}

/* ---- life ------------------------------------------------------------- */

struct stream *
stream_new(struct server *s, int in_fd, int out_fd)
{
	struct stream *stream = xcalloc(1, sizeof(*stream));

	stream->server = s;
	stream->in_fd = in_fd;
	stream->out_fd = out_fd;
	lines_init(&stream->in, MESSAGE_LINE_MAX);
	(void)evutil_make_socket_closeonexec(in_fd);
	(void)evutil_make_socket_closeonexec(out_fd);
	stream->readable = event_new(
	    s->base, in_fd, EV_READ | EV_PERSIST, stream_on_readable, stream);
	stream->writable =
	    event_new(s->base, out_fd, EV_WRITE, stream_on_writable, stream);
	stream->stuck = event_new(s->base, -1, 0, stream_on_stuck, stream);
	if (stream->readable == NULL || stream->writable == NULL ||
	    stream->stuck == NULL || event_add(stream->readable, NULL) == -1)
		fatalx("a worker's connection: no event");
	return stream;
}

void
stream_free(struct stream *stream)
{
	event_free(stream->readable);
	event_free(stream->writable);
	event_free(stream->stuck);
	(void)close(stream->in_fd);
	if (stream->out_fd != stream->in_fd)
		(void)close(stream->out_fd);
	lines_free(&stream->in);
	buffer_free(&stream->out);
	free(stream);
}
