#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/await.h"
#include "tests/simulator/fault.h"
#include "tests/simulator/feed.h"
#include "tests/simulator/journal.h"
#include "tests/simulator/messages.h"
#include "tests/simulator/sim.h"

#define HTTP_TIMEOUT 408
#define DEFAULT_MS 10000
#define WAIT_MS_MAX 600000

struct waiter {
	TAILQ_ENTRY(waiter) link;
	struct exchange *x;
	int64_t (*count)(const struct exchange *x);
	int64_t wanted;
};

static TAILQ_HEAD(, waiter) waiters = TAILQ_HEAD_INITIALIZER(waiters);
static struct event *look;

static int64_t
query_number(const struct exchange *x, const char *key, int64_t otherwise)
{
	const char *text = exchange_query(x, key);
	char *end;
	long long value;

	if (text == NULL || *text == '\0')
		return otherwise;
	value = strtoll(text, &end, 10);
	return *end != '\0' || value < 0 ? -1 : value;
}

static int64_t
requests_count(const struct exchange *x)
{
	return (int64_t)journal_count(exchange_query(x, "route"),
	    (uint64_t)query_number(x, "after", 0), false);
}

static int64_t
answered_count(const struct exchange *x)
{
	return (int64_t)journal_count(exchange_query(x, "route"),
	    (uint64_t)query_number(x, "after", 0), true);
}

static int64_t
messages_of_kind(const struct exchange *x)
{
	return (int64_t)messages_count(exchange_query(x, "kind"));
}

static int64_t
held_count(const struct exchange *x)
{
	return (int64_t)exchange_count_held();
}

static int64_t
fault_hits(const struct exchange *x)
{
	return fault_count_hits(query_number(x, "fault", 0));
}

static int64_t
served_last(const struct exchange *x)
{
	return feed_last_served();
}

static const struct {
	const char *what;
	int64_t (*count)(const struct exchange *x);
} conditions[] = {
    {"requests", requests_count},
    {"answered", answered_count},
    {"messages", messages_of_kind},
    {"held", held_count},
    {"hits", fault_hits},
    {"served", served_last},
};

static void
waiter_answer(struct waiter *waiter, int status)
{
	struct exchange *x = waiter->x;
	int64_t count = waiter->count(x);

	answer_json(x, status,
	    json_pack("{s:b,s:I}", "ok", status == HTTP_OK, "count",
		(json_int_t)count));
	TAILQ_REMOVE(&waiters, waiter, link);
	free(waiter);
}

static void
await_look(int fd, short what, void *unused)
{
	struct waiter *waiter, *next;
	struct exchange *x;

	for (waiter = TAILQ_FIRST(&waiters); waiter != NULL; waiter = next) {
		next = TAILQ_NEXT(waiter, link);
		if (waiter->count(waiter->x) < waiter->wanted)
			continue;
		x = waiter->x;
		waiter_answer(waiter, HTTP_OK);
		exchange_finish(x);
	}
}

void
await_init(void)
{
	look = event_new(sim.base, -1, 0, await_look, NULL);
}

void
await_changed(void)
{
	event_active(look, EV_TIMEOUT, 0);
}

static struct waiter *
waiter_of(const struct exchange *x)
{
	struct waiter *waiter;

	TAILQ_FOREACH (waiter, &waiters, link) {
		if (waiter->x == x)
			return waiter;
	}
	return NULL;
}

/* The deadline has come, or (LEFT) the client has gone. */
static void
await_over(struct exchange *x, bool left)
{
	struct waiter *waiter = waiter_of(x);

	waiter_answer(waiter, HTTP_TIMEOUT);
	if (!left)
		exchange_finish(x);
}

static int64_t (*condition_named(const char *what))(const struct exchange *)
{
	size_t i;

	for (i = 0;
	     what != NULL && i < sizeof(conditions) / sizeof(conditions[0]);
	     i++) {
		if (strcmp(conditions[i].what, what) == 0)
			return conditions[i].count;
	}
	return NULL;
}

void
steer_await(struct exchange *x)
{
	int64_t ms = query_number(x, "timeout_ms", DEFAULT_MS);
	const char *route = exchange_query(x, "route");
	struct waiter *waiter;

	if (condition_named(exchange_query(x, "what")) == NULL || ms < 0 ||
	    ms > WAIT_MS_MAX || query_number(x, "count", 1) < 0 ||
	    query_number(x, "after", 0) < 0 ||
	    query_number(x, "fault", 0) < 0 ||
	    (route != NULL && !pattern_is_valid(route))) {
		answer_error(x, HTTP_BADREQUEST, NULL, "cannot await that");
		return;
	}
	waiter = xcalloc(1, sizeof(*waiter));
	waiter->x = x;
	waiter->count = condition_named(exchange_query(x, "what"));
	waiter->wanted = query_number(x, "count", 1);
	TAILQ_INSERT_TAIL(&waiters, waiter, link);
	exchange_wait(x, ms, await_over);
	await_changed();
}
