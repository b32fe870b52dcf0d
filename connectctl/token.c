#include <sys/stat.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "connectctl/token.h"

#define LINE_MOST 128

int
token_fd_check(int fd, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return error_errno(e, "--fd: %d", fd);
	if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return error_set(
		    e, "--fd: %d is neither a pipe nor a socket", fd);
	return 0;
}

static ssize_t
read_to_end(int fd, char *bytes, size_t most)
{
	size_t len = 0;
	ssize_t n;

	while (len < most) {
		n = read(fd, bytes + len, most - len);
		if (n == 0)
			return (ssize_t)len;
		if (n == -1 && errno != EINTR)
			return -1;
		len += n > 0 ? (size_t)n : 0;
	}
	errno = EMSGSIZE;
	return -1;
}

static int
write_whole(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, bytes, len);
		if (n == -1 && errno != EINTR)
			return -1;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int
token_hand_over(int from, int to, struct error *e)
{
	char line[LINE_MOST];
	ssize_t n;
	int rc = 0;

	(void)signal(SIGPIPE, SIG_IGN);
	n = read_to_end(from, line, sizeof(line));
	if (n <= 0)
		rc = error_set(e, "the connector handed no token over");
	else if (write_whole(to, line, (size_t)n) == -1)
		rc = error_errno(e, "--fd: %d", to);
	explicit_bzero(line, sizeof(line));
	(void)close(from);
	return rc;
}
