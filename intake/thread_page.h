/*
 * What a page of a thread holds, how it is cut, and the cursors that lead to
 * the rest. No I/O.
 */
#ifndef INTAKE_THREAD_PAGE_H
#define INTAKE_THREAD_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "intake/recording.h"

#define THREAD_PAGE_BYTES ((size_t)7000)    /* of comments, about */
#define THREAD_CONTENT_BYTES ((size_t)2000) /* of one content at a time */
#define THREAD_COMMENTS_MOST 20
#define THREAD_CURSOR_SIZE 65

/*
 * "" is the newest page; "t.PAGE.ID" what is older than comment ID, which was
 * on listing page PAGE; "r.OFFSET" the rest of the recording's content, and
 * "c.PAGE.ID.OFFSET" of a comment's.
 */
enum thread_want { WANT_NEWEST, WANT_OLDER, WANT_RECORDING, WANT_COMMENT };

struct thread_cursor {
	enum thread_want want;
	int64_t page, id, offset;
};

/* -1 when TEXT is no cursor of ours. */
int thread_cursor_parse(const char *text, struct thread_cursor *out);
void thread_cursor_print(
    const struct thread_cursor *c, char out[static THREAD_CURSOR_SIZE]);

/* The comments of one answer, newest first while they are collected. */
struct thread_page {
	char *comments[THREAD_COMMENTS_MOST]; /* JSON objects */
	size_t count;
	size_t bytes;
	int64_t oldest;      /* id of the last one added */
	int64_t oldest_page; /* the listing page it was on */
	bool is_full;        /* one did not fit: something older is there */
};
void thread_page_free(struct thread_page *p);
/* Room for another one? The first always has. */
bool thread_page_has_room(const struct thread_page *p);
/*
 * Add one of a listing's elements, its content from OFFSET on. Returns -1
 * when it is none.
 */
int thread_page_add(struct thread_page *p, const json_t *comment,
    int64_t listing_page, int64_t offset);

/* Append the recording's object. CONTENT NULL: its type has no text to read. */
struct thread_head {
	int64_t id;
	const struct json_text *type, *title, *url, *updated_at;
	const struct json_text *content;
	const struct author *creator; /* NULL: not known */
	const struct json_text *creator_name;
};
void thread_write_head(
    struct buffer *b, const struct thread_head *h, int64_t offset);
/* Append `"comments":[...],"older":...`, oldest first. */
void thread_write_comments(
    struct buffer *b, const struct thread_page *p, bool has_older);

/*
 * On which page of a listing the last of TOTAL elements is, by the sizes that
 * Basecamp's pages have; from 1. A guess: the caller looks.
 */
int64_t thread_last_page(int64_t total);

#endif
