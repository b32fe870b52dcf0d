/*
 * Ending process trees with real processes: what is gone is proved, and what
 * cannot be proved is not signalled (design 5.1, dispatch.md 8, traps 43-48).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/spawn.h"
#include "supervisor/tree.h"

#define DEADLINE_MS 10000
#define CONFIRM_MS 5000
#define RELAY_MOST 5000 /* each leaves a zombie, until the test reaps it */

static struct event_base *base;

/* ---- processes ---------------------------------------------------------- */

enum deed {
	POLITE = 1 << 0,       /* the leader goes at SIGTERM */
	WITH_MEMBER = 1 << 1,  /* a deaf process in its group */
	WITH_ESCAPEE = 1 << 2, /* a deaf process in a session of its own */
	LEADER_GOES = 1 << 3, /* the leader ends by itself once all are there */
	WITH_RELAY = 1 << 4   /* one that forks the next and ends, and so on */
};

struct family {
	pid_t leader, other; /* other: the member or the escapee */
	struct identity identity;
	int kin; /* WITH_RELAY: hangs up when none of them is left */
};

static _Noreturn void
be_deaf(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	for (;;)
		(void)pause();
}

static void
on_term(int signal_number)
{
	(void)signal_number;
	_exit(7);
}

/* At any moment one or two of it live, and none of them for long. */
static _Noreturn void
run_relay(void)
{
	int i;

	for (i = 0; i < RELAY_MOST; i++) {
		if (fork() != 0)
			break;
	}
	_exit(0);
}

static pid_t
make_other(unsigned int deeds)
{
	pid_t pid;

	if ((deeds & WITH_RELAY) != 0 && fork() == 0)
		run_relay();
	if ((deeds & (WITH_MEMBER | WITH_ESCAPEE)) == 0)
		return 0;
	pid = fork();
	if (pid != 0)
		return pid;
	if ((deeds & WITH_ESCAPEE) != 0)
		(void)setsid();
	be_deaf();
}

static _Noreturn void
lead(unsigned int deeds, int tell)
{
	pid_t other;

	(void)setsid();
	(void)signal(SIGTERM, (deeds & POLITE) != 0 ? on_term : SIG_IGN);
	other = make_other(deeds);
	if ((deeds & WITH_ESCAPEE) != 0)
		while (getpgid(other) != other)
			continue;
	if (write(tell, &other, sizeof(other)) != sizeof(other))
		_exit(1);
	(void)close(tell);
	if ((deeds & LEADER_GOES) != 0)
		_exit(0);
	for (;;)
		(void)pause();
}

/* All of the family are there, with their signals set, when it returns. */
static struct family
family_make(unsigned int deeds, const char *cgroup)
{
	struct family f = {0};
	struct error e;
	int pair[2], kin[2], cgroup_fd = -1, pidfd;
	bool outside;

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(pipe(kin), 0);
	if (cgroup != NULL) {
		cgroup_fd = open(cgroup, O_RDONLY | O_DIRECTORY);
		assert_true(cgroup_fd != -1);
	}
	f.leader = spawn_fork(cgroup_fd, &pidfd, &outside);
	assert_true(f.leader != -1);
	if (f.leader == 0) {
		(void)close(pair[0]);
		lead(deeds, pair[1]);
	}
	assert_false(outside);
	f.kin = kin[0];
	if ((deeds & WITH_RELAY) == 0)
		(void)close(f.kin);
	(void)close(kin[1]);
	(void)close(pair[1]);
	(void)close(pidfd);
	if (cgroup_fd != -1)
		(void)close(cgroup_fd);
	assert_int_equal(
	    read(pair[0], &f.other, sizeof(f.other)), sizeof(f.other));
	(void)close(pair[0]);
	if (identity_read(f.leader, &f.identity, &e) == -1)
		f.identity.pid = f.leader;
	f.identity.pgid = f.leader;
	return f;
}

/* Wait until its leader is a zombie, and leave it one. */
static void
leader_await(const struct family *f)
{
	siginfo_t info;

	assert_int_equal(
	    waitid(P_PID, (id_t)f->leader, &info, WEXITED | WNOWAIT), 0);
}

