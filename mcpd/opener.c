#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/process.h"
#include "mcpd/opener.h"
#include "mcpd/reach.h"

#define SOCKET_FD 3
/* It reads a small file and connects on this machine. */
#define ANSWER_MS 5000

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- in the child ------------------------------------------------------- */

/* What was asked, and with it the connection if there is one. */
static int
answer_send(unsigned char asked, int fd)
{
	union control control = {.bytes = {0}};
	struct iovec iov = {&asked, 1};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (fd != -1) {
		mh.msg_control = control.bytes;
		mh.msg_controllen = sizeof(control.bytes);
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(SOCKET_FD, &mh, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Why there is none is said on standard error, once for each asking. */
static _Noreturn void
opener_run(const char *dir)
{
	unsigned char asked;
	struct error e;
	int fd, rc = 0;

	while (rc == 0 && read(SOCKET_FD, &asked, 1) == 1) {
		fd = reach_connect(dir, &e);
		if (fd == -1)
			log_warnx("%s", e.text);
		rc = answer_send(asked, fd);
		if (fd != -1)
			(void)close(fd);
	}
	exit_now(EXIT_OK);
}

/* A terminal's signals are for the server, whose end is ours. */
static int
opener_settle(int socket)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t i;

	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1)
		return -1;
	if (socket != SOCKET_FD && dup2(socket, SOCKET_FD) == -1)
		return -1;
	process_close_from(SOCKET_FD + 1);
	return 0;
}

/* ---- in the server ------------------------------------------------------ */

int
opener_start(const char *dir, void (*forget)(void), struct error *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return error_errno(e, "socketpair");
	pid = fork();
	if (pid == 0) {
		forget();
		if (opener_settle(pair[1]) == -1)
			exit_now(EXIT_CRASH);
		opener_run(dir);
	}
	(void)close(pair[1]);
	if (pid != -1)
		return pair[0];
	(void)error_errno(e, "fork");
	(void)close(pair[0]);
	return -1;
}

/* False: nothing came, and nothing will. */
static bool
answer_receive(int opener, unsigned char *asked, int *fd)
{
	union control control;
	struct iovec iov = {asked, 1};
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;

	*fd = -1;
	if (recvmsg(opener, &mh, MSG_DONTWAIT) != 1)
		return false;
	cmsg = CMSG_FIRSTHDR(&mh);
	if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET &&
	    cmsg->cmsg_type == SCM_RIGHTS &&
	    cmsg->cmsg_len == CMSG_LEN(sizeof(*fd)))
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	if (*fd != -1)
		(void)fcntl(*fd, F_SETFD, FD_CLOEXEC);
	return true;
}

/* The answer to an earlier question, which came too late, is none. */
int
opener_ask(int opener)
{
	static unsigned char serial;
	int64_t until = clock_monotonic_ms() + ANSWER_MS, left;
	struct pollfd pfd = {.fd = opener, .events = POLLIN};
	unsigned char asked;
	int fd;

	serial++;
	if (send(opener, &serial, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return -1;
	while ((left = until - clock_monotonic_ms()) > 0 &&
	    poll(&pfd, 1, (int)left) == 1 &&
	    answer_receive(opener, &asked, &fd)) {
		if (asked == serial)
			return fd;
		if (fd != -1)
			(void)close(fd);
	}
	return -1;
}
