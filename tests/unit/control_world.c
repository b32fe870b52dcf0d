#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/accounts.h"
#include "supervisor/instance.h"
#include "supervisor/status.h"
#include "supervisor/watchdog.h"
#include "supervisor/settings.h"
#include "tests/unit/control_world.h"

/* ---- the world around the socket ----------------------------------------- */

static struct settings settings;
struct world world;

struct supervisor sv;
struct child ledger;
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
watchdog_stir(struct supervisor *s)
{
	(void)s;
}

enum fate
attempts_fate(const struct supervisor *s, const char *attempt)
{
	(void)s;
	(void)attempt;
	return world.fate;
}

bool
attempts_had(const struct supervisor *s, const char *attempt)
{
	(void)s;
	(void)attempt;
	return world.was_had;
}

bool
attempts_signaled(
    const struct supervisor *s, const char *attempt, bool *was_signaled)
{
	(void)s;
	assert_string_equal(attempt, WORLD_ATTEMPT);
	*was_signaled = world.was_signaled;
	return world.is_known;
}

const char *
recovery_finds(const struct supervisor *s, const char *attempt,
    const struct msg_identity_is *known)
{
	(void)s;
	(void)attempt;
	(void)known;
	return world.runs;
}

void
attempts_settled(struct supervisor *s, const char *attempt)
{
	(void)s;
	assert_string_equal(attempt, WORLD_ATTEMPT);
	world.let_go++;
}

