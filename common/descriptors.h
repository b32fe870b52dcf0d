/*
 * Descriptors beside the bytes of a stream socket (SCM_RIGHTS). Both functions
 * are one system call each, with its errno; EINTR is the caller's.
 */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

#include <sys/types.h>

#include <stddef.h>

/* Beside one piece of bytes. */
#define DESCRIPTORS_MOST 8

/*
 * Send at least one byte, and COUNT descriptors with the first of them; those
 * that are -1 are left out. They stay the caller's. Never a SIGPIPE. FLAGS: 0
 * or MSG_DONTWAIT. How many bytes have left, or -1: then no descriptor has.
 */
ssize_t descriptors_send(int socket, const void *bytes, size_t len,
    const int *fds, size_t count, int flags);

/*
 * Receive up to SIZE bytes and the descriptors beside them, COUNT at the most,
 * into FDS: close-on-exec, the caller's from now on; what did not come is -1.
 * FLAGS as above. How many bytes came, 0 at the end, or -1 and no descriptor:
 * with EBADMSG there came more than COUNT, or one was lost on its way (we have
 * too many open). What did come is closed then and its bytes are gone: the
 * stream is of no use any more.
 */
ssize_t descriptors_receive(
    int socket, void *bytes, size_t size, int *fds, size_t count, int flags);

#endif
