/* Whether what a path names is private, and the making of what is. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/paths.h"
#include "common/xmalloc.h"

#define LINKS_MAX 40
#define WRITABLE_BY_OTHERS (S_IWGRP | S_IWOTH)

#ifndef O_PATH
#define O_PATH O_SEARCH
#endif

/* ---- ancestors ---------------------------------------------------------- */

/* Where a walk from the root has come to, and what is still to be walked. */
struct walk {
	char at[PATH_MAX];   /* "" is the root */
	char todo[PATH_MAX]; /* "a/b/c" */
	int links;
};

/* Looks at one component; -1 with E set ends the walk. */
typedef int (*walk_check)(
    const char *path, const struct stat *st, const void *arg, struct error *e);

/* Put a link's target in front of what is still to be walked. */
static int
walk_link(struct walk *w, const char *link, struct error *e)
{
	char target[PATH_MAX], todo[PATH_MAX];
	ssize_t n;

	if (++w->links > LINKS_MAX) {
		errno = ELOOP;
		return error_errno(e, "%s", link);
	}
	n = readlink(link, target, sizeof(target) - 1);
	if (n == -1)
		return error_errno(e, "%s", link);
	target[n] = '\0';
	if ((size_t)snprintf(todo, sizeof(todo), "%s/%s", target, w->todo) >=
	    sizeof(todo))
		return error_set(e, "%s: too long", link);
	memcpy(w->todo, todo, sizeof(todo));
	if (target[0] == '/')
		w->at[0] = '\0';
	return 0;
}

static void
walk_up(struct walk *w)
{
	char *slash = strrchr(w->at, '/');

	if (slash != NULL)
		*slash = '\0';
}

/* Take the next component off what is to be walked; false at the end. */
static bool
walk_next(struct walk *w, char out[static NAME_MAX + 1])
{
	char *from = w->todo + strspn(w->todo, "/");
	size_t len = strcspn(from, "/");

	if (len == 0)
		return false;
	(void)snprintf(out, NAME_MAX + 1, "%.*s", (int)len, from);
	memmove(w->todo, from + len, strlen(from + len) + 1);
	return true;
}

static int
walk_step(struct walk *w, const char *name, walk_check check, const void *arg,
    struct error *e)
{
	char path[PATH_MAX];
	struct stat st;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		walk_up(w);
		return 0;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", w->at, name) >=
	    sizeof(path))
		return error_set(e, "%s: too long", w->at);
	if (lstat(path, &st) == -1)
		return error_errno(e, "%s", path);
	if (check(path, &st, arg, e) == -1)
		return -1;
	if (S_ISLNK(st.st_mode))
		return walk_link(w, path, e);
	if (!S_ISDIR(st.st_mode))
		return error_set(e, "%s is not a directory", path);
	memcpy(w->at, path, sizeof(path));
	return 0;
}

/*
 * Every component from the root to the parent of DIR, links followed one by
 * one, so that both the written and the resolved chain are seen, and what lies
 * between them.
 */
static int
walk_ancestors(
    const char *dir, walk_check check, const void *arg, struct error *e)
{
	struct walk w = {.links = 0};
	char name[NAME_MAX + 1];
	struct stat st;
	char *last;

	if (dir[0] != '/' || strlen(dir) >= sizeof(w.todo))
		return error_set(e,
		    "%s is not an absolute path of a bounded "
		    "length",
		    dir);
	(void)snprintf(w.todo, sizeof(w.todo), "%s", dir);
	while ((last = strrchr(w.todo, '/')) != NULL && last > w.todo &&
	    last[1] == '\0')
		*last = '\0';
	*strrchr(w.todo, '/') = '\0';
	if (stat("/", &st) == -1)
		return error_errno(e, "/");
	if (check("/", &st, arg, e) == -1)
		return -1;
	while (walk_next(&w, name)) {
		if (walk_step(&w, name, check, arg, e) == -1)
			return -1;
	}
	return 0;
}

static int
check_trusted(
    const char *path, const struct stat *st, const void *arg, struct error *e)
{
	const uid_t *owner = arg;

	if (st->st_uid != 0 && st->st_uid != *owner)
		return error_set(e,
		    "%s belongs to uid %u, neither root nor "
		    "uid %u",
		    path, (unsigned int)st->st_uid, (unsigned int)*owner);
	if (S_ISDIR(st->st_mode) && (st->st_mode & WRITABLE_BY_OTHERS) != 0 &&
	    (st->st_mode & S_ISVTX) == 0)
		return error_set(e, "%s is writable by others (mode %04o)",
		    path, (unsigned int)(st->st_mode & 07777));
	return 0;
}

int
path_ancestors_check(const char *dir, uid_t owner, struct error *e)
{
	return walk_ancestors(dir, check_trusted, &owner, e);
}

struct who {
	uid_t uid;
	gid_t gid;
};

static int
check_traversable(
    const char *path, const struct stat *st, const void *arg, struct error *e)
{
	const struct who *who = arg;
	mode_t bit = S_IXOTH;

	if (!S_ISDIR(st->st_mode) || who->uid == 0)
		return 0;
	if (st->st_uid == who->uid)
		bit = S_IXUSR;
	else if (st->st_gid == who->gid)
		bit = S_IXGRP;
	if ((st->st_mode & bit) != 0)
		return 0;
	return error_set(e, "uid %u may not pass through %s (mode %04o)",
	    (unsigned int)who->uid, path, (unsigned int)(st->st_mode & 07777));
}

