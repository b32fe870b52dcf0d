#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/admission.h"
#include "intake/feed_state.h"
#include "intake/timer.h"

/* ---- reading ----------------------------------------------------------- */

void
walk_forget(struct feed *f)
{
	f->is_walking = f->is_present = false;
	free(f->held);
	free(f->position);
	free(f->next);
	free(f->resume);
	f->held = f->position = f->next = f->resume = NULL;
}

void
walk_poll(struct feed *f)
{
	struct buffer query = {0};

	if (!backlog_has_room(&f->in->backlog)) {
		backlog_pause(&f->in->backlog);
		f->state = FEED_PAUSED;
		feed_show(f, "paused: too many records wait for a decision");
		return;
	}
	if (!f->is_walking) {
		f->is_walking = true;
		f->is_present = cursor_is_present(&f->cursor);
	}
	f->state = FEED_POLLING;
	if (f->failures == 0)
		feed_show(f, "reading");
	cursor_write_query(&f->cursor, &f->filters, &query);
	f->poll = poll_start(&f->in->api, query.bytes,
	    f->policy->config->limits, &result_ops, f);
	buffer_free(&query);
}

static void
row_recorded(int64_t event_id, void *arg)
{
	struct feed *f = arg;

	admission_offer(f->in->admission, event_id);
}

static void
rows_paused(void *arg)
{
	feed_happens(arg, EVENT_FULL);
}

static void
rows_done(const char *refused, void *arg)
{
	struct feed *f = arg;

	f->delivery = NULL;
	if (refused != NULL)
		feed_end(f, "record_refused", refused);
	else
		feed_happens(f, EVENT_RECORDED);
}

static const struct delivery_ops rows_ops = {
    row_recorded, rows_paused, rows_done};

/* A page without a fault: what went wrong before it is over. */
void
walk_page(struct feed *f, struct poll_result *r)
{
	struct page *page = r->page;

	r->page = NULL;
	if (f->failures > 0)
		log_info("feed: reading again");
	feed_show(f, "reading");
	f->failures = f->unauthorized = f->refused = f->gaps = 0;
	f->page_served = page->highest;
	free(f->position);
	free(f->next);
	f->position = xstrdup(page->position);
	f->next =
	    page->next == NULL ? NULL : xstrndup(page->next, page->next_len);
	f->state = FEED_RECORDING;
	f->delivery = delivery_start(f->in->role->base, f->in->ledger,
	    &f->in->backlog, page, NULL, &rows_ops, f);
}

void
walk_full(struct feed *f)
{
	f->state = FEED_PAUSED;
	feed_show(f, "paused: too many records wait for a decision");
}

/* Either rows of a page wait, or the next poll. */
void
walk_resume(struct feed *f)
{
	if (f->delivery == NULL) {
		walk_poll(f);
		return;
	}
	f->state = FEED_RECORDING;
	feed_show(f, "reading");
	delivery_wake(f->delivery);
}

/* ---- saving ----------------------------------------------------------- */

static void
saved(struct peer *ledger, struct msg *reply, void *arg)
{
	struct feed *f = arg;

	(void)ledger;
	f->asked = 0;
	/* Not undone: the rows are the ledger's, and the walk goes on. */
	if (reply->type == MSG_FAILED)
		log_warnx("feed: position not saved: %s",
		    log_safe(reply->failed.reason));
	feed_happens(f, EVENT_SAVED);
}

/* POSITION "" saves the served id alone. */
static void
save(struct feed *f, const char *position, int64_t served_id)
{
	struct msg m = {.type = MSG_CHECKPOINT};

	f->state = FEED_SAVING;
	m.checkpoint.flat_key = f->key.flat;
	m.checkpoint.lineage = f->key.lineage;
	m.checkpoint.position = position;
	m.checkpoint.served_id = served_id;
	f->asked = peer_request(f->in->ledger, &m, saved, f);
	if (*position != '\0')
		f->has_saved = true;
}

static void
walk_end(struct feed *f)
{
	int64_t poll = f->policy->config->limits[LIMIT_feed_poll];

	f->is_replaying = false;
	f->is_walking = false;
	cursor_set_position(&f->cursor, f->position);
	f->state = FEED_WAITING;
	feed_show(f, "reading");
	/* Uniform in 0.8 to 1.2 of it, so that connectors spread out. */
	timer_start(f->timer, poll - poll / 5 + chance_ms(2 * (poll / 5)));
}

void
walk_follow(struct feed *f, const char *url, const char *what)
{
	switch (
	    cursor_follow(&f->cursor, url, strlen(url), f->in->api.origin)) {
	case FOLLOW_OK:
		walk_poll(f);
		break;
	case FOLLOW_FOREIGN:
		feed_end(f, "invalid_continuation", what);
		break;
	case FOLLOW_UNUSABLE:
		feed_end(f, "poll_failed", what);
		break;
	}
}

/* The page is the ledger's and its position is saved or held: what next? */
void
walk_saved(struct feed *f)
{
	char *held = f->held;

	if (f->next != NULL) {
		walk_follow(f, f->next, "a page's next");
	} else if (held != NULL) {
		/* The walk is over: now what it held back counts. */
		f->held = NULL;
		save(f, held, 0);
		free(held);
	} else {
		walk_end(f);
	}
}

/* Every row is in the ledger: only now may the position follow. */
void
walk_recorded(struct feed *f)
{
	if (f->page_served > f->served)
		f->served = f->page_served;
	if (!f->is_present) {
		save(f, f->position, f->page_served);
		return;
	}
	free(f->held);
	f->held = xstrdup(f->position);
	if (f->page_served > 0)
		save(f, "", f->page_served);
	else
		walk_saved(f);
}
