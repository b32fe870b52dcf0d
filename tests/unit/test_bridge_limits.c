/* What the bridge keeps, for how long, and how it gives up (design 6.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "bridge_world.h"
#include "common/clock.h"
#include "common/xmalloc.h"
#include "mcpd/store.h"

/* ---- limits ----------------------------------------------------------- */

static void
patience_ends_in_errors(void **state)
{
	struct bridge_world *w = bridge_start(impatient_path);
	int64_t from;

	open_session(w);
	agent_says(w, CALL("1"));
	agent_says(w, CALL("\"two\""));
	server_hears(w, CALL("1"));
	server_hears(w, CALL("\"two\""));
	from = clock_monotonic_ms();
	server_close(w);
	/* A connection that says nothing is no answer. */
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	agent_hears(w, LOST("1"));
	agent_hears(w, LOST("\"two\""));
	assert_in_range(clock_monotonic_ms() - from, 390, 5000);
	assert_null(hear(w->agent_out, &w->heard, DEADLINE_MS));
	assert_int_equal(69, wait_exit(w));
	bridge_end(w);
}

static void
patience_begins_with_the_first_request(void **state)
{
	struct bridge_world *w = bridge_start(impatient_path);

	open_session(w);
	(void)close(w->listener);
	(void)unlink(w->path);
	w->listener = -1;
	server_close(w);
	/* Nobody waits: it may take as long as it takes. */
	assert_null(hear(w->agent_out, &w->heard, 800));
	agent_says(w, CALL("1"));
	assert_null(hear(w->agent_out, &w->heard, 200));
	listen_at(w);
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	server_hears(w, INITIALIZED);
	server_hears(w, CALL("1"));
	server_says(w, OPENED(OWN("1")));
	assert_null(hear(w->agent_out, &w->heard, 600));
	server_says(w, DONE("1"));
	agent_hears(w, DONE("1"));
	bridge_end(w);
}

static char *
long_call(const char *id, size_t len)
{
	char *line = xmalloc(len + 1);
	int n = snprintf(line, len, "{\"id\":%s,\"method\":\"x\",\"y\":\"", id);

	memset(line + n, 'y', len - (size_t)n);
	memcpy(line + len - 2, "\"}", 3);
	return line;
}

/* What does not fit cannot be said again: its caller must hear of it. */
static void
what_exceeds_the_store_is_an_error_after_a_death(void **state)
{
	struct store s;
	struct buffer out = {0};
	char *line = long_call("1", 4 * 1024 * 1024);
	struct json_span span = {line, strlen(line)};
	size_t i;

	store_init(&s);
	for (i = 0; i < 3; i++)
		store_sent(&s, &span);
	assert_true(store_is_whole(&s));
	store_sent(&s, &span);
	assert_false(store_is_whole(&s));
	assert_true(s.bytes <= STORE_BYTES_MAX);
	/* It is over when the one that did not fit is answered. */
	for (i = 0; i < 4; i++)
		(void)store_received(&s, &(struct json_span){"{\"id\":1}", 8});
	assert_true(store_is_whole(&s));
	assert_int_equal(0, s.bytes);
	store_sent(&s, &span);
	store_give_up(&s, &out);
	assert_string_equal(LOST("1") "\n", out.bytes);
	buffer_free(&out);
	store_clear(&s);
	free(line);
}

static void
what_exceeds_the_store_ends_the_bridge(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);
	char *line = long_call("7", 4 * 1024 * 1024);
	const char *heard;
	int i;

	open_session(w);
	for (i = 0; i < 4; i++) {
		struct pollfd pfd = {.fd = w->agent_in, .events = POLLOUT};
		size_t at = 0, len = strlen(line);

		line[len] = '\n';
		while (at <= len) {
			ssize_t n = send(w->agent_in, line + at, len + 1 - at,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

			at += n > 0 ? (size_t)n : 0;
			while (recv(w->server, lines_room(&w->asked, 65536),
				   65536, MSG_DONTWAIT) > 0)
				continue;
			(void)poll(&pfd, 1, 1);
		}
		line[len] = '\0';
	}
	agent_says(w, CALL("8"));
	/* Read on until the bridge has had the last one. */
	while (readable(w->server, 300))
		if (recv(w->server, lines_room(&w->asked, 65536), 65536, 0) <=
		    0)
			break;
	server_close(w);
	for (i = 0; i < 4; i++) {
		heard = hear(w->agent_out, &w->heard, DEADLINE_MS);
		assert_string_equal(LOST("7"), heard);
	}
	agent_hears(w, LOST("8"));
	assert_int_equal(69, wait_exit(w));
	free(line);
	bridge_end(w);
}

/* mcpd is to see for itself that a line is too long, and gets no more. */
static void
a_line_that_is_too_long_is_cut(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);
	size_t len = 5 * 1024 * 1024, at = 0;
	char *line = long_call("1", len);
	const char *heard = NULL;
	ssize_t n;

	accept_server(w);
	line[len] = '\n';
	while (heard == NULL || at <= len) {
		if (at <= len) {
			n = send(w->agent_in, line + at, len + 1 - at,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
			at += n > 0 ? (size_t)n : 0;
		}
		if (heard == NULL)
			heard = hear(w->server, &w->asked, 5);
	}
	assert_int_equal(4 * 1024 * 1024 + 2, strlen(heard));
	nothing_else_is_under_way(w);
	free(line);
	bridge_end(w);
}

/* What mcpd may write at most arrives. */
static void
the_longest_line_of_mcpd_is_whole(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);
	size_t len = LINES_MCPD_MAX, at = 0;
	char *line = long_call("1", len);
	const char *heard = NULL;
	ssize_t n;

	accept_server(w);
	line[len] = '\n';
	while (at <= len && heard == NULL) {
		n = send(w->server, line + at, len + 1 - at,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		at += n > 0 ? (size_t)n : 0;
		heard = hear(w->agent_out, &w->heard, 5);
	}
	if (heard == NULL)
		heard = hear(w->agent_out, &w->heard, DEADLINE_MS);
	assert_non_null(heard);
	assert_int_equal(len, strlen(heard));
	free(line);
	bridge_end(w);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(patience_ends_in_errors),
	    cmocka_unit_test(patience_begins_with_the_first_request),
	    cmocka_unit_test(what_exceeds_the_store_is_an_error_after_a_death),
	    cmocka_unit_test(what_exceeds_the_store_ends_the_bridge),
	    cmocka_unit_test(a_line_that_is_too_long_is_cut),
	    cmocka_unit_test(the_longest_line_of_mcpd_is_whole),
	};

	if (bridge_paths(argc, argv) == -1)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
