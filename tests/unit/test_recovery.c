/*
 * Attempts of earlier runs: what proves them gone, what is ended, and what is
 * held because it cannot be proved (design 5.1, dispatch.md 9 and traps 45-48).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "tests/unit/attempt_house.h"

/* ---- attempts of earlier runs ------------------------------------------- */

static void
assert_fate(const char *fate, const char *says)
{
	struct answer a;

	house_ask_end(&a, EARLIER, 1000);
	house_await(&a);
	assert_int_equal(a.type, MSG_TREE_IS);
	assert_string_equal(a.word, fate);
	if (strstr(a.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", a.text, says);
	house_assert_refused(EARLIER);
}

static void
earlier(const char *run_id, const char *boot_id, pid_t pid)
{
	struct identity who;
	struct error e;

	house.known = (struct msg_identity_is){.found = true,
	    .state = "running",
	    .pid = pid,
	    .pgid = pid,
	    .boot_id = boot_id,
	    .run_id = run_id,
	    .containment = ""};
	if (pid > 0 && identity_read(pid, &who, &e) == 0)
		house.known.started_ticks = who.started_ticks;
}

#define ANOTHER_RUN "22222222222222222222222222222222"
#define ANOTHER_BOOT "00000000-0000-0000-0000-000000000000"

static void
test_unknown_to_the_ledger(void **state)
{
	(void)state;
	assert_fate("never_forked", "");
}

static void
test_of_this_run(void **state)
{
	(void)state;
	earlier(RUN, house.sv.boot_id, 0);
	assert_fate("never_forked", "");
}

static void
test_ended(void **state)
{
	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, getpid());
	house.known.state = "ended";
	assert_fate("gone", "");
}

static void
test_never_recorded(void **state)
{
	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, 0);
	assert_fate("held", "never recorded");
	assert_fate("held", "never recorded"); /* every time it is asked */
}

static pid_t
stranger_make(bool as_worker)
{
	int pair[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		(void)setsid();
		(void)signal(SIGCHLD, SIG_DFL);
		if (as_worker && house.sv.is_root &&
		    setresuid(house.sv.worker_account.uid,
			house.sv.worker_account.uid,
			house.sv.worker_account.uid) == -1)
			_exit(1);
		/* Else it would stay root's in /proc. */
		(void)prctl(PR_SET_DUMPABLE, 1);
		(void)!write(pair[1], "x", 1);
		for (;;)
			(void)pause();
	}
	(void)close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	(void)close(pair[0]);
	return pid;
}

/* Of then: who has its number now is somebody else. */
static void
test_of_another_boot(void **state)
{
	pid_t pid = stranger_make(true);

	(void)state;
	earlier(ANOTHER_RUN, ANOTHER_BOOT, pid);
	assert_fate("gone", "");
	assert_int_equal(identity_group_members(pid), 1);
	(void)kill(pid, SIGKILL);
}

static void
test_recorded(void **state)
{
	pid_t pid = stranger_make(true);

	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	assert_fate("gone", "");
	assert_int_equal(identity_group_members(pid), 0);
}

/* Was it sent a signal that it blocks? */
static bool
is_signalled(const void *pid)
{
	char path[64], line[256];
	unsigned long long pending = 0;
	FILE *status;

	(void)snprintf(
	    path, sizeof(path), "/proc/%d/status", (int)*(const pid_t *)pid);
	status = fopen(path, "re");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status) != NULL)
		(void)sscanf(line, "ShdPnd: %llx", &pending);
	(void)fclose(status);
	return pending != 0;
}

/* Of an earlier run and deaf: END_TREE has asked it, with a minute to go. */
static pid_t
deaf_is_asked(struct answer *a)
{
	sigset_t deaf, before;
	pid_t pid;

	(void)sigemptyset(&deaf);
	(void)sigaddset(&deaf, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &deaf, &before), 0);
	pid = stranger_make(true);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house_ask_end(a, EARLIER, 60000);
	house_run_until(is_signalled, &pid, "SIGTERM");
	return pid;
}

/* Asked again at a stop, it has less time: deaf, it is killed at once. */
static void
test_recorded_in_a_hurry(void **state)
{
	struct answer first, second;
	pid_t pid = deaf_is_asked(&first);

	(void)state;
	house_ask_end(&second, EARLIER, 0);
	house_await(&first);
	assert_string_equal(first.word, "cancelled");
	house_await(&second);
	assert_string_equal(second.word, "gone");
	assert_int_equal(identity_group_members(pid), 0);
}

/* No dispatcher is there to ask again: the stop itself ends it, and waits. */
static void
assert_stopped_by(void (*act)(struct supervisor *sv))
{
	struct answer a;
	pid_t pid = deaf_is_asked(&a);

	assert_int_equal(attempts_left(&house.sv), 1);
	act(&house.sv);
	assert_int_equal(attempts_left(&house.sv), 1); /* until it is proved */
	house_await(&a);
	assert_string_equal(a.word, "gone");
	assert_int_equal(identity_group_members(pid), 0);
	assert_int_equal(attempts_left(&house.sv), 0);
}

