/*
 * A worker's process, from the fork to its exec (design 5, step 5; dispatch.md
 * 8.1). Everything is prepared before: the child only does what is listed.
 * spawn.c, and what is this kernel's own in spawn_linux.c, spawn_darwin.c.
 */
#ifndef SUPERVISOR_SPAWN_H
#define SUPERVISOR_SPAWN_H

#include "supervisor/supervisor.h"

#define SPAWN_TEXT_MAX 256

struct spawn {
	const char *file; /* absolute */
	char *const *argv, *const *env;
	const char *cgroup;            /* made already; or NULL */
	int route;                     /* O_PATH, to be the working directory */
	const char *route_path;        /* what errors call it */
	const struct account *account; /* to become, when it is not us */
	const char *own_dir; /* the agent's; made when missing; or NULL */
	bool is_confined;    /* by the two lists, NULL-ended */
	bool no_new_privs;
	const char *const *read_dirs, *const *write_dirs;
};

struct spawned {
	struct identity identity;  /* pgid is pid: it leads its group */
	int pidfd;                 /* -1 where there is none */
	int input, output, errors; /* our ends of its stdio */
	/*
	 * Ends without a byte when the program runs, with a text when it could
	 * not be started: give it to spawn_verdict(). Non-blocking.
	 */
	int status;
};

/*
 * Fork. -1 with the error set when there is no process; all descriptors are
 * the caller's then as before. The child has a session and group of its own
 * and no parent-death signal.
 */
int spawn_worker(const struct spawn *how, struct spawned *out, struct error *e);

/* 1 it runs (or ran), 0 not known yet, -1 not started: the text says why. */
int spawn_verdict(int status, char text[static SPAWN_TEXT_MAX]);

/* Close what is not -1. The process is not touched. */
void spawned_close(struct spawned *s);

/* ---- spawn_linux.c, spawn_darwin.c -------------------------------------- */

/*
 * fork() into the cgroup (NULL: where we are) with a pidfd if there can be
 * one. *OUTSIDE in the child: it has to write itself into the cgroup.
 */
pid_t spawn_fork(int cgroup_fd, int *pidfd, bool *outside);
/* A pidfd of PID as it is now, or -1. */
int spawn_pidfd(pid_t pid);
/* No program run from here on gains rights by it. */
int spawn_no_new_privs(void);
/* What FD is open on, links resolved. -1 with errno. */
int spawn_path_of(int fd, char *out, size_t size);

#endif
