/*
 * The inside of the feed: what feed.c (states, entering), feed_walk.c (pages
 * and their positions) and feed_result.c (what an answer leads to) share.
 */
#ifndef INTAKE_FEED_STATE_H
#define INTAKE_FEED_STATE_H

#include "intake/cursor.h"
#include "intake/deliver.h"
#include "intake/feed.h"
#include "intake/poll.h"

enum feed_state {
	FEED_OFF,       /* no configuration yet, or stopped */
	FEED_TOKEN,     /* waiting for the first access token */
	FEED_ENTERING,  /* the ledger is asked where */
	FEED_POLLING,   /* a page is asked for */
	FEED_RECORDING, /* its rows go to the ledger */
	FEED_PAUSED,    /* the backlog is full: rows, or the next poll, wait */
	FEED_SAVING,    /* its position goes to the ledger */
	FEED_NOTING,    /* so does a refused position, or a gap */
	FEED_WAITING,   /* the walk is over; the next one is timed */
	FEED_RETRYING,  /* a poll failed; the same one is timed */
	FEED_ENDED,     /* for good: until configuration changes */
	FEED_STATES
};

enum feed_event {
	EVENT_TOKEN,    /* there is one */
	EVENT_ENTRY,    /* the ledger said where */
	EVENT_RECORDED, /* every row of the page is the ledger's */
	EVENT_FULL,     /* the backlog is */
	EVENT_ROOM,     /* it is no more */
	EVENT_SAVED,    /* the ledger has the position */
	EVENT_NOTED,    /* the ledger has the note */
	EVENT_TIMER,
	FEED_EVENTS
};

struct feed {
	struct intake *in;
	enum feed_state state;
	struct event *timer;
	char shown[300]; /* as status has it now */

	/* Of the identity. */
	struct policy *policy;
	struct filters filters;
	struct feed_key key;
	bool has_saved; /* in this run: --since is over */

	/* Of the connection: from one entry to the next. */
	struct cursor cursor; /* of the next poll */
	bool is_entered;
	bool is_reentry;   /* the ledger's position was refused */
	bool is_replaying; /* a 410 is to be expected */
	int64_t served;    /* greatest id that a page served, 0: none */
	int refused;       /* positions in a row, without a page between */
	int gaps;          /* 410s in a row */
	int unauthorized;  /* in a row */
	int failures;      /* polls in a row */

	/* Of the walk. */
	bool is_walking;
	bool is_present; /* its positions are held back */
	char *held;      /* the newest of them */

	/* Of the page. */
	char *position, *next;
	int64_t page_served;
	char *resume; /* of a 410 that is being noted, or NULL */

	/* What is under way; at most one of them. */
	struct token_wait token;
	uint64_t asked; /* of the ledger; 0: nothing */
	struct poll *poll;
	struct delivery *delivery;
};

/* feed.c */

/* Do what the table says of EVENT in this state. */
void feed_happens(struct feed *f, enum feed_event event);
/* The text that status has for the feed. */
void feed_show(struct feed *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing more by itself. REASON is one of feed.md 2.8, or of ours. */
void feed_end(struct feed *f, const char *reason, const char *text);
/* The same request again, after MS; one failure more was counted. */
void feed_retry(struct feed *f, int64_t ms, const char *kind, const char *text);
/* How long, when nobody said. */
int64_t feed_retry_wait(const struct feed *f);
/* Ask the ledger where to enter. */
void feed_enter(struct feed *f);

/* feed_walk.c */

/* Ask for the page at the cursor, if there is room for what it brings. */
void walk_poll(struct feed *f);
/* Go where a URL of the feed's says; WHAT names it if that cannot be. */
void walk_follow(struct feed *f, const char *url, const char *what);
/* Drop what belongs to the walk alone. */
void walk_forget(struct feed *f);
/* A whole page: into the ledger with it. */
void walk_page(struct feed *f, struct poll_result *r);
void walk_full(struct feed *f);
void walk_resume(struct feed *f);
void walk_recorded(struct feed *f);
void walk_saved(struct feed *f);

/* feed_result.c */

/* What the poll under way tells. */
extern const struct poll_ops result_ops;
/* The ledger has noted a refused position, or a gap. */
void result_noted(struct feed *f);

#endif
