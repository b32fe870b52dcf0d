#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/http.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "intake/page.h"

/* More rows than a page ever has, in case the server's limit moves. */
#define ROWS_MAX 10000

static const struct json_rules page_rules = {
    .max_bytes = HTTP_BODY_MAX,
    .max_depth = JSON_DEPTH_MOST,
    .max_members = 2000000,
    .flags = JSON_RULE_NO_FFFD_NAMES,
    .exempt = "details",
};

bool
page_text_is_damaged(const struct json_text *text)
{
	return memmem(text->bytes, text->len, UTF8_REPLACEMENT_TEXT,
		   sizeof(UTF8_REPLACEMENT_TEXT) - 1) != NULL;
}

static int
read_text(const json_t *object, const char *name, size_t most, const char **out,
    struct error *e)
{
	struct json_text text = {0};

	if (json_member_string(object, name, JSON_REQUIRED, &text, e) == -1)
		return -1;
	if (text.len == 0 || text.len > most || text.has_nul ||
	    page_text_is_damaged(&text))
		return error_set(e, "member \"%s\" is no usable text", name);
	*out = text.bytes;
	return 0;
}

static int
read_created_at(const json_t *object, struct page_row *row, struct error *e)
{
	const char *text;
	int64_t ns;

	if (read_text(object, "created_at", 64, &text, e) == -1)
		return -1;
	if (clock_parse(text, &ns) == -1 || ns == 0)
		return error_set(e, "member \"created_at\" is no time");
	clock_stamp_ns(ns, row->stamp);
	row->record.created_at = row->stamp;
	return 0;
}

/* Members that need not be here; what is odd in them is ignored. */
static void
read_extras(const json_t *object, struct msg_record *r)
{
	const json_t *visible = json_object_get(object, "visible_to_clients");
	struct json_text actor = {0};

	(void)json_member_string(
	    object, "actor_type", JSON_MAY_BE_NULL, &actor, NULL);
	if (actor.bytes != NULL && actor.len <= 32 && !actor.has_nul)
		r->actor_type = actor.bytes;
	if (json_is_boolean(visible))
		r->visible_to_clients =
		    (struct opt){true, json_is_true(visible)};
}

/* The details' bytes as they were served, out of the row's. */
static int
read_details(const json_t *object, const struct json_span *raw,
    struct msg_record *r, struct error *e)
{
	const json_t *details = json_object_get(object, "details");
	struct json_span span;

	if (details == NULL || json_is_null(details))
		return 0;
	if (json_span(raw->bytes, raw->len, "details", &span) == -1 ||
	    span.len > PAGE_DETAILS_MAX)
		return error_set(e, "member \"details\" is too large");
	r->details = (struct blob){span.bytes, span.len};
	return 0;
}

static int
read_row(const json_t *object, const struct json_span *raw,
    struct page_row *row, struct error *e)
{
	struct msg_record *r = &row->record;

	if (!json_is_object(object))
		return error_set(e, "is no object");
	if (json_member_id(object, "id", JSON_REQUIRED, &r->event_id, e) ||
	    json_member_id(
		object, "bucket_id", JSON_REQUIRED, &r->bucket_id, e) ||
	    json_member_id(
		object, "creator_id", JSON_REQUIRED, &r->creator_id, e) ||
	    json_member_id(
		object, "recording_id", JSON_REQUIRED, &r->recording_id, e) ||
	    json_member_id(object, "performed_by_id", JSON_MAY_BE_NULL,
		&r->performed_by_id.value, e))
		return -1;
	r->performed_by_id.has = r->performed_by_id.value != 0;
	if (read_text(object, "kind", 256, &r->kind, e) ||
	    read_text(object, "action", 256, &r->action, e) ||
	    read_text(object, "event_type", 256, &r->event_type, e) ||
	    read_created_at(object, row, e))
		return -1;
	r->lane = "poll";
	read_extras(object, r);
	return read_details(object, raw, r, e);
}

static int
read_rows(struct page *page, const json_t *events, struct error *e)
{
	struct json_span array, raw;
	struct error why;
	size_t i, at = 0;

	if (json_array_size(events) > ROWS_MAX)
		return error_set(e, "more than %d events", ROWS_MAX);
	if (json_span(page->body, strlen(page->body), "events", &array) == -1)
		return error_set(e, "no events");
	page->count = json_array_size(events);
	page->rows = xcalloc(page->count + 1, sizeof(*page->rows));
	for (i = 0; i < page->count; i++) {
		if (!json_span_next(&array, &at, &raw))
			return error_set(e, "event %zu cannot be found", i);
		if (read_row(json_array_get(events, i), &raw, &page->rows[i],
			&why) == -1)
			return error_set(e, "event %zu: %s", i, why.text);
		if (page->rows[i].record.event_id > page->highest)
			page->highest = page->rows[i].record.event_id;
	}
	return 0;
}

static int
read_next(struct page *page, struct error *e)
{
	struct json_text next = {0};

	if (json_member_string(
		page->tree, "next", JSON_MAY_BE_NULL, &next, e) == -1)
		return -1;
	if (next.bytes == NULL || next.len == 0)
		return 0;
	if (next.has_nul || page_text_is_damaged(&next))
		return error_set(e, "member \"next\" is no usable text");
	page->next = next.bytes;
	page->next_len = next.len;
	return 0;
}

static int
read_page(struct page *page, struct error *e)
{
	json_t *events;

	if (!json_is_object(page->tree))
		return error_set(e, "not an object");
	if (read_text(page->tree, "position", PAGE_POSITION_MAX,
		&page->position, e) == -1 ||
	    read_next(page, e) == -1 ||
	    json_member_array(
		page->tree, "events", JSON_REQUIRED, &events, e) == -1)
		return -1;
	return read_rows(page, events, e);
}

struct page *
page_parse(const char *body, size_t len, struct error *e)
{
	struct page *page = xcalloc(1, sizeof(*page));

	page->body = xstrndup(body, len);
	page->tree = json_read(body, len, &page_rules, e);
	if (page->tree != NULL && read_page(page, e) == 0)
		return page;
	page_free(page);
	return NULL;
}

void
page_free(struct page *page)
{
	if (page == NULL)
		return;
	json_decref(page->tree);
	free(page->rows);
	free(page->body);
	free(page);
}
