/*
 * The instance lock of an agent on an account (operator.md 4): whoever has the
 * kernel's lock on this file, which lies beside the state directory, is the
 * one connector of it. It goes with the last process that has the descriptor.
 */
#ifndef COMMON_LOCK_H
#define COMMON_LOCK_H

#include <stdint.h>

#include "common/error.h"

/* Beside the state directories in ROOT. The caller frees it. */
char *lock_path(const char *root, int64_t account, int64_t agent);

/* Open the file, made if it is not there; not locked yet. -1 with E. */
int lock_open(const char *path, struct error *e);

/*
 * Is FD still what PATH names, and a private file of ours? Asked again once it
 * is locked: a lock on a file that was replaced excludes nobody.
 */
int lock_check(int fd, const char *path, struct error *e);

#endif
