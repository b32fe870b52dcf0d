/*
 * common/http against a server in the same loop that answers with scripted
 * bytes: what each foul answer becomes, what is never done.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http.h"
#include "common/log.h"

enum after { CLOSE, KEEP };

struct script {
	const char *bytes; /* of the answer */
	size_t repeat;     /* how often the bytes' last letter follows */
	enum after after;
};

static struct {
	struct event_base *base;
	struct evconnlistener *listener;
	struct http *http;
	char origin[64];
	struct script script;
	char last[8192]; /* the last request, head and body */
	int requests;
	int connections;
} s;

struct seen {
	int calls;
	enum http_outcome outcome;
	int status;
	int64_t retry_after, total;
	char next[256], location[256], body[256];
	size_t body_len;
	bool inactive;
};

static void
answer(struct bufferevent *be)
{
	struct evbuffer *out = bufferevent_get_output(be);
	const char *bytes = s.script.bytes;
	size_t len = strlen(bytes), i;

	if (len > 0)
		evbuffer_add(out, bytes, len);
	for (i = 0; i < s.script.repeat; i++)
		evbuffer_add(out, bytes + len - 1, 1);
}

static void
written(struct bufferevent *be, void *arg)
{
	bool *is_answered = arg;

	if (*is_answered && s.script.after == CLOSE)
		bufferevent_free(be);
	if (*is_answered && s.script.after == CLOSE)
		free(is_answered);
	else
		*is_answered = false;
}

static void
ended(struct bufferevent *be, short what, void *arg)
{
	(void)what;
	bufferevent_free(be);
	free(arg);
}

static size_t
body_length(const char *head)
{
	const char *p = strcasestr(head, "content-length:");

	return p == NULL ? 0 : strtoul(p + 15, NULL, 10);
}

