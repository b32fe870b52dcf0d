#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "intake/thread_page.h"

#define NAME_BYTES 200
#define TITLE_BYTES 500
#define URL_BYTES 2048

/* ---- cursors ------------------------------------------------------------ */

/* A letter, and how many numbers follow it. */
static const struct {
	char letter;
	int numbers;
	enum thread_want want;
} forms[] = {
    {'t', 2, WANT_OLDER},
    {'r', 1, WANT_RECORDING},
    {'c', 3, WANT_COMMENT},
};

/* ".123" at *AT, at least 0. */
static int
read_number(const char **at, int64_t *out)
{
	char *end;

	if ((*at)[0] != '.' || (*at)[1] < '0' || (*at)[1] > '9')
		return -1;
	errno = 0;
	*out = strtoll(*at + 1, &end, 10);
	*at = end;
	return errno == 0 ? 0 : -1;
}

static void
cursor_set(struct thread_cursor *c, const int64_t n[3])
{
	if (c->want == WANT_RECORDING) {
		c->offset = n[0];
		return;
	}
	c->page = n[0];
	c->id = n[1];
	c->offset = n[2];
}

int
thread_cursor_parse(const char *text, struct thread_cursor *out)
{
	int64_t n[3] = {0};
	size_t i;
	int k;

	*out = (struct thread_cursor){.want = WANT_NEWEST};
	if (*text == '\0')
		return 0;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].letter == *text)
			break;
	if (i == sizeof(forms) / sizeof(forms[0]))
		return -1;
	text++;
	for (k = 0; k < forms[i].numbers; k++)
		if (read_number(&text, &n[k]) == -1)
			return -1;
	if (*text != '\0')
		return -1;
	out->want = forms[i].want;
	cursor_set(out, n);
	if (out->want == WANT_RECORDING)
		return 0;
	return out->page >= 1 && out->id >= 1 ? 0 : -1;
}

void
thread_cursor_print(
    const struct thread_cursor *c, char out[static THREAD_CURSOR_SIZE])
{
	switch (c->want) {
	case WANT_NEWEST:
		*out = '\0';
		break;
	case WANT_OLDER:
		(void)snprintf(out, THREAD_CURSOR_SIZE,
		    "t.%" PRId64 ".%" PRId64, c->page, c->id);
		break;
	case WANT_RECORDING:
		(void)snprintf(
		    out, THREAD_CURSOR_SIZE, "r.%" PRId64, c->offset);
		break;
	case WANT_COMMENT:
		(void)snprintf(out, THREAD_CURSOR_SIZE,
		    "c.%" PRId64 ".%" PRId64 ".%" PRId64, c->page, c->id,
		    c->offset);
		break;
	}
}

/* ---- pieces ------------------------------------------------------------- */

static void
write_text(struct buffer *b, const char *name, const struct json_text *text,
    size_t most)
{
	buffer_printf(b, ",\"%s\":", name);
	json_write_string(
	    b, text->bytes, utf8_cut(text->bytes, text->len, most));
}

/*
 * A piece of the content from OFFSET on; with REST's offset behind it and
 * where to ask for more, if there is more.
 */
static void
write_content(struct buffer *b, const struct json_text *content,
    struct thread_cursor *rest)
{
	char cursor[THREAD_CURSOR_SIZE];
	size_t from, len;

	from = (size_t)rest->offset < content->len ? (size_t)rest->offset
						   : content->len;
	/* From the start of a character, wherever the offset came from. */
	while (from < content->len &&
	    ((unsigned char)content->bytes[from] & 0xc0) == 0x80)
		from++;
	len = utf8_cut(
	    content->bytes + from, content->len - from, THREAD_CONTENT_BYTES);
	buffer_add_text(b, ",\"content\":");
	json_write_string(b, content->bytes + from, len);
	if (from + len == content->len)
		return;
	rest->offset = (int64_t)(from + len);
	thread_cursor_print(rest, cursor);
	buffer_printf(b, ",\"content_truncated\":true,\"more\":\"%s\"", cursor);
}

