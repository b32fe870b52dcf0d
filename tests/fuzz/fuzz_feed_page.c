/*
 * What the feed answers: the first byte chooses a status, the rest is the
 * body. A page that is accepted must be one that the ledger can be told of,
 * row by row, and whose next is followed to this origin or not at all.
 */
#include <string.h>

#include "intake/cursor.h"
#include "intake/poll.h"
#include "tests/fuzz/fuzz.h"

#define ORIGIN "https://3.basecampapi.com"

static void
try_message(struct msg *m)
{
	struct frame f;
	struct error e;

	MUST(frame_encode(m, &f, &e) == 0);
	frame_free(&f);
}

static void
try_details(const struct blob *details)
{
	static const struct json_rules rules = {
	    .max_bytes = PAGE_DETAILS_MAX,
	    .max_depth = JSON_DEPTH_MOST,
	    .max_members = SIZE_MAX,
	    .flags = JSON_RULE_LAST_WINS,
	};
	json_t *tree;

	if (details->len == 0)
		return;
	tree = json_read(details->bytes, details->len, &rules, NULL);
	MUST(tree != NULL);
	json_decref(tree);
}

static void
try_follow(const char *url, size_t len)
{
	struct cursor c = {0};
	struct filters none = {0};
	struct buffer b = {0};

	if (cursor_follow(&c, url, len, ORIGIN) == FOLLOW_OK) {
		MUST(c.kind == CURSOR_FOLLOWED);
		cursor_write_query(&c, &none, &b);
		MUST(strstr(b.bytes, "since=") != NULL ||
		    strstr(b.bytes, "position=") != NULL);
		MUST(strpbrk(b.bytes, "\r\n #") == NULL);
	}
	(void)cursor_entry_class(url, len);
	buffer_free(&b);
	cursor_free(&c);
}

static void
try_page(struct page *page)
{
	struct msg m = {.type = MSG_CHECKPOINT};
	size_t i;

	MUST(*page->position != '\0');
	m.checkpoint =
	    (struct msg_checkpoint){"k", "l", page->position, page->highest};
	try_message(&m);
	for (i = 0; i < page->count; i++) {
		m = (struct msg){.type = MSG_RECORD};
		m.record = page->rows[i].record;
		m.record.created_at = page->rows[i].stamp;
		try_message(&m);
		try_details(&page->rows[i].record.details);
		MUST(page->rows[i].record.event_id <= page->highest);
	}
	if (page->next != NULL)
		try_follow(page->next, page->next_len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int statuses[] = {200, 400, 409, 410, 200, 503};
	struct http_answer http = {.outcome = HTTP_ANSWERED};
	struct poll_result r = {0};
	json_t *tree;
	char *body;

	if (size == 0)
		return 0;
	body = calloc(1, size);
	MUST(body != NULL);
	memcpy(body, data + 1, size - 1);
	http.status = statuses[data[0] % (sizeof(statuses) / sizeof(int))];
	http.body = body;
	http.body_len = size - 1;
	poll_classify(&http, &r, &tree);
	MUST((r.kind == POLL_PAGE) == (r.page != NULL));
	if (r.page != NULL)
		try_page(r.page);
	if (r.kind == POLL_GONE)
		try_follow(r.resume, r.resume_len);
	page_free(r.page);
	json_decref(tree);
	free(body);
	return 0;
}
