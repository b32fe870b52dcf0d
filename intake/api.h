/*
 * One GET of Basecamp's API with the agent's token (feed.md 6.6): no retry,
 * no redirect, and the token to Basecamp's own origin only.
 */
#ifndef INTAKE_API_H
#define INTAKE_API_H

#include "common/http.h"
#include "intake/token.h"

struct api {
	struct event_base *base;
	struct http *http;
	struct token *token;
	char *base_url;     /* without a slash at its end */
	char *origin;       /* canonical */
	int64_t account_id; /* of the present configuration */
	int64_t timeout_ms;
};

enum api_kind {
	API_ANSWERED,  /* http has status, headers and body */
	API_NETWORK,   /* no whole answer: may be tried again */
	API_TOO_LARGE, /* an answer beyond its bound; http has the status */
	API_FOREIGN,   /* a URL that the token may not go to */
	API_NO_TOKEN   /* the outbox has none: reason, wait_ms */
};

struct api_answer {
	enum api_kind kind;
	const struct http_answer *http; /* NULL if FOREIGN or NO_TOKEN */
	const char *reason;
	int64_t wait_ms;
};

struct api_call;
typedef void (*api_done)(const struct api_answer *answer, void *arg);

/* Fails when BASE_URL is no base URL. */
int api_init(struct api *api, struct role *role, const char *base_url,
    const char *user_agent, struct error *e);

/*
 * GET a path of the account ("comments/7"), at most MOST bytes (0: HTTP's
 * bound). DONE is called once, from the loop, unless the call is cancelled;
 * it is gone when DONE returns.
 */
struct api_call *api_get(
    struct api *api, const char *path, size_t most, api_done done, void *arg);
/* The same for a whole URL that Basecamp gave (Link rel="next"). */
struct api_call *api_follow(
    struct api *api, const char *url, size_t most, api_done done, void *arg);
/* NULL is fine, and so is the call's own DONE. */
void api_cancel(struct api_call *call);

#endif
