#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/exec.h"
#include "supervisor/guests.h"
#include "supervisor/kernel.h"
#include "supervisor/watchdog.h"

#define EXIT_NOT_EXECUTED 126
#define ARGV_MAX 8

/* What the forked child needs, made before the fork. */
struct birth {
	int exe;
	int link;  /* becomes 3 */
	int extra; /* becomes 4, or -1 */
	int null;  /* becomes 0, 1 and 2 */
	char *argv[ARGV_MAX];
	char **envp;
};

/* ---- the environment: empty, but for what sanitizers are told ------------ */

static char **
birth_environment(void)
{
	static char *none[] = {NULL};
#ifdef INSECURE_BUILD
	static const char *const kept[] = {
	    "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};
	static char *some[sizeof(kept) / sizeof(kept[0]) + 1];
	extern char **environ;
	size_t i, count = 0;
	char **var;

	for (var = environ; *var != NULL; var++) {
		for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
			if (strncmp(*var, kept[i], strlen(kept[i])) == 0)
				some[count++] = *var;
		}
	}
	some[count] = NULL;
	if (count > 0)
		return some;
#endif
	return none;
}

/* ---- in the forked child: async-signal-safe calls only ------------------- */

/*
 * The supervisor speaks for the signals of a terminal and a service manager:
 * they are ignored from here on, SETUP or not.
 */
