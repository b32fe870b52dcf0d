#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/digest.h"
#include "common/json.h"
#include "common/xmalloc.h"
#include "intake/filters.h"

static const struct {
	const char *name;
	bool is_words;
} dimensions[] = {
    [FILTER_ACTOR_TYPES] = {"actor_types", true},
    [FILTER_BUCKETS] = {"buckets", false},
    [FILTER_CREATORS] = {"creators", false},
    [FILTER_EXCLUDE_PERFORMERS] = {"exclude_performers", false},
    [FILTER_PERFORMERS] = {"performers", false},
    [FILTER_TYPES] = {"types", true},
};
static_assert(sizeof(dimensions) / sizeof(dimensions[0]) == FILTER_COUNT,
    "a name for each dimension");

const char *
filter_name(enum filter f)
{
	return dimensions[f].name;
}

void
filters_add_id(struct filters *f, enum filter which, int64_t id)
{
	config_ids_add(&f->ids[which], id);
}

void
filters_add_word(struct filters *f, enum filter which, const char *word)
{
	struct filter_words *w = &f->words[which];
	size_t i, at;

	for (at = 0; at < w->count && strcmp(w->list[at], word) < 0; at++)
		;
	if (at < w->count && strcmp(w->list[at], word) == 0)
		return;
	w->list = xreallocarray(w->list, w->count + 1, sizeof(*w->list));
	for (i = w->count; i > at; i--)
		w->list[i] = w->list[i - 1];
	w->list[at] = xstrdup(word);
	w->count++;
}

void
filters_free(struct filters *f)
{
	size_t i, j;

	for (i = 0; i < FILTER_COUNT; i++) {
		free(f->ids[i].list);
		for (j = 0; j < f->words[i].count; j++)
			free(f->words[i].list[j]);
		free(f->words[i].list);
	}
	memset(f, 0, sizeof(*f));
}

int
filters_of_config(struct filters *f, const struct config *c, struct error *e)
{
	size_t i;

	memset(f, 0, sizeof(*f));
	if (c->scope.count > FILTER_IDS_MAX)
		return error_set(
		    e, "--project: more than %d of them", FILTER_IDS_MAX);
	for (i = 0; i < c->scope.count; i++)
		filters_add_id(f, FILTER_BUCKETS, c->scope.list[i]);
	filters_add_id(f, FILTER_EXCLUDE_PERFORMERS, c->agent_id);
	/* Agents that the operator named may ask too, if they are served. */
	if (c->agents.count == 0)
		filters_add_word(f, FILTER_ACTOR_TYPES, "person");
	return 0;
}

/* A decimal id above 0, the whole of TEXT. */
static int
parse_id(const char *text, int64_t *id)
{
	int64_t n = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' ||
		    __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, *text - '0', &n))
			return -1;
	}
	*id = n;
	return n > 0 ? 0 : -1;
}

/* Each piece of a list between commas. */
static int
add_list(struct filters *f, enum filter which, const char *list)
{
	char *copy = xstrdup(list), *rest = copy, *piece;
	int64_t id;
	int result = 0;

	while (result == 0 && (piece = strsep(&rest, ",")) != NULL) {
		if (dimensions[which].is_words)
			filters_add_word(f, which, piece);
		else if (parse_id(piece, &id) == 0)
			filters_add_id(f, which, id);
		else
			result = -1;
	}
	free(copy);
	return result;
}

int
filters_of_query(struct filters *f, const struct url_query *q)
{
	const char *value;
	int i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < FILTER_COUNT; i++) {
		value = url_query_get(q, filter_name(i));
		if (value == NULL || *value == '\0')
			continue;
		if (url_query_count(q, filter_name(i)) > 1 ||
		    add_list(f, i, value) == -1) {
			filters_free(f);
			return -1;
		}
	}
	return 0;
}

/* A list's elements, joined by commas; as JSON or as plain text. */
static void
write_list(
    const struct filters *f, enum filter which, bool is_json, struct buffer *b)
{
	const struct filter_words *w = &f->words[which];
	const struct config_ids *ids = &f->ids[which];
	size_t i;

	for (i = 0; i < ids->count; i++)
		buffer_printf(b, "%s%" PRId64, i > 0 ? "," : "", ids->list[i]);
	for (i = 0; i < w->count; i++) {
		if (i > 0)
			buffer_add_char(b, ',');
		if (is_json)
			json_write_string(b, w->list[i], strlen(w->list[i]));
		else
			buffer_add_text(b, w->list[i]);
	}
}

static bool
is_present(const struct filters *f, enum filter which)
{
	return f->ids[which].count > 0 || f->words[which].count > 0;
}

void
filters_write_query(const struct filters *f, enum filter first, enum filter end,
    struct buffer *b)
{
	struct buffer list;
	int i;

	for (i = first; i < (int)end; i++) {
		if (!is_present(f, i))
			continue;
		list = (struct buffer){0};
		write_list(f, i, false, &list);
		buffer_printf(b, "%s=", filter_name(i));
		url_escape(b, list.bytes, list.len);
		buffer_add_char(b, '&');
		buffer_free(&list);
	}
}

void
filters_write_json(const struct filters *f, struct buffer *b)
{
	const char *before = "";
	int i;

	buffer_add_char(b, '{');
	for (i = 0; i < FILTER_COUNT; i++) {
		if (!is_present(f, i))
			continue;
		buffer_printf(b, "%s\"%s\":[", before, filter_name(i));
		write_list(f, i, true, b);
		buffer_add_char(b, ']');
		before = ",";
	}
	buffer_add_char(b, '}');
}

void
filters_digest(const struct filters *f, char out[static FILTER_DIGEST_SIZE])
{
	char hex[DIGEST_HEX_SIZE];
	struct buffer b = {0};

	filters_write_json(f, &b);
	digest_sha256_hex(b.bytes, b.len, hex);
	(void)snprintf(out, FILTER_DIGEST_SIZE, "%.16s", hex);
	buffer_free(&b);
}

static char *
key_text(const char *origin, const struct config *c, const char *filter_key)
{
	struct buffer b = {0};

	buffer_add_char(&b, '[');
	json_write_string(&b, origin, strlen(origin));
	buffer_printf(&b,
	    ",\"%" PRId64 "\",\"basecamp-connect-%" PRId64 "\",\"%s\"]",
	    c->account_id, c->agent_id, filter_key);
	return buffer_take(&b, NULL);
}

void
feed_key_make(struct feed_key *key, const char *origin, const struct config *c,
    const struct filters *f)
{
	char filter_key[8 + FILTER_DIGEST_SIZE], digest[FILTER_DIGEST_SIZE];

	filters_digest(f, digest);
	(void)snprintf(filter_key, sizeof(filter_key), "srv2-%s", digest);
	key->flat = key_text(origin, c, filter_key);
	key->lineage = key_text(origin, c, "");
}

void
feed_key_free(struct feed_key *key)
{
	free(key->flat);
	free(key->lineage);
	*key = (struct feed_key){0};
}
