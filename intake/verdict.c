#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "intake/verdict.h"

#define NS_PER_MS INT64_C(1000000)
#define URL_MAX 2048
#define TEXT_MAX 4096 /* of the short members of a snapshot */
#define TAIL_MAX ((size_t)64 * 1024)

static const char *const state_names[] = {
    [VERDICT_ADMITTED] = "admitted",
    [VERDICT_BLOCKED] = "blocked",
    [VERDICT_DISCARDED] = "discarded",
};

/* ---- where to answer ---------------------------------------------------- */

static int64_t
place_campfire(const struct pointer *p, const struct summary *s)
{
	(void)p;
	return s->campfire_id;
}

static int64_t
place_parent(const struct pointer *p, const struct summary *s)
{
	(void)p;
	return s->parent_id;
}

static int64_t
place_itself(const struct pointer *p, const struct summary *s)
{
	(void)s;
	return p->recording_id;
}

/* By event type; the last row is for all others. */
static const struct {
	const char *event_type;
	const char *key;
	const char *reply_kind;
	int64_t (*recording)(const struct pointer *p, const struct summary *s);
} places[] = {
    {"chat.line.created", "campfire", "chat_line", place_campfire},
    {"comment.created", "recording", "comment", place_parent},
    {NULL, "recording", "comment", place_itself},
};

void
verdict_place(
    struct verdict *v, const struct pointer *p, const struct summary *s)
{
	size_t i;

	for (i = 0; places[i].event_type != NULL &&
	     strcmp(places[i].event_type, p->event_type) != 0;
	     i++)
		;
	v->reply_kind = places[i].reply_kind;
	v->reply_recording_id = places[i].recording(p, s);
	(void)snprintf(v->conversation_key, sizeof(v->conversation_key),
	    "%s:%" PRId64, places[i].key, v->reply_recording_id);
}

/* ---- the snapshot ------------------------------------------------------- */

static void
write_member(struct buffer *b, const char *name, const char *text, size_t len)
{
	buffer_printf(b, "%s\"%s\":", b->len > 1 ? "," : "", name);
	json_write_string(b, text, len);
}

static void
write_short(struct buffer *b, const char *name, const struct json_text *text)
{
	write_member(
	    b, name, text->bytes, utf8_cut(text->bytes, text->len, TEXT_MAX));
}

/* A name that there is, and only then. */
static void
write_name(struct buffer *b, const char *name, const struct json_text *text)
{
	if (text->len > 0)
		write_short(b, name, text);
}

/* As much of the content as fits; escapes make it longer than it is. */
static void
write_content(struct buffer *b, const struct json_text *content)
{
	size_t before = b->len, len = content->len;

	for (;;) {
		write_member(b, "content", content->bytes, len);
		if (b->len <= SNAPSHOT_MAX - TAIL_MAX)
			break;
		b->len = before;
		len = utf8_cut(content->bytes, content->len, len / 2);
	}
	if (len < content->len)
		buffer_add_text(b, ",\"content_truncated\":true");
}

void
verdict_snapshot(struct buffer *b, const struct snapshot_facts *facts)
{
	const struct summary *s = facts->summary;

	buffer_add_char(b, '{');
	write_short(b, "type", &s->type);
	write_short(b, "title", &s->title);
	write_short(b, "app_url", &s->app_url);
	write_content(b, &s->content);
	write_short(b, "updated_at", &s->updated_at);
	write_name(b, "project_name", &s->project_name);
	if (facts->names_requester)
		write_name(b, "requester_name", &s->creator_name);
	buffer_printf(b, ",\"role\":\"%s\",\"owner\":%s}",
	    facts->role == PERSON_OPERATOR ? "operator" : "participant",
	    facts->is_owner ? "true" : "false");
}

/* ---- blocked, and when again -------------------------------------------- */

/* What is not here, or not timed, waits for a person's redispatch. */
static const struct {
	const char *reason;
	bool is_timed, is_bounded; /* by the window */
} schedule[] = {
    {"read_failed", true, true},
    {"read_unresolved", true, true},
    {"delta_unverified", true, true},
    {"trust_unverified", true, true},
    {"throttled", true, true},
    {"config_unreadable", true, false},
    {"bucket_mismatch", false, false},
    {"unroutable", false, false},
    {"no_route", false, false},
    {"rule_not_served", false, false},
};

int64_t
verdict_next_retry(const char *reason, const struct retry_clock *c)
{
	int64_t next = c->now + c->interval;
	size_t i;

	for (i = 0; i < sizeof(schedule) / sizeof(schedule[0]); i++)
		if (strcmp(schedule[i].reason, reason) == 0)
			break;
	if (i == sizeof(schedule) / sizeof(schedule[0]) ||
	    !schedule[i].is_timed)
		return 0;
	if (c->retry_at > next)
		next = c->retry_at;
	if (schedule[i].is_bounded && next > c->since + c->window)
		return 0;
	return next;
}

/* ---- the message -------------------------------------------------------- */

static const char *
text_or_none(const char *text)
{
	return text != NULL ? text : "";
}

static void
fill_retry(const struct verdict *v, const struct pointer *p,
    const int64_t *limits, struct verdict_stamps *stamps)
{
	struct retry_clock c = {
	    .retry_at = v->retry_at_ns,
	    .interval = limits[LIMIT_blocked_retry] * NS_PER_MS,
	    .window = limits[LIMIT_blocked_window] * NS_PER_MS,
	};
	int64_t next;

	*stamps->retry_at = *stamps->next_retry_at = '\0';
	if (v->state != VERDICT_BLOCKED)
		return;
	c.now = c.since = clock_wall_ns();
	/* The window runs from the first verdict of the same reason. */
	if (strcmp(p->blocked_for, v->reason) == 0)
		c.since = p->blocked_since_ns;
	next = verdict_next_retry(v->reason, &c);
	if (next != 0)
		clock_stamp_ns(next, stamps->next_retry_at);
	if (v->retry_at_ns != 0)
		clock_stamp_ns(v->retry_at_ns, stamps->retry_at);
}

void
verdict_fill(const struct verdict *v, const struct pointer *p,
    const int64_t *limits, struct verdict_stamps *stamps,
    struct msg_verdict *out)
{
	const char *url = text_or_none(v->recording_url);

	fill_retry(v, p, limits, stamps);
	*out = (struct msg_verdict){
	    .event_id = p->event_id,
	    .revision = p->revision,
	    .rerun = p->rerun,
	    .state = state_names[v->state],
	    .reason = text_or_none(v->reason),
	    .trigger = text_or_none(v->trigger),
	    .acknowledge = v->acknowledge,
	    .conversation_key = v->conversation_key,
	    .reply_kind = text_or_none(v->reply_kind),
	    .reply_recording_id = v->reply_recording_id,
	    .routed = v->route != NULL,
	    .route = v->route != NULL ? v->route->path : "",
	    .class = v->route != NULL ? v->route->class : "",
	    .recording_url = strlen(url) <= URL_MAX ? url : "",
	    .requester_id = v->requester_id,
	    .retry_at = stamps->retry_at,
	    .next_retry_at = stamps->next_retry_at,
	    .snapshot = {v->snapshot.bytes, v->snapshot.len},
	};
}
