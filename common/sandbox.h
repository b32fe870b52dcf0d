/*
 * The walls of a child: Landlock and seccomp on Linux, sandbox_init on macOS
 * (sandbox_linux.c, sandbox_darwin.c; design 2.1, anchors 4.1, 4.2).
 */
#ifndef COMMON_SANDBOX_H
#define COMMON_SANDBOX_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/error.h"

/* Words that compose a role's system-call filter, like pledge's. */
enum sandbox_word {
	SANDBOX_STDIO = 1 << 0,  /* memory, clocks, poll, open descriptors */
	SANDBOX_SENDFD = 1 << 1, /* sendmsg with descriptors, memfd_create */
	SANDBOX_RECVFD = 1 << 2,
	SANDBOX_INET = 1 << 3,  /* TCP clients, threads of the resolver */
	SANDBOX_RPATH = 1 << 4, /* open and read files the rules allow */
	SANDBOX_WPATH = 1 << 5, /* make, write, lock, rename, remove them */
	SANDBOX_PIPE = 1 << 6,  /* pipe2 (the ledger's token pipes) */
};

enum sandbox_access { SANDBOX_READ, SANDBOX_WRITE };

/* Landlock rule: everything below one directory. */
struct sandbox_dir {
	const char *path; /* NULL ends the list; "" is SETUP's state_dir */
	enum sandbox_access access;
};

struct sandbox_profile {
	unsigned int words;
	struct sandbox_dir dirs[8];
};

/* What was put up, for READY and status. */
struct sandbox_report {
	bool seccomp;
	bool no_new_privs;
	bool dumpable;
	int landlock_abi; /* 0: none */
	char lacks[512];  /* rights this kernel's ABI does not know */
};

/*
 * Everything of PROFILE in its order: no_new_privs, Landlock (every right the
 * kernel's ABI knows), seccomp. STATE_DIR stands for "" in the dirs; a missing
 * optional directory (resolver files) is skipped. With INSECURE a wall that
 * cannot be put up is reported, else it is an error. Irreversible.
 */
int sandbox_enter(const struct sandbox_profile *profile, const char *state_dir,
    bool insecure, struct sandbox_report *report, struct error *e);

/* The kernel's Landlock ABI, 0 without; for status and the supervisor. */
int sandbox_landlock_abi(void);

/*
 * The worker's confinement (design 2.1, "landlock"): called in the forked
 * child, with the worker's ids, before exec. READ and WRITE are NULL-ended
 * lists of absolute directories, each of which must be there; in both programs
 * may be run. Added are the system's directories, those that resolv.conf leads
 * to, and harmless devices. From ABI 6 signals stay inside. Sets no_new_privs.
 * Async-signal-safe while it succeeds.
 */
int sandbox_confine_worker(const char *const *read_dirs,
    const char *const *write_dirs, struct error *e);

#endif
