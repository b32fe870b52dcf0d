#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/config.h"
#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/tools.h"

static void
on_asked(struct peer *peer, struct msg *m, void *arg)
{
	struct world *w = arg;

	assert_true(w->asked_count < WORLD_ASKED_MAX);
	w->to[w->asked_count] = peer_reply_to(peer, m);
	w->asked[w->asked_count++] = m;
	if (w->answer != NULL)
		w->answer(w, &w->to[w->asked_count - 1], m);
}

static void
on_post_settled(struct peer *peer, struct msg *m, void *arg)
{
	struct world *w = arg;

	server_post_settled(&w->server, m->post_settled.intent_id);
	msg_free(m);
}

static void
on_ledger_linked(struct peer *peer, void *arg)
{
	struct world *w = arg;

	server_post_settled(&w->server, 0);
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	fail_msg("%s", text);
}

/* Not counted among what is asked: it stands before every other. */
static void
on_check_token(struct peer *peer, struct msg *m, void *arg)
{
	struct world *w = arg;
	struct reply_to to = peer_reply_to(peer, m);
	struct msg done = {.type = MSG_DONE};

	msg_free(m);
	if (w->is_taken_over)
		peer_fail(&to, "task_token_refused", 0, "%s", "");
	else
		peer_reply(&to, &done);
}

static const peer_handler their_handlers[MSG_COUNT] = {
    [MSG_CHECK_TOKEN] = on_check_token,
    [MSG_GET_DISPATCH] = on_asked,
    [MSG_ACK_DISPATCH] = on_asked,
    [MSG_COMPLETE_DISPATCH] = on_asked,
    [MSG_POST] = on_asked,
    [MSG_READ_THREAD] = on_asked,
};
static const struct peer_ops their_ops = {
    .handlers = their_handlers, .broken = on_broken};
static const peer_handler our_handlers[MSG_COUNT] = {
    [MSG_POST_SETTLED] = on_post_settled};
static const struct peer_ops our_ops = {
    .handlers = our_handlers, .linked = on_ledger_linked, .broken = on_broken};

static void
join(struct world *w, struct peer *a, struct peer *b)
{
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(a, fds[0], w->generation);
	peer_attach(b, fds[1], w->generation);
}

static void
their_ends(struct world *w)
{
	w->generation++;
	w->ledger = peer_new(w->base, ROLE_LEDGER, ROLE_MCPD,
	    "att_0123456789abcdef01234567", &their_ops, w);
	w->intake = peer_new(w->base, ROLE_INTAKE, ROLE_MCPD,
	    "att_0123456789abcdef01234567", &their_ops, w);
	join(w, w->server.ledger, w->ledger);
	join(w, w->server.intake, w->intake);
}

void
world_unlink(struct world *w)
{
	peer_free(w->ledger);
	peer_free(w->intake);
	w->ledger = w->intake = NULL;
	world_turn(w);
}

void
world_relink(struct world *w)
{
	if (w->ledger != NULL)
		world_unlink(w);
	their_ends(w);
	world_turn(w);
}

void
world_connect(struct world *w)
{
	int fds[2];

	if (w->worker != -1)
		(void)close(w->worker);
	lines_free(&w->heard);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	w->worker = fds[1];
	server_connect(&w->server, fds[0], fds[0]);
	world_turn(w);
}

struct world *
world_new(void)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->base = event_base_new();
	server_init(&w->server, w->base, DOMAINS_ALL);
	memset(w->server.token, 't', TOKEN_LEN);
	w->server.agent_id = 52007412;
	w->server.call_deadline_ms = 60000;
	w->server.post_wait_ms = 20000;
	w->server.ledger =
	    peer_new(w->base, ROLE_MCPD, ROLE_LEDGER, "", &our_ops, w);
	w->server.intake =
	    peer_new(w->base, ROLE_MCPD, ROLE_INTAKE, "", &our_ops, w);
	w->worker = -1;
	lines_init(&w->heard, 64 * 1024 * 1024);
	their_ends(w);
	world_connect(w);
	return w;
}

void
world_free(struct world *w)
{
	size_t i;

	if (w->worker != -1)
		(void)close(w->worker);
	world_turn(w);
	server_clear(&w->server);
	peer_free(w->server.ledger);
	peer_free(w->server.intake);
	peer_free(w->ledger);
	peer_free(w->intake);
	for (i = 0; i < w->asked_count; i++)
		msg_free(w->asked[i]);
	lines_free(&w->heard);
	event_base_free(w->base);
	free(w);
}

void
world_turn(struct world *w)
{
	int i;

	for (i = 0; i < 12; i++)
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
}

void
world_write(struct world *w, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = send(w->worker, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
		world_turn(w);
	}
	world_turn(w);
}

void
world_say(struct world *w, const char *line)
{
	char *text;
	int len = xasprintf(&text, "%s\n", line);

	world_write(w, text, (size_t)len);
	free(text);
}

const char *
world_hear(struct world *w)
{
	static char *copy;
	struct json_span line;
	enum lines_got got;
	ssize_t n;

	for (;;) {
		got = lines_next(&w->heard, &line);
		if (got != LINES_NONE)
			break;
		n = recv(w->worker, lines_room(&w->heard, 65536), 65536,
		    MSG_DONTWAIT);
		if (n <= 0)
			return NULL;
		lines_added(&w->heard, (size_t)n);
		world_turn(w);
	}
	free(copy);
	copy = xstrndup(line.bytes, line.len);
	return copy;
}

