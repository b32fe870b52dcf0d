/* What a process settles about itself; each in a child of its own. */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/process.h"
#include "tests/unit/trap.h"

#define NOBODY 65534

/* Run TRY in a child, which exits 0 when all was as it should. */
static void
in_child(int (*try)(void))
{
	int status;
	pid_t pid = fork();

	assert_int_not_equal(-1, pid);
	if (pid == 0)
		_exit(try());
	assert_int_equal(pid, waitpid(pid, &status, 0));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with status %#x", status);
}

#define REQUIRE(fact)                                                        \
	do {                                                                 \
		if (!(fact)) {                                               \
			(void)dprintf(STDERR_FILENO, "not so: %s\n", #fact); \
			return 1;                                            \
		}                                                            \
	} while (0)

static int
try_seal(void)
{
	struct error e;
	int low, high;

	low = dup2(STDERR_FILENO, 3);
	high = fcntl(STDERR_FILENO, F_DUPFD, 700);
	REQUIRE(low == 3 && high >= 700);
	REQUIRE(process_seal(&e) == 0);
	REQUIRE(fcntl(low, F_GETFD) == FD_CLOEXEC);
	REQUIRE(fcntl(high, F_GETFD) == FD_CLOEXEC);
	REQUIRE(fcntl(STDERR_FILENO, F_GETFD) == 0);
	/* Marked, not closed. */
	REQUIRE(fcntl(low, F_GETFL) != -1);
	return 0;
}

static void
test_seal(void **state)
{
	(void)state;
	in_child(try_seal);
}

/* Whoever is started after it has nothing of ours but 0, 1 and 2. */
static int
try_start_a_child(void)
{
	static const char look[] = "for fd in /proc/self/fd/*; do"
				   " case ${fd##*/} in [012]) ;;"
				   " *) [ -e $fd ] && exit 1 ;; esac; done;"
				   " exit 0";
	struct error e;
	int status;
	pid_t pid;

	REQUIRE(fcntl(STDERR_FILENO, F_DUPFD, 3) == 3);
	REQUIRE(fcntl(STDERR_FILENO, F_DUPFD, 700) >= 700);
	REQUIRE(process_seal(&e) == 0);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", look, (char *)NULL);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(status == 0);
	return 0;
}

static void
test_seal_is_for_children(void **state)
{
	(void)state;
	in_child(try_start_a_child);
}

/* From here on these calls fail so. */
static int
refuse(int first, int second, int error)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc = ctx == NULL;

	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(error), first, 0);
	if (rc == 0 && second != first)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(error), second, 0);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc;
}

/* As on a kernel that has no close_range. */
static int
try_seal_old_kernel(void)
{
	REQUIRE(
	    refuse(SCMP_SYS(close_range), SCMP_SYS(close_range), ENOSYS) == 0);
	return try_seal();
}

/* Neither way is open: it must not go on. */
static int
try_seal_fails_closed(void)
{
	struct error e;

	REQUIRE(refuse(SCMP_SYS(close_range), SCMP_SYS(openat), ENOSYS) == 0);
	REQUIRE(process_seal(&e) == -1);
	REQUIRE(strstr(e.text, "/proc/self/fd") != NULL);
	return 0;
}

static void
test_seal_otherwise(void **state)
{
	(void)state;
	in_child(try_seal_old_kernel);
	in_child(try_seal_fails_closed);
}

static int
try_settle(void)
{
	struct sigaction act;
	sigset_t all, now;
	struct error e;
	pid_t before = getsid(0);

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGCHLD, SIG_IGN);
	(void)umask(0);
	REQUIRE(process_settle(&e) == 0);
	REQUIRE(getsid(0) == getpid() && before != getpid());
	REQUIRE(sigaction(SIGCHLD, NULL, &act) == 0);
	REQUIRE(act.sa_handler == SIG_DFL);
	REQUIRE(sigaction(SIGTERM, NULL, &act) == 0);
	REQUIRE(act.sa_handler == SIG_IGN);
	REQUIRE(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
	REQUIRE(sigismember(&now, SIGUSR1) == 0);
	REQUIRE(umask(0) == 077);
	/* A session leader already: fine. */
	REQUIRE(process_settle(&e) == 0);
	return 0;
}

static void
test_settle(void **state)
{
	(void)state;
	in_child(try_settle);
}

static int
try_limit(void)
{
	struct rlimit limit = {300, 300};
	struct error e;

	REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	REQUIRE(process_limit(4096, false, &e) == 0); /* as many as may be */
	REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	REQUIRE(limit.rlim_cur == 300);
	REQUIRE(getrlimit(RLIMIT_CORE, &limit) == 0);
	REQUIRE(limit.rlim_max == 0);
	REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	REQUIRE(limit.rlim_max == 0);
	REQUIRE(process_limit(255, true, &e) == -1);
	limit.rlim_cur = limit.rlim_max = 255;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	REQUIRE(process_limit(4096, true, &e) == -1);
	REQUIRE(strstr(e.text, "255") != NULL);
	return 0;
}

static void
test_limit(void **state)
{
	(void)state;
	in_child(try_limit);
}

static int
try_become(void)
{
	struct error e;
	gid_t groups[] = {1, 2};

	REQUIRE(setgroups(2, groups) == 0);
	REQUIRE(process_become(NOBODY, NOBODY, &e) == 0);
	REQUIRE(geteuid() == NOBODY && getuid() == NOBODY);
	REQUIRE(getegid() == NOBODY && getgid() == NOBODY);
	REQUIRE(getgroups(2, groups) == 0);
	REQUIRE(setuid(0) == -1 && setgid(0) == -1);
	return 0;
}

/* The ids changed, but a capability would bring them back. */
static int
try_become_with_way_back(void)
{
	struct error e;

	REQUIRE(prctl(PR_SET_SECUREBITS, 1 << 2) == 0); /* NO_SETUID_FIXUP */
	REQUIRE(process_become(NOBODY, NOBODY, &e) == -1);
	REQUIRE(strstr(e.text, "back") != NULL);
	return 0;
}

static int
try_become_another(void)
{
	struct error e;

	REQUIRE(process_become(geteuid(), getegid(), &e) == 0);
	REQUIRE(process_become(geteuid() + 1, getegid(), &e) == -1);
	REQUIRE(e.code == EPERM);
	return 0;
}

static void
test_become(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		in_child(try_become_another);
		return;
	}
	in_child(try_become);
	in_child(try_become_with_way_back);
}

static int
try_die_with(void)
{
	struct error e;
	int signal_now = 0;

	REQUIRE(process_die_with(getppid(), &e) == 0);
	REQUIRE(prctl(PR_GET_PDEATHSIG, &signal_now) == 0);
	REQUIRE(signal_now == SIGKILL);
	REQUIRE(process_die_with(getppid() + 1, &e) == -1);
	REQUIRE(e.code == ESRCH);
	return 0;
}

static void
test_die_with(void **state)
{
	(void)state;
	in_child(try_die_with);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_seal),
	    TRAP("T87", test_seal_is_for_children, NULL, NULL),
	    TRAP("T87", test_seal_otherwise, NULL, NULL),
	    cmocka_unit_test(test_settle),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_become),
	    cmocka_unit_test(test_die_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
