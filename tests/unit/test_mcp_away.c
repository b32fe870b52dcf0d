/*
 * What only a standalone server meets: a connector that is away, and pipes
 * for a stream (design 6.1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/call.h"
#include "mcpd/stream.h"

#define CONNECT "basecamp_connect"
#define THREAD "basecamp_thread"
#define GET "{\"action\":\"get_dispatch\"}"
#define READ "{\"action\":\"read\",\"params\":{\"event_id\":1}}"
#define REPLY \
	"{\"action\":\"reply\",\"params\":{\"event_id\":1,\"content\":\"x\"}}"

/* ---- a connector that is away ------------------------------------------- */

static int tries;

static void
in_vain(struct server *s)
{
	tries++;
	server_away(s);
}

static void
it_is_there(struct server *s)
{
	tries++;
	s->reach = SERVER_REACHING;
}

static struct world *
world_away(void (*try_again)(struct server *s))
{
	struct world *w = world_open();

	tries = 0;
	w->server.try_again = try_again;
	server_away(&w->server);
	return w;
}

static void
assert_unavailable(const char *text, bool is_error)
{
	assert_non_null(text);
	assert_true(is_error);
	assert_non_null(strstr(text, "\"error\": \"unavailable\""));
	assert_non_null(strstr(text, "not running"));
}

/* Each call tries once; what needs no connector is served all the while. */
static void
a_call_while_it_is_away_tries_once(void **state)
{
	struct world *w = world_away(in_vain);
	bool is_error = false;
	const char *text;
	int i;

	for (i = 1; i <= 3; i++) {
		text = world_call(w, CONNECT, GET, &is_error);
		assert_unavailable(text, is_error);
		assert_int_equal(i, tries);
	}
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_int_equal(3, tries);
	assert_int_equal(0, w->asked_count);
	assert_int_equal(0, w->server.call_count);
	world_free(w);
}

/* Nothing is asked before the token was shown; then all of it, of its peer. */
static void
calls_wait_for_it(void **state)
{
	struct world *w = world_away(it_is_there);
	bool is_error;

	assert_null(world_call(w, CONNECT, GET, &is_error));
	assert_null(world_call(w, THREAD, READ, &is_error));
	assert_int_equal(1, tries);
	assert_int_equal(0, w->asked_count);
	server_linked(&w->server);
	world_turn(w);
	assert_int_equal(2, w->asked_count);
	assert_int_equal(MSG_GET_DISPATCH, w->asked[0]->type);
	assert_memory_equal(
	    w->server.token, w->asked[0]->get_dispatch.token, TOKEN_LEN);
	assert_int_equal(MSG_READ_THREAD, w->asked[1]->type);
	assert_int_equal(1, w->asked[1]->read_thread.event_id);
	world_answer_one(w, 0);
	assert_non_null(strstr(world_hear(w), "\"isError\":false"));
	/* From now on they are asked as they come. */
	assert_null(world_call(w, CONNECT, GET, &is_error));
	assert_int_equal(3, w->asked_count);
	world_free(w);
}

/* Those that wait for their turn behind others are told, and nothing stays. */
static void
reads_begin_anew_with_it(void **state)
{
	struct world *w = world_open();
	bool is_error;
	json_t *json;
	int i;

	for (i = 0; i < 6; i++)
		assert_null(world_call(w, THREAD, READ, &is_error));
	assert_int_equal(READS_MOST, w->asked_count);
	server_away(&w->server);
	for (i = 0; i < 6; i++) {
		json = world_answer_json(w, &is_error);
		assert_string_equal("unavailable", member_text(json, "error"));
		json_decref(json);
	}
	w->server.try_again = it_is_there;
	for (i = 0; i < 6; i++)
		assert_null(world_call(w, THREAD, READ, &is_error));
	server_linked(&w->server);
	world_turn(w);
	assert_int_equal(2 * READS_MOST, w->asked_count);
	world_free(w);
}

static void
what_waits_is_told_when_it_does_not_come(void **state)
{
	struct world *w = world_away(it_is_there);
	bool is_error;
	json_t *json;

	assert_null(world_call(w, CONNECT, GET, &is_error));
	server_away(&w->server);
	json = world_answer_json(w, &is_error);
	assert_string_equal("unavailable", member_text(json, "error"));
	json_decref(json);
	/* The next one tries again. */
	assert_null(world_call(w, CONNECT, GET, &is_error));
	assert_int_equal(2, tries);
	world_free(w);
}

/* What was asked may have been done: the worker may ask it again. */
static void
what_was_asked_is_told_when_it_goes(void **state)
{
	struct world *w = world_open();
	bool is_error;
	json_t *json;

	assert_null(world_call(w, CONNECT, GET, &is_error));
	assert_int_equal(1, w->asked_count);
	server_away(&w->server);
	peer_free(w->server.ledger);
	w->server.ledger = NULL;
	json = world_answer_json(w, &is_error);
	assert_string_equal("unavailable", member_text(json, "error"));
	json_decref(json);
	assert_int_equal(0, w->server.call_count);
	world_free(w);
}

