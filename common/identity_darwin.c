#include <sys/sysctl.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/identity.h"

#define PARENTS_MAX 64

int
identity_boot_id(char out[static BOOT_ID_LEN + 1], struct error *e)
{
	size_t size = BOOT_ID_LEN + 1;

	if (sysctlbyname("kern.bootsessionuuid", out, &size, NULL, 0) == -1)
		return error_errno(e, "kern.bootsessionuuid");
	if (size != BOOT_ID_LEN + 1)
		return error_set(e, "kern.bootsessionuuid: not a boot id");
	return 0;
}

/* -1 with ESRCH when there is no such process, or only its zombie. */
static int
proc_read(pid_t pid, struct kinfo_proc *out)
{
	int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid};
	size_t size = sizeof(*out);

	if (sysctl(name, 4, out, &size, NULL, 0) == -1) {
		if (errno == EIO)
			errno = ESRCH;
		return -1;
	}
	if (size != 0 && out->kp_proc.p_stat != SZOMB)
		return 0;
	errno = ESRCH;
	return -1;
}

/* Starts are in microseconds, which is what this kernel counts in. */
int
identity_look(pid_t pid, struct identity *out)
{
	struct kinfo_proc p;

	if (proc_read(pid, &p) == -1)
		return -1;
	out->pgid = p.kp_eproc.e_pgid;
	out->started_ticks = (int64_t)p.kp_proc.p_starttime.tv_sec * 1000000 +
	    p.kp_proc.p_starttime.tv_usec;
	return 0;
}

pid_t
identity_parent(pid_t pid)
{
	struct kinfo_proc p;

	return pid > 0 && proc_read(pid, &p) == 0 ? p.kp_eproc.e_ppid : 0;
}

int
identity_descends(pid_t pid, pid_t ancestor)
{
	struct kinfo_proc p;
	int i;

	for (i = 0; i <= PARENTS_MAX; i++) {
		if (pid == ancestor)
			return 1;
		if (pid <= 0)
			return i == 0 ? -1 : 0;
		if (proc_read(pid, &p) == -1)
			return -1;
		pid = p.kp_eproc.e_ppid;
	}
	return -1;
}

int
identity_group_members(pid_t pgid)
{
	int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PGRP, (int)pgid};
	struct kinfo_proc *list;
	size_t size, i;
	int live = 0;

	if (pgid <= 1)
		return -1;
	if (kill(-pgid, 0) == -1 && errno == ESRCH)
		return 0;
	if (sysctl(name, 4, NULL, &size, NULL, 0) == -1)
		return -1;
	size += 16 * sizeof(*list); /* some may have come meanwhile */
	list = malloc(size);
	if (list == NULL || sysctl(name, 4, list, &size, NULL, 0) == -1) {
		free(list);
		return -1;
	}
	for (i = 0; i < size / sizeof(*list); i++)
		live += list[i].kp_proc.p_stat != SZOMB;
	free(list);
	return live;
}
