/* The control socket: who may, what is answered, and what garbage costs. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

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
#include "common/xmalloc.h"
#include "supervisor/accounts.h"
#include "supervisor/child.h"
#include "supervisor/client.h"
#include "supervisor/instance.h"
#include "supervisor/status.h"
#include "supervisor/watchdog.h"

#define WAIT_MS 10000

/* ---- the world around the socket ----------------------------------------- */

static struct {
	int stops, reloads, wrongs, restarts, asked;
	bool reload_fails;
	int held, descends; /* what vetting will find */
	char dir[64];
	/* The ledger's end of its link. */
	struct peer *ledger_end;
	bool ledger_answers;
	struct reply_to late; /* of the last it did not answer */
	const char *answer;   /* NULL: FAILED not_found */
} world;

static struct supervisor sv;
static struct child ledger;
static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops plain_ops = {.handlers = no_handlers};

void
status_write(
    const struct supervisor *s, struct buffer *b, const char *part, size_t len)
{
	(void)s;
	buffer_add_text(b, "{\"status\":");
	buffer_add(b, part == NULL ? "null" : part, part == NULL ? 4 : len);
	buffer_add_char(b, '}');
}

void
supervisor_stop(struct supervisor *s, int signal)
{
	assert_int_equal(signal, 0);
	s->stopping = true;
	world.stops++;
}

int
supervisor_reload(struct supervisor *s, struct error *e)
{
	world.reloads++;
	if (world.reload_fails)
		return error_set(e, "connect.json:3: no");
	s->generation++;
	return 0;
}

void
child_happens(struct child *c, enum child_event event)
{
	world.wrongs += event == CHILD_WRONG;
	world.restarts += event == CHILD_RESTART;
	assert_ptr_equal(c, &ledger);
}

const char *
child_state_name(const struct child *c)
{
	(void)c;
	return "parked";
}

struct child *
child_of_peer(struct supervisor *s, const struct peer *peer)
{
	(void)peer;
	return s->children[ROLE_LEDGER];
}

void
watchdog_ask(struct supervisor *s)
{
	(void)s;
	world.asked++;
}

void
watchdog_wake(struct supervisor *s)
{
	(void)s;
}

int
attempts_hold_pid(struct supervisor *s, pid_t pid)
{
	(void)s;
	assert_int_equal(pid, getpid());
	return world.held;
}

int
identity_descends(pid_t pid, pid_t ancestor)
{
	(void)pid;
	(void)ancestor;
	return world.descends;
}

int
accounts_control_group(const struct supervisor *s, gid_t *gid, struct error *e)
{
	(void)s;
	(void)e;
	*gid = getegid();
	return 0;
}

int
instance_runtime_directory(const struct supervisor *s, struct error *e)
{
	(void)s;
	(void)e;
	(void)mkdir(world.dir, 0700);
	return 0;
}

/* ---- the ledger ---------------------------------------------------------- */

static void
on_query(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg answer = {.type = MSG_ANSWER};

	(void)arg;
	if (!world.ledger_answers) {
		world.late = to;
	} else if (world.answer == NULL) {
		peer_fail(&to, "not_found", 0, "no event %lld",
		    (long long)m->query.event_id);
	} else {
		answer.answer.json.bytes = world.answer;
		answer.answer.json.len = strlen(world.answer);
		peer_reply(&to, &answer);
	}
	msg_free(m);
}

static peer_handler ledger_handlers[MSG_COUNT];
static const struct peer_ops ledger_ops = {.handlers = ledger_handlers};

static void
ledger_link(void)
{
	int pair[2];

	ledger_handlers[MSG_QUERY] = on_query;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ledger.role = ROLE_LEDGER;
	ledger.state = CHILD_READY;
	ledger.peer = peer_new(
	    sv.base, ROLE_SUPERVISOR, ROLE_LEDGER, "", &plain_ops, NULL);
	world.ledger_end = peer_new(
	    sv.base, ROLE_LEDGER, ROLE_SUPERVISOR, "", &ledger_ops, NULL);
	peer_attach(ledger.peer, pair[0], 1);
	peer_attach(world.ledger_end, pair[1], 1);
	sv.children[ROLE_LEDGER] = &ledger;
}

static int
set_up(void **state)
{
	struct error e;

	(void)state;
	memset(&world, 0, sizeof(world));
	memset(&sv, 0, sizeof(sv));
	memset(&ledger, 0, sizeof(ledger));
	(void)snprintf(
	    world.dir, sizeof(world.dir), "/tmp/connectd-test-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	sv.base = event_base_new();
	sv.paths.runtime_dir = world.dir;
	(void)xasprintf(&sv.paths.control_socket, "%s/control.sock", world.dir);
	world.ledger_answers = true;
	world.answer = "{\"n\":1}";
	ledger_link();
	assert_int_equal(control_open(&sv, &e), 0);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	control_close(&sv);
	assert_int_equal(access(sv.paths.control_socket, F_OK), -1);
	peer_free(ledger.peer);
	peer_free(world.ledger_end);
	event_base_free(sv.base);
	(void)rmdir(world.dir);
	free(sv.paths.control_socket);
	return 0;
}

/* ---- a client ------------------------------------------------------------ */

static int
client_connect(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(
	    sun.sun_path, sizeof(sun.sun_path), "%s", sv.paths.control_socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* Let the loop run until there is something to read, or it is overdue. */
static void
wait_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int64_t until = clock_monotonic_ms() + WAIT_MS;

	while (poll(&pfd, 1, 0) == 0) {
		assert_true(clock_monotonic_ms() < until);
		(void)event_base_loop(sv.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		(void)poll(&pfd, 1, 1);
	}
}

/* One line without its newline; "" at the end of the stream. */
static const char *
read_line(int fd)
{
	static char line[65536];
	size_t len = 0;
	ssize_t n;

	for (;;) {
		wait_readable(fd);
		n = read(fd, line + len, 1);
		if (n <= 0 || line[len] == '\n')
			break;
		assert_true(++len < sizeof(line));
	}
	line[len] = '\0';
	return line;
}

static void
say(int fd, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(write(fd, text, len), (ssize_t)len);
}

static const char *
ask(int fd, const char *request)
{
	say(fd, request);
	say(fd, "\n");
	return read_line(fd);
}

static int
greeted(void)
{
	int fd = client_connect();

	assert_string_equal(read_line(fd),
	    "{\"connectd\":1,\"version\":\"" CONNECTD_VERSION "\"}");
	return fd;
}

static void
settle(void)
{
	int i;

	for (i = 0; i < 20; i++)
		(void)event_base_loop(sv.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

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

/* A client of its own, in a list of its own; the other end is returned. */
static int
client_alone(struct client_list *list, enum control_right right)
{
	int pair[2];

	TAILQ_INIT(list);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	(void)evutil_make_socket_nonblocking(pair[0]);
	(void)client_new(&sv, list, pair[0], 12345, right);
	(void)read_line(pair[1]);
	return pair[1];
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
	struct error e;

	(void)arg;
	second.control = NULL;
	assert_int_equal(control_open(&second, &e), -1);
	assert_int_equal(e.code, EADDRINUSE);
	control_close(&second);
	settle();
	assert_int_equal(access(sv.paths.control_socket, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
	    TEST(test_who_may_what),
	    TEST(test_workers_are_refused),
	    TEST(test_readers_change_nothing),
	    TEST(test_clients_of_one_user),
	    TEST(test_vanished_socket_is_made_again),
	    TEST(test_second_server_is_refused),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as connectd does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
