#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/filter.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RAW_MAX (16 * 1024)
#define ELEMENTS_MAX 1000
#define IDS_MAX 100

struct dimension {
	const char *name;
	json_t *(*value)(const char *text, int64_t caller);
	size_t max;
	/* Does ELEMENT name what the event has? */
	bool (*is)(const struct feed_event *event, json_t *element);
	bool excludes;
};

static json_t *
type_value(const char *text, int64_t caller)
{
	if (strchr(text, '.') == NULL || strpbrk(text, " \t\r\n\"'") != NULL)
		return NULL;
	return json_string(text);
}

static json_t *
id_value(const char *text, int64_t caller)
{
	char *end;
	long long id;

	errno = 0;
	id = strtoll(text, &end, 10);
	if (strspn(text, "0123456789") != strlen(text) || *text == '\0' ||
	    errno != 0 || id <= 0)
		return NULL;
	return json_integer(id);
}

static json_t *
performer_value(const char *text, int64_t caller)
{
	if (strcmp(text, "self") == 0)
		return json_integer(caller);
	return id_value(text, caller);
}

static json_t *
actor_value(const char *text, int64_t caller)
{
	if (strcmp(text, "person") != 0 && strcmp(text, "agent") != 0)
		return NULL;
	return json_string(text);
}

static bool
type_is(const struct feed_event *event, json_t *element)
{
	return strcmp(event->event_type, json_string_value(element)) == 0;
}

static bool
bucket_is(const struct feed_event *event, json_t *element)
{
	return event->bucket_id == json_integer_value(element);
}

static bool
creator_is(const struct feed_event *event, json_t *element)
{
	return event->creator_id == json_integer_value(element);
}

static bool
performer_is(const struct feed_event *event, json_t *element)
{
	int64_t performer = event->performed_by_id != 0 ? event->performed_by_id
							: event->creator_id;

	return performer == json_integer_value(element);
}

static bool
actor_is(const struct feed_event *event, json_t *element)
{
	return strcmp(event->actor_type, json_string_value(element)) == 0;
}

/* In the order in which a bad one is reported. */
static const struct dimension dimensions[] = {
    {"types", type_value, ELEMENTS_MAX, type_is, false},
    {"buckets", id_value, IDS_MAX, bucket_is, false},
    {"creators", id_value, IDS_MAX, creator_is, false},
    {"performers", performer_value, IDS_MAX, performer_is, false},
    {"exclude_performers", performer_value, IDS_MAX, performer_is, true},
    {"actor_types", actor_value, ELEMENTS_MAX, actor_is, false},
};

static int
element_compare(const void *left, const void *right)
{
	json_t *const *a = left, *const *b = right;
	json_int_t x, y;

	if (json_is_string(*a))
		return strcmp(json_string_value(*a), json_string_value(*b));
	x = json_integer_value(*a);
	y = json_integer_value(*b);
	return (x > y) - (x < y);
}

/* Sorted and without repeats; the elements are moved out of LIST. */
static json_t *
list_canonical(json_t *list)
{
	size_t i, count = json_array_size(list);
	json_t **elements = xcalloc(count + 1, sizeof(json_t *));
	json_t *out = json_array();

	for (i = 0; i < count; i++)
		elements[i] = json_array_get(list, i);
	qsort(elements, count, sizeof(json_t *), element_compare);
	for (i = 0; i < count; i++) {
		if (i == 0 || !json_equal(elements[i], elements[i - 1]))
			json_array_append(out, elements[i]);
	}
	free(elements);
	json_decref(list);
	return out;
}

static json_t *
dimension_parse(const struct dimension *d, const char *raw, int64_t caller)
{
	json_t *list = json_array(), *value = NULL;
	const char *comma;
	char *piece;

	do {
		comma = raw + strcspn(raw, ",");
		piece = xstrndup(raw, (size_t)(comma - raw));
		value = d->value(piece, caller);
		free(piece);
		if (value != NULL)
			json_array_append_new(list, value);
		raw = comma + 1;
	} while (value != NULL && *comma == ',');
	if (value == NULL || json_array_size(list) > d->max) {
		json_decref(list);
		return NULL;
	}
	return list_canonical(list);
}

json_t *
filter_parse(json_t *query, int64_t caller, struct error *e)
{
	json_t *filter = json_object(), *list;
	const char *raw;
	size_t i;

	for (i = 0; i < COUNT(dimensions); i++) {
		raw = json_string_value(
		    json_object_get(query, dimensions[i].name));
		if (raw == NULL)
			continue;
		list = strlen(raw) > RAW_MAX
		    ? NULL
		    : dimension_parse(&dimensions[i], raw, caller);
		if (list == NULL) {
			(void)error_set(
			    e, "Invalid %s filter", dimensions[i].name);
			json_decref(filter);
			return NULL;
		}
		json_object_set_new(filter, dimensions[i].name, list);
	}
	return filter;
}

static bool
dimension_passes(
    const struct dimension *d, json_t *list, const struct feed_event *event)
{
	size_t i;
	json_t *element;

	if (list == NULL)
		return true;
	json_array_foreach (list, i, element) {
		if (d->is(event, element))
			return !d->excludes;
	}
	return d->excludes;
}

bool
filter_passes(json_t *filter, const struct feed_event *event)
{
	size_t i;

	for (i = 0; i < COUNT(dimensions); i++) {
		if (!dimension_passes(&dimensions[i],
			json_object_get(filter, dimensions[i].name), event))
			return false;
	}
	return true;
}

void
filter_digest(json_t *filter, char out[FILTER_DIGEST_SIZE])
{
	char *text = json_dumps(filter, JSON_COMPACT | JSON_SORT_KEYS);
	unsigned char hash[EVP_MAX_MD_SIZE] = {0};
	unsigned int i;

	(void)EVP_Digest(text, strlen(text), hash, NULL, EVP_sha256(), NULL);
	free(text);
	for (i = 0; i < FILTER_DIGEST_SIZE / 2; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

void
filter_copy_raw(json_t *query, json_t *to)
{
	json_t *raw;
	size_t i;

	for (i = 0; i < COUNT(dimensions); i++) {
		raw = json_object_get(query, dimensions[i].name);
		if (raw != NULL)
			json_object_set(to, dimensions[i].name, raw);
	}
}
