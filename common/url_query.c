#include <stdlib.h>
#include <string.h>

#include "common/url.h"
#include "common/xmalloc.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A name or a value; NULL when an escape in it is malformed. */
static char *
decode(const char *text, size_t len, size_t *out_len)
{
	char *out = xmalloc(len + 1);
	int high, low;
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		out[n++] = text[i] == '+' ? ' ' : text[i];
		if (text[i] != '%')
			continue;
		high = len - i > 2 ? hex_value(text[i + 1]) : -1;
		low = len - i > 2 ? hex_value(text[i + 2]) : -1;
		if (high == -1 || low == -1) {
			free(out);
			return NULL;
		}
		out[n - 1] = (char)(high << 4 | low);
		i += 2;
	}
	out[n] = '\0';
	*out_len = n;
	return out;
}

static int
add_pair(struct url_query *q, const char *text, size_t len, struct error *e)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals == NULL ? len : (size_t)(equals - text);
	struct url_pair *pair;

	if (memchr(text, ';', len) != NULL)
		return error_set(e, "a query with a semicolon");
	if (q->count == URL_PAIRS_MAX)
		return error_set(
		    e, "a query of more than %d pairs", URL_PAIRS_MAX);
	q->pairs = xreallocarray(q->pairs, q->count + 1, sizeof(*pair));
	pair = &q->pairs[q->count++];
	*pair = (struct url_pair){0};
	pair->name = decode(text, name_len, &pair->name_len);
	if (equals == NULL)
		pair->value = xstrdup("");
	else
		pair->value =
		    decode(equals + 1, len - name_len - 1, &pair->value_len);
	if (pair->name == NULL || pair->value == NULL)
		return error_set(e, "a query with a wrong percent escape");
	return 0;
}

int
url_query_parse(
    const char *query, size_t len, struct url_query *out, struct error *e)
{
	const char *at, *amp, *end = query + len;
	struct url_query q = {0};

	for (at = query; at < end; at = amp + 1) {
		amp = memchr(at, '&', (size_t)(end - at));
		if (amp == NULL)
			amp = end;
		if (amp > at && add_pair(&q, at, (size_t)(amp - at), e) == -1) {
			url_query_free(&q);
			return -1;
		}
	}
	*out = q;
	return 0;
}

void
url_query_free(struct url_query *q)
{
	size_t i;

	for (i = 0; i < q->count; i++) {
		free(q->pairs[i].name);
		free(q->pairs[i].value);
	}
	free(q->pairs);
	*q = (struct url_query){0};
}

static bool
pair_is(const struct url_pair *pair, const char *name)
{
	return pair->name_len == strlen(name) &&
	    memcmp(pair->name, name, pair->name_len) == 0;
}

const char *
url_query_get(const struct url_query *q, const char *name)
{
	size_t i;

	for (i = 0; i < q->count; i++)
		if (pair_is(&q->pairs[i], name))
			return q->pairs[i].value;
	return NULL;
}

size_t
url_query_count(const struct url_query *q, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < q->count; i++)
		n += pair_is(&q->pairs[i], name);
	return n;
}
