/*
 * What a process settles about itself before it meets anything foreign:
 * inherited descriptors, signals, ids, limits, and the death of its parent
 * (design 2.1; process.c, process_linux.c, process_darwin.c).
 */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/error.h"

/*
 * Mark every inherited descriptor from 3 on close-on-exec; none is read or
 * closed. Must be the first step of a program. Fails closed: -1 when not all
 * of them could be marked, and then the program may not go on.
 */
int process_seal(struct error *e);

/* Close what is open from LEAST on. */
void process_close_from(int least);

/*
 * A session of its own, all signals at their defaults and unblocked but INT,
 * TERM, HUP and PIPE, which are ignored, and umask 077.
 */
int process_settle(struct error *e);

/* The name that ps and top show; cut at what the system keeps. */
void process_title(const char *title);

/*
 * No core, NOFILE descriptors (as far as the hard limit lets, but never below
 * 256, which descriptors in flight need), and FSIZE 0 unless WRITES_FILES.
 */
int process_limit(rlim_t nofile, bool writes_files, struct error *e);

/*
 * Become UID and GID without supplementary groups, for good: the way back is
 * tried and must fail. Whoever is not root keeps what it is, groups included,
 * and cannot ask for other ids.
 */
int process_become(uid_t uid, gid_t gid, struct error *e);

/*
 * Be killed when PARENT dies. After process_become(), for a change of ids
 * clears it. -1 with ESRCH in e->code when PARENT is gone already. Without
 * such a signal in the system only the latter is looked at.
 */
int process_die_with(pid_t parent, struct error *e);

/* Neither core nor ptrace nor /proc/self/mem for others of the same user. */
int process_hide(struct error *e);

#endif
