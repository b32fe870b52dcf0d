#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "intake/thread.h"
#include "intake/timer.h"

#define PAGES_MOST 6 /* of a listing, for one answer */
#define BYTES_MOST ((size_t)16 * 1024 * 1024)

enum thread_step {
	STEP_EVENT,   /* the recording that the event is about */
	STEP_PARENT,  /* what it is a comment on */
	STEP_LISTING, /* one page of what was said */
	STEP_ANSWER
};

struct thread_read {
	LIST_ENTRY(thread_read) entry;
	struct threads *threads;
	const struct peer *mcpd;
	struct reply_to to;
	struct thread_cursor cursor;
	uint64_t asked; /* of the ledger; 0: nothing */

	/* As the ledger said. */
	char *event_type;
	int64_t bucket_id, recording_id, place_id;
	bool is_chat;

	struct api_call *call;
	void (*take)(struct thread_read *r, json_t *tree,
	    const struct http_answer *http);
	struct summary summary; /* of the event's recording, or its parent */
	const struct subject *subject; /* of the next typed read */
	struct json_text parent_type, parent_title, parent_url;
	json_t *parent;       /* they are its */
	bool has_parent_only; /* no read for that type */
	struct thread_page page;
	int64_t listing_page;
	int pages;
	bool is_placed; /* listing_page is known to be right */
	bool has_older;
};

struct threads {
	struct intake *in;
	LIST_HEAD(, thread_read) reads;
};

static void thread_go(struct thread_read *r, enum thread_step step);

struct threads *
threads_new(struct intake *in)
{
	struct threads *t = xcalloc(1, sizeof(*t));

	t->in = in;
	LIST_INIT(&t->reads);
	return t;
}

static void
read_free(struct thread_read *r)
{
	LIST_REMOVE(r, entry);
	if (r->asked != 0)
		peer_forget(r->threads->in->ledger, r->asked);
	api_cancel(r->call);
	summary_free(&r->summary);
	json_decref(r->parent);
	thread_page_free(&r->page);
	free(r->event_type);
	free(r);
}

static void
read_fail(struct thread_read *r, const char *reason, int64_t wait_ms,
    const char *text)
{
	peer_fail(&r->to, reason, wait_ms, "%s", text);
	read_free(r);
}

/* ---- one request -------------------------------------------------------- */

static const struct {
	int status; /* 0: any other */
	const char *reason, *text;
} failures[] = {
    {403, "refused", "Basecamp does not show this thread to the agent"},
    {404, "not_found", "Basecamp has no such thread any more"},
    {429, "throttled", "Basecamp asks to wait"},
    {0, "transient", "Basecamp did not answer; try again"},
};

static void
fail_by_answer(struct thread_read *r, const struct api_answer *a)
{
	int status = a->kind == API_ANSWERED ? a->http->status : 0;
	int64_t wait_ms = 0;
	size_t i;

	if (a->kind == API_NO_TOKEN) {
		read_fail(r,
		    strcmp(a->reason, "credential_refused") == 0
			? "credential_refused"
			: "transient",
		    a->wait_ms, "there is no access token now");
		return;
	}
	for (i = 0; failures[i].status != 0; i++)
		if (failures[i].status == status)
			break;
	if (status == 429)
		wait_ms = a->http->retry_after * 1000;
	read_fail(r, failures[i].reason, wait_ms, failures[i].text);
}

static void
thread_answered(const struct api_answer *a, void *arg)
{
	struct thread_read *r = arg;
	int64_t retry_after;
	json_t *tree;

	r->call = NULL;
	if (read_classify(a, &tree, &retry_after) != READ_OK)
		fail_by_answer(r, a);
	else
		r->take(r, tree, a->http);
}

static void
thread_get(struct thread_read *r, const char *path,
    void (*take)(
	struct thread_read *r, json_t *tree, const struct http_answer *http))
{
	r->take = take;
	r->call =
	    api_get(&r->threads->in->api, path, BYTES_MOST, thread_answered, r);
}

/* ---- the recording ------------------------------------------------------ */

static bool
wants_listing(const struct thread_read *r)
{
	return r->cursor.want != WANT_RECORDING;
}

static void
head_done(struct thread_read *r)
{
	thread_go(r, wants_listing(r) ? STEP_LISTING : STEP_ANSWER);
}

/* What a comment is on: by its type's own read, or as much as it says. */
static int
take_parent(struct thread_read *r)
{
	json_t *parent;

	parent = json_object_get(r->summary.tree, "parent");
	if (!json_is_object(parent))
		return -1;
	r->parent = json_incref(parent);
	r->parent_type = r->parent_title = r->parent_url =
	    (struct json_text){.bytes = ""};
	if (json_member_string(parent, "type", JSON_MAY_BE_NULL,
		&r->parent_type, NULL) == -1 ||
	    json_member_string(parent, "title", JSON_MAY_BE_NULL,
		&r->parent_title, NULL) == -1 ||
	    json_member_string(parent, "app_url", JSON_MAY_BE_NULL,
		&r->parent_url, NULL) == -1)
		return -1;
	r->subject = subject_of_type(r->parent_type.bytes);
	r->has_parent_only = r->subject == NULL || *r->subject->path == '\0';
	return 0;
}

