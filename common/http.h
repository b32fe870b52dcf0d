/*
 * HTTP client for the roles that speak to Basecamp (intake, outbox), on
 * curl's multi interface and libevent (feed.md 1.3, 1.5, 6.6). In a library
 * of its own (common_http), so that only those who need curl link it.
 *
 * One request is one exchange: no retry, no redirect, no cookie, no netrc, no
 * stored state but idle connections. A GET may use such a connection and is
 * then sent again by curl if the server had closed it; a POST always has a
 * connection of its own, since one that may have been received must never be
 * sent twice. Certificates are verified against what http_prepare() read.
 *
 * URLs, headers and bodies never go to a log or into an error's text.
 */
#ifndef COMMON_HTTP_H
#define COMMON_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"

#define HTTP_BODY_MAX ((size_t)50 * 1024 * 1024)
#define HTTP_ERROR_BODY_MAX ((size_t)1024 * 1024)
#define HTTP_URL_MAX 16384

enum http_method { HTTP_GET, HTTP_POST };

struct http_call {
	enum http_method method;
	const char *url;          /* absolute; https, or http on loopback */
	const char *bearer;       /* NULL: no Authorization */
	const char *accept;       /* NULL: application/json */
	const char *content_type; /* of BODY; NULL: none is sent */
	const void *body;         /* POST only; copied */
	size_t body_len;
	int64_t timeout_ms; /* of the whole exchange */
	size_t most_bytes;  /* of a 2xx body; 0: HTTP_BODY_MAX */
};

enum http_outcome {
	HTTP_ANSWERED,  /* a whole answer: status, headers and body stand */
	HTTP_UNSENT,    /* no connection: not a byte of the request left */
	HTTP_BROKEN,    /* sent, perhaps received; no, half or a foul answer */
	HTTP_TOO_LARGE, /* a 2xx answer beyond its bound; status stands */
	HTTP_REFUSED    /* this URL or bearer is none we may send */
};

/* Lives as long as the callback runs. */
struct http_answer {
	enum http_outcome outcome;
	int status;
	int64_t retry_after;   /* seconds, 0: none, or not a valid one */
	int64_t total_count;   /* X-Total-Count, -1: none */
	const char *next;      /* Link rel="next" as served, or NULL */
	const char *location;  /* its origin, or NULL; not for printing */
	bool account_inactive; /* Reason: Account Inactive */
	const char *body;      /* NUL-terminated; "" for an error's body */
	size_t body_len;       /* beyond HTTP_ERROR_BODY_MAX */
	const char *why;       /* a fixed phrase; NULL if ANSWERED */
};

typedef void (*http_done)(const struct http_answer *answer, void *arg);

struct http;
struct http_request;

/*
 * Once a process, while files can be opened: curl and TLS set up, the
 * certificates of the system read, the resolver told to use files and DNS.
 * Without a certificate file only http on loopback works; that is logged.
 */
int http_prepare(struct error *e);

/* USER_AGENT is copied. Fatal if curl cannot. */
struct http *http_new(struct event_base *base, const char *user_agent);
/* Cancels what is under way. Not from inside a callback. NULL is fine. */
void http_free(struct http *http);

/*
 * Send. DONE is called exactly once, from the loop and never from inside this
 * function, unless the request is cancelled; the request is gone when it
 * returns. Everything in CALL is copied.
 */
struct http_request *http_send(
    struct http *http, const struct http_call *call, http_done done, void *arg);
/*
 * DONE will not be called; the connection of it is dropped. Nothing happens
 * for NULL, or from inside the request's own DONE.
 */
void http_cancel(struct http_request *request);

/* The parts of an answer's headers, for tests. */

/*
 * Seconds that a Retry-After value asks for at wall clock NOW (seconds since
 * the epoch): digits, or an HTTP date; 0 when it is neither or not ahead.
 */
int64_t http_parse_retry_after(const char *value, int64_t now);
/* The target of the first rel="next" in a Link value, malloc'ed, or NULL. */
char *http_parse_link_next(const char *value);

#endif
