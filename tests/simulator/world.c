#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/simulator/world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIRST_BOOST 5000001

static const struct row_field person_fields[] = {
    {"id", ROW_NUMBER, offsetof(struct person, id)},
    {"name", ROW_TEXT, offsetof(struct person, name)},
    {"agent", ROW_FLAG, offsetof(struct person, agent)},
    {"client", ROW_FLAG, offsetof(struct person, client)},
    {"boss_id", ROW_NUMBER, offsetof(struct person, boss_id)},
    {"identity_id", ROW_NUMBER, offsetof(struct person, identity_id)},
    {"readable_by", ROW_IDS, offsetof(struct person, readable_by)},
};
const struct row_type person_type = {
    "person", sizeof(struct person), person_fields, COUNT(person_fields), NULL};

static const struct row_field project_fields[] = {
    {"id", ROW_NUMBER, offsetof(struct project, id)},
    {"name", ROW_TEXT, offsetof(struct project, name)},
    {"circle", ROW_FLAG, offsetof(struct project, circle)},
    {"members", ROW_IDS, offsetof(struct project, members)},
};
const struct row_type project_type = {"project", sizeof(struct project),
    project_fields, COUNT(project_fields), NULL};

static const struct row_field recording_fields[] = {
    {"id", ROW_NUMBER, offsetof(struct recording, id)},
    {"type", ROW_TEXT, offsetof(struct recording, type)},
    {"bucket_id", ROW_NUMBER, offsetof(struct recording, bucket_id)},
    {"parent_id", ROW_NUMBER, offsetof(struct recording, parent_id)},
    {"creator_id", ROW_NUMBER, offsetof(struct recording, creator_id)},
    {"title", ROW_TEXT, offsetof(struct recording, title)},
    {"content", ROW_TEXT, offsetof(struct recording, content)},
    {"assignee_ids", ROW_IDS, offsetof(struct recording, assignee_ids)},
    {"subscriber_ids", ROW_IDS, offsetof(struct recording, subscriber_ids)},
    {"completed", ROW_FLAG, offsetof(struct recording, completed)},
    {"status", ROW_TEXT, offsetof(struct recording, status)},
    {"created_at", ROW_TEXT, offsetof(struct recording, created_at)},
    {"updated_at", ROW_TEXT, offsetof(struct recording, updated_at)},
    {"events", ROW_JSON, offsetof(struct recording, events)},
};
const struct row_type recording_type = {"recording", sizeof(struct recording),
    recording_fields, COUNT(recording_fields), NULL};

static const struct row_field boost_fields[] = {
    {"id", ROW_NUMBER, offsetof(struct boost, id)},
    {"recording_id", ROW_NUMBER, offsetof(struct boost, recording_id)},
    {"event_id", ROW_NUMBER, offsetof(struct boost, event_id)},
    {"booster_id", ROW_NUMBER, offsetof(struct boost, booster_id)},
    {"content", ROW_TEXT, offsetof(struct boost, content)},
    {"created_at", ROW_TEXT, offsetof(struct boost, created_at)},
};
const struct row_type boost_type = {
    "boost", sizeof(struct boost), boost_fields, COUNT(boost_fields), NULL};

/* The row's place in the table is nobody's business, so no "id" here. */
static const struct row_field client_fields[] = {
    {"client_id", ROW_TEXT, offsetof(struct client, client_id)},
    {"secret", ROW_TEXT, offsetof(struct client, secret)},
    {"person_id", ROW_NUMBER, offsetof(struct client, person_id)},
    {"scope", ROW_TEXT, offsetof(struct client, scope)},
    {"token_lifetime", ROW_NUMBER, offsetof(struct client, token_lifetime)},
};
const struct row_type client_type = {
    "client", sizeof(struct client), client_fields, COUNT(client_fields), NULL};

struct world world = {
    .people = {.type = &person_type},
    .projects = {.type = &project_type},
    .recordings = {.type = &recording_type},
    .boosts = {.type = &boost_type},
    .clients = {.type = &client_type},
};

