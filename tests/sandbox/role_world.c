#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/link.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/sandbox/role_world.h"

#define NOBODY 65534
#define INHERITED_FD 77

/* ---- the role ----------------------------------------------------------- */

static const struct sandbox_profile profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD | SANDBOX_RPATH,
    .dirs = {{"", SANDBOX_READ}},
};

static struct role role;
static int own_state = 4711;

int
prepare_usual(struct role *r, struct error *e)
{
	assert_ptr_equal(r->arg, &own_state);
	if ((fcntl(INHERITED_FD, F_GETFD) & FD_CLOEXEC) == 0)
		return error_set(e, "an inherited descriptor is not sealed");
	role_starting(r, "preparing");
	return 0;
}

static void
configured(struct role *r)
{
	role_state(r, "generation", "%lld of %lld projects",
	    (long long)r->config->generation,
	    (long long)r->config->route_count);
}

static void
on_linked(struct peer *peer, void *arg)
{
	role_state(&role, "linked", "%s %lld %d", role_name(peer_role(peer)),
	    (long long)peer_generation(peer), *(int *)arg);
}

static void
on_waits(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	role_state(&role, "waits", "%lld %d",
	    (long long)m->undecided_waits.event_id, *(int *)arg);
	if (m->undecided_waits.event_id == 13)
		fatalx("thirteen");
	msg_free(m);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_UNDECIDED_WAITS] = on_waits,
};
static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = on_linked,
};

/* It may link, and has nothing to say. */
static const struct peer_ops mcpd_ops = {.handlers = NULL};

struct role_row world_row = {
    .role = ROLE_INTAKE,
    .title = "connectd-intake",
    .nofile = 300,
    .writes_files = true,
    .sandbox = &profile,
    .prepare = prepare_usual,
    .peers = {[ROLE_LEDGER] = &ledger_ops, [ROLE_MCPD] = &mcpd_ops},
    .configured = configured,
};

/* ---- its supervisor ------------------------------------------------------ */

static void
ignore_message(struct link *link, struct msg *m, void *arg)
{
	(void)link;
	(void)arg;
	msg_free(m);
}

static void
ignore_end(struct link *link, enum link_over why, const char *text, void *arg)
{
	(void)link;
	(void)why;
	(void)text;
	(void)arg;
}

static const struct link_ops no_ops = {ignore_message, ignore_end};

static void
send_from(struct world *w, int fd, enum role_id from, struct msg *m)
{
	struct link *link =
	    link_new(w->base, dup(fd), from, ROLE_INTAKE, &no_ops, NULL);

	link_send(link, m);
	link_flush(link);
	assert_int_equal(0, link_queued(link));
	link_free(link);
}

void
tell(struct world *w, struct msg *m)
{
	send_from(w, w->fd, ROLE_SUPERVISOR, m);
}

uid_t
role_uid(void)
{
	return geteuid() == 0 ? NOBODY : geteuid();
}

gid_t
role_gid(void)
{
	return geteuid() == 0 ? NOBODY : getegid();
}

struct msg
setup_message(void)
{
	struct msg m = {.type = MSG_SETUP};

	m.setup.protocol = PROTOCOL_VERSION;
	m.setup.role = ROLE_INTAKE;
	m.setup.generation = 1;
	m.setup.supervisor_pid = getpid();
	m.setup.uid = role_uid();
	m.setup.gid = role_gid();
	m.setup.run_id = "0123456789abcdef0123456789abcdef";
	m.setup.boot_id = "01234567-89ab-cdef-0123-456789abcdef";
	m.setup.base_url = "https://example.org";
	m.setup.user_agent = "test";
	return m;
}

_Noreturn void
be_the_role(int fd)
{
	(void)dup2(fd, ROLE_LINK_FD);
	(void)dup2(STDERR_FILENO, INHERITED_FD);
	role_start(&role, &world_row, &own_state);
	role_ready(&role);
	role_run(&role);
}

