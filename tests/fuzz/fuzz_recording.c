/*
 * A recording as Basecamp serves it: the first byte chooses what it is read
 * as, the rest is the body. Whatever is in it, the verdict made of it is a
 * message that the ledger takes, its snapshot is JSON within its bound, and a
 * comment of a thread is JSON whose cursor is one of ours.
 */
#include <string.h>

#include "intake/thread_page.h"
#include "intake/verdict.h"
#include "tests/fuzz/fuzz.h"

static const char *const types[] = {"comment.created", "message.created",
    "todo.created", "card.created", "chat.line.created"};

static const struct json_rules rules = {
    .max_bytes = SNAPSHOT_MAX,
    .max_depth = 64,
    .max_members = 100000,
};

static json_t *
must_read(const char *bytes, size_t len)
{
	json_t *tree = json_read(bytes, len, &rules, NULL);

	MUST(json_is_object(tree));
	return tree;
}

static void
try_snapshot(const struct verdict *v)
{
	json_t *tree = must_read(v->snapshot.bytes, v->snapshot.len);

	MUST(v->snapshot.len <= SNAPSHOT_MAX);
	MUST(json_is_string(json_object_get(tree, "content")));
	MUST(json_is_string(json_object_get(tree, "role")));
	json_decref(tree);
}

static void
try_verdict(const struct summary *s, const char *type)
{
	static const int64_t limits[LIMIT_COUNT];
	struct snapshot_facts facts = {.summary = s, .names_requester = true};
	struct pointer p = {
	    .event_id = 1, .event_type = type, .recording_id = 1};
	struct verdict v = {.state = VERDICT_ADMITTED, .trigger = "mentioned"};
	struct msg m = {.type = MSG_VERDICT};
	struct verdict_stamps stamps;
	struct frame f;
	struct error e;

	verdict_place(&v, &p, s);
	verdict_snapshot(&v.snapshot, &facts);
	try_snapshot(&v);
	if (!s->app_url.has_nul)
		v.recording_url = s->app_url.bytes;
	verdict_fill(&v, &p, limits, &stamps, &m.verdict);
	/* Decisions stop before this when it would be no place to answer. */
	if (v.reply_recording_id > 0) {
		MUST(frame_encode(&m, &f, &e) == 0);
		frame_free(&f);
	}
	buffer_free(&v.snapshot);
}

static void
try_comment(const json_t *from)
{
	struct thread_page page = {0};
	struct thread_cursor c;
	const char *more;
	json_t *tree;

	if (thread_page_add(&page, from, 1, 0) == -1)
		return;
	tree = must_read(page.comments[0], strlen(page.comments[0]));
	more = json_string_value(json_object_get(tree, "more"));
	if (more != NULL)
		MUST(thread_cursor_parse(more, &c) == 0 && c.offset > 0);
	json_decref(tree);
	thread_page_free(&page);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *type;
	struct summary s;
	json_t *tree;

	if (size == 0)
		return 0;
	type = types[data[0] % (sizeof(types) / sizeof(types[0]))];
	tree = json_read((const char *)data + 1, size - 1, &rules, NULL);
	if (tree == NULL)
		return 0;
	try_comment(tree);
	if (summary_read(&s, subject_of(type), tree) == 0) {
		try_verdict(&s, type);
		summary_free(&s);
	}
	return 0;
}
