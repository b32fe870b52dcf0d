#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "common/seccomp_filter.h"

/* The youngest call that was looked at for these lists (Linux 5.17). */
#define YOUNGEST_CALL __NR_set_mempolicy_home_node

#define ANY 0
#define STDIO SANDBOX_STDIO
#define SENDFD SANDBOX_SENDFD
#define RECVFD SANDBOX_RECVFD
#define INET SANDBOX_INET
#define RPATH SANDBOX_RPATH
#define WPATH SANDBOX_WPATH
#define PIPE SANDBOX_PIPE
#define FILES (RPATH | WPATH | INET) /* names may be looked up */

/* What makes open(2) more than reading; O_TMPFILE without O_DIRECTORY. */
#define OPEN_WRITES (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define MEMFD_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
/* pthread_create's flags to the letter; musl adds CLONE_DETACHED. */
#define THREAD_FLAGS                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
	    CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |            \
	    CLONE_CHILD_CLEARTID)
#define THREAD_IGNORED CLONE_DETACHED

/* clang-format off */
/* A condition on an argument, as struct scmp_arg_cmp. */
#define IS(n, value) {(n), SCMP_CMP_EQ, (value), 0}
#define NOT(n, value) {(n), SCMP_CMP_NE, (value), 0}
#define BITS(n, mask, value) {(n), SCMP_CMP_MASKED_EQ, (mask), (value)}

#define ALLOW(when, name) {when, 0, SCMP_SYS(name), 0, 0, {{0}}}
#define ALLOW_IF(when, name, a) {when, 0, SCMP_SYS(name), 0, 1, {a}}
#define ALLOW_IF2(when, name, a, b) {when, 0, SCMP_SYS(name), 0, 2, {a, b}}
#define REFUSE(unless, name, error) \
	{ANY, unless, SCMP_SYS(name), error, 0, {{0}}}
#define WRITE_REFUSED(name, n, mask, value) \
	{RPATH, WPATH, SCMP_SYS(name), EACCES, 1, {BITS(n, mask, value)}}
#define REFUSE_IF(unless, name, error, a) \
	{ANY, unless, SCMP_SYS(name), error, 1, {a}}
#define READS_ONLY(name, flags) \
	{RPATH | INET, WPATH, SCMP_SYS(name), 0, 1, \
	    {BITS(flags, OPEN_WRITES, O_RDONLY)}}
/* clang-format on */

struct call {
	unsigned int when;   /* a role with any of these words; ANY: all */
	unsigned int unless; /* but not one with any of these */
	int number;          /* negative where this machine has no such call */
	int error;           /* 0: allowed */
	unsigned int conditions;
	struct scmp_arg_cmp args[2];
};

