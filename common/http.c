#include <sys/queue.h>

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/http.h"
#include "common/http_policy.h"
#include "common/log.h"
#include "common/url.h"
#include "common/xmalloc.h"

#define HEADERS_MAX ((size_t)256 * 1024)
#define IDLE_CONNECTIONS 8L

struct http_request {
	LIST_ENTRY(http_request) link;
	struct http *http;
	CURL *easy; /* NULL: refused before it was one */
	struct curl_slist *headers;
	struct event *refused; /* says so at the loop's next turn */
	struct buffer body;
	size_t header_bytes;
	bool has_head; /* the headers ended as they should */
	size_t most_bytes;
	bool is_over;      /* a 2xx body beyond most_bytes */
	bool is_error_cut; /* an error's body beyond its bound */
	bool is_telling;   /* DONE is running */
	http_done done;
	void *arg;
};

struct http {
	struct event_base *base;
	CURLM *multi;
	struct event *timer;
	char *user_agent;
	LIST_HEAD(, http_request) requests;
};

static void
request_free(struct http_request *r)
{
	struct curl_slist *h;

	LIST_REMOVE(r, link);
	if (r->easy != NULL) {
		(void)curl_multi_remove_handle(r->http->multi, r->easy);
		curl_easy_cleanup(r->easy);
	}
	if (r->refused != NULL)
		event_free(r->refused);
	for (h = r->headers; h != NULL; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(r->headers);
	buffer_free(&r->body);
	free(r);
}

static size_t
body_bound(struct http_request *r, bool *is_error)
{
	long status = 0;

	(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	*is_error = status < 200 || status > 299;
	return *is_error ? HTTP_ERROR_BODY_MAX : r->most_bytes;
}

static size_t
take_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct http_request *r = arg;
	size_t len = size * count, bound;
	bool is_error;

	bound = body_bound(r, &is_error);
	if (len > bound - r->body.len) {
		r->is_over = !is_error;
		r->is_error_cut = is_error;
		return CURL_WRITEFUNC_ERROR;
	}
	buffer_add(&r->body, bytes, len);
	return len;
}

/*
 * curl keeps the headers; here is their bound, and their end: a connection
 * that breaks off among them is a whole answer to curl.
 */
static size_t
take_header(char *bytes, size_t size, size_t count, void *arg)
{
	struct http_request *r = arg;
	size_t len = size * count;

	if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
		r->has_head = false;
	else if (len > 0 && (*bytes == '\r' || *bytes == '\n'))
		r->has_head = true; /* trailers may follow the body */
	r->header_bytes += len;
	return r->header_bytes > HEADERS_MAX ? 0 : len;
}

/* The value of a header of the last answer; the first of several. */
static const char *
header_value(CURL *easy, const char *name)
{
	struct curl_header *h;

	if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
		return NULL;
	return h->value;
}

static char *
header_link_next(CURL *easy)
{
	struct curl_header *h;
	size_t i;
	char *next = NULL;

	for (i = 0; next == NULL &&
	     curl_easy_header(easy, "Link", i, CURLH_HEADER, -1, &h) ==
		 CURLHE_OK;
	     i++)
		next = http_parse_link_next(h->value);
	return next;
}

static char *
header_location(CURL *easy)
{
	const char *value = header_value(easy, "Location");
	char *origin;

	if (value == NULL || url_origin(value, strlen(value), &origin, NULL))
		return NULL;
	return origin;
}

static int64_t
header_total(CURL *easy)
{
	const char *value = header_value(easy, "X-Total-Count");
	char *end;
	long long n;

	if (value == NULL || *value < '0' || *value > '9')
		return -1;
	errno = 0;
	n = strtoll(value, &end, 10);
	return errno != 0 || *end != '\0' ? -1 : n;
}

static enum http_outcome
outcome_of(struct http_request *r, CURLcode code)
{
	long sent = 0;

	if (r->has_head && (code == CURLE_OK || r->is_error_cut))
		return HTTP_ANSWERED;
	if (r->is_over)
		return HTTP_TOO_LARGE;
	(void)curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &sent);
	return sent == 0 ? HTTP_UNSENT : HTTP_BROKEN;
}