static int
leader_reap(const struct family *f)
{
	siginfo_t info = {0};

	assert_int_equal(
	    waitid(P_PID, (id_t)f->leader, &info, WEXITED | WNOHANG), 0);
	assert_int_equal(info.si_pid, f->leader);
	return info.si_status;
}

static bool
lives(pid_t pid)
{
	struct identity now;
	struct error e;

	return identity_read(pid, &now, &e) == 0;
}

static void
kill_and_wait(pid_t pid)
{
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;

	(void)kill(pid, SIGKILL);
	while (lives(pid) && clock_monotonic_ms() < until)
		(void)poll(NULL, 0, 1);
	(void)waitpid(pid, NULL, WNOHANG);
}

/* ---- endings ------------------------------------------------------------ */

struct ending {
	bool is_done;
	enum tree_fate fate;
	char text[256];
};

static void
on_done(struct tree *tree, enum tree_fate fate, const char *text, void *arg)
{
	struct ending *end = arg;

	(void)tree;
	assert_false(end->is_done);
	end->is_done = true;
	end->fate = fate;
	(void)snprintf(end->text, sizeof(end->text), "%s", text);
}

static void
run_until_done(const struct ending *end)
{
	int64_t until = clock_monotonic_ms() + DEADLINE_MS;

	while (!end->is_done) {
		assert_true(clock_monotonic_ms() < until);
		(void)event_base_loop(base, EVLOOP_ONCE);
	}
}

static struct ending
end_tree(struct tree *tree, int64_t grace_ms)
{
	struct ending end = {0};

	tree_end(tree, grace_ms, CONFIRM_MS, on_done, &end);
	assert_false(end.is_done);
	run_until_done(&end);
	return end;
}

static void
test_polite_leader(void **state)
{
	struct family f = family_make(POLITE, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);

	(void)state;
	assert_false(tree_is_empty(tree));
	assert_int_equal(end_tree(tree, DEADLINE_MS).fate, TREE_GONE);
	assert_int_equal(leader_reap(&f), 7); /* it was asked, not killed */
	tree_free(tree);
}

/* Without a grace nobody is asked. */
static void
test_no_grace(void **state)
{
	struct family f = family_make(POLITE, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);

	(void)state;
	assert_int_equal(end_tree(tree, 0).fate, TREE_GONE);
	assert_int_equal(leader_reap(&f), SIGKILL);
	tree_free(tree);
}

static void
test_deaf_leader(void **state)
{
	struct family f = family_make(0, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);
	int64_t began = clock_monotonic_ms();

	(void)state;
	assert_int_equal(end_tree(tree, 100).fate, TREE_GONE);
	assert_true(clock_monotonic_ms() - began >= 100);
	assert_int_equal(leader_reap(&f), SIGKILL);
	tree_free(tree);
}

/* The grace is the leader's: when it went, what is left of the group goes. */
static void
test_group_with_grandchild(void **state)
{
	struct family f = family_make(POLITE | WITH_MEMBER, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);

	(void)state;
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_false(lives(f.other));
	assert_int_equal(leader_reap(&f), 7);
	tree_free(tree);
}

/* The zombie keeps the number: what lives in its group is still of it. */
static void
test_zombie_leader(void **state)
{
	struct family f = family_make(LEADER_GOES | WITH_MEMBER, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);

	(void)state;
	leader_await(&f);
	assert_false(tree_is_empty(tree));
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_false(lives(f.other));
	assert_true(tree_is_empty(tree)); /* a zombie does not count */
	(void)leader_reap(&f);
	tree_free(tree);
}

static bool
has_kin(const struct family *f)
{
	struct pollfd pfd = {.fd = f->kin, .events = POLLIN};

	return poll(&pfd, 1, 0) == 0;
}

/* The members that a look lists are dead when it comes to them, each time. */
static void
test_relay(void **state)
{
	bool by_looking;
	int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		struct family f = family_make(LEADER_GOES | WITH_RELAY, NULL);
		struct tree *tree = tree_of_child(base, &f.identity, NULL);
		struct identity leader = f.identity;

		leader_await(&f);
		by_looking = i % 2 == 0;
		if (by_looking)
			while (!tree_is_empty(tree))
				continue;
		else
			assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
		if (has_kin(&f)) {
			(void)kill(-leader.pgid, SIGKILL);
			fail_msg("it was gone, %s, and ran",
			    by_looking ? "by a look" : "at its end");
		}
		(void)leader_reap(&f);
		tree_free(tree);
		(void)close(f.kin);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
}

