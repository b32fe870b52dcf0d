/*
 * An mcpd in the test's own process: its server with a stream to a worker
 * (us) and links to a ledger and an intake (us too), turned by hand.
 */
#ifndef TESTS_MCP_WORLD_H
#define TESTS_MCP_WORLD_H

#include <jansson.h>

#include "common/buffer.h"
#include "common/peer.h"
#include "mcpd/lines.h"
#include "mcpd/server.h"

#define WORLD_ASKED_MAX 512

struct world;

/* How this ledger (and intake) answers; NULL: not at all. */
typedef void (*world_answer)(
    struct world *w, const struct reply_to *to, const struct msg *m);

struct world {
	struct event_base *base;
	struct server server;
	struct peer *ledger, *intake; /* their ends */
	int worker;                   /* the worker's end of the stream */
	struct lines heard;
	world_answer answer;
	/* What ledger and intake were asked, in order; freed by the world. */
	struct msg *asked[WORLD_ASKED_MAX];
	struct reply_to to[WORLD_ASKED_MAX];
	size_t asked_count;
	int64_t generation;
	bool is_taken_over; /* its token is another's by now */
};

struct world *world_new(void);
void world_free(struct world *w);
/* Let everything that can happen happen. */
void world_turn(struct world *w);
/* A new connection of the worker in place of the present one. */
void world_connect(struct world *w);
/* New links; what the old ones held is lost or repeated as it must. */
void world_relink(struct world *w);
void world_unlink(struct world *w);

/* The worker writes a line (its LF is added), or bytes as they are. */
void world_say(struct world *w, const char *line);
void world_write(struct world *w, const char *bytes, size_t len);
/*
 * The next line that the worker has been sent, NULL when there is none; good
 * until the next call.
 */
const char *world_hear(struct world *w);
/* The next line is this one; @TOOLS@ and @INSTRUCTIONS@ are filled in. */
void world_expect(struct world *w, const char *line);
void world_expect_silence(struct world *w);

/* A legacy session of that revision, opened. */
void world_initialize(struct world *w, const char *version);
/* tools/call with these arguments, as JSON; the answer's text, or NULL. */
const char *world_call(
    struct world *w, const char *tool, const char *arguments, bool *is_error);

/* A ledger with one event, 101, whose reports always stand. */
void world_answer_all(
    struct world *w, const struct reply_to *to, const struct msg *m);
/* Answer request number I that way now. */
void world_answer_one(struct world *w, size_t i);

/* A world with a session opened. */
struct world *world_open(void);
/* The request that a call brought, or NULL and the refusal's text. */
const struct msg *world_ask(struct world *w, const char *tool,
    const char *arguments, const char **refusal);
/* Answer the last request. */
void world_reply(struct world *w, struct msg *m);
/* What the tool's answer says, which comes now. */
json_t *world_answer_json(struct world *w, bool *is_error);
/* A member's text; "" if it has none. */
const char *member_text(const json_t *json, const char *name);

#endif
