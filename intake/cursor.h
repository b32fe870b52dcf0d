/*
 * Where a feed is read from, as the server understands it (feed.md 1.1, 1.3,
 * 2.8), and what kind of entry that is.
 */
#ifndef INTAKE_CURSOR_H
#define INTAKE_CURSOR_H

#include "common/buffer.h"
#include "intake/filters.h"

enum cursor_kind {
	CURSOR_BARE,     /* nothing is said: the present */
	CURSOR_SINCE,    /* behind an event id; 0 is the beginning */
	CURSOR_POSITION, /* behind a position that the feed gave */
	CURSOR_FOLLOWED  /* as a URL that the feed gave says */
};

struct cursor {
	enum cursor_kind kind;
	int64_t since;   /* CURSOR_SINCE */
	char *text;      /* the position; the query to send if FOLLOWED */
	bool is_present; /* FOLLOWED: since=now */
};

void cursor_set_bare(struct cursor *c);
void cursor_set_since(struct cursor *c, int64_t id);
/* POSITION is not empty: an empty one would read as "the present". */
void cursor_set_position(struct cursor *c, const char *position);
void cursor_free(struct cursor *c);

enum cursor_follow {
	FOLLOW_OK,
	FOLLOW_FOREIGN, /* not of ORIGIN, or no such URL at all */
	FOLLOW_UNUSABLE /* its query is not one cursor and filters */
};
/*
 * Follow a URL of the feed's: only its query counts, rebuilt from the keys
 * that are known. C is unchanged unless FOLLOW_OK.
 */
enum cursor_follow cursor_follow(
    struct cursor *c, const char *url, size_t len, const char *origin);
/* since= of a 410's resume: "present", "replay" or "unknown". */
const char *cursor_entry_class(const char *url, size_t len);

/* Present-class: a page's position is kept back until its walk has ended. */
bool cursor_is_present(const struct cursor *c);
/* The query of a request, without '?'; F is not used for FOLLOWED. */
void cursor_write_query(
    const struct cursor *c, const struct filters *f, struct buffer *b);

#endif
