#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "intake/recording.h"

#define RECORDING_BYTES_MOST ((size_t)16 * 1024 * 1024)
#define LINE_SUBJECT "chat.line"

struct recording_read {
	struct api *api;
	struct lists *lists;
	const struct pointer *p;
	const struct subject *subject; /* NULL: unroutable */
	struct reader reader;
	struct api_call *call;
	struct campfire_search *search;
	struct summary summary;
	bool is_telling;
	recording_done done;
	void *arg;
};

/* A to-do's content is its plain title; its text is the description. */
static const struct {
	const char *type; /* of a recording */
	struct subject subject;
} subjects[] = {
    {"Comment", {"comment", "comments/", {"title"}, {"content"}}},
    {"Message", {"message", "messages/", {"title", "subject"}, {"content"}}},
    {"Todo", {"todo", "todos/", {"title", "content"}, {"description"}}},
    {"Kanban::Card",
	{"card", "card_tables/cards/", {"title"}, {"content", "description"}}},
    {"Chat::Lines::RichText", {LINE_SUBJECT, "", {"title"}, {"content"}}},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

const struct subject *
subject_of(const char *event_type)
{
	const char *dot = strrchr(event_type, '.');
	size_t i;

	if (dot == NULL)
		return NULL;
	for (i = 0; i < SUBJECTS; i++)
		if (strlen(subjects[i].subject.name) ==
			(size_t)(dot - event_type) &&
		    strncmp(subjects[i].subject.name, event_type,
			(size_t)(dot - event_type)) == 0)
			return &subjects[i].subject;
	return NULL;
}

const struct subject *
subject_of_type(const char *type)
{
	size_t i;

	for (i = 0; i < SUBJECTS; i++)
		if (strcmp(subjects[i].type, type) == 0)
			return &subjects[i].subject;
	return NULL;
}

/* ---- the summary ------------------------------------------------------- */

void
summary_free(struct summary *s)
{
	json_decref(s->tree);
	memset(s, 0, sizeof(*s));
}

static int
read_text(const json_t *object, const char *name, struct json_text *out)
{
	*out = (struct json_text){.bytes = ""};
	return json_member_string(object, name, JSON_MAY_BE_NULL, out, NULL);
}

/* The first of two members that is not empty. */
static int
read_either(
    const json_t *object, const char *const names[2], struct json_text *out)
{
	if (read_text(object, names[0], out) == -1)
		return -1;
	if (out->len > 0 || names[1] == NULL)
		return 0;
	return read_text(object, names[1], out);
}

/* An object's id, 0 when there is none. */
static int
read_ref(const json_t *object, const char *name, json_t **ref, int64_t *id)
{
	*ref = NULL;
	*id = 0;
	if (json_member_object(object, name, JSON_MAY_BE_NULL, ref, NULL) == -1)
		return -1;
	return *ref == NULL
	    ? 0
	    : json_member_int(*ref, "id", JSON_MAY_BE_NULL, id, NULL);
}

static int
read_creator(struct summary *s)
{
	struct json_text type;
	json_t *creator;

	s->creator_name.bytes = "";
	if (read_ref(s->tree, "creator", &creator, &s->creator.id) == -1)
		return -1;
	if (creator == NULL)
		return 0;
	if (read_text(creator, "name", &s->creator_name) == -1 ||
	    read_text(creator, "personable_type", &type) == -1)
		return -1;
	s->creator.is_agent = strcmp(type.bytes, "Agent") == 0;
	return 0;
}

static int
read_bucket(struct summary *s)
{
	json_t *bucket;

	s->project_name.bytes = "";
	if (read_ref(s->tree, "bucket", &bucket, &s->bucket_id) == -1)
		return -1;
	return bucket == NULL ? 0 : read_text(bucket, "name", &s->project_name);
}

/* Of lines only these have rich text; in others nothing is a mention. */
static bool
is_rich_line(const struct json_text *type)
{
	return strcmp(type->bytes, "Chat::Lines::RichText") == 0 ||
	    strcmp(type->bytes, "Chat::Lines::Integration") == 0;
}

int
summary_read(struct summary *s, const struct subject *subject, json_t *tree)
{
	json_t *parent;

	*s = (struct summary){.tree = tree};
	if (!json_is_object(tree) ||
	    json_member_id(tree, "id", JSON_REQUIRED, &s->id, NULL) == -1 ||
	    read_text(tree, "status", &s->status) == -1 ||
	    read_text(tree, "type", &s->type) == -1 ||
	    read_text(tree, "app_url", &s->app_url) == -1 ||
	    read_text(tree, "updated_at", &s->updated_at) == -1 ||
	    read_either(tree, subject->title, &s->title) == -1 ||
	    read_either(tree, subject->content, &s->content) == -1 ||
	    read_ref(tree, "parent", &parent, &s->parent_id) == -1 ||
	    read_creator(s) == -1 || read_bucket(s) == -1) {
		summary_free(s);
		return -1;
	}
	if (strcmp(subject->name, LINE_SUBJECT) == 0 && !is_rich_line(&s->type))
		s->content = (struct json_text){.bytes = ""};
	return 0;
}

/* ---- the read ---------------------------------------------------------- */

static void
read_free(struct recording_read *r)
{
	reader_stop(&r->reader);
	api_cancel(r->call);
	campfire_cancel(r->search);
	summary_free(&r->summary);
	free(r);
}

static void
read_finish(enum read_outcome outcome, void *arg)
{
	struct recording_read *r = arg;

	r->is_telling = true;
	r->done(outcome, &r->summary, r->arg);
	read_free(r);
}

/* Never trust a recording that lives elsewhere than its event said. */
static enum read_outcome
take_recording(struct recording_read *r, json_t *tree, int64_t campfire)
{
	if (summary_read(&r->summary, r->subject, tree) == -1)
		return READ_AGAIN;
	r->summary.campfire_id = campfire;
	if (r->summary.bucket_id == 0 ||
	    r->summary.bucket_id == r->p->bucket_id)
		return READ_OK;
	summary_free(&r->summary);
	return READ_OTHER_BUCKET;
}

static void
recording_answered(const struct api_answer *answer, void *arg)
{
	struct recording_read *r = arg;
	enum read_outcome outcome;
	int64_t retry_after;
	json_t *tree;

	r->call = NULL;
	outcome = read_classify(answer, &tree, &retry_after);
	if (outcome == READ_OK)
		outcome = take_recording(r, tree, 0);
	reader_ended(&r->reader, outcome, retry_after);
}

static void
line_found(enum read_outcome outcome, json_t *tree, int64_t campfire,
    int64_t retry_after, void *arg)
{
	struct recording_read *r = arg;

	r->search = NULL;
	if (outcome == READ_OK)
		outcome = take_recording(r, tree, campfire);
	reader_ended(&r->reader, outcome, retry_after);
}

static void
attempt(void *arg)
{
	struct recording_read *r = arg;
	char path[96];

	if (r->subject == NULL) {
		reader_ended(&r->reader, READ_UNROUTABLE, 0);
	} else if (*r->subject->path == '\0') {
		r->search = campfire_search(r->api, r->lists, r->p->bucket_id,
		    r->p->recording_id, line_found, r);
	} else {
		(void)snprintf(path, sizeof(path), "%s%" PRId64,
		    r->subject->path, r->p->recording_id);
		r->call = api_get(
		    r->api, path, RECORDING_BYTES_MOST, recording_answered, r);
	}
}

struct recording_read *
recording_read(struct api *api, struct lists *lists, const struct pointer *p,
    const int64_t *limits, struct read_budget *budget, recording_done done,
    void *arg)
{
	struct recording_read *r = xcalloc(1, sizeof(*r));

	r->api = api;
	r->lists = lists;
	r->p = p;
	r->subject = subject_of(p->event_type);
	r->done = done;
	r->arg = arg;
	r->reader = (struct reader){.limits = limits,
	    .budget = budget,
	    .attempt = attempt,
	    .done = read_finish,
	    .arg = r};
	reader_begin(&r->reader, api->base);
	return r;
}

void
recording_cancel(struct recording_read *r)
{
	if (r != NULL && !r->is_telling)
		read_free(r);
}
