#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/process.h"
#include "mcpd/opener.h"
#include "mcpd/reach.h"

#define SOCKET_FD 3
/* It reads a small file and connects on this machine. */
#define ANSWER_MS 5000

/* ---- in the child ------------------------------------------------------- */

/*
 * The answer is what was asked, and with it the connection if there is one; if
 * not, why is said on standard error, once for each asking.
 */
static _Noreturn void
opener_run(const char *dir)
{
	unsigned char asked;
	struct error e;
	ssize_t sent = 1;
	int fd;

	while (sent == 1 && read(SOCKET_FD, &asked, 1) == 1) {
		fd = reach_connect(dir, &e);
		if (fd == -1)
			log_warnx("%s", e.text);
		sent = descriptors_send(SOCKET_FD, &asked, 1, &fd, 1, 0);
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
	    descriptors_receive(opener, &asked, 1, &fd, 1, MSG_DONTWAIT) == 1) {
		if (asked == serial)
			return fd;
		if (fd != -1)
			(void)close(fd);
	}
	return -1;
}
