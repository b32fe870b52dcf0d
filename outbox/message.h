/*
 * Addresses and bodies of what is posted: comments, chat lines and boosts
 * (feed.md 5).
 */
#ifndef OUTBOX_MESSAGE_H
#define OUTBOX_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct message_kind {
	const char *name;   /* "comment" */
	const char *create; /* path with one %lld, the recording */
	const char *list;
	const char *author; /* member that names who wrote it */
	bool newest_first;  /* a listing may stop at the first older one */
};

/* The row of "boost", "comment" or "chat_line"; NULL for another. */
const struct message_kind *message_kind(const char *name);

/* Malloc'ed: base/account and the kind's path for the recording. */
char *message_url(const char *base_url, int64_t account, const char *path,
    int64_t recording_id);
/* Malloc'ed JSON for a create request. */
char *message_body(const char *text, size_t len, size_t *out_len);
/* The id in a create's answer, or -1. */
int64_t message_created_id(const char *json, size_t len);

/* One message of a listing, as what is looked for is compared with it. */
struct message_found {
	int64_t id;
	int64_t created_at; /* ns since the epoch */
	const char *text;   /* normalised; valid for the call */
};
typedef void (*message_found)(const struct message_found *m, void *arg);

/*
 * One page of a listing. Calls FOUND for each message by AGENT made at or
 * after SINCE (ns since the epoch) whose text is TEXT (normalised; NULL: any
 * text that it has). *ROWS counts all of the page, *OLDER is set when one is
 * older than SINCE. -1 when the page is not a listing.
 */
int message_page(const struct message_kind *kind, const char *json, size_t len,
    int64_t agent, int64_t since, const char *text, message_found found,
    void *arg, size_t *rows, bool *older, struct error *e);

#endif
