#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "dispatcher/stream.h"

#define READ_CHUNK 65536

/* ---- lines ------------------------------------------------------------ */

struct stream_reader {
	int fd;
	struct event *readable;
	const struct stream_reader_ops *ops;
	void *arg;
	struct buffer line; /* begun, not ended */
	bool has_ended;     /* said; what still comes is thrown away */
	bool *freed;        /* set when a callback frees the reader */
};

static struct event *
pipe_event(struct event_base *base, int fd, short what,
    event_callback_fn callback, void *arg)
{
	struct event *ev;

	(void)evutil_make_socket_nonblocking(fd);
	(void)evutil_make_socket_closeonexec(fd);
	ev = event_new(base, fd, what, callback, arg);
	if (ev == NULL)
		fatalx("worker's pipe: no event");
	return ev;
}

/* The pipe's end, or a line too long. */
static void
reader_end(struct stream_reader *r)
{
	buffer_free(&r->line);
	if (r->has_ended)
		return;
	r->has_ended = true;
	r->ops->end(r->arg);
}

/* Split what came into lines; stops when a callback freed the reader. */
static void
reader_take(
    struct stream_reader *r, const char *bytes, size_t len, const bool *freed)
{
	const char *newline;
	struct buffer line;
	size_t n;

	while (!r->has_ended && len > 0) {
		newline = memchr(bytes, '\n', len);
		n = newline == NULL ? len : (size_t)(newline - bytes);
		if (r->line.len + n > STREAM_LINE_MOST) {
			reader_end(r);
			return;
		}
		buffer_add(&r->line, bytes, n);
		if (newline == NULL)
			return;
		bytes += n + 1;
		len -= n + 1;
		line = r->line;
		r->line = (struct buffer){0};
		r->ops->line(line.bytes, line.len, r->arg);
		buffer_free(&line);
		if (*freed)
			return;
	}
}

static void
reader_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream_reader *r = arg;
	char bytes[READ_CHUNK];
	bool freed = false;
	ssize_t n;

	(void)what;
	n = read(fd, bytes, sizeof(bytes));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	r->freed = &freed;
	if (n > 0) {
		reader_take(r, bytes, (size_t)n, &freed);
	} else {
		(void)event_del(r->readable);
		reader_end(r);
	}
	if (!freed)
		r->freed = NULL;
}

struct stream_reader *
stream_reader_new(struct event_base *base, int fd,
    const struct stream_reader_ops *ops, void *arg)
{
	struct stream_reader *r = xcalloc(1, sizeof(*r));

	r->fd = fd;
	r->ops = ops;
	r->arg = arg;
	r->readable =
	    pipe_event(base, fd, EV_READ | EV_PERSIST, reader_on_readable, r);
	(void)event_add(r->readable, NULL);
	return r;
}

void
stream_reader_free(struct stream_reader *r)
{
	if (r == NULL)
		return;
	if (r->freed != NULL)
		*r->freed = true;
	event_free(r->readable);
	(void)close(r->fd);
	buffer_free(&r->line);
	free(r);
}

/* ---- the tail --------------------------------------------------------- */

struct stream_tail {
	int fd;
	struct event *readable;
	char kept[2 * STREAM_TAIL_MOST];
	size_t len;
};

static void
tail_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream_tail *t = arg;
	ssize_t n;

	(void)what;
	if (t->len > STREAM_TAIL_MOST) {
		memmove(t->kept, t->kept + t->len - STREAM_TAIL_MOST,
		    STREAM_TAIL_MOST);
		t->len = STREAM_TAIL_MOST;
	}
	n = read(fd, t->kept + t->len, sizeof(t->kept) - t->len);
	if (n > 0)
		t->len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		(void)event_del(t->readable);
}

struct stream_tail *
stream_tail_new(struct event_base *base, int fd)
{
	struct stream_tail *t = xcalloc(1, sizeof(*t));

	t->fd = fd;
	t->readable =
	    pipe_event(base, fd, EV_READ | EV_PERSIST, tail_on_readable, t);
	(void)event_add(t->readable, NULL);
	return t;
}

void
stream_tail_free(struct stream_tail *t)
{
	if (t == NULL)
		return;
	event_free(t->readable);
	(void)close(t->fd);
	free(t);
}

const char *
stream_tail_text(struct stream_tail *t, size_t *len)
{
	size_t most = STREAM_TAIL_MOST;

	/* What stands in the pipe already belongs to the tail. */
	tail_on_readable(t->fd, EV_READ, t);
	*len = t->len < most ? t->len : most;
	return t->kept + t->len - *len;
}

/* ---- writing ---------------------------------------------------------- */

struct stream_writer {
	int fd;
	struct event *writable;
	struct buffer queue;
	size_t done;
};

/* A closed pipe is found by the reader: here its bytes are thrown away. */
static void
writer_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct stream_writer *w = arg;
	ssize_t n;

	(void)what;
	n = write(fd, w->queue.bytes + w->done, w->queue.len - w->done);
	if (n > 0)
		w->done += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		w->done = w->queue.len;
	if (w->done < w->queue.len) {
		(void)event_add(w->writable, NULL);
		return;
	}
	buffer_free(&w->queue);
	w->done = 0;
}

struct stream_writer *
stream_writer_new(struct event_base *base, int fd)
{
	struct stream_writer *w = xcalloc(1, sizeof(*w));

	w->fd = fd;
	w->writable = pipe_event(base, fd, EV_WRITE, writer_on_writable, w);
	return w;
}

void
stream_writer_free(struct stream_writer *w)
{
	if (w == NULL)
		return;
	event_free(w->writable);
	(void)close(w->fd);
	buffer_free(&w->queue);
	free(w);
}

void
stream_write(struct stream_writer *w, const char *bytes, size_t len)
{
	buffer_add(&w->queue, bytes, len);
	(void)event_add(w->writable, NULL);
}
