/*
 * Times of a whole connector, seen from where its service manager stands: it
 * says READY=1 and STATUS=... to the socket that NOTIFY_SOCKET names.
 *
 *	stopwatch ready COUNT -- CONNECTD run ...
 *	stopwatch restart COUNT -- CONNECTD run ...
 *	stopwatch gone COUNT -- CONNECTD run ...
 *	stopwatch command COUNT -- PROGRAM ...
 *
 * ready: from the fork to READY=1. restart: in each life each role is killed
 * once, which is after a healthy life by the supervisor's count; from the kill
 * to the status that says all are ready. gone: from the supervisor's kill to
 * the end of its last role. command: from the fork to the exit. Prints
 * {"what":...,"us":[...]} a line.
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/bench/samples.h"

#define SAID_MAX 2048
#define PATIENCE_MS 20000
/* So long without a word: it has settled. */
#define SILENCE_MS 150
#define ROLES_MAX 8

static int said_fd;

/* ---- processes ---------------------------------------------------------- */

/* It ends with us, however we end: a bench leaves nothing running. */
static _Noreturn void
be_the_program(char *const argv[])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null != -1 && dup2(null, STDIN_FILENO) != -1 &&
	    dup2(null, STDOUT_FILENO) != -1)
		(void)execv(argv[0], argv);
	_exit(127);
}

static pid_t
program_start(char *const argv[])
{
	pid_t pid = fork();

	if (pid == -1)
		fatal("fork");
	if (pid == 0)
		be_the_program(argv);
	return pid;
}

static int
program_end(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) == -1)
		fatal("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The name without which a number is not to be signalled. */
static void
program_name(pid_t pid, char *out, size_t size)
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	out[0] = '\0';
	file = fopen(path, "re");
	if (file == NULL)
		return;
	if (fgets(out, (int)size, file) != NULL)
		out[strcspn(out, "\n")] = '\0';
	(void)fclose(file);
}

static size_t
children_of(pid_t pid, pid_t out[ROLES_MAX])
{
	char path[64];
	size_t count = 0;
	FILE *file;
	int child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
	    (int)pid, (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		fatal("%s", path);
	while (count < ROLES_MAX && fscanf(file, "%d", &child) == 1)
		out[count++] = child;
	(void)fclose(file);
	return count;
}

static int
pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0U);

	if (fd == -1)
		fatal("pidfd_open");
	return fd;
}

static void
pidfd_kill(int fd)
{
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0U) == -1)
		fatal("pidfd_send_signal");
}

/* ---- what the connector says -------------------------------------------- */

static void
said_open(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	char name[sizeof(sun.sun_path)];
	socklen_t len;

	(void)snprintf(name, sizeof(name), "@connectd-bench-%d", (int)getpid());
	len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	memcpy(sun.sun_path, name, strlen(name));
	sun.sun_path[0] = '\0';
	said_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (said_fd == -1 ||
	    bind(said_fd, (const struct sockaddr *)&sun, len) == -1)
		fatal("%s", name);
	(void)setenv("NOTIFY_SOCKET", name, 1);
}

/* False when nothing was said for so long. */
static bool
said_next(char text[SAID_MAX], int wait_ms)
{
	struct pollfd pfd = {.fd = said_fd, .events = POLLIN};
	ssize_t n;

	if (poll(&pfd, 1, wait_ms) != 1)
		return false;
	n = recv(said_fd, text, SAID_MAX - 1, 0);
	if (n == -1)
		fatal("notify socket");
	text[n] = '\0';
	return true;
}

static bool
is_ready_word(const char *text)
{
	return strncmp(text, "READY=1", 7) == 0;
}

/* Roles that are not ready are named behind a semicolon. */
static bool
is_all_ready(const char *text)
{
	return strncmp(text, "STATUS=running", 14) == 0 &&
	    strchr(text, ';') == NULL;
}

static bool
is_one_down(const char *text)
{
	return strncmp(text, "STATUS=running", 14) == 0 &&
	    strchr(text, ';') != NULL;
}

static void
said_await(bool (*is_it)(const char *text), const char *what)
{
	char text[SAID_MAX];

	do {
		if (!said_next(text, PATIENCE_MS))
			fatalx("waited %d ms for %s", PATIENCE_MS, what);
	} while (!is_it(text));
}

static void
said_await_silence(void)
{
	char text[SAID_MAX];

	while (said_next(text, SILENCE_MS))
		continue;
}

/* ---- what is measured --------------------------------------------------- */