static void
readable(struct bufferevent *be, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(be);
	bool *is_answered = arg;
	char text[sizeof(s.last)];
	const char *end;
	ssize_t n;

	n = evbuffer_copyout(in, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	end = strstr(text, "\r\n\r\n");
	if (end == NULL || strlen(end + 4) < body_length(text))
		return;
	evbuffer_drain(in, (size_t)n);
	memcpy(s.last, text, (size_t)n + 1);
	s.requests++;
	*is_answered = true;
	answer(be);
	if (*s.script.bytes == '\0' && s.script.after == CLOSE)
		ended(be, 0, arg);
}

static void
accepted(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from,
    int len, void *arg)
{
	struct bufferevent *be;

	(void)l;
	(void)from;
	(void)len;
	(void)arg;
	s.connections++;
	be = bufferevent_socket_new(s.base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(be, readable, written, ended, calloc(1, 1));
	bufferevent_enable(be, EV_READ | EV_WRITE);
}

static int
set_up(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	socklen_t len = sizeof(sin);

	(void)state;
	memset(&s, 0, sizeof(s));
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s.base = event_base_new();
	s.listener = evconnlistener_new_bind(s.base, accepted, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16,
	    (struct sockaddr *)&sin, sizeof(sin));
	assert_non_null(s.listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(s.listener),
			     (struct sockaddr *)&sin, &len),
	    0);
	(void)snprintf(s.origin, sizeof(s.origin), "http://127.0.0.1:%u",
	    ntohs(sin.sin_port));
	s.http = http_new(s.base, "test/1 (a@b.example)");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	http_free(s.http);
	evconnlistener_free(s.listener);
	event_base_free(s.base);
	return 0;
}

static void
copy(char out[static 256], const char *text)
{
	(void)snprintf(out, 256, "%s", text == NULL ? "-" : text);
}

static void
done(const struct http_answer *a, void *arg)
{
	struct seen *seen = arg;

	seen->calls++;
	seen->outcome = a->outcome;
	seen->status = a->status;
	seen->retry_after = a->retry_after;
	seen->total = a->total_count;
	seen->body_len = a->body_len;
	seen->inactive = a->account_inactive;
	copy(seen->next, a->next);
	copy(seen->location, a->location);
	copy(seen->body, a->body);
	if (a->outcome != HTTP_ANSWERED)
		assert_non_null(a->why);
	event_base_loopbreak(s.base);
}

static struct seen
send_call(struct http_call *c)
{
	struct seen seen = {0};
	struct timeval bound = {60, 0};

	if (c->timeout_ms == 0)
		c->timeout_ms = 30000;
	(void)http_send(s.http, c, done, &seen);
	assert_int_equal(seen.calls, 0); /* never from inside */
	event_base_loopexit(s.base, &bound);
	event_base_dispatch(s.base);
	assert_int_equal(seen.calls, 1);
	return seen;
}

static struct seen
get(const char *bytes, size_t repeat, enum after after, size_t most)
{
	char url[128];
	struct http_call c = {.method = HTTP_GET,
	    .url = url,
	    .bearer = "tok",
	    /* Only who waits for the end of it has little. */
	    .timeout_ms = *bytes == '\0' && after == KEEP ? 500 : 0,
	    .most_bytes = most};

	s.script = (struct script){bytes, repeat, after};
	(void)snprintf(url, sizeof(url), "%s/999/x.json?a=1", s.origin);
	return send_call(&c);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static void
test_outcomes(void **state)
{
	static const struct {
		const char *bytes;
		size_t repeat;
		enum after after;
		enum http_outcome outcome;
		int status;
		size_t body_len;
	} t[] = {
	    {OK_HEAD "Content-Length: 2\r\n\r\n{}", 0, KEEP, HTTP_ANSWERED, 200,
		2},
	    {OK_HEAD "Content-Length: 9\r\n\r\n{}", 0, CLOSE, HTTP_BROKEN, 200,
		0},
	    {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", 0, CLOSE,
		HTTP_BROKEN, 200, 0},
	    {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"
		     "X-T: y\r\n\r\n",
		0, CLOSE, HTTP_ANSWERED, 200, 2},
	    {OK_HEAD "Content-Le", 0, CLOSE, HTTP_BROKEN, 200, 0},
	    {"", 0, CLOSE, HTTP_BROKEN, 0, 0},
	    {"", 0, KEEP, HTTP_BROKEN, 0, 0}, /* the time is over */
	    {"SSH-2.0-x\r\n\r\n", 0, CLOSE, HTTP_BROKEN, 0, 0},
	    {"HTTP/1.1 abc\r\n\r\n", 0, CLOSE, HTTP_BROKEN, 0, 0},
	    {"\x01\xff\x00", 0, CLOSE, HTTP_BROKEN, 0, 0},
	    {OK_HEAD "Content-Length: 101\r\n\r\nx", 100, KEEP, HTTP_TOO_LARGE,
		200, 0},
	    {OK_HEAD "Content-Length: 100\r\n\r\nx", 99, KEEP, HTTP_ANSWERED,
		200, 100},
	    {OK_HEAD "X: y", 300000, KEEP, HTTP_BROKEN, 200, 0},
	    {"HTTP/1.1 500 E\r\nContent-Length: 101\r\n\r\nx", 100, KEEP,
		HTTP_ANSWERED, 500, 101}, /* most_bytes is not for errors */
	    {"HTTP/1.1 500 E\r\nContent-Length: 1100000\r\n\r\nx", 1099999,
		KEEP, HTTP_ANSWERED, 500, 0},
	    {"HTTP/1.1 302 F\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", 0,
		KEEP, HTTP_ANSWERED, 302, 0},
	    {"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 404 N\r\nContent-Length: 0"
	     "\r\n\r\n",
		0, KEEP, HTTP_ANSWERED, 404, 0},
	};
	struct seen got;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		print_message("case %zu\n", i);
		s.requests = 0;
		got = get(t[i].bytes, t[i].repeat, t[i].after, 100);
		assert_int_equal(got.outcome, t[i].outcome);
		if (t[i].outcome == HTTP_ANSWERED)
			assert_int_equal(got.status, t[i].status);
		assert_int_equal(got.body_len, t[i].body_len);
	}
}

static void
test_headers(void **state)
{
	struct seen got;

	(void)state;
	got = get("HTTP/1.1 429 T\r\nretry-after: 7\r\nContent-Length: 0\r\n"
		  "Link: <https://a.example/1>; rel=\"prev\"\r\n"
		  "LINK: <https://a.example/2?p=1,2>; rel=\"next\"\r\n"
		  "X-Total-Count: 41\r\nReason: account inactive\r\n"
		  "Location: https://Evil.example:443/token?x=y\r\n\r\n",
	    0, KEEP, 0);
	assert_int_equal(got.outcome, HTTP_ANSWERED);
	assert_int_equal(got.status, 429);
	assert_int_equal(got.retry_after, 7);
	assert_int_equal(got.total, 41);
	assert_string_equal(got.next, "https://a.example/2?p=1,2");
	assert_string_equal(got.location, "https://evil.example");
	assert_true(got.inactive);

	got = get(OK_HEAD "Content-Length: 2\r\nX-Total-Count: -1\r\n\r\n[]", 0,
	    KEEP, 0);
	assert_int_equal(got.retry_after, 0);
	assert_int_equal(got.total, -1);
	assert_string_equal(got.next, "-");
	assert_string_equal(got.location, "-");
	assert_false(got.inactive);
}

static void
test_request_as_sent(void **state)
{
	char url[128];
	struct http_call c = {.method = HTTP_POST,
	    .url = url,
	    .bearer = "to.k",
	    .content_type = "application/json; charset=utf-8",
	    .body = "{\"content\":\"x\"}",
	    .body_len = 15};
	struct seen got;

	(void)state;
	(void)get(OK_HEAD "Content-Length: 0\r\n\r\n", 0, KEEP, 0);
	assert_non_null(strstr(s.last, "GET /999/x.json?a=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(s.last, "Authorization: Bearer tok\r\n"));
	assert_non_null(strstr(s.last, "Accept: application/json\r\n"));
	assert_non_null(strstr(s.last, "User-Agent: test/1 (a@b.example)\r\n"));
	assert_null(strcasestr(s.last, "content-type"));
	assert_null(strcasestr(s.last, "accept-encoding"));

	(void)snprintf(url, sizeof(url), "%s/c.json", s.origin);
	s.script.bytes =
	    "HTTP/1.1 201 C\r\nContent-Length: 8\r\n\r\n{\"id\":1}";
	got = send_call(&c);
	assert_int_equal(got.status, 201);
	assert_string_equal(got.body, "{\"id\":1}");
	assert_non_null(strstr(s.last, "POST /c.json HTTP/1.1\r\n"));
	assert_non_null(strstr(
	    s.last, "Content-Type: application/json; charset=utf-8\r\n"));
	assert_null(strcasestr(s.last, "expect:"));
	assert_non_null(strstr(s.last, "\r\n\r\n{\"content\":\"x\"}"));

	c = (struct http_call){.method = HTTP_POST, .url = url};
	(void)send_call(&c);
	assert_null(strcasestr(s.last, "content-type"));
	assert_null(strcasestr(s.last, "authorization"));
}

/* A GET may reuse a connection; a POST has its own and goes out once. */
static void
test_post_is_never_repeated(void **state)
{
	char url[128];
	struct http_call c = {.method = HTTP_POST,
	    .url = url,
	    .body = "a=1",
	    .body_len = 3,
	    .content_type = "application/x-www-form-urlencoded"};
	const char *ok = OK_HEAD "Content-Length: 0\r\n\r\n";
	struct seen got;

	(void)state;
	(void)snprintf(url, sizeof(url), "%s/tokens", s.origin);
	(void)get(ok, 0, KEEP, 0);
	(void)get(ok, 0, KEEP, 0);
	assert_int_equal(s.connections, 1);
	s.script = (struct script){"", 0, CLOSE};
	got = send_call(&c);
	assert_int_equal(got.outcome, HTTP_BROKEN);
	assert_int_equal(s.requests, 3);
	assert_int_equal(s.connections, 2);
}

static void
test_unsent(void **state)
{
	struct http_call c = {.method = HTTP_POST,
	    .url = "http://127.0.0.1:1/x",
	    .body = "a",
	    .body_len = 1};
	struct seen got;

	(void)state;
	got = send_call(&c);
	assert_int_equal(got.outcome, HTTP_UNSENT);
	c.url = "https://no-such-name.invalid/x";
	got = send_call(&c);
	assert_int_equal(got.outcome, HTTP_UNSENT);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *url, *bearer;
	} t[] = {
	    {"http://example.com/", NULL},
	    {"http://127.0.0.2.example/", NULL},
	    {"ftp://127.0.0.1/", NULL},
	    {"file:///etc/passwd", NULL},
	    {"//127.0.0.1/", NULL},
	    {"", NULL},
	    {"http://u:p@127.0.0.1/", NULL},
	    {"http://127.0.0.1/a\r\nX: y", NULL},
	    {"http://127.0.0.1/", "a\r\nX: y"},
	    {"http://127.0.0.1/", ""},
	};
	struct http_call c = {.method = HTTP_GET};
	struct seen got;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c.url = t[i].url;
		c.bearer = t[i].bearer;
		got = send_call(&c);
		assert_int_equal(got.outcome, HTTP_REFUSED);
	}
	assert_int_equal(s.connections, 0);
}

static void
not_called(const struct http_answer *a, void *arg)
{
	(void)a;
	(void)arg;
	fail();
}

static void
test_cancel(void **state)
{
	char url[128];
	struct http_call c = {
	    .method = HTTP_GET, .url = url, .timeout_ms = 5000};
	struct http_call refused = {.method = HTTP_GET, .url = "x:"};
	struct http_request *r[3];

	(void)state;
	(void)snprintf(url, sizeof(url), "%s/x", s.origin);
	r[0] = http_send(s.http, &c, not_called, NULL);
	r[1] = http_send(s.http, &refused, not_called, NULL);
	r[2] = http_send(s.http, &c, not_called, NULL);
	http_cancel(r[0]);
	http_cancel(r[1]);
	http_cancel(NULL);
	/* The third one reaches the server, and http_free() has it. */
	s.script = (struct script){"", 0, KEEP};
	while (s.requests == 0)
		event_base_loop(s.base, EVLOOP_ONCE);
	assert_int_equal(s.connections, 1);
	(void)r[2];
}

static void
test_retry_after(void **state)
{
	static const struct {
		const char *value;
		int64_t now, want;
	} t[] = {
	    {"1", 0, 1},
	    {"0", 0, 0},
	    {"007", 0, 7},
	    {"-1", 0, 0},
	    {"+1", 0, 0},
	    {"1.5", 0, 0},
	    {"5 s", 0, 0},
	    {" 5", 0, 0},
	    {"", 0, 0},
	    {"soon", 0, 0},
	    {"2147483647", 0, 2147483647},
	    {"99999999999999999999999", 0, 2147483647},
	    {"Thu, 01 Jan 1970 00:01:40 GMT", 40, 60},
	    {"Thursday, 01-Jan-70 00:01:40 GMT", 40, 60},
	    {"Thu Jan  1 00:01:40 1970", 40, 60},
	    {"Thu, 01 Jan 1970 00:01:40 GMT", 100, 0},
	    {"Thu, 01 Jan 1970 00:01:40 GMT", 101, 0},
	    {"Thu, 01 Jan 1970 00:01:40 GMT x", 40, 0},
	    {"Fri, 31 Dec 9999 23:59:59 GMT", 0, 2147483647},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		print_message("\"%s\"\n", t[i].value);
		assert_int_equal(
		    http_parse_retry_after(t[i].value, t[i].now), t[i].want);
	}
}

static void
test_link_next(void **state)
{
	static const struct {
		const char *value, *want;
	} t[] = {
	    {"<https://a/2>; rel=\"next\"", "https://a/2"},
	    {"<https://a/2>; rel=next", "https://a/2"},
	    {"<https://a/2>;rel=\"prev next\"", "https://a/2"},
	    {"<https://a/1>; rel=\"prev\", <https://a/2>; REL=\"NEXT\"",
		"https://a/2"},
	    {"<https://a/2?x=1,2>; title=\"a, b; rel=next\"; rel=next",
		"https://a/2?x=1,2"},
	    {"<https://a/2>; title=\"a\"; rel", NULL},
	    {"<https://a/2>; title=\"rel=next\"", NULL},
	    {"<https://a/2>; rel=\"nextish\"", NULL},
	    {"<https://a/2>; xrel=\"next\"", NULL},
	    {"<>; rel=\"next\"", NULL},
	    {"<https://a/2; rel=\"next\"", NULL},
	    {"https://a/2; rel=\"next\"", NULL},
	    {"", NULL},
	    {"  ", NULL},
	};
	char *got;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		print_message("%s\n", t[i].value);
		got = http_parse_link_next(t[i].value);
		if (t[i].want == NULL)
			assert_null(got);
		else
			assert_string_equal(got, t[i].want);
		free(got);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_outcomes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_request_as_sent, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_post_is_never_repeated, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_unsent, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
	    cmocka_unit_test(test_retry_after),
	    cmocka_unit_test(test_link_next),
	};
	struct error e;

	log_init("test_http", LOG_LEVEL_ERROR);
	(void)signal(SIGPIPE, SIG_IGN); /* as connectd does */
	if (http_prepare(&e) == -1) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
