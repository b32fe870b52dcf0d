#include <sys/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/xmalloc.h"
#include "ledger/database.h"
#include "ledger/place.h"

int
place_read(struct place *p, const char *dir, struct error *e)
{
	char *slash;

	memset(p, 0, sizeof(*p));
	p->dir = path_clean(dir);
	if (p->dir == NULL)
		return error_errno(e, "%s", log_safe(dir));
	slash = strrchr(p->dir, '/');
	p->name = slash + 1;
	p->root = slash == p->dir ? xstrdup("/")
				  : xstrndup(p->dir, (size_t)(slash - p->dir));
	p->account = strtoll(p->name, NULL, 10);
	return path_state_check(p->root, p->dir, p->account, &p->agent, e);
}

void
place_free(struct place *p)
{
	free(p->dir);
	free(p->root);
}

int
place_look(struct place *p, struct error *e)
{
	p->is_there = lstat(p->dir, &p->st) == 0;
	if (p->is_there)
		return path_ancestors_check(p->dir, p->st.st_uid, e);
	return errno == ENOENT ? 0 : error_errno(e, "%s", log_safe(p->dir));
}

int
place_lock(const struct place *p, struct error *e)
{
	char *path = lock_path(p->root, p->account, p->agent);
	int fd = lock_open(path, e), rc = -1;

	if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1) {
		(void)error_errno(e, "%s", log_safe(path));
		if (errno == EWOULDBLOCK)
			(void)error_set(e,
			    "a connector runs: stop it first (%s)",
			    log_safe(path));
		e->code = errno;
	} else if (fd != -1) {
		rc = lock_check(fd, path, e);
	}
	free(path);
	return rc;
}

/* Also a link that leads nowhere is there. */
static int
file_is_there(const struct place *p, const char *suffix, struct error *e)
{
	char *path;
	struct stat st;
	int rc;

	(void)xasprintf(&path, "%s/" DATABASE_NAME "%s", p->dir, suffix);
	rc = lstat(path, &st) == 0 ? 1 : errno == ENOENT ? 0 : -1;
	if (rc == -1)
		(void)error_errno(e, "%s", log_safe(path));
	free(path);
	return rc;
}

int
place_has_ledger(const struct place *p, struct error *e)
{
	return file_is_there(p, "", e);
}

int
place_is_clear(const struct place *p, bool itself, struct error *e)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	size_t i;
	int rc;

	for (i = itself ? 0 : 1; i < sizeof(suffixes) / sizeof(suffixes[0]);
	     i++) {
		if ((rc = file_is_there(p, suffixes[i], e)) == -1)
			return -1;
		if (rc == 1)
			return error_set(e,
			    "there is a %s/" DATABASE_NAME "%s already",
			    log_safe(p->dir), suffixes[i]);
	}
	return 0;
}

int
place_sync(const struct place *p, struct error *e)
{
	int fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (fd == -1 || fsync(fd) == -1)
		rc = error_errno(e, "%s", log_safe(p->dir));
	if (fd != -1)
		(void)close(fd);
	return rc;
}
