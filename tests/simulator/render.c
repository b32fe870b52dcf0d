#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulator/render.h"
#include "tests/simulator/sim.h"

#define URL_SIZE 320

/* The first whose name starts the recording's type describes it. */
static const struct {
	const char *type;
	const char *path;
	const char *subject;
} shapes[] = {
    {"Comment", "comments", "comment"},
    {"Message", "messages", "message"},
    {"Todo", "todos", "todo"},
    {"Kanban::Card", "card_tables/cards", "card"},
    {"Chat::Transcript", "chats", "chat"},
    {"Chat::Lines::", "lines", "chat.line"},
    {"", "recordings", "recording"},
};

static size_t
shape_of(const struct recording *r)
{
	size_t i = 0;

	while (strncmp(r->type, shapes[i].type, strlen(shapes[i].type)) != 0)
		i++;
	return i;
}

const char *
recording_subject(const struct recording *r)
{
	return shapes[shape_of(r)].subject;
}

void
person_sgid(int64_t id, char out[SGID_SIZE])
{
	char plain[128], *at;
	int len;

	len = snprintf(plain, sizeof(plain),
	    "{\"_rails\":{\"data\":"
	    "\"gid://bc3/Person/%" PRId64 "\",\"pur\":\"attachable\"}}",
	    id);
	(void)EVP_EncodeBlock(
	    (unsigned char *)out, (const unsigned char *)plain, len);
	for (at = out; *at != '\0' && *at != '='; at++) {
		if (*at == '+')
			*at = '-';
		else if (*at == '/')
			*at = '_';
	}
	*at = '\0';
}

static void
object_url(json_t *object, const char *member, const char *path, int64_t id,
    const char *end)
{
	char url[URL_SIZE];

	(void)snprintf(url, sizeof(url), "%s/%" PRId64 "/%s/%" PRId64 "%s",
	    sim.url, sim.account, path, id, end);
	json_object_set_new(object, member, json_string(url));
}

json_t *
person_json(const struct person *p)
{
	char sgid[SGID_SIZE], email[64];
	json_t *o;

	person_sgid(p->id, sgid);
	o = json_pack("{s:I,s:s,s:s,s:s,s:s,s:s,s:s}", "id", (json_int_t)p->id,
	    "attachable_sgid", sgid, "name", p->name, "personable_type",
	    p->agent ? "Agent" : "User", "title", "", "created_at", WORLD_DATE,
	    "updated_at", WORLD_DATE);
	(void)snprintf(
	    email, sizeof(email), "person-%" PRId64 "@example.com", p->id);
	if (!p->agent)
		json_object_set_new(o, "email_address", json_string(email));
	json_object_set_new(o, "admin", json_false());
	json_object_set_new(o, "owner", json_false());
	json_object_set_new(o, "client", json_boolean(p->client));
	json_object_set_new(
	    o, "employee", json_boolean(!p->client && !p->agent));
	json_object_set_new(o, "time_zone", json_string("Etc/UTC"));
	object_url(o, "avatar_url", "people", p->id, "/avatar");
	json_object_set_new(
	    o, "company", json_pack("{s:i,s:s}", "id", 1, "name", "Acme"));
	json_object_set_new(o, "can_ping", json_true());
	return o;
}

json_t *
person_json_of(int64_t id)
{
	const struct person *p = world_person(id);

	if (p != NULL)
		return person_json(p);
	return json_pack("{s:I,s:s}", "id", (json_int_t)id, "name", "");
}

static json_t *
dock_json(const struct project *p)
{
	json_t *dock = json_array(), *entry;
	const struct recording *r;
	size_t i;

	for (i = 0; i < world.recordings.count; i++) {
		r = world.recordings.rows[i];
		if (r->bucket_id != p->id ||
		    strcmp(r->type, "Chat::Transcript") != 0)
			continue;
		entry = json_pack("{s:I,s:s,s:s,s:b,s:i}", "id",
		    (json_int_t)r->id, "title", r->title, "name", "chat",
		    "enabled", 1, "position", (int)json_array_size(dock) + 1);
		object_url(entry, "url", "chats", r->id, ".json");
		object_url(entry, "app_url", "chats", r->id, "");
		json_array_append_new(dock, entry);
	}
	return dock;
}

json_t *
project_json(const struct project *p)
{
	json_t *o = json_pack("{s:I,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:b}", "id",
	    (json_int_t)p->id, "status", "active", "created_at", WORLD_DATE,
	    "updated_at", WORLD_DATE, "name", p->name, "description", "",
	    "purpose", "topic", "clients_enabled", 0, "bookmarked", 0);

	object_url(o, "bookmark_url", "my/bookmarks", p->id, ".json");
	object_url(o, "url", "projects", p->id, ".json");
	object_url(o, "app_url", "projects", p->id, "");
	json_object_set_new(o, "dock", dock_json(p));
	return o;
}

