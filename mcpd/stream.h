/*
 * A worker's connection: lines in, lines out, and what the wire remembers of
 * it, which is the negotiated legacy revision and nothing else (mcp.md 3.6).
 * One writer; the output is bounded, and a reader of it who does not read
 * stops ours, be it between two lines of one read (mcp.md 7).
 */
#ifndef MCPD_STREAM_H
#define MCPD_STREAM_H

#include "mcpd/lines.h"
#include "mcpd/revision.h"
#include "mcpd/server.h"

struct stream {
	struct server *server;
	int in_fd, out_fd; /* of a socket the same */
	struct event *readable, *writable;
	struct event *stuck; /* the output has not moved for too long */
	struct lines in;
	struct buffer out;
	size_t written;                  /* of OUT */
	const struct revision *revision; /* NULL: none negotiated */
	bool is_deaf;      /* output is dropped: nobody reads it */
	bool is_held;      /* IN may have lines: too much is owed */
	size_t call_count; /* in flight */
};

/*
 * Both are taken over, and IN is read from the next turn of the loop on. Of a
 * socket they are the same. Their modes stay as they are: standard input and
 * output may be shared.
 */
struct stream *stream_new(struct server *s, int in_fd, int out_fd);
/* Calls of this stream must be gone. */
void stream_free(struct stream *stream);
/* From now on without an answer: carry out what was read already. */
void stream_end(struct stream *stream);
/* The same, and what can be read now. */
void stream_drain(struct stream *stream);
/* Write what is queued, waiting for its reader until BOUND_MS are over. */
void stream_finish(struct stream *stream, int64_t bound_ms);
/* Bytes as if they had been read; for stream.c and tests. */
void stream_feed(struct stream *stream, const char *bytes, size_t len);

/* Write a line, given without its LF; at once, as far as it goes. */
void stream_send(struct stream *stream, const char *bytes, size_t len);

#endif
