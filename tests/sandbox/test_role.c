/* A role's start, links and end. The role is `intake`, forked, not executed. */
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/build_id.h"
#include "common/exit.h"
#include "common/link.h"
#include "tests/sandbox/role_world.h"

/* A line of /proc/PID/status, or "". */
static void
status_line(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64], line[256];
	FILE *file;

	out[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, name, strlen(name)) != 0 ||
		    line[strlen(name)] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(out, size, "%s",
		    line + strlen(name) + 1 +
			strspn(line + strlen(name) + 1, "\t "));
	}
	(void)fclose(file);
}

static void
assert_status(const struct world *w, const char *name, const char *value)
{
	char line[256];

	status_line(w->child, name, line, sizeof(line));
	if (strcmp(line, value) != 0)
		fail_msg("%s is \"%s\", not \"%s\"", name, line, value);
}

/* Both limits. Of a process that is hidden, root alone may know. */
static void
assert_limit(const struct world *w, const char *name, long long value)
{
	char path[64], line[256];
	long long soft = -1, hard = -1;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)w->child);
	if ((file = fopen(path, "re")) == NULL) {
		assert_int_not_equal(0, geteuid());
		return;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, name, strlen(name)) == 0)
			assert_int_equal(2,
			    sscanf(line + strlen(name), "%lld %lld", &soft,
				&hard));
	}
	(void)fclose(file);
	assert_int_equal(value, soft);
	assert_int_equal(value, hard);
}

static int
prepare_fails(struct role *r, struct error *e)
{
	(void)r;
	return error_set(e, "no certificates in /nowhere");
}

/* ---- tests ----------------------------------------------------------------
 */

static void
test_start(void **state)
{
	struct world *w = world_usual();
	unsigned long long ignored;
	char line[256], ids[64];
	struct msg *m;

	(void)state;
	await_text(w, MSG_STARTING, "preparing");
	m = await(w, MSG_READY);
	assert_int_equal(PROTOCOL_VERSION, m->ready.protocol);
	assert_string_equal(build_id, m->ready.build);
	assert_true(m->ready.no_new_privs);
	assert_int_equal(sandbox_landlock_abi(), m->ready.landlock_abi);
#ifdef INSECURE_BUILD
	assert_false(m->ready.seccomp);
	/* To become another user hides a process by itself. */
	assert_int_equal(geteuid() != 0, m->ready.dumpable);
#else
	assert_true(m->ready.seccomp);
	assert_false(m->ready.dumpable);
	assert_status(w, "Seccomp", "2");
#endif
	msg_free(m);
	assert_status(w, "NoNewPrivs", "1");
	assert_status(w, "Name", "connectd-intake");
	assert_status(w, "Umask", "0077");
	(void)snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u", role_uid(),
	    role_uid(), role_uid(), role_uid());
	assert_status(w, "Uid", ids);
	(void)snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u", role_gid(),
	    role_gid(), role_gid(), role_gid());
	assert_status(w, "Gid", ids);
	if (geteuid() == 0)
		assert_status(w, "Groups", "");
	assert_status(w, "CapEff", "0000000000000000");
	status_line(w->child, "SigIgn", line, sizeof(line));
	ignored = strtoull(line, NULL, 16);
	assert_int_equal(1ULL << (SIGINT - 1) | 1ULL << (SIGTERM - 1) |
		1ULL << (SIGHUP - 1) | 1ULL << (SIGPIPE - 1),
	    ignored);
	assert_status(w, "SigBlk", "0000000000000000");
	assert_int_equal(w->child, getsid(w->child));
	assert_limit(w, "Max open files", 300);
	assert_limit(w, "Max core file size", 0);
	world_free(w);
}

static void
test_ping(void **state)
{
	struct world *w = world_usual();
	struct msg m = {.type = MSG_PING, .request = 9}, *pong;

	(void)state;
	msg_free(await(w, MSG_READY));
	m.ping.nonce = 42;
	tell(w, &m);
	pong = await(w, MSG_PONG);
	assert_int_equal(42, pong->pong.nonce);
	assert_int_equal(9, pong->request);
	msg_free(pong);
	world_free(w);
}

/* INT, TERM and HUP are the supervisor's to act on. */
static void
test_signals(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct world *w = world_usual();
	struct msg m = {.type = MSG_PING, .request = 1};
	size_t i;

	(void)state;
	msg_free(await(w, MSG_READY));
	for (i = 0; i < 3; i++)
		assert_int_equal(0, kill(w->child, signals[i]));
	tell(w, &m);
	msg_free(await(w, MSG_PONG));
	world_free(w);
}

static void
send_one(struct msg *m, void *arg)
{
	tell(arg, m);
}