static void
birth_signals(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	const struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGTERM, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	(void)sigaction(SIGPIPE, &normal, NULL);
	(void)sigaction(SIGCHLD, &normal, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* dup2() clears close-on-exec; what it would hit, main() keeps free. */
static int
birth_descriptors(const struct birth *b)
{
	int fd;

#ifdef INSECURE_BUILD
	const int last = STDOUT_FILENO; /* a sanitizer's report is seen */
#else
	const int last = STDERR_FILENO;
#endif
	for (fd = STDIN_FILENO; fd <= last; fd++) {
		if (dup2(b->null, fd) == -1)
			return -1;
	}
	if (dup2(b->link, ROLE_LINK_FD) == -1)
		return -1;
	if (b->extra != -1 && dup2(b->extra, CHILD_EXTRA_FD) == -1)
		return -1;
	return 0;
}

static _Noreturn void
birth(const struct birth *b)
{
	if (birth_descriptors(b) == 0) {
		birth_signals();
		kernel_exec(b->exe,
		    b->extra == -1 ? CHILD_EXTRA_FD : CHILD_EXTRA_FD + 1,
		    b->argv, b->envp);
	}
	_exit(EXIT_NOT_EXECUTED);
}

/* ---- before the fork ----------------------------------------------------- */

/* The lock goes to those whose last write a next start must wait for. */
static int
birth_extra(const struct child *c)
{
	switch (c->role) {
	case ROLE_LEDGER:
	case ROLE_OUTBOX:
		return c->sv->lock_fd;
	case ROLE_MCPD:
		return c->token;
	default:
		return -1;
	}
}

static void
birth_words(const struct child *c, struct birth *b)
{
	static char supervised[] = "--supervised", state[] = "--connect-state",
		    token[] = "--connect-token-fd", extra[] = "4";
	size_t n = 0;

	b->argv[n++] = (char *)(uintptr_t)exec_name(c->role);
	if (c->role == ROLE_MCPD) {
		b->argv[n++] = supervised;
		b->argv[n++] = state;
		b->argv[n++] = c->sv->state_dir;
		b->argv[n++] = token;
		b->argv[n++] = extra;
	}
	b->argv[n] = NULL;
	b->envp = birth_environment();
}
_Static_assert(CHILD_EXTRA_FD == 4, "mcpd's argument says 4");

/*
 * Fork with all signals blocked: until it has its own handling, the child
 * must not run ours, which write to the loop's descriptors.
 */
static pid_t
birth_fork(const struct birth *b)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		birth(b);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* ---- what it is told first ----------------------------------------------- */

/*
 * SETUP goes into the socket before anything else can: over the new link the
 * peer repeats what its predecessor did not answer.
 */
static int
tell_setup(const struct child *c, int fd, struct error *e)
{
	const struct supervisor *sv = c->sv;
	struct msg m = {.type = MSG_SETUP};
	struct frame f;
	ssize_t n;

	m.setup.protocol = PROTOCOL_VERSION;
	m.setup.role = (int64_t)c->role;
	m.setup.generation = c->generation;
	m.setup.supervisor_pid = getpid();
	m.setup.uid = sv->role_ids[c->role].uid;
	m.setup.gid = sv->role_ids[c->role].gid;
	m.setup.insecure = sv->options.insecure;
	m.setup.state_dir = c->role == ROLE_LEDGER ? sv->state_dir : "/";
	m.setup.run_id = sv->run_id;
	m.setup.boot_id = sv->boot_id;
	m.setup.attempt = c->attempt;
	m.setup.base_url = sv->base_url;
	m.setup.user_agent = sv->user_agent;
	if (frame_encode(&m, &f, e) == -1)
		return -1;
	n = send(fd, f.bytes, f.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == -1)
		(void)error_errno(e, "SETUP");
	else if ((size_t)n != f.len)
		(void)error_set(e, "SETUP: not taken whole");
	n = n == (ssize_t)f.len ? 0 : -1;
	frame_free(&f);
	return (int)n;
}

static void
configure_send(struct msg *m, void *arg)
{
	struct child *c = arg;

	peer_notice(c->peer, m);
}

/*
 * Where attempts are contained; "" without cgroups, and where a launcher may
 * lead the worker out of its own: an empty one would then prove nothing.
 */
static void
tell_containment(struct child *c)
{
	const struct settings *s = c->sv->settings;
	const char *base = c->sv->cgroup_base;
	struct msg m = {.type = MSG_CONTAINMENT};
	char *text = NULL;

	if (base != NULL &&
	    (s->worker.launcher.count == 0 || s->worker.launcher_keeps_tree))
		(void)xasprintf(&text, "cgroup:%s/", base);
	m.containment.base = text;
	peer_notice(c->peer, &m);
	free(text);
}

void
child_configure(struct child *c)
{
	/* First: what is launched by the new generation goes by it. */
	if (c->role == ROLE_DISPATCHER)
		tell_containment(c);
	config_write(c->sv->settings->config, configure_send, c);
}

static void
tell_credential(struct child *c, const struct credential *secret)
{
	struct msg m = {.type = MSG_CREDENTIAL};

	m.credential.client_id = secret->client_id;
	m.credential.client_secret = secret->client_secret;
	m.credential.token_endpoint = secret->token_endpoint;
	m.credential.scope = secret->scope;
	m.credential.resource = secret->resource;
	peer_notice(c->peer, &m);
	if (peer_is_linked(c->peer))
		link_flush(peer_link(c->peer)); /* it does not stay queued */
}

int
child_tell_credential(struct child *c, struct error *e)
{
	struct credential secret;

	if (credential_load(&c->sv->paths, &secret, e) == -1)
		return -1;
	tell_credential(c, &secret);
	credential_wipe(&secret);
	return 0;
}

/* ---- the birth ----------------------------------------------------------- */

static int
child_bear(struct child *c, int pair[2], struct error *e)
{
	struct birth b = {
	    .exe = c->sv->role_exec[c->role],
	    .link = pair[1],
	    .extra = birth_extra(c),
	    .null = c->sv->null_fd,
	};

	birth_words(c, &b);
	if (tell_setup(c, pair[0], e) == -1)
		return -1;
	c->pid = birth_fork(&b);
	if (c->pid != -1)
		return 0;
	c->pid = 0;
	return error_errno(e, "fork");
}

static int
child_fork(struct child *c, struct error *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return error_errno(e, "socketpair");
	if (child_bear(c, pair, e) == -1) {
		(void)close(pair[0]);
		(void)close(pair[1]);
		return -1;
	}
	(void)close(pair[1]);
	if (c->token != -1)
		(void)close(c->token);
	c->token = -1;
	peer_attach(c->peer, pair[0], c->generation);
	return 0;
}

enum spawn_result
child_spawn(struct child *c, struct error *e)
{
	struct credential secret;

	if (c->role == ROLE_OUTBOX &&
	    credential_load(&c->sv->paths, &secret, e) == -1)
		return SPAWN_UNCONFIGURED;
	if (child_fork(c, e) == -1) {
		if (c->role == ROLE_OUTBOX)
			credential_wipe(&secret);
		return SPAWN_FAILED;
	}
	child_configure(c);
	if (c->role == ROLE_OUTBOX) {
		tell_credential(c, &secret);
		credential_wipe(&secret);
	}
	if (links_make(c, e) == -1) {
		/* Half linked it would wait for ever: its death is retried. */
		log_warnx("%s: %s", c->name, e->text);
		child_signal(c, SIGKILL);
	}
	guests_link(c->sv, c);
	watchdog_wake(c->sv);
	return SPAWN_DONE;
}

void
child_signal(const struct child *c, int signal)
{
	if (c->pid > 0)
		(void)kill(c->pid, signal);
}
