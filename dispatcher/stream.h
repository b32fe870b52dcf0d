/*
 * The worker's pipes: lines that it says, bytes that it is told, the tail of
 * what it complains. None of them ever blocks the dispatcher, and the worker
 * is never blocked by what it says too much.
 */
#ifndef DISPATCHER_STREAM_H
#define DISPATCHER_STREAM_H

#include <stddef.h>

#include <event2/event.h>

#define STREAM_LINE_MOST ((size_t)64 * 1024 * 1024)
#define STREAM_TAIL_MOST ((size_t)8 * 1024)

struct stream_reader;

struct stream_reader_ops {
	/* One line without its newline; may free the reader. */
	void (*line)(const char *bytes, size_t len, void *arg);
	/* The end of the lines, once; what stood after the last newline is
	 * thrown away. May free the reader. */
	void (*end)(void *arg);
};

/*
 * FD is taken over. A line longer than STREAM_LINE_MOST is the end of the
 * lines as well; what the pipe still carries is drained and thrown away.
 */
struct stream_reader *stream_reader_new(struct event_base *base, int fd,
    const struct stream_reader_ops *ops, void *arg);
void stream_reader_free(struct stream_reader *r);

/* Keeps the last STREAM_TAIL_MOST bytes of a pipe. */
struct stream_tail;
struct stream_tail *stream_tail_new(struct event_base *base, int fd);
void stream_tail_free(struct stream_tail *t);
/* What is kept; valid until the next turn of the loop. */
const char *stream_tail_text(struct stream_tail *t, size_t *len);

/* Writes what it is given when the pipe takes it. */
struct stream_writer;
struct stream_writer *stream_writer_new(struct event_base *base, int fd);
void stream_writer_free(struct stream_writer *w); /* closes the pipe */
void stream_write(struct stream_writer *w, const char *bytes, size_t len);

#endif
