/* One connection to the control socket: requests, answers, followers. */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "supervisor/settings.h"
#include "tests/unit/control_world.h"

/* ---- requests ------------------------------------------------------------ */

static void
test_version(void **arg)
{
	int fd = greeted();
	char want[256];

	(void)arg;
	(void)snprintf(want, sizeof(want),
	    "{\"ok\":true,\"data\":{\"version\":\"%s\",\"build\":\"%s\","
	    "\"protocol\":%d,\"schema\":%d}}",
	    CONNECTD_VERSION, build_id, PROTOCOL_VERSION, SCHEMA_VERSION);
	assert_string_equal(ask(fd, "{\"command\":\"version\"}"), want);
	(void)close(fd);
}

static const char *const bad_requests[] = {
    "",
    "{",
    "[]",
    "7",
    "null",
    "\"status\"",
    "{}",
    "{\"command\":7}",
    "{\"command\":\"frobnicate\"}",
    "{\"command\":\"version\",\"x\":1}",
    "{\"command\":\"version\",\"command\":\"stop\"}",
    "{\"command\":\"show\"}",
    "{\"command\":\"show\",\"event\":0}",
    "{\"command\":\"show\",\"event\":\"7\"}",
    "{\"command\":\"events\",\"count\":-1}",
    "{\"command\":\"events\",\"count\":1001}",
    "{\"command\":\"events\",\"follow\":1}",
    "{\"command\":\"restart\"}",
    "{\"command\":\"restart\",\"role\":\"init\"}",
    "{\"command\":\"restart\",\"role\":\"supervisor\"}",
    "{\"command\":\"restart\",\"role\":\"ledger\\u0000\"}",
    "{\"command\":\"stop\\u0000\"}",
    "{\"command\":\"token\"}",
    "{\"command\":\"token\",\"attempt\":7}",
    "{\"command\":\"token\",\"attempt\":\"att_1\"}",
    ("{\"command\":\"token\",\"attempt\":\"att_"
     "0123456789abcdef0123456\\u0000\"}"),
    "{\"command\":\"stop\"} x",
    "{\"command\":[[[[[[]]]]]]}",
    "\x80",
    "\xef\xbb\xbf{}",
};

/* Each costs an answer; the connection stays, and so does everybody's. */
static void
test_bad_requests(void **arg)
{
	int other = greeted(), fd = greeted();
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(bad_requests) / sizeof(bad_requests[0]); i++) {
		if (strstr(ask(fd, bad_requests[i]),
			"{\"ok\":false,\"error\":\"usage\",\"text\":\"") ==
		    NULL)
			fail_msg("taken: %s", bad_requests[i]);
	}
	assert_int_equal(world.stops + world.reloads + world.restarts, 0);
	assert_non_null(strstr(ask(fd, "{\"command\":\"version\"}"), "true"));
	assert_non_null(
	    strstr(ask(other, "{\"command\":\"version\"}"), "true"));
	(void)close(fd);
	(void)close(other);
}

static void
test_endless_line_ends_that_client(void **arg)
{
	int other = greeted(), fd = greeted(), i;
	char piece[4096];

	(void)arg;
	memset(piece, ' ', sizeof(piece));
	for (i = 0; i < CONTROL_LINE_MAX / (int)sizeof(piece); i++) {
		assert_int_equal(
		    write(fd, piece, sizeof(piece)), (ssize_t)sizeof(piece));
		settle();
	}
	assert_non_null(strstr(read_line(fd), "usage"));
	assert_string_equal(read_line(fd), "");
	assert_non_null(
	    strstr(ask(other, "{\"command\":\"version\"}"), "true"));
	(void)close(fd);
	(void)close(other);
}

static void
test_status(void **arg)
{
	int fd = greeted();

	(void)arg;
	assert_string_equal(ask(fd, "{\"command\":\"status\"}"),
	    "{\"ok\":true,\"data\":{\"status\":{\"n\":1}}}");
	assert_int_equal(world.asked, 1);
	ledger.state = CHILD_BACKOFF;
	assert_string_equal(ask(fd, "{\"command\":\"status\"}"),
	    "{\"ok\":true,\"data\":{\"status\":null}}");
	assert_non_null(
	    strstr(ask(fd, "{\"command\":\"events\"}"), "\"unavailable\""));
	(void)close(fd);
}

/* It is there and says nothing: the supervisor's part comes all the same. */
static void
test_status_of_a_silent_ledger(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.ledger_answers = false;
	assert_string_equal(ask(fd, "{\"command\":\"status\"}"),
	    "{\"ok\":true,\"data\":{\"status\":null}}");
	assert_int_equal(peer_unanswered(ledger.peer), 1);
	peer_fail(&world.late, "refused", 0, "too late"); /* for nobody */
	settle();
	assert_non_null(
	    strstr(ask(fd, "{\"command\":\"version\"}"), "\"build\""));
	(void)close(fd);
}

