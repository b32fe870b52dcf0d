#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/simulator/journal.h"
#include "tests/simulator/world.h"

#define REPORTS_MAX 1000

/* The foreign parts are kept as one JSON text, which is small. */
struct entry {
	int64_t at_ns;
	int64_t caller;
	const char *method;
	const char *route; /* its pattern, NULL for none */
	char *path;
	char *rest; /* {"query":..,"form":..,"body":..,...} */
	size_t bytes;
	int status;
	bool is_agent;
};

/* Entry NUMBER is at NUMBER % JOURNAL_ENTRIES while first <= NUMBER < next */
static struct entry *entries;
static uint64_t first_number = 1, next_number = 1;
static size_t held_bytes;
static json_t *reports;

static struct entry *
entry_at(uint64_t number)
{
	return &entries[number % JOURNAL_ENTRIES];
}

static void
journal_forget_oldest(void)
{
	struct entry *entry = entry_at(first_number++);

	held_bytes -= entry->bytes;
	free(entry->path);
	free(entry->rest);
	memset(entry, 0, sizeof(*entry));
}

/* A copy in which the client's secret is three stars. */
static json_t *
without_secret(json_t *from)
{
	json_t *copy = json_copy(from);

	if (json_object_get(copy, "client_secret") != NULL)
		json_object_set_new(copy, "client_secret", json_string("***"));
	return copy;
}

static void
rest_set_body(json_t *rest, const struct exchange *x)
{
	struct evbuffer *input = evhttp_request_get_input_buffer(x->req);
	size_t len = evbuffer_get_length(input);

	if (x->form != NULL)
		json_object_set_new(rest, "form", without_secret(x->form));
	else if (x->body != NULL)
		json_object_set_new(rest, "body", without_secret(x->body));
	else if (len > 0)
		json_object_set_new(rest, "body",
		    text_json((char *)evbuffer_pullup(input, -1), len));
}

static void
rest_set_header(json_t *rest, const struct exchange *x, const char *name,
    const char *member)
{
	const char *value = exchange_header(x, name);

	if (value != NULL)
		json_object_set_new(
		    rest, member, text_json(value, strlen(value)));
}

static char *
rest_of(const struct exchange *x)
{
	json_t *rest = json_object();
	char *text;

	json_object_set(rest, "query", x->query);
	rest_set_header(rest, x, "User-Agent", "user_agent");
	rest_set_header(rest, x, "Content-Type", "content_type");
	rest_set_header(rest, x, "Accept", "accept");
	rest_set_body(rest, x);
	text = json_dumps(rest, JSON_COMPACT);
	json_decref(rest);
	return text == NULL ? xstrdup("{}") : text;
}

uint64_t
journal_add(const struct exchange *x)
{
	const struct person *caller = world_person(x->caller);
	struct entry *entry;

	if (entries == NULL)
		entries = xcalloc(JOURNAL_ENTRIES, sizeof(*entries));
	if (next_number - first_number == JOURNAL_ENTRIES)
		journal_forget_oldest();
	entry = entry_at(next_number);
	entry->at_ns = clock_wall_ns();
	entry->caller = x->caller;
	entry->is_agent = caller != NULL && caller->agent;
	entry->method = x->method;
	entry->route = x->route == NULL ? NULL : x->route->pattern;
	entry->path = xstrdup(x->path);
	entry->rest = rest_of(x);
	entry->bytes = strlen(entry->path) + strlen(entry->rest);
	held_bytes += entry->bytes;
	while (held_bytes > JOURNAL_BYTES && first_number < next_number)
		journal_forget_oldest();
	return next_number++;
}

void
journal_answered(uint64_t number, int status)
{
	if (number >= first_number && number < next_number)
		entry_at(number)->status = status;
}

uint64_t
journal_last(void)
{
	return next_number - 1;
}

static bool
entry_matches(const struct entry *entry, const char *pattern)
{
	return pattern == NULL ||
	    pattern_matches(pattern, entry->method, entry->path, NULL);
}

static uint64_t
number_after(uint64_t after)
{
	if (after >= next_number)
		return next_number;
	return after >= first_number ? after + 1 : first_number;
}

size_t
journal_count(const char *pattern, uint64_t after, bool answered)
{
	size_t count = 0;
	uint64_t number;

	for (number = number_after(after); number < next_number; number++) {
		if (answered && entry_at(number)->status == 0)
			continue;
		if (entry_matches(entry_at(number), pattern))
			count++;
	}
	return count;
}

static json_t *
entry_json(uint64_t number, const struct entry *entry)
{
	json_t *object = json_loads(entry->rest, 0, NULL);
	char at[STAMP_SIZE];

	if (object == NULL)
		object = json_object();
	json_object_set_new(object, "n", json_integer((json_int_t)number));
	json_object_set_new(
	    object, "at", json_string(stamp_ns(entry->at_ns, at)));
	json_object_set_new(object, "method", json_string(entry->method));
	json_object_set_new(
	    object, "path", text_json(entry->path, strlen(entry->path)));
	json_object_set_new(object, "route",
	    entry->route == NULL ? json_null() : json_string(entry->route));
	json_object_set_new(object, "caller",
	    entry->caller == 0 ? json_null() : json_integer(entry->caller));
	json_object_set_new(object, "agent", json_boolean(entry->is_agent));
	json_object_set_new(object, "status", json_integer(entry->status));
	return object;
}

json_t *
journal_list(const char *pattern, uint64_t after, size_t limit)
{
	json_t *list = json_array();
	uint64_t number;

	for (number = number_after(after);
	     number < next_number && json_array_size(list) < limit; number++) {
		if (entry_matches(entry_at(number), pattern))
			json_array_append_new(
			    list, entry_json(number, entry_at(number)));
	}
	return list;
}

void
journal_report(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (json_array_size(journal_reports()) < REPORTS_MAX)
		json_array_append_new(reports, text_json(text, strlen(text)));
}

json_t *
journal_reports(void)
{
	if (reports == NULL)
		reports = json_array();
	return reports;
}
