#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "intake/poll.h"
#include "intake/timer.h"

#define ATTEMPTS 3
#define DELAY_MOST_MS 30000
#define JITTER_MS 100

struct poll {
	struct api *api;
	char *path;
	int64_t limits[LIMIT_COUNT];
	int attempt; /* under way, from 1 */
	struct api_call *call;
	struct event *again;
	bool is_telling;
	const struct poll_ops *ops;
	void *arg;
};

static void poll_answered(const struct api_answer *a, void *arg);

static void
poll_free(struct poll *p)
{
	api_cancel(p->call);
	event_free(p->again);
	free(p->path);
	free(p);
}

static void
poll_send(struct poll *p)
{
	p->attempt++;
	p->call = api_get(p->api, p->path, 0, poll_answered, p);
}

static void
poll_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	poll_send(arg);
}

static void
poll_finish(struct poll *p, struct poll_result *r)
{
	p->is_telling = true;
	p->ops->done(r, p->arg);
	page_free(r->page);
	poll_free(p);
}

/* How long until the next attempt of this call; -1: there is none. */
static int64_t
poll_delay(const struct poll *p, const struct api_answer *a)
{
	int64_t delay;

	if (p->attempt >= ATTEMPTS)
		return -1;
	if (a->kind != API_NETWORK &&
	    !(a->kind == API_ANSWERED && poll_is_retried(a->http->status)))
		return -1;
	if (a->kind == API_ANSWERED && a->http->retry_after > 0)
		return a->http->retry_after * 1000;
	delay =
	    backoff_ms(p->limits[LIMIT_feed_retry], DELAY_MOST_MS, p->attempt);
	return delay + chance_ms(JITTER_MS);
}

/* The token endpoint's failures are the feed's own (feed.md 6.5). */
static void
classify_no_token(const struct api_answer *a, struct poll_result *r)
{
	r->kind = strcmp(a->reason, "credential_refused") == 0
	    ? POLL_NO_CREDENTIAL
	    : POLL_TRANSIENT;
	if (r->kind == POLL_TRANSIENT && a->wait_ms > 0) {
		r->kind = POLL_THROTTLED;
		r->retry_after_ms = a->wait_ms;
	}
	(void)snprintf(
	    r->text, sizeof(r->text), "no access token: %s", a->reason);
}

static void
classify_no_answer(const struct api_answer *a, struct poll_result *r)
{
	r->kind = a->kind == API_NETWORK ? POLL_TRANSIENT
	    : a->kind == API_TOO_LARGE   ? POLL_MALFORMED
					 : POLL_UNRECOVERABLE;
	(void)snprintf(r->text, sizeof(r->text), "no answer: %s",
	    a->http != NULL ? a->http->why : "the URL is not ours");
}

static void
poll_answered(const struct api_answer *a, void *arg)
{
	struct poll *p = arg;
	struct poll_result r = {0};
	json_t *tree = NULL;
	int64_t delay = poll_delay(p, a);

	p->call = NULL;
	if (a->kind == API_ANSWERED)
		poll_classify(a->http, &r, &tree);
	else if (a->kind == API_NO_TOKEN)
		classify_no_token(a, &r);
	else
		classify_no_answer(a, &r);
	if (delay >= 0) {
		timer_start(p->again, delay);
		p->ops->again(r.text, p->arg);
	} else {
		poll_finish(p, &r);
	}
	json_decref(tree);
}

struct poll *
poll_start(struct api *api, const char *query,
    const int64_t limits[LIMIT_COUNT], const struct poll_ops *ops, void *arg)
{
	struct poll *p = xcalloc(1, sizeof(*p));

	p->api = api;
	p->ops = ops;
	p->arg = arg;
	memcpy(p->limits, limits, sizeof(p->limits));
	(void)xasprintf(&p->path, "events.json?%s", query);
	p->again = timer_new(api->base, poll_again, p);
	poll_send(p);
	return p;
}

void
poll_cancel(struct poll *p)
{
	if (p != NULL && !p->is_telling)
		poll_free(p);
}
