/* Where to enter the feed: one table, the first row that applies. */
#ifndef INTAKE_ENTRY_H
#define INTAKE_ENTRY_H

#include "intake/cursor.h"

struct entry_facts {
	int64_t since;             /* --since; 0: none */
	bool has_saved;            /* a position, in this run */
	bool is_reentry;           /* the feed refused this key's position */
	const char *position;      /* of this key; "": none */
	int64_t served_id;         /* of this key */
	int64_t lineage_served_id; /* the greatest over all filter sets */
	bool lineage_is_known;     /* it had a position once */
};

struct entry {
	const char *name;  /* for logs */
	bool is_replaying; /* from the beginning: a 410 is to be expected */
	bool is_first;     /* nothing older will ever be served */
};

/* Sets CURSOR, and says which row it was (feed.md 4.3). */
struct entry entry_choose(
    const struct entry_facts *facts, struct cursor *cursor);

#endif
