#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "intake/cursor.h"

void
cursor_free(struct cursor *c)
{
	free(c->text);
	*c = (struct cursor){0};
}

void
cursor_set_bare(struct cursor *c)
{
	cursor_free(c);
}

void
cursor_set_since(struct cursor *c, int64_t id)
{
	cursor_free(c);
	c->kind = CURSOR_SINCE;
	c->since = id;
}

void
cursor_set_position(struct cursor *c, const char *position)
{
	char *copy = xstrdup(position); /* it may be the present text */

	cursor_free(c);
	c->kind = CURSOR_POSITION;
	c->text = copy;
}

bool
cursor_is_present(const struct cursor *c)
{
	return c->kind == CURSOR_BARE ||
	    (c->kind == CURSOR_FOLLOWED && c->is_present);
}

/* "now", or digits: what may stand behind since=. */
static bool
since_is_usable(const char *since)
{
	return strcmp(since, "now") == 0 ||
	    (*since != '\0' && since[strspn(since, "0123456789")] == '\0');
}

static bool
has_nul(const struct url_query *q)
{
	size_t i;

	for (i = 0; i < q->count; i++)
		if (strlen(q->pairs[i].name) != q->pairs[i].name_len ||
		    strlen(q->pairs[i].value) != q->pairs[i].value_len)
			return true;
	return false;
}

/*
 * The one cursor of a query: its key and value, or -1. "" counts as absent.
 */
static int
query_cursor(const struct url_query *q, const char **key, const char **value)
{
	const char *position = url_query_get(q, "position");
	const char *since = url_query_get(q, "since");
	bool has_position = position != NULL && *position != '\0';
	bool has_since = since != NULL && *since != '\0';

	if (has_position == has_since || url_query_count(q, "position") > 1 ||
	    url_query_count(q, "since") > 1)
		return -1;
	if (has_since && !since_is_usable(since))
		return -1;
	*key = has_position ? "position" : "since";
	*value = has_position ? position : since;
	return 0;
}

static void
write_query(const struct filters *f, const char *key, const char *value,
    struct buffer *b)
{
	filters_write_query(f, 0, FILTER_TYPES, b);
	if (key != NULL) {
		buffer_printf(b, "%s=", key);
		url_escape(b, value, strlen(value));
		buffer_add_char(b, '&');
	}
	filters_write_query(f, FILTER_TYPES, FILTER_COUNT, b);
	if (b->len > 0)
		b->bytes[--b->len] = '\0'; /* the last & */
}

/* Take the query of a URL over, unless it is none we can send. */
static int
follow_query(struct cursor *c, const struct url_query *q)
{
	const char *key, *value;
	struct buffer b = {0};
	struct filters f;
	bool is_present;

	if (has_nul(q) || query_cursor(q, &key, &value) == -1 ||
	    filters_of_query(&f, q) == -1)
		return -1;
	write_query(&f, key, value, &b);
	filters_free(&f);
	is_present = strcmp(key, "since") == 0 && strcmp(value, "now") == 0;
	cursor_free(c);
	c->kind = CURSOR_FOLLOWED;
	c->is_present = is_present;
	c->text = buffer_take(&b, NULL);
	return 0;
}

enum cursor_follow
cursor_follow(struct cursor *c, const char *url, size_t len, const char *origin)
{
	struct url_query q;
	struct url u;
	int result;

	if (url_check_continuation(url, len, origin, NULL) == -1 ||
	    url_parse(url, len, &u, NULL) == -1)
		return FOLLOW_FOREIGN;
	if (url_query_parse(u.query.bytes, u.query.len, &q, NULL) == -1)
		return FOLLOW_UNUSABLE;
	result = follow_query(c, &q);
	url_query_free(&q);
	return result == 0 ? FOLLOW_OK : FOLLOW_UNUSABLE;
}

const char *
cursor_entry_class(const char *url, size_t len)
{
	const char *since, *class = "unknown";
	struct url_query q;
	struct url u;

	if (url_parse(url, len, &u, NULL) == -1 ||
	    url_query_parse(u.query.bytes, u.query.len, &q, NULL) == -1)
		return class;
	since = url_query_get(&q, "since");
	if (since != NULL && *since != '\0' && since_is_usable(since))
		class = strcmp(since, "now") == 0 ? "present" : "replay";
	url_query_free(&q);
	return class;
}

void
cursor_write_query(
    const struct cursor *c, const struct filters *f, struct buffer *b)
{
	char id[24];

	switch (c->kind) {
	case CURSOR_BARE:
		write_query(f, NULL, NULL, b);
		break;
	case CURSOR_SINCE:
		(void)snprintf(id, sizeof(id), "%" PRId64, c->since);
		write_query(f, "since", id, b);
		break;
	case CURSOR_POSITION:
		write_query(f, "position", c->text, b);
		break;
	case CURSOR_FOLLOWED:
		buffer_add_text(b, c->text);
		break;
	}
}
