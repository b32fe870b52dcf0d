/* System calls: their classes, the bytes they carry, and how one fails. */
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "tests/crash/killat.h"

#if !defined(__x86_64__)
#error "killat knows the registers of x86_64 only"
#endif

#define IOV_MOST 64

/* Where the bytes are: argument 1 is a buffer, an iovec or a msghdr. */
enum shape { NO_BYTES, A_BUFFER, AN_IOVEC, A_MSGHDR };

struct call_row {
	uint64_t number;
	const char *name;
	unsigned classes;
	bool has_fd; /* as its first argument */
	enum shape shape;
	int flags; /* which argument must have O_CREAT or O_TRUNC; 0: none */
};

#define STREAM (CLASS_WRITE | CLASS_SEND)
#define SYNC (CLASS_WRITE | CLASS_SYNC)
#define NAME (CLASS_WRITE | CLASS_NAME)
#define ROW(name, ...)                         \
	{                                      \
		SYS_##name, #name, __VA_ARGS__ \
	}

const char *const class_names[CLASSES] = {
    "write", "send", "sync", "name", "read", "alloc"};

static const struct call_row rows[] = {
    ROW(write, STREAM, true, A_BUFFER, 0),
    ROW(writev, STREAM, true, AN_IOVEC, 0),
    ROW(sendto, STREAM, true, A_BUFFER, 0),
    ROW(sendmsg, STREAM, true, A_MSGHDR, 0),
    ROW(sendmmsg, STREAM, true, NO_BYTES, 0),
    ROW(sendfile, STREAM, true, NO_BYTES, 0),
    ROW(pwrite64, CLASS_WRITE, true, A_BUFFER, 0),
    ROW(pwritev, CLASS_WRITE, true, AN_IOVEC, 0),
    ROW(pwritev2, CLASS_WRITE, true, AN_IOVEC, 0),
    ROW(ftruncate, CLASS_WRITE, true, NO_BYTES, 0),
    ROW(fallocate, CLASS_WRITE, true, NO_BYTES, 0),
    ROW(fchmod, CLASS_WRITE, true, NO_BYTES, 0),
    ROW(fchown, CLASS_WRITE, true, NO_BYTES, 0),
    ROW(truncate, CLASS_WRITE, false, NO_BYTES, 0),
    ROW(chmod, CLASS_WRITE, false, NO_BYTES, 0),
    ROW(fchmodat, CLASS_WRITE, false, NO_BYTES, 0),
    ROW(chown, CLASS_WRITE, false, NO_BYTES, 0),
    ROW(fchownat, CLASS_WRITE, false, NO_BYTES, 0),
    ROW(fsync, SYNC, true, NO_BYTES, 0),
    ROW(fdatasync, SYNC, true, NO_BYTES, 0),
    ROW(sync_file_range, SYNC, true, NO_BYTES, 0),
    ROW(msync, SYNC, false, NO_BYTES, 0),
    ROW(rename, NAME, false, NO_BYTES, 0),
    ROW(renameat, NAME, false, NO_BYTES, 0),
    ROW(renameat2, NAME, false, NO_BYTES, 0),
    ROW(unlink, NAME, false, NO_BYTES, 0),
    ROW(unlinkat, NAME, false, NO_BYTES, 0),
    ROW(link, NAME, false, NO_BYTES, 0),
    ROW(linkat, NAME, false, NO_BYTES, 0),
    ROW(symlink, NAME, false, NO_BYTES, 0),
    ROW(symlinkat, NAME, false, NO_BYTES, 0),
    ROW(mkdir, NAME, false, NO_BYTES, 0),
    ROW(mkdirat, NAME, false, NO_BYTES, 0),
    ROW(rmdir, NAME, false, NO_BYTES, 0),
    ROW(open, NAME, false, NO_BYTES, 1),
    ROW(openat, NAME, false, NO_BYTES, 2),
    ROW(read, CLASS_READ, true, A_BUFFER, 0),
    ROW(readv, CLASS_READ, true, AN_IOVEC, 0),
    ROW(pread64, CLASS_READ, true, A_BUFFER, 0),
    ROW(recvfrom, CLASS_READ, true, A_BUFFER, 0),
    ROW(recvmsg, CLASS_READ, true, A_MSGHDR, 0),
    ROW(kill, 0, false, NO_BYTES, 0), /* of no class: by its name */
    ROW(mmap, CLASS_ALLOC, false, NO_BYTES, 0),
    ROW(mremap, CLASS_ALLOC, false, NO_BYTES, 0),
    ROW(brk, CLASS_ALLOC, false, NO_BYTES, 0),
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

struct call
call_of(uint64_t number, const uint64_t *args)
{
	struct call c = {NULL, {0}};
	size_t i;

	for (i = 0; i < ROW_COUNT; i++) {
		if (rows[i].number != number)
			continue;
		if (rows[i].flags == 0 ||
		    (args[rows[i].flags] & (O_CREAT | O_TRUNC)) != 0)
			c.row = &rows[i];
		break;
	}
	memcpy(c.args, args, sizeof(c.args));
	return c;
}

const struct call_row *
call_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < ROW_COUNT; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

unsigned
call_classes(const struct call *c)
{
	return c->row == NULL ? 0 : c->row->classes;
}

const char *
call_name(const struct call *c)
{
	return c->row == NULL ? "" : c->row->name;
}

int
call_fd(const struct call *c)
{
	return c->row != NULL && c->row->has_fd ? (int)c->args[0] : -1;
}

/* ---- its bytes ---------------------------------------------------------- */

static int
memory_read(pid_t tid, uint64_t from, void *to, size_t len)
{
	struct iovec here = {to, len};
	struct iovec there = {(void *)(uintptr_t)from, len};
	ssize_t n;

	if (len == 0)
		return 0;
	n = process_vm_readv(tid, &here, 1, &there, 1, 0);
	if (n == (ssize_t)len)
		return 0;
	if (n >= 0)
		errno = EFAULT;
	return -1;
}

/* At most LEFT bytes of the buffer; how many are left is told. */
static int
buffer_read(
    pid_t tid, uint64_t from, size_t len, size_t *left, struct buffer *b)
{
	char *bytes;
	int rc;

	if (len > *left)
		len = *left;
	bytes = xmalloc(len + 1);
	rc = memory_read(tid, from, bytes, len);
	if (rc == 0) {
		buffer_add(b, bytes, len);
		*left -= len;
	}
	free(bytes);
	return rc;
}

static int
iovec_read(
    pid_t tid, uint64_t from, uint64_t count, size_t left, struct buffer *b)
{
	struct iovec iov[IOV_MOST];
	size_t i;

	if (count > IOV_MOST)
		count = IOV_MOST;
	if (memory_read(tid, from, iov, count * sizeof(iov[0])) == -1)
		return -1;
	for (i = 0; i < count && left > 0; i++) {
		if (buffer_read(tid, (uintptr_t)iov[i].iov_base, iov[i].iov_len,
			&left, b) == -1)
			return -1;
	}
	return 0;
}

int
call_bytes(pid_t tid, const struct call *c, size_t done, struct buffer *b)
{
	size_t left = done < BYTES_MOST ? done : BYTES_MOST;
	struct msghdr mh;

	switch (c->row->shape) {
	case A_BUFFER:
		return buffer_read(tid, c->args[1], c->args[2], &left, b);
	case AN_IOVEC:
		return iovec_read(tid, c->args[1], c->args[2], left, b);
	case A_MSGHDR:
		if (memory_read(tid, c->args[1], &mh, sizeof(mh)) == -1)
			return -1;
		return iovec_read(
		    tid, (uintptr_t)mh.msg_iov, mh.msg_iovlen, left, b);
	default:
		return 0;
	}
}

/* ---- its failure -------------------------------------------------------- */

static int
register_set(pid_t tid, size_t offset, uint64_t value)
{
	return (int)ptrace(PTRACE_POKEUSER, tid, (void *)offset, value);
}

#define REGISTER(name) offsetof(struct user, regs.name)

/*
 * A call that every filter allows takes its place. brk(2) has no error: it
 * says where the break is, and stays; so it is asked for that.
 */
int
call_disarm(pid_t tid, const struct call *c)
{
	if (c->row->number == SYS_brk)
		return register_set(tid, REGISTER(rdi), 0);
	return register_set(tid, REGISTER(orig_rax), SYS_getpid);
}

int
call_fail(pid_t tid, const struct call *c, int error)
{
	if (c->row->number == SYS_brk)
		return register_set(tid, REGISTER(rdi), c->args[0]);
	return register_set(tid, REGISTER(rax), (uint64_t) - (int64_t)error);
}
