/*
 * One end of a stream socket between two processes: whole, permitted frames
 * in, frames out, descriptors with them (design 3). It knows nothing of
 * requests; that is common/peer.
 */
#ifndef COMMON_LINK_H
#define COMMON_LINK_H

#include <event2/event.h>

#include "common/frame.h"

struct link;

enum link_over {
	LINK_EOF,   /* the peer is gone */
	LINK_BROKEN /* it sent what it may not, or a descriptor was lost */
};

struct link_ops {
	/* A message that the peer may send; the callee frees it. */
	void (*message)(struct link *link, struct msg *m, void *arg);
	/*
	 * No more will come. TEXT names message and reason, without bytes of
	 * the peer. The link stays valid until link_free().
	 */
	void (*over)(
	    struct link *link, enum link_over why, const char *text, void *arg);
};

/*
 * FD is taken over, and made close-on-exec. SELF and PEER decide what may
 * come and go. OPS and ARG must outlive the link.
 */
struct link *link_new(struct event_base *base, int fd, enum role_id self,
    enum role_id peer, const struct link_ops *ops, void *arg);
/* Closes the socket and drops what was not sent. Safe inside a callback. */
void link_free(struct link *link);

/*
 * Queue M; its FD fields are taken over. The bytes leave at the end of this
 * turn of the loop. A message this role may not send, or outside its bounds,
 * is a bug: fatalx(). Silently nothing once the link is over.
 */
void link_send(struct link *link, struct msg *m);
/* The same for a frame already encoded; it is taken over. */
void link_send_frame(struct link *link, struct frame *f);
/* Write what is queued now, as far as the socket takes it. */
void link_flush(struct link *link);
/*
 * Read and hand out now what the peer has written by now: two links become
 * readable in no order, and what came on the one may have been first.
 */
void link_catch_up(struct link *link);
/* Bytes queued and not yet written. */
size_t link_queued(const struct link *link);
/*
 * Stop and go on reading. While more than 256 KiB are queued for the peer the
 * link does not read either, whatever was said here.
 */
void link_pause(struct link *link);
void link_resume(struct link *link);

enum role_id link_peer(const struct link *link);

/*
 * For start-up, before a loop runs: wait at most TIMEOUT_MS for one message on
 * the blocking or non-blocking socket FD and decode it. NULL with a text.
 */
struct msg *link_read_one(int fd, enum role_id self, enum role_id peer,
    int timeout_ms, struct error *e);

#endif
