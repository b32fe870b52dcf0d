#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/lines.h"

struct writer {
	int fd;
	void (*tell_lost)(struct evbuffer *queue, uint64_t n);
	bool is_socket;
	bool is_over; /* nobody reads any more */
	uint64_t lost;
	struct evbuffer *queue;
	struct event *writable; /* NULL: poll knows nothing of this file */
};

static void
lines_lost(struct evbuffer *queue, uint64_t n)
{
	(void)evbuffer_add_printf(
	    queue, "{\"type\":\"lost\",\"n\":%" PRIu64 "}\n", n);
}

static void
log_lost(struct evbuffer *queue, uint64_t n)
{
	(void)evbuffer_add_printf(queue,
	    "connectd: warn: %" PRIu64 " lines of the log are lost\n", n);
}

static struct writer out = {.fd = STDOUT_FILENO, .tell_lost = lines_lost};
static struct writer err = {.fd = STDERR_FILENO, .tell_lost = log_lost};

static const char *const level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "fatal",
};

/* One piece; false when no more can leave now. */
static bool
writer_step(struct writer *w)
{
	size_t len = evbuffer_get_length(w->queue);
	unsigned char *bytes;
	ssize_t n;

	if (len > PIPE_BUF)
		len = PIPE_BUF;
	if (len == 0)
		return false;
	bytes = evbuffer_pullup(w->queue, (ev_ssize_t)len);
	if (w->is_socket)
		n = send(w->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = write(w->fd, bytes, len);
	if (n == -1) {
		w->is_over = errno != EINTR && errno != EAGAIN;
		return errno == EINTR;
	}
	(void)evbuffer_drain(w->queue, (size_t)n);
	return true;
}

/* Say what was lost as soon as there is room again. */
static void
writer_tell_lost(struct writer *w)
{
	if (w->lost == 0 || evbuffer_get_length(w->queue) > LINES_QUEUE_MAX / 2)
		return;
	w->tell_lost(w->queue, w->lost);
	w->lost = 0;
}

/* Poll said that PIPE_BUF bytes fit: one piece, then poll again. */
static void
writer_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct writer *w = arg;

	(void)fd;
	(void)what;
	(void)writer_step(w);
	writer_tell_lost(w);
	if (!w->is_over && evbuffer_get_length(w->queue) > 0)
		(void)event_add(w->writable, NULL);
}

static void
writer_add(struct writer *w, const char *const pieces[], size_t count)
{
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len += strlen(pieces[i]);
	if (w->is_over || w->queue == NULL)
		return;
	writer_tell_lost(w);
	if (w->lost > 0 ||
	    evbuffer_get_length(w->queue) + len > LINES_QUEUE_MAX) {
		w->lost++;
		return;
	}
	for (i = 0; i < count; i++)
		(void)evbuffer_add(w->queue, pieces[i], strlen(pieces[i]));
	if (w->writable != NULL)
		(void)event_add(w->writable, NULL);
	else
		while (writer_step(w))
			;
}

/* A file, or a device like /dev/null, is always ready: epoll refuses it. */
static bool
is_pollable(int fd, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) ||
	    (S_ISCHR(st->st_mode) && isatty(fd));
}

static void
writer_init(struct writer *w, struct event_base *base)
{
	struct stat st;

	if (fstat(w->fd, &st) == -1)
		fatal("descriptor %d", w->fd);
	w->is_socket = S_ISSOCK(st.st_mode);
	w->queue = evbuffer_new();
	if (w->queue == NULL)
		fatalx("no buffer for descriptor %d", w->fd);
	if (!is_pollable(w->fd, &st))
		return;
	w->writable = event_new(base, w->fd, EV_WRITE, writer_on_writable, w);
	if (w->writable == NULL)
		fatalx("no event for descriptor %d", w->fd);
}

static void
lines_sink(enum log_level level, const char *line)
{
	if (level != LOG_LEVEL_ERROR) {
		lines_log(log_name(), level, line);
		return;
	}
	lines_end(); /* fatal(): the loop will not run again */
	(void)dprintf(STDERR_FILENO, "%s: %s: %s\n", log_name(),
	    level_names[level], line);
}

void
lines_init(struct event_base *base)
{
	writer_init(&out, base);
	writer_init(&err, base);
	log_set_sink(lines_sink);
}

void
lines_publish(const char *text)
{
	const char *const pieces[] = {text, "\n"};

	writer_add(&out, pieces, 2);
}

void
lines_log(const char *who, enum log_level level, const char *text)
{
	const char *const pieces[] = {
	    who, ": ", level_names[level], ": ", text, "\n"};

	writer_add(&err, pieces, 6);
}

/* Nothing waits for a reader here: what does not leave at once is lost. */
static void
writer_end(struct writer *w)
{
	struct pollfd pfd = {.fd = w->fd, .events = POLLOUT};

	if (w->queue == NULL)
		return;
	while (!w->is_over && poll(&pfd, 1, 0) == 1 &&
	    (pfd.revents & POLLOUT) != 0 && writer_step(w))
		;
	if (w->writable != NULL)
		event_free(w->writable);
	w->writable = NULL;
	evbuffer_free(w->queue);
	w->queue = NULL;
}

void
lines_end(void)
{
	log_set_sink(NULL);
	writer_end(&out);
	writer_end(&err);
}