static void
write_creator(struct buffer *b, const struct author *creator,
    const struct json_text *name)
{
	buffer_printf(b, ",\"creator\":{\"id\":%" PRId64, creator->id);
	write_text(b, "name", name, NAME_BYTES);
	buffer_printf(
	    b, ",\"is_agent\":%s}", creator->is_agent ? "true" : "false");
}

void
thread_write_head(struct buffer *b, const struct thread_head *h, int64_t offset)
{
	struct thread_cursor rest = {.want = WANT_RECORDING, .offset = offset};

	buffer_printf(b, "\"recording\":{\"id\":%" PRId64, h->id);
	write_text(b, "type", h->type, NAME_BYTES);
	write_text(b, "title", h->title, TITLE_BYTES);
	write_text(b, "url", h->url, URL_BYTES);
	if (h->creator != NULL)
		write_creator(b, h->creator, h->creator_name);
	if (h->updated_at != NULL)
		write_text(b, "updated_at", h->updated_at, NAME_BYTES);
	if (h->content != NULL)
		write_content(b, h->content, &rest);
	buffer_add_char(b, '}');
}

/* ---- comments ----------------------------------------------------------- */

void
thread_page_free(struct thread_page *p)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		free(p->comments[i]);
	*p = (struct thread_page){0};
}

bool
thread_page_has_room(const struct thread_page *p)
{
	return !p->is_full && p->count < THREAD_COMMENTS_MOST;
}

static int
read_comment(const json_t *from, struct summary *s)
{
	static const struct subject comment = {
	    "comment", "", {"title"}, {"content"}};

	return summary_read(s, &comment, json_incref((json_t *)from));
}

static char *
comment_json(const json_t *from, int64_t page, int64_t offset, int64_t *id)
{
	struct thread_cursor rest = {
	    .want = WANT_COMMENT, .page = page, .offset = offset};
	struct json_text created = {.bytes = ""};
	struct buffer b = {0};
	struct summary s;

	if (read_comment(from, &s) == -1)
		return NULL;
	(void)json_member_string(
	    from, "created_at", JSON_MAY_BE_NULL, &created, NULL);
	*id = rest.id = s.id;
	buffer_printf(&b, "{\"id\":%" PRId64, s.id);
	write_creator(&b, &s.creator, &s.creator_name);
	write_text(&b, "created_at", &created, NAME_BYTES);
	write_content(&b, &s.content, &rest);
	buffer_add_char(&b, '}');
	summary_free(&s);
	return buffer_take(&b, NULL);
}

int
thread_page_add(struct thread_page *p, const json_t *comment,
    int64_t listing_page, int64_t offset)
{
	int64_t id;
	char *json = comment_json(comment, listing_page, offset, &id);
	size_t len;

	if (json == NULL)
		return -1;
	len = strlen(json);
	if (p->count > 0 && p->bytes + len > THREAD_PAGE_BYTES) {
		p->is_full = true;
		free(json);
		return 0;
	}
	p->comments[p->count++] = json;
	p->bytes += len;
	p->oldest = id;
	p->oldest_page = listing_page;
	return 0;
}

void
thread_write_comments(
    struct buffer *b, const struct thread_page *p, bool has_older)
{
	struct thread_cursor older = {
	    .want = WANT_OLDER, .page = p->oldest_page, .id = p->oldest};
	char cursor[THREAD_CURSOR_SIZE];
	size_t i;

	buffer_add_text(b, "\"comments\":[");
	for (i = p->count; i > 0; i--) {
		buffer_add_text(b, p->comments[i - 1]);
		if (i > 1)
			buffer_add_char(b, ',');
	}
	buffer_add_text(b, "],\"older\":");
	if (!has_older || p->count == 0) {
		buffer_add_text(b, "null");
		return;
	}
	thread_cursor_print(&older, cursor);
	buffer_printf(b, "\"%s\"", cursor);
}

int64_t
thread_last_page(int64_t total)
{
	static const int64_t sizes[] = {15, 30, 50, 100};
	int64_t page;

	for (page = 1; page <= 3; page++) {
		if (total <= sizes[page - 1])
			return page;
		total -= sizes[page - 1];
	}
	return 4 + (total > 0 ? (total - 1) / sizes[3] : 0);
}
