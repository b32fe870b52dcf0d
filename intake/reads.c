#include "common/clock.h"
#include "intake/reads.h"
#include "intake/timer.h"

#define NS_PER_S INT64_C(1000000000)

static const struct json_rules read_rules = {
    .max_bytes = HTTP_BODY_MAX,
    .max_depth = 64,
    .max_members = 1000000,
};

static void
reader_due(evutil_socket_t fd, short what, void *arg)
{
	struct reader *r = arg;

	(void)fd;
	(void)what;
	r->attempts++;
	r->attempt(r->arg);
}

void
reader_begin(struct reader *r, struct event_base *base)
{
	r->attempts = 0;
	r->timer = timer_new(base, reader_due, r);
	timer_start(r->timer, 0);
}

void
reader_stop(struct reader *r)
{
	if (r->timer != NULL)
		event_free(r->timer);
	r->timer = NULL;
}

static void
reader_finish(struct reader *r, enum read_outcome outcome)
{
	reader_stop(r);
	r->done(outcome, r->arg);
}

/*
 * Basecamp said when to come back: how long to wait here, or -1 when that is
 * too long, or was the last attempt.
 */
static int64_t
throttle_wait(struct reader *r, int64_t retry_after, bool is_last)
{
	int64_t asked = retry_after * 1000;
	int64_t at = clock_wall_ns() + retry_after * NS_PER_S;

	if (at > r->budget->retry_at_ns)
		r->budget->retry_at_ns = at;
	if (is_last || asked > r->budget->left_ms)
		return -1;
	r->budget->left_ms -= asked;
	return asked;
}

void
reader_ended(struct reader *r, enum read_outcome outcome, int64_t retry_after)
{
	bool is_last = r->attempts >= r->limits[LIMIT_read_attempts];
	int64_t wait, asked = 0;

	if (outcome != READ_AGAIN) {
		reader_finish(r, outcome);
		return;
	}
	if (retry_after > 0) {
		asked = throttle_wait(r, retry_after, is_last);
		if (asked == -1) {
			reader_finish(r, READ_THROTTLED);
			return;
		}
	}
	if (is_last) {
		reader_finish(r, READ_FAILED);
		return;
	}
	wait = backoff_ms(r->limits[LIMIT_read_retry],
	    r->limits[LIMIT_read_retry_most], r->attempts);
	timer_start(r->timer, asked > wait ? asked : wait);
}

bool
read_is_missing(const struct api_answer *answer)
{
	return answer->kind == API_ANSWERED && answer->http->status == 404;
}

enum read_outcome
read_classify(
    const struct api_answer *answer, json_t **tree, int64_t *retry_after)
{
	const struct http_answer *http = answer->http;

	*tree = NULL;
	*retry_after = 0;
	if (answer->kind != API_ANSWERED)
		return READ_AGAIN;
	switch (http->status) {
	case 200:
		*tree =
		    json_read(http->body, http->body_len, &read_rules, NULL);
		return *tree != NULL ? READ_OK : READ_AGAIN;
	case 401:
	case 403:
	case 404:
		return READ_FAILED;
	case 429:
		*retry_after = http->retry_after;
		return READ_AGAIN;
	default:
		return READ_AGAIN;
	}
}
