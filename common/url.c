#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/url.h"
#include "common/utf8.h"

static bool
is_alpha(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex(char c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* No controls, no blanks, no line ends of any alphabet. */
static bool
has_url_bytes(const char *text, size_t len)
{
	uint32_t cp;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = utf8_next(text + i, len - i, &cp);
		if (n == 0 || cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) ||
		    utf8_is_space(cp))
			return false;
	}
	return true;
}

static bool
has_good_escapes(const struct url_part *p)
{
	size_t i;

	for (i = 0; i < p->len; i++)
		if (p->bytes[i] == '%' &&
		    (p->len - i < 3 || !is_hex(p->bytes[i + 1]) ||
			!is_hex(p->bytes[i + 2])))
			return false;
	return true;
}

/* A dotted or plain name; other alphabets may stand in it. */
static bool
is_host_name(const struct url_part *host)
{
	size_t i;
	char c;

	for (i = 0; i < host->len; i++) {
		c = host->bytes[i];
		if (!is_alpha(c) && !is_digit(c) && (unsigned char)c < 0x80 &&
		    strchr(".-_~", c) == NULL)
			return false;
	}
	return host->len != 0;
}

static bool
is_bracketed_address(const struct url_part *host)
{
	char copy[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (host->len < 4 || host->len - 2 >= sizeof(copy) ||
	    host->bytes[0] != '[' || host->bytes[host->len - 1] != ']')
		return false;
	memcpy(copy, host->bytes + 1, host->len - 2);
	copy[host->len - 2] = '\0';
	return inet_pton(AF_INET6, copy, &address) == 1;
}

static bool
is_port(const struct url_part *port)
{
	unsigned long n = 0;
	size_t i;

	for (i = 0; i < port->len; i++) {
		if (!is_digit(port->bytes[i]))
			return false;
		n = n * 10 + (unsigned long)(port->bytes[i] - '0');
		if (n > 65535)
			return false;
	}
	return true;
}

static struct url_part
part_of(const char *from, const char *to)
{
	return (struct url_part){from, (size_t)(to - from), true};
}

/* Cut what stands behind the first C off PART into REST. */
static void
part_cut(struct url_part *part, char c, struct url_part *rest)
{
	const char *found = memchr(part->bytes, c, part->len);

	if (found == NULL)
		return;
	*rest = part_of(found + 1, part->bytes + part->len);
	part->len = (size_t)(found - part->bytes);
}

static bool
parse_scheme(const char *text, const char *end, struct url *u)
{
	const char *at = text;

	while (at < end &&
	    (is_alpha(*at) ||
		(at > text &&
		    (is_digit(*at) || *at == '+' || *at == '-' || *at == '.'))))
		at++;
	if (at == text || end - at < 3 || memcmp(at, "://", 3) != 0)
		return false;
	u->scheme = part_of(text, at);
	return true;
}

/* [userinfo@]host[:port] */
static bool
parse_authority(const char *from, const char *to, struct url *u)
{
	const char *at = to, *close;

	while (at > from && at[-1] != '@')
		at--;
	if (at > from) {
		u->userinfo = part_of(from, at - 1);
		from = at;
	}
	u->host = part_of(from, to);
	close = u->host.len != 0 && *from == '['
	    ? memchr(from, ']', u->host.len)
	    : NULL;
	if (close != NULL && close + 1 < to && close[1] == ':') {
		u->host = part_of(from, close + 1);
		u->port = part_of(close + 2, to);
	} else if (close == NULL) {
		part_cut(&u->host, ':', &u->port);
	}
	return (is_host_name(&u->host) || is_bracketed_address(&u->host)) &&
	    is_port(&u->port) && has_good_escapes(&u->userinfo);
}

int
url_parse(const char *text, size_t len, struct url *out, struct error *e)
{
	const char *end = text + len, *slash;
	struct url u = {0};
	struct url_part rest;

	if (!has_url_bytes(text, len))
		return error_set(e, "a URL with bytes that none may have");
	if (!parse_scheme(text, end, &u))
		return error_set(e, "not an absolute URL");
	rest = part_of(text + u.scheme.len + 3, end);
	part_cut(&rest, '#', &u.fragment);
	part_cut(&rest, '?', &u.query);
	end = rest.bytes + rest.len;
	slash = memchr(rest.bytes, '/', rest.len);
	u.path = part_of(slash != NULL ? slash : end, end);
	if (!parse_authority(rest.bytes, u.path.bytes, &u))
		return error_set(e, "a URL with a wrong host or port");
	if (!has_good_escapes(&u.path) || !has_good_escapes(&u.fragment))
		return error_set(e, "a URL with a wrong percent escape");
	*out = u;
	return 0;
}

static bool
part_is(const struct url_part *part, const char *text)
{
	return part->len == strlen(text) &&
	    strncasecmp(part->bytes, text, part->len) == 0;
}

static bool
is_http(const struct url *u)
{
	return part_is(&u->scheme, "http") || part_is(&u->scheme, "https");
}

static void
add_lower(struct buffer *b, const struct url_part *part)
{
	size_t i;

	for (i = 0; i < part->len; i++)
		buffer_add_char(b,
		    part->bytes[i] >= 'A' && part->bytes[i] <= 'Z'
			? part->bytes[i] | 0x20
			: part->bytes[i]);
}

/* The port's number; -1 when there is none. */
static long
port_number(const struct url_part *port)
{
	long n = 0;
	size_t i;

	for (i = 0; i < port->len; i++)
		n = n * 10 + (port->bytes[i] - '0');
	return port->len == 0 ? -1 : n;
}

static char *
origin_of(const struct url *u)
{
	struct buffer b = {0};
	long port = port_number(&u->port);

	add_lower(&b, &u->scheme);
	buffer_add_text(&b, "://");
	add_lower(&b, &u->host);
	if (port != -1 && port != (part_is(&u->scheme, "https") ? 443 : 80))
		buffer_printf(&b, ":%ld", port);
	return buffer_take(&b, NULL);
}

int
url_origin(const char *text, size_t len, char **origin, struct error *e)
{
	struct url u;

	if (url_parse(text, len, &u, e) == -1)
		return -1;
	if (!is_http(&u))
		return error_set(e, "a URL that is neither http nor https");
	if (u.userinfo.present)
		return error_set(e, "a URL with a user in it");
	*origin = origin_of(&u);
	return 0;
}

bool
url_is_loopback(const struct url *u)
{
	static const char suffix[] = ".localhost";
	const size_t n = sizeof(suffix) - 1;

	if (part_is(&u->host, "localhost") || part_is(&u->host, "127.0.0.1") ||
	    part_is(&u->host, "[::1]"))
		return true;
	return u->host.len > n &&
	    strncasecmp(u->host.bytes + u->host.len - n, suffix, n) == 0;
}

int
url_check_base(const char *text, size_t len, struct error *e)
{
	struct url u;

	if (url_parse(text, len, &u, e) == -1)
		return -1;
	if (!is_http(&u))
		return error_set(e, "a URL that is neither http nor https");
	if (u.userinfo.present)
		return error_set(e, "a URL with a user in it");
	if (part_is(&u.scheme, "http") && !url_is_loopback(&u))
		return error_set(e, "http to another machine than this");
	if (u.path.len > 1 || u.query.present || u.fragment.present)
		return error_set(e, "a base URL with a path or a query");
	return 0;
}

int
url_check_continuation(
    const char *text, size_t len, const char *origin, struct error *e)
{
	char *got;
	bool is_same;

	if (url_origin(text, len, &got, NULL) == -1)
		return error_set(e, "a continuation that cannot be followed");
	is_same = strcmp(got, origin) == 0;
	free(got);
	if (!is_same)
		return error_set(e, "a continuation that cannot be followed");
	return 0;
}

void
url_escape(struct buffer *b, const char *text, size_t len)
{
	size_t i;
	char c;

	for (i = 0; i < len; i++) {
		c = text[i];
		if (is_alpha(c) || is_digit(c) || c == '.' || c == '_' ||
		    c == '~' || c == '-')
			buffer_add_char(b, c);
		else
			buffer_printf(b, "%%%02X", (unsigned char)c);
	}
}

bool
url_is_link(const char *text, size_t len)
{
	struct url u;

	return url_parse(text, len, &u, NULL) == 0 && is_http(&u);
}

static bool
has_only(const struct url_part *p, const char *others)
{
	size_t i;

	for (i = 0; i < p->len; i++)
		if (!is_alpha(p->bytes[i]) && !is_digit(p->bytes[i]) &&
		    (p->bytes[i] == '\0' ||
			strchr(others, p->bytes[i]) == NULL))
			return false;
	return true;
}

bool
url_is_plain(const char *text, size_t len)
{
	struct url u;

	if (len > URL_PLAIN_MAX || url_parse(text, len, &u, NULL) == -1)
		return false;
	return u.scheme.len == 5 && memcmp(u.scheme.bytes, "https", 5) == 0 &&
	    !u.userinfo.present && !u.query.present && !u.fragment.present &&
	    has_only(&u.host, "._-") && has_only(&u.path, "/_-");
}
