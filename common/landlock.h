/*
 * Landlock: a domain that a process enters and never leaves (Linux only).
 * Every right that both the kernel's ABI and this file know is handled, since
 * what is not handled is allowed; rules then give back what is needed.
 */
#ifndef COMMON_LANDLOCK_H
#define COMMON_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* What a rule gives; the domain leaves out what its ABI does not know. */
#define LANDLOCK_GIVES_READ (1U << 0)  /* read files, list directories */
#define LANDLOCK_GIVES_WRITE (1U << 1) /* write, truncate, make, remove */
#define LANDLOCK_GIVES_EXECUTE (1U << 2)
#define LANDLOCK_GIVES_IOCTL (1U << 3) /* of devices */

/* What is closed besides the file system, where the ABI knows it. */
#define LANDLOCK_CLOSES_BIND (1U << 0)     /* TCP */
#define LANDLOCK_CLOSES_CONNECT (1U << 1)  /* TCP */
#define LANDLOCK_CLOSES_SIGNALS (1U << 2)  /* to processes outside */
#define LANDLOCK_CLOSES_ABSTRACT (1U << 3) /* unix sockets outside */

/* Below it a rename between directories cannot be allowed. */
#define LANDLOCK_ABI_LEAST 2

struct landlock {
	int abi;
	int fd;
};

/* The kernel's ABI; 0 without Landlock. */
int landlock_abi(void);
/* "refer(2) truncate(3) ...": rights, with their ABI, beyond this one. */
void landlock_lacks(int abi, char *out, size_t size);

/* The functions below are async-signal-safe while they succeed. */

int landlock_prepare(struct landlock *l, unsigned int closes, struct error *e);
/*
 * A rule for everything below the directory PATH, or for one file that is
 * never renamed over, such as a device. A MAY_MISS one is skipped when there
 * is no such name.
 */
int landlock_allow(const struct landlock *l, const char *path,
    unsigned int gives, bool may_miss, struct error *e);
/* Read below where /etc/resolv.conf leads; missing directories are skipped. */
int landlock_allow_resolver(const struct landlock *l, struct error *e);
/* Enter, and drop the rule set. Sets no_new_privs, which that needs. */
int landlock_enter(struct landlock *l, struct error *e);
/* Drop the rule set without entering. */
void landlock_drop(struct landlock *l);

#endif
