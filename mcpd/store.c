#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "mcpd/id.h"
#include "mcpd/store.h"

/* mcpd refuses longer batches, without an id. */
#define BATCH_MAX 32

/* A line of the agent's with the requests in it that are unanswered. */
struct unit {
	TAILQ_ENTRY(unit) entry;
	char *lines; /* with LF, more lines behind it; NULL: did not fit */
	size_t len;
	bool is_batch, is_initialize;
	char *ids[BATCH_MAX]; /* raw tokens; NULL: cancelled */
	size_t id_count;
};

/* ---- reading lines ---------------------------------------------------- */

static bool
span_is(const struct json_span *span, const char *text)
{
	return span->len == strlen(text) &&
	    memcmp(span->bytes, text, span->len) == 0;
}

static bool
member_get(
    const struct json_span *line, const char *path, struct json_span *out)
{
	return json_span(line->bytes, line->len, path, out) == 0;
}

static bool
member_is(const struct json_span *line, const char *path, const char *json)
{
	struct json_span value;

	return member_get(line, path, &value) && span_is(&value, json);
}

static bool
is_array(const struct json_span *line)
{
	size_t i = 0;

	while (i < line->len && strchr(" \t\r", line->bytes[i]) != NULL &&
	    line->bytes[i] != '\0')
		i++;
	return i < line->len && line->bytes[i] == '[';
}

/* A request has a method and an id that its answer will carry. */
static bool
request_id(const struct json_span *message, struct json_span *id)
{
	struct json_span method;

	return member_get(message, "method", &method) &&
	    member_get(message, "id", id) && id_ok(id);
}

/* ---- units ------------------------------------------------------------ */

static void
unit_add_id(struct unit *unit, const struct json_span *id)
{
	unit->ids[unit->id_count++] = xstrndup(id->bytes, id->len);
}

static bool
unit_is_open(const struct unit *unit)
{
	size_t i;

	for (i = 0; i < unit->id_count; i++) {
		if (unit->ids[i] != NULL)
			return true;
	}
	return false;
}

/* The place of ID among the unit's, or NULL. */
static char **
unit_find_id(struct unit *unit, const struct json_span *id)
{
	size_t i;

	for (i = 0; i < unit->id_count; i++) {
		if (unit->ids[i] != NULL && span_is(id, unit->ids[i]))
			return &unit->ids[i];
	}
	return NULL;
}

static void
unit_free(struct unit *unit)
{
	size_t i;

	for (i = 0; i < unit->id_count; i++)
		free(unit->ids[i]);
	free(unit->lines);
	free(unit);
}

static void
store_remove(struct store *s, struct unit *unit)
{
	TAILQ_REMOVE(&s->units, unit, entry);
	s->unit_count--;
	s->bytes -= unit->len;
	unit_free(unit);
}

/* Keep a line for a unit, behind what it has, or nothing of it. */
static void
unit_keep(struct store *s, struct unit *unit, const struct json_span *line)
{
	size_t more = line->len + 1;

	if (s->bytes + more > STORE_BYTES_MAX) {
		s->bytes -= unit->len;
		free(unit->lines);
		unit->lines = NULL;
		unit->len = 0;
		return;
	}
	unit->lines = xreallocarray(unit->lines, unit->len + more, 1);
	memcpy(unit->lines + unit->len, line->bytes, line->len);
	unit->lines[unit->len + line->len] = '\n';
	unit->len += more;
	s->bytes += more;
}

static struct unit *
store_find(struct store *s, const struct json_span *id)
{
	struct unit *unit;

	TAILQ_FOREACH (unit, &s->units, entry) {
		if (unit_find_id(unit, id) != NULL)
			return unit;
	}
	return NULL;
}

/* ---- from the agent --------------------------------------------------- */

static void
store_add(struct store *s, struct unit *unit, const struct json_span *line)
{
	unit_keep(s, unit, line);
	TAILQ_INSERT_TAIL(&s->units, unit, entry);
	s->unit_count++;
}

static void
sent_request(
    struct store *s, const struct json_span *line, const struct json_span *id)
{
	struct unit *unit = xcalloc(1, sizeof(*unit));

	unit_add_id(unit, id);
	unit->is_initialize = member_is(line, "method", "\"initialize\"");
	store_add(s, unit, line);
}

static void
sent_batch(struct store *s, const struct json_span *line)
{
	struct unit *unit;
	struct json_span element, id;
	size_t at = 0, count = 0;

	if (!s->has_batches)
		return; /* refused without an id */
	unit = xcalloc(1, sizeof(*unit));
	unit->is_batch = true;
	while (json_span_next(line, &at, &element) && count++ < BATCH_MAX) {
		if (request_id(&element, &id))
			unit_add_id(unit, &id);
	}
	if (count > BATCH_MAX || unit->id_count == 0)
		unit_free(unit);
	else
		store_add(s, unit, line);
}

/*
 * A cancelled request is not asked for again. An initialize cannot be
 * cancelled; what else its batch asks for can only be asked for with it, so
 * the cancelling is then said again as well.
 */
static void
sent_cancel(struct store *s, const struct json_span *line)
{
	struct json_span id;
	struct unit *unit;
	char **place;

	if (!member_get(line, "params/requestId", &id))
		return;
	unit = store_find(s, &id);
	if (unit == NULL || unit->is_initialize)
		return;
	place = unit_find_id(unit, &id);
	free(*place);
	*place = NULL;
	if (!unit_is_open(unit))
		store_remove(s, unit);
	else if (unit->lines != NULL)
		unit_keep(s, unit, line);
}

