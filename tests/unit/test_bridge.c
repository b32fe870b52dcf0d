/*
 * The bridge between an agent and an mcpd that dies (design 6.1). The program
 * itself runs here, between an agent and a server that are both this test.
 * Arguments: connect-bridge, and one whose patience is 400 ms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "mcpd/lines.h"
#include "mcpd/store.h"

#define DEADLINE_MS 10000
#define SECRET "sk-not-a-real-key"

static const char *bridge_path, *impatient_path;

struct world {
	char dir[64], path[108];
	int listener, server;      /* -1: nobody is connected */
	int agent_in, agent_out;   /* the agent's ends */
	struct lines heard, asked; /* by the agent, by the server */
	pid_t pid;
};

/* ---- the world -------------------------------------------------------- */

static void
listen_at(struct world *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, w->path, strlen(w->path));
	w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_not_equal(-1, w->listener);
	assert_int_equal(
	    0, bind(w->listener, (struct sockaddr *)&address, sizeof(address)));
	assert_int_equal(0, listen(w->listener, 5));
}

static void
start(struct world *w, const char *path)
{
	char variable[] = "ANTHROPIC_API_KEY=" SECRET;
	char *environment[] = {variable, NULL};
	int in[2], out[2];

	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in));
	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out));
	w->pid = fork();
	assert_int_not_equal(-1, w->pid);
	if (w->pid == 0) {
		(void)dup2(in[1], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)execle(
		    path, "connect-bridge", w->path, (char *)NULL, environment);
		_exit(127);
	}
	(void)close(in[1]);
	(void)close(out[1]);
	w->agent_in = in[0];
	w->agent_out = out[0];
}

static struct world *
world_new(const char *path)
{
	struct world *w = xcalloc(1, sizeof(*w));

	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/test_bridge.XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->path, sizeof(w->path), "%s/s", w->dir);
	w->server = -1;
	lines_init(&w->heard, 16 * 1024 * 1024);
	lines_init(&w->asked, 16 * 1024 * 1024);
	listen_at(w);
	start(w, path);
	return w;
}

static void
server_close(struct world *w)
{
	assert_int_not_equal(-1, w->server);
	(void)close(w->server);
	w->server = -1;
	lines_free(&w->asked);
}

static void
world_free(struct world *w)
{
	int status;

	if (w->pid != 0) {
		(void)kill(w->pid, SIGKILL);
		(void)waitpid(w->pid, &status, 0);
	}
	if (w->server != -1)
		(void)close(w->server);
	if (w->listener != -1)
		(void)close(w->listener);
	if (w->agent_in != -1)
		(void)close(w->agent_in);
	(void)close(w->agent_out);
	lines_free(&w->heard);
	lines_free(&w->asked);
	(void)unlink(w->path);
	(void)rmdir(w->dir);
	free(w);
}

static int
wait_exit(struct world *w)
{
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;
	int status;
	pid_t pid;

	while ((pid = waitpid(w->pid, &status, WNOHANG)) == 0 &&
	    clock_monotonic_ms() < until)
		(void)poll(NULL, 0, 2);
	assert_int_equal(w->pid, pid);
	w->pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool
readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

static void
accept_server(struct world *w)
{
	assert_true(readable(w->listener, DEADLINE_MS));
	w->server = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_not_equal(-1, w->server);
}

static void
write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = send(fd, bytes, len, MSG_NOSIGNAL);
		assert_true(n > 0);
		bytes += n;
		len -= (size_t)n;
	}
}

static void
say(int fd, const char *line)
{
	write_all(fd, line, strlen(line));
	write_all(fd, "\n", 1);
}

/* The next line, NULL at the end or when none comes in MS. */
static const char *
hear(int fd, struct lines *l, int ms)
{
	static char *copies[4];
	static unsigned int turn;
	struct json_span line;
	ssize_t n;

	while (lines_next(l, &line) == LINES_NONE) {
		if (!readable(fd, ms))
			return NULL;
		n = recv(fd, lines_room(l, 65536), 65536, 0);
		if (n <= 0)
			return NULL;
		lines_added(l, (size_t)n);
	}
	turn = (turn + 1) % 4;
	free(copies[turn]);
	copies[turn] = xstrndup(line.bytes, line.len);
	return copies[turn];
}

