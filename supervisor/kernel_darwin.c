#include <sys/event.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/ucred.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <libproc.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/process.h"
#include "supervisor/kernel.h"

int
kernel_own_path(char *out, size_t size, struct error *e)
{
	char path[PATH_MAX], real[PATH_MAX];
	uint32_t len = sizeof(path);

	if (_NSGetExecutablePath(path, &len) != 0)
		return error_set(e, "own path too long");
	if (realpath(path, real) == NULL)
		return error_errno(e, "own path");
	if (strlcpy(out, real, size) >= size)
		return error_set(e, "own path too long");
	return 0;
}

/* There is no subreaper: an orphan's group is what is left to hold on to. */
int
kernel_harden(struct error *e)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) == -1)
		return error_errno(e, "RLIMIT_CORE");
	return 0;
}

int
kernel_children(pid_t *list, int most)
{
	int n = proc_listchildpids(getpid(), list, most * (int)sizeof(list[0]));

	return n < 0 ? -1 : n;
}

/* No exec of a descriptor: its path, which must still be that very file. */
void
kernel_exec(int exe, int least, char *const argv[], char *const envp[])
{
	char path[PATH_MAX];

	if (fcntl(exe, F_GETPATH, path) == -1)
		return;
	process_close_from(least);
	(void)execve(path, argv, envp);
}

int
kernel_socket_peer(int fd, struct socket_peer *out)
{
	socklen_t len = sizeof(out->pid);

	out->pidfd = -1;
	if (getpeereid(fd, &out->uid, &out->gid) == -1)
		return -1;
	if (getsockopt(fd, SOL_LOCAL, LOCAL_PEERPID, &out->pid, &len) == -1)
		out->pid = 0;
	return 0;
}

bool
kernel_socket_peer_lives(const struct socket_peer *peer)
{
	return peer->pid > 0 && (kill(peer->pid, 0) == 0 || errno == EPERM);
}

bool
kernel_socket_peer_in_group(int fd, const struct socket_peer *peer, gid_t gid)
{
	struct xucred cred;
	socklen_t len = sizeof(cred);
	int i;

	(void)peer;
	if (getsockopt(fd, SOL_LOCAL, LOCAL_PEERCRED, &cred, &len) == -1)
		return false;
	for (i = 0; i < cred.cr_ngroups; i++) {
		if (cred.cr_groups[i] == gid)
			return true;
	}
	return false;
}

/* A kqueue that holds the directory; whichever file changed, it says so. */
int
kernel_watch_open(const char *dir)
{
	int queue = kqueue(), fd = open(dir, O_EVTONLY | O_CLOEXEC);
	struct kevent change;

	EV_SET(&change, fd, EVFILT_VNODE, EV_ADD | EV_CLEAR,
	    NOTE_WRITE | NOTE_DELETE | NOTE_RENAME | NOTE_ATTRIB, 0, NULL);
	if (queue != -1 && fd != -1 &&
	    kevent(queue, &change, 1, NULL, 0, NULL) != -1)
		return queue; /* FD stays open for as long as we watch */
	if (fd != -1)
		(void)close(fd);
	if (queue != -1)
		(void)close(queue);
	return -1;
}

enum watch_news
kernel_watch_read(int fd, const char *name)
{
	const struct timespec now = {0, 0};
	enum watch_news news = WATCH_NOTHING;
	struct kevent event;

	(void)name;
	while (kevent(fd, NULL, 0, &event, 1, &now) == 1) {
		if (event.fflags & (NOTE_DELETE | NOTE_RENAME))
			return WATCH_GONE;
		news = WATCH_CHANGED;
	}
	return news;
}