static void
a_cancelled_call_that_waits_is_not_asked(void **state)
{
	struct world *w = world_away(it_is_there);
	bool is_error;

	assert_null(world_call(w, CONNECT, GET, &is_error));
	world_say(w,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":77}}");
	assert_int_equal(0, w->server.call_count);
	server_linked(&w->server);
	world_turn(w);
	assert_int_equal(0, w->asked_count);
	world_expect_silence(w);
	world_free(w);
}

/* It is pending at the ledger: nobody says otherwise, and it is asked for. */
static void
what_waits_to_be_posted_is_asked_again(void **state)
{
	struct world *w = world_open();
	struct msg m = {.type = MSG_POST_IS};
	bool is_error;

	assert_null(world_call(w, THREAD, REPLY, &is_error));
	m.post_is.intent_id = 33;
	m.post_is.state = "pending";
	m.post_is.message_kind = "comment";
	world_reply(w, &m);
	server_away(&w->server);
	world_expect_silence(w);
	server_linked(&w->server);
	world_turn(w);
	assert_int_equal(2, w->asked_count);
	assert_int_equal(MSG_POST, w->asked[1]->type);
	world_free(w);
}

/* ---- pipes --------------------------------------------------------------- */

struct pipes {
	int in, out; /* the client's ends */
};

/* Blocking ones, and so they stay: they may be shared. */
static void
pipes_connect(struct world *w, struct pipes *p)
{
	int in[2], out[2];

	assert_int_equal(0, pipe2(in, O_CLOEXEC));
	assert_int_equal(0, pipe2(out, O_CLOEXEC));
	p->in = in[1];
	p->out = out[0];
	server_connect(&w->server, in[0], out[1]);
	assert_int_equal(0, fcntl(in[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(0, fcntl(out[1], F_GETFL) & O_NONBLOCK);
}

static void
say(const struct pipes *p, const char *line)
{
	assert_int_equal(
	    (ssize_t)strlen(line), write(p->in, line, strlen(line)));
}

static void
a_stream_may_be_two_pipes(void **state)
{
	struct world *w = world_new();
	struct pipes p;
	char line[256];
	ssize_t n;

	pipes_connect(w, &p);
	world_turn(w);
	say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"json");
	world_turn(w);
	n = read(p.out, line, sizeof(line) - 1);
	line[n] = '\0';
	assert_non_null(strstr(line, "\"id\":1"));
	(void)close(p.in); /* half a line is none */
	world_turn(w);
	assert_null(w->server.stream);
	assert_int_equal(0, read(p.out, line, 1));
	(void)close(p.out);
	world_free(w);
}

#define INITIALIZE                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":" \
	"{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"            \
	"\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"

/* More than a pipe holds: none of it waits, and all of it arrives. */
static void
a_slow_reader_of_a_pipe_gets_it_all(void **state)
{
	enum { LISTS = 60 };
	struct world *w = world_new();
	struct pipes p;
	char line[128], bytes[4096];
	size_t got = 0, newlines = 0, i;
	ssize_t n;

	pipes_connect(w, &p);
	say(&p, INITIALIZE);
	for (i = 1; i <= LISTS; i++) {
		(void)snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":%zu,"
		    "\"method\":\"tools/list\"}\n",
		    i);
		say(&p, line);
		world_turn(w);
	}
	assert_int_equal(0, fcntl(p.out, F_SETFL, O_NONBLOCK));
	while (newlines < LISTS + 1) {
		n = read(p.out, bytes, sizeof(bytes));
		for (i = 0; n > 0 && i < (size_t)n; i++)
			newlines += bytes[i] == '\n';
		got += n > 0 ? (size_t)n : 0;
		world_turn(w);
	}
	assert_true(got > LISTS * w->server.tools.len);
	assert_true(LISTS * w->server.tools.len > 2 * 65536);
	(void)close(p.in);
	(void)close(p.out);
	world_free(w);
}

static int ends;

static void
on_ends(struct server *s, struct stream *stream)
{
	ends++;
	stream_finish(stream, 100);
}

/* Beside a pipe that broke nothing is waited for, whatever stdin does. */
static void
a_broken_pipe_is_the_end(void **state)
{
	struct world *w = world_new();
	struct pipes p;

	ends = 0;
	pipes_connect(w, &p);
	w->server.stream_ends = on_ends;
	(void)close(p.out);
	say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
	world_turn(w);
	assert_int_equal(1, ends);
	assert_null(w->server.stream);
	(void)close(p.in);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_call_while_it_is_away_tries_once),
	    cmocka_unit_test(calls_wait_for_it),
	    cmocka_unit_test(what_waits_is_told_when_it_does_not_come),
	    cmocka_unit_test(reads_begin_anew_with_it),
	    cmocka_unit_test(what_was_asked_is_told_when_it_goes),
	    cmocka_unit_test(a_cancelled_call_that_waits_is_not_asked),
	    cmocka_unit_test(what_waits_to_be_posted_is_asked_again),
	    cmocka_unit_test(a_stream_may_be_two_pipes),
	    cmocka_unit_test(a_slow_reader_of_a_pipe_gets_it_all),
	    cmocka_unit_test(a_broken_pipe_is_the_end),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as the server does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
