/* What a worker may leave unread (mcp.md 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/call.h"
#include "mcpd/stream.h"

#define CALL(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{\"action\":" \
	"\"ack_dispatch\",\"params\":{\"event_id\":101}}}}"

/* A worker that does not read stops being read, and loses no line. */
static void
a_worker_that_does_not_read_loses_nothing(void **state)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/list\"}\n";
	struct world *w = world_new();
	int sent = 0, heard = 0, tries = 0;
	char text[128], want[32];
	const char *answer;
	ssize_t n;

	world_initialize(w, "2025-11-25");
	while (tries < 50) {
		(void)snprintf(text, sizeof(text), line, sent);
		n = send(
		    w->worker, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		world_turn(w);
		/* Lines are small: the kernel takes them whole or not. */
		tries = n == -1 ? tries + 1 : 0;
		sent += n != -1;
	}
	assert_true(sent > 100);
	assert_true(w->server.stream->out.len < 4 * 1024 * 1024);
	while ((answer = world_hear(w)) != NULL) {
		(void)snprintf(want, sizeof(want), "\"id\":%d,", heard++);
		assert_non_null(strstr(answer, want));
	}
	assert_int_equal(sent, heard);
	world_free(w);
}

/* What the kernel holds for a stream, and one read of it, at the least. */
#define PIPELINED 1300
#define LIST_LINE "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/list\"}\n"

#define OPEN_LINE                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\","     \
	"\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}," \
	"\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"

static void
write_now(struct world *w, const char *bytes, size_t len)
{
	assert_int_equal(len, write(w->worker, bytes, len));
	world_turn(w);
}

/* So many lists, and a call. */
static void
write_pipelined(struct world *w)
{
	struct buffer lines = {0};
	int i;

	for (i = 0; i < PIPELINED; i++)
		buffer_add_text(&lines, LIST_LINE);
	buffer_add_text(&lines, CALL("1") "\n");
	write_now(w, lines.bytes, lines.len);
	buffer_free(&lines);
}

/* One read brings more than may be owed: the rest of it waits. */
static void
a_worker_that_pipelines_loses_nothing(void **state)
{
	struct world *w = world_open();
	struct stream *stream = w->server.stream;
	int i;

	write_pipelined(w);
	write_pipelined(w);
	for (i = 0; i < 2 * PIPELINED; i++) {
		assert_ptr_equal(stream, w->server.stream);
		assert_in_range(stream->out.len - stream->written, 0, 1100000);
		assert_in_range(stream->out.len, 0, 2200000);
		assert_in_range(stream->in.len - stream->in.start, 0, 65536);
		assert_non_null(world_hear(w));
	}
	world_expect_silence(w);
	assert_int_equal(2, w->asked_count);
	world_free(w);
}

/* It is carried out, whatever becomes of its reader. */
static void
what_waits_is_carried_out_at_the_end(void **state)
{
	enum { SOCKET, PIPES, STUCK, REPLACED, COUNT };
	struct world *w;
	int in[2], out[2], how;

	for (how = SOCKET; how < COUNT; how++) {
		w = world_open();
		if (how == PIPES) {
			assert_int_equal(0, pipe(in) | pipe(out));
			server_connect(&w->server, in[0], out[1]);
			(void)close(w->worker);
			w->worker = in[1];
			write_now(w, OPEN_LINE, sizeof(OPEN_LINE) - 1);
		}
		write_pipelined(w);
		assert_int_equal(0, w->asked_count);
		if (how == PIPES)
			(void)close(out[0]);
		else if (how == STUCK)
			event_active(w->server.stream->stuck, EV_TIMEOUT, 0);
		if (how == REPLACED)
			world_connect(w);
		else if (how == SOCKET)
			(void)close(w->worker);
		world_turn(w);
		assert_int_equal(1, w->asked_count);
		if (how == SOCKET)
			w->worker = -1;
		world_free(w);
	}
}

/* Each answer is as long as one may be: what is cut is all quotes. */
static void
answer_at_length(
    struct world *w, const struct reply_to *to, const struct msg *m)
{
	static char snapshot[200000];
	struct msg reply = {.type = MSG_INSTRUCTION};
	size_t len;

	if (snapshot[0] == '\0') {
		len = (size_t)snprintf(
		    snapshot, sizeof(snapshot), "{\"content\":\"");
		while (len < sizeof(snapshot) - 4) {
			snapshot[len++] = '\\';
			snapshot[len++] = '"';
		}
		memcpy(snapshot + len, "\"}", 3);
	}
	reply.instruction = (struct msg_instruction){.found = true,
	    .event_id = 101,
	    .event_type = "comment.created",
	    .trigger = "mentioned",
	    .delivery = "exposed",
	    .snapshot = {snapshot, strlen(snapshot)}};
	peer_reply(to, &reply);
}

#define GET_LINE                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\"," \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{" \
	"\"action\":\"get_dispatch\"}}}"

static void
ask_many(struct world *w)
{
	char *line;
	int i;

	for (i = 0; i < CALLS_IN_FLIGHT_MAX; i++) {
		(void)xasprintf(&line, GET_LINE, i);
		world_say(w, line);
		free(line);
	}
	assert_int_equal(CALLS_IN_FLIGHT_MAX, w->asked_count);
}

/* What nobody reads is not kept without end: the connection goes, not mcpd. */
static void
a_worker_that_never_reads_is_given_up(void **state)
{
	struct world *w = world_open();
	int i;

	ask_many(w);
	for (i = 0; i < CALLS_IN_FLIGHT_MAX; i++) {
		if (w->server.stream != NULL)
			assert_true(
			    w->server.stream->out.len <= 4 * 1024 * 1024);
		answer_at_length(w, &w->to[i], w->asked[i]);
		world_turn(w);
	}
	assert_null(w->server.stream);
	assert_int_equal(0, w->server.call_count);
	world_connect(w);
	world_initialize(w, "2025-11-25");
	world_free(w);
}

/* Nor is it waited for without end; the time begins anew when it moves. */
static void
a_worker_that_stops_reading_has_half_a_minute(void **state)
{
	struct world *w = world_open();
	struct timeval first, later;
	int i;

	assert_false(event_pending(w->server.stream->stuck, EV_TIMEOUT, NULL));
	ask_many(w);
	for (i = 0; i < 10; i++) {
		answer_at_length(w, &w->to[i], w->asked[i]);
		world_turn(w);
	}
	assert_true(event_pending(w->server.stream->stuck, EV_TIMEOUT, &first));
	(void)evutil_gettimeofday(&later, NULL);
	assert_in_range(first.tv_sec - later.tv_sec, 28, 31);
	for (i = 0; i < 10; i++)
		assert_non_null(world_hear(w));
	assert_false(event_pending(w->server.stream->stuck, EV_TIMEOUT, NULL));
	for (i = 10; i < 20; i++)
		answer_at_length(w, &w->to[i], w->asked[i]);
	world_turn(w);
	assert_true(event_pending(w->server.stream->stuck, EV_TIMEOUT, NULL));
	event_active(w->server.stream->stuck, EV_TIMEOUT, 0);
	world_turn(w);
	assert_null(w->server.stream);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_worker_that_does_not_read_loses_nothing),
	    cmocka_unit_test(a_worker_that_pipelines_loses_nothing),
	    cmocka_unit_test(what_waits_is_carried_out_at_the_end),
	    cmocka_unit_test(a_worker_that_never_reads_is_given_up),
	    cmocka_unit_test(a_worker_that_stops_reading_has_half_a_minute),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
