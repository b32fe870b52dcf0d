#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

#define TRY(call) ((call) == -1 ? errno : 0)

extern char **environ;

int
act_exec(void)
{
	char *argv[] = {(char *)"true", NULL};

	return TRY(execve("/bin/true", argv, environ));
}

int
act_exec_descriptor(void)
{
	char *argv[] = {(char *)"true", NULL};

	return TRY(syscall(
	    SYS_execveat, scene.file, "", argv, environ, AT_EMPTY_PATH));
}

/* Only an exec that succeeds does not come back. */
static int
exec_in(const char *dir)
{
	char path[PATH_MAX + 16];
	char *argv[] = {(char *)"true", NULL};

	(void)snprintf(path, sizeof(path), "%s/true", dir);
	return TRY(execve(path, argv, environ));
}

int
act_exec_inside(void)
{
	return exec_in(scene.inside);
}

int
act_exec_readable(void)
{
	return exec_in(scene.readable);
}

int
act_exec_outside(void)
{
	return exec_in(scene.outside);
}

/* The walls go with whatever is started. Exit 0: all was as it says. */
int
act_shell_story(void)
{
	static const char story[] =
	    "cd \"$1\" && echo a > made && mkdir -p d && mv made d/made &&"
	    " grep -q a d/made && rm -r d && test -s /etc/passwd &&"
	    " ! cat \"$2/file\" 2>/dev/null && ! ls /tmp 2>/dev/null &&"
	    " ! (echo x > \"$2/file\") 2>/dev/null && echo ok > /dev/null";
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)story,
	    (char *)"story", scene.inside, scene.outside, NULL};

	return TRY(execve("/bin/sh", argv, environ));
}

static int
end_child(long pid)
{
	if (pid == 0)
		_exit(0);
	return TRY(pid);
}

int
act_fork_child(void)
{
	return end_child(fork());
}

int
act_vfork_child(void)
{
	return end_child(syscall(SYS_vfork));
}

int
act_clone3_child(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	return end_child(syscall(SYS_clone3, &args, sizeof(args)));
}

int
act_new_namespace(void)
{
	return TRY(unshare(CLONE_NEWUSER));
}

int
act_enter_namespace(void)
{
	return TRY(setns(scene.file, 0));
}

int
act_ptrace_victim(void)
{
	return TRY(ptrace(PTRACE_SEIZE, scene.victim, NULL, NULL));
}

int
act_read_victim_memory(void)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {environ, 1};

	return TRY(process_vm_readv(scene.victim, &local, 1, &remote, 1, 0));
}

int
act_kill_victim(void)
{
	return TRY(kill(scene.victim, SIGCONT));
}

int
act_kill_all(void)
{
	return TRY(kill(-1, 0));
}

int
act_tgkill_victim(void)
{
	return TRY(syscall(SYS_tgkill, scene.victim, scene.victim, SIGCONT));
}

int
act_sigqueue_victim(void)
{
	union sigval none = {0};

	return TRY(sigqueue(scene.victim, SIGCONT, none));
}

int
act_pidfd_victim(void)
{
	return TRY(syscall(SYS_pidfd_open, scene.victim, 0));
}

int
act_pidfd_signal(void)
{
	return TRY(
	    syscall(SYS_pidfd_send_signal, scene.file, SIGCONT, NULL, 0));
}

int
act_renice(void)
{
	return TRY(setpriority(PRIO_PROCESS, 0, 5));
}

int
act_affinity(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return TRY(sched_setaffinity(0, sizeof(set), &set));
}

int
act_become_root(void)
{
	return TRY(setuid(0));
}

int
act_become_group(void)
{
	return TRY(setresgid(0, 0, 0));
}

int
act_drop_groups(void)
{
	return TRY(setgroups(0, NULL));
}

int
act_raise_capabilities(void)
{
	return TRY(syscall(SYS_capset, NULL, NULL));
}

int
act_new_session(void)
{
	return TRY(setsid());
}