static void
print(const char *what, struct samples *s)
{
	size_t i;

	(void)printf("{\"what\":\"%s\",\"us\":[", what);
	for (i = 0; i < s->count; i++)
		(void)printf("%s%.1f", i == 0 ? "" : ",", s->us[i]);
	(void)printf("]}\n");
	samples_clear(s);
}

static pid_t
connector_start(char *const argv[], struct samples *took)
{
	double began = now_us();
	pid_t pid = program_start(argv);

	said_await(is_ready_word, "READY=1");
	if (took != NULL)
		samples_add(took, now_us() - began);
	/* READY=1 does not wait for a role that fails again and again. */
	said_await(is_all_ready, "every role");
	said_await_silence();
	return pid;
}

static void
connector_stop(pid_t pid)
{
	if (kill(pid, SIGTERM) == -1)
		fatal("kill");
	(void)program_end(pid);
	said_await_silence();
}

static void
measure_ready(char *const argv[], int count)
{
	struct samples took = {0};

	while (count-- > 0)
		connector_stop(connector_start(argv, &took));
	print("ready", &took);
}

static const char *const role_names[] = {
    "connectd-ledger", "connectd-intake", "connectd-dispat", "connectd-outbox"};
#define ROLES (sizeof(role_names) / sizeof(role_names[0]))

static void
role_restart(pid_t connector, const char *name, struct samples *took)
{
	pid_t pids[ROLES_MAX];
	size_t i, count = children_of(connector, pids);
	double began;
	char comm[32];
	int fd;

	for (i = 0; i < count; i++) {
		fd = pidfd_of(pids[i]);
		program_name(pids[i], comm, sizeof(comm));
		if (strcmp(comm, name) == 0) {
			began = now_us();
			pidfd_kill(fd);
			said_await(is_one_down, "a role's end");
			said_await(is_all_ready, "its return");
			samples_add(took, now_us() - began);
		}
		(void)close(fd);
	}
}

static void
measure_restart(char *const argv[], int count)
{
	struct samples took[ROLES] = {{0}};
	pid_t connector;
	size_t i;

	while (count-- > 0) {
		connector = connector_start(argv, NULL);
		for (i = 0; i < ROLES; i++) {
			role_restart(connector, role_names[i], &took[i]);
			said_await_silence();
		}
		connector_stop(connector);
	}
	for (i = 0; i < ROLES; i++)
		print(role_names[i], &took[i]);
}

static void
gone_once(pid_t connector, struct samples *took)
{
	struct pollfd pfds[ROLES_MAX];
	pid_t pids[ROLES_MAX];
	size_t i, count = children_of(connector, pids);
	double began;

	for (i = 0; i < count; i++)
		pfds[i] = (struct pollfd){pidfd_of(pids[i]), POLLIN, 0};
	began = now_us();
	if (kill(connector, SIGKILL) == -1)
		fatal("kill");
	for (i = 0; i < count; i++) {
		if (poll(&pfds[i], 1, PATIENCE_MS) != 1)
			fatalx("a role outlives its supervisor");
	}
	samples_add(took, now_us() - began);
	for (i = 0; i < count; i++)
		(void)close(pfds[i].fd);
	(void)program_end(connector);
}

static void
measure_gone(char *const argv[], int count)
{
	struct samples took = {0};

	while (count-- > 0) {
		gone_once(connector_start(argv, NULL), &took);
		said_await_silence();
	}
	print("gone", &took);
}

static void
measure_command(char *const argv[], int count)
{
	struct samples took = {0};
	double began;
	int status;

	while (count-- > 0) {
		began = now_us();
		status = program_end(program_start(argv));
		samples_add(&took, now_us() - began);
		if (status != 0)
			fatalx("%s: %d", argv[0], status);
	}
	print("command", &took);
}

static const struct {
	const char *name;
	void (*measure)(char *const argv[], int count);
} measures[] = {
    {"ready", measure_ready},
    {"restart", measure_restart},
    {"gone", measure_gone},
    {"command", measure_command},
};

int
main(int argc, char **argv)
{
	size_t i;
	long count;

	log_init("stopwatch", LOG_LEVEL_INFO);
	count = argc > 4 ? strtol(argv[2], NULL, 10) : 0;
	for (i = 0; i < sizeof(measures) / sizeof(measures[0]); i++) {
		if (count < 1 || count > 10000 ||
		    strcmp(argv[1], measures[i].name) != 0)
			continue;
		said_open();
		measures[i].measure(argv + 4, (int)count);
		return 0;
	}
	fatalx("usage: stopwatch ready|restart|gone|command COUNT -- "
	       "PROGRAM ...");
}
