#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/entry.h"
#include "intake/feed_state.h"
#include "intake/timer.h"

/* ---- what status shows ------------------------------------------------ */

void
feed_show(struct feed *f, const char *fmt, ...)
{
	char text[sizeof(f->shown)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strcmp(text, f->shown) == 0)
		return;
	memcpy(f->shown, text, sizeof(text));
	role_state(f->in->role, "feed", "%s", text);
}

/* ---- the connection --------------------------------------------------- */

/* Give up whatever is under way. */
static void
feed_quiet(struct feed *f)
{
	token_unask(f->in->api.token, &f->token);
	timer_stop(f->timer);
	if (f->asked != 0)
		peer_forget(f->in->ledger, f->asked);
	f->asked = 0;
	poll_cancel(f->poll);
	f->poll = NULL;
	delivery_cancel(f->delivery);
	f->delivery = NULL;
	walk_forget(f);
}

void
feed_end(struct feed *f, const char *reason, const char *text)
{
	feed_quiet(f);
	f->state = FEED_ENDED;
	log_warnx("feed ended: %s: %s", reason, log_safe(text));
	feed_show(f, "ended: %s: %s", reason, log_safe(text));
	role_state(f->in->role, "trouble", "nothing is heard: the feed ended");
}

void
feed_retry(struct feed *f, int64_t ms, const char *kind, const char *text)
{
	if (f->failures == 1)
		log_warnx("feed: %s: %s", kind, log_safe(text));
	f->state = FEED_RETRYING;
	feed_show(f, "retrying: %s: %s", kind, log_safe(text));
	timer_start(f->timer, ms);
}

/* Full jitter over the failures in a row (feed.md 1.5). */
int64_t
feed_retry_wait(const struct feed *f)
{
	const int64_t *limits = f->policy->config->limits;

	return chance_ms(backoff_ms(limits[LIMIT_feed_retry],
	    limits[LIMIT_feed_retry_most], f->failures));
}

/* ---- entering --------------------------------------------------------- */

static void
token_came(const struct token_answer *a, void *arg)
{
	struct feed *f = arg;

	if (a->value != NULL) {
		f->failures = 0;
		feed_happens(f, EVENT_TOKEN);
		return;
	}
	if (strcmp(a->reason, "credential_refused") == 0) {
		feed_end(f, "credential_refused", "no access token");
		return;
	}
	f->failures++;
	feed_retry(f, a->wait_ms > 0 ? a->wait_ms : feed_retry_wait(f),
	    "no access token", a->reason);
}

static void
token_await(struct feed *f)
{
	f->state = FEED_TOKEN;
	feed_show(f, "waiting for the access token");
	token_ask(f->in->api.token, &f->token);
}

static void
entry_came(struct peer *ledger, struct msg *reply, void *arg)
{
	struct feed *f = arg;
	struct entry_facts facts = {0};
	struct entry entry;

	(void)ledger;
	f->asked = 0;
	if (reply->type == MSG_FAILED) {
		feed_end(f, "checkpoint_load", reply->failed.reason);
		return;
	}
	facts.since = f->policy->config->since;
	/* By this process or by one before it. */
	f->has_saved = f->has_saved || reply->entry_is.is_saved;
	facts.has_saved = f->has_saved;
	facts.is_reentry = f->is_reentry;
	facts.position = reply->entry_is.position;
	facts.served_id = reply->entry_is.served_id;
	facts.lineage_served_id = reply->entry_is.lineage_served_id;
	facts.lineage_is_known = reply->entry_is.lineage_is_known;
	entry = entry_choose(&facts, &f->cursor);
	f->is_entered = true;
	f->is_replaying = entry.is_replaying;
	log_info("feed: entered at %s", entry.name);
	if (entry.is_first)
		log_warnx("feed: nothing older than now will be served");
	backlog_told(&f->in->backlog, reply->entry_is.depth);
	feed_happens(f, EVENT_ENTRY);
}

void
feed_enter(struct feed *f)
{
	struct msg m = {.type = MSG_ENTRY};

	f->state = FEED_ENTERING;
	feed_show(f, "entering");
	m.entry.flat_key = f->key.flat;
	m.entry.lineage = f->key.lineage;
	f->asked = peer_request(f->in->ledger, &m, entry_came, f);
}

static void
try_again(struct feed *f)
{
	if (f->is_entered)
		walk_poll(f);
	else
		token_await(f);
}

/* ---- the table -------------------------------------------------------- */

/*
 * What an event does in a state. A blank is what cannot happen there, or is
 * nothing to that state: room in the backlog concerns the paused one alone.
 * Results of polls have a table of their own, in feed_result.c.
 */
static void (*const actions[FEED_STATES][FEED_EVENTS])(struct feed *f) = {
    [FEED_TOKEN] = {[EVENT_TOKEN] = feed_enter},
    [FEED_ENTERING] = {[EVENT_ENTRY] = walk_poll},
    [FEED_RECORDING] =
	{[EVENT_RECORDED] = walk_recorded, [EVENT_FULL] = walk_full},
    [FEED_PAUSED] =
	{[EVENT_ROOM] = walk_resume, [EVENT_RECORDED] = walk_recorded},
    [FEED_SAVING] = {[EVENT_SAVED] = walk_saved},
    [FEED_NOTING] = {[EVENT_NOTED] = result_noted},
    [FEED_WAITING] = {[EVENT_TIMER] = walk_poll},
    [FEED_RETRYING] = {[EVENT_TIMER] = try_again},
};

void
feed_happens(struct feed *f, enum feed_event event)
{
	if (actions[f->state][event] != NULL)
		actions[f->state][event](f);
}

static void
feed_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	feed_happens(arg, EVENT_TIMER);
}

/* ---- from outside ----------------------------------------------------- */

struct feed *
feed_new(struct intake *in)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	f->in = in;
	f->timer = timer_new(in->role->base, feed_timer, f);
	f->token.ready = token_came;
	f->token.arg = f;
	return f;
}

static void
feed_begin(struct feed *f)
{
	feed_quiet(f);
	cursor_set_bare(&f->cursor);
	f->is_entered = f->is_reentry = f->is_replaying = false;
	f->served = 0;
	f->refused = f->gaps = f->unauthorized = f->failures = 0;
	if (f->state == FEED_ENDED)
		role_state(f->in->role, "trouble", "%s", "");
	token_await(f);
}

/* Take the identity over; returns whether it is another one. */
static int
identity_take(struct feed *f, bool *is_new, struct error *e)
{
	struct filters filters;
	struct feed_key key;

	if (filters_of_config(&filters, f->policy->config, e) == -1)
		return -1;
	feed_key_make(&key, f->in->api.origin, f->policy->config, &filters);
	*is_new = f->key.flat == NULL || strcmp(f->key.flat, key.flat) != 0;
	filters_free(&f->filters);
	feed_key_free(&f->key);
	f->filters = filters;
	f->key = key;
	return 0;
}

void
feed_configure(struct feed *f)
{
	struct error e;
	bool is_new;

	policy_unref(f->policy);
	f->policy = policy_ref(f->in->policy);
	if (identity_take(f, &is_new, &e) == -1) {
		feed_end(f, "usage", e.text);
		return;
	}
	if (is_new)
		f->has_saved = false;
	if (is_new || f->state == FEED_OFF || f->state == FEED_ENDED)
		feed_begin(f);
}

void
feed_resume(struct feed *f)
{
	feed_happens(f, EVENT_ROOM);
}

void
feed_stop(struct feed *f)
{
	feed_quiet(f);
	f->state = FEED_OFF;
}
