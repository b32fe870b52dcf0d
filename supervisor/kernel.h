/*
 * What only this kernel's own calls can do for the supervisor and connectctl:
 * kernel_linux.c, kernel_darwin.c.
 */
#ifndef SUPERVISOR_KERNEL_H
#define SUPERVISOR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* The path of the running executable, links resolved. */
int kernel_own_path(char *out, size_t size, struct error *e);

/*
 * Orphans of what this process starts become its children, its memory and
 * /proc entries are nobody else's, and it leaves no core.
 */
int kernel_harden(struct error *e);

/*
 * The pids of this process's children, zombies included: how many of them are
 * in LIST, at most MOST; -1 when this kernel does not say.
 */
int kernel_children(pid_t *list, int most);

/*
 * In a forked child: run the opened executable EXE. Descriptors from LEAST on
 * do not reach it. Returns only on failure. Async-signal-safe.
 */
void kernel_exec(int exe, int least, char *const argv[], char *const envp[]);

/* Who connected a unix socket, as the kernel noted it at the connect. */
struct socket_peer {
	pid_t pid; /* 0: not known */
	uid_t uid;
	gid_t gid;
	int pidfd; /* of that very process, or -1 where there is none */
};

/* -1 with errno. The caller closes the pidfd. */
int kernel_socket_peer(int fd, struct socket_peer *out);
/* Is that process, if it can be told, still there? */
bool kernel_socket_peer_lives(const struct socket_peer *peer);
/* Was GID among its groups at the connect? */
bool kernel_socket_peer_in_group(
    int fd, const struct socket_peer *peer, gid_t gid);

/* What kernel_watch_read() saw happen. */
enum watch_news {
	WATCH_NOTHING, /* other files */
	WATCH_CHANGED, /* the file was written, replaced, removed */
	WATCH_GONE     /* the directory itself; the watch is over */
};

/* A descriptor that is readable when something in DIR changed, or -1. */
int kernel_watch_open(const char *dir);
/* Take all that is to be read; what of it concerns the file NAME? */
enum watch_news kernel_watch_read(int fd, const char *name);

#endif
