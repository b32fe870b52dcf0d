/*
 * A role as another role sees it, across its lives: the present link to it,
 * the requests it has not answered, and the handlers for what it sends.
 *
 * A request is kept until it is answered and is sent again, in order, over
 * the next link; FAILED `unavailable` sends it again after a pause (50 ms,
 * doubling to 1 s). At most PEER_WINDOW are outstanding; more wait here, so a
 * producer asks peer_room() first. A reply goes only to the link that brought
 * the request; when that link is gone it is dropped, for the peer will repeat
 * the request (design 3.1).
 *
 * When a peer died of itself, one of the requests that it had not answered may
 * be what it died of: they are sent again one at a time, and the death is
 * counted against the records that they were to move (design 3.1, poison).
 */
#ifndef COMMON_PEER_H
#define COMMON_PEER_H

#include <event2/event.h>

#include "common/link.h"

#define PEER_WINDOW 64
#define DEATH_ID_LEN 32

struct peer;

/* Handles one message; frees it or keeps it. */
typedef void (*peer_handler)(struct peer *peer, struct msg *m, void *arg);

/*
 * The answer to a request: REPLY is the request's reply or FAILED, and stays
 * the caller's of this function, which frees it: copy what you keep, and set
 * FD fields that you take to -1.
 */
typedef void (*peer_answer)(struct peer *peer, struct msg *reply, void *arg);

struct peer_ops {
	/*
	 * By type; NULL for what this role does not handle: receiving it is
	 * then an error of the sender.
	 */
	const peer_handler *handlers; /* [MSG_COUNT] */
	/* Nothing was unanswered, and now a request is. */
	void (*waits)(struct peer *peer, void *arg);
	/* A new link is in use: ask again what notices would have told. */
	void (*linked)(struct peer *peer, void *arg);
	/*
	 * The link ended; a next one may come. Nobody frees the peer here or
	 * in broken: a later turn may.
	 */
	void (*unlinked)(struct peer *peer, void *arg);
	/*
	 * The peer broke the protocol; the link is closed already, and
	 * unlinked follows. Roles tell the supervisor (role_accuse()).
	 */
	void (*broken)(struct peer *peer, const char *text, void *arg);
};

/* Where a reply goes; copied freely, valid as long as its peer. */
struct reply_to {
	struct peer *peer;
	uint64_t link; /* serial of the link that brought the request */
	uint64_t request;
	enum msg_type type; /* of the request */
};

/* ATTEMPT is copied; "" except for an mcpd. OPS and ARG outlive the peer. */
struct peer *peer_new(struct event_base *base, enum role_id self,
    enum role_id role, const char *attempt, const struct peer_ops *ops,
    void *arg);
/* Closes the link; unanswered requests are dropped without an answer. */
void peer_free(struct peer *peer);

/*
 * The next link to it; FD is taken over. While the present link still has
 * something to read the new one waits for its end. On a link between two
 * children HELLO is sent and checked here, and PING is answered here.
 */
void peer_attach(struct peer *peer, int fd, int64_t generation);
/*
 * Before the next peer_attach(): the death, by its id, of whoever is or was
 * behind the present link; "" for one that was not its own fault.
 */
void peer_mourn(struct peer *peer, const char *death);
/* link_catch_up(), of a next link too when the present one ends so. */
void peer_catch_up(struct peer *peer);
bool peer_is_linked(const struct peer *peer);
enum role_id peer_role(const struct peer *peer);
const char *peer_attempt(const struct peer *peer);
int64_t peer_generation(const struct peer *peer);
/*
 * The number of a guest, an mcpd that the supervisor did not start; 0 for
 * everybody else, and before it is set.
 */
int64_t peer_guest(const struct peer *peer);
void peer_set_guest(struct peer *peer, int64_t guest);
/* A guest came without an attempt and has proved which one it serves. */
void peer_bind(struct peer *peer, const char *attempt);
struct link *peer_link(struct peer *peer); /* NULL while there is none */

/*
 * Ask. M's fields are encoded now (the caller's memory is free afterwards),
 * its FD fields taken over. ANSWER is called exactly once, unless the peer is
 * freed or the request cancelled before. Returns the request's id.
 */
uint64_t peer_request(
    struct peer *peer, struct msg *m, peer_answer answer, void *arg);
/* The answer is not wanted any more; the request itself stands. */
void peer_forget(struct peer *peer, uint64_t request);
/* How many more requests go out at once. */
size_t peer_room(const struct peer *peer);
/* Unanswered requests, waiting ones included. */
size_t peer_unanswered(const struct peer *peer);

/* Tell; dropped without a link. FD fields are taken over. */
void peer_notice(struct peer *peer, struct msg *m);
/* Tell, unless more than BOUND bytes are queued: then false. */
bool peer_notice_droppable(struct peer *peer, struct msg *m, size_t bound);

/* Of a message that asks; for use after the message is freed. */
struct reply_to peer_reply_to(struct peer *peer, const struct msg *request);
/* Answer; the type must be the request's reply, or FAILED. FDs are taken. */
void peer_reply(const struct reply_to *to, struct msg *m);
/* FAILED with a reason of protocol.def and a printf text. */
void peer_fail(const struct reply_to *to, const char *reason, int64_t wait_ms,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* DONE. */
void peer_done(const struct reply_to *to, bool changed);

#endif