static void
expect(int fd, struct lines *l, const char *want)
{
	const char *have = hear(fd, l, DEADLINE_MS);

	if (have == NULL)
		fail_msg("silence instead of %s", want);
	assert_string_equal(want, have);
}

static void
agent_says(struct world *w, const char *line)
{
	say(w->agent_in, line);
}

static void
agent_hears(struct world *w, const char *line)
{
	expect(w->agent_out, &w->heard, line);
}

static void
server_hears(struct world *w, const char *line)
{
	expect(w->server, &w->asked, line);
}

static void
server_says(struct world *w, const char *line)
{
	say(w->server, line);
}

/* Nothing but what a question brings: it is the next thing heard. */
#define PING "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"

static void
nothing_else_is_under_way(struct world *w)
{
	agent_says(w, PING);
	server_hears(w, PING);
	server_says(w, PONG);
	agent_hears(w, PONG);
}

/* ---- sessions --------------------------------------------------------- */

#define INITIALIZE                                                    \
	"{\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"x\":{\"id\":5}},\"jsonrpc\":\"2.0\",\"id\":0}"
#define REPLAYED(n)                                                    \
	"{\"method\":\"initialize\",\"params\":{\"protocolVersion\":"  \
	"\"2025-11-25\",\"x\":{\"id\":5}},\"jsonrpc\":\"2.0\",\"id\":" \
	"\"connect-bridge:" n "\"}"
#define OPENED(id)                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"protocolVersion\":" \
	"\"2025-11-25\"}}"
#define OWN(n) "\"connect-bridge:" n "\""
#define INITIALIZED \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define CALL(id) "{\"id\":" id ",\"method\":\"tools/call\",\"jsonrpc\":\"2.0\"}"
#define DONE(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define CANCEL(id)                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":" id "}}"
#define LOST(id)                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32603," \
	"\"message\":\"The connector does not answer\"}}"

static void
open_session(struct world *w)
{
	accept_server(w);
	agent_says(w, INITIALIZE);
	server_hears(w, INITIALIZE);
	server_says(w, OPENED("0"));
	agent_hears(w, OPENED("0"));
	agent_says(w, INITIALIZED);
	server_hears(w, INITIALIZED);
}

static void
lines_go_both_ways_whole(void **state)
{
	struct world *w = world_new(bridge_path);

	accept_server(w);
	write_all(w->agent_in, "{\"id\":1,", 8);
	assert_null(hear(w->server, &w->asked, 50));
	write_all(w->agent_in, "\"method\":\"x\"}\n", 14);
	server_hears(w, "{\"id\":1,\"method\":\"x\"}");
	write_all(w->server, "{\"id\"", 5);
	assert_null(hear(w->agent_out, &w->heard, 50));
	write_all(w->server, ":1}\n", 4);
	agent_hears(w, "{\"id\":1}");
	world_free(w);
}

static void
a_death_before_initialize_is_answered(void **state)
{
	struct world *w = world_new(bridge_path);

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
	world_free(w);
}

static void
a_death_after_the_opening_is_not_seen(void **state)
{
	struct world *w = world_new(bridge_path);

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
	world_free(w);
}

static void
a_refused_initialize_is_not_said_again(void **state)
{
	static const char refused[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{}}";
	struct world *w = world_new(bridge_path);

	accept_server(w);
	agent_says(w, INITIALIZE);
	server_hears(w, INITIALIZE);
	server_says(w, refused);
	agent_hears(w, refused);
	server_close(w);
	accept_server(w);
	nothing_else_is_under_way(w);
	world_free(w);
}

static void
the_modern_opening_is_a_request_like_others(void **state)
{
	static const char discover[] = "{\"id\":\"server-discover-probe-1\","
				       "\"method\":\"server/discover\"}";
	struct world *w = world_new(bridge_path);

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
	world_free(w);
}