struct world *
world_around(int fd, pid_t child)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->base = event_base_new();
	w->fd = fd;
	w->peer_fd = -1;
	w->child = child;
	return w;
}

struct world *
world_new(struct msg *setup)
{
	struct world *w;
	int fds[2];
	pid_t pid;

	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = fork();
	assert_int_not_equal(-1, pid);
	if (pid == 0) {
		(void)close(fds[0]);
		be_the_role(fds[1]);
	}
	(void)close(fds[1]);
	w = world_around(fds[0], pid);
	(void)snprintf(w->state_dir, sizeof(w->state_dir), "/tmp/role-XXXXXX");
	assert_non_null(mkdtemp(w->state_dir));
	assert_int_equal(0, chmod(w->state_dir, 0755));
	if (setup->setup.state_dir == NULL)
		setup->setup.state_dir = w->state_dir;
	tell(w, setup);
	return w;
}

struct world *
world_usual(void)
{
	struct msg setup = setup_message();

	return world_new(&setup);
}

struct msg *
await(struct world *w, enum msg_type type)
{
	struct error e;
	struct msg *m;
	size_t i;

	for (i = 0; i < w->count; i++) {
		m = w->kept[i];
		if (m->type != type)
			continue;
		w->kept[i] = w->kept[--w->count];
		return m;
	}
	while ((m = link_read_one(w->fd, ROLE_SUPERVISOR, ROLE_INTAKE,
		    DEADLINE_MS, &e)) != NULL) {
		if (m->type == type)
			return m;
		if (m->type == MSG_LOG)
			print_message("log: %s\n", m->log.text);
		assert_true(w->count < KEPT_MAX);
		w->kept[w->count++] = m;
	}
	fail_msg("no %s came: %s", msg_name(type), e.text);
	return NULL;
}

void
await_text(struct world *w, enum msg_type type, const char *part)
{
	struct msg *m = await(w, type);
	const char *text = type == MSG_LOG ? m->log.text
	    : type == MSG_ACCUSE           ? m->accuse.text
	    : type == MSG_STARTING         ? m->starting.text
					   : m->state.value;

	if (strstr(text, part) == NULL)
		fail_msg(
		    "%s: \"%s\" has no \"%s\"", msg_name(type), text, part);
	msg_free(m);
}

int
await_exit(struct world *w)
{
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;
	int status;

	while (waitpid(w->child, &status, WNOHANG) == 0) {
		assert_true(clock_monotonic_ms() < until);
		(void)poll(NULL, 0, 1);
	}
	w->child = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void
world_free(struct world *w)
{
	if (w->child != 0) {
		(void)kill(w->child, SIGKILL);
		(void)waitpid(w->child, NULL, 0);
	}
	while (w->count > 0)
		msg_free(w->kept[--w->count]);
	if (w->fd != -1)
		(void)close(w->fd);
	if (w->peer_fd != -1)
		(void)close(w->peer_fd);
	event_base_free(w->base);
	if (w->state_dir[0] != '\0')
		(void)rmdir(w->state_dir);
	free(w);
}

void
give_link(struct world *w)
{
	struct msg m = {.type = MSG_LINK};
	int fds[2];

	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	m.link.role = ROLE_LEDGER;
	m.link.generation = 3;
	m.link.end = fds[1];
	tell(w, &m);
	w->peer_fd = fds[0];
}

void
tell_peer(struct world *w, struct msg *m)
{
	send_from(w, w->peer_fd, ROLE_LEDGER, m);
}

void
greet(struct world *w, const char *build)
{
	struct msg m = {.type = MSG_HELLO};

	m.hello.protocol = PROTOCOL_VERSION;
	m.hello.schema = SCHEMA_VERSION;
	m.hello.build = build;
	tell_peer(w, &m);
}

void
say_waits(struct world *w, int64_t event_id)
{
	struct msg m = {.type = MSG_UNDECIDED_WAITS};

	m.undecided_waits.event_id = event_id;
	tell_peer(w, &m);
}
