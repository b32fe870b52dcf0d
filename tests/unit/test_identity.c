/* Who a process is, what descends from what, and groups and cgroups. */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/identity.h"

#define DEADLINE_MS 10000

/* A child that waits to be killed. */
static pid_t
child_new(void)
{
	pid_t pid = fork();

	assert_int_not_equal(-1, pid);
	if (pid == 0) {
		(void)setpgid(0, 0);
		for (;;)
			(void)pause();
	}
	(void)setpgid(pid, pid);
	return pid;
}

static void
child_reap(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(pid, waitpid(pid, NULL, 0));
}

/* Killed, but still in the table. */
static void
child_make_zombie(pid_t pid)
{
	siginfo_t info;

	(void)kill(pid, SIGKILL);
	assert_int_equal(0, waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
}

static void
test_boot_id(void **state)
{
	char one[BOOT_ID_LEN + 1], other[BOOT_ID_LEN + 1];
	struct error e;

	(void)state;
	assert_int_equal(0, identity_boot_id(one, &e));
	assert_int_equal(0, identity_boot_id(other, &e));
	assert_int_equal(BOOT_ID_LEN, strlen(one));
	assert_string_equal(one, other);
}

static void
test_same_and_gone(void **state)
{
	struct identity id;
	struct error e;
	pid_t pid = child_new();

	(void)state;
	assert_int_equal(0, identity_read(pid, &id, &e));
	assert_int_equal(pid, id.pid);
	assert_int_equal(pid, id.pgid);
	assert_true(id.started_ticks > 0);
	assert_int_equal(IDENTITY_SAME, identity_check(&id));
	child_make_zombie(pid);
	assert_int_equal(IDENTITY_GONE, identity_check(&id));
	assert_int_equal(-1, identity_read(pid, &id, &e));
	assert_int_equal(ESRCH, e.code);
	child_reap(pid);
	id.pid = pid;
	assert_int_equal(IDENTITY_GONE, identity_check(&id));
	assert_int_equal(-1, identity_read(pid, &id, &e));
	assert_int_equal(ESRCH, e.code);
}

/* Another start, another boot, no start: each decides by itself. */
static void
test_stranger(void **state)
{
	struct identity id, other;
	struct error e;

	(void)state;
	assert_int_equal(0, identity_read(getpid(), &id, &e));
	other = id;
	other.started_ticks++;
	assert_int_equal(IDENTITY_GONE, identity_check(&other));
	other = id;
	other.boot_id[0] = other.boot_id[0] == '0' ? '1' : '0';
	assert_int_equal(IDENTITY_GONE, identity_check(&other));
	other = id;
	other.started_ticks = 0;
	assert_int_equal(IDENTITY_UNKNOWN, identity_check(&other));
	other = id;
	other.boot_id[0] = '\0';
	assert_int_equal(IDENTITY_UNKNOWN, identity_check(&other));
	other = id;
	other.pid = 0;
	assert_int_equal(IDENTITY_GONE, identity_check(&other));
}

/* The name is the process's own, and may look like the fields behind it. */
static void
test_hostile_name(void **state)
{
	struct identity before, after;
	struct error e;
	char name[16];

	(void)state;
	assert_int_equal(0, identity_read(getpid(), &before, &e));
	assert_int_equal(0, prctl(PR_GET_NAME, name));
	assert_int_equal(0, prctl(PR_SET_NAME, ") Z 1 1 1 1) ("));
	assert_int_equal(0, identity_read(getpid(), &after, &e));
	assert_int_equal(0, prctl(PR_SET_NAME, name));
	assert_int_equal(before.started_ticks, after.started_ticks);
	assert_int_equal(before.pgid, after.pgid);
}

static void *
sleep_on(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
	return NULL;
}

/* Its first thread ended, so it shows as a zombie; it runs nevertheless. */
static void
test_first_thread_ended(void **state)
{
	struct identity id;
	struct error e;
	char path[64], text[256];
	const char *at = "";
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;
	pid_t pid = fork();
	FILE *file;

	(void)state;
	assert_int_not_equal(-1, pid);
	if (pid == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(0, identity_read(pid, &id, &e));
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (strncmp(at, ") Z", 3) != 0) {
		assert_true(clock_monotonic_ms() < until);
		(void)poll(NULL, 0, 1);
		file = fopen(path, "re");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof(text), file));
		(void)fclose(file);
		at = strrchr(text, ')');
	}
	assert_int_equal(IDENTITY_SAME, identity_check(&id));
	child_reap(pid);
	assert_int_equal(IDENTITY_GONE, identity_check(&id));
}

static void
test_descent(void **state)
{
	pid_t child = child_new();

	(void)state;
	assert_int_equal(getpid(), identity_parent(child));
	assert_int_equal(1, identity_descends(child, getpid()));
	assert_int_equal(1, identity_descends(child, child));
	assert_int_equal(1, identity_descends(getpid(), getppid()));
	assert_int_equal(0, identity_descends(getppid(), child));
	assert_int_equal(0, identity_descends(getpid(), child));
	child_reap(child);
	assert_int_equal(-1, identity_descends(child, getpid()));
	assert_int_equal(0, identity_parent(child));
}