static void
unanswered_requests_are_said_again_in_order(void **state)
{
	struct world *w = world_new(bridge_path);

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
	world_free(w);
}

static void
a_cancelled_request_is_forgotten(void **state)
{
	struct world *w = world_new(bridge_path);

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
	world_free(w);
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
	struct world *w = world_new(bridge_path);

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
	world_free(w);
}

/* ---- limits ----------------------------------------------------------- */

static void
patience_ends_in_errors(void **state)
{
	struct world *w = world_new(impatient_path);
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
	world_free(w);
}

static void
patience_begins_with_the_first_request(void **state)
{
	struct world *w = world_new(impatient_path);

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
	world_free(w);
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
	struct world *w = world_new(bridge_path);
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
	world_free(w);
}

/* mcpd is to see for itself that a line is too long, and gets no more. */
static void
a_line_that_is_too_long_is_cut(void **state)
{
	struct world *w = world_new(bridge_path);
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
	world_free(w);
}

/* ---- ends ------------------------------------------------------------- */

static void
it_ends_with_its_input(void **state)
{
	struct world *w = world_new(bridge_path);

	accept_server(w);
	agent_says(w, CALL("1"));
	(void)close(w->agent_in);
	w->agent_in = -1;
	/* The last line was not lost. */
	server_hears(w, CALL("1"));
	assert_int_equal(0, wait_exit(w));
	assert_null(hear(w->server, &w->asked, DEADLINE_MS));
	world_free(w);
}

static void
it_ends_on_signals(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct world *w;
	int64_t from;
	size_t i;

	for (i = 0; i < 2; i++) {
		w = world_new(bridge_path);
		open_session(w);
		from = clock_monotonic_ms();
		assert_int_equal(0, kill(w->pid, signals[i]));
		assert_int_equal(0, wait_exit(w));
		assert_true(clock_monotonic_ms() - from < 1000);
		world_free(w);
	}
}

/* Also where a debugger or the same user's eyes look. */
static void
it_wipes_its_environment(void **state)
{
	struct world *w = world_new(bridge_path);
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
	world_free(w);
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
serve_some(struct world *w, unsigned int *seed)
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
hear_all(struct world *w, struct tally *t, int ms)
{
	const char *line;

	while ((line = hear(w->agent_out, &w->heard, ms)) != NULL)
		count_answer(t, line);
}

static void
run_with_deaths(unsigned int seed)
{
	struct world *w = world_new(bridge_path);
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
	world_free(w);
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
	    cmocka_unit_test(a_death_before_initialize_is_answered),
	    cmocka_unit_test(a_death_after_the_opening_is_not_seen),
	    cmocka_unit_test(a_refused_initialize_is_not_said_again),
	    cmocka_unit_test(the_modern_opening_is_a_request_like_others),
	    cmocka_unit_test(unanswered_requests_are_said_again_in_order),
	    cmocka_unit_test(a_cancelled_request_is_forgotten),
	    cmocka_unit_test(a_batch_is_one_unit),
	    cmocka_unit_test(patience_ends_in_errors),
	    cmocka_unit_test(patience_begins_with_the_first_request),
	    cmocka_unit_test(what_exceeds_the_store_is_an_error_after_a_death),
	    cmocka_unit_test(what_exceeds_the_store_ends_the_bridge),
	    cmocka_unit_test(a_line_that_is_too_long_is_cut),
	    cmocka_unit_test(it_ends_with_its_input),
	    cmocka_unit_test(it_ends_on_signals),
	    cmocka_unit_test(it_wipes_its_environment),
	    cmocka_unit_test(it_wants_one_word),
	    cmocka_unit_test(each_request_has_one_answer_whatever_dies),
	};

	if (argc != 3) {
		(void)fprintf(stderr, "usage: test_bridge BRIDGE IMPATIENT\n");
		return 2;
	}
	bridge_path = argv[1];
	impatient_path = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
