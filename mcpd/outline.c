#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "mcpd/id.h"
#include "mcpd/message.h"
#include "mcpd/outline.h"

/* The members that decide. */
enum member { JSONRPC, ID, METHOD, RESULT, ERROR, MEMBER_COUNT };

static const char *const member_names[MEMBER_COUNT] = {
    [JSONRPC] = "jsonrpc",
    [ID] = "id",
    [METHOD] = "method",
    [RESULT] = "result",
    [ERROR] = "error",
};

/* Of a whole text: what it is, and the first token of each member, if any. */
struct sketch {
	enum json_event first;
	struct json_span members[MEMBER_COUNT];
};

static struct json_span *
sketch_member(struct sketch *k, const struct json_scan *s)
{
	struct json_name name = json_scan_name(s);
	size_t i;

	for (i = 0; i < MEMBER_COUNT; i++) {
		if (json_name_is(
			&name, member_names[i], strlen(member_names[i])))
			return &k->members[i];
	}
	return NULL;
}

/* Beyond a double, so that no tree holds it. Behind it stands a bracket. */
static bool
is_great(const struct json_scan *s)
{
	double value;

	if (s->depth == 0)
		return false;
	value = strtod(s->text + s->start, NULL);
	return value == HUGE_VAL || value == -HUGE_VAL;
}

/* Returns 0, or the code of json_read()'s error. */
static int
sketch_read(struct sketch *k, const struct json_span *text)
{
	struct json_span *member = NULL;
	struct json_scan s;
	enum json_event got;
	int code = 0;

	*k = (struct sketch){.first = JSON_EVENT_FAULT};
	json_scan_init(
	    &s, text->bytes, text->len, MESSAGE_DEPTH_MAX, MESSAGE_MEMBERS_MAX);
	while ((got = json_scan_next(&s)) != JSON_EVENT_END) {
		if (got == JSON_EVENT_FAULT)
			return s.fault;
		if (k->first == JSON_EVENT_FAULT)
			k->first = got;
		if (member != NULL)
			*member = (struct json_span){
			    text->bytes + s.start, s.end - s.start};
		member = got == JSON_EVENT_NAME && s.depth == 1
		    ? sketch_member(k, &s)
		    : NULL;
		if (got == JSON_EVENT_NUMBER && is_great(&s))
			code = ERANGE;
	}
	return code;
}

static bool
is_string(const struct json_span *value)
{
	return value->len != 0 && value->bytes[0] == '"';
}

static bool
string_is(const struct json_span *value, const char *text)
{
	struct json_name inside = {value->bytes + 1, value->len - 2};

	return is_string(value) && json_name_is(&inside, text, strlen(text));
}

bool
outline_method_is(const struct outline *o, const char *name)
{
	return string_is(&o->method, name);
}

/* mcp.md 1.2, steps 2 to 9. */
static void
outline_whole(struct outline *o, const struct sketch *k)
{
	const struct json_span *m = k->members;

	if (k->first == JSON_EVENT_ARRAY)
		o->kind = OUTLINE_BATCH;
	if (k->first != JSON_EVENT_OBJECT)
		return;
	if (is_string(&m[METHOD]))
		o->method = m[METHOD];
	else if (m[RESULT].len != 0 || m[ERROR].len != 0)
		return; /* a response */
	if (m[ID].len == 0) {
		if (o->method.len != 0 && string_is(&m[JSONRPC], "2.0"))
			o->kind = OUTLINE_NOTIFICATION;
	} else if (id_ok(&m[ID])) {
		o->kind = OUTLINE_ANSWERED;
		o->id = m[ID];
	}
}

/* What is too much of anything is refused under the id that was met. */
static void
outline_start(struct outline *o, const struct json_span *text)
{
	if (!id_of_response(text) && id_of_start(text, &o->id))
		o->kind = OUTLINE_ANSWERED;
}

void
outline_read(struct outline *o, const struct json_span *line)
{
	struct json_span text = *line;
	struct sketch k;
	int code;

	*o = (struct outline){.kind = OUTLINE_SILENT};
	if (text.len != 0 && text.bytes[text.len - 1] == '\r')
		text.len--;
	if (text.len > MESSAGE_LINE_MAX) {
		text.len = MESSAGE_LINE_MAX;
		outline_start(o, &text);
		return;
	}
	code = sketch_read(&k, &text);
	if (code == 0)
		outline_whole(o, &k);
	else if (code == E2BIG || code == ERANGE)
		outline_start(o, &text);
}
