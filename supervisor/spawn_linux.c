#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/spawn.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

/* The kernel's struct clone_args up to the cgroup (Linux 5.7). */
struct clone3_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack,
	    stack_size, tls, set_tid, set_tid_size, cgroup;
};

static pid_t
fork_with(uint64_t flags, int cgroup_fd, int *pidfd)
{
	struct clone3_args args = {.flags = flags | CLONE_PIDFD,
	    .pidfd = (uint64_t)(uintptr_t)pidfd,
	    .exit_signal = SIGCHLD,
	    .cgroup = cgroup_fd == -1 ? 0 : (uint64_t)cgroup_fd};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Without a pidfd it cannot be handed over; it was told nothing yet. */
static pid_t
fork_plain(int *pidfd)
{
	pid_t pid = fork();
	int saved;

	if (pid <= 0)
		return pid;
	*pidfd = spawn_pidfd(pid);
	if (*pidfd != -1)
		return pid;
	saved = errno;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	errno = saved;
	return -1;
}

/*
 * Only one thread, and the child soon execs: the raw call is as good as
 * fork() here. Where it is too new for the kernel (or for a filter above us),
 * the child moves itself into the cgroup.
 */
pid_t
spawn_fork(int cgroup_fd, int *pidfd, bool *outside)
{
	pid_t pid;

	*outside = false;
	*pidfd = -1;
	pid = fork_with(
	    cgroup_fd == -1 ? 0 : CLONE_INTO_CGROUP, cgroup_fd, pidfd);
	if (pid != -1 || (errno != ENOSYS && errno != EINVAL && errno != E2BIG))
		return pid;
	*outside = cgroup_fd != -1;
	return fork_plain(pidfd);
}

int
spawn_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
spawn_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int
spawn_path_of(int fd, char *out, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, size);
	if (n == -1)
		return -1;
	if ((size_t)n >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	out[n] = '\0';
	return 0;
}