/* N processes, each the parent of the next; the last writes its pid. */
static _Noreturn void
chain(int n, int out)
{
	pid_t pid = getpid();

	while (n-- > 1 && fork() == 0)
		pid = getpid();
	if (n == 0 && write(out, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		(void)pause();
}

/* A chain longer than the bound is no "no". */
static void
test_long_chain(void **state)
{
	static const struct {
		int length, expected;
	} chains[] = {{64, 1}, {65, -1}, {80, -1}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		pid_t first, last;
		int fds[2];

		assert_int_equal(0, pipe2(fds, O_CLOEXEC));
		first = fork();
		assert_int_not_equal(-1, first);
		if (first == 0) {
			(void)setpgid(0, 0);
			chain(chains[i].length, fds[1]);
		}
		assert_int_equal(
		    sizeof(last), read(fds[0], &last, sizeof(last)));
		assert_int_equal(
		    chains[i].expected, identity_descends(last, getpid()));
		assert_int_equal(0, kill(-first, SIGKILL));
		assert_int_equal(first, waitpid(first, NULL, 0));
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
}

static void
test_group(void **state)
{
	pid_t leader = child_new(), member;

	(void)state;
	assert_int_equal(1, identity_group_members(leader));
	member = fork();
	assert_int_not_equal(-1, member);
	if (member == 0) {
		for (;;)
			(void)pause();
	}
	assert_int_equal(0, setpgid(member, leader));
	assert_int_equal(2, identity_group_members(leader));
	/* The leader is a zombie: its group is the member. */
	child_make_zombie(leader);
	assert_int_equal(1, identity_group_members(leader));
	child_make_zombie(member);
	assert_int_equal(0, identity_group_members(leader));
	child_reap(member);
	child_reap(leader);
	assert_int_equal(0, identity_group_members(leader));
	assert_int_equal(-1, identity_group_members(1));
	assert_int_equal(-1, identity_group_members(0));
}

/* ---- cgroups ------------------------------------------------------------- */

static void
enter_cgroup(const char *path, pid_t pid)
{
	char file[PATH_MAX];
	FILE *procs;

	(void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	procs = fopen(file, "we");
	assert_non_null(procs);
	(void)fprintf(procs, "%d\n", (int)pid);
	assert_int_equal(0, fclose(procs));
}

/* Skips itself where there are none to be had. */
static void
cgroup_new(char *out, size_t size)
{
	char base[PATH_MAX / 2];
	struct error e = {0, ""};

	if (cgroup_base(base, sizeof(base), &e) == -1)
		fail_msg("%s", e.text);
	if (base[0] == '\0')
		skip();
	(void)snprintf(out, size, "%s/test-%d", base, (int)getpid());
	if (cgroup_make(out, &e) == -1)
		fail_msg("%s", e.text);
}

static void
test_cgroup(void **state)
{
	char path[PATH_MAX], below[PATH_MAX + 8];
	struct error e = {0, ""};
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;
	pid_t pid;

	(void)state;
	cgroup_new(path, sizeof(path));
	assert_int_equal(-1, cgroup_make(path, &e));
	assert_int_equal(EEXIST, e.code);
	assert_int_equal(0, cgroup_populated(path, &e));
	pid = child_new();
	assert_int_equal(0, cgroup_holds(path, pid));
	enter_cgroup(path, pid);
	assert_int_equal(1, cgroup_populated(path, &e));
	assert_int_equal(1, cgroup_holds(path, pid));
	assert_int_equal(0, cgroup_holds(path, getpid()));

	/* A cgroup that the tree made for itself is part of it. */
	(void)snprintf(below, sizeof(below), "%s/below", path);
	assert_int_equal(0, mkdir(below, 0755));
	enter_cgroup(below, pid);
	assert_int_equal(1, cgroup_populated(path, &e));
	assert_int_equal(1, cgroup_holds(path, pid));
	assert_int_equal(-1, cgroup_remove(path, &e));
	assert_int_equal(EBUSY, e.code);

	assert_int_equal(0, cgroup_kill(path, &e));
	while (cgroup_populated(path, &e) == 1) {
		assert_true(clock_monotonic_ms() < until);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(0, cgroup_populated(path, &e));
	assert_int_equal(pid, waitpid(pid, NULL, 0));
	assert_int_equal(-1, cgroup_holds(path, pid));
	assert_int_equal(0, cgroup_remove(path, &e));
	assert_int_equal(-1, cgroup_populated(path, &e));
	assert_int_equal(ENOENT, e.code);
	assert_int_equal(0, cgroup_remove(path, &e));
}

static void
test_cgroup_limit(void **state)
{
	char path[PATH_MAX];
	struct error e = {0, ""};

	(void)state;
	cgroup_new(path, sizeof(path));
	/* Always there, whatever controllers are. */
	assert_int_equal(0, cgroup_limit(path, "cgroup.max.depth", "3", &e));
	assert_int_equal(-1, cgroup_limit(path, "no.such", "3", &e));
	assert_int_equal(ENOENT, e.code);
	assert_non_null(strstr(e.text, "no.such"));
	assert_int_equal(0, cgroup_remove(path, &e));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_boot_id),
	    cmocka_unit_test(test_same_and_gone),
	    cmocka_unit_test(test_stranger),
	    cmocka_unit_test(test_hostile_name),
	    cmocka_unit_test(test_first_thread_ended),
	    cmocka_unit_test(test_descent),
	    cmocka_unit_test(test_long_chain),
	    cmocka_unit_test(test_group),
	    cmocka_unit_test(test_cgroup),
	    cmocka_unit_test(test_cgroup_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