static void
test_config(void **state)
{
	struct world *w = world_usual();
	struct config *c = config_new();
	int generation;

	(void)state;
	c->account_id = c->agent_id = c->operator_id = 1;
	c->concurrency = 1;
	c->deadline_ms = 60000;
	(void)snprintf(c->trust_mode, sizeof(c->trust_mode), "operator");
	(void)snprintf(c->driver, sizeof(c->driver), "claude");
	(void)snprintf(c->profile, sizeof(c->profile), "demo");
	config_route_add(c, 5, "/srv/web", "web", false);
	for (generation = 1; generation <= 2; generation++) {
		char text[64];

		c->generation = generation;
		config_write(c, send_one, w);
		(void)snprintf(text, sizeof(text), "%d of 1", generation);
		await_text(w, MSG_STATE, text);
	}
	config_free(c);
	world_free(w);
}

/* Parts without their beginning: the supervisor's fault, so we end. */
static void
test_config_out_of_place(void **state)
{
	struct world *w = world_usual();
	struct msg m = {.type = MSG_CONFIG_END};

	(void)state;
	msg_free(await(w, MSG_READY));
	m.config_end.generation = 1;
	tell(w, &m);
	assert_int_equal(EXIT_PEER, await_exit(w));
	await_text(w, MSG_LOG, "CONFIG_END");
	world_free(w);
}

static void
test_link(void **state)
{
	struct world *w = world_usual();
	struct msg *hello;
	struct error e;

	(void)state;
	msg_free(await(w, MSG_READY));
	give_link(w);
	await_text(w, MSG_STATE, "ledger 3 4711");
	greet(w, build_id);
	say_waits(w, 5);
	await_text(w, MSG_STATE, "5 4711");
	hello = link_read_one(
	    w->peer_fd, ROLE_LEDGER, ROLE_INTAKE, DEADLINE_MS, &e);
	assert_non_null(hello);
	assert_int_equal(MSG_HELLO, hello->type);
	assert_string_equal(build_id, hello->hello.build);
	msg_free(hello);
	world_free(w);
}

static void
test_link_of_another_build(void **state)
{
	struct world *w = world_usual();
	struct msg *m;
	struct error e;

	(void)state;
	give_link(w);
	greet(w, "another");
	m = await(w, MSG_ACCUSE);
	assert_int_equal(ROLE_LEDGER, m->accuse.role);
	assert_non_null(strstr(m->accuse.text, "build"));
	msg_free(m);
	/* Its HELLO, then the end. */
	msg_free(link_read_one(
	    w->peer_fd, ROLE_LEDGER, ROLE_INTAKE, DEADLINE_MS, &e));
	assert_null(link_read_one(
	    w->peer_fd, ROLE_LEDGER, ROLE_INTAKE, DEADLINE_MS, &e));
	assert_non_null(strstr(e.text, "closed"));
	world_free(w);
}

