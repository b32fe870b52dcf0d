/* The control socket: who may connect, and its path. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

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

#include "common/clock.h"
#include "tests/unit/control_world.h"

/* ---- who may ------------------------------------------------------------- */

static enum control_right
vet(uid_t uid, gid_t gid, pid_t pid)
{
	const struct socket_peer peer = {
	    .pid = pid, .uid = uid, .gid = gid, .pidfd = -1};
	const char *why;
	int pair[2];
	enum control_right right;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	right = control_vet(&sv, pair[0], 4242, &peer, &why);
	assert_int_equal(right == CONTROL_NONE, why != NULL);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return right;
}

static void
test_who_may_what(void **arg)
{
	const uid_t other = geteuid() + 1000;

	(void)arg;
	assert_int_equal(vet(geteuid(), 1, getpid()), CONTROL_CHANGE);
	assert_int_equal(vet(0, 1, getpid()), CONTROL_CHANGE);
	assert_int_equal(vet(other, 1, getpid()), CONTROL_NONE);
	assert_int_equal(vet(other, 4242, getpid()), CONTROL_NONE);
	sv.is_root = true; /* then there is a group of readers */
	assert_int_equal(vet(other, 4242, getpid()), CONTROL_READ);
	assert_int_equal(vet(other, 1, getpid()), CONTROL_NONE);
	sv.is_root = false;
}

/* A worker is not the operator, and neither is who cannot be told. */
static void
test_workers_are_refused(void **arg)
{
	static const struct {
		int held, descends;
	} found[] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
	int fd;
	size_t i;

	(void)arg;
	assert_int_equal(vet(geteuid(), 1, 0), CONTROL_NONE);
	for (i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		world.held = found[i].held;
		world.descends = found[i].descends;
		assert_int_equal(vet(0, 1, getpid()), CONTROL_NONE);
		fd = client_connect();
		assert_non_null(strstr(
		    read_line(fd), "{\"ok\":false,\"error\":\"refused\""));
		assert_string_equal(read_line(fd), "");
		(void)close(fd);
	}
}

/* A worker that is refused over and over does not fill the log. */
static void
test_refusals_are_logged_a_few_times(void **arg)
{
	int kept = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	int i, fd, lines = 0;
	char c;

	(void)arg;
	world.held = 1;
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	for (i = 0; i < 200; i++) {
		fd = client_connect();
		(void)read_line(fd);
		(void)close(fd);
	}
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	(void)close(kept);
	assert_int_equal(lseek(log, 0, SEEK_SET), 0);
	while (read(log, &c, 1) == 1)
		lines += c == '\n';
	(void)close(log);
	assert_in_range(lines, 1, 20);
}

/* In READ's hands what changes something does nothing. */
static void
test_readers_change_nothing(void **arg)
{
	static const char *const changes[] = {"{\"command\":\"stop\"}",
	    "{\"command\":\"reload\"}",
	    "{\"command\":\"restart\",\"role\":\"ledger\"}"};
	struct client_list list;
	int fd = client_alone(&list, CONTROL_READ);
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		assert_non_null(
		    strstr(ask(fd, changes[i]), "\"error\":\"refused\""));
	assert_int_equal(world.stops + world.reloads + world.restarts, 0);
	assert_non_null(strstr(ask(fd, "{\"command\":\"status\"}"), "true"));
	(void)close(fd);
	settle();
	assert_true(TAILQ_EMPTY(&list));
}

static void
test_clients_of_one_user(void **arg)
{
	int fds[CONTROL_CLIENTS_MAX], fd, i;

	(void)arg;
	for (i = 0; i < CONTROL_CLIENTS_MAX; i++)
		fds[i] = greeted();
	fd = client_connect();
	assert_non_null(strstr(read_line(fd), "too many connections"));
	(void)close(fd);
	for (i = 0; i < CONTROL_CLIENTS_MAX; i++)
		(void)close(fds[i]);
	settle();
	fd = greeted();
	(void)close(fd);
}

/* ---- the path ------------------------------------------------------------ */

static void
wait_for_socket(void)
{
	int64_t until = clock_monotonic_ms() + WAIT_MS;

	while (access(sv.paths.control_socket, F_OK) == -1) {
		assert_true(clock_monotonic_ms() < until);
		(void)event_base_loop(sv.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		(void)poll(NULL, 0, 1);
	}
}

static void
test_vanished_socket_is_made_again(void **arg)
{
	int fd = greeted(), other;

	(void)arg;
	assert_int_equal(unlink(sv.paths.control_socket), 0);
	wait_for_socket();
	other = greeted();
	assert_non_null(strstr(ask(fd, "{\"command\":\"version\"}"), "true"));
	assert_int_equal(unlink(sv.paths.control_socket), 0);
	assert_int_equal(rmdir(world.dir), 0);
	wait_for_socket();
	(void)close(other);
	assert_int_equal(unlink(sv.paths.control_socket), 0);
	wait_for_socket(); /* the new directory is watched as the old was */
	other = greeted();
	(void)close(other);
	(void)close(fd);
}

static void
test_second_server_is_refused(void **arg)
{
	struct supervisor second = sv;
	int status;
	struct error e;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0) {
		second.control = NULL;
		status =
		    control_open(&second, &e) == -1 && e.code == EADDRINUSE;
		control_close(&second);
		_exit(status);
	}
	world.client = pid;
	while (waitpid(pid, &status, WNOHANG) == 0)
		(void)event_base_loop(sv.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(access(sv.paths.control_socket, F_OK), 0);
}

/* Of a killed connector a child may be left that is not at its exec yet. */
static void
leave_listening(int ready)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(
	    sun.sun_path, sizeof(sun.sun_path), "%s", sv.paths.control_socket);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 &&
	    listen(fd, 8) == 0)
		(void)!write(ready, "", 1);
	(void)poll(NULL, 0, 100);
	_exit(0);
}

static void
test_what_a_dead_one_left_is_waited_for(void **arg)
{
	int ready[2], fd;
	struct error e;
	pid_t pid;
	char c;

	(void)arg;
	control_close(&sv);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		leave_listening(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(control_open(&sv, &e), 0);
	fd = greeted();
	(void)close(fd);
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_who_may_what),
	    TEST(test_workers_are_refused),
	    TEST(test_refusals_are_logged_a_few_times),
	    TEST(test_readers_change_nothing),
	    TEST(test_clients_of_one_user),
	    TEST(test_vanished_socket_is_made_again),
	    TEST(test_second_server_is_refused),
	    TEST(test_what_a_dead_one_left_is_waited_for),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as connectd does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
