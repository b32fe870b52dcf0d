/*
 * LIST_REPLIES: what the agent posted itself at a place between two moments,
 * for a worker that went away without saying so (operator.md 1.14, 2.8). What
 * the connector itself may have posted there is none of it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "outbox/listing.h"

/* As many intents of one place as the ledger tells of. */
#define OWN_MOST 1000

struct replies {
	struct outbox *o;
	struct reply_to to;
	int64_t since, before; /* wall ns; before 0: no end */
	struct opt ack_id;
	char *own[OWN_MOST]; /* our own words there, normalised */
	size_t own_count;
};

static void
replies_free(struct replies *r)
{
	size_t i;

	for (i = 0; i < r->own_count; i++)
		free(r->own[i]);
	free(r);
}

static void
replies_fail(struct replies *r, const char *reason, const char *why)
{
	peer_fail(&r->to, reason, 0, "%s", why);
	replies_free(r);
}

static bool
is_a_reply(const struct message_found *m, void *arg)
{
	const struct replies *r = arg;
	size_t i;

	if (m->created_at <= r->since ||
	    (r->before != 0 && m->created_at >= r->before) ||
	    (r->ack_id.has && r->ack_id.value == m->id))
		return false;
	for (i = 0; i < r->own_count; i++) {
		if (strcmp(r->own[i], m->text) == 0)
			return false;
	}
	return true;
}

static void
on_listed(enum listing_end end, const int64_t *candidates, size_t count,
    const char *why, int64_t wait_ms, void *arg)
{
	struct msg m = {.type = MSG_REPLIES};
	struct replies *r = arg;

	if (end != LISTING_WHOLE) {
		replies_fail(r, "transient", why);
		return;
	}
	m.replies.ids = (struct ids){candidates, count};
	peer_reply(&r->to, &m);
	replies_free(r);
}

/* The ledger's own JSON: an array of bodies. */
static int
own_read(struct replies *r, struct blob bodies)
{
	const struct json_rules rules = {.max_bytes = (size_t)8 * 1024 * 1024,
	    .max_depth = 1,
	    .max_members = OWN_MOST};
	json_t *list, *body;
	struct error e;
	size_t i;

	if (bodies.len == 0)
		return 0;
	list = json_read(bodies.bytes, bodies.len, &rules, &e);
	json_array_foreach (list, i, body) {
		if (json_is_string(body))
			r->own[r->own_count++] =
			    text_normalise(json_string_value(body),
				json_string_length(body), NULL);
	}
	json_decref(list);
	return list == NULL ? -1 : 0;
}

static int
times_read(struct replies *r, const struct msg_list_replies *m)
{
	return clock_parse(m->since, &r->since) == -1 ||
		(*m->before != '\0' && clock_parse(m->before, &r->before) == -1)
	    ? -1
	    : 0;
}

void
on_list_replies(struct peer *peer, struct msg *m, void *arg)
{
	const struct msg_list_replies *asked = &m->list_replies;
	struct replies *r = xcalloc(1, sizeof(*r));
	const struct message_kind *kind = message_kind(asked->message_kind);

	r->o = arg;
	r->to = peer_reply_to(peer, m);
	r->ack_id = asked->ack_id;
	if (kind == NULL || times_read(r, asked) == -1 ||
	    own_read(r, asked->own) == -1)
		replies_fail(r, "refused", "no such place or time");
	else if (r->o->stopping)
		replies_fail(r, "cancelled", "the outbox is stopping");
	else
		listing_start(r->o, kind, asked->recording_id, r->since, NULL,
		    is_a_reply, on_listed, r);
	msg_free(m);
}