int
path_traversable_check(const char *dir, uid_t uid, gid_t gid, struct error *e)
{
	const struct who who = {uid, gid};

	return walk_ancestors(dir, check_traversable, &who, e);
}

/* ---- private directories ------------------------------------------------ */

/* Until it has its owner, a directory is open to nobody else. */
#define FIRST_MODE(mode) ((mode)&0700)

static int
check_private(const char *path, const struct stat *st, uid_t uid,
    mode_t forbidden, struct error *e)
{
	if (st->st_uid != uid)
		return error_set(e, "%s belongs to uid %u, not to uid %u", path,
		    (unsigned int)st->st_uid, (unsigned int)uid);
	if ((st->st_mode & forbidden) != 0)
		return error_set(e, "%s has mode %04o: it may not have %04o",
		    path, (unsigned int)(st->st_mode & 07777),
		    (unsigned int)(st->st_mode & forbidden));
	return 0;
}

/* A new directory gets its mode and owner whatever the umask and we are. */
static int
dir_settle(const char *dir, mode_t mode, uid_t uid, gid_t gid, struct error *e)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = -1;

	if (fd == -1)
		return error_errno(e, "%s", dir);
	if ((uid != geteuid() || gid != getegid()) &&
	    fchown(fd, uid, gid) == -1)
		(void)error_errno(e, "%s: owner", dir);
	else if (fchmod(fd, mode) == -1)
		(void)error_errno(e, "%s: mode", dir);
	else
		rc = 0;
	(void)close(fd);
	return rc;
}

/*
 * What an interrupted start left between making it and its owner and mode:
 * ours, and meant for someone else, or closed to those who are meant to enter.
 * Only the empty can be removed so.
 */
static void
dir_remove_leftover(const char *dir, mode_t mode, uid_t uid)
{
	struct stat st;

	if (lstat(dir, &st) == -1 || !S_ISDIR(st.st_mode) ||
	    st.st_uid != geteuid())
		return;
	if (uid != geteuid() ||
	    ((st.st_mode & 07777) == FIRST_MODE(mode) &&
		mode != FIRST_MODE(mode)))
		(void)rmdir(dir);
}

int
path_private_dir(const char *dir, mode_t mode, mode_t forbidden, uid_t uid,
    gid_t gid, struct error *e)
{
	struct stat st;
	int fd;

	dir_remove_leftover(dir, mode, uid);
	if (mkdir(dir, FIRST_MODE(mode)) == 0) {
		if (dir_settle(dir, mode, uid, gid, e) == -1)
			return -1;
	} else if (errno != EEXIST) {
		return error_errno(e, "%s", dir);
	}
	fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 && (errno == ENOTDIR || errno == ELOOP))
		return error_set(e, "%s is not a real directory", dir);
	if (fd == -1 || fstat(fd, &st) == -1)
		(void)error_errno(e, "%s", dir);
	else if (check_private(dir, &st, uid, forbidden, e) == 0)
		return fd;
	if (fd != -1)
		(void)close(fd);
	return -1;
}

int
path_private_dirs(const char *root, const char *dir, mode_t mode, uid_t uid,
    gid_t gid, struct error *e)
{
	char *path, *slash;
	int fd = -1;

	if (!path_is_clean(root) || !path_is_clean(dir) ||
	    !path_contains(root, dir))
		return error_set(e, "%s does not lie below %s", dir, root);
	path = xstrdup(dir);
	slash = path + (strcmp(root, "/") == 0 ? 0 : strlen(root));
	while (*slash == '/') {
		slash += 1 + strcspn(slash + 1, "/");
		path[slash - path] = '\0';
		if (fd != -1)
			(void)close(fd);
		fd = path_private_dir(
		    path, mode, WRITABLE_BY_OTHERS, uid, gid, e);
		if (fd == -1)
			break;
		*slash = dir[slash - path];
	}
	if (strcmp(root, dir) == 0)
		fd = path_private_dir(
		    dir, mode, WRITABLE_BY_OTHERS, uid, gid, e);
	free(path);
	return fd;
}

/* ---- private files ------------------------------------------------------ */

static int
file_open(const char *path, uid_t uid, mode_t forbidden, struct error *e)
{
	/* Non-blocking: a FIFO in its place must not hold us up. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd == -1 && errno == ELOOP)
		return error_set(e, "%s is not private: a symbolic link", path);
	if (fd == -1)
		return error_errno(e, "%s", path);
	if (fstat(fd, &st) == -1)
		(void)error_errno(e, "%s", path);
	else if (!S_ISREG(st.st_mode))
		(void)error_set(e, "%s is not a regular file", path);
	else if (check_private(path, &st, uid, forbidden, e) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* At most MOST bytes, and one more to see that there are too many. */
static ssize_t
file_read(int fd, char *out, size_t most)
{
	size_t used = 0;
	ssize_t n;

	while (used <= most) {
		n = read(fd, out + used, most + 1 - used);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int
path_read_private(const char *path, uid_t uid, mode_t forbidden, size_t most,
    char **out, size_t *len, struct error *e)
{
	int fd = file_open(path, uid, forbidden, e);
	char *bytes;
	ssize_t n;

	if (fd == -1)
		return -1;
	bytes = xmalloc(most + 2);
	n = file_read(fd, bytes, most);
	if (n == -1)
		(void)error_errno(e, "%s", path);
	else if ((size_t)n > most)
		(void)error_set(e, "%s is larger than %zu bytes", path, most);
	(void)close(fd);
	if (n == -1 || (size_t)n > most) {
		free(bytes);
		return -1;
	}
	bytes[n] = '\0';
	*out = bytes;
	*len = (size_t)n;
	return 0;
}