/* It belongs to the initialize before it, answered or not. */
static void
sent_initialized(struct store *s, const struct json_span *line)
{
	struct unit *unit;

	TAILQ_FOREACH (unit, &s->units, entry) {
		if (unit->is_initialize && unit->lines != NULL) {
			unit_keep(s, unit, line);
			return;
		}
	}
	if (s->initialize == NULL)
		return;
	free(s->initialized);
	s->initialized = xstrndup(line->bytes, line->len);
}

void
store_sent(struct store *s, const struct json_span *line)
{
	struct json_span id;

	if (is_array(line))
		sent_batch(s, line);
	else if (request_id(line, &id))
		sent_request(s, line, &id);
	else if (member_is(line, "method", "\"notifications/cancelled\""))
		sent_cancel(s, line);
	else if (member_is(line, "method", "\"notifications/initialized\""))
		sent_initialized(s, line);
}

/* ---- from mcpd -------------------------------------------------------- */

/* The session is open: from now on it is opened again for each mcpd. */
static void
store_opened(
    struct store *s, const struct unit *unit, const struct json_span *answer)
{
	const char *lf;

	s->is_opening_lost = unit->lines == NULL;
	if (s->is_opening_lost)
		return;
	free(s->initialize);
	free(s->initialized);
	s->initialized = NULL;
	lf = memchr(unit->lines, '\n', unit->len);
	s->initialize = xstrndup(unit->lines, (size_t)(lf - unit->lines));
	if ((size_t)(lf + 1 - unit->lines) < unit->len)
		s->initialized = xstrndup(
		    lf + 1, unit->len - (size_t)(lf + 1 - unit->lines) - 1);
	s->has_batches =
	    member_is(answer, "result/protocolVersion", "\"2025-03-26\"");
}

static bool
received_one(struct store *s, const struct json_span *line)
{
	struct json_span id, result;
	struct unit *unit;

	if (!member_get(line, "id", &id))
		return true;
	if (s->own_id[0] != '\0' && span_is(&id, s->own_id)) {
		s->own_id[0] = '\0';
		return false;
	}
	unit = store_find(s, &id);
	if (unit == NULL)
		return true;
	if (unit->is_initialize && member_get(line, "result", &result))
		store_opened(s, unit, line);
	store_remove(s, unit);
	return true;
}

/* One line answers a batch, whatever the order in it. */
static void
received_batch(struct store *s, const struct json_span *line)
{
	struct json_span element, id;
	struct unit *unit;
	size_t at = 0;

	while (json_span_next(line, &at, &element)) {
		if (!member_get(&element, "id", &id))
			continue;
		unit = store_find(s, &id);
		if (unit == NULL || !unit->is_batch)
			continue;
		store_remove(s, unit);
		return;
	}
}

bool
store_received(struct store *s, const struct json_span *line)
{
	if (!is_array(line))
		return received_one(s, line);
	received_batch(s, line);
	return true;
}

/* ---- after a death ---------------------------------------------------- */

/* The initialize that was answered, under an id that is not the agent's. */
static void
replay_opening(struct store *s, struct buffer *out)
{
	struct json_span line = {s->initialize, strlen(s->initialize)}, id;

	(void)member_get(&line, "id", &id);
	(void)snprintf(s->own_id, sizeof(s->own_id), "\"connect-bridge:%lu\"",
	    ++s->replays);
	buffer_add(out, line.bytes, (size_t)(id.bytes - line.bytes));
	buffer_add_text(out, s->own_id);
	buffer_add_text(out, id.bytes + id.len);
	buffer_add_char(out, '\n');
	if (s->initialized == NULL)
		return;
	buffer_add_text(out, s->initialized);
	buffer_add_char(out, '\n');
}

void
store_replay(struct store *s, struct buffer *out)
{
	const struct unit *unit;

	s->own_id[0] = '\0';
	if (s->initialize != NULL)
		replay_opening(s, out);
	TAILQ_FOREACH (unit, &s->units, entry)
		buffer_add(out, unit->lines, unit->len);
}

static void
give_up_one(struct buffer *out, const char *id)
{
	buffer_add_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buffer_add_text(out, id);
	buffer_add_text(out,
	    ",\"error\":{\"code\":-32603,\"message\":\"The connector does not "
	    "answer\"}}");
}

void
store_give_up(struct store *s, struct buffer *out)
{
	struct unit *unit;
	bool is_first;
	size_t i;

	while ((unit = TAILQ_FIRST(&s->units)) != NULL) {
		is_first = true;
		for (i = 0; i < unit->id_count; i++) {
			if (unit->ids[i] == NULL)
				continue;
			if (unit->is_batch)
				buffer_add_char(out, is_first ? '[' : ',');
			give_up_one(out, unit->ids[i]);
			is_first = false;
		}
		buffer_add_text(out, unit->is_batch ? "]\n" : "\n");
		store_remove(s, unit);
	}
}

bool
store_is_empty(const struct store *s)
{
	return TAILQ_EMPTY(&s->units);
}

bool
store_is_whole(const struct store *s)
{
	const struct unit *unit;

	TAILQ_FOREACH (unit, &s->units, entry) {
		if (unit->lines == NULL)
			return false;
	}
	return !s->is_opening_lost;
}

void
store_init(struct store *s)
{
	*s = (struct store){.unit_count = 0};
	TAILQ_INIT(&s->units);
}

void
store_clear(struct store *s)
{
	struct unit *unit;

	while ((unit = TAILQ_FIRST(&s->units)) != NULL)
		store_remove(s, unit);
	free(s->initialize);
	free(s->initialized);
}
