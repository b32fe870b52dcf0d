#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/url.h"
#include "common/xmalloc.h"
#include "intake/api.h"
#include "intake/timer.h"

struct api_call {
	struct api *api;
	char *url;
	size_t most;
	struct event *start;
	struct token_wait wait;
	int64_t serial; /* of the token that was sent */
	struct http_request *request;
	bool is_telling;
	api_done done;
	void *arg;
};

int
api_init(struct api *api, struct role *role, const char *base_url,
    const char *user_agent, struct error *e)
{
	size_t len = strlen(base_url);

	if (url_check_base(base_url, len, e) == -1 ||
	    url_origin(base_url, len, &api->origin, e) == -1)
		return -1;
	while (len > 0 && base_url[len - 1] == '/')
		len--;
	api->base = role->base;
	api->base_url = xstrndup(base_url, len);
	api->http = http_new(role->base, user_agent);
	api->token = token_new(role);
	return 0;
}

static void
call_free(struct api_call *c)
{
	token_unask(c->api->token, &c->wait);
	http_cancel(c->request);
	event_free(c->start);
	free(c->url);
	free(c);
}

static void
call_finish(struct api_call *c, const struct api_answer *a)
{
	c->is_telling = true;
	c->request = NULL;
	c->done(a, c->arg);
	call_free(c);
}

static void
http_answered(const struct http_answer *http, void *arg)
{
	static const enum api_kind kinds[] = {
	    [HTTP_ANSWERED] = API_ANSWERED,
	    [HTTP_UNSENT] = API_NETWORK,
	    [HTTP_BROKEN] = API_NETWORK,
	    [HTTP_TOO_LARGE] = API_TOO_LARGE,
	    [HTTP_REFUSED] = API_FOREIGN,
	};
	struct api_answer a = {.kind = kinds[http->outcome], .http = http};
	struct api_call *c = arg;

	if (a.kind == API_ANSWERED && http->status == 401)
		token_refused(c->api->token, c->serial);
	call_finish(c, &a);
}

static void
token_ready(const struct token_answer *t, void *arg)
{
	struct http_call http = {.method = HTTP_GET, .bearer = t->value};
	struct api_answer a = {.kind = API_NO_TOKEN};
	struct api_call *c = arg;

	if (t->value == NULL) {
		a.reason = t->reason;
		a.wait_ms = t->wait_ms;
		call_finish(c, &a);
		return;
	}
	http.url = c->url;
	http.timeout_ms = c->api->timeout_ms;
	http.most_bytes = c->most;
	c->serial = t->serial;
	c->request = http_send(c->api->http, &http, http_answered, c);
}

/* At the loop's next turn, so that DONE never runs inside api_get(). */
static void
call_start(evutil_socket_t fd, short what, void *arg)
{
	static const struct api_answer foreign = {.kind = API_FOREIGN};
	struct api_call *c = arg;

	(void)fd;
	(void)what;
	if (url_check_continuation(
		c->url, strlen(c->url), c->api->origin, NULL) == -1)
		call_finish(c, &foreign);
	else
		token_ask(c->api->token, &c->wait);
}

/* URL is taken over. */
static struct api_call *
call_new(struct api *api, char *url, size_t most, api_done done, void *arg)
{
	struct api_call *c = xcalloc(1, sizeof(*c));

	c->api = api;
	c->url = url;
	c->most = most;
	c->done = done;
	c->arg = arg;
	c->wait.ready = token_ready;
	c->wait.arg = c;
	c->start = timer_new(api->base, call_start, c);
	timer_start(c->start, 0);
	return c;
}

struct api_call *
api_get(
    struct api *api, const char *path, size_t most, api_done done, void *arg)
{
	char *url;

	(void)xasprintf(
	    &url, "%s/%" PRId64 "/%s", api->base_url, api->account_id, path);
	return call_new(api, url, most, done, arg);
}

struct api_call *
api_follow(
    struct api *api, const char *url, size_t most, api_done done, void *arg)
{
	return call_new(api, xstrdup(url), most, done, arg);
}

void
api_cancel(struct api_call *call)
{
	if (call != NULL && !call->is_telling)
		call_free(call);
}
