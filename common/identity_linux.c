#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/identity.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define STAT_MAX 1024 /* far above what its fields can fill */
#define PARENTS_MAX 64

struct stat_line {
	char state;
	pid_t parent, group;
	long long threads;
	int64_t started_ticks;
};

/* A small file of /proc, whole. The length, or -1 with errno. */
static ssize_t
proc_read(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int saved;

	if (fd == -1)
		return -1;
	n = read(fd, out, size - 1);
	saved = errno;
	(void)close(fd);
	errno = saved;
	if (n >= 0)
		out[n] = '\0';
	return n;
}

int
identity_boot_id(char out[static BOOT_ID_LEN + 1], struct error *e)
{
	char text[BOOT_ID_LEN + 2];
	ssize_t n = proc_read(BOOT_ID_FILE, text, sizeof(text));

	if (n == -1)
		return error_errno(e, BOOT_ID_FILE);
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) != BOOT_ID_LEN)
		return error_set(e, BOOT_ID_FILE ": no boot id in it");
	memcpy(out, text, BOOT_ID_LEN + 1);
	return 0;
}

/*
 * Fields 3, 4, 5, 20 and 22, counted from the last ')': the name in front of
 * it is the process's own choice.
 */
static int
stat_parse(const char *text, struct stat_line *out)
{
	const char *at = strrchr(text, ')');
	long long parent, group, threads, started;
	char state;

	if (at == NULL ||
	    sscanf(at + 1,
		" %c %lld %lld %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d"
		" %*d %*d %*d %lld %*d %lld",
		&state, &parent, &group, &threads, &started) != 5)
		return -1;
	if (parent < 0 || parent > INT_MAX || group < 0 || group > INT_MAX ||
	    started <= 0)
		return -1;
	*out = (struct stat_line){
	    state, (pid_t)parent, (pid_t)group, threads, started};
	return 0;
}

/*
 * 0; or -1, and errno is ESRCH only if there is no such process: a /proc that
 * hides it from us (hidepid, or none mounted) says the same as one in which
 * it is gone, so the kernel is asked.
 */
static int
stat_read(pid_t pid, struct stat_line *out)
{
	char path[64], text[STAT_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (proc_read(path, text, sizeof(text)) > 0 &&
	    stat_parse(text, out) == 0)
		return 0;
	if (kill(pid, 0) == -1 && errno == ESRCH)
		return -1;
	errno = EIO;
	return -1;
}

/* A process whose first thread alone has ended shows as a zombie and runs. */
static bool
is_dead(const struct stat_line *st)
{
	return st->threads <= 1 &&
	    (st->state == 'Z' || st->state == 'X' || st->state == 'x');
}

int
identity_look(pid_t pid, struct identity *out)
{
	struct stat_line st;

	if (stat_read(pid, &st) == -1)
		return -1;
	if (is_dead(&st)) {
		errno = ESRCH;
		return -1;
	}
	out->pgid = st.group;
	out->started_ticks = st.started_ticks;
	return 0;
}

pid_t
identity_parent(pid_t pid)
{
	struct stat_line st;

	return pid > 0 && stat_read(pid, &st) == 0 ? st.parent : 0;
}

int
identity_descends(pid_t pid, pid_t ancestor)
{
	struct stat_line st;
	int i;

	for (i = 0; i <= PARENTS_MAX; i++) {
		if (pid == ancestor)
			return 1;
		if (pid <= 0)
			return i == 0 ? -1 : 0;
		if (stat_read(pid, &st) == -1)
			return -1;
		pid = st.parent;
	}
	return -1;
}

/* A name of /proc that is a process, or 0. */
static pid_t
entry_pid(const char *name)
{
	long pid;
	char *end;

	if (!isdigit((unsigned char)name[0]))
		return 0;
	pid = strtol(name, &end, 10);
	return *end == '\0' && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* All processes of a group that /proc shows, and the live ones among them. */
static int
group_list(pid_t pgid, int *live, int *all)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct stat_line st;
	int rc = 0;
	pid_t pid;

	*live = *all = 0;
	if (dir == NULL)
		return -1;
	while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if ((pid = entry_pid(entry->d_name)) == 0)
			continue;
		if (stat_read(pid, &st) == -1)
			rc = errno == ESRCH ? 0 : -1;
		else if (st.group == pgid) {
			(*all)++;
			*live += !is_dead(&st);
		}
	}
	if (errno != 0)
		rc = -1;
	(void)closedir(dir);
	return rc;
}

int
identity_group_members(pid_t pgid)
{
	int live, all;

	if (pgid <= 1)
		return -1;
	if (kill(-pgid, 0) == -1 && errno == ESRCH)
		return 0;
	if (group_list(pgid, &live, &all) == -1)
		return -1;
	/* The kernel knows members that /proc does not show us. */
	if (all == 0 && !(kill(-pgid, 0) == -1 && errno == ESRCH))
		return -1;
	return live;
}
