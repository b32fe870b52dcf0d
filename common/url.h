/*
 * URLs as text: taking apart, origins, queries, the checks of links. Nothing
 * here goes out on the net; libcurl is not linked. Errors never name a part
 * of the URL.
 */
#ifndef COMMON_URL_H
#define COMMON_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

struct url_part {
	const char *bytes; /* into the URL that was parsed */
	size_t len;
	bool present; /* "" and "not there" differ */
};

struct url {
	struct url_part scheme;
	struct url_part userinfo; /* before the last '@' */
	struct url_part host;     /* an IPv6 address with its brackets */
	struct url_part port;     /* digits, may be "" */
	struct url_part path;
	struct url_part query; /* after the '?' */
	struct url_part fragment;
};

/*
 * Take an absolute URL with an authority (scheme://host...) apart. Refused:
 * what is not UTF-8, controls and blanks, a malformed host or port (0..65535),
 * a malformed percent escape outside the query. The parts point into TEXT.
 */
int url_parse(const char *text, size_t len, struct url *out, struct error *e);

/*
 * The canonical origin of an http or https URL (feed.md 1.3): lower-case
 * scheme://host, with the port unless it is the scheme's own, no path.
 * Userinfo is refused. *ORIGIN is malloc'ed and the caller's.
 */
int url_origin(const char *text, size_t len, char **origin, struct error *e);

/* localhost, *.localhost, 127.0.0.1, ::1 (as a host of url_parse()). */
bool url_is_loopback(const struct url *u);

/*
 * A base URL: as url_origin(), and https, or http on a loopback host; no
 * query and no fragment.
 */
int url_check_base(const char *text, size_t len, struct error *e);

/*
 * A continuation (feed.md 1.3 rule 1): absolute, http or https, no userinfo,
 * and of the canonical origin ORIGIN. The error is one fixed phrase.
 */
int url_check_continuation(
    const char *text, size_t len, const char *origin, struct error *e);

/* Pairs of a query, decoded: name=value joined by '&', in order. */
struct url_pair {
	char *name;
	char *value;
	size_t name_len; /* decoded text may hold NUL */
	size_t value_len;
};

struct url_query {
	struct url_pair *pairs;
	size_t count;
};

#define URL_PAIRS_MAX 256

/*
 * QUERY is what stands after the '?'. A malformed percent escape, a ';' and
 * more than URL_PAIRS_MAX pairs are errors, never dropped pairs; '+' is a
 * space; empty pairs ("a=1&&b=2") are skipped.
 */
int url_query_parse(
    const char *query, size_t len, struct url_query *out, struct error *e);
void url_query_free(struct url_query *q);
/* The first value of NAME, or NULL. */
const char *url_query_get(const struct url_query *q, const char *name);
/* How many pairs have that name. */
size_t url_query_count(const struct url_query *q, const char *name);

/* Append TEXT with all but [A-Za-z0-9._~-] percent-encoded. */
void url_escape(struct buffer *b, const char *text, size_t len);

/* A worker's link (ledger.md 6.3): absolute, http or https, with a host. */
bool url_is_link(const char *text, size_t len);

/*
 * A URL plain enough for a prompt (dispatch.md 11): https, at most 120
 * bytes, nothing but scheme, host (and port) and path, in few characters.
 * Such a URL is its own canonical form and goes in as it is.
 */
#define URL_PLAIN_MAX 120
bool url_is_plain(const char *text, size_t len);

#endif
