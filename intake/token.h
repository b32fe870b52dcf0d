/*
 * The access token, as the outbox mints and renews it (feed.md 6.5). Intake
 * keeps it in memory only and asks again when it is due or was refused.
 */
#ifndef INTAKE_TOKEN_H
#define INTAKE_TOKEN_H

#include <sys/queue.h>

#include "common/role.h"

struct token;

/* VALUE is NULL when there is none; then REASON is FAILED's, and WAIT_MS. */
struct token_answer {
	const char *value;
	int64_t serial;
	const char *reason;
	int64_t wait_ms;
};

/* Somebody who waits for it; zeroed by its owner, who keeps it. */
struct token_wait {
	LIST_ENTRY(token_wait) entry;
	bool is_waiting;
	void (*ready)(const struct token_answer *answer, void *arg);
	void *arg;
};

struct token *token_new(struct role *role);
/*
 * Call W->ready once there is an answer: at once when the token is in hand,
 * else from the loop.
 */
void token_ask(struct token *t, struct token_wait *w);
/* Stop waiting; nothing happens if W does not wait. */
void token_unask(struct token *t, struct token_wait *w);
/* Basecamp refused the token of that serial: the next one asked must differ. */
void token_refused(struct token *t, int64_t serial);

#endif
