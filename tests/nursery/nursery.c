#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/config.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/role.h"
#include "common/xmalloc.h"
#include "tests/nursery/nursery.h"

#define RUN_ID "00000000000000000000000000000000"
#define EXTRA_FD (ROLE_LINK_FD + 1)
#define PROJECT 48699913

/* ---- what a child says to its supervisor -------------------------------- */

static void
on_ready(struct peer *peer, struct msg *m, void *arg)
{
	struct nursery *n = arg;

	(void)peer;
	n->is_ready = true;
	msg_free(m);
	(void)event_base_loopbreak(n->base);
}

static void
on_log(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	log_info("%s", log_safe(m->log.text));
	msg_free(m);
}

static void
on_line(struct peer *peer, struct msg *m, void *arg)
{
	struct nursery *n = arg;

	(void)peer;
	if (n->ops != NULL && n->ops->line != NULL)
		n->ops->line(m->line.text, n->arg);
	msg_free(m);
}

static void
on_other(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	msg_free(m);
}

static void
on_gone(struct peer *peer, void *arg)
{
	struct nursery *n = arg;

	(void)peer;
	if (n->ops != NULL && n->ops->gone != NULL)
		n->ops->gone(n->arg);
	else if (!n->is_ending)
		fatalx("%s is gone", role_name(n->role));
	(void)event_base_loopbreak(n->base);
}

static const peer_handler child_handlers[MSG_COUNT] = {
    [MSG_READY] = on_ready,
    [MSG_LOG] = on_log,
    [MSG_LINE] = on_line,
    [MSG_STATE] = on_other,
    [MSG_STARTING] = on_other,
};
static const struct peer_ops child_ops = {
    .handlers = child_handlers, .unlinked = on_gone};

/* ---- the start ---------------------------------------------------------- */

static void
tell_setup(struct nursery *n, const char *state_dir)
{
	struct msg m = {.type = MSG_SETUP};
	char boot_id[BOOT_ID_LEN + 1];
	struct error e;

	if (identity_boot_id(boot_id, &e) == -1)
		fatalx("%s", e.text);
	m.setup = (struct msg_setup){.protocol = PROTOCOL_VERSION,
	    .role = n->role,
	    .generation = 1,
	    .supervisor_pid = getpid(),
	    .uid = geteuid(),
	    .gid = getegid(),
	    .state_dir = state_dir,
	    .run_id = RUN_ID,
	    .boot_id = boot_id,
	    .attempt = n->role == ROLE_MCPD ? NURSERY_ATTEMPT : "",
	    .base_url = "http://127.0.0.1:1",
	    .user_agent = "bench"};
	peer_notice(n->child, &m);
	link_flush(peer_link(n->child));
}

/* dup2() takes close-on-exec away: our own copies must be other numbers. */
static _Noreturn void
be_the_child(const struct nursery *n, char *const argv[], int link, int extra)
{
	if (dup2(link, ROLE_LINK_FD) == -1 ||
	    (extra != -1 && dup2(extra, EXTRA_FD) == -1))
		_exit(1);
	if (n->ops != NULL && n->ops->born != NULL)
		n->ops->born(n->arg);
	(void)execv(argv[0], argv);
	_exit(1);
}

static void
pair_make(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		fatal("socketpair");
}

struct event_base *
nursery_base(void)
{
	struct event_base *base;
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd == -1)
			fatal("/dev/null");
	} while (fd < EXTRA_FD);
	base = event_base_new();
	if (base == NULL)
		fatalx("no event base");
	return base;
}

void
nursery_start(struct nursery *n, struct event_base *base, enum role_id role,
    char *const argv[], int extra, const char *state_dir)
{
	int pair[2];

	pair_make(pair);
	*n = (struct nursery){
	    .ops = n->ops, .arg = n->arg, .base = base, .role = role};
	n->pid = fork();
	if (n->pid == -1)
		fatal("fork");
	if (n->pid == 0)
		be_the_child(n, argv, pair[1], extra);
	(void)close(pair[1]);
	if (extra != -1)
		(void)close(extra);
	n->child = peer_new(base, ROLE_SUPERVISOR, role,
	    role == ROLE_MCPD ? NURSERY_ATTEMPT : "", &child_ops, n);
	peer_attach(n->child, pair[0], 1);
	tell_setup(n, state_dir);
}

void
nursery_relink(
    struct nursery *n, enum role_id as, const char *attempt, struct peer *peer)
{
	struct msg m = {.type = MSG_LINK};
	int pair[2];

	pair_make(pair);
	m.link.role = as;
	m.link.generation = 1;
	m.link.attempt = attempt;
	m.link.end = pair[1];
	peer_notice(n->child, &m);
	peer_attach(peer, pair[0], 1);
}

struct peer *
nursery_link(
    struct nursery *n, enum role_id as, const struct peer_ops *ops, void *arg)
{
	struct peer *peer = peer_new(n->base, as, n->role,
	    n->role == ROLE_MCPD ? NURSERY_ATTEMPT : "", ops, arg);

	nursery_relink(n, as, "", peer);
	return peer;
}

static void
send_one(struct msg *m, void *arg)
{
	struct nursery *n = arg;

	peer_notice(n->child, m);
}

void
nursery_tell_config(struct nursery *n, const struct config *c)
{
	config_write(c, send_one, n);
}

void
nursery_configure(struct nursery *n)
{
	struct config *c = config_new();

	c->generation = 1;
	c->readable = true;
	c->account_id = c->agent_id = c->operator_id = 1;
	c->concurrency = 1;
	c->deadline_ms = 60000;
	(void)snprintf(c->trust_mode, sizeof(c->trust_mode), "operator");
	(void)snprintf(c->driver, sizeof(c->driver), "claude");
	(void)snprintf(c->profile, sizeof(c->profile), "bench");
	config_route_add(c, PROJECT, "/srv/web", "web", false);
	nursery_tell_config(n, c);
	config_free(c);
}

void
nursery_await_ready(struct nursery *n)
{
	while (!n->is_ready)
		(void)event_base_dispatch(n->base);
}

int
nursery_bury(struct nursery *n)
{
	int status;

	while (waitpid(n->pid, &status, 0) == -1) {
		if (errno != EINTR)
			fatal("waitpid");
	}
	peer_free(n->child);
	return status;
}

void
nursery_end(struct nursery *n)
{
	struct msg m = {.type = MSG_STOP};

	n->is_ending = true;
	peer_notice(n->child, &m);
	while (peer_is_linked(n->child))
		(void)event_base_dispatch(n->base);
	(void)nursery_bury(n);
}