static void
test_show(void **arg)
{
	int fd = greeted();

	(void)arg;
	assert_string_equal(ask(fd, "{\"command\":\"show\",\"event\":7}"),
	    "{\"ok\":true,\"data\":{\"n\":1}}");
	world.answer = NULL;
	assert_string_equal(ask(fd, "{\"command\":\"show\",\"event\":7}"),
	    "{\"ok\":false,\"error\":\"not_found\",\"text\":\"no event 7\"}");
	(void)close(fd);
}

/* What would break our own lines is the ledger's fault, and not sent on. */
static void
test_answer_of_two_lines(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.answer = "{\"n\":1}\n{\"ok\":true}";
	assert_non_null(
	    strstr(ask(fd, "{\"command\":\"events\"}"), "\"unavailable\""));
	assert_int_equal(world.wrongs, 1);
	(void)close(fd);
}

/* Several at once are answered one after the other, in order. */
static void
test_requests_in_a_row(void **arg)
{
	int fd = greeted();

	(void)arg;
	say(fd,
	    "{\"command\":\"status\"}\n{\"command\":\"version\"}\n"
	    "{\"command\":\"show\",\"event\":1}\n");
	assert_non_null(strstr(read_line(fd), "{\"status\":{\"n\":1}}"));
	assert_non_null(strstr(read_line(fd), "\"version\""));
	assert_non_null(strstr(read_line(fd), "{\"n\":1}"));
	(void)close(fd);
}

/* `echo … | nc -U` shuts its side down before the answer is there. */
static void
test_half_closed(void **arg)
{
	int fd = greeted();

	(void)arg;
	say(fd, "{\"command\":\"status\"}\n");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_non_null(strstr(read_line(fd), "{\"n\":1}"));
	assert_string_equal(read_line(fd), "");
	(void)close(fd);
}

static void
test_gone_before_the_answer(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.ledger_answers = false;
	say(fd, "{\"command\":\"events\",\"follow\":true}\n");
	settle();
	(void)close(fd);
	settle();
	peer_fail(&world.late, "refused", 0, "too late"); /* for nobody */
	settle();
	assert_int_equal(peer_unanswered(ledger.peer), 0);
	fd = greeted();
	world.ledger_answers = true;
	assert_non_null(strstr(ask(fd, "{\"command\":\"events\"}"), "true"));
	(void)close(fd);
}

static void
test_changes(void **arg)
{
	int fd = greeted();
	char want[64];

	(void)arg;
	assert_string_equal(ask(fd, "{\"command\":\"reload\"}"),
	    "{\"ok\":true,\"data\":{\"generation\":1}}");
	world.reload_fails = true;
	assert_string_equal(ask(fd, "{\"command\":\"reload\"}"),
	    "{\"ok\":false,\"error\":\"failed\",\"text\":"
	    "\"connect.json:3: no\"}");
	(void)snprintf(want, sizeof(want),
	    "{\"ok\":true,\"data\":{\"pid\":%ld}}", (long)getpid());
	assert_string_equal(ask(fd, "{\"command\":\"stop\"}"), want);
	assert_int_equal(world.stops, 1);
	assert_string_equal(ask(fd, "{\"command\":\"stop\"}"), want);
	assert_int_equal(world.stops, 1);
	(void)close(fd);
}

static void
test_restart_waits_for_ready(void **arg)
{
	int fd = greeted();

	(void)arg;
	ledger.generation = 4;
	say(fd, "{\"command\":\"restart\",\"role\":\"ledger\"}\n");
	while (world.restarts == 0)
		settle();
	control_child_changed(sv.control, &ledger); /* still the old life */
	ledger.generation = 5;
	ledger.state = CHILD_STARTING;
	control_child_changed(sv.control, &ledger);
	ledger.state = CHILD_READY;
	ledger.pid = 77;
	control_child_changed(sv.control, &ledger);
	assert_string_equal(read_line(fd),
	    "{\"ok\":true,\"data\":{\"role\":\"ledger\",\"pid\":77,"
	    "\"generation\":5}}");
	say(fd, "{\"command\":\"restart\",\"role\":\"ledger\"}\n");
	while (world.restarts == 1)
		settle();
	ledger.state = CHILD_PARKED;
	control_child_changed(sv.control, &ledger);
	assert_non_null(strstr(read_line(fd), "\"failed\""));
	(void)close(fd);
}

/* ---- followers ----------------------------------------------------------- */