static const struct call calls[] = {
    /* Memory: never executable; of a role without files never a file's. */
    ALLOW(STDIO, brk),
    ALLOW(STDIO, munmap),
    ALLOW(STDIO, mremap),
    ALLOW(STDIO, madvise),
    ALLOW_IF(STDIO, mprotect, BITS(2, PROT_EXEC, 0)),
    ALLOW_IF2(STDIO, mmap, BITS(2, PROT_EXEC, 0),
	BITS(3, MAP_ANONYMOUS, MAP_ANONYMOUS)),
    ALLOW_IF2(RPATH, mmap, BITS(2, PROT_EXEC, 0), BITS(3, MAP_ANONYMOUS, 0)),
    ALLOW(STDIO, getrandom),

    /* Open descriptors. */
    ALLOW(STDIO, read),
    ALLOW(STDIO, readv),
    ALLOW(STDIO, pread64),
    ALLOW(STDIO, write),
    ALLOW(STDIO, writev),
    ALLOW(STDIO, pwrite64),
    ALLOW(STDIO, close),
    ALLOW(STDIO, lseek),
    ALLOW(STDIO, fstat),
    ALLOW(STDIO, dup),
    ALLOW(STDIO, dup2),
    ALLOW(STDIO, dup3),
    ALLOW_IF(STDIO, fcntl, IS(1, F_GETFD)),
    ALLOW_IF(STDIO, fcntl, IS(1, F_SETFD)),
    ALLOW_IF(STDIO, fcntl, IS(1, F_GETFL)),
    ALLOW_IF(STDIO, fcntl, IS(1, F_SETFL)),
    ALLOW_IF(STDIO, fcntl, IS(1, F_DUPFD)),
    ALLOW_IF(STDIO, fcntl, IS(1, F_DUPFD_CLOEXEC)),
    ALLOW_IF(STDIO, ioctl, IS(1, FIONREAD)),
    ALLOW_IF(STDIO, ioctl, IS(1, FIONBIO)),
    REFUSE_IF(0, ioctl, ENOTTY, IS(1, TCGETS)),
    ALLOW_IF(STDIO, sendto, IS(4, 0)), /* send(2) */
    ALLOW(STDIO, recvfrom),
    ALLOW(STDIO, shutdown),
    ALLOW(STDIO, getsockopt),

    /* Waiting and time. */
    ALLOW(STDIO, poll),
    ALLOW(STDIO, ppoll),
    ALLOW(STDIO, select),
    ALLOW(STDIO, pselect6),
    ALLOW(STDIO, epoll_create1),
    ALLOW(STDIO, epoll_ctl),
    ALLOW(STDIO, epoll_wait),
    ALLOW(STDIO, epoll_pwait),
    ALLOW(STDIO, epoll_pwait2),
    ALLOW(STDIO, eventfd2),
    ALLOW(STDIO, clock_gettime),
    ALLOW(STDIO, clock_getres),
    ALLOW(STDIO, gettimeofday),
    ALLOW(STDIO, time),
    ALLOW(STDIO, nanosleep),
    ALLOW(STDIO, clock_nanosleep),
    ALLOW(STDIO, restart_syscall),

    /* The process itself. */
    ALLOW(STDIO, exit),
    ALLOW(STDIO, exit_group),
    ALLOW(STDIO, getpid),
    ALLOW(STDIO, getppid),
    ALLOW(STDIO, gettid),
    ALLOW(STDIO, getuid),
    ALLOW(STDIO, geteuid),
    ALLOW(STDIO, getgid),
    ALLOW(STDIO, getegid),
    ALLOW(STDIO, rt_sigaction),
    ALLOW(STDIO, rt_sigprocmask),
    ALLOW(STDIO, rt_sigreturn),
    ALLOW(STDIO, futex),
    ALLOW(STDIO, sched_yield),
    ALLOW(STDIO, sched_getaffinity),
    ALLOW(STDIO, sysinfo),
    ALLOW(STDIO, uname),
    ALLOW_IF2(STDIO, prlimit64, IS(0, 0), IS(2, 0)), /* ask only */
    REFUSE_IF(0, prctl, EINVAL, IS(0, PR_SET_VMA)),

    /* Descriptors in messages, and what is too long for one. */
    ALLOW(SENDFD, sendmsg),
    ALLOW(RECVFD, recvmsg),
    ALLOW_IF(SENDFD, memfd_create, BITS(1, UINT32_MAX & ~MEMFD_FLAGS, 0)),
    ALLOW_IF(SENDFD, fcntl, IS(1, F_ADD_SEALS)),
    ALLOW_IF(SENDFD | RECVFD, fcntl, IS(1, F_GET_SEALS)),

    /*
     * TCP clients. UDP is the resolver's; it runs in a thread of curl's,
     * which tells by a socketpair or a pipe that it has done, and looks
     * for nscd and, by netlink, for the machine's addresses.
     */
    ALLOW_IF2(INET, socket, IS(0, AF_INET), BITS(1, 0xf, SOCK_STREAM)),
    ALLOW_IF2(INET, socket, IS(0, AF_INET), BITS(1, 0xf, SOCK_DGRAM)),
    ALLOW_IF2(INET, socket, IS(0, AF_INET6), BITS(1, 0xf, SOCK_STREAM)),
    ALLOW_IF2(INET, socket, IS(0, AF_INET6), BITS(1, 0xf, SOCK_DGRAM)),
    REFUSE_IF(0, socket, EACCES, IS(0, AF_UNIX)),
    REFUSE_IF(0, socket, EACCES, IS(0, AF_NETLINK)),
    ALLOW_IF(INET, socketpair, IS(0, AF_UNIX)),
    ALLOW(INET, connect),
    ALLOW(INET, getsockname),
    ALLOW(INET, getpeername),
    ALLOW_IF(INET, setsockopt, IS(1, SOL_SOCKET)),
    ALLOW_IF(INET, setsockopt, IS(1, IPPROTO_TCP)),
    ALLOW_IF(INET, setsockopt, IS(1, IPPROTO_IP)),
    ALLOW_IF(INET, setsockopt, IS(1, IPPROTO_IPV6)),
    ALLOW(INET, sendmmsg),
    ALLOW_IF(INET, clone,
	BITS(0, UINT64_MAX & ~(uint64_t)THREAD_IGNORED, THREAD_FLAGS)),
    ALLOW(INET, set_robust_list),
    ALLOW(INET, rseq),
    /* Its flags lie in memory, where no filter can see them. */
    REFUSE(0, clone3, ENOSYS),

    /* Names: which of them is Landlock's to say. */
    READS_ONLY(open, 1),
    READS_ONLY(openat, 2),
    ALLOW(WPATH, open),
    ALLOW(WPATH, openat),
    /* Who only reads files is asked by SQLite to write first, and lives. */
    WRITE_REFUSED(openat, 2, O_ACCMODE, O_WRONLY),
    WRITE_REFUSED(openat, 2, O_ACCMODE, O_RDWR),
    WRITE_REFUSED(openat, 2, O_CREAT, O_CREAT),
    REFUSE(FILES, open, EACCES),
    REFUSE(FILES, openat, EACCES),
    ALLOW(FILES, stat),
    ALLOW(FILES, lstat),
    ALLOW(FILES, statx),
    ALLOW(FILES, newfstatat),
    ALLOW(FILES, access),
    ALLOW(FILES, faccessat),
    ALLOW(FILES, faccessat2),
    ALLOW(FILES, readlink),
    ALLOW(FILES, readlinkat),
    REFUSE(FILES, stat, EACCES),
    REFUSE(FILES, lstat, EACCES),
    REFUSE(FILES, statx, EACCES),
    REFUSE(FILES, access, EACCES),
    REFUSE(FILES, faccessat, EACCES),
    REFUSE(FILES, faccessat2, EACCES),
    REFUSE(FILES, readlink, EACCES),
    REFUSE(FILES, readlinkat, EACCES),
    /* fstat(3) of some libcs is this, with an empty name. */
    {STDIO, FILES, SCMP_SYS(newfstatat), 0, 1, {IS(3, AT_EMPTY_PATH)}},
    REFUSE_IF(FILES, newfstatat, EACCES, NOT(3, AT_EMPTY_PATH)),
    ALLOW(RPATH, getcwd),
    ALLOW(RPATH, getdents64),
    ALLOW_IF(RPATH, fcntl, IS(1, F_GETLK)),
    ALLOW_IF(RPATH, fcntl, IS(1, F_SETLK)),

    /* Their making. */
    ALLOW(WPATH, unlink),
    ALLOW(WPATH, unlinkat),
    ALLOW(WPATH, rename),
    ALLOW(WPATH, renameat),
    ALLOW(WPATH, renameat2),
    ALLOW(WPATH | SENDFD, ftruncate),
    ALLOW(WPATH, fallocate),
    ALLOW(WPATH, fsync),
    ALLOW(WPATH, fdatasync),
    ALLOW(WPATH, fchmod),
    /* SQLite as root would chown a WAL, also one that it only reads. */
    {RPATH | WPATH, 0, SCMP_SYS(fchown), EPERM, 0, {{0}}},

    ALLOW(PIPE | INET, pipe2),
    ALLOW(PIPE | INET, pipe),
};

