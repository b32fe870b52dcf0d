#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/feed.h"
#include "tests/simulator/messages.h"
#include "tests/simulator/render.h"
#include "tests/simulator/sim.h"

#define HTTP_CREATED 201
#define HTTP_FORBIDDEN 403
#define HTTP_UNPROCESSABLE 422

/* Basecamp emits what it stores; the agent's own is filtered out by it. */
static void
write_emit(const char *event_type, const struct recording *r, int64_t caller,
    json_t *details)
{
	if (!sim.options.write_events) {
		json_decref(details);
		return;
	}
	(void)feed_emit_plain(event_type, r->bucket_id, r->id, caller, details,
	    LANE_POLL | LANE_LIVE);
}

/* The body's content, or NULL with the refusal given when it is blank. */
static const char *
write_content(struct exchange *x)
{
	const char *content =
	    json_string_value(json_object_get(x->body, "content"));

	if (content != NULL && content[strspn(content, " \t\r\n")] != '\0')
		return content;
	answer_error(x, HTTP_UNPROCESSABLE, NULL, "content can't be blank");
	return NULL;
}

static void
content_store(struct recording *r, const char *content, bool is_rich)
{
	char *wrapped;

	if (!is_rich || !sim.options.wrap_content) {
		text_replace(&r->content, content);
		return;
	}
	xasprintf(&wrapped, "<div>\n%s<br />\n</div>", content);
	free(r->content);
	r->content = wrapped;
}

static void
title_reply(struct recording *r, const struct recording *on)
{
	free(r->title);
	xasprintf(&r->title, "Re: %s", on->title);
}

void
comment_create(struct exchange *x)
{
	const struct recording *on = world_recording(x->ids[1], x->caller);
	const char *content;
	struct recording *r;

	if (on == NULL || !recording_takes_comments(on)) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	content = write_content(x);
	if (content == NULL)
		return;
	r = world_add_recording(0, "Comment", on->bucket_id, on->id, x->caller);
	title_reply(r, on);
	content_store(r, content, true);
	messages_add(
	    "comment", r->id, on->id, 0, x->caller, content, r->created_at);
	write_emit("comment.created", r, x->caller, NULL);
	answer_json(x, HTTP_CREATED, recording_json(r));
}

void
comment_update(struct exchange *x)
{
	struct recording *r = world_recording(x->ids[1], x->caller);
	char now[STAMP_SIZE];
	const char *content;

	if (r == NULL || strcmp(r->type, "Comment") != 0) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	if (r->creator_id != x->caller) {
		answer_empty(x, HTTP_FORBIDDEN);
		return;
	}
	content = write_content(x);
	if (content == NULL)
		return;
	content_store(r, content, true);
	text_replace(&r->updated_at, stamp_now(now));
	write_emit("comment.content_changed", r, x->caller, NULL);
	answer_json(x, HTTP_OK, recording_json(r));
}

/* Plain text unless the body says it is HTML; NULL: neither. */
static const char *
line_type(const struct exchange *x)
{
	json_t *type = json_object_get(x->body, "content_type");

	if (type == NULL ||
	    (json_is_string(type) &&
		strcmp(json_string_value(type), "text/plain") == 0))
		return "Chat::Lines::Text";
	if (json_is_string(type) &&
	    strcmp(json_string_value(type), "text/html") == 0)
		return "Chat::Lines::RichText";
	return NULL;
}

void
line_create(struct exchange *x)
{
	const struct recording *chat = world_recording(x->ids[1], x->caller);
	const char *type = line_type(x), *content;
	struct recording *r;

	if (chat == NULL || strcmp(chat->type, "Chat::Transcript") != 0) {
		answer_empty(x, HTTP_NOTFOUND);
		return;
	}
	if (type == NULL) {
		answer_error(
		    x, HTTP_UNPROCESSABLE, NULL, "content_type is unknown");
		return;
	}
	content = write_content(x);
	if (content == NULL)
		return;
	r = world_add_recording(0, type, chat->bucket_id, chat->id, x->caller);
	text_replace(&r->title, chat->title);
	content_store(r, content, strcmp(type, "Chat::Lines::RichText") == 0);
	messages_add(
	    "chat_line", r->id, chat->id, 0, x->caller, content, r->created_at);
	write_emit("chat.line.created", r, x->caller, NULL);
	answer_json(x, HTTP_CREATED, recording_json(r));
}

static void
boost_add(struct exchange *x, const struct recording *r, json_t *event)
{
	json_int_t event_id = json_integer_value(json_object_get(event, "id"));
	const char *content = write_content(x);
	struct boost *b;

	if (content == NULL)
		return;
	b = world_add_boost(r->id, event_id, x->caller, content);
	messages_add(
	    "boost", b->id, r->id, event_id, x->caller, content, b->created_at);
	write_emit("boost.created", r, x->caller,
	    json_pack("{s:I,s:o,s:n}", "boost_id", (json_int_t)b->id,
		"boosted_event_id",
		event_id == 0 ? json_null() : json_integer(event_id),
		"boosted_event_type"));
	answer_json(x, HTTP_CREATED, boost_json(b));
}

void
boost_create(struct exchange *x)
{
	const struct recording *r = world_recording(x->ids[1], x->caller);

	if (r == NULL)
		answer_empty(x, HTTP_NOTFOUND);
	else
		boost_add(x, r, NULL);
}

static json_t *
history_find(const struct recording *r, int64_t event_id)
{
	json_t *row;
	size_t i;

	json_array_foreach (r->events, i, row) {
		if (json_integer_value(json_object_get(row, "id")) == event_id)
			return row;
	}
	return NULL;
}

static bool
is_boostable(json_t *event)
{
	static const char *const actions[] = {
	    "completed", "adopted", "column_changed"};
	const char *action =
	    json_string_value(json_object_get(event, "action"));
	size_t i;

	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (action != NULL && strcmp(action, actions[i]) == 0)
			return true;
	}
	return false;
}

void
event_boost_create(struct exchange *x)
{
	const struct recording *r = world_recording(x->ids[1], x->caller);
	json_t *event = r == NULL ? NULL : history_find(r, x->ids[2]);

	if (event == NULL)
		answer_empty(x, HTTP_NOTFOUND);
	else if (!is_boostable(event))
		answer_empty(x, HTTP_FORBIDDEN);
	else
		boost_add(x, r, event);
}
