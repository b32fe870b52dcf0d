#include <errno.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/auth.h"
#include "tests/simulator/fault.h"
#include "tests/simulator/feed.h"
#include "tests/simulator/gate.h"
#include "tests/simulator/journal.h"
#include "tests/simulator/messages.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/ticket.h"

#define EMIT_MAX 100000

static int64_t
emit_one(json_t *from, unsigned int lanes, int64_t nth, struct error *e)
{
	struct feed_event *event = row_new(&feed_event_type);

	row_set(&feed_event_type, event, from);
	if (event->id != 0)
		event->id += nth;
	return feed_emit(event, lanes, e);
}

/* One event, or count alike with ascending ids. */
void
steer_emit(struct exchange *x)
{
	json_t *count = json_object_get(x->body, "count");
	unsigned int lanes =
	    feed_lanes(json_string_value(json_object_get(x->body, "lanes")));
	int64_t n = count == NULL ? 1 : json_integer_value(count);
	int64_t first = 0, last = 0, i;
	struct error e;

	if (row_check(&feed_event_type, x->body, &e) == -1) {
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
		return;
	}
	if (lanes == 0 || n < 1 || n > EMIT_MAX) {
		answer_error(
		    x, HTTP_BADREQUEST, NULL, "lanes or count: out of range");
		return;
	}
	for (i = 0; i < n; i++) {
		last = emit_one(x->body, lanes, i, &e);
		if (last == -1) {
			answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
			return;
		}
		first = i == 0 ? last : first;
	}
	answer_json(x, HTTP_OK,
	    json_pack("{s:I,s:I}", "event_id", (json_int_t)last, "first_id",
		(json_int_t)first));
}

void
steer_publish(struct exchange *x)
{
	json_t *id = json_object_get(x->body, "id");
	unsigned int lanes =
	    feed_lanes(json_string_value(json_object_get(x->body, "lanes")));

	if (lanes == 0)
		answer_error(
		    x, HTTP_BADREQUEST, NULL, "lanes: not poll, live, both");
	else if (feed_publish(json_integer_value(id), lanes) == -1)
		answer_error(x, HTTP_NOTFOUND, NULL, "no such event");
	else
		answer_json(x, HTTP_OK, json_pack("{s:b}", "ok", 1));
}

static uint64_t
query_unsigned(const struct exchange *x, const char *key, uint64_t otherwise)
{
	const char *text = exchange_query(x, key);

	if (text == NULL || strspn(text, "0123456789") != strlen(text))
		return otherwise;
	errno = 0;
	return strtoull(text, NULL, 10);
}

/* Query: after (a number), route (a pattern), limit. */
void
steer_log(struct exchange *x)
{
	json_t *list = journal_list(exchange_query(x, "route"),
	    query_unsigned(x, "after", 0),
	    query_unsigned(x, "limit", JOURNAL_ENTRIES));

	answer_json(x, HTTP_OK,
	    json_pack("{s:o,s:I}", "requests", list, "last",
		(json_int_t)journal_last()));
}

void
steer_messages(struct exchange *x)
{
	answer_json(x, HTTP_OK, messages_json(exchange_query(x, "kind")));
}

void
steer_state(struct exchange *x)
{
	json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "events",
	    (json_int_t)feed.count, "head", (json_int_t)feed_head(), "served",
	    (json_int_t)feed_last_served(), "requests",
	    (json_int_t)journal_last(), "waiting",
	    (json_int_t)exchange_count_held(), "tokens",
	    (json_int_t)auth_count(), "minted", (json_int_t)auth_minted(),
	    "tickets_issued", (json_int_t)ticket_issued(), "fault_hits",
	    (json_int_t)fault_count_hits(0));

	json_object_set_new(o, "faults", fault_list());
	json_object_set_new(o, "gates", gate_list());
	json_object_set(o, "errors", journal_reports());
	json_object_set_new(o, "subscribers", json_integer(0));
	json_object_set_new(
	    o, "options", row_json(&options_type, &sim.options));
	answer_json(x, HTTP_OK, o);
}

/* There is no cable yet, so there are no sockets to drop or to silence. */
void
steer_cable(struct exchange *x)
{
	answer_json(x, HTTP_OK, json_pack("{s:b,s:i}", "ok", 1, "sockets", 0));
}

/* Its tokens and its secret stop working at once; sockets would stay. */
void
steer_disconnect(struct exchange *x)
{
	const char *id = json_string_value(json_object_get(x->body, "client"));
	struct client *client = world_client(id == NULL ? WORLD_CLIENT : id);

	if (client == NULL) {
		answer_error(x, HTTP_NOTFOUND, NULL, "no such client");
		return;
	}
	text_replace(&client->secret, "");
	answer_json(x, HTTP_OK,
	    json_pack("{s:b,s:I}", "ok", 1, "revoked",
		(json_int_t)auth_revoke(NULL, client->client_id)));
}
