#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/feed.h"
#include "tests/simulator/render.h"

/* What POST /sim/mention asks for, with its defaults filled in. */
struct mention {
	char *text;
	char *html; /* in the text's place, as it is */
	char *kind;
	char *lanes;
	char *title;
	int64_t recording_id;
	int64_t creator_id;
	int64_t performed_by_id;
	int64_t project_id;
	int64_t agent_id;
};

static const struct row_field mention_fields[] = {
    {"text", ROW_TEXT, offsetof(struct mention, text)},
    {"html", ROW_TEXT, offsetof(struct mention, html)},
    {"kind", ROW_TEXT, offsetof(struct mention, kind)},
    {"lanes", ROW_TEXT, offsetof(struct mention, lanes)},
    {"title", ROW_TEXT, offsetof(struct mention, title)},
    {"recording_id", ROW_NUMBER, offsetof(struct mention, recording_id)},
    {"creator_id", ROW_NUMBER, offsetof(struct mention, creator_id)},
    {"performed_by_id", ROW_NUMBER, offsetof(struct mention, performed_by_id)},
    {"project_id", ROW_NUMBER, offsetof(struct mention, project_id)},
    {"agent_id", ROW_NUMBER, offsetof(struct mention, agent_id)},
};
static const struct row_type mention_type = {"mention", sizeof(struct mention),
    mention_fields, sizeof(mention_fields) / sizeof(mention_fields[0]), NULL};

/*
 * A comment and a line stand under a recording (recording_id, made when it
 * is missing); the others are recordings of that id themselves.
 */
static const struct kind {
	const char *name;
	const char *type;
	const char *parent_type; /* NULL: it stands alone */
} kinds[] = {
    {"comment", "Comment", "Message"},
    {"message", "Message", NULL},
    {"todo", "Todo", NULL},
    {"card", "Kanban::Card", NULL},
    {"chat_line", "Chat::Lines::RichText", "Chat::Transcript"},
};

static const struct kind *
kind_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

static void
default_number(int64_t *number, int64_t value)
{
	if (*number == 0)
		*number = value;
}

static void
mention_complete(struct mention *m)
{
	const struct recording *r =
	    row_find(&world.recordings, m->recording_id);

	if (*m->text == '\0')
		text_replace(&m->text, "could you take a look?");
	if (*m->kind == '\0')
		text_replace(&m->kind, "comment");
	if (*m->lanes == '\0')
		text_replace(&m->lanes, "both");
	default_number(&m->creator_id, WORLD_OPERATOR);
	if (r != NULL)
		m->project_id = r->bucket_id;
	default_number(&m->project_id, WORLD_PROJECT);
	default_number(&m->agent_id, WORLD_AGENT);
}

/* A creator who is new is a member of the project, or could not write. */
static void
creator_ensure(const struct mention *m)
{
	struct person *p;
	char name[40];

	if (world_person(m->creator_id) != NULL)
		return;
	p = row_new(&person_type);
	p->id = m->creator_id;
	(void)snprintf(name, sizeof(name), "Person %lld", (long long)p->id);
	text_replace(&p->name, name);
	row_insert(&world.people, p);
	id_list_add(&world_project(m->project_id)->members, p->id);
}

static void
project_ensure(const struct mention *m)
{
	struct project *p;

	if (world_project(m->project_id) != NULL)
		return;
	p = row_new(&project_type);
	p->id = m->project_id;
	text_replace(&p->name, "Project");
	id_list_add(&p->members, WORLD_OPERATOR);
	id_list_add(&p->members, m->agent_id);
	id_list_add(&p->members, m->creator_id);
	row_insert(&world.projects, p);
}

/* The first recording of TYPE in the project; the default thread is fixed. */
static struct recording *
parent_find(const struct mention *m, const struct kind *kind)
{
	struct recording *r;
	size_t i;

	if (m->recording_id != 0)
		return row_find(&world.recordings, m->recording_id);
	for (i = 0; i < world.recordings.count; i++) {
		r = world.recordings.rows[i];
		if (r->bucket_id == m->project_id &&
		    strcmp(r->type, kind->parent_type) == 0)
			return r;
	}
	return NULL;
}