void
text_replace(char **field, const char *text)
{
	char *copy = xstrdup(text);

	free(*field);
	*field = copy;
}

const char *
stamp_ns(int64_t ns, char out[STAMP_SIZE])
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t used;

	gmtime_r(&seconds, &tm);
	used = strftime(out, STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + used, STAMP_SIZE - used, ".%03uZ",
	    (unsigned int)(ns / 1000000 % 1000));
	return out;
}

const char *
stamp_now(char out[STAMP_SIZE])
{
	return stamp_ns(clock_wall_ns(), out);
}

static void
person_add(int64_t id, const char *name, bool agent)
{
	struct person *p = row_new(&person_type);

	p->id = id;
	text_replace(&p->name, name);
	p->agent = agent;
	row_insert(&world.people, p);
}

void
world_init(void)
{
	struct project *project = row_new(&project_type);
	struct client *client = row_new(&client_type);

	person_add(WORLD_OPERATOR, "Operator", false);
	person_add(WORLD_AGENT, "Marie Chef", true);
	project->id = WORLD_PROJECT;
	text_replace(&project->name, "Connector");
	id_list_add(&project->members, WORLD_OPERATOR);
	id_list_add(&project->members, WORLD_AGENT);
	row_insert(&world.projects, project);
	client->id = 1;
	text_replace(&client->client_id, WORLD_CLIENT);
	text_replace(&client->secret, WORLD_SECRET);
	text_replace(&client->scope, "full");
	client->person_id = WORLD_AGENT;
	row_insert(&world.clients, client);
}

struct person *
world_person(int64_t id)
{
	return row_find(&world.people, id);
}

struct project *
world_project(int64_t id)
{
	return row_find(&world.projects, id);
}

struct client *
world_client(const char *client_id)
{
	struct client *client;
	size_t i;

	for (i = 0; i < world.clients.count; i++) {
		client = world.clients.rows[i];
		if (strcmp(client->client_id, client_id) == 0)
			return client;
	}
	return NULL;
}

bool
world_is_member(int64_t project_id, int64_t person_id)
{
	const struct project *project = world_project(project_id);

	return project != NULL && id_list_has(&project->members, person_id);
}

struct recording *
world_recording(int64_t id, int64_t caller)
{
	struct recording *r = row_find(&world.recordings, id);

	if (r == NULL || !world_is_member(r->bucket_id, caller))
		return NULL;
	return r;
}

bool
recording_is_line(const struct recording *r)
{
	return strncmp(r->type, "Chat::Lines::", 13) == 0;
}

bool
recording_takes_comments(const struct recording *r)
{
	return strcmp(r->type, "Comment") != 0 &&
	    strncmp(r->type, "Chat::", 6) != 0;
}

int64_t
world_next_recording(void)
{
	int64_t last = row_last(&world.recordings);

	return last < WORLD_MESSAGE ? WORLD_MESSAGE + 1 : last + 1;
}

struct recording *
world_add_recording(int64_t id, const char *type, int64_t bucket_id,
    int64_t parent_id, int64_t creator_id)
{
	struct recording *r = row_new(&recording_type);
	char now[STAMP_SIZE];

	r->id = id == 0 ? world_next_recording() : id;
	text_replace(&r->type, type);
	r->bucket_id = bucket_id;
	r->parent_id = parent_id;
	r->creator_id = creator_id;
	text_replace(&r->status, "active");
	text_replace(&r->created_at, stamp_now(now));
	text_replace(&r->updated_at, now);
	row_insert(&world.recordings, r);
	return r;
}

struct boost *
world_add_boost(int64_t recording_id, int64_t event_id, int64_t booster_id,
    const char *content)
{
	struct boost *b = row_new(&boost_type);
	int64_t last = row_last(&world.boosts);
	char now[STAMP_SIZE];

	b->id = last < FIRST_BOOST ? FIRST_BOOST : last + 1;
	b->recording_id = recording_id;
	b->event_id = event_id;
	b->booster_id = booster_id;
	text_replace(&b->content, content);
	text_replace(&b->created_at, stamp_now(now));
	row_insert(&world.boosts, b);
	return b;
}