static bool
call_applies(const struct call *c, unsigned int words)
{
	return (c->when == ANY || (c->when & words) != 0) &&
	    (c->unless & words) == 0;
}

/* raise(3) and abort(3) are a tgkill of ourselves. */
static int
add_raise(scmp_filter_ctx ctx)
{
	struct scmp_arg_cmp self = IS(0, (scmp_datum_t)getpid());

	return seccomp_rule_add_array(
	    ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, &self);
}

static int
filter_fill(scmp_filter_ctx ctx, unsigned int words, uint32_t otherwise)
{
	const struct call *c;
	size_t i;
	int rc;

	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, otherwise);
	if (rc == 0) /* a tree: the lists are long */
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (i = 0; rc == 0 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		c = &calls[i];
		if (!call_applies(c, words))
			continue;
		rc = seccomp_rule_add_array(ctx,
		    c->error == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(c->error),
		    c->number, c->conditions, c->args);
	}
	return rc == 0 ? add_raise(ctx) : rc;
}

/* The words as a BPF program, which libseccomp gives to a descriptor only. */
static int
filter_compile(unsigned int words, uint32_t otherwise, struct sock_filter *out,
    size_t room, size_t *count, struct error *e)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	ssize_t n = -1;
	int fd = memfd_create("filter", MFD_CLOEXEC);
	int rc;

	if (ctx == NULL || fd == -1) {
		(void)error_errno(e, "seccomp");
		goto out;
	}
	rc = filter_fill(ctx, words, otherwise);
	if (rc == 0)
		rc = seccomp_export_bpf(ctx, fd);
	if (rc != 0) {
		errno = -rc;
		(void)error_errno(e, "seccomp filter");
		goto out;
	}
	n = pread(fd, out, room * sizeof(*out), 0);
	if (n <= 0 || (size_t)n == room * sizeof(*out) ||
	    (size_t)n % sizeof(*out) != 0) {
		(void)error_set(e, "seccomp filter: not of a sane size");
		n = -1;
		goto out;
	}
	*count = (size_t)n / sizeof(*out);
