#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/json.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/xmalloc.h"
#include "mcpd/reach.h"

#define NOTE_MOST 4096

/* Returns -1; what E said, as it is, under an exit code. */
static int
wrong(struct error *e, enum exit_code code)
{
	e->code = (int)code;
	return -1;
}

static int
not_running(struct error *e)
{
	(void)error_set(e,
	    "the connector is not running, or its connect.json does not say "
	    "mcp.socket");
	return wrong(e, EXIT_NOT_RUNNING);
}

/* ---- the state directory ------------------------------------------------ */

static int
ledger_check(const char *dir, struct error *e)
{
	struct stat st;
	char *path;
	int rc;

	(void)xasprintf(&path, "%s/ledger.db", dir);
	rc = lstat(path, &st);
	if (rc == -1 && errno != ENOENT && errno != ENOTDIR)
		(void)error_errno(e, "%s", log_safe(path));
	else if (rc == -1)
		(void)error_set(e, "no connector ledger in %s", log_safe(dir));
	free(path);
	return rc == -1 ? wrong(e, EXIT_NOT_RUNNING) : 0;
}

int
reach_check(const char *dir, struct error *e)
{
	struct stat st;

	if (ledger_check(dir, e) == -1)
		return -1;
	if (path_ancestors_check(dir, geteuid(), e) == -1)
		return wrong(e, EXIT_REFUSED);
	if (lstat(dir, &st) == -1)
		(void)error_errno(e, "%s", log_safe(dir));
	else if (!S_ISDIR(st.st_mode))
		(void)error_set(e, "%s is not a real directory", log_safe(dir));
	else if ((st.st_mode & 077) != 0)
		(void)error_set(e, "%s is not private", log_safe(dir));
	else
		return 0;
	return wrong(e, EXIT_REFUSED);
}

/* ---- the note ----------------------------------------------------------- */

/* instance-ACCOUNT-AGENT.lock.json beside ACCOUNT-AGENT. */
static char *
note_path(const char *dir)
{
	const char *name = strrchr(dir, '/') + 1;
	char *path;

	(void)xasprintf(
	    &path, "%.*sinstance-%s.lock.json", (int)(name - dir), dir, name);
	return path;
}

static char *
note_runtime_dir(const char *text, size_t len, struct error *e)
{
	const struct json_rules rules = {
	    .max_bytes = NOTE_MOST, .max_depth = 2, .max_members = 32};
	json_t *note = json_read(text, len, &rules, e);
	struct json_text dir;
	char *out = NULL;

	if (note != NULL &&
	    json_member_string(note, "runtime_dir", JSON_REQUIRED, &dir, e) ==
		0 &&
	    !dir.has_nul && path_is_clean(dir.bytes))
		out = xstrdup(dir.bytes);
	json_decref(note);
	return out;
}

/* The run-time directory; NULL with E. A connector that ends takes its note. */
static char *
runtime_dir_find(const char *dir, struct error *e)
{
	char *path = note_path(dir), *text = NULL, *out = NULL;
	size_t len;

	if (path_read_private(
		path, geteuid(), 077, NOTE_MOST, &text, &len, e) == -1) {
		if (e->code == ENOENT)
			(void)not_running(e);
		else
			(void)wrong(e, EXIT_REFUSED);
	} else if ((out = note_runtime_dir(text, len, e)) == NULL) {
		(void)error_set(
		    e, "%s names no run-time directory", log_safe(path));
		(void)wrong(e, EXIT_REFUSED);
	}
	free(text);
	free(path);
	return out;
}

/* ---- the socket --------------------------------------------------------- */

static int
socket_check(const char *path, struct error *e)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return not_running(e);
	if (path_ancestors_check(path, geteuid(), e) == -1)
		return wrong(e, EXIT_REFUSED);
	if (S_ISSOCK(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0))
		return 0;
	(void)error_set(e, "%s is not the connector's", log_safe(path));
	return wrong(e, EXIT_REFUSED);
}

static int
socket_connect(const char *path, struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd;

	if (snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path) >=
	    (int)sizeof(sun.sun_path)) {
		(void)error_set(e, "%s is too long", log_safe(path));
		return wrong(e, EXIT_REFUSED);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1) {
		(void)error_errno(e, "socket");
		return wrong(e, EXIT_FAILED);
	}
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	(void)close(fd);
	return not_running(e);
}

int
reach_connect(const char *dir, struct error *e)
{
	char *runtime_dir = runtime_dir_find(dir, e), *path;
	int fd = -1;

	if (runtime_dir == NULL)
		return -1;
	(void)xasprintf(&path, "%s/" PATH_LEDGER_SOCKET, runtime_dir);
	if (socket_check(path, e) == 0)
		fd = socket_connect(path, e);
	free(path);
	free(runtime_dir);
	return fd;
}
