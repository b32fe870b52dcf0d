#include <sys/socket.h>
#include <sys/uio.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"

#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MOST)];
};

ssize_t
descriptors_send(int socket, const void *bytes, size_t len, const int *fds,
    size_t count, int flags)
{
	union control control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg = &control.align;
	size_t i, n = 0;

	assert(count <= DESCRIPTORS_MOST);
	for (i = 0; i < count; i++) {
		if (fds[i] == -1)
			continue;
		memcpy(CMSG_DATA(cmsg) + n * sizeof(int), &fds[i], sizeof(int));
		n++;
	}
	if (n > 0) {
		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n);
	}
	return sendmsg(socket, &mh, MSG_NOSIGNAL | flags);
}

/*
 * False when there was no room for one: it is closed. The kernel also fills
 * what the alignment adds to a control buffer, so that more may come than were
 * asked for.
 */
static bool
take_one(const unsigned char *at, int *fds, size_t count)
{
	size_t i = 0;
	int fd;

	memcpy(&fd, at, sizeof(fd));
	while (i < count && fds[i] != -1)
		i++;
	if (i == count) {
		(void)close(fd);
		return false;
	}
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	fds[i] = fd;
	return true;
}

/* All that came; false when that is not all that was sent. */
static bool
take_all(struct msghdr *mh, int *fds, size_t count)
{
	bool is_whole = (mh->msg_flags & MSG_CTRUNC) == 0;
	struct cmsghdr *cmsg;
	size_t i, n;

	for (cmsg = CMSG_FIRSTHDR(mh); cmsg != NULL;
	     cmsg = CMSG_NXTHDR(mh, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++)
			is_whole &= take_one(
			    CMSG_DATA(cmsg) + i * sizeof(int), fds, count);
	}
	return is_whole;
}

ssize_t
descriptors_receive(
    int socket, void *bytes, size_t size, int *fds, size_t count, int flags)
{
	union control control;
	struct iovec iov = {bytes, size};
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
	ssize_t n;
	size_t i;

	assert(count <= DESCRIPTORS_MOST);
	for (i = 0; i < count; i++)
		fds[i] = -1;
	n = recvmsg(socket, &mh, MSG_CMSG_CLOEXEC | flags);
	if (n == -1 || take_all(&mh, fds, count))
		return n;
	for (i = 0; i < count && fds[i] != -1; i++) {
		(void)close(fds[i]);
		fds[i] = -1;
	}
	errno = EBADMSG;
	return -1;
}
