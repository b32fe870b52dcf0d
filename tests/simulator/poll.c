#include <errno.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/filter.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/world.h"

#define HTTP_CONFLICT 409
#define HTTP_GONE 410
#define POSITION_SIZE 96

/*
 * Where a request enters the feed. A position is fake-N, with -f and the
 * digest of its filters when positions are bound, and with -h and the walk's
 * head when that is frozen; the latter only in a walk's own next.
 */
struct cursor {
	int64_t after;
	int64_t head; /* the walk ends there; INT64_MAX: nowhere */
	char digest[FILTER_DIGEST_SIZE]; /* "": not bound */
	bool is_present;                 /* at the head, with no row */
	bool is_position;
};

/* Digits only, within int64_t; END gets what follows. */
static int
number_parse(const char *text, int64_t *value, const char **end)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	*value = strtoll(text, &rest, 10);
	*end = rest;
	return errno == 0 ? 0 : -1;
}

static int
position_parse(const char *text, struct cursor *c)
{
	size_t len = FILTER_DIGEST_SIZE - 1;

	c->is_position = true;
	if (strncmp(text, "fake-", 5) != 0 ||
	    number_parse(text + 5, &c->after, &text) == -1)
		return -1;
	if (strncmp(text, "-f", 2) == 0) {
		text += 2;
		if (strspn(text, "0123456789abcdef") < len)
			return -1;
		memcpy(c->digest, text, len);
		text += len;
	}
	if (strncmp(text, "-h", 2) == 0 &&
	    number_parse(text + 2, &c->head, &text) == -1)
		return -1;
	return *text == '\0' ? 0 : -1;
}

static void
position_write(const struct cursor *c, bool with_head, char out[POSITION_SIZE])
{
	int used = snprintf(out, POSITION_SIZE, "fake-%" PRId64, c->after);

	if (*c->digest != '\0')
		used += snprintf(out + used, POSITION_SIZE - (size_t)used,
		    "-f%s", c->digest);
	if (with_head && c->head != INT64_MAX)
		(void)snprintf(out + used, POSITION_SIZE - (size_t)used,
		    "-h%" PRId64, c->head);
}

/* Returns false when the entry has been answered with a refusal. */
static bool
cursor_enter(struct exchange *x, struct cursor *c)
{
	const char *position = exchange_query(x, "position");
	const char *since = exchange_query(x, "since"), *end;

	if (position != NULL && since != NULL) {
		answer_error(x, HTTP_BADREQUEST, NULL,
		    "Provide either since or position");
		return false;
	}
	if (position != NULL) {
		if (position_parse(position, c) == 0)
			return true;
		answer_error(x, HTTP_BADREQUEST, "invalid_position",
		    "Unrecognized position");
		return false;
	}
	if (since == NULL || *since == '\0' || strcmp(since, "now") == 0) {
		c->is_present = true;
		return true;
	}
	if (number_parse(since, &c->after, &end) == 0 && *end == '\0')
		return true;
	/* Digits that are too many for an id are a position refused. */
	answer_error(x, HTTP_BADREQUEST,
	    strspn(since, "0123456789") == strlen(since) ? "invalid_position"
							 : NULL,
	    "Unrecognized since");
	return false;
}