static void
take_recording(
    struct thread_read *r, json_t *tree, const struct http_answer *http)
{
	bool is_comment = r->subject == subject_of("comment.created");

	(void)http;
	summary_free(&r->summary);
	if (summary_read(&r->summary, r->subject, tree) == -1) {
		read_fail(r, "transient", 0, "Basecamp's answer is foul");
		return;
	}
	if (r->summary.bucket_id != 0 && r->summary.bucket_id != r->bucket_id) {
		read_fail(r, "not_found", 0, "the thread is elsewhere now");
		return;
	}
	if (!is_comment || r->parent != NULL)
		head_done(r);
	else if (take_parent(r) == -1)
		read_fail(r, "transient", 0, "Basecamp's answer is foul");
	else
		thread_go(r,
		    r->has_parent_only
			? (wants_listing(r) ? STEP_LISTING : STEP_ANSWER)
			: STEP_PARENT);
}

static void
get_event(struct thread_read *r)
{
	char path[96];

	r->subject = subject_of(r->event_type);
	if (r->subject == NULL) {
		read_fail(
		    r, "unusable", 0, "events of this type have no thread");
		return;
	}
	if (r->is_chat)
		(void)snprintf(path, sizeof(path),
		    "chats/%" PRId64 "/lines/%" PRId64, r->place_id,
		    r->recording_id);
	else
		(void)snprintf(path, sizeof(path), "%s%" PRId64,
		    r->subject->path, r->recording_id);
	thread_get(r, path, take_recording);
}

static void
get_parent(struct thread_read *r)
{
	char path[96];

	(void)snprintf(
	    path, sizeof(path), "%s%" PRId64, r->subject->path, r->place_id);
	thread_get(r, path, take_recording);
}

/* ---- what was said ------------------------------------------------------ */

/* The page with what is older; 0: there is none. */
static int64_t
older_page(const struct thread_read *r, bool has_more)
{
	/* Lines come newest first, comments oldest first. */
	if (r->is_chat)
		return has_more ? r->listing_page + 1 : 0;
	return r->listing_page - 1;
}

static bool
is_wanted(const struct thread_read *r, const json_t *element)
{
	int64_t id = 0;

	(void)json_member_int(element, "id", JSON_MAY_BE_NULL, &id, NULL);
	if (r->cursor.want == WANT_OLDER)
		return id < r->cursor.id;
	return r->cursor.want == WANT_NEWEST || id == r->cursor.id;
}

/* The newest of a page first, while there is room. */
static void
collect(struct thread_read *r, const json_t *array)
{
	size_t i, n = json_array_size(array);
	const json_t *element;

	for (i = 0; i < n; i++) {
		element = json_array_get(array, r->is_chat ? i : n - 1 - i);
		if (!is_wanted(r, element))
			continue;
		if (!thread_page_has_room(&r->page)) {
			r->page.is_full = true;
			return;
		}
		(void)thread_page_add(&r->page, element, r->listing_page,
		    r->cursor.want == WANT_COMMENT ? r->cursor.offset : 0);
	}
}

/*
 * Comments begin at the other end: where is the newest page? The total says,
 * if it is told; the links say whether that was right. True: ask again.
 */
static bool
seek_last_page(struct thread_read *r, const struct http_answer *http)
{
	int64_t guess;

	if (r->is_chat || r->cursor.want != WANT_NEWEST || http->next == NULL)
		return false;
	guess = r->pages == 1 && http->total_count > 0
	    ? thread_last_page(http->total_count)
	    : r->listing_page + 1;
	r->listing_page = guess > r->listing_page ? guess : r->listing_page + 1;
	return true;
}

static void
take_listing(
    struct thread_read *r, json_t *tree, const struct http_answer *http)
{
	bool is_array = json_is_array(tree), has_more = http->next != NULL;
	int64_t next;

	r->pages++;
	if (is_array && !r->is_placed && seek_last_page(r, http)) {
		json_decref(tree);
		thread_go(r, STEP_LISTING);
		return;
	}
	r->is_placed = true;
	if (is_array)
		collect(r, tree);
	json_decref(tree);
	if (!is_array) {
		read_fail(r, "transient", 0, "Basecamp's answer is foul");
		return;
	}
	next = older_page(r, has_more);
	r->has_older = r->page.is_full || next > 0;
	if (next == 0 || !thread_page_has_room(&r->page) ||
	    r->pages >= PAGES_MOST ||
	    (r->cursor.want == WANT_COMMENT && r->page.count > 0)) {
		thread_go(r, STEP_ANSWER);
		return;
	}
	r->listing_page = next;
	thread_go(r, STEP_LISTING);
}

static void
get_listing(struct thread_read *r)
{
	char path[128];

	if (r->is_chat)
		(void)snprintf(path, sizeof(path),
		    "chats/%" PRId64 "/lines.json?sort=created_at"
		    "&direction=desc&page=%" PRId64,
		    r->place_id, r->listing_page);
	else
		(void)snprintf(path, sizeof(path),
		    "recordings/%" PRId64 "/comments.json?page=%" PRId64,
		    r->place_id, r->listing_page);
	thread_get(r, path, take_listing);
}

