/*
 * Who a process is: pid plus the kernel's start time of it plus the boot
 * (dispatch.md 8.2), and what holds a process tree together: its group, or a
 * cgroup of its own (design 5.1). identity_linux.c, identity_darwin.c.
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
/* Is the recorded process the one that has the pid now? Another boot: gone. */
enum identity_is identity_check(const struct identity *recorded);
/* The parent of PID, 0 when there is none or it cannot be read. */
pid_t identity_parent(pid_t pid);
/*
 * Does a chain of at most 64 parents lead from PID to ANCESTOR? 1 yes, 0 no,
 * -1 when a link of the chain could not be read.
 */
int identity_descends(pid_t pid, pid_t ancestor);
/* Members of a group that are not zombies: count, or -1 if unreadable. */
int identity_group_members(pid_t pgid);

/*
 * Cgroups, v2 or the unified part of a hybrid host. BASE is a directory of
 * connectd's own under it.
 */
/* Find or make a writable base; "" in OUT when this host has none. */
int cgroup_base(char *out, size_t size, struct error *e);
int cgroup_make(const char *path, struct error *e);
/* 1 populated, 0 empty, -1 error; ENOENT in e->code when it is missing. */
int cgroup_populated(const char *path, struct error *e);
int cgroup_kill(const char *path, struct error *e);
int cgroup_remove(const char *path, struct error *e);
/* Does /proc/PID/cgroup name a path at or below this one? 1, 0, -1. */
int cgroup_holds(const char *path, pid_t pid);

#endif