int
attempts_hold_pid(struct supervisor *s, pid_t pid)
{
	(void)s;
	assert_int_equal(pid, world.client == 0 ? getpid() : world.client);
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

/* A pipe that holds what a test can tell, for the attempt that there is. */
static void
on_take_over(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg reply = {.type = MSG_TAKEN_OVER};
	int fds[2];

	(void)arg;
	world.taken_over++;
	if (strcmp(m->take_over.attempt, WORLD_ATTEMPT) != 0) {
		peer_fail(
		    &to, "not_found", 0, "no attempt %s", m->take_over.attempt);
	} else {
		assert_int_equal(pipe(fds), 0);
		assert_int_equal(write(fds[1], "token\n", 6), 6);
		(void)close(fds[1]);
		reply.taken_over.task_id = 7;
		reply.taken_over.token = fds[0];
		peer_reply(&to, &reply);
	}
	msg_free(m);
}

static void
decision_keep(const char *nonce, const char *by, int64_t id)
{
	world.asked++;
	(void)snprintf(
	    world.decision.nonce, sizeof(world.decision.nonce), "%s", nonce);
	(void)snprintf(world.decision.by, sizeof(world.decision.by), "%s", by);
	world.decision.id = id;
}

static void
decision_answer(struct peer *peer, struct msg *m, struct msg *answer)
{
	struct reply_to to = peer_reply_to(peer, m);

	if (!world.ledger_answers)
		world.late = to;
	else if (world.refuses != NULL)
		peer_fail(&to, "refused", 0, "%s", world.refuses);
	else
		peer_reply(&to, answer);
	msg_free(m);
}

/* REDISPATCH and DISCARD have the same fields. */
static void
on_event_decision(struct peer *peer, struct msg *m, void *arg)
{
	struct msg answer = {.type = MSG_DECIDED, .decided = world.decided};

	(void)arg;
	if (m->type == MSG_REDISPATCH)
		decision_keep(m->redispatch.nonce, m->redispatch.by,
		    m->redispatch.event_id);
	else
		decision_keep(
		    m->discard.nonce, m->discard.by, m->discard.event_id);
	decision_answer(peer, m, &answer);
}

static void
on_resolve(struct peer *peer, struct msg *m, void *arg)
{
	struct msg answer = {.type = MSG_RESOLVED};

	(void)arg;
	decision_keep(m->resolve.nonce, m->resolve.by, m->resolve.intent_id);
	(void)snprintf(world.decision.resolution,
	    sizeof(world.decision.resolution), "%s", m->resolve.resolution);
	world.decision.receipt = m->resolve.receipt_id;
	answer.resolved.state = "pending";
	answer.resolved.changed = true;
	decision_answer(peer, m, &answer);
}

static void
on_identity(struct peer *peer, struct msg *m, void *arg)
{
	struct msg answer = {.type = MSG_IDENTITY_IS};

	(void)arg;
	answer.identity_is.found =
	    strcmp(m->identity.attempt, WORLD_ATTEMPT) == 0;
	answer.identity_is.run_id = world.run_id;
	answer.identity_is.state = world.known_state;
	decision_answer(peer, m, &answer);
}

static void
on_settle(struct peer *peer, struct msg *m, void *arg)
{
	struct msg answer = {.type = MSG_ATTEMPT_SETTLED};

	(void)arg;
	decision_keep(m->settle.nonce, m->settle.by, 0);
	answer.attempt_settled = (struct msg_attempt_settled){9, 2};
	if (world.refuses_settle != NULL)
		world.refuses = world.refuses_settle;
	decision_answer(peer, m, &answer);
	if (world.refuses_settle != NULL)
		world.refuses = NULL;
}

static peer_handler ledger_handlers[MSG_COUNT];
static const struct peer_ops ledger_ops = {.handlers = ledger_handlers};

static void
ledger_link(void)
{
	int pair[2];

	ledger_handlers[MSG_QUERY] = on_query;
	ledger_handlers[MSG_TAKE_OVER] = on_take_over;
	ledger_handlers[MSG_REDISPATCH] = on_event_decision;
	ledger_handlers[MSG_DISCARD] = on_event_decision;
	ledger_handlers[MSG_RESOLVE] = on_resolve;
	ledger_handlers[MSG_IDENTITY] = on_identity;
	ledger_handlers[MSG_SETTLE] = on_settle;
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

int
world_set_up(void **state)
{
	struct error e;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.decided.from_state = "completed";
	world.decided.state = "admitted";
	memset(&sv, 0, sizeof(sv));
	memset(&ledger, 0, sizeof(ledger));
	(void)snprintf(
	    world.dir, sizeof(world.dir), "/tmp/connectd-test-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	(void)snprintf(sv.run_id, sizeof(sv.run_id), "this");
	world.run_id = "another";
	sv.base = event_base_new();
	settings.config = config_new();
	settings.mcp_socket = true;
	sv.settings = &settings;
	sv.paths.runtime_dir = world.dir;
	(void)xasprintf(&sv.paths.control_socket, "%s/control.sock", world.dir);
	world.ledger_answers = true;
	world.answer = "{\"n\":1}";
	world.decided.state = "admitted";
	ledger_link();
	assert_int_equal(control_open(&sv, &e), 0);
	return 0;
}

int
world_tear_down(void **state)
{
	(void)state;
	control_close(&sv);
	assert_int_equal(access(sv.paths.control_socket, F_OK), -1);
	peer_free(ledger.peer);
	peer_free(world.ledger_end);
	event_base_free(sv.base);
	config_free(settings.config);
	(void)rmdir(world.dir);
	free(sv.paths.control_socket);
	return 0;
}

/* ---- a client ------------------------------------------------------------ */

int
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
const char *
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

void
say(int fd, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(write(fd, text, len), (ssize_t)len);
}

const char *
ask(int fd, const char *request)
{
	say(fd, request);
	say(fd, "\n");
	return read_line(fd);
}

int
greeted(void)
{
	int fd = client_connect();

	assert_string_equal(read_line(fd),
	    "{\"connectd\":1,\"version\":\"" CONNECTD_VERSION "\"}");
	return fd;
}

void
settle(void)
{
	int i;

	for (i = 0; i < 20; i++)
		(void)event_base_loop(sv.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* A client of its own, in a list of its own; the other end is returned. */
int
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
