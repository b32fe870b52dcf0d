#include <sys/prctl.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/process.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* A descriptor closed meanwhile is fine: there is nothing left to seal. */
static int
seal_one(int fd, struct error *e)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags == -1)
		return errno == EBADF ? 0 : error_errno(e, "descriptor %d", fd);
	if (fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == -1)
		return error_errno(e, "descriptor %d", fd);
	return 0;
}

/* For kernels before 5.11. */
static int
seal_listed(struct error *e)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char *end;
	long fd;
	int rc = 0;

	if (dir == NULL)
		return error_errno(e, "/proc/self/fd");
	while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		fd = strtol(entry->d_name, &end, 10);
		if (end == entry->d_name || *end != '\0' || fd < 0 ||
		    fd > INT_MAX)
			rc = error_set(e, "/proc/self/fd: not a number in it");
		else if (fd >= 3 && fd != dirfd(dir))
			rc = seal_one((int)fd, e);
	}
	if (rc == 0 && errno != 0)
		rc = error_errno(e, "/proc/self/fd");
	(void)closedir(dir);
	return rc;
}

int
process_seal(struct error *e)
{
	if (syscall(SYS_close_range, 3U, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
		return 0;
	/* An older kernel knows neither the call nor, before 5.11, the flag. */
	if (errno != ENOSYS && errno != EINVAL)
		return error_errno(e, "close_range");
	return seal_listed(e);
}

void
process_close_from(int least)
{
	(void)syscall(SYS_close_range, (unsigned int)least, ~0U, 0U);
}

void
process_title(const char *title)
{
	(void)prctl(PR_SET_NAME, title);
}

/* Nothing of what we were may come back: try it, then look at all the ids. */
static int
ids_are_final(
    uid_t uid, gid_t gid, uid_t old_uid, gid_t old_gid, struct error *e)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (old_uid != uid &&
	    (setuid(old_uid) != -1 || seteuid(old_uid) != -1 ||
		setresuid(old_uid, old_uid, old_uid) != -1))
		return error_set(e, "the old uid could be taken back");
	if (old_gid != gid && uid != 0 &&
	    (setgid(old_gid) != -1 || setegid(old_gid) != -1))
		return error_set(e, "the old gid could be taken back");
	if (getresuid(&ruid, &euid, &suid) == -1 ||
	    getresgid(&rgid, &egid, &sgid) == -1)
		return error_errno(e, "getresuid");
	if (ruid != uid || euid != uid || suid != uid || rgid != gid ||
	    egid != gid || sgid != gid)
		return error_set(e, "the ids are not what they were set to");
	return 0;
}

int
process_become(uid_t uid, gid_t gid, struct error *e)
{
	uid_t old_uid = geteuid();
	gid_t old_gid = getegid();

	if (old_uid == 0 && setgroups(0, NULL) == -1)
		return error_errno(e, "setgroups");
	if (setresgid(gid, gid, gid) == -1)
		return error_errno(e, "setresgid %u", (unsigned int)gid);
	if (setresuid(uid, uid, uid) == -1)
		return error_errno(e, "setresuid %u", (unsigned int)uid);
	return ids_are_final(uid, gid, old_uid, old_gid, e);
}

int
process_die_with(pid_t parent, struct error *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		return error_errno(e, "parent-death signal");
	/* It may have died before that: then we have another parent. */
	if (getppid() == parent)
		return 0;
	errno = ESRCH;
	return error_errno(e, "parent %d", (int)parent);
}

int
process_hide(struct error *e)
{
	if (prctl(PR_SET_DUMPABLE, 0) == -1)
		return error_errno(e, "not dumpable");
	return 0;
}
