/* What attempt_house.h says; its far ends are in attempt_ends.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/kernel.h"
#include "supervisor/settings.h"
#include "tests/unit/attempt_ends.h"

/* ---- the worker --------------------------------------------------------- */

/* The socket is the one argument of the server that is declared. */
static int
connect_bridge(const char *declaration)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	json_t *all = json_load_file(declaration, 0, NULL), *args;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	args = json_object_get(
	    json_object_get(json_object_get(all, "mcpServers"), "basecamp"),
	    "args");
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s",
	    json_string_value(json_array_get(args, 0)));
	if (fd == -1 || connect(fd, (struct sockaddr *)&un, sizeof(un)) == -1)
		_exit(90);
	return fd;
}

/* In a process of its own: say hello, and end at EOF. Back when it is there. */
static void
bridge_child(const char *declaration, int nth, bool waits)
{
	char text[16], byte;
	int fd, there[2];
	pid_t pid;

	if (pipe(there) == -1)
		_exit(93);
	pid = fork();
	if (pid == 0) {
		fd = connect_bridge(declaration);
		(void)snprintf(text, sizeof(text), "%d", nth);
		if (write(fd, text, strlen(text)) == -1)
			_exit(91);
		(void)close(there[0]);
		(void)close(there[1]);
		while (read(fd, &byte, 1) > 0)
			continue;
		_exit(0);
	}
	(void)close(there[1]);
	(void)!read(there[0], &byte, 1);
	(void)close(there[0]);
	if (waits)
		(void)waitpid(pid, NULL, 0);
}

static _Noreturn void
be_worker(int argc, char *argv[])
{
	const char *mode = getenv("MODE"), *declaration = NULL;
	char byte;
	int i;

	for (i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--mcp-config") == 0)
			declaration = argv[i + 1];
	}
	if (strcmp(mode, "deaf") == 0)
		(void)signal(SIGTERM, SIG_IGN);
	if (strcmp(mode, "bridge") == 0)
		bridge_child(declaration, 0, false);
	for (i = 0; strcmp(mode, "bridges") == 0 && i < 6; i++)
		bridge_child(declaration, i, true);
	if (strcmp(mode, "orphan") == 0 && fork() == 0)
		for (;;)
			(void)pause();
	if (write(STDOUT_FILENO, "up", 2) != 2)
		_exit(92);
	if (strcmp(mode, "orphan") == 0)
		_exit(5);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	for (; strcmp(mode, "deaf") == 0;)
		(void)pause();
	_exit(3);
}

/* ---- the house ---------------------------------------------------------- */

struct house house = {.stream = -1};

static char *
below(const char *name)
{
	char *path;

	(void)xasprintf(&path, "%s/%s", house.top, name);
	return path;
}

static char *
dir_make(const char *name, mode_t mode)
{
	char *path = below(name);

	if (mkdir(path, 0700) == -1 || chmod(path, mode) == -1)
		fail_msg("%s: %s", path, strerror(errno));
	return path;
}

/* This program, where the worker's account can run it. */
static void
agent_make(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	char bytes[65536];
	ssize_t n;

	assert_true(from != -1 && to != -1);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	(void)close(from);
	(void)close(to);
	assert_int_equal(chmod(path, 0755), 0);
}

static void
account_find(struct account *a)
{
	const struct passwd *pw =
	    geteuid() == 0 ? getpwnam("nobody") : getpwuid(geteuid());
	static gid_t group;

	assert_non_null(pw);
	group = pw->pw_gid;
	*a = (struct account){.uid = pw->pw_uid,
	    .gid = pw->pw_gid,
	    .name = xstrdup(pw->pw_name),
	    .home = below("home"),
	    .shell = xstrdup("/bin/sh"),
	    .groups = &group,
	    .group_count = 1};
}

void
house_settings_make(const char *mode, const char *program)
{
	static char profile[] = "demo";
	const struct options o = {.profile = profile, .insecure = true};
	struct settings *s;
	struct error e;
	char *text;
	int len = xasprintf(&text,
	    "{\"version\":1,\"profile\":\"demo\",\"account_id\":\"1\","
	    "\"agent\":{\"person_id\":2,\"kind\":\"agent\"},"
	    "\"trust\":{\"mode\":\"operator\",\"operator_id\":3},"
	    "\"projects\":{\"%d\":{\"path\":\"%s/work\"}},"
	    "\"worker\":{\"command\":[\"%s/%s\"],"
	    "\"env\":{\"MODE\":\"%s\",\"PIN\":\"topsecret\"}}}",
	    PROJECT, house.top, house.top, program, mode);

	s = settings_parse(
	    "f", text, (size_t)len, &house.sv.paths, &o, 12345, &e);
	if (s == NULL)
		fail_msg("%s", e.text);
	free(text);
	settings_free(house.sv.settings);
	house.sv.settings = s;
}

static void
on_child(evutil_socket_t fd, short what, void *arg)
{
	siginfo_t info;
	pid_t pids[64];
	int i, count = kernel_children(pids, 64);

	(void)fd;
	(void)what;
	(void)arg;
	for (i = 0; i < count; i++) {
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)pids[i], &info,
			WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid != 0 && !attempt_reaped(&house.sv, &info))
			(void)waitid(
			    P_PID, (id_t)pids[i], &info, WEXITED | WNOHANG);
	}
}

static struct event *child_event;

