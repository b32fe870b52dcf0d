/*
 * Claude Code's stream-json wire (dispatch.md 14): one JSON object a line in
 * both directions. Its init message comes with the first turn and is held
 * against what was asked for before anything else counts.
 */
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/xmalloc.h"
#include "dispatcher/driver.h"

#define MODE "acceptEdits"
#define LINE_MOST ((size_t)64 * 1024 * 1024)
/* Ids of refused calls that are remembered, to count each once. */
#define REFUSED_MOST 4096
#define ID_MOST 256

struct driver_session {
	char *id;
	char *servers;
	bool verified;
	bool cancelled; /* by us, in this turn */
	int interrupts;
	char **refused;
	size_t refused_count;
};

static const struct json_rules line_rules = {
    .max_bytes = LINE_MOST,
    .max_depth = JSON_DEPTH_MOST,
    .max_members = 4000000,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

static struct driver_session *
claude_open(const char *session_id, const char *servers)
{
	struct driver_session *s = xcalloc(1, sizeof(*s));

	s->id = xstrdup(session_id);
	s->servers = xstrdup(servers);
	return s;
}

static void
claude_close(struct driver_session *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->refused_count; i++)
		free(s->refused[i]);
	free(s->refused);
	free(s->id);
	free(s->servers);
	free(s);
}

/* A new turn: a cancel belongs to the turn it was sent in. */
static char *
claude_prompt(struct driver_session *s, const char *text, size_t *len)
{
	struct buffer b = {0};

	s->cancelled = false;
	buffer_add_text(&b,
	    "{\"type\":\"user\",\"message\":"
	    "{\"role\":\"user\",\"content\":");
	json_write_string(&b, text, strlen(text));
	buffer_add_text(&b, "}}\n");
	return buffer_take(&b, len);
}

static char *
claude_interrupt(struct driver_session *s, size_t *len)
{
	struct buffer b = {0};

	s->cancelled = true;
	buffer_printf(&b,
	    "{\"type\":\"control_request\",\"request_id\":\"interrupt-%d\","
	    "\"request\":{\"subtype\":\"interrupt\"}}\n",
	    ++s->interrupts);
	return buffer_take(&b, len);
}

static const char *
member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text == NULL ? "" : text;
}

static void
unsafe(struct driver_said *said, const char *why)
{
	said->event = DRIVER_UNSAFE;
	(void)snprintf(said->text, sizeof(said->text), "%s", why);
}

/* ---- init ------------------------------------------------------------- */

/* The status of a server in init's list, "" when it is not there. */
static const char *
server_status(const json_t *init, const char *name, size_t len)
{
	const json_t *list = json_object_get(init, "mcp_servers"), *server;
	const char *its;
	size_t i;

	json_array_foreach (list, i, server) {
		its = member(server, "name");
		if (strlen(its) == len && memcmp(its, name, len) == 0)
			return member(server, "status");
	}
	return "";
}

/* Every declared server must be listed, and connected. */
static bool
servers_connected(const struct driver_session *s, const json_t *init)
{
	const char *name = s->servers;
	size_t len;

	for (; *name != '\0'; name += len + (name[len] == ',')) {
		len = strcspn(name, ",");
		if (strcmp(server_status(init, name, len), "connected") != 0)
			return false;
	}
	return true;
}

static void
on_init(struct driver_session *s, const json_t *m, struct driver_said *said)
{
	if (strcmp(member(m, "permissionMode"), MODE) != 0)
		unsafe(said, "reports another permission mode");
	else if (strcmp(member(m, "session_id"), s->id) != 0)
		unsafe(said, "reports another session");
	else if (!servers_connected(s, m))
		unsafe(said, "an MCP server is not connected");
	else if (!s->verified)
		said->event = DRIVER_VERIFIED;
	s->verified = said->event != DRIVER_UNSAFE;
}

/* ---- refusals --------------------------------------------------------- */

