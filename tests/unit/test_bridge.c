/* The bridge between an agent and an mcpd that dies (design 6.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bridge_world.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/xmalloc.h"

static void
lines_go_both_ways_whole(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	write_all(w->agent_in, "{\"id\":1,", 8);
	assert_null(hear(w->server, &w->asked, 50));
	write_all(w->agent_in, "\"method\":\"x\"}\n", 14);
	server_hears(w, "{\"id\":1,\"method\":\"x\"}");
	write_all(w->server, "{\"id\"", 5);
	assert_null(hear(w->agent_out, &w->heard, 50));
	write_all(w->server, ":1}\n", 4);
	agent_hears(w, "{\"id\":1}");
	bridge_end(w);
}

/* Nothing is lost or torn for an agent that takes its time. */
static void
a_slow_agent_hears_everything(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);
	const char *heard;
	char *line = xmalloc(5001), want[16];
	int said = 0, i;

	accept_server(w);
	assert_int_equal(0, fcntl(w->server, F_SETFL, O_NONBLOCK));
	memset(line, 'x', 5000);
	line[4999] = '\n';
	while (said < 1000) {
		(void)snprintf(want, sizeof(want), "%08d", said);
		memcpy(line, want, 8);
		/* Whole or not at all: the last line is small. */
		if (send(w->server, line, 5000, MSG_NOSIGNAL) == 5000)
			said++;
		else if (said > 250)
			break;
	}
	assert_in_range(said, 200, 999);
	for (i = 0; i < said; i++) {
		heard = hear(w->agent_out, &w->heard, DEADLINE_MS);
		assert_non_null(heard);
		(void)snprintf(want, sizeof(want), "%08d", i);
		assert_int_equal(4999, strlen(heard));
		assert_memory_equal(want, heard, 8);
	}
	free(line);
	bridge_end(w);
}

static void
a_death_before_initialize_is_answered(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, INITIALIZE);
	agent_says(w, INITIALIZED);
	server_hears(w, INITIALIZE);
	server_close(w);
	accept_server(w);
	server_hears(w, INITIALIZE);
	server_hears(w, INITIALIZED);
	server_says(w, OPENED("0"));
	agent_hears(w, OPENED("0"));
	/* What was said before the answer belongs to the opening. */
	server_close(w);
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	server_hears(w, INITIALIZED);
	server_says(w, OPENED(OWN("1")));
	nothing_else_is_under_way(w);
	bridge_end(w);
}

static void
a_death_after_the_opening_is_not_seen(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	open_session(w);
	server_close(w);
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	server_hears(w, INITIALIZED);
	server_says(w, OPENED(OWN("1")));
	nothing_else_is_under_way(w);
	/* And once more, in the middle of the replay. */
	server_close(w);
	accept_server(w);
	server_hears(w, REPLAYED("2"));
	server_close(w);
	agent_says(w, CALL("1"));
	accept_server(w);
	server_hears(w, REPLAYED("3"));
	server_hears(w, INITIALIZED);
	server_hears(w, CALL("1"));
	server_says(w, OPENED(OWN("3")));
	server_says(w, DONE("1"));
	agent_hears(w, DONE("1"));
	bridge_end(w);
}

static void
a_refused_initialize_is_not_said_again(void **state)
{
	static const char refused[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{}}";
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, INITIALIZE);
	server_hears(w, INITIALIZE);
	server_says(w, refused);
	agent_hears(w, refused);
	server_close(w);
	accept_server(w);
	nothing_else_is_under_way(w);
	bridge_end(w);
}

static void
the_modern_opening_is_a_request_like_others(void **state)
{
	static const char discover[] = "{\"id\":\"server-discover-probe-1\","
				       "\"method\":\"server/discover\"}";
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, discover);
	server_hears(w, discover);
	server_close(w);
	accept_server(w);
	server_hears(w, discover);
	server_says(w, DONE("\"server-discover-probe-1\""));
	agent_hears(w, DONE("\"server-discover-probe-1\""));
	server_close(w);
	accept_server(w);
	nothing_else_is_under_way(w);
	bridge_end(w);
}

