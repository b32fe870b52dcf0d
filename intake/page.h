/*
 * A page of the feed: validated whole or refused whole (feed.md 1.2).
 */
#ifndef INTAKE_PAGE_H
#define INTAKE_PAGE_H

#include "common/json.h"
#include "common/protocol.h"

#define PAGE_POSITION_MAX 8192
#define PAGE_DETAILS_MAX ((size_t)1024 * 1024)

/* An event as it is sent to the ledger; the texts are the page's. */
struct page_row {
	struct msg_record record; /* created_at points to STAMP */
	char stamp[32];
};

struct page {
	struct page_row *rows;
	size_t count;
	int64_t highest; /* greatest id of a row, 0 without rows */
	const char *position;
	const char *next; /* NULL: this walk is over */
	size_t next_len;
	char *body;
	json_t *tree;
};

/*
 * LEN bytes as the feed answered them, copied. NULL with E saying which
 * member of which row is wrong, in words of ours.
 */
struct page *page_parse(const char *body, size_t len, struct error *e);
void page_free(struct page *page);

/* Does TEXT hold U+FFFD? */
bool page_text_is_damaged(const struct json_text *text);

#endif
