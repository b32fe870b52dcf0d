#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "outbox/message.h"

static const struct message_kind kinds[] = {
    {"comment", "recordings/%lld/comments.json",
	"recordings/%lld/comments.json", "creator", false},
    {"boost", "recordings/%lld/boosts.json", "recordings/%lld/boosts.json",
	"booster", false},
    {"chat_line", "chats/%lld/lines.json",
	"chats/%lld/lines.json?sort=created_at&direction=desc", "creator",
	true},
};

static const struct json_rules answer_rules = {
    .max_bytes = ((size_t)50 * 1024 * 1024),
    .max_depth = JSON_DEPTH_MOST,
    .max_members = 1000000,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

const struct message_kind *
message_kind(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

/* PATH is one of the table above: its one conversion takes the recording. */
char *
message_url(const char *base_url, int64_t account, const char *path,
    int64_t recording_id)
{
	const char *conversion = strstr(path, "%lld");
	char *url;

	(void)xasprintf(&url, "%s/%lld/%.*s%lld%s", base_url,
	    (long long)account, (int)(conversion - path), path,
	    (long long)recording_id, conversion + strlen("%lld"));
	return url;
}

char *
message_body(const char *text, size_t len, size_t *out_len)
{
	struct buffer b = {0};

	buffer_add_text(&b, "{\"content\":");
	json_write_string(&b, text, len);
	buffer_add_char(&b, '}');
	return buffer_take(&b, out_len);
}

int64_t
message_created_id(const char *json, size_t len)
{
	struct error e;
	json_t *answer = json_read(json, len, &answer_rules, &e);
	int64_t id = -1;

	if (json_member_id(answer, "id", JSON_REQUIRED, &id, &e) == -1)
		id = -1;
	json_decref(answer);
	return id;
}

/* What is compared of one message of a listing. */
struct listed {
	int64_t id, author, created_at;
	struct json_text content; /* bytes NULL: none, as of a file in a chat */
};

static int
listed_read(const json_t *row, const struct message_kind *kind,
    struct listed *out, struct error *e)
{
	struct json_text created;
	json_t *author;

	out->content = (struct json_text){0};
	if (json_member_id(row, "id", JSON_REQUIRED, &out->id, e) == -1 ||
	    json_member_object(row, kind->author, JSON_REQUIRED, &author, e) ==
		-1 ||
	    json_member_id(author, "id", JSON_REQUIRED, &out->author, e) ==
		-1 ||
	    json_member_string(
		row, "content", JSON_MAY_BE_NULL, &out->content, e) == -1 ||
	    json_member_string(row, "created_at", JSON_REQUIRED, &created, e) ==
		-1)
		return -1;
	if (clock_parse(created.bytes, &out->created_at) == -1)
		return error_set(e, "created_at is no time");
	return 0;
}

/* Told of, if it says TEXT; a text of NULL is any. */
static void
listed_tell(
    const struct listed *m, const char *text, message_found found, void *arg)
{
	struct message_found it = {m->id, m->created_at, NULL};
	char *normal = text_normalise(m->content.bytes, m->content.len, NULL);

	it.text = normal;
	if (text == NULL || strcmp(normal, text) == 0)
		found(&it, arg);
	free(normal);
}

int
message_page(const struct message_kind *kind, const char *json, size_t len,
    int64_t agent, int64_t since, const char *text, message_found found,
    void *arg, size_t *rows, bool *older, struct error *e)
{
	json_t *page = json_read(json, len, &answer_rules, e), *row;
	struct listed m;
	size_t i;
	int rc = -1;

	if (page == NULL)
		return -1;
	if (!json_is_array(page)) {
		(void)error_set(e, "the listing is no array");
		goto out;
	}
	json_array_foreach (page, i, row) {
		if (listed_read(row, kind, &m, e) == -1)
			goto out;
		++*rows;
		if (m.created_at < since)
			*older = true;
		else if (m.author == agent && m.content.bytes != NULL)
			listed_tell(&m, text, found, arg);
	}
	rc = 0;
out:
	json_decref(page);
	return rc;
}