static void
unanswered_requests_are_said_again_in_order(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	open_session(w);
	agent_says(w, CALL("1"));
	agent_says(w, CALL("\"1\""));
	agent_says(w, CALL("-3"));
	agent_says(w, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
	agent_says(w, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}");
	server_hears(w, CALL("1"));
	server_hears(w, CALL("\"1\""));
	server_says(w, DONE("\"1\""));
	agent_hears(w, DONE("\"1\""));
	write_all(w->server, "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu", 29);
	server_close(w);
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	server_hears(w, INITIALIZED);
	server_hears(w, CALL("1"));
	server_hears(w, CALL("-3"));
	server_says(w, OPENED(OWN("1")));
	server_says(w, DONE("-3"));
	server_says(w, DONE("1"));
	agent_hears(w, DONE("-3"));
	agent_hears(w, DONE("1"));
	nothing_else_is_under_way(w);
	bridge_end(w);
}

static void
a_cancelled_request_is_forgotten(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	open_session(w);
	agent_says(w, CALL("1"));
	agent_says(w, CALL("2"));
	agent_says(w, CANCEL("1"));
	server_hears(w, CALL("1"));
	server_hears(w, CALL("2"));
	server_hears(w, CANCEL("1"));
	server_close(w);
	accept_server(w);
	server_hears(w, REPLAYED("1"));
	server_hears(w, INITIALIZED);
	server_hears(w, CALL("2"));
	server_says(w, DONE("2"));
	agent_hears(w, DONE("2"));
	nothing_else_is_under_way(w);
	bridge_end(w);
}

#define BATCH_INITIALIZE "{\"id\":0,\"method\":\"initialize\",\"params\":{}}"
#define BATCH_OPENED \
	"{\"id\":0,\"result\":{\"protocolVersion\":\"2025-03-26\"}}"

static void
a_batch_is_one_unit(void **state)
{
	static const char batch[] =
	    "[" CALL("1") "," CALL("2") ",{\"method\":\"n\"}]";
	static const char answer[] = "[" DONE("2") "," DONE("1") "]";
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, BATCH_INITIALIZE);
	server_hears(w, BATCH_INITIALIZE);
	server_says(w, BATCH_OPENED);
	agent_hears(w, BATCH_OPENED);
	agent_says(w, batch);
	agent_says(w, CANCEL("1"));
	server_hears(w, batch);
	server_hears(w, CANCEL("1"));
	server_close(w);
	accept_server(w);
	server_hears(w,
	    "{\"id\":\"connect-bridge:1\",\"method\":\"initialize\","
	    "\"params\":{}}");
	server_hears(w, batch);
	server_hears(w, CANCEL("1"));
	server_says(w, answer);
	agent_hears(w, answer);
	server_close(w);
	accept_server(w);
	server_hears(w,
	    "{\"id\":\"connect-bridge:2\",\"method\":\"initialize\","
	    "\"params\":{}}");
	nothing_else_is_under_way(w);
	bridge_end(w);
}

/* It was said in one breath with its initialize, and mcpd died between. */
static void
a_batch_is_kept_before_its_revision_is_known(void **state)
{
	static const char batch[] = "[" CALL("1") "]";
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, BATCH_INITIALIZE "\n[" CALL("1") "]");
	server_hears(w, BATCH_INITIALIZE);
	server_hears(w, batch);
	server_says(w, BATCH_OPENED);
	agent_hears(w, BATCH_OPENED);
	server_close(w);
	accept_server(w);
	server_hears(w,
	    "{\"id\":\"connect-bridge:1\",\"method\":\"initialize\","
	    "\"params\":{}}");
	server_hears(w, batch);
	bridge_end(w);
}

/* ---- ends ------------------------------------------------------------- */

static void
it_ends_with_its_input(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);

	accept_server(w);
	agent_says(w, CALL("1"));
	(void)close(w->agent_in);
	w->agent_in = -1;
	/* The last line was not lost. */
	server_hears(w, CALL("1"));
	assert_int_equal(0, wait_exit(w));
	assert_null(hear(w->server, &w->asked, DEADLINE_MS));
	bridge_end(w);
}

static void
it_works_on_pipes(void **state)
{
	uses_pipes = true;
	lines_go_both_ways_whole(state);
	a_slow_agent_hears_everything(state);
	it_ends_with_its_input(state);
	uses_pipes = false;
}

static void
it_ends_on_signals(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct bridge_world *w;
	int64_t from;
	size_t i;

	for (i = 0; i < 2; i++) {
		w = bridge_start(bridge_path);
		open_session(w);
		from = clock_monotonic_ms();
		assert_int_equal(0, kill(w->pid, signals[i]));
		assert_int_equal(0, wait_exit(w));
		assert_true(clock_monotonic_ms() - from < 1000);
		bridge_end(w);
	}
}

/* Also where a debugger or the same user's eyes look. */
static void
it_wipes_its_environment(void **state)
{
	struct bridge_world *w = bridge_start(bridge_path);
	char path[64], bytes[4096];
	size_t n;
	FILE *file;

	open_session(w);
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)w->pid);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(bytes, 1, sizeof(bytes), file);
	(void)fclose(file);
	assert_true(n > 0);
	assert_null(memmem(bytes, n, SECRET, strlen(SECRET)));
	bridge_end(w);
}

