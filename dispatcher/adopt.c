/*
 * What a worker may have posted of its own before it went away (operator.md
 * 2.8): for each event whose outcome is unknown the agent's words at its place
 * are listed, and exactly one that can be nothing else is linked to it. An
 * outcome stays unknown; nothing waits for this, and what a death or a stop
 * cuts short is not taken up again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "dispatcher/attempt.h"

/* For all events of one settlement. */
struct adoption {
	struct dispatcher *d;
	char attempt[ATTEMPT_ID_LEN + 1];
	int64_t event_id; /* looked at last */
	int64_t as_of;    /* what its listing left out, */
	char words[65];   /* as ADOPTABLE told it */
	int64_t until;    /* monotonic ms */
};

static void adopt_next(struct adoption *ad);

static void
on_adopted(struct peer *peer, struct msg *m, void *arg)
{
	struct adoption *ad = arg;

	if (m->type == MSG_DONE && m->done.changed)
		log_info("%s: a reply to event %lld was found and linked",
		    ad->attempt, (long long)ad->event_id);
	adopt_next(ad);
}

/* None or several: nothing is guessed. */
static void
on_replies(struct peer *peer, struct msg *m, void *arg)
{
	struct adoption *ad = arg;
	struct msg adopt = {.type = MSG_ADOPT};

	if (m->type != MSG_REPLIES || m->replies.ids.count != 1) {
		adopt_next(ad);
		return;
	}
	adopt.adopt.attempt = ad->attempt;
	adopt.adopt.event_id = ad->event_id;
	adopt.adopt.reply_id = m->replies.ids.list[0];
	adopt.adopt.as_of = ad->as_of;
	adopt.adopt.words = ad->words;
	(void)peer_request(dispatcher_ledger(ad->d), &adopt, on_adopted, ad);
}

static void
on_adoptable(struct peer *peer, struct msg *m, void *arg)
{
	const struct msg_adoptable *found = &m->adoptable;
	struct adoption *ad = arg;
	struct msg list = {.type = MSG_LIST_REPLIES};

	if (m->type != MSG_ADOPTABLE || !found->found) {
		free(ad);
		return;
	}
	ad->event_id = found->event_id;
	ad->as_of = found->as_of;
	(void)snprintf(ad->words, sizeof(ad->words), "%s", found->words);
	list.list_replies.message_kind = found->message_kind;
	list.list_replies.recording_id = found->recording_id;
	list.list_replies.since = found->since;
	list.list_replies.before = found->before;
	list.list_replies.ack_id = found->ack_id;
	list.list_replies.own = found->own;
	(void)peer_request(dispatcher_outbox(ad->d), &list, on_replies, ad);
}

static void
adopt_next(struct adoption *ad)
{
	struct msg m = {.type = MSG_ADOPTABLE_NEXT};

	if (ad->d->stopping || clock_monotonic_ms() >= ad->until) {
		free(ad);
		return;
	}
	m.adoptable_next.attempt = ad->attempt;
	m.adoptable_next.after_event = ad->event_id;
	(void)peer_request(dispatcher_ledger(ad->d), &m, on_adoptable, ad);
}

void
adopt_begin(struct dispatcher *d, const char *attempt)
{
	struct adoption *ad = xcalloc(1, sizeof(*ad));

	ad->d = d;
	(void)snprintf(ad->attempt, sizeof(ad->attempt), "%s", attempt);
	ad->until =
	    clock_monotonic_ms() + dispatcher_limit(d, LIMIT_adoption_bound);
	adopt_next(ad);
}
