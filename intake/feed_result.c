#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/feed_state.h"

#define REFUSALS_MOST 3 /* of the token, in a row */
#define GAPS_MOST 2     /* 410s in a row */

static void
noted(struct peer *ledger, struct msg *reply, void *arg)
{
	struct feed *f = arg;

	(void)ledger;
	f->asked = 0;
	if (reply->type == MSG_FAILED)
		feed_end(f, "checkpoint_load", reply->failed.reason);
	else
		feed_happens(f, EVENT_NOTED);
}

/*
 * A refused position is no reason to jump to the present: behind the greatest
 * id served, in this connection or, as the ledger knows, in an earlier one.
 */
static void
reenter(struct feed *f)
{
	if (f->served > 0) {
		cursor_set_since(&f->cursor, f->served);
		walk_poll(f);
		return;
	}
	f->is_reentry = true;
	feed_enter(f);
}

static void
position_refused(struct feed *f, struct poll_result *r)
{
	struct msg m = {.type = MSG_DROP_POSITION};

	if (++f->refused > 1) {
		feed_end(f, "position_refused", "and so was the way back");
		return;
	}
	log_warnx("feed: position refused: %s", poll_kind_name(r->kind));
	walk_forget(f);
	if (f->cursor.kind != CURSOR_POSITION) {
		reenter(f);
		return;
	}
	f->state = FEED_NOTING;
	m.drop_position.flat_key = f->key.flat;
	m.drop_position.position = f->cursor.text;
	f->asked = peer_request(f->in->ledger, &m, noted, f);
	cursor_set_bare(&f->cursor);
}

static void
nonce_make(char out[static 33])
{
	unsigned char bytes[16];
	size_t i;

	arc4random_buf(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/*
 * The feed begins later than we stand. That is noted before anything else,
 * then the feed says itself where to go on.
 */
static void
feed_gone(struct feed *f, struct poll_result *r)
{
	struct msg m = {.type = MSG_GAP};
	char nonce[33];

	if (++f->gaps > GAPS_MOST) {
		feed_end(f, "feed_gap", "gap after gap without a page");
		return;
	}
	walk_forget(f);
	f->resume = xstrndup(r->resume, r->resume_len);
	nonce_make(nonce);
	m.gap.nonce = nonce;
	m.gap.class = "epoch";
	m.gap.epoch_after_id = (struct opt){true, r->epoch_after_id};
	m.gap.entry_class = cursor_entry_class(r->resume, r->resume_len);
	m.gap.note =
	    f->is_replaying ? "expected: entered at the beginning" : "";
	log_warnx("feed: gap up to event %" PRId64, r->epoch_after_id);
	f->is_replaying = false;
	f->state = FEED_NOTING;
	f->asked = peer_request(f->in->ledger, &m, noted, f);
}

void
result_noted(struct feed *f)
{
	char *resume = f->resume;

	if (resume == NULL) {
		reenter(f);
		return;
	}
	f->resume = NULL;
	walk_follow(f, resume, "a gap's resume");
	free(resume);
}

static void
try_later(struct feed *f, struct poll_result *r)
{
	f->failures++;
	feed_retry(f,
	    r->kind == POLL_THROTTLED ? r->retry_after_ms : feed_retry_wait(f),
	    poll_kind_name(r->kind), r->text);
}

static void end_for_good(struct feed *f, struct poll_result *r);

static void
unauthorized(struct feed *f, struct poll_result *r)
{
	if (++f->unauthorized >= REFUSALS_MOST)
		end_for_good(f, r);
	else
		try_later(f, r);
}

static void
filter_refused(struct feed *f, struct poll_result *r)
{
	/* The one text of the server's that is kept: it says which filter. */
	log_warnx("feed: filters refused: %s",
	    log_safe_n(r->message.bytes, r->message.len));
	end_for_good(f, r);
}

static const struct {
	void (*follows)(struct feed *f, struct poll_result *r);
	const char *ends_as;
} results[] = {
    [POLL_PAGE] = {walk_page, NULL},
    [POLL_POSITION_INVALID] = {position_refused, NULL},
    [POLL_FILTER_INVALID] = {filter_refused, "filter_invalid"},
    [POLL_FILTER_CHANGED] = {position_refused, NULL},
    [POLL_GONE] = {feed_gone, NULL},
    [POLL_UNAUTHORIZED] = {unauthorized, "authorization_failed"},
    [POLL_THROTTLED] = {try_later, NULL},
    [POLL_TRANSIENT] = {try_later, NULL},
    [POLL_REDIRECT] = {end_for_good, "invalid_continuation"},
    [POLL_MALFORMED] = {end_for_good, "poll_failed"},
    [POLL_UNRECOVERABLE] = {end_for_good, "poll_failed"},
    [POLL_NO_CREDENTIAL] = {end_for_good, "credential_refused"},
};
static_assert(sizeof(results) / sizeof(results[0]) == POLL_KINDS,
    "every result has its consequence");

static void
end_for_good(struct feed *f, struct poll_result *r)
{
	feed_end(f, results[r->kind].ends_as, r->text);
}

static void
result_again(const char *text, void *arg)
{
	feed_show(arg, "trying again: %s", text);
}

static void
result_came(struct poll_result *r, void *arg)
{
	struct feed *f = arg;

	f->poll = NULL;
	results[r->kind].follows(f, r);
}

const struct poll_ops result_ops = {result_again, result_came};
