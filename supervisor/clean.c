#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/process.h"
#include "supervisor/become.h"
#include "supervisor/session.h"

/* Of the process that works with the worker's ids. */
#define CLEAN_SECONDS 60
/* A descriptor a level is open while one descends. */
#define DEPTH_MAX 128

/* What is being emptied, and how much of it was lifted to its top. */
struct cleaning {
	int top;
	unsigned lifted;
};

static int dir_empty(struct cleaning *c, int at, const char *name, int depth);

/* Open a directory to look into it; one without rights is given them. */
static int
dir_open(int at, const char *name)
{
	static const int flags =
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, name, flags);

	if (fd == -1 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
		fd = openat(at, name, flags);
	return fd;
}

/* To the top, where a later pass finds it: nothing is too deep for that. */
static int
dir_lift(struct cleaning *c, int at, const char *name)
{
	char place[32];
	int rc;

	/* Without the right to write it cannot get another parent. */
	if (fchmodat(at, name, 0700, 0) == -1)
		return -1;
	do {
		(void)snprintf(place, sizeof(place), "lifted-%u", ++c->lifted);
		rc = renameat(at, name, c->top, place);
	} while (rc == -1 &&
	    (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	return rc;
}

/* Unlink NAME, or empty it and remove it when it is a directory. */
static int
entry_remove(struct cleaning *c, int at, const char *name, int depth)
{
	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM && errno != EACCES)
		return -1;
	if (depth == DEPTH_MAX)
		return dir_lift(c, at, name);
	if (dir_empty(c, at, name, depth + 1) == -1)
		return -1;
	return unlinkat(at, name, AT_REMOVEDIR);
}

/* One pass over a directory; how many entries went. */
static int
dir_pass(struct cleaning *c, DIR *dir, int depth, int *left)
{
	const struct dirent *entry;
	int gone = 0;

	*left = 0;
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (entry_remove(c, dirfd(dir), entry->d_name, depth) == 0)
			gone++;
		else
			(*left)++;
	}
	return gone;
}

/* In passes: some file systems skip entries while others are removed. */
static int
dir_empty(struct cleaning *c, int at, const char *name, int depth)
{
	int fd = dir_open(at, name), left = 1;
	DIR *dir;

	if (fd == -1)
		return -1;
	if (depth == 0)
		c->top = fd;
	(void)fchmod(fd, 0700);
	dir = fdopendir(fd);
	if (dir == NULL) {
		(void)close(fd);
		return -1;
	}
	while (dir_pass(c, dir, depth, &left) > 0)
		continue;
	(void)closedir(dir);
	errno = ENOTEMPTY;
	return left == 0 ? 0 : -1;
}

/* In a process with the worker's ids: it can harm nobody but the worker. */
static void
temp_empty(const struct sessions *s, const char *temp)
{
	struct cleaning c = {.top = -1};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(CLEAN_SECONDS);
		if (become_account(s->account) == -1)
			exit_now(EXIT_WALLS);
		exit_now(dir_empty(&c, s->cache_fd, temp, 0) == 0
			? EXIT_OK
			: EXIT_FAILED);
	}
	while (pid != -1 && waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
}

/* Is it gone? */
static bool
temp_remove(const struct sessions *s, const char *temp)
{
	temp_empty(s, temp);
	return unlinkat(s->cache_fd, temp, AT_REMOVEDIR) == 0 ||
	    errno == ENOENT;
}

/* What keeps its temp directory keeps its own, by which it is found again. */
static void
session_clean(const struct sessions *s, const char *name)
{
	struct cleaning c = {.top = -1};
	session_name temp;

	/* Our own: nobody else can have put anything there. */
	(void)dir_empty(&c, s->root_fd, name, 0);
	session_temp_name(s, name, temp);
	if (temp_remove(s, temp))
		(void)unlinkat(s->root_fd, name, AT_REMOVEDIR);
}

static void
clean(const struct sessions *s, const session_name *names, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (session_is_name(names[i]))
			session_clean(s, names[i]);
		else
			(void)temp_remove(s, names[i]);
	}
}

/* Who reads connectd's lines is to see their end while this still works. */
static void
streams_drop(void)
{
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (fd = STDIN_FILENO; null != -1 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
}

void
clean_start(const struct sessions *s, const session_name *names, size_t count)
{
	const int keep[] = {s->root_fd, s->cache_fd};
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		become_plain();
		streams_drop();
		become_alone(keep, sizeof(keep) / sizeof(keep[0]));
		process_title("connectd-clean");
		clean(s, names, count);
		exit_now(EXIT_OK);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid == -1)
		log_warn("fork: session directories are left behind");
}