static int
key_compare(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* This account's events.json with PARAMS, keys in order; to be freed. */
static char *
feed_url(json_t *params)
{
	const char *keys[16], *key;
	size_t count = 0, i;
	json_t *unused;
	char *url, *longer, *value;

	json_object_foreach (params, key, unused) {
		keys[count++] = key;
	}
	qsort(keys, count, sizeof(keys[0]), key_compare);
	xasprintf(&url, "%s/%" PRId64 "/events.json", sim.url, sim.account);
	for (i = 0; i < count; i++) {
		value = evhttp_uriencode(
		    json_string_value(json_object_get(params, keys[i])), -1, 1);
		xasprintf(&longer, "%s%c%s=%s", url, i == 0 ? '?' : '&',
		    keys[i], value);
		free(value);
		free(url);
		url = longer;
	}
	return url;
}

static char *
continuation_url(const struct exchange *x, const char *key, const char *value)
{
	json_t *params = json_pack("{s:s}", key, value);
	char *url;

	filter_copy_raw(x->query, params);
	url = feed_url(params);
	json_decref(params);
	return url;
}

/* A position of other filters is 409, one before the epoch 410. */
static bool
cursor_is_refused(struct exchange *x, const struct cursor *c, json_t *filter)
{
	char digest[FILTER_DIGEST_SIZE], epoch[24], *url;

	filter_digest(filter, digest);
	if (sim.options.bind_positions && *c->digest != '\0' &&
	    strcmp(c->digest, digest) != 0) {
		answer_json(x, HTTP_CONFLICT,
		    json_pack("{s:s,s:s,s:s}", "error",
			"The filters have changed", "position_digest",
			c->digest, "filters_digest", digest));
		return true;
	}
	if (c->is_present || c->after >= sim.options.epoch ||
	    (!c->is_position && c->after == 0))
		return false;
	(void)snprintf(epoch, sizeof(epoch), "%" PRId64, sim.options.epoch);
	url = continuation_url(x, "since", epoch);
	answer_json(x, HTTP_GONE,
	    json_pack("{s:s,s:I,s:s}", "error",
		"This position is older than the feed", "epoch_after_id",
		(json_int_t)sim.options.epoch, "resume", url));
	free(url);
	return true;
}

/*
 * Walk up to a page of poll-lane rows, counted before filtering. Returns
 * true when the walk has more; C moves to the last row walked.
 */
static bool
page_walk(struct cursor *c, json_t *filter, int64_t caller, json_t *events)
{
	size_t i, walked = 0, size = (size_t)sim.options.page_size;
	const struct feed_event *event;

	for (i = row_after(&feed, c->after); i < feed.count; i++) {
		event = feed.rows[i];
		if ((event->lanes & LANE_POLL) == 0)
			continue;
		if (event->id > c->head || !feed_is_ripe(event))
			return false;
		if (walked++ == size)
			return true;
		c->after = event->id;
		if (world_is_member(event->bucket_id, caller) &&
		    filter_passes(filter, event)) {
			json_array_append_new(events, feed_row(event));
			feed_mark_served(event->id);
		}
	}
	return false;
}

static void
page_answer(struct exchange *x, struct cursor *c, json_t *events, bool more)
{
	char position[POSITION_SIZE], next[POSITION_SIZE], *url, *link;
	json_t *page;

	position_write(c, false, position);
	page = json_pack("{s:o,s:s}", "events", events, "position", position);
	if (more) {
		position_write(c, true, next);
		url = continuation_url(x, "position", next);
		json_object_set_new(page, "next", json_string(url));
		xasprintf(&link, "<%s>; rel=\"next\"", url);
		answer_header(x, "Link", link);
		free(link);
		free(url);
	}
	answer_header(x, "X-Feed-Position", position);
	answer_json(x, HTTP_OK, page);
}

void
events_poll(struct exchange *x)
{
	struct cursor c = {.head = INT64_MAX};
	json_t *events = json_array(), *filter;
	struct error e;
	bool more = false;

	filter = filter_parse(x->query, x->caller, &e);
	if (filter == NULL) {
		answer_error(
		    x, HTTP_BADREQUEST, "invalid_filter", "%s", e.text);
	} else if (cursor_enter(x, &c) && !cursor_is_refused(x, &c, filter)) {
		if (c.is_present)
			c.after = feed_head();
		else if (c.after < sim.options.epoch)
			c.after = sim.options.epoch;
		if (sim.options.frozen_head && c.head == INT64_MAX)
			c.head = feed_head();
		if (sim.options.bind_positions)
			filter_digest(filter, c.digest);
		if (!c.is_present)
			more = page_walk(&c, filter, x->caller, events);
		page_answer(x, &c, json_incref(events), more);
	}
	json_decref(filter);
	json_decref(events);
}