static void
request_tell(struct http_request *r, const struct http_answer *a)
{
	r->is_telling = true;
	r->done(a, r->arg);
	request_free(r);
}

/* The transfer is over: tell, then forget it. */
static void
request_finish(struct http_request *r, CURLcode code)
{
	struct http_answer a = {.total_count = -1, .body = ""};
	char *next = NULL, *location = NULL;
	const char *value;
	long status = 0;

	a.outcome = outcome_of(r, code);
	if (a.outcome != HTTP_ANSWERED)
		a.why = code == CURLE_OK ? "half an answer"
					 : curl_easy_strerror(code);
	(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	a.status = (int)status;
	if (a.outcome == HTTP_ANSWERED) {
		value = header_value(r->easy, "Retry-After");
		if (value != NULL)
			a.retry_after = http_parse_retry_after(
			    value, clock_wall_ns() / 1000000000);
		a.total_count = header_total(r->easy);
		a.next = next = header_link_next(r->easy);
		a.location = location = header_location(r->easy);
		value = header_value(r->easy, "Reason");
		a.account_inactive =
		    value != NULL && strcasecmp(value, "Account Inactive") == 0;
		if (!r->is_error_cut && r->body.len > 0) {
			a.body = r->body.bytes;
			a.body_len = r->body.len;
		}
	}
	request_tell(r, &a);
	free(next);
	free(location);
}

/* Finish what curl reports as over. A callback may cancel others. */
static void
http_collect(struct http *http)
{
	struct http_request *r;
	CURLMsg *m;
	CURLcode code;
	CURL *easy;
	int left;

	while ((m = curl_multi_info_read(http->multi, &left)) != NULL) {
		if (m->msg != CURLMSG_DONE)
			continue;
		easy = m->easy_handle; /* M is gone with the next call */
		code = m->data.result;
		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &r);
		request_finish(r, code);
	}
}

static void
socket_ready(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;
	int mask, running;

	mask = ((what & EV_READ) ? CURL_CSELECT_IN : 0) |
	    ((what & EV_WRITE) ? CURL_CSELECT_OUT : 0);
	(void)curl_multi_socket_action(http->multi, fd, mask, &running);
	http_collect(http);
}

/* curl wants to hear of this socket, of other things, or no more. */
static int
socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_fd)
{
	struct http *http = arg;
	struct event *event = of_fd;
	short events;

	(void)easy;
	if (event != NULL)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		events = EV_PERSIST | ((what & CURL_POLL_IN) ? EV_READ : 0) |
		    ((what & CURL_POLL_OUT) ? EV_WRITE : 0);
		event = event_new(http->base, fd, events, socket_ready, http);
		if (event == NULL || event_add(event, NULL) == -1)
			fatalx("http: event");
	}
	(void)curl_multi_assign(http->multi, fd, event);
	return 0;
}

static void
timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct http *http = arg;
	int running;

	(void)fd;
	(void)what;
	(void)curl_multi_socket_action(
	    http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	http_collect(http);
}

static int
timer_wanted(CURLM *multi, long ms, void *arg)
{
	struct http *http = arg;
	struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

	(void)multi;
	if (ms < 0)
		return event_del(http->timer);
	return event_add(http->timer, &tv);
}

