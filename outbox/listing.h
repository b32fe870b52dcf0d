/*
 * A destination's messages, all pages (operator.md 1.9): those by the agent,
 * made since a time, that say the same as a text or pass a filter.
 */
#ifndef OUTBOX_LISTING_H
#define OUTBOX_LISTING_H

#include "outbox/message.h"
#include "outbox/outbox.h"

#define LISTING_CANDIDATES_MOST 512

enum listing_end {
	LISTING_WHOLE,     /* the candidates are all there are */
	LISTING_FAILED,    /* later perhaps */
	LISTING_UNASKED,   /* there is no access token to ask with */
	LISTING_UNLISTABLE /* never */
};

/* May this one be it? By one that is not asked again. */
typedef bool (*listing_filter)(const struct message_found *m, void *arg);
/* WAIT_MS of UNASKED: until there may be a token; 0: nobody knows. */
typedef void (*listing_done)(enum listing_end end, const int64_t *candidates,
    size_t count, const char *why, int64_t wait_ms, void *arg);

/*
 * TEXT is normalised; NULL with FILTER: whatever FILTER lets pass. Both get
 * ARG. The whole is bounded by limits.listing_bound.
 */
void listing_start(struct outbox *o, const struct message_kind *kind,
    int64_t recording_id, int64_t since, const char *text,
    listing_filter filter, listing_done done, void *arg);

#endif