int
house_make(void **state)
{
	static char bridge[] = "/bin/true";
	char base[4096], *agent;
	struct error e;

	(void)state;
	memset(&house, 0, sizeof(house));
	house.stream = -1;
	memset(&attempts, 0, sizeof(attempts));
	(void)snprintf(
	    house.top, sizeof(house.top), "/tmp/test_attempts.XXXXXX");
	if (mkdtemp(house.top) == NULL || chmod(house.top, 0755) == -1)
		return -1;
	free(dir_make("conf", 0755));
	free(dir_make("run", 0755));
	free(dir_make("work", 0777));
	free(dir_make("home", 0777));
	free(dir_make("bin", 0755));
	house.sv.paths.config_dir = dir_make("conf/demo", 0755);
	house.sv.paths.state_root = dir_make("state", 0755);
	house.sv.paths.runtime_dir = dir_make("run/demo", 0755);
	house.sv.paths.cache_dir = dir_make("cache", 0755);
	house.sv.state_dir = below("state/1-2");
	agent = below("bin/agent");
	agent_make(agent);
	free(agent);
	account_find(&house.sv.worker_account);
	(void)setenv("HOME", house.sv.worker_account.home, 1);
	house.sv.is_root = geteuid() == 0;
	house.sv.options.insecure = true;
	house.sv.bridge_path = bridge;
	house.sv.generation = 4;
	(void)snprintf(house.sv.run_id, sizeof(house.sv.run_id), "%s", RUN);
	assert_int_equal(identity_boot_id(house.sv.boot_id, &e), 0);
	if (cgroup_base(base, sizeof(base), &e) == 0 && base[0] != '\0') {
		(void)xasprintf(&house.sv.cgroup_base, "%s/test_attempts-%d",
		    base, (int)getpid());
		if (cgroup_make(house.sv.cgroup_base, &e) == -1)
			fail_msg("%s", e.text);
	}
	house.sv.base = event_base_new();
	LIST_INIT(&house.sv.attempts);
	child_event = evsignal_new(house.sv.base, SIGCHLD, on_child, NULL);
	(void)event_add(child_event, NULL);
	house_settings_make("plain", "bin/agent");
	house_links_make();
	if (attempts_init(&house.sv, &e) == -1)
		fail_msg("%s", e.text);
	return 0;
}

bool
house_no_children(const void *arg)
{
	pid_t pids[4];

	(void)arg;
	return kernel_children(pids, 4) <= 0;
}

int
house_remove(void **state)
{
	struct error e;
	pid_t pid;

	(void)state;
	house_run_until(house_no_children, NULL, "the end of all children");
	assert_true(LIST_EMPTY(&house.sv.attempts));
	assert_true(LIST_EMPTY(&attempts.recoveries));
	if (house.stream != -1)
		(void)close(house.stream);
	house.stream = -1;
	house_links_free();
	event_free(child_event);
	event_base_free(house.sv.base);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", house.top, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	sessions_close(attempts.sessions);
	redactor_free(attempts.redactor);
	past_free(&attempts.past);
	settings_free(house.sv.settings);
	free(house.sv.paths.config_dir);
	free(house.sv.paths.state_root);
	free(house.sv.paths.runtime_dir);
	free(house.sv.paths.cache_dir);
	free(house.sv.state_dir);
	if (house.sv.cgroup_base != NULL &&
	    cgroup_remove(house.sv.cgroup_base, &e) == -1)
		fail_msg("%s", e.text);
	free(house.sv.cgroup_base);
	free(house.sv.worker_account.name);
	free(house.sv.worker_account.home);
	free(house.sv.worker_account.shell);
	return 0;
}

/* ---- steps that many tests take ----------------------------------------- */

void
house_prepare(void)
{
	struct answer a;

	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	assert_int_equal(house.mcpd_spawned, 1);
	assert_false(a.is_there); /* not before it is ready */
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&a);
	assert_int_equal(a.type, MSG_DONE);
}

struct msg_worker_spawned
house_start_worker(void)
{
	struct answer a;
	char text[2];
	struct pollfd pfd = {.events = POLLIN};

	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	if (a.type != MSG_WORKER_SPAWNED)
		fail_msg("%s: %s", a.word, a.text);
	pfd.fd = a.worker.output;
	assert_int_equal(poll(&pfd, 1, DEADLINE_MS), 1);
	assert_int_equal(read(a.worker.output, text, 2), 2);
	assert_memory_equal(text, "up", 2);
	return a.worker;
}

void
house_worker_forget(struct msg_worker_spawned *w)
{
	(void)close(w->pidfd);
	if (w->input != -1)
		(void)close(w->input);
	(void)close(w->output);
	(void)close(w->errors);
}

bool
house_drain_began(const void *arg)
{
	return house.mcpd_drained > *(const int *)arg;
}

/* End it: nothing is answered before its mcpd has drained. */
void
house_end_and_assert(const char *fate)
{
	int before = house.mcpd_drained;
	struct answer a;

	house_ask_end(&a, ATTEMPT, 5000);
	house_run_until(house_drain_began, &before, "the drain of its mcpd");
	house_settle();
	assert_false(a.is_there);
	house_mcpd_ends();
	house_await(&a);
	assert_int_equal(a.type, MSG_TREE_IS);
	assert_string_equal(a.word, fate);
	assert_null(attempt_find(&house.sv, ATTEMPT));
}

void
house_assert_refused(const char *attempt)
{
	struct answer a;

	house_ask_mcpd(&a, attempt);
	house_await(&a);
	assert_int_equal(a.type, MSG_FAILED);
	assert_string_equal(a.word, "refused");
}

static void
quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

void
house_begin(int argc, char *argv[])
{
	const char *slash = strrchr(argv[0], '/');

	if (strcmp(slash == NULL ? argv[0] : slash + 1, "agent") == 0)
		be_worker(argc, argv);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (getenv("TEST_LOG") == NULL)
		log_set_sink(quiet);
}
