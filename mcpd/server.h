/*
 * One task's MCP server: who it asks, what it serves, and the one stream that
 * it serves at a time. A stream may end and another take its place while
 * calls are under way; what was asked of ledger and intake stands, and its
 * answer is nobody's then.
 */
#ifndef MCPD_SERVER_H
#define MCPD_SERVER_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/buffer.h"
#include "common/peer.h"

#define TOKEN_LEN 43

struct call;
struct stream;

/* Domains, as bits (--domains). */
#define DOMAIN_CONNECT 0x1u
#define DOMAIN_THREAD 0x2u
#define DOMAINS_ALL (DOMAIN_CONNECT | DOMAIN_THREAD)

/* Can calls be put to the ledger and intake? */
enum server_reach {
	SERVER_LINKED,   /* yes; a task's own mcpd: always */
	SERVER_REACHING, /* it is tried: calls wait */
	SERVER_AWAY      /* no: the next call tries it */
};

struct server {
	struct event_base *base;
	struct peer *ledger, *intake;
	enum server_reach reach;
	/* A call came while it is away: server_linked() or server_away(). */
	void (*try_again)(struct server *s);
	/* The stream has ended, and is about to be closed; or NULL. */
	void (*stream_ends)(struct server *s, struct stream *stream);
	char token[TOKEN_LEN + 1];
	int64_t agent_id; /* of BOUND; 0 before */
	int64_t call_deadline_ms, post_wait_ms;
	unsigned int domains;
	struct buffer tools;   /* tools/list's array, rendered once */
	struct stream *stream; /* the present one, or NULL */
	TAILQ_HEAD(call_list, call) calls;
	size_t call_count;
	size_t read_count; /* that intake has */
	/* Told when there is neither stream nor call; or NULL. */
	void (*idle)(void *arg);
	void *idle_arg;
};

/* The caller sets the peers and the token, and owns the peers. */
void server_init(
    struct server *s, struct event_base *base, unsigned int domains);
/* The peers may answer nothing afterwards. */
void server_clear(struct server *s);

/*
 * Serve a stream, whose descriptors (of a socket the same) are taken over.
 * What the one before it still holds is read and carried out first; its
 * answers are dropped.
 */
void server_connect(struct server *s, int in_fd, int out_fd);
/* The stream is over: its calls are finished silently. */
void server_disconnect(struct server *s, struct stream *stream);

/* An intent of the task settled; 0: any may have (a new link). */
void server_post_settled(struct server *s, int64_t intent_id);

/* The peers are there, and know which task this is: ask what waits. */
void server_linked(struct server *s);
/*
 * They are not: every call that waits for one of them is answered so, and its
 * request forgotten. The peers may be freed then.
 */
void server_away(struct server *s);

/* Call idle() once there is nothing left to do; perhaps at once. */
void server_when_idle(struct server *s, void (*idle)(void *arg), void *arg);
/* For streams and calls: something ended. */
void server_check_idle(struct server *s);

#endif