/* Attempts come and go for as long as a role lives. */
static void
test_many_attempts(void **state)
{
	struct world *w = world_usual();
	struct msg link, ping = {.type = MSG_PING}, *pong;
	char attempt[29];
	int fds[2], i;

	(void)state;
	for (i = 0; i < 3 * ROLE_PEERS_MAX; i++) {
		(void)snprintf(attempt, sizeof(attempt), "att_%024d", i);
		assert_int_equal(
		    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
		link = (struct msg){.type = MSG_LINK};
		link.link.role = ROLE_MCPD;
		link.link.generation = 1;
		link.link.attempt = attempt;
		link.link.end = fds[1];
		tell(w, &link);
		(void)close(fds[0]);
		ping.request = (uint64_t)i + 1;
		ping.ping.nonce = i;
		tell(w, &ping);
		pong = await(w, MSG_PONG);
		assert_int_equal(i, pong->pong.nonce);
		msg_free(pong);
	}
	world_free(w);
}

/* A message that the table permits and this role does not handle. */
static void
test_unhandled_message(void **state)
{
	struct world *w = world_usual();
	struct msg m = {.type = MSG_PONG, .request = 99};

	(void)state;
	give_link(w);
	greet(w, build_id);
	tell_peer(w, &m);
	await_text(w, MSG_ACCUSE, "PONG");
	world_free(w);
}

static void
test_link_not_foreseen(void **state)
{
	struct world *w = world_usual();
	struct msg m = {.type = MSG_LINK};
	int fds[2];

	(void)state;
	msg_free(await(w, MSG_READY));
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	m.link.role = ROLE_OUTBOX;
	m.link.generation = 1;
	m.link.end = fds[1];
	tell(w, &m);
	assert_int_equal(EXIT_PEER, await_exit(w));
	await_text(w, MSG_LOG, "LINK");
	(void)close(fds[0]);
	world_free(w);
}

/* The last line of a dying role arrives. */
static void
test_fatal_is_heard(void **state)
{
	struct world *w = world_usual();

	(void)state;
	give_link(w);
	greet(w, build_id);
	say_waits(w, 13);
	await_text(w, MSG_LOG, "thirteen");
	assert_int_equal(EXIT_CRASH, await_exit(w));
	world_free(w);
}

static void
test_stop(void **state)
{
	struct world *w = world_usual();
	struct msg m = {.type = MSG_STOP};

	(void)state;
	msg_free(await(w, MSG_READY));
	m.stop.bound_ms = 1000;
	tell(w, &m);
	assert_int_equal(EXIT_OK, await_exit(w));
	world_free(w);
}

static void
test_supervisor_gone(void **state)
{
	struct world *w = world_usual();

	(void)state;
	msg_free(await(w, MSG_READY));
	(void)close(w->fd);
	w->fd = -1;
	assert_int_equal(EXIT_OK, await_exit(w));
	world_free(w);
}

/* In between: a parent of the role that only waits to be killed. */
static _Noreturn void
be_the_parent(int fd)
{
	pid_t pid = fork();

	if (pid == 0)
		be_the_role(fd);
	(void)close(fd);
	for (;;)
		(void)pause();
}

/* Though its link stays open, which here is not its parent's. */
static void
test_parent_killed(void **state)
{
	struct msg setup = setup_message();
	struct world *w;
	struct error e;
	int fds[2];
	pid_t pid;

	(void)state;
	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = fork();
	assert_int_not_equal(-1, pid);
	if (pid == 0) {
		(void)close(fds[0]);
		be_the_parent(fds[1]);
	}
	(void)close(fds[1]);
	w = world_around(fds[0], pid);
	setup.setup.state_dir = "/";
	setup.setup.supervisor_pid = w->child;
	tell(w, &setup);
	msg_free(await(w, MSG_READY));
	assert_int_equal(0, kill(w->child, SIGKILL));
	assert_null(link_read_one(
	    w->fd, ROLE_SUPERVISOR, ROLE_INTAKE, DEADLINE_MS, &e));
	assert_non_null(strstr(e.text, "closed"));
	world_free(w);
}

struct wrong_setup {
	void (*spoil)(struct msg *m);
	int code;
	const char *text; /* of the log; NULL: there is no log yet */
};

static void
spoil_protocol(struct msg *m)
{
	m->setup.protocol++;
}

static void
spoil_role(struct msg *m)
{
	m->setup.role = ROLE_LEDGER;
}

static void
spoil_parent(struct msg *m)
{
	m->setup.supervisor_pid = 1;
}

static void
spoil_state_dir(struct msg *m)
{
	m->setup.state_dir = "/nonexistent/state";
}

static void
spoil_uid(struct msg *m)
{
	m->setup.uid = 0;
}

static void
test_wrong_setup(void **state)
{
	static const struct wrong_setup wrong[] = {
	    {spoil_protocol, EXIT_CONFIG, NULL},
	    {spoil_role, EXIT_CONFIG, NULL},
	    {spoil_parent, EXIT_OK, NULL},
	    {spoil_state_dir, EXIT_WALLS, "/nonexistent/state"},
	    {spoil_uid, EXIT_WALLS, "setresuid"},
	};
	struct world *w;
	struct msg setup;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wrong[i].spoil == spoil_uid && geteuid() == 0)
			continue; /* root may become what it is told */
		setup = setup_message();
		wrong[i].spoil(&setup);
		w = world_new(&setup);
		assert_int_equal(wrong[i].code, await_exit(w));
		if (wrong[i].text != NULL)
			await_text(w, MSG_LOG, wrong[i].text);
		world_free(w);
	}
}

static void
test_prepare_fails(void **state)
{
	struct world *w;

	(void)state;
	world_row.prepare = prepare_fails;
	w = world_usual();
	assert_int_equal(EXIT_CONFIG, await_exit(w));
	await_text(w, MSG_LOG, "/nowhere");
	world_free(w);
	world_row.prepare = prepare_usual;
}

/* Started from a shell: descriptor 3 is a file, or nothing. */
static void
test_started_by_hand(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_int_not_equal(-1, pid);
	if (pid == 0) {
		(void)dup2(open("/dev/null", O_RDWR), ROLE_LINK_FD);
		(void)dup2(ROLE_LINK_FD, STDERR_FILENO);
		be_the_role(ROLE_LINK_FD);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFEXITED(status));
	assert_int_equal(EXIT_USAGE, WEXITSTATUS(status));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start),
	    cmocka_unit_test(test_ping),
	    cmocka_unit_test(test_signals),
	    cmocka_unit_test(test_config),
	    cmocka_unit_test(test_config_out_of_place),
	    cmocka_unit_test(test_link),
	    cmocka_unit_test(test_link_of_another_build),
	    cmocka_unit_test(test_many_attempts),
	    cmocka_unit_test(test_unhandled_message),
	    cmocka_unit_test(test_link_not_foreseen),
	    cmocka_unit_test(test_fatal_is_heard),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_supervisor_gone),
	    cmocka_unit_test(test_parent_killed),
	    cmocka_unit_test(test_wrong_setup),
	    cmocka_unit_test(test_prepare_fails),
	    cmocka_unit_test(test_started_by_hand),
	};

	if (sandbox_landlock_abi() < 2) {
		(void)printf("role: no Landlock of ABI 2 in this kernel\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
