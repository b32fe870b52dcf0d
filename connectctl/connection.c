#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/exit.h"
#include "common/json.h"
#include "common/xmalloc.h"
#include "connectctl/connection.h"
#include "supervisor/control_wire.h"

/* The ledger's answer is bounded by 8 MiB; with what stands around it. */
#define LINE_MOST ((size_t)16 * 1024 * 1024)
#define READ_PIECE 65536

struct connection {
	int fd;
	int came;    /* a descriptor beside the bytes, or -1 */
	char *bytes; /* read and not yet handed out */
	size_t len, size;
	size_t handed; /* of the last line, to be dropped at the next call */
};

/* ---- connecting ---------------------------------------------------------- */

static int
socket_connect(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return -1;
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* One that is there and not for us is worth more words than none at all. */
static int
socket_error(const char *profile, const char *path, struct error *e)
{
	bool refused = errno == EACCES || errno == EPERM;

	if (refused)
		(void)error_errno(e,
		    "the connector of the profile %s answers root, its own "
		    "user and its socket's group: %s",
		    profile, path);
	else
		(void)error_errno(e,
		    "no connector of the profile %s answers: %s", profile,
		    path);
	e->code = refused ? EXIT_REFUSED : EXIT_NOT_RUNNING;
	return -1;
}

/* The profile's own path first, then the system service's. */
static int
socket_find(const struct paths *paths, const char *profile, struct error *e)
{
	char *system;
	int fd, first;

	fd = socket_connect(paths->control_socket);
	if (fd != -1)
		return fd;
	first = errno;
	system = path_system_socket(profile);
	fd = socket_connect(system);
	if (fd == -1 && errno == EACCES) {
		(void)socket_error(profile, system, e);
	} else if (fd == -1) {
		errno = first;
		(void)socket_error(profile, paths->control_socket, e);
	}
	free(system);
	return fd;
}

/* {"connectd":1,…}, or the reason why we are turned away. */
static int
greeting_check(struct connection *c, struct error *e)
{
	const struct json_rules rules = {
	    .max_bytes = 4096, .max_depth = 2, .max_members = 16};
	struct json_text text = {.bytes = "no greeting"};
	struct error ignored;
	int64_t version = 0;
	const char *line;
	json_t *greeting;
	size_t len;
	int rc = -1;

	line = connection_line(c, &len, e);
	greeting = line == NULL ? NULL : json_read(line, len, &rules, e);
	e->code = EXIT_FAILED;
	if (greeting == NULL)
		return -1;
	if (json_member_int(greeting, "connectd", JSON_MAY_BE_ABSENT, &version,
		&ignored) == 0 &&
	    version == CONTROL_VERSION) {
		rc = 0;
	} else if (json_member_string(greeting, "text", JSON_MAY_BE_ABSENT,
		       &text, &ignored) == 0 &&
	    version == 0) {
		(void)error_set(e, "refused: %s", text.bytes);
		e->code = EXIT_REFUSED;
	} else {
		(void)error_set(e,
		    "the connector speaks another version of "
		    "the control protocol");
		e->code = EXIT_FAILED;
	}
	json_decref(greeting);
	return rc;
}

struct connection *
connection_open(const struct paths *paths, const char *profile, struct error *e)
{
	struct connection *c;
	int fd = socket_find(paths, profile, e);

	if (fd == -1)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->fd = fd;
	c->came = -1;
	if (greeting_check(c, e) == 0)
		return c;
	connection_close(c);
	return NULL;
}

void
connection_close(struct connection *c)
{
	if (c == NULL)
		return;
	(void)close(c->fd);
	if (c->came != -1)
		(void)close(c->came);
	free(c->bytes);
	free(c);
}

/* ---- lines --------------------------------------------------------------- */

int
connection_send(struct connection *c, json_t *request, struct error *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = strlen(text), done = 0;
	ssize_t n;

	text[len++] = '\n'; /* where the NUL was */
	while (done < len) {
		n = send(c->fd, text + done, len - done, MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			break;
		done += (size_t)n;
	}
	free(text);
	return done == len ? 0 : error_errno(e, "control socket");
}

int
connection_take_fd(struct connection *c)
{
	int fd = c->came;

	c->came = -1;
	return fd;
}

/* Of those that come with several pieces the last one is kept. */
static ssize_t
connection_read(struct connection *c)
{
	ssize_t n;
	int fd;

	do
		n = descriptors_receive(
		    c->fd, c->bytes + c->len, c->size - c->len, &fd, 1, 0);
	while (n == -1 && errno == EINTR);
	if (fd == -1)
		return n;
	if (c->came != -1)
		(void)close(c->came);
	c->came = fd;
	return n;
}

/* False at the end of the stream, or with E's text on an error. */
static bool
connection_fill(struct connection *c, struct error *e)
{
	ssize_t n;

	if (c->len >= LINE_MOST) {
		(void)error_set(e, "control socket: an endless line");
		return false;
	}
	if (c->size - c->len < READ_PIECE) {
		c->size = 2 * c->size + READ_PIECE;
		c->bytes = xreallocarray(c->bytes, 1, c->size);
	}
	n = connection_read(c);
	if (n == -1)
		(void)error_errno(e, "control socket");
	else if (n == 0 && c->len > 0)
		(void)error_set(e, "control socket: half a line");
	if (n <= 0)
		return false;
	c->len += (size_t)n;
	return true;
}

bool
connection_wait(struct connection *c, int64_t until)
{
	struct pollfd pfd = {.fd = c->fd, .events = POLLIN};
	struct error ignored;
	int64_t left;

	while (memchr(c->bytes + c->handed, '\n', c->len - c->handed) == NULL) {
		left = until - clock_monotonic_ms();
		if (left <= 0)
			return false;
		if (poll(&pfd, 1, (int)left) == 1 &&
		    !connection_fill(c, &ignored))
			return true;
	}
	return true;
}

const char *
connection_line(struct connection *c, size_t *len, struct error *e)
{
	size_t seen = 0;
	char *end = NULL;

	e->code = 0;
	e->text[0] = '\0';
	c->len -= c->handed;
	if (c->handed > 0)
		memmove(c->bytes, c->bytes + c->handed, c->len);
	c->handed = 0;
	for (;;) {
		if (c->len > seen)
			end = memchr(c->bytes + seen, '\n', c->len - seen);
		if (end != NULL)
			break;
		seen = c->len;
		if (!connection_fill(c, e))
			return NULL;
	}
	*end = '\0';
	*len = (size_t)(end - c->bytes);
	c->handed = *len + 1;
	return c->bytes;
}
