/*
 * What was asked of one peer, from the first sending to the answer: the part
 * of common/peer that knows of requests, and not of the peer's links.
 */
#ifndef COMMON_REQUESTS_H
#define COMMON_REQUESTS_H

#include <sys/queue.h>

#include "common/peer.h"

struct pending;
TAILQ_HEAD(pending_list, pending);

struct requests {
	enum role_id self, role; /* who asks whom */
	struct pending_list sent, waiting;
	size_t sent_count, waiting_count;
	size_t suspects; /* of both lists */
	uint64_t next_id;
};

void requests_init(struct requests *r, enum role_id self, enum role_id role);
/* All of them, without an answer. */
void requests_drop(struct requests *r);

/* To be sent after all others; for M and its id see peer_request(). */
uint64_t requests_add(
    struct requests *r, struct msg *m, peer_answer answer, void *arg);
void requests_forget(struct requests *r, uint64_t id);
size_t requests_count(const struct requests *r);

/*
 * Send what the window and the pauses allow. In how many milliseconds the next
 * pause ends; -1: none is waited for.
 */
int64_t requests_send(struct requests *r, struct link *link);
/*
 * What the last link left unanswered waits again, before all that has not been
 * sent, in order. After the DEATH of that name, unless it is "", what was in
 * hand goes alone, and is counted first.
 */
void requests_repeat(struct requests *r, const char *death);
/*
 * REPLY ends its request, or has it asked again after a pause. ANSWER is who
 * waits for it, or NULL. -1: nothing that is out has that answer.
 */
int requests_answered(struct requests *r, const struct msg *reply,
    peer_answer *answer, void **arg);

#endif