/* ---- the answer --------------------------------------------------------- */

static void
write_recording(struct thread_read *r, struct buffer *b)
{
	const struct summary *s = &r->summary;
	struct thread_head h = {.id = s->id,
	    .type = &s->type,
	    .title = &s->title,
	    .url = &s->app_url,
	    .updated_at = &s->updated_at,
	    .content = &s->content,
	    .creator = &s->creator,
	    .creator_name = &s->creator_name};

	if (s->tree == NULL) {
		buffer_add_text(b, "\"recording\":null");
		return;
	}
	if (r->has_parent_only)
		h = (struct thread_head){.id = r->place_id,
		    .type = &r->parent_type,
		    .title = &r->parent_title,
		    .url = &r->parent_url};
	thread_write_head(
	    b, &h, r->cursor.want == WANT_RECORDING ? r->cursor.offset : 0);
}

static void
answer(struct thread_read *r)
{
	struct msg m = {.type = MSG_THREAD};
	struct buffer b = {0};

	if (r->cursor.want == WANT_COMMENT && r->page.count == 0) {
		read_fail(r, "not_found", 0, "that comment is gone");
		return;
	}
	buffer_add_char(&b, '{');
	write_recording(r, &b);
	buffer_add_char(&b, ',');
	thread_write_comments(
	    &b, &r->page, r->has_older && r->cursor.want != WANT_COMMENT);
	buffer_add_char(&b, '}');
	m.thread.json = (struct blob){b.bytes, b.len};
	peer_reply(&r->to, &m);
	buffer_free(&b);
	read_free(r);
}

static void (*const steps[])(struct thread_read *r) = {
    [STEP_EVENT] = get_event,
    [STEP_PARENT] = get_parent,
    [STEP_LISTING] = get_listing,
    [STEP_ANSWER] = answer,
};

static void
thread_go(struct thread_read *r, enum thread_step step)
{
	steps[step](r);
}

/* ---- the request -------------------------------------------------------- */

/* Further pages are of what was said alone. */
static enum thread_step
first_step(const struct thread_read *r)
{
	return r->cursor.want == WANT_NEWEST || r->cursor.want == WANT_RECORDING
	    ? STEP_EVENT
	    : STEP_LISTING;
}

static void
place_told(struct peer *ledger, struct msg *reply, void *arg)
{
	const struct msg_thread_is *is = &reply->thread_is;
	struct thread_read *r = arg;

	(void)ledger;
	r->asked = 0;
	if (reply->type == MSG_FAILED) {
		read_fail(r, reply->failed.reason, reply->failed.wait_ms,
		    reply->failed.text);
		return;
	}
	r->event_type = xstrdup(is->event_type);
	r->bucket_id = is->bucket_id;
	r->recording_id = is->recording_id;
	r->place_id = is->reply_recording_id;
	r->is_chat = strcmp(is->reply_kind, "chat_line") == 0;
	if (r->place_id == 0) {
		read_fail(r, "unusable", 0, "this event has no thread");
		return;
	}
	r->listing_page = r->cursor.page > 0 ? r->cursor.page : 1;
	thread_go(r, first_step(r));
}

static size_t
count_of(const struct threads *t, const struct peer *mcpd)
{
	const struct thread_read *r;
	size_t n = 0;

	LIST_FOREACH (r, &t->reads, entry)
		n += r->mcpd == mcpd;
	return n;
}

static void
read_begin(struct threads *t, struct peer *mcpd, const struct reply_to *to,
    const struct thread_cursor *cursor, int64_t event_id)
{
	struct thread_read *r = xcalloc(1, sizeof(*r));
	struct msg m = {.type = MSG_THREAD_OF};

	r->threads = t;
	r->mcpd = mcpd;
	r->to = *to;
	r->cursor = *cursor;
	LIST_INSERT_HEAD(&t->reads, r, entry);
	m.thread_of.attempt = peer_attempt(mcpd);
	m.thread_of.event_id = event_id;
	r->asked = peer_request(t->in->ledger, &m, place_told, r);
}

void
thread_asked(struct threads *t, struct peer *mcpd, struct msg *m)
{
	struct reply_to to = peer_reply_to(mcpd, m);
	struct thread_cursor cursor;

	if (thread_cursor_parse(m->read_thread.cursor, &cursor) == -1)
		peer_fail(&to, "unusable", 0, "this cursor was never given");
	else if (count_of(t, mcpd) >= READS_MOST)
		peer_fail(&to, "busy", 0, "too many reads at once");
	else
		read_begin(t, mcpd, &to, &cursor, m->read_thread.event_id);
	msg_free(m);
}

void
threads_forget(struct threads *t, const struct peer *mcpd)
{
	struct thread_read *r, *next;

	for (r = LIST_FIRST(&t->reads); r != NULL; r = next) {
		next = LIST_NEXT(r, entry);
		if (r->mcpd == mcpd)
			read_free(r);
	}
}
