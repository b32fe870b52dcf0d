/*
 * Who a process is: pid plus the kernel's start time of it plus the boot
 * (dispatch.md 8.2), and what holds a process tree together: its group, or a
 * cgroup of its own (design 5.1). identity.c, identity_linux.c or _darwin.c.
 */
#ifndef COMMON_IDENTITY_H
#define COMMON_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define BOOT_ID_LEN 36

struct identity {
	pid_t pid;
	pid_t pgid;
	int64_t started_ticks; /* field 22 of /proc/PID/stat; 0: not known */
	char boot_id[BOOT_ID_LEN + 1];
};

enum identity_is {
	IDENTITY_SAME,   /* that very process lives (not a zombie) */
	IDENTITY_GONE,   /* no such process, a zombie, or another one */
	IDENTITY_UNKNOWN /* cannot be told: nothing may be done on it */
};

/* This boot's id. -1 when the kernel does not say. */
int identity_boot_id(char out[static BOOT_ID_LEN + 1], struct error *e);
/* Read PID's identity now. -1 with ESRCH in e->code when it is gone. */
int identity_read(pid_t pid, struct identity *out, struct error *e);
/*
 * Is the recorded process the one that has the pid now? Equality of the start
 * is exact. Another boot, or no pid: gone. A pid in use whose start was never
 * recorded: unknown.
 */
enum identity_is identity_check(const struct identity *recorded);
/*
 * The kernel's part of the two above: group and start of a PID above 0 that is
 * no zombie, and nothing else of OUT. -1 with errno, ESRCH only when it is
 * gone.
 */
int identity_look(pid_t pid, struct identity *out);
/* The parent of PID, 0 when there is none or it cannot be read. */
pid_t identity_parent(pid_t pid);
/*
 * Does a chain of at most 64 parents lead from PID to ANCESTOR (or is it the
 * same)? 1 yes, 0 no, -1 when a link of the chain could not be read, or when
 * the chain is longer: who wants to hide must not get a "no" by forking.
 */
int identity_descends(pid_t pid, pid_t ancestor);
/*
 * Members of a group that are not zombies. It is looked at one by one: 0 is a
 * proof that none is left only where none of them can have forked meanwhile.
 * -1 when it cannot be told. A group of 1 or less is refused (-1).
 */
int identity_group_members(pid_t pgid);

/*
 * Cgroups, v2 or the unified part of a hybrid host (cgroup_linux.c). Paths are
 * those of the file system. BASE is a directory of connectd's own, in which
 * each attempt's cgroup is made.
 */
/*
 * Find or make a writable base below this process's own cgroup. Its name,
 * "connectd-" and three numbers, is that of this cgroup namespace and of what
 * is mounted: paths that share it and are seen here are, within a boot, of the
 * same view.
 * Alone in a cgroup that is delegated to it, this process first moves to a
 * leaf, so that controllers for limits can be had. "" in OUT when this host
 * has no such place, or one without cgroup.kill; -1 only for a broken host.
 */
int cgroup_base(char *out, size_t size, struct error *e);
/* Does PATH lie in the mount of cgroups that this process sees? */
bool cgroup_is_seen(const char *path);
/* A new cgroup; one of that name is an error with EEXIST in e->code. */
int cgroup_make(const char *path, struct error *e);
/* Write "memory.max" or another control file. ENOENT: no such controller. */
int cgroup_limit(
    const char *path, const char *name, const char *value, struct error *e);
/* 1 populated, 0 empty, -1 error; ENOENT in e->code when it is missing. */
int cgroup_populated(const char *path, struct error *e);
/* SIGKILL to all in it and below, forks included. */
int cgroup_kill(const char *path, struct error *e);
/* With the cgroups that were made below it. A missing one is fine. */
int cgroup_remove(const char *path, struct error *e);
/* Is PID in this cgroup or below it? 1, 0, -1 when it cannot be told. */
int cgroup_holds(const char *path, pid_t pid);

#endif