static struct recording *
parent_ensure(const struct mention *m, const struct kind *kind)
{
	struct recording *r = parent_find(m, kind);
	int64_t id = m->recording_id;

	if (r != NULL)
		return r;
	if (id == 0 && row_find(&world.recordings, WORLD_MESSAGE) == NULL)
		id = WORLD_MESSAGE;
	r = world_add_recording(
	    id, kind->parent_type, m->project_id, 0, WORLD_OPERATOR);
	text_replace(&r->title,
	    strcmp(kind->name, "comment") == 0 ? "Kickoff" : "Campfire");
	if (strcmp(kind->name, "comment") == 0)
		text_replace(&r->content, "<div>Here we go.</div>");
	return r;
}

static char *
mention_markup(const struct mention *m)
{
	char sgid[SGID_SIZE], *escaped, *markup;

	person_sgid(m->agent_id, sgid);
	escaped =
	    *m->html != '\0' ? xstrdup(m->html) : evhttp_htmlescape(m->text);
	xasprintf(&markup,
	    "<div><bc-attachment sgid=\"%s\" content-type="
	    "\"application/vnd.basecamp.mention\"></bc-attachment> %s</div>",
	    sgid, escaped);
	free(escaped);
	return markup;
}

static struct recording *
mention_create(const struct mention *m, const struct kind *kind)
{
	struct recording *parent = NULL, *r;
	int64_t id = kind->parent_type == NULL ? m->recording_id : 0;

	project_ensure(m);
	creator_ensure(m);
	if (kind->parent_type != NULL)
		parent = parent_ensure(m, kind);
	r = world_add_recording(id, kind->type,
	    parent == NULL ? m->project_id : parent->bucket_id,
	    parent == NULL ? 0 : parent->id, m->creator_id);
	free(r->content);
	r->content = mention_markup(m);
	text_replace(&r->title, *m->title == '\0' ? kind->name : m->title);
	if (strcmp(kind->name, "comment") == 0 && *m->title == '\0') {
		free(r->title);
		xasprintf(&r->title, "Re: %s", parent->title);
	}
	return r;
}

static int64_t
mention_emit(const struct mention *m, const struct recording *r)
{
	struct feed_event *event = row_new(&feed_event_type);

	free(event->event_type);
	xasprintf(&event->event_type, "%s.created", recording_subject(r));
	event->bucket_id = r->bucket_id;
	event->recording_id = r->id;
	event->creator_id = r->creator_id;
	event->performed_by_id = m->performed_by_id;
	return feed_emit(event, feed_lanes(m->lanes), NULL);
}

/* A recording that is there already has to fit the kind. */
static bool
recording_fits(const struct mention *m, const struct kind *kind)
{
	const struct recording *r =
	    row_find(&world.recordings, m->recording_id);

	if (r == NULL)
		return true;
	if (kind->parent_type == NULL)
		return false;
	if (strcmp(kind->parent_type, "Message") == 0)
		return recording_takes_comments(r);
	return strcmp(r->type, kind->parent_type) == 0;
}

static int
mention_check(const struct mention *m, struct error *e)
{
	const struct kind *kind = kind_named(m->kind);

	if (kind == NULL)
		return error_set(e, "mention.kind: unknown");
	if (feed_lanes(m->lanes) == 0)
		return error_set(e, "mention.lanes: not poll, live, both");
	if (!recording_fits(m, kind))
		return error_set(
		    e, "mention.recording_id: not for a %s", kind->name);
	return 0;
}

static void
mention_answer(struct exchange *x, struct mention *m)
{
	const struct recording *r;
	struct error e;

	row_set(&mention_type, m, x->body);
	mention_complete(m);
	if (mention_check(m, &e) == -1) {
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
		return;
	}
	r = mention_create(m, kind_named(m->kind));
	answer_json(x, HTTP_OK,
	    json_pack("{s:I,s:I,s:I}", "event_id",
		(json_int_t)mention_emit(m, r), "recording_id",
		(json_int_t)r->id, "parent_id", (json_int_t)r->parent_id));
}

/* Somebody mentions the agent: the words and the event of it. */
void
steer_mention(struct exchange *x)
{
	struct mention *m = row_new(&mention_type);
	struct error e;

	if (row_check(&mention_type, x->body, &e) == -1)
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
	else
		mention_answer(x, m);
	row_free(&mention_type, m);
}