int
act_be_dumpable(void)
{
	return TRY(prctl(PR_SET_DUMPABLE, 1));
}

int
act_outlive_parent(void)
{
	return TRY(prctl(PR_SET_PDEATHSIG, 0));
}

int
act_rename_process(void)
{
	return TRY(prctl(PR_SET_NAME, "other"));
}

int
act_personality_exec(void)
{
	return TRY(personality(READ_IMPLIES_EXEC));
}

int
act_raise_limit(void)
{
	struct rlimit limit = {64, 64};

	return TRY(setrlimit(RLIMIT_NOFILE, &limit));
}

int
act_ask_limit(void)
{
	struct rlimit limit;

	return TRY(getrlimit(RLIMIT_NOFILE, &limit));
}

int
act_executable_mapping(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? errno : 0;
}

int
act_executable_page(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return errno;
	return TRY(mprotect(at, 4096, PROT_READ | PROT_EXEC));
}

int
act_protection_key(void)
{
	return TRY(syscall(SYS_pkey_alloc, 0, 0));
}

int
act_shared_segment(void)
{
	return TRY(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
}

int
act_huge_memfd(void)
{
	return TRY(memfd_create("walls", MFD_HUGETLB));
}

int
act_another_filter(void)
{
	return TRY(syscall(SYS_seccomp, 1, 0, NULL));
}

int
act_another_landlock(void)
{
	return TRY(syscall(SYS_landlock_create_ruleset, NULL, 0, 1));
}

int
act_mount_there(void)
{
	return TRY(mount("none", scene.inside, "tmpfs", 0, NULL));
}

int
act_unmount_there(void)
{
	return TRY(umount2(scene.inside, MNT_DETACH));
}

int
act_load_bpf(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY};

	return TRY(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

int
act_io_ring(void)
{
	struct io_uring_params params = {0};

	return TRY(syscall(SYS_io_uring_setup, 1, &params));
}

int
act_io_context(void)
{
	unsigned long context = 0;

	return TRY(syscall(SYS_io_setup, 1, &context));
}

int
act_fault_handler(void)
{
	return TRY(syscall(SYS_userfaultfd, 0));
}

int
act_perf(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};

	return TRY(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

int
act_add_a_key(void)
{
	return TRY(syscall(SYS_add_key, "user", "walls", "x", 1, -3));
}

int
act_module(void)
{
	return TRY(syscall(SYS_finit_module, scene.file, "", 0));
}

int
act_kernel_log(void)
{
	return TRY(klogctl(10, NULL, 0));
}

int
act_set_clock(void)
{
	struct timespec now = {0, 0};

	return TRY(clock_settime(CLOCK_REALTIME, &now));
}

int
act_set_hostname(void)
{
	return TRY(sethostname("walls", 5));
}

int
act_type_for_terminal(void)
{
	return TRY(ioctl(STDIN_FILENO, TIOCSTI, "x"));
}

int
act_own_signal_to_pipe(void)
{
	return TRY(fcntl(scene.local, F_SETOWN, scene.victim));
}

int
act_timer(void)
{
	return TRY(timerfd_create(CLOCK_MONOTONIC, 0));
}

/* futex_wake of Linux 6.7: a number the list was not written for. */
int
act_too_young_call(void)
{
	return TRY(syscall(454, NULL, 0, 0, 0));
}

#ifdef __x86_64__
/* getpid by the numbers of x32. */
int
act_foreign_call_number(void)
{
	return TRY(syscall(0x40000000 | SYS_getpid));
}

/* getpid by the gate and the numbers of i386. */
int
act_foreign_call_gate(void)
{
	long rc;

	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20) : "memory");
	return rc < 0 ? (int)-rc : 0;
}
#else
int
act_foreign_call_number(void)
{
	return ENOSYS;
}

int
act_foreign_call_gate(void)
{
	return raise(SIGSYS);
}
#endif

int
act_raise_abort(void)
{
	abort();
}