out:
	seccomp_release(ctx);
	if (fd != -1)
		(void)close(fd);
	return n > 0 ? 0 : -1;
}

#ifdef SANDBOX_DEBUG
/* Only in this build does a handler do more than set a flag: it says why. */
static void
on_sigsys(int sig, siginfo_t *info, void *context)
{
	const char *name =
	    seccomp_syscall_resolve_num_arch(info->si_arch, info->si_syscall);

	(void)sig;
	(void)context;
	(void)dprintf(STDERR_FILENO, "%s: refused system call %d (%s)\n",
	    program_invocation_short_name, info->si_syscall,
	    name == NULL ? "?" : name);
	(void)signal(SIGSYS, SIG_DFL);
	(void)raise(SIGSYS);
}

static uint32_t
action_otherwise(void)
{
	struct sigaction act = {
	    .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};

	(void)sigaction(SIGSYS, &act, NULL);
	return SCMP_ACT_TRAP;
}
#else
static uint32_t
action_otherwise(void)
{
	return SCMP_ACT_KILL_PROCESS;
}
#endif

int
seccomp_enter(unsigned int words, struct error *e)
{
	/* In front of libseccomp's program, which cannot compare numbers. */
	const struct sock_filter too_young[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0, 3),
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, YOUNGEST_CALL, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	const size_t head = sizeof(too_young) / sizeof(too_young[0]);
	struct sock_filter program[BPF_MAXINSNS];
	struct sock_fprog prog = {.filter = program};
	size_t count;

	if (filter_compile(words, action_otherwise(), program + head,
		BPF_MAXINSNS - head, &count, e) == -1)
		return -1;
	memcpy(program, too_young, sizeof(too_young));
	prog.len = (unsigned short)(head + count);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		return error_errno(e, "seccomp");
	return 0;
}
