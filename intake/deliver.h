/*
 * The rows of one page on their way into the ledger: in order, as many at
 * once as link and backlog allow (feed.md 4.1). The repair walk delivers as
 * the feed does, under its own lane.
 */
#ifndef INTAKE_DELIVER_H
#define INTAKE_DELIVER_H

#include "common/peer.h"
#include "intake/backlog.h"
#include "intake/page.h"

struct delivery;

struct delivery_ops {
	/* A row is new to the ledger. */
	void (*recorded)(int64_t event_id, void *arg);
	/* Rows wait for the backlog; delivery_wake() goes on. */
	void (*paused)(void *arg);
	/*
	 * Every row is the ledger's (REFUSED is NULL), or the ledger refused
	 * one for that reason. Never from inside delivery_start(); the
	 * delivery is gone when it returns.
	 */
	void (*done)(const char *refused, void *arg);
};

/*
 * PAGE is taken over. LANE is a constant; NULL leaves each row its own. OPS
 * outlives the delivery.
 */
struct delivery *delivery_start(struct event_base *base, struct peer *ledger,
    struct backlog *backlog, struct page *page, const char *lane,
    const struct delivery_ops *ops, void *arg);
void delivery_wake(struct delivery *d);
/* Nothing more is sent or told; what was sent stands. NULL is fine. */
void delivery_cancel(struct delivery *d);

#endif
