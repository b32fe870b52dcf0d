#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "mcpd/id.h"
#include "mcpd/outline.h"
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

/* As mcpd echoes it. */
static bool
unit_has_id(const struct unit *unit, const struct json_span *id)
{
	size_t i;

	for (i = 0; i < unit->id_count; i++) {
		if (unit->ids[i] != NULL && span_is(id, unit->ids[i]))
			return true;
	}
	return false;
}

/* Whether anything in it was cancelled; an initialize cannot be. */
static bool
unit_cancel(struct unit *unit, const struct json_span *id)
{
	struct json_span have;
	bool is_hit = false;
	size_t i;

	for (i = 0; i < unit->id_count && !unit->is_initialize; i++) {
		if (unit->ids[i] == NULL)
			continue;
		have = (struct json_span){unit->ids[i], strlen(unit->ids[i])};
		if (!id_equal(&have, id))
			continue;
		free(unit->ids[i]);
		unit->ids[i] = NULL;
		is_hit = true;
	}
	return is_hit;
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

/* An answer on a line of its own is never a batch's, nor the other way. */
static struct unit *
store_find(struct store *s, const struct json_span *id, bool is_batch)
{
	struct unit *unit;

	TAILQ_FOREACH (unit, &s->units, entry) {
		if (unit->is_batch == is_batch && unit_has_id(unit, id))
			return unit;
	}
	return NULL;
}

static bool
store_is_opening(const struct store *s)
{
	const struct unit *unit;

	TAILQ_FOREACH (unit, &s->units, entry) {
		if (unit->is_initialize)
			return true;
	}
	return false;
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
    struct store *s, const struct json_span *line, const struct outline *o)
{
	struct unit *unit = xcalloc(1, sizeof(*unit));

	unit_add_id(unit, &o->id);
	unit->is_initialize = outline_method_is(o, "initialize");
	store_add(s, unit, line);
}

/*
 * A cancelled request is not asked for again. What else its batch asks for can
 * only be asked for with it, so the cancelling is then said again as well.
 */
static void
store_cancel(
    struct store *s, const struct json_span *line, const struct json_span *id)
{
	struct unit *unit, *next;

	for (unit = TAILQ_FIRST(&s->units); unit != NULL; unit = next) {
		next = TAILQ_NEXT(unit, entry);
		if (!unit_cancel(unit, id))
			continue;
		if (!unit_is_open(unit))
			store_remove(s, unit);
		else if (unit->lines != NULL)
			unit_keep(s, unit, line);
	}
}

static bool
is_cancel(
    const struct json_span *line, const struct outline *o, struct json_span *id)
{
	return o->kind == OUTLINE_NOTIFICATION &&
	    outline_method_is(o, "notifications/cancelled") &&
	    member_get(line, "params/requestId", id) && id_ok(id);
}

/* A batch may cancel what is in it, and what was said before it. */
static void
sent_element(
    struct store *s, struct unit *unit, const struct json_span *element)
{
	struct outline o;
	struct json_span id;

	outline_read(&o, element);
	if (o.kind == OUTLINE_ANSWERED) {
		unit_add_id(unit, &o.id);
	} else if (is_cancel(element, &o, &id)) {
		(void)unit_cancel(unit, &id);
		store_cancel(s, element, &id);
	}
}

/*
 * The others are refused without an id. What an initialize before it brings
 * will be known with its answer.
 */
static bool
may_be_served(const struct store *s, const struct json_span *line)
{
	struct json_span element;
	size_t at = 0, count = 0;

	if (!s->has_batches && !store_is_opening(s))
		return false;
	while (count <= BATCH_MAX && json_span_next(line, &at, &element))
		count++;
	return count <= BATCH_MAX;
}

static void
sent_batch(struct store *s, const struct json_span *line)
{
	struct unit *unit;
	struct json_span element;
	size_t at = 0;

	if (!may_be_served(s, line))
		return;
	unit = xcalloc(1, sizeof(*unit));
	unit->is_batch = true;
	while (json_span_next(line, &at, &element))
		sent_element(s, unit, &element);
	if (unit_is_open(unit))
		store_add(s, unit, line);
	else
		unit_free(unit);
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
	struct outline o;
	struct json_span id;

	outline_read(&o, line);
	if (o.kind == OUTLINE_BATCH)
		sent_batch(s, line);
	else if (o.kind == OUTLINE_ANSWERED)
		sent_request(s, line, &o);
	else if (is_cancel(line, &o, &id))
		store_cancel(s, line, &id);
	else if (o.kind == OUTLINE_NOTIFICATION &&
	    outline_method_is(&o, "notifications/initialized"))
		sent_initialized(s, line);
}

/* ---- from mcpd -------------------------------------------------------- */

/* The session is open: from now on it is opened again for each mcpd. */
static void
store_opened(
    struct store *s, const struct unit *unit, const struct json_span *answer)
{
	const char *lf;

	s->has_batches =
	    member_is(answer, "result/protocolVersion", "\"2025-03-26\"");
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
}

/* The batches that were said between this initialize and the next. */
static void
refuse_batches(struct store *s, struct unit *initialize)
{
	struct unit *unit, *next = TAILQ_NEXT(initialize, entry);

	while ((unit = next) != NULL && !unit->is_initialize) {
		next = TAILQ_NEXT(unit, entry);
		if (unit->is_batch)
			store_remove(s, unit);
	}
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
	unit = store_find(s, &id, false);
	if (unit == NULL)
		return true;
	if (unit->is_initialize && member_get(line, "result", &result))
		store_opened(s, unit, line);
	if (unit->is_initialize && !s->has_batches)
		refuse_batches(s, unit);
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
		unit = store_find(s, &id, true);
		if (unit == NULL)
			continue;
		store_remove(s, unit);
		return;
	}
}

bool
store_received(struct store *s, const struct json_span *line)
{
	if (line->len == 0 || line->bytes[0] != '[')
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
