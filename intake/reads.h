/*
 * A read of Basecamp that a decision needs: tried again with patience, and
 * never before Basecamp said so (admission.md 1.8). What one attempt does is
 * the caller's; here is when the next one comes, and when it is enough.
 */
#ifndef INTAKE_READS_H
#define INTAKE_READS_H

#include "common/config.h"
#include "common/json.h"
#include "intake/api.h"

enum read_outcome {
	READ_OK,
	READ_AGAIN,        /* of an attempt only: it may go better */
	READ_FAILED,       /* refused, or failed too often */
	READ_THROTTLED,    /* not before the budget's retry_at */
	READ_UNRESOLVED,   /* a chat line under no chat that we see */
	READ_OTHER_BUCKET, /* the recording is not where the event was */
	READ_UNROUTABLE,   /* no read for this type */
	READ_UNVERIFIED,   /* membership cannot be told now */
	READ_OUTCOMES
};

/* Of one decision, over all its reads. */
struct read_budget {
	int64_t left_ms;     /* to be waited because of a 429 */
	int64_t retry_at_ns; /* wall clock; 0: never throttled */
};

struct reader {
	const int64_t *limits; /* outlives the reader */
	struct read_budget *budget;
	/* Start an attempt; its end is told by reader_ended(). */
	void (*attempt)(void *arg);
	/* Any outcome but READ_AGAIN. */
	void (*done)(enum read_outcome outcome, void *arg);
	void *arg;

	int attempts;
	struct event *timer;
};

/* R's members down to ARG are set; begins at the loop's next turn. */
void reader_begin(struct reader *r, struct event_base *base);
/*
 * The attempt under way is over. RETRY_AFTER in seconds, 0: not said. Calls
 * done() at once, or starts another attempt later.
 */
void reader_ended(
    struct reader *r, enum read_outcome outcome, int64_t retry_after);
/* The attempt under way is the caller's to stop. */
void reader_stop(struct reader *r);

/*
 * What an answer to a GET is to an attempt: READ_OK with *TREE, the body as
 * JSON; else READ_AGAIN or READ_FAILED, and *RETRY_AFTER.
 */
enum read_outcome read_classify(
    const struct api_answer *answer, json_t **tree, int64_t *retry_after);
/* Is it Basecamp's answer that there is no such thing? */
bool read_is_missing(const struct api_answer *answer);

#endif