/* Once a call; a call without an id counts each time. */
static void
refuse(struct driver_session *s, const json_t *denial, struct driver_said *said)
{
	const char *id = member(denial, "tool_use_id");
	size_t i;

	for (i = 0; i < s->refused_count && *id != '\0'; i++) {
		if (strcmp(s->refused[i], id) == 0)
			return;
	}
	said->refusals++;
	if (*id == '\0' || strlen(id) > ID_MOST ||
	    s->refused_count == REFUSED_MOST)
		return;
	s->refused = xreallocarray(
	    s->refused, s->refused_count + 1, sizeof(*s->refused));
	s->refused[s->refused_count++] = xstrdup(id);
}

static void
on_denied(struct driver_session *s, const json_t *m, struct driver_said *said)
{
	refuse(s, m, said);
	said->event = DRIVER_REFUSAL;
}

/* ---- result ----------------------------------------------------------- */

/* A foreign word for our text: [a-z_], at most 40 of them. */
static void
error_text(struct driver_said *said, const char *subtype)
{
	char word[41];
	size_t n = 0;

	for (; *subtype != '\0' && n < sizeof(word) - 1; subtype++) {
		if ((*subtype >= 'a' && *subtype <= 'z') || *subtype == '_')
			word[n++] = *subtype;
	}
	word[n] = '\0';
	(void)snprintf(said->text, sizeof(said->text),
	    "the turn ended in an error (%s)", word);
}

/*
 * `success` can carry is_error (a refused key does): the subtype alone says
 * nothing. A cancel that nobody here sent is an error like others.
 */
static enum driver_stop
result_stop(
    const struct driver_session *s, const json_t *m, struct driver_said *said)
{
	const char *subtype = member(m, "subtype");
	const char *reason = member(m, "stop_reason");

	if (s->cancelled)
		return STOP_CANCELLED;
	if (strcmp(subtype, "error_max_turns") == 0)
		return STOP_MAX_TURNS;
	if (strcmp(reason, "max_tokens") == 0)
		return STOP_MAX_TOKENS;
	if (strcmp(reason, "refusal") == 0)
		return STOP_REFUSAL;
	if (strcmp(subtype, "success") == 0 &&
	    !json_is_true(json_object_get(m, "is_error")))
		return STOP_END_TURN;
	error_text(said, subtype);
	return STOP_ERROR;
}

static void
on_result(struct driver_session *s, const json_t *m, struct driver_said *said)
{
	const json_t *denials = json_object_get(m, "permission_denials"), *d;
	size_t i;

	if (!s->verified) {
		unsafe(said, "answers before it said what it is");
		return;
	}
	json_array_foreach (denials, i, d)
		refuse(s, d, said);
	said->stop = result_stop(s, m, said);
	said->event = DRIVER_ANSWER;
}

static void
on_work(struct driver_session *s, const json_t *m, struct driver_said *said)
{
	said->event = DRIVER_PROGRESS;
}

/* ---- lines ------------------------------------------------------------ */

/* What is read; all else is ignored. */
static const struct {
	const char *type, *subtype; /* subtype NULL: any */
	void (*handle)(
	    struct driver_session *, const json_t *, struct driver_said *);
} handlers[] = {
    {"system", "init", on_init},
    {"system", "permission_denied", on_denied},
    {"assistant", NULL, on_work},
    {"user", NULL, on_work},
    {"result", NULL, on_result},
};

static void
claude_line(struct driver_session *s, const char *bytes, size_t len,
    struct driver_said *said)
{
	struct error e;
	json_t *m = json_read(bytes, len, &line_rules, &e);
	size_t i;

	*said = (struct driver_said){.event = DRIVER_NOTHING};
	for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (strcmp(member(m, "type"), handlers[i].type) != 0)
			continue;
		if (handlers[i].subtype != NULL &&
		    strcmp(member(m, "subtype"), handlers[i].subtype) != 0)
			continue;
		handlers[i].handle(s, m, said);
		break;
	}
	json_decref(m);
}

static bool
claude_is_verified(const struct driver_session *s)
{
	return s->verified;
}

const struct driver claude_driver = {
    .name = "claude",
    .takes_follow_ups = true,
    .open = claude_open,
    .close = claude_close,
    .prompt = claude_prompt,
    .interrupt = claude_interrupt,
    .line = claude_line,
    .is_verified = claude_is_verified,
};

static const struct driver *const drivers[] = {&claude_driver};

const struct driver *
driver_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	}
	return NULL;
}
