#include <sys/ptrace.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <unistd.h>

#include "common/process.h"

#define NUMBERS_MOST (1 << 20)

/* There is no listing that cannot race: every number below the limit. */
int
process_seal(struct error *e)
{
	struct rlimit limit;
	rlim_t fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		return error_errno(e, "limit NOFILE");
	if (limit.rlim_cur == 0 || limit.rlim_cur > NUMBERS_MOST)
		return error_set(e, "limit NOFILE: too many to seal");
	for (fd = 3; fd < limit.rlim_cur; fd++) {
		if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) == -1 && errno != EBADF)
			return error_errno(e, "descriptor %d", (int)fd);
	}
	return 0;
}

void
process_close_from(int least)
{
	int fd, most = (int)sysconf(_SC_OPEN_MAX);

	for (fd = least; fd < most; fd++)
		(void)close(fd);
}

void
process_title(const char *title)
{
	(void)pthread_setname_np(title);
}

int
process_become(uid_t uid, gid_t gid, struct error *e)
{
	uid_t old = geteuid();

	if (old == 0 && setgroups(1, &gid) == -1)
		return error_errno(e, "setgroups");
	if (setregid(gid, gid) == -1 || setreuid(uid, uid) == -1)
		return error_errno(e, "setreuid %u", (unsigned int)uid);
	if (old != uid && (setuid(old) != -1 || seteuid(old) != -1))
		return error_set(e, "the old uid could be taken back");
	if (getuid() != uid || geteuid() != uid || getgid() != gid ||
	    getegid() != gid)
		return error_set(e, "the ids are not what they were set to");
	return 0;
}

/* The end of descriptor 3 is what ends us here. */
int
process_die_with(pid_t parent, struct error *e)
{
	if (getppid() == parent)
		return 0;
	errno = ESRCH;
	return error_errno(e, "parent %d", (int)parent);
}

int
process_hide(struct error *e)
{
	if (ptrace(PT_DENY_ATTACH, 0, NULL, 0) == -1)
		return error_errno(e, "PT_DENY_ATTACH");
	return 0;
}