static void
test_follow(void **arg)
{
	int fd = greeted(), other = greeted();

	(void)arg;
	control_publish(sv.control, "{\"before\":1}");
	assert_non_null(strstr(
	    ask(fd, "{\"command\":\"events\",\"follow\":true}"), "{\"n\":1}"));
	control_publish(sv.control, "{\"after\":1}");
	control_publish(sv.control, "{\"after\":2}");
	assert_string_equal(read_line(fd), "{\"after\":1}");
	assert_string_equal(read_line(fd), "{\"after\":2}");
	assert_non_null(
	    strstr(ask(other, "{\"command\":\"version\"}"), "true"));
	(void)close(fd);
	(void)close(other);
}

/* A follower that does not read is dropped, and costs no more than a MiB. */
static void
test_slow_follower_is_dropped(void **arg)
{
	struct client_list list;
	int fd = client_alone(&list, CONTROL_READ), i;
	char line[8192];

	(void)arg;
	assert_non_null(strstr(
	    ask(fd, "{\"command\":\"events\",\"follow\":true}"), "{\"n\":1}"));
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (i = 0; i < 1000 && !TAILQ_EMPTY(&list); i++)
		client_publish(TAILQ_FIRST(&list), line);
	assert_int_equal(i, CONTROL_FOLLOWER_MAX / sizeof(line) + 1);
	assert_string_equal(read_line(fd), "");
	(void)close(fd);
}

/* ---- a token ---------------------------------------------------------------
 */

#define TOKEN "{\"command\":\"token\",\"attempt\":\"" WORLD_ATTEMPT "\"}"

/* One line and the descriptor beside it, or -1. */
static int
read_with_fd(int fd, char *line, size_t size)
{
	ssize_t n = -1;
	int i, came = -1;

	for (i = 0; i < 1000 && n == -1; i++) {
		settle();
		n = descriptors_receive(
		    fd, line, size - 1, &came, 1, MSG_DONTWAIT);
	}
	assert_true(n > 0);
	line[n] = '\0';
	return came;
}

/* Its bytes are in the pipe, and nowhere in what is said. */
static void
test_a_token_comes_in_a_pipe(void **arg)
{
	int fd = greeted(), pipe_end;
	char line[256], held[16];

	(void)arg;
	say(fd, TOKEN "\n");
	pipe_end = read_with_fd(fd, line, sizeof(line));
	assert_string_equal(line, "{\"ok\":true,\"data\":{\"task_id\":7}}\n");
	assert_int_equal(read(pipe_end, held, sizeof(held)), 6);
	assert_memory_equal(held, "token\n", 6);
	assert_int_equal(read(pipe_end, held, sizeof(held)), 0);
	(void)close(pipe_end);
	/* And the connection goes on. */
	assert_non_null(strstr(ask(fd, "{\"command\":\"version\"}"), "true"));
	assert_non_null(strstr(ask(fd,
				   "{\"command\":\"token\",\"attempt\":"
				   "\"att_ffffffffffffffffffffffff\"}"),
	    "\"error\":\"not_found\""));
	ledger.state = CHILD_BACKOFF;
	assert_non_null(strstr(ask(fd, TOKEN), "\"error\":\"unavailable\""));
	(void)close(fd);
}

/* Who reads changes nothing; who follows has lines under way. */
static void
test_a_token_is_not_for_everybody(void **arg)
{
	struct client_list list;
	int reader = client_alone(&list, CONTROL_READ), follower = greeted();

	(void)arg;
	assert_non_null(strstr(ask(reader, TOKEN), "\"error\":\"refused\""));
	(void)ask(follower, "{\"command\":\"events\",\"follow\":true}");
	assert_non_null(strstr(ask(follower, TOKEN), "\"error\":\"busy\""));
	sv.settings->mcp_socket = false;
	assert_non_null(strstr(ask(greeted(), TOKEN), "mcp.socket is not set"));
	assert_int_equal(world.taken_over, 0);
	(void)close(reader);
	(void)close(follower);
	settle();
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_version),
	    TEST(test_bad_requests),
	    TEST(test_endless_line_ends_that_client),
	    TEST(test_status),
	    TEST(test_status_of_a_silent_ledger),
	    TEST(test_show),
	    TEST(test_answer_of_two_lines),
	    TEST(test_requests_in_a_row),
	    TEST(test_half_closed),
	    TEST(test_gone_before_the_answer),
	    TEST(test_changes),
	    TEST(test_restart_waits_for_ready),
	    TEST(test_follow),
	    TEST(test_slow_follower_is_dropped),
	    TEST(test_a_token_comes_in_a_pipe),
	    TEST(test_a_token_is_not_for_everybody),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as connectd does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