static void
fill(struct buffer *out, struct world *w, const char *line)
{
	const char *at;

	for (; (at = strchr(line, '@')) != NULL; line = at) {
		buffer_add(out, line, (size_t)(at - line));
		if (strncmp(at, "@TOOLS@", 7) == 0) {
			buffer_add(
			    out, w->server.tools.bytes, w->server.tools.len);
			at += 7;
		} else if (strncmp(at, "@INSTRUCTIONS@", 14) == 0) {
			json_write_string(out, tools_instructions,
			    strlen(tools_instructions));
			at += 14;
		} else {
			buffer_add_char(out, *at++);
		}
	}
	buffer_add_text(out, line);
}

void
world_expect(struct world *w, const char *line)
{
	struct buffer want = {0};
	const char *have = world_hear(w);

	fill(&want, w, line);
	if (have == NULL)
		fail_msg("silence instead of %s", want.bytes);
	assert_string_equal(want.bytes, have);
	buffer_free(&want);
}

void
world_expect_silence(struct world *w)
{
	const char *have = world_hear(w);

	if (have != NULL)
		fail_msg("not silent: %s", have);
}

void
world_initialize(struct world *w, const char *version)
{
	char *line;

	(void)xasprintf(&line,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"%s\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
	    version);
	world_say(w, line);
	free(line);
	assert_non_null(world_hear(w));
}

const char *
world_call(
    struct world *w, const char *tool, const char *arguments, bool *is_error)
{
	static char *text;
	const char *line;
	char *request;
	json_t *answer, *block;
	int failed;

	(void)xasprintf(&request,
	    "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
	    tool, arguments);
	world_say(w, request);
	free(request);
	line = world_hear(w);
	if (line == NULL)
		return NULL;
	answer = json_loads(line, 0, NULL);
	assert_non_null(answer);
	assert_int_equal(0,
	    json_unpack(answer, "{s:{s:[o],s:b}}", "result", "content", &block,
		"isError", &failed));
	assert_string_equal(
	    "text", json_string_value(json_object_get(block, "type")));
	free(text);
	text = xstrdup(json_string_value(json_object_get(block, "text")));
	*is_error = failed != 0;
	json_decref(answer);
	return text;
}

void
world_answer_all(
    struct world *w, const struct reply_to *to, const struct msg *m)
{
	static const char snapshot[] =
	    "{\"type\":\"Comment\",\"title\":\"T\","
	    "\"content\":\"Say hello\",\"updated_at\":\"2026-01-01\"}";
	struct msg reply = {.type = MSG_INSTRUCTION};

	if (m->type == MSG_GET_DISPATCH) {
		reply.instruction.found = true;
		reply.instruction.event_id = 101;
		reply.instruction.event_type = "comment.created";
		reply.instruction.trigger = "mentioned";
		reply.instruction.bucket_id = 7;
		reply.instruction.recording_id = 8;
		reply.instruction.recording_url = "https://x.test/8";
		reply.instruction.reply_kind = "comment";
		reply.instruction.reply_recording_id = 6;
		reply.instruction.requester_id = 9;
		reply.instruction.acknowledge = true;
		reply.instruction.delivery = "exposed";
		reply.instruction.snapshot =
		    (struct blob){snapshot, sizeof(snapshot) - 1};
	} else {
		reply.type = MSG_REPORT_IS;
		reply.report_is.event_id = 101;
		reply.report_is.delivery = "completed";
		reply.report_is.outcome = "succeeded";
	}
	peer_reply(to, &reply);
}

void
world_answer_one(struct world *w, size_t i)
{
	world_answer_all(w, &w->to[i], w->asked[i]);
	world_turn(w);
}

struct world *
world_open(void)
{
	struct world *w = world_new();

	world_initialize(w, "2025-11-25");
	return w;
}

const struct msg *
world_ask(struct world *w, const char *tool, const char *arguments,
    const char **refusal)
{
	size_t before = w->asked_count;
	bool is_error = false;

	*refusal = world_call(w, tool, arguments, &is_error);
	if (*refusal == NULL) {
		assert_int_equal(before + 1, w->asked_count);
		return w->asked[before];
	}
	assert_true(is_error);
	assert_int_equal(before, w->asked_count);
	return NULL;
}

void
world_reply(struct world *w, struct msg *m)
{
	peer_reply(&w->to[w->asked_count - 1], m);
	world_turn(w);
}

json_t *
world_answer_json(struct world *w, bool *is_error)
{
	const char *line = world_hear(w);
	json_t *answer, *json;
	const char *text;
	int failed;

	assert_non_null(line);
	answer = json_loads(line, 0, NULL);
	assert_int_equal(0,
	    json_unpack(answer, "{s:{s:[{s:s}],s:b}}", "result", "content",
		"text", &text, "isError", &failed));
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	*is_error = failed != 0;
	json_decref(answer);
	return json;
}

const char *
member_text(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text == NULL ? "" : text;
}