static void
test_recorded_hurried_by_a_stop(void **state)
{
	(void)state;
	assert_stopped_by(attempts_end);
}

static void
test_recorded_killed_by_a_stop(void **state)
{
	(void)state;
	assert_stopped_by(attempts_kill);
}

static void
test_recorded_is_another(void **state)
{
	pid_t pid = stranger_make(true);

	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house.known.started_ticks--;
	assert_fate("held", "");
	assert_int_equal(identity_group_members(pid), 1);
	(void)kill(pid, SIGKILL);
}

/* Whatever the record says: no process of anybody else is ended. */
static void
test_recorded_of_another_user(void **state)
{
	pid_t pid;

	(void)state;
	if (!house.sv.is_root)
		skip();
	pid = stranger_make(false);
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	assert_fate("held", "not of the workers' user");
	assert_int_equal(identity_group_members(pid), 1);
	(void)kill(pid, SIGKILL);
}

static void
test_recorded_own_group(void **state)
{
	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, getpid());
	house.known.pgid = getpgrp();
	assert_fate("held", "none that may be signalled");
}

/*
 * The dispatcher names its own worker, and a group that is another's: neither
 * is a group that is there signalled, nor does one that is not prove anything.
 */
static void
test_recorded_group_of_another(void **state)
{
	pid_t pid = stranger_make(true), other = stranger_make(false);

	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house.known.pgid = other;
	assert_fate("held", "none that may be signalled");
	assert_int_equal(identity_group_members(pid), 1);
	assert_int_equal(identity_group_members(other), 1);
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_fate("held", "none that may be signalled");
}

/* It has led its group and is gone; what it left there is not. */
static pid_t
orphan_make(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)setsid();
		if (fork() != 0)
			_exit(0);
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static const char *
finds(void)
{
	const char *found = recovery_finds(&house.sv, EARLIER, &house.known);

	return found == NULL ? "nothing" : found;
}

/* A person would be told to end strangers, or nothing of what does run. */
static void
test_found_in_its_own_group(void **state)
{
	pid_t pid = orphan_make(), other = stranger_make(false);

	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house.known.started_ticks = 1;
	house.known.pgid = INT32_MAX; /* above any pid */
	assert_string_equal(
	    "its process group holds processes; end them first", finds());
	(void)kill(-pid, SIGKILL);
	(void)waitpid(-pid, NULL, 0);
	house.known.pgid = other;
	assert_string_equal("nothing", finds());
	(void)kill(other, SIGKILL);
}

/* A new cgroup and one process in it. */
static pid_t
stranger_in(const char *cgroup)
{
	struct error e;
	bool outside;
	int fd, pidfd;
	pid_t pid;

	assert_int_equal(cgroup_make(cgroup, &e), 0);
	fd = open(cgroup, O_RDONLY | O_DIRECTORY);
	pid = spawn_fork(fd, &pidfd, &outside);
	if (pid == 0)
		for (;;)
			(void)pause();
	(void)close(fd);
	(void)close(pidfd);
	return pid;
}

static void
test_recorded_cgroup(void **state)
{
	struct error e;
	char *cgroup, *text;

	(void)state;
	if (house.sv.cgroup_base == NULL)
		skip();
	(void)xasprintf(&cgroup, "%s/%s", house.sv.cgroup_base, EARLIER);
	(void)xasprintf(&text, "cgroup:%s", cgroup);
	(void)stranger_in(cgroup);
	/* Its process was never recorded: what it was in proves it gone. */
	earlier(ANOTHER_RUN, house.sv.boot_id, 0);
	house.known.containment = text;
	assert_fate("gone", "");
	assert_int_equal(cgroup_populated(cgroup, &e), -1);
	assert_int_equal(e.code, ENOENT); /* removed, too */
	free(text);
	free(cgroup);
}

static char *
missing_in(const char *base)
{
	char *text;

	(void)xasprintf(&text, "cgroup:%s/%s", base, EARLIER);
	return text;
}

/*
 * What cannot be seen may hold processes, be there one that is known or none:
 * nothing is signalled, and nothing settled.
 */
