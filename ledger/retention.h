/*
 * Retention (ledger.md I16 and what follows it): once a night what ended
 * longer ago than the operator wants to keep it loses its content. Its row
 * stays for ever, so that the feed's ids stay known.
 */
#ifndef LEDGER_RETENTION_H
#define LEDGER_RETENTION_H

#include "ledger/ledger.h"

/* One transaction clears so many records at most: no request waits longer. */
#define RETENTION_BATCH 64
/* The hour of the day, UTC. */
#define RETENTION_HOUR 3

struct retention {
	int64_t due_ns;  /* wall clock; INT64_MAX: never */
	int64_t cleared; /* by the run in hand */
};

/*
 * When is the next run? At once (a moment past) when the last night's was
 * missed; never while the configuration keeps everything. -1.
 */
int retention_plan(struct ledger *l, struct retention *r);

enum retention_step {
	RETENTION_WAITS,  /* not due yet */
	RETENTION_MORE,   /* step again, after whatever else waits */
	RETENTION_OVER,   /* done for this night, and that is written down */
	RETENTION_FAILED, /* the storage refused: tried again next night */
	RETENTION_UNKNOWN /* its COMMIT failed: the process must end */
};

/*
 * One batch, in a transaction of its own, outside of any turn. Keeps
 * R->due_ns up to date.
 */
enum retention_step retention_step(struct ledger *l, struct retention *r);

#endif
