#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bridge_world.h"
#include "common/clock.h"
#include "common/xmalloc.h"

const char *bridge_path, *impatient_path;
bool uses_pipes;

/* ---- the world -------------------------------------------------------- */

void
listen_at(struct bridge_world *w)
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
stdio_make(int ends[2])
{
	if (uses_pipes)
		assert_int_equal(0, pipe2(ends, O_CLOEXEC));
	else
		assert_int_equal(0,
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
}

static void
start(struct bridge_world *w, const char *path)
{
	char variable[] = "ANTHROPIC_API_KEY=" SECRET;
	char *environment[] = {variable, NULL};
	int in[2], out[2];

	stdio_make(in);
	stdio_make(out);
	w->pid = fork();
	assert_int_not_equal(-1, w->pid);
	if (w->pid == 0) {
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)execle(
		    path, "connect-bridge", w->path, (char *)NULL, environment);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	w->agent_in = in[1];
	w->agent_out = out[0];
}

struct bridge_world *
bridge_start(const char *path)
{
	struct bridge_world *w = xcalloc(1, sizeof(*w));

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

void
server_close(struct bridge_world *w)
{
	assert_int_not_equal(-1, w->server);
	(void)close(w->server);
	w->server = -1;
	lines_free(&w->asked);
}

void
bridge_end(struct bridge_world *w)
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

int
wait_exit(struct bridge_world *w)
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

bool
readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

void
accept_server(struct bridge_world *w)
{
	assert_true(readable(w->listener, DEADLINE_MS));
	w->server = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_not_equal(-1, w->server);
}

void
write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, bytes, len);
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

const char *
hear(int fd, struct lines *l, int ms)
{
	static char *copies[4];
	static unsigned int turn;
	struct json_span line;
	ssize_t n;

	while (lines_next(l, &line) == LINES_NONE) {
		if (!readable(fd, ms))
			return NULL;
		n = read(fd, lines_room(l, 65536), 65536);
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

void
agent_says(struct bridge_world *w, const char *line)
{
	say(w->agent_in, line);
}

void
agent_hears(struct bridge_world *w, const char *line)
{
	expect(w->agent_out, &w->heard, line);
}

void
server_hears(struct bridge_world *w, const char *line)
{
	expect(w->server, &w->asked, line);
}

void
server_says(struct bridge_world *w, const char *line)
{
	say(w->server, line);
}

void
nothing_else_is_under_way(struct bridge_world *w)
{
	agent_says(w, PING);
	server_hears(w, PING);
	server_says(w, PONG);
	agent_hears(w, PONG);
}

void
open_session(struct bridge_world *w)
{
	accept_server(w);
	agent_says(w, INITIALIZE);
	server_hears(w, INITIALIZE);
	server_says(w, OPENED("0"));
	agent_hears(w, OPENED("0"));
	agent_says(w, INITIALIZED);
	server_hears(w, INITIALIZED);
}

int
bridge_paths(int argc, char **argv)
{
	if (argc != 3) {
		(void)fprintf(stderr, "usage: %s BRIDGE IMPATIENT\n", argv[0]);
		return -1;
	}
	bridge_path = argv[1];
	impatient_path = argv[2];
	(void)signal(SIGPIPE, SIG_IGN);
	return 0;
}
