#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "mcpd/token.h"

#define CHUNK 256

static const char blanks[] = " \t\r\n\v\f";

int
token_fd_parse(const char *text, int *fd, struct error *e)
{
	int64_t n = 0;
	size_t len;

	text += strspn(text, blanks);
	len = strcspn(text, blanks);
	if (len == 0 || strspn(text, "0123456789") != len ||
	    text[len + strspn(text + len, blanks)] != '\0')
		return error_set(e, "--connect-token-fd: not a descriptor");
	for (; len > 0; len--, text++) {
		n = n * 10 + (*text - '0');
		if (n > INT_MAX)
			return error_set(e, "--connect-token-fd: out of range");
	}
	*fd = (int)n;
	return 0;
}

/* Is it one that a token is handed over on? Nothing of it is changed. */
static int
fd_check(int fd, struct error *e)
{
	struct stat st;

	if (fd < TOKEN_FD_LEAST)
		return error_set(
		    e, "--connect-token-fd: %d is not for a token", fd);
	if (fstat(fd, &st) == -1)
		return error_errno(e, "--connect-token-fd: %d", fd);
	if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return error_set(e,
		    "--connect-token-fd: %d is neither a pipe nor a socket",
		    fd);
	return 0;
}

/* 1: more may come, 0: newline, end or too much, -1: failed. */
static int
read_some(int fd, char *bytes, size_t *len, struct error *e)
{
	ssize_t n = read(fd, bytes + *len, CHUNK);
	char *newline;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n == -1)
		return error_errno(e, "the token cannot be read");
	newline = memchr(bytes + *len, '\n', (size_t)n);
	*len += (size_t)n;
	if (newline != NULL)
		*len = (size_t)(newline - bytes);
	if (*len > TOKEN_READ_MAX)
		return error_set(e, "the token is too long");
	return n != 0 && newline == NULL;
}

static int
read_all(int fd, char *bytes, size_t *len, struct error *e)
{
	int64_t until = clock_monotonic_ms() + TOKEN_WAIT_MS, left;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int more;

	do {
		left = until - clock_monotonic_ms();
		if (left <= 0 || poll(&pfd, 1, (int)left) == 0)
			return error_set(e, "no token came within %d s",
			    TOKEN_WAIT_MS / 1000);
		more = read_some(fd, bytes, len, e);
	} while (more == 1);
	return more;
}

static char *
trim(char *bytes, size_t len, struct error *e)
{
	char *start = bytes;

	while (len > 0 && memchr(blanks, start[len - 1], sizeof(blanks) - 1))
		len--;
	while (len > 0 && memchr(blanks, *start, sizeof(blanks) - 1)) {
		start++;
		len--;
	}
	if (len == 0) {
		(void)error_set(e, "the token is empty");
		return NULL;
	}
	if (memchr(start, '\0', len) != NULL) {
		(void)error_set(e, "the token is not text");
		return NULL;
	}
	return xstrndup(start, len);
}

char *
token_read(int fd, struct error *e)
{
	char bytes[TOKEN_READ_MAX + CHUNK], *token = NULL;
	size_t len = 0;
	int flags;

	if (fd_check(fd, e) == -1)
		return NULL;
	flags = fcntl(fd, F_GETFL);
	if (flags == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		(void)error_errno(e, "--connect-token-fd: %d", fd);
	else if (read_all(fd, bytes, &len, e) == 0)
		token = trim(bytes, len, e);
	(void)close(fd);
	explicit_bzero(bytes, sizeof(bytes));
	return token;
}

void
token_free(char *token)
{
	if (token == NULL)
		return;
	explicit_bzero(token, strlen(token));
	free(token);
}
