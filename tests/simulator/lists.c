#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/render.h"
#include "tests/simulator/sim.h"

/* Rows of page 1, 2, 3, and of every later one. */
static const size_t page_sizes[] = {15, 30, 50, 100};

static size_t
page_size(size_t page)
{
	size_t last = sizeof(page_sizes) / sizeof(page_sizes[0]);

	return page_sizes[page < last ? page - 1 : last - 1];
}

/* Index of the first row of PAGE, counted from 1. */
static size_t
page_start(size_t page)
{
	size_t start = 0, i;

	for (i = 1; i < page; i++)
		start += page_size(i);
	return start;
}

/* The request's own URL with another page; to be freed. */
static char *
page_url(const struct exchange *x, size_t page)
{
	char *url, *longer, *value;
	const char *key;
	json_t *text;

	xasprintf(&url, "%s%s?page=%zu", sim.url, x->path, page);
	json_object_foreach (x->query, key, text) {
		if (strcmp(key, "sort") != 0 && strcmp(key, "direction") != 0)
			continue;
		value = evhttp_uriencode(json_string_value(text), -1, 1);
		xasprintf(&longer, "%s&%s=%s", url, key, value);
		free(value);
		free(url);
		url = longer;
	}
	return url;
}

static json_t *
list_slice(json_t *list, size_t start, size_t count)
{
	json_t *slice = json_array();
	size_t i;

	for (i = start; i < start + count && i < json_array_size(list); i++)
		json_array_append(slice, json_array_get(list, i));
	return slice;
}

/* Answer a page of LIST (taken over), with Link while there is a next one. */
static void
list_answer_page(struct exchange *x, json_t *list)
{
	size_t page = exchange_page(x), total = json_array_size(list), start;
	char count[24], *url, *link;

	if (page == 0) {
		json_decref(list);
		answer_empty(x, HTTP_BADREQUEST);
		return;
	}
	start = page_start(page);
	(void)snprintf(count, sizeof(count), "%zu", total);
	answer_header(x, "X-Total-Count", count);
	if (start + page_size(page) < total) {
		url = page_url(x, page + 1);
		xasprintf(&link, "<%s>; rel=\"next\"", url);
		answer_header(x, "Link", link);
		free(link);
		free(url);
	}
	answer_json(x, HTTP_OK, list_slice(list, start, page_size(page)));
	json_decref(list);
}

/* Directories come whole, unless a test wants them in pages. */
static void
list_answer(struct exchange *x, json_t *list)
{
	if (sim.options.page_directories)
		list_answer_page(x, list);
	else
		answer_json(x, HTTP_OK, list);
}

void
projects_list(struct exchange *x)
{
	json_t *list = json_array();
	const struct project *p;
	size_t i;

	for (i = 0; i < world.projects.count; i++) {
		p = world.projects.rows[i];
		if (!p->circle && world_is_member(p->id, x->caller))
			json_array_append_new(list, project_json(p));
	}
	list_answer(x, list);
}

void
people_list(struct exchange *x)
{
	const struct project *p = world_project(x->ids[1]);
	json_t *list;
	size_t i;

	if (p == NULL || !world_is_member(p->id, x->caller)) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	list = json_array();
	for (i = 0; i < p->members.count; i++)
		json_array_append_new(list, person_json_of(p->members.ids[i]));
	list_answer(x, list);
}

void
chats_list(struct exchange *x)
{
	json_t *list = json_array();
	const struct recording *r;
	size_t i;

	for (i = 0; i < world.recordings.count; i++) {
		r = world.recordings.rows[i];
		if (strcmp(r->type, "Chat::Transcript") == 0 &&
		    world_is_member(r->bucket_id, x->caller))
			json_array_append_new(list, recording_json(r));
	}
	list_answer(x, list);
}

/* Recordings under PARENT in order of id: all comments, or all lines. */
static json_t *
children_json(int64_t parent, bool lines, bool newest_first)
{
	json_t *list = json_array();
	const struct recording *r;
	size_t i, count = world.recordings.count;

	for (i = 0; i < count; i++) {
		r = world.recordings.rows[newest_first ? count - 1 - i : i];
		if (r->parent_id != parent ||
		    (*r->status != '\0' && strcmp(r->status, "active") != 0))
			continue;
		if (lines ? recording_is_line(r)
			  : strcmp(r->type, "Comment") == 0)
			json_array_append_new(list, recording_json(r));
	}
	return list;
}

void
comments_list(struct exchange *x)
{
	if (world_recording(x->ids[1], x->caller) == NULL)
		answer_empty(x, HTTP_NOTFOUND);
	else
		list_answer_page(x, children_json(x->ids[1], false, false));
}

void
boosts_list(struct exchange *x)
{
	json_t *list;
	const struct boost *b;
	size_t i;

	if (world_recording(x->ids[1], x->caller) == NULL) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	list = json_array();
	for (i = 0; i < world.boosts.count; i++) {
		b = world.boosts.rows[i];
		if (b->recording_id == x->ids[1] && b->event_id == 0)
			json_array_append_new(list, boost_json(b));
	}
	list_answer_page(x, list);
}

void
lines_list(struct exchange *x)
{
	const struct recording *chat = world_recording(x->ids[1], x->caller);
	const char *sort = exchange_query(x, "sort");
	const char *direction = exchange_query(x, "direction");

	if (chat == NULL || strcmp(chat->type, "Chat::Transcript") != 0) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	if ((sort != NULL && strcmp(sort, "created_at") != 0) ||
	    (direction != NULL && strcmp(direction, "asc") != 0 &&
		strcmp(direction, "desc") != 0)) {
		answer_empty(x, HTTP_BADREQUEST);
		return;
	}
	list_answer_page(x,
	    children_json(x->ids[1], true,
		direction != NULL && strcmp(direction, "desc") == 0));
}