static void
test_recorded_cgroup_elsewhere(void **state)
{
	char *text = missing_in("/sys/fs/cgroup/x/connectd-1-2-3");
	pid_t pid = stranger_make(true);

	(void)state;
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house.known.containment = text;
	assert_fate("held", "cannot be seen from here");
	assert_int_equal(identity_group_members(pid), 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_fate("held", "cannot be seen from here");
	free(text);
}

/* Who was recorded and runs, runs, whatever a cgroup says: it is ended. */
static void
test_recorded_outside_its_cgroup(void **state)
{
	char *text;
	pid_t pid;

	(void)state;
	if (house.sv.cgroup_base == NULL)
		skip();
	pid = stranger_make(true);
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	house.known.containment = text = missing_in(house.sv.cgroup_base);
	assert_fate("gone", "");
	assert_int_equal(identity_group_members(pid), 0);
	free(text);
}

/* Missing in a base of the same name, as the one ABOVE it says. */
static void
assert_missing(const char *above, size_t len, const char *fate, const char *why)
{
	char *text, *base;

	(void)xasprintf(&base, "%.*s/session-3.scope%s", (int)len, above,
	    strrchr(house.sv.cgroup_base, '/'));
	house.known.containment = text = missing_in(base);
	assert_fate(fate, why);
	free(text);
	free(base);
}

/* In another cgroup of ours: a login may be another session's. */
static void
test_recorded_cgroup_of_our_view(void **state)
{
	const char *base = house.sv.cgroup_base;

	(void)state;
	if (base == NULL)
		skip();
	earlier(ANOTHER_RUN, house.sv.boot_id, 0);
	/* Where it is mounted elsewhere, this is a path of nothing. */
	assert_missing("/elsewhere", 10, "held", "cannot be seen from here");
	assert_missing(base, (size_t)(strrchr(base, '/') - base), "gone", "");
}

/* It left its cgroup, and something in it: the one does not hide the other. */
static void
test_recorded_beside_its_cgroup(void **state)
{
	struct error e;
	char *text, *cgroup;
	pid_t pid;

	(void)state;
	if (house.sv.cgroup_base == NULL)
		skip();
	(void)xasprintf(&cgroup, "%s/%s", house.sv.cgroup_base, EARLIER);
	pid = stranger_make(true);
	(void)stranger_in(cgroup);
	earlier(ANOTHER_RUN, house.sv.boot_id, pid);
	(void)xasprintf(&text, "cgroup:%s", cgroup);
	house.known.containment = text;
	assert_fate("gone", "");
	assert_int_equal(identity_group_members(pid), 0);
	assert_int_equal(cgroup_populated(cgroup, &e), -1);
	assert_int_equal(e.code, ENOENT);
	free(text);
	free(cgroup);
}

/* Missing in our own base: gone. Not ours by its name: proves nothing. */
static void
test_recorded_cgroup_missing(void **state)
{
	char *text;

	(void)state;
	if (house.sv.cgroup_base == NULL)
		skip();
	earlier(ANOTHER_RUN, house.sv.boot_id, 0);
	(void)xasprintf(&text, "cgroup:%s/%s-x", house.sv.cgroup_base, EARLIER);
	house.known.containment = text;
	assert_fate("held", "never recorded");
	free(text);
	(void)xasprintf(&text, "cgroup:/no/such/place/%s", EARLIER);
	house.known.containment = text;
	assert_fate("held", "cannot be seen from here");
	free(text);
	(void)xasprintf(&text, "cgroup:%s/%s", house.sv.cgroup_base, EARLIER);
	house.known.containment = text;
	assert_fate("gone", "");
	free(text);
}

static bool
has_exited(const void *arg)
{
	(void)arg;
	return house.exits > 0;
}

/* Of this run, and no time is left for anything else. */
static void
test_killed_at_once(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	house_settings_make("deaf", "bin/agent");
	house_prepare();
	w = house_start_worker();
	attempts_kill(&house.sv);
	house_run_until(has_exited, NULL, "its end");
	assert_int_equal(house.exit_code, SIGKILL);
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

int
main(int argc, char *argv[])
{
#define IN_HOUSE(test) \
	cmocka_unit_test_setup_teardown(test, house_make, house_remove)
	const struct CMUnitTest tests[] = {
	    IN_HOUSE(test_unknown_to_the_ledger),
	    IN_HOUSE(test_of_this_run),
	    IN_HOUSE(test_of_another_boot),
	    IN_HOUSE(test_ended),
	    IN_HOUSE(test_never_recorded),
	    IN_HOUSE(test_recorded),
	    IN_HOUSE(test_recorded_in_a_hurry),
	    IN_HOUSE(test_recorded_hurried_by_a_stop),
	    IN_HOUSE(test_recorded_killed_by_a_stop),
	    IN_HOUSE(test_recorded_is_another),
	    IN_HOUSE(test_recorded_of_another_user),
	    IN_HOUSE(test_recorded_own_group),
	    IN_HOUSE(test_recorded_group_of_another),
	    IN_HOUSE(test_found_in_its_own_group),
	    IN_HOUSE(test_recorded_cgroup),
	    IN_HOUSE(test_recorded_cgroup_missing),
	    IN_HOUSE(test_recorded_cgroup_elsewhere),
	    IN_HOUSE(test_recorded_outside_its_cgroup),
	    IN_HOUSE(test_recorded_cgroup_of_our_view),
	    IN_HOUSE(test_recorded_beside_its_cgroup),
	    IN_HOUSE(test_killed_at_once),
	};

	house_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