static void
it_wants_one_word(void **state)
{
	int status;

	if (fork() == 0) {
		(void)close(STDERR_FILENO);
		(void)execl(bridge_path, "connect-bridge", (char *)NULL);
		_exit(127);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(64, WEXITSTATUS(status));
}

/* ---- the property ----------------------------------------------------- */

/*
 * Whatever line the server dies at, and however often: the agent hears exactly
 * one answer to each request, and nothing of the replays.
 */
#define REQUESTS 6

struct tally {
	int answers[REQUESTS];
	int opened;
};

static void
count_answer(struct tally *t, const char *line)
{
	int id;

	assert_null(strstr(line, "connect-bridge"));
	if (strcmp(line, OPENED("0")) == 0)
		t->opened++;
	else if (sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%d", &id) == 1)
		t->answers[id - 1]++;
	else
		fail_msg("heard %s", line);
}

/* The answer that a real one would give, or NULL. */
static char *
server_answer(const char *line)
{
	struct json_span id, span = {line, strlen(line)};
	char *answer;

	if (json_span(line, span.len, "id", &id) == -1)
		return NULL;
	if (strstr(line, "initialize") != NULL)
		(void)xasprintf(
		    &answer, OPENED("%.*s") "\n", (int)id.len, id.bytes);
	else
		(void)xasprintf(
		    &answer, DONE("%.*s") "\n", (int)id.len, id.bytes);
	return answer;
}

/* Serve some lines; the last answer is torn at a random byte. */
static void
serve_some(struct bridge_world *w, unsigned int *seed)
{
	int count = rand_r(seed) % 5;
	const char *line;
	char *answer;
	size_t len;

	while (count-- > 0) {
		line = hear(w->server, &w->asked, 20);
		if (line == NULL)
			break;
		answer = server_answer(line);
		if (answer == NULL)
			continue;
		len = strlen(answer);
		if (count == 0)
			len = (size_t)rand_r(seed) % (len + 1);
		write_all(w->server, answer, len);
		free(answer);
	}
	server_close(w);
}

static void
hear_all(struct bridge_world *w, struct tally *t, int ms)
{
	const char *line;

	while ((line = hear(w->agent_out, &w->heard, ms)) != NULL)
		count_answer(t, line);
}

static void
run_with_deaths(unsigned int seed)
{
	struct bridge_world *w = bridge_start(bridge_path);
	struct tally t = {.opened = 0};
	int said = -2, deaths = 0, i;
	char line[128];

	while (said < REQUESTS || deaths < 8) {
		if (said == -2)
			agent_says(w, INITIALIZE);
		else if (said == -1)
			agent_says(w, INITIALIZED);
		else if (said < REQUESTS) {
			(void)snprintf(
			    line, sizeof(line), CALL("%d"), said + 1);
			agent_says(w, line);
		}
		said++;
		if (rand_r(&seed) % 3 == 0 && readable(w->listener, 60)) {
			accept_server(w);
			serve_some(w, &seed);
			deaths++;
		} else if (said >= REQUESTS) {
			deaths++;
		}
		hear_all(w, &t, 0);
	}
	/* A last one that lives. */
	agent_says(w, PING);
	accept_server(w);
	for (;;) {
		const char *asked = hear(w->server, &w->asked, 100);
		char *answer;

		if (asked == NULL && readable(w->listener, 0)) {
			server_close(w);
			accept_server(w);
			continue;
		}
		if (asked == NULL)
			break;
		answer = server_answer(asked);
		if (answer != NULL)
			write_all(w->server, answer, strlen(answer));
		free(answer);
	}
	for (;;) {
		const char *heard = hear(w->agent_out, &w->heard, DEADLINE_MS);

		assert_non_null(heard);
		if (strcmp(heard, PONG) == 0)
			break;
		count_answer(&t, heard);
	}
	hear_all(w, &t, 20);
	assert_int_equal(1, t.opened);
	for (i = 0; i < REQUESTS; i++)
		assert_int_equal(1, t.answers[i]);
	bridge_end(w);
}

static void
each_request_has_one_answer_whatever_dies(void **state)
{
	unsigned int seed;

	for (seed = 1; seed <= 20; seed++)
		run_with_deaths(seed);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_go_both_ways_whole),
	    cmocka_unit_test(a_slow_agent_hears_everything),
	    cmocka_unit_test(a_death_before_initialize_is_answered),
	    cmocka_unit_test(a_death_after_the_opening_is_not_seen),
	    cmocka_unit_test(a_refused_initialize_is_not_said_again),
	    cmocka_unit_test(the_modern_opening_is_a_request_like_others),
	    cmocka_unit_test(unanswered_requests_are_said_again_in_order),
	    cmocka_unit_test(a_cancelled_request_is_forgotten),
	    cmocka_unit_test(a_batch_is_one_unit),
	    cmocka_unit_test(a_batch_is_kept_before_its_revision_is_known),
	    cmocka_unit_test(it_ends_with_its_input),
	    cmocka_unit_test(it_works_on_pipes),
	    cmocka_unit_test(it_ends_on_signals),
	    cmocka_unit_test(it_wipes_its_environment),
	    cmocka_unit_test(it_wants_one_word),
	    cmocka_unit_test(each_request_has_one_answer_whatever_dies),
	};

	if (bridge_paths(argc, argv) == -1)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