struct http *
http_new(struct event_base *base, const char *user_agent)
{
	struct http *http;

	http = xcalloc(1, sizeof(*http));
	LIST_INIT(&http->requests);
	http->base = base;
	http->user_agent = xstrdup(user_agent);
	http->timer = evtimer_new(base, timer_fired, http);
	http->multi = curl_multi_init();
	if (http->timer == NULL || http->multi == NULL)
		fatalx("http: cannot set up");
	(void)curl_multi_setopt(
	    http->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	(void)curl_multi_setopt(
	    http->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
	(void)curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	(void)curl_multi_setopt(
	    http->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	return http;
}

void
http_free(struct http *http)
{
	if (http == NULL)
		return;
	while (!LIST_EMPTY(&http->requests))
		request_free(LIST_FIRST(&http->requests));
	(void)curl_multi_cleanup(http->multi);
	event_free(http->timer);
	free(http->user_agent);
	free(http);
}

static void
header_add(struct http_request *r, const char *name, const char *value)
{
	struct curl_slist *grown;
	char *line;
	int len;

	len =
	    xasprintf(&line, "%s:%s%s", name, *value == '\0' ? "" : " ", value);
	grown = curl_slist_append(r->headers, line);
	if (grown == NULL)
		fatalx("http: header");
	r->headers = grown;
	explicit_bzero(line, (size_t)len);
	free(line);
}

static void
set_method(struct http_request *r, const struct http_call *c)
{
	if (c->method == HTTP_GET)
		return;
	SET(r->easy, CURLOPT_POST, 1L);
	SET(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_len);
	SET(r->easy, CURLOPT_COPYPOSTFIELDS, c->body_len > 0 ? c->body : "");
	/*
	 * On a connection that was used before, curl sends a request a second
	 * time when the first got no answer. Never that.
	 */
	SET(r->easy, CURLOPT_FRESH_CONNECT, 1L);
	header_add(r, "Expect", "");
	header_add(
	    r, "Content-Type", c->content_type != NULL ? c->content_type : "");
}

static void
request_set_up(
    struct http_request *r, const struct http_call *c, bool is_loopback)
{
	char *value;
	int len;

	http_policy_set(r->easy, is_loopback);
	SET(r->easy, CURLOPT_URL, c->url);
	SET(r->easy, CURLOPT_USERAGENT, r->http->user_agent);
	SET(r->easy, CURLOPT_TIMEOUT_MS, (long)c->timeout_ms);
	SET(r->easy, CURLOPT_PRIVATE, r);
	SET(r->easy, CURLOPT_WRITEFUNCTION, take_body);
	SET(r->easy, CURLOPT_WRITEDATA, r);
	SET(r->easy, CURLOPT_HEADERFUNCTION, take_header);
	SET(r->easy, CURLOPT_HEADERDATA, r);
	set_method(r, c);
	header_add(
	    r, "Accept", c->accept != NULL ? c->accept : "application/json");
	if (c->bearer != NULL) {
		len = xasprintf(&value, "Bearer %s", c->bearer);
		header_add(r, "Authorization", value);
		explicit_bzero(value, (size_t)len);
		free(value);
	}
	SET(r->easy, CURLOPT_HTTPHEADER, r->headers);
}

static void
tell_refused(evutil_socket_t fd, short what, void *arg)
{
	struct http_request *r = arg;
	const struct http_answer a = {
	    .outcome = HTTP_REFUSED,
	    .total_count = -1,
	    .body = "",
	    .why = "this request may not be sent",
	};

	(void)fd;
	(void)what;
	request_tell(r, &a);
}

static void
request_refuse(struct http_request *r)
{
	struct timeval now = {0, 0};

	r->refused = evtimer_new(r->http->base, tell_refused, r);
	if (r->refused == NULL || event_add(r->refused, &now) == -1)
		fatalx("http: event");
}

struct http_request *
http_send(
    struct http *http, const struct http_call *call, http_done done, void *arg)
{
	struct http_request *r;
	bool is_loopback;

	r = xcalloc(1, sizeof(*r));
	LIST_INSERT_HEAD(&http->requests, r, link);
	r->http = http;
	r->done = done;
	r->arg = arg;
	r->most_bytes = call->most_bytes > 0 ? call->most_bytes : HTTP_BODY_MAX;
	if (!http_policy_permits(call, &is_loopback)) {
		request_refuse(r);
		return r;
	}
	r->easy = curl_easy_init();
	if (r->easy == NULL)
		fatalx("http: cannot set up");
	request_set_up(r, call, is_loopback);
	if (curl_multi_add_handle(http->multi, r->easy) != CURLM_OK)
		fatalx("http: cannot send");
	return r;
}

void
http_cancel(struct http_request *request)
{
	if (request != NULL && !request->is_telling)
		request_free(request);
}
