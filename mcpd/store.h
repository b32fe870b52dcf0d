/*
 * What the bridge keeps so that the death of mcpd stays unseen (design 6.1):
 * the exchange that opened the session, and every request without an answer.
 * It keeps a request if mcpd will answer it under its id (mcpd/outline.h), and
 * no other: what is kept is waited for. Needs libc only.
 */
#ifndef MCPD_STORE_H
#define MCPD_STORE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/json.h"

/* Lines of unanswered requests, together. */
#define STORE_BYTES_MAX (16 * 1024 * 1024)
/* At so many unanswered lines the agent is not read any more. */
#define STORE_UNITS_MAX 1024

struct unit;
TAILQ_HEAD(unit_list, unit);

struct store {
	struct unit_list units; /* in the order they came */
	size_t unit_count;
	size_t bytes;
	bool has_batches;     /* the session's revision has them */
	bool is_opening_lost; /* it did not fit */
	/* The opening: initialize once answered, initialized once sent. */
	char *initialize, *initialized;
	unsigned long replays;
	char own_id[32]; /* of the initialize replayed last; "" once answered */
};

void store_init(struct store *s);
void store_clear(struct store *s);

/* A line of the agent's, without LF, on its way to mcpd. */
void store_sent(struct store *s, const struct json_span *line);
/* A line of mcpd's: false when the agent must not see it. */
bool store_received(struct store *s, const struct json_span *line);
/* What a new mcpd must hear, lines with LF, the opening first. */
void store_replay(struct store *s, struct buffer *out);
/* An error for every unanswered request, lines with LF. */
void store_give_up(struct store *s, struct buffer *out);
bool store_is_empty(const struct store *s);
/* Everything that a new mcpd must hear was kept. */
bool store_is_whole(const struct store *s);

#endif
