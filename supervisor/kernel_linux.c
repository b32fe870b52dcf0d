#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/kernel.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#define GROUPS_MAX 1024

int
kernel_own_path(char *out, size_t size, struct error *e)
{
	ssize_t n = readlink("/proc/self/exe", out, size);

	if (n == -1)
		return error_errno(e, "/proc/self/exe");
	if ((size_t)n >= size)
		return error_set(e, "/proc/self/exe: path too long");
	out[n] = '\0';
	return 0;
}

int
kernel_harden(struct error *e)
{
	const struct rlimit none = {0, 0};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		return error_errno(e, "cannot become a subreaper");
	if (setrlimit(RLIMIT_CORE, &none) == -1)
		return error_errno(e, "RLIMIT_CORE");
#ifndef INSECURE_BUILD
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return error_errno(e, "PR_SET_DUMPABLE");
#endif
	return 0;
}

int
kernel_children(pid_t *list, int most)
{
	char path[64];
	int count = 0;
	FILE *file;
	long pid;

	(void)snprintf(
	    path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	while (count < most && fscanf(file, "%ld", &pid) == 1)
		list[count++] = (pid_t)pid;
	(void)fclose(file);
	return count;
}

/*
 * All our descriptors are close-on-exec already; the range is the second lock
 * on that door (kernels before 5.11 have only the first).
 */
void
kernel_exec(int exe, int least, char *const argv[], char *const envp[])
{
	(void)syscall(
	    SYS_close_range, (unsigned int)least, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
}

int
kernel_socket_peer(int fd, struct socket_peer *out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		return -1;
	out->pid = cred.pid;
	out->uid = cred.uid;
	out->gid = cred.gid;
	len = sizeof(out->pidfd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &out->pidfd, &len) == -1)
		out->pidfd = -1; /* before Linux 6.5 */
	return 0;
}

bool
kernel_socket_peer_lives(const struct socket_peer *peer)
{
	struct pollfd pfd = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd == -1 || poll(&pfd, 1, 0) == 0;
}

bool
kernel_socket_peer_in_group(int fd, const struct socket_peer *peer, gid_t gid)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);
	size_t i;

	if (peer->gid == gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == -1)
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}

int
kernel_watch_open(const char *dir)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd == -1)
		return -1;
	if (inotify_add_watch(fd, dir,
		IN_ONLYDIR | IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB |
		    IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |
		    IN_MOVE_SELF) != -1)
		return fd;
	(void)close(fd);
	return -1;
}

static enum watch_news
watch_event_news(const struct inotify_event *event, const char *name)
{
	if (event->mask &
	    (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT))
		return WATCH_GONE;
	if (event->mask & IN_Q_OVERFLOW)
		return WATCH_CHANGED;
	if (event->len > 0 && strcmp(event->name, name) == 0)
		return WATCH_CHANGED;
	return WATCH_NOTHING;
}

enum watch_news
kernel_watch_read(int fd, const char *name)
{
	union {
		struct inotify_event align;
		char bytes[4096];
	} buf;
	enum watch_news news = WATCH_NOTHING, one;
	const struct inotify_event *event;
	ssize_t n, at;

	while ((n = read(fd, buf.bytes, sizeof(buf.bytes))) > 0) {
		for (at = 0; at < n;
		     at += (ssize_t)sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(buf.bytes + at);
			one = watch_event_news(event, name);
			if (one > news)
				news = one;
		}
	}
	return news;
}
