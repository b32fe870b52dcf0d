#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/spawn.h"

/* No cgroups here, and no descriptors of processes. */
pid_t
spawn_fork(int cgroup_fd, int *pidfd, bool *outside)
{
	(void)cgroup_fd;
	*pidfd = -1;
	*outside = false;
	return fork();
}

int
spawn_pidfd(pid_t pid)
{
	(void)pid;
	errno = ENOSYS;
	return -1;
}

/* There is no such switch; the sandbox of the agent has to do. */
int
spawn_no_new_privs(void)
{
	return 0;
}

int
spawn_path_of(int fd, char *out, size_t size)
{
	char path[MAXPATHLEN];

	if (fcntl(fd, F_GETPATH, path) == -1)
		return -1;
	if (strlen(path) >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(out, path, strlen(path) + 1);
	return 0;
}
