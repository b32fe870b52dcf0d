#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/lock.h"
#include "common/xmalloc.h"

char *
lock_path(const char *root, int64_t account, int64_t agent)
{
	char *path;

	(void)xasprintf(&path, "%s/instance-%lld-%lld.lock", root,
	    (long long)account, (long long)agent);
	return path;
}

int
lock_check(int fd, const char *path, struct error *e)
{
	struct stat held, there;

	if (fstat(fd, &held) == -1 || lstat(path, &there) == -1)
		return error_errno(e, "%s", path);
	if (held.st_dev != there.st_dev || held.st_ino != there.st_ino)
		return error_set(e, "%s: it was replaced", path);
	if (!S_ISREG(held.st_mode) || held.st_uid != geteuid() ||
	    (held.st_mode & 077) != 0)
		return error_set(e, "%s: not a private file of ours", path);
	return 0;
}

int
lock_open(const char *path, struct error *e)
{
	int fd = open(
	    path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd == -1)
		return errno == ELOOP
		    ? error_set(e, "%s: a symbolic link", path)
		    : error_errno(e, "%s", path);
	if (lock_check(fd, path, e) == 0)
		return fd;
	(void)close(fd);
	return -1;
}
