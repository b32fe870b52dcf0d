#include <string.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/simulator/feed.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/world.h"

static const struct row_field event_fields[] = {
    {"id", ROW_NUMBER, offsetof(struct feed_event, id)},
    {"event_type", ROW_TEXT, offsetof(struct feed_event, event_type)},
    {"kind", ROW_TEXT, offsetof(struct feed_event, kind)},
    {"action", ROW_TEXT, offsetof(struct feed_event, action)},
    {"bucket_id", ROW_NUMBER, offsetof(struct feed_event, bucket_id)},
    {"recording_id", ROW_NUMBER, offsetof(struct feed_event, recording_id)},
    {"creator_id", ROW_NUMBER, offsetof(struct feed_event, creator_id)},
    {"performed_by_id", ROW_NUMBER,
	offsetof(struct feed_event, performed_by_id)},
    {"actor_type", ROW_TEXT, offsetof(struct feed_event, actor_type)},
    {"created_at", ROW_TEXT, offsetof(struct feed_event, created_at)},
    {"visible_to_clients", ROW_FLAG,
	offsetof(struct feed_event, visible_to_clients)},
    {"details", ROW_JSON, offsetof(struct feed_event, details)},
    {"added_person_ids", ROW_JSON,
	offsetof(struct feed_event, added_person_ids)},
};
static const char *const event_others[] = {"lanes", "count", NULL};
const struct row_type feed_event_type = {"event", sizeof(struct feed_event),
    event_fields, sizeof(event_fields) / sizeof(event_fields[0]), event_others};

struct row_table feed = {.type = &feed_event_type};
static int64_t last_served;

unsigned int
feed_lanes(const char *name)
{
	if (name == NULL || strcmp(name, "both") == 0)
		return LANE_POLL | LANE_LIVE;
	if (strcmp(name, "poll") == 0)
		return LANE_POLL;
	return strcmp(name, "live") == 0 ? LANE_LIVE : 0;
}

static int
event_check(const struct feed_event *event, struct error *e)
{
	if (event->id <= row_last(&feed))
		return error_set(e, "id: events ascend, the last is %lld",
		    (long long)row_last(&feed));
	if (strchr(event->event_type, '.') == NULL)
		return error_set(e, "event_type: without a dot");
	if (event->bucket_id == 0 || event->recording_id == 0 ||
	    event->creator_id == 0)
		return error_set(
		    e, "bucket_id, recording_id, creator_id: not above 0");
	if (*event->created_at != '\0' &&
	    clock_parse(event->created_at, &(int64_t){0}) == -1)
		return error_set(e, "created_at: not RFC 3339");
	return 0;
}

static const char *
actor_of(const struct feed_event *event)
{
	const struct person *actor =
	    world_person(event->performed_by_id != 0 ? event->performed_by_id
						     : event->creator_id);

	return actor != NULL && actor->agent ? "agent" : "person";
}

/* What the emitter left out (feed.md 8.6, emit). */
static void
event_complete(struct feed_event *event)
{
	char stamp[STAMP_SIZE], *dot;

	if (*event->kind == '\0') {
		text_replace(&event->kind, event->event_type);
		while ((dot = strchr(event->kind, '.')) != NULL)
			*dot = '_';
	}
	if (*event->action == '\0')
		text_replace(
		    &event->action, strrchr(event->event_type, '.') + 1);
	if (*event->actor_type == '\0')
		text_replace(&event->actor_type, actor_of(event));
	if (*event->created_at == '\0')
		text_replace(&event->created_at, stamp_now(stamp));
	if (clock_parse(event->created_at, &event->born_ns) == -1)
		event->born_ns = clock_wall_ns();
}

static void
history_append(const struct feed_event *event)
{
	struct recording *r = row_find(&world.recordings, event->recording_id);
	json_t *row;

	if (r == NULL)
		return;
	row = json_pack("{s:I,s:s,s:s,s:I,s:I}", "id", (json_int_t)event->id,
	    "action", event->action, "created_at", event->created_at,
	    "creator_id", (json_int_t)event->creator_id, "performed_by_id",
	    (json_int_t)event->performed_by_id);
	if (event->added_person_ids != NULL)
		json_object_set(
		    row, "added_person_ids", event->added_person_ids);
	if (r->events == NULL)
		r->events = json_array();
	json_array_append_new(r->events, row);
}

int64_t
feed_emit(struct feed_event *event, unsigned int lanes, struct error *e)
{
	if (event->id == 0)
		event->id = row_last(&feed) + 1;
	if (event_check(event, e) == -1) {
		row_free(&feed_event_type, event);
		return -1;
	}
	event_complete(event);
	event->lanes = lanes;
	row_insert(&feed, event);
	history_append(event);
	return event->id;
}

int64_t
feed_emit_plain(const char *event_type, int64_t bucket_id, int64_t recording_id,
    int64_t creator_id, json_t *details, unsigned int lanes)
{
	struct feed_event *event = row_new(&feed_event_type);

	text_replace(&event->event_type, event_type);
	event->bucket_id = bucket_id;
	event->recording_id = recording_id;
	event->creator_id = creator_id;
	event->details = details;
	return feed_emit(event, lanes, NULL);
}

int
feed_publish(int64_t id, unsigned int lanes)
{
	struct feed_event *event = row_find(&feed, id);

	if (event == NULL)
		return -1;
	event->lanes |= lanes;
	return 0;
}

bool
feed_is_ripe(const struct feed_event *event)
{
	int64_t delay = sim.options.safety_delay_ms;

	if ((event->lanes & LANE_POLL) == 0)
		return false;
	return delay == 0 ||
	    (clock_wall_ns() - event->born_ns) / 1000000 >= delay;
}

int64_t
feed_head(void)
{
	const struct feed_event *event;
	size_t i;

	for (i = feed.count; i > 0; i--) {
		event = feed.rows[i - 1];
		if (feed_is_ripe(event))
			return event->id;
	}
	return 0;
}

json_t *
feed_row(const struct feed_event *event)
{
	json_t *row = json_pack("{s:I,s:s,s:s,s:s,s:I,s:I,s:I,s:s}", "id",
	    (json_int_t)event->id, "kind", event->kind, "action", event->action,
	    "event_type", event->event_type, "bucket_id",
	    (json_int_t)event->bucket_id, "creator_id",
	    (json_int_t)event->creator_id, "recording_id",
	    (json_int_t)event->recording_id, "created_at", event->created_at);

	json_object_set_new(row, "performed_by_id",
	    event->performed_by_id == 0 ? json_null()
					: json_integer(event->performed_by_id));
	if (event->details != NULL)
		json_object_set(row, "details", event->details);
	return row;
}

int64_t
feed_last_served(void)
{
	return last_served;
}

void
feed_mark_served(int64_t id)
{
	if (id > last_served)
		last_served = id;
}