/* Whoever ends by itself was not signalled. */
static void
test_whether_it_was_signalled(void **state)
{
	static const struct {
		unsigned family;
		bool was_signaled;
	} rows[] = {{LEADER_GOES, false}, {LEADER_GOES | WITH_MEMBER, true},
	    {POLITE, true}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct family f = family_make(rows[i].family, NULL);
		struct tree *tree = tree_of_child(base, &f.identity, NULL);

		if ((rows[i].family & LEADER_GOES) != 0)
			leader_await(&f);
		assert_false(tree_was_signaled(tree));
		assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
		assert_int_equal(rows[i].was_signaled, tree_was_signaled(tree));
		(void)leader_reap(&f);
		tree_free(tree);
	}
}

/* A session of its own is beyond a group's reach, and known to be. */
static void
test_escapee_without_cgroup(void **state)
{
	struct family f = family_make(POLITE | WITH_ESCAPEE, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);

	(void)state;
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_true(lives(f.other));
	(void)leader_reap(&f);
	kill_and_wait(f.other);
	tree_free(tree);
}

/* A second call may hurry, and has the answer. */
static void
test_hurried(void **state)
{
	struct family f = family_make(0, NULL);
	struct tree *tree = tree_of_child(base, &f.identity, NULL);
	struct ending first = {0}, second = {0};

	(void)state;
	tree_end(tree, 60000, CONFIRM_MS, on_done, &first);
	(void)event_base_loop(base, EVLOOP_ONCE);
	tree_end(tree, 0, CONFIRM_MS, on_done, &second);
	run_until_done(&second);
	assert_false(first.is_done);
	assert_int_equal(second.fate, TREE_GONE);
	(void)leader_reap(&f);
	tree_free(tree);
}

/* ---- recorded by an earlier run ----------------------------------------- */

static void
test_recorded(void **state)
{
	struct family f = family_make(POLITE | WITH_MEMBER, NULL);
	struct tree *tree = tree_of_record(base, &f.identity, NULL);

	(void)state;
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_false(lives(f.other));
	assert_int_equal(leader_reap(&f), 7);
	tree_free(tree);
}

static void
test_recorded_leader_gone(void **state)
{
	struct family f = family_make(WITH_MEMBER, NULL);
	struct tree *tree = tree_of_record(base, &f.identity, NULL);
	struct ending end;

	(void)state;
	kill_and_wait(f.leader);
	end = end_tree(tree, 0);
	assert_int_equal(end.fate, TREE_DOUBT);
	assert_non_null(strstr(end.text, "its leader is gone"));
	assert_true(lives(f.other));
	/* When the rest has gone by itself a later try proves it. */
	kill_and_wait(f.other);
	assert_int_equal(end_tree(tree, 0).fate, TREE_GONE);
	tree_free(tree);
}

/* Another process has the pid now: whoever it is, it is not touched. */
static void
test_recorded_pid_reused(void **state)
{
	struct family f = family_make(POLITE, NULL);
	struct identity other = f.identity;
	struct tree *tree;

	(void)state;
	other.started_ticks--;
	tree = tree_of_record(base, &other, NULL);
	assert_int_equal(end_tree(tree, 0).fate, TREE_DOUBT);
	assert_true(lives(f.leader));
	tree_free(tree);
	kill_and_wait(f.leader);
}

static void
test_recorded_other_boot(void **state)
{
	struct family f = family_make(POLITE, NULL);
	struct identity other = f.identity;
	struct tree *tree;

	(void)state;
	other.boot_id[0] = other.boot_id[0] == '0' ? '1' : '0';
	other.pgid = 4194305; /* above any pid */
	tree = tree_of_record(base, &other, NULL);
	assert_int_equal(end_tree(tree, 0).fate, TREE_GONE);
	assert_true(lives(f.leader));
	tree_free(tree);
	kill_and_wait(f.leader);
}

