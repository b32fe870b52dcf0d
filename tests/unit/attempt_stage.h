/*
 * A dispatcher's attempt in a test's process: the far ends of its links are
 * played here, the worker's pipes are real. Steps of its story are functions;
 * each waits for what the attempt is to ask, or fails.
 */
#ifndef TESTS_ATTEMPT_STAGE_H
#define TESTS_ATTEMPT_STAGE_H

#include "dispatcher/attempt.h"

#define SESSION "11111111-2222-4333-8444-555555555555"
#define INIT                                                                  \
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" SESSION \
	"\",\"permissionMode\":\"acceptEdits\",\"mcp_servers\":"              \
	"[{\"name\":\"basecamp\",\"status\":\"connected\"}]}"
#define BAD_INIT "{\"type\":\"system\",\"subtype\":\"init\"}"
#define GOOD "{\"type\":\"result\",\"subtype\":\"success\"}"
#define BAD "{\"type\":\"result\",\"subtype\":\"error_during_execution\"}"

struct stage {
	struct event_base *base;
	struct dispatcher d;
	struct peer *ledger, *supervisor; /* as the dispatcher sees them */
	struct peer *outbox, *at_outbox;
	struct peer *at_ledger, *at_supervisor; /* the dispatcher, seen so */
	struct msg *asked; /* the newest request, not yet answered */
	struct reply_to to;
	int input, output, errors; /* the worker's own ends */
	char end[64];              /* how END settled it */
	/* REFUSAL: how often it was asked, and what it said last. */
	int refusal_asks;
	int64_t refusals_noted;
	bool refuses_to_note;
	int drops;         /* DROP_DECLARATION */
	int64_t in_hand;   /* a record, as the supervisor is told; 0: none */
	int joins;         /* JOIN, which is answered at once: */
	int64_t unexposed; /* with this; -1: as other requests */
	int64_t still_running;
	int64_t unknown;   /* of ENDED */
	int attempts_gone; /* as the dispatcher was told */
};

/* A stage on which event 101 is about to be launched. */
struct stage *stage_new(void);
/* All of it; no attempt may be left. */
void stage_free(struct stage *s);
void stage_close(int *fd);
/* Turn until the request TYPE is there, or fail after 5 s. */
void stage_expect(struct stage *s, enum msg_type type);
/* All that is ready to happen, happens. */
void stage_turn(struct stage *s);
/* What was asked is answered: by M, with FAILED, with DONE. */
void stage_answer(struct stage *s, struct msg *m);
void stage_refuse(struct stage *s, const char *reason);
void stage_done(struct stage *s);

void stage_launched(struct stage *s);
void stage_mcpd_up(struct stage *s);
void stage_rekeyed(struct stage *s);
void stage_worker_up(struct stage *s);
/* RUNNING, before which nothing is said to the worker; then the prompt. */
void stage_marked(struct stage *s);
/* All of the above but the re-key. */
void stage_running(struct stage *s);
/* What was written to the worker since; in one static buffer. */
const char *stage_told(struct stage *s);
void stage_says(struct stage *s, const char *line);
/* More than a pipe holds. */
void stage_floods(struct stage *s, const char *bytes, size_t len);
void stage_exits(struct stage *s, bool signaled, int code);
void stage_mcpd_dies(struct stage *s);
void stage_tree_is(struct stage *s, const char *fate);
/*
 * It ends like this, FLAGS being those set (" spawn_failed"). Frees S, unless
 * events stay unknown: then their replies are looked for.
 */
void stage_ends(struct stage *s, const char *stop, const char *flags);

#endif
