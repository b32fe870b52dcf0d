#include <stdio.h>
#include <stdlib.h>

#include "common/xmalloc.h"
#include "intake/deliver.h"
#include "intake/timer.h"

/* Answers may come in another order than the rows went. */
struct sent_row {
	struct delivery *delivery;
	int64_t event_id;
};

struct delivery {
	struct peer *ledger;
	struct backlog *backlog;
	struct page *page;
	const char *lane;
	struct sent_row *rows; /* one for each of the page's */
	size_t sent;
	size_t answered;
	char refused[41]; /* FAILED's reason, "" while all goes well */
	struct event *begin;
	const struct delivery_ops *ops; /* NULL: cancelled */
	void *arg;
};

static void row_answered(struct peer *ledger, struct msg *reply, void *arg);

static void
delivery_free(struct delivery *d)
{
	event_free(d->begin);
	page_free(d->page);
	free(d->rows);
	free(d);
}

static bool
is_over(const struct delivery *d)
{
	if (d->answered < d->sent)
		return false;
	return d->ops == NULL || *d->refused != '\0' ||
	    d->sent == d->page->count;
}

static void
delivery_finish(struct delivery *d)
{
	if (d->ops != NULL)
		d->ops->done(*d->refused != '\0' ? d->refused : NULL, d->arg);
	delivery_free(d);
}

static void
row_send(struct delivery *d)
{
	struct msg m = {.type = MSG_RECORD};
	struct sent_row *row;

	m.record = d->page->rows[d->sent].record;
	m.record.created_at = d->page->rows[d->sent].stamp;
	if (d->lane != NULL)
		m.record.lane = d->lane;
	row = &d->rows[d->sent++];
	*row = (struct sent_row){d, m.record.event_id};
	d->backlog->in_flight++;
	(void)peer_request(d->ledger, &m, row_answered, row);
}

/*
 * Send what may go now. Whatever holds a row back, something of our own is in
 * flight whose answer comes back here, or the backlog says when it is over.
 */
static void
delivery_pump(struct delivery *d)
{
	while (
	    d->ops != NULL && *d->refused == '\0' && d->sent < d->page->count) {
		if (!backlog_has_room(d->backlog)) {
			if (d->sent > d->answered)
				return;
			backlog_pause(d->backlog);
			d->ops->paused(d->arg);
			return;
		}
		if (d->sent > d->answered && peer_room(d->ledger) == 0)
			return;
		row_send(d);
	}
}

static void
row_answered(struct peer *ledger, struct msg *reply, void *arg)
{
	struct sent_row *row = arg;
	struct delivery *d = row->delivery;

	(void)ledger;
	d->answered++;
	d->backlog->in_flight--;
	if (reply->type == MSG_FAILED) {
		(void)snprintf(
		    d->refused, sizeof(d->refused), "%s", reply->failed.reason);
	} else {
		if (d->ops != NULL && reply->recorded.is_new)
			d->ops->recorded(row->event_id, d->arg);
		backlog_told(d->backlog, reply->recorded.depth);
	}
	delivery_pump(d);
	if (is_over(d))
		delivery_finish(d);
}

static void
delivery_begin(evutil_socket_t fd, short what, void *arg)
{
	struct delivery *d = arg;

	(void)fd;
	(void)what;
	delivery_pump(d);
	if (is_over(d))
		delivery_finish(d);
}

struct delivery *
delivery_start(struct event_base *base, struct peer *ledger,
    struct backlog *backlog, struct page *page, const char *lane,
    const struct delivery_ops *ops, void *arg)
{
	struct delivery *d = xcalloc(1, sizeof(*d));

	d->ledger = ledger;
	d->backlog = backlog;
	d->page = page;
	d->rows = xcalloc(page->count + 1, sizeof(*d->rows));
	d->lane = lane;
	d->ops = ops;
	d->arg = arg;
	d->begin = timer_new(base, delivery_begin, d);
	timer_start(d->begin, 0);
	return d;
}

void
delivery_wake(struct delivery *d)
{
	timer_start(d->begin, 0);
}

void
delivery_cancel(struct delivery *d)
{
	if (d == NULL)
		return;
	d->ops = NULL;
	timer_stop(d->begin);
	if (d->answered == d->sent)
		delivery_free(d);
}