static void
test_recorded_without_start(void **state)
{
	struct family f = family_make(POLITE, NULL);
	struct identity other = f.identity;
	struct tree *tree;
	struct ending end;

	(void)state;
	other.started_ticks = 0;
	tree = tree_of_record(base, &other, NULL);
	end = end_tree(tree, 0);
	assert_int_equal(end.fate, TREE_DOUBT);
	assert_non_null(strstr(end.text, "cannot be told"));
	assert_true(lives(f.leader));
	tree_free(tree);
	kill_and_wait(f.leader);
}

/* Whatever is recorded: not everyone, not init, not ourselves. */
static void
test_never_signalled(void **state)
{
	pid_t groups[] = {0, 1, -1, getpgrp()};
	struct identity bad;
	struct error e;
	struct tree *tree;
	size_t i;

	(void)state;
	assert_int_equal(identity_read(getpid(), &bad, &e), 0);
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		bad.pgid = groups[i];
		tree = tree_of_record(base, &bad, NULL);
		assert_int_equal(end_tree(tree, 0).fate, TREE_DOUBT);
		tree_free(tree);
		tree = tree_of_child(base, &bad, NULL);
		assert_int_equal(end_tree(tree, 0).fate, TREE_DOUBT);
		tree_free(tree);
	}
}

/* ---- cgroups ------------------------------------------------------------ */

static char *
cgroup_new(void)
{
	char here[4096], *path;
	struct error e;

	if (cgroup_base(here, sizeof(here), &e) == -1 || here[0] == '\0')
		return NULL;
	(void)xasprintf(&path, "%s/test_tree-%d", here, (int)getpid());
	if (cgroup_make(path, &e) == -1)
		fail_msg("%s", e.text);
	return path;
}

static void
cgroup_end(char *path)
{
	struct error e;

	if (cgroup_remove(path, &e) == -1)
		fail_msg("%s", e.text);
	free(path);
}

static void
test_escapee_with_cgroup(void **state)
{
	char *cgroup = cgroup_new();
	struct family f;
	struct tree *tree;

	(void)state;
	if (cgroup == NULL)
		skip();
	f = family_make(POLITE | WITH_ESCAPEE, cgroup);
	tree = tree_of_child(base, &f.identity, cgroup);
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_false(lives(f.other));
	assert_int_equal(leader_reap(&f), 7);
	tree_free(tree);
	cgroup_end(cgroup);
}

static void
test_cgroup_of_an_earlier_run(void **state)
{
	char *cgroup = cgroup_new();
	struct family f;
	struct tree *tree;

	(void)state;
	if (cgroup == NULL)
		skip();
	f = family_make(LEADER_GOES | WITH_ESCAPEE, cgroup);
	leader_await(&f);
	tree = tree_of_cgroup(base, cgroup);
	assert_false(tree_is_empty(tree));
	assert_int_equal(end_tree(tree, 60000).fate, TREE_GONE);
	assert_false(lives(f.other));
	(void)leader_reap(&f);
	cgroup_end(cgroup);
	assert_true(tree_is_empty(tree)); /* removed: there was nothing in it */
	tree_free(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_polite_leader),
	    cmocka_unit_test(test_no_grace),
	    cmocka_unit_test(test_deaf_leader),
	    cmocka_unit_test(test_group_with_grandchild),
	    cmocka_unit_test(test_zombie_leader),
	    cmocka_unit_test(test_relay),
	    cmocka_unit_test(test_whether_it_was_signalled),
	    cmocka_unit_test(test_escapee_without_cgroup),
	    cmocka_unit_test(test_hurried),
	    cmocka_unit_test(test_recorded),
	    cmocka_unit_test(test_recorded_leader_gone),
	    cmocka_unit_test(test_recorded_pid_reused),
	    cmocka_unit_test(test_recorded_other_boot),
	    cmocka_unit_test(test_recorded_without_start),
	    cmocka_unit_test(test_never_signalled),
	    cmocka_unit_test(test_escapee_with_cgroup),
	    cmocka_unit_test(test_cgroup_of_an_earlier_run),
	};

	/* Orphans of a family come to us, as to the supervisor. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	base = event_base_new();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