/* A line's address has its Campfire in it. */
static void
recording_urls(json_t *o, const struct recording *r)
{
	const char *path = shapes[shape_of(r)].path;
	char lines[64];

	if (recording_is_line(r)) {
		(void)snprintf(lines, sizeof(lines), "chats/%" PRId64 "/lines",
		    r->parent_id);
		path = lines;
	}
	object_url(o, "url", path, r->id, ".json");
	object_url(o, "app_url", path, r->id, "");
}

static json_t *
parent_json(int64_t id)
{
	const struct recording *parent = row_find(&world.recordings, id);
	json_t *o;

	if (parent == NULL)
		return json_pack("{s:I,s:s,s:s}", "id", (json_int_t)id, "title",
		    "", "type", "");
	o = json_pack("{s:I,s:s,s:s}", "id", (json_int_t)id, "title",
	    parent->title, "type", parent->type);
	recording_urls(o, parent);
	return o;
}

static json_t *
people_json(const struct id_list *ids)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < ids->count; i++)
		json_array_append_new(list, person_json_of(ids->ids[i]));
	return list;
}

/* The members that only some types have. */
static void
recording_add_content(json_t *o, const struct recording *r)
{
	bool is_todo = strcmp(r->type, "Todo") == 0;
	bool is_card = strcmp(r->type, "Kanban::Card") == 0;

	if (strcmp(r->type, "Chat::Transcript") == 0)
		return;
	json_object_set_new(
	    o, "content", json_string(is_todo ? r->title : r->content));
	if (strcmp(r->type, "Message") == 0)
		json_object_set_new(o, "subject", json_string(r->title));
	if (!is_todo && !is_card)
		return;
	json_object_set_new(o, "completed", json_boolean(r->completed));
	json_object_set_new(o, "assignees", people_json(&r->assignee_ids));
	if (is_todo) {
		json_object_set_new(o, "description", json_string(r->content));
		json_object_set_new(o, "completion_subscribers", json_array());
	}
}

json_t *
recording_json(const struct recording *r)
{
	const struct project *bucket = world_project(r->bucket_id);
	json_t *o = json_pack("{s:I,s:s,s:b,s:s,s:s,s:s,s:b,s:s}", "id",
	    (json_int_t)r->id, "status",
	    *r->status == '\0' ? "active" : r->status, "visible_to_clients", 0,
	    "created_at", r->created_at, "updated_at", r->updated_at, "title",
	    r->title, "inherits_status", 1, "type", r->type);

	recording_urls(o, r);
	object_url(o, "bookmark_url", "my/bookmarks", r->id, ".json");
	json_object_set_new(o, "bucket",
	    json_pack("{s:I,s:s,s:s}", "id", (json_int_t)r->bucket_id, "name",
		bucket == NULL ? "" : bucket->name, "type",
		bucket != NULL && bucket->circle ? "Circle" : "Project"));
	json_object_set_new(o, "creator", person_json_of(r->creator_id));
	if (r->parent_id != 0)
		json_object_set_new(o, "parent", parent_json(r->parent_id));
	recording_add_content(o, r);
	return o;
}

json_t *
boost_json(const struct boost *b)
{
	json_t *o = json_pack("{s:I,s:s,s:s}", "id", (json_int_t)b->id,
	    "content", b->content, "created_at", b->created_at);

	json_object_set_new(o, "booster", person_json_of(b->booster_id));
	json_object_set_new(o, "recording", parent_json(b->recording_id));
	return o;
}

json_t *
history_json(const struct recording *r, json_t *row)
{
	json_int_t performer =
	    json_integer_value(json_object_get(row, "performed_by_id"));
	json_t *added = json_object_get(row, "added_person_ids");
	json_t *o = json_object(), *details = json_object();

	json_object_set(o, "id", json_object_get(row, "id"));
	json_object_set_new(o, "recording_id", json_integer(r->id));
	json_object_set(o, "action", json_object_get(row, "action"));
	json_object_set(o, "created_at", json_object_get(row, "created_at"));
	if (added != NULL)
		json_object_set(details, "added_person_ids", added);
	json_object_set_new(o, "details", details);
	json_object_set_new(o, "creator",
	    person_json_of(
		json_integer_value(json_object_get(row, "creator_id"))));
	json_object_set_new(o, "performed_by",
	    performer == 0 ? json_null() : person_json_of(performer));
	return o;
}

json_t *
subscription_json(const struct recording *r, int64_t caller)
{
	json_t *o = json_pack("{s:b,s:i,s:o}", "subscribed",
	    id_list_has(&r->subscriber_ids, caller), "count",
	    (int)r->subscriber_ids.count, "subscribers",
	    people_json(&r->subscriber_ids));

	object_url(o, "url", "recordings", r->id, "/subscription.json");
	return o;
}
