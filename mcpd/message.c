#include <errno.h>
#include <string.h>

#include "mcpd/id.h"
#include "mcpd/message.h"

static const struct json_rules rules = {
    .max_bytes = MESSAGE_LINE_MAX,
    .max_depth = MESSAGE_DEPTH_MAX,
    .max_members = MESSAGE_MEMBERS_MAX,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

/* ---- the table -------------------------------------------------------- */

static bool
is_array(const struct message *m)
{
	return json_is_array(m->tree);
}

static bool
is_no_object(const struct message *m)
{
	return !json_is_object(m->tree);
}

/*
 * An error without an id is a response too: to answer what a client answers
 * would go on for ever.
 */
static bool
is_response(const struct message *m)
{
	return !json_is_string(json_object_get(m->tree, "method")) &&
	    (json_object_get(m->tree, "result") != NULL ||
		json_object_get(m->tree, "error") != NULL);
}

static bool
has_no_envelope(const struct message *m)
{
	const json_t *version = json_object_get(m->tree, "jsonrpc");

	return !json_is_string(version) || json_string_length(version) != 3 ||
	    memcmp(json_string_value(version), "2.0", 3) != 0 ||
	    !json_is_string(json_object_get(m->tree, "method"));
}

static bool
has_no_id(const struct message *m)
{
	return json_object_get(m->tree, "id") == NULL;
}

static bool
has_bad_id(const struct message *m)
{
	return m->id.len == 0;
}

static bool
has_bad_params(const struct message *m)
{
	const json_t *params = json_object_get(m->tree, "params");
	const json_t *meta = json_object_get(params, "_meta");

	return (params != NULL && !json_is_object(params)) ||
	    (meta != NULL && !json_is_object(meta));
}

static bool
is_anything(const struct message *m)
{
	return true;
}

/* What a line is: the first row that holds (mcp.md 1.2, steps 2 to 9). */
static const struct step {
	bool (*holds)(const struct message *m);
	enum message_kind kind;
	int code;
	const char *text;
} steps[] = {
    {is_array, MESSAGE_BATCH, 0, NULL},
    {is_no_object, MESSAGE_WRONG, RPC_INVALID_REQUEST, "Invalid request"},
    {is_response, MESSAGE_DROPPED, 0, NULL},
    {has_no_envelope, MESSAGE_WRONG, RPC_INVALID_REQUEST, "Invalid request"},
    {has_no_id, MESSAGE_NOTIFICATION, 0, NULL},
    {has_bad_id, MESSAGE_WRONG, RPC_INVALID_REQUEST, "Invalid request id"},
    {has_bad_params, MESSAGE_WRONG, RPC_INVALID_PARAMS, "Invalid params"},
    {is_anything, MESSAGE_REQUEST, 0, NULL},
};

static void
message_classify(struct message *m)
{
	const struct step *step = steps;
	const json_t *method;

	while (!step->holds(m))
		step++;
	m->kind = step->kind;
	m->code = step->code;
	m->text = step->text;
	if (m->kind != MESSAGE_REQUEST && m->kind != MESSAGE_NOTIFICATION)
		return;
	method = json_object_get(m->tree, "method");
	m->method = json_string_value(method);
	m->method_len = json_string_length(method);
	m->params = json_object_get(m->tree, "params");
	m->meta = json_object_get(m->params, "_meta");
}

/* ---- step 1 ----------------------------------------------------------- */

static void
message_wrong(struct message *m, int code, const char *text)
{
	m->kind = MESSAGE_WRONG;
	m->code = code;
	m->text = text;
}

/*
 * Too long, too deep, too many or too great: an error with the id, if that was
 * met. An id that the cut goes through is none.
 */
static void
message_refuse_size(
    struct message *m, const struct json_span *line, const char *text)
{
	if (id_of_response(line))
		return;
	message_wrong(m, RPC_INVALID_REQUEST, text);
	(void)id_of_start(line, &m->id);
}

static bool
is_blank(const struct json_span *line)
{
	size_t i;

	for (i = 0; i < line->len; i++) {
		if (strchr(" \t\r", line->bytes[i]) == NULL ||
		    line->bytes[i] == '\0')
			return false;
	}
	return true;
}

void
message_read(struct message *m, const struct json_span *line)
{
	struct error e = {0, ""};

	*m = (struct message){.kind = MESSAGE_DROPPED, .method = ""};
	if (is_blank(line))
		return;
	m->tree = json_read(line->bytes, line->len, &rules, &e);
	if (m->tree == NULL && e.code == E2BIG) {
		message_refuse_size(m, line, "Message too deep or too large");
		return;
	}
	/* JSON all the same, and whoever sent it waits for its id. */
	if (m->tree == NULL && e.code == ERANGE) {
		message_refuse_size(
		    m, line, "A name or a number beyond what is read");
		return;
	}
	if (m->tree == NULL) {
		message_wrong(m, RPC_PARSE_ERROR, "Parse error");
		return;
	}
	if (json_span(line->bytes, line->len, "id", &m->id) == -1 ||
	    !id_ok(&m->id))
		m->id = (struct json_span){NULL, 0};
	message_classify(m);
}

void
message_read_cut(struct message *m, const struct json_span *start)
{
	*m = (struct message){.kind = MESSAGE_DROPPED, .method = ""};
	message_refuse_size(m, start, "Message too long");
}

void
message_clear(struct message *m)
{
	json_decref(m->tree);
	m->tree = NULL;
}
