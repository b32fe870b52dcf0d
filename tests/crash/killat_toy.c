/*
 * Something for killat to follow: it does the steps that it is given, one
 * system call each, and notes how each went in memory that a file shows, so
 * that the notes are no calls.
 *
 *	killat_toy NOTES OUT STEP...
 *
 * w:TEXT	write(2) it to OUT	v:TEXT	the same by writev, in halves
 * s		fdatasync(2)		t:TEXT	write it in a thread
 * m:TEXT	sendmsg it to itself	r	and recvmsg it
 * a, b		mmap a page; brk(2) one more
 * c:NAME:STEPS	a child under that name, by exec, of steps with commas
 * f:STEPS	a child without exec	W	wait for every child
 * S		stop by SIGSTOP		i	wait until a byte can be read
 * x		behind walls: another user if it may, not dumpable,
 *		no_new_privs, and a filter that kills for all but w, s
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#define NOTES_SIZE 65536
#define STEPS_MAX 64
#define NOBODY 65534

struct notes {
	atomic_uint used;
	char text[];
};

static struct {
	const char *notes_path, *out_path, *program, *name;
	struct notes *notes;
	int out;
	int pair[2];
} toy;

static void steps_do(char *const steps[]);

/* ---- steps -------------------------------------------------------------- */

static long
step_write(char *text)
{
	return write(toy.out, text, strlen(text));
}

static long
step_writev(char *text)
{
	size_t half = strlen(text) / 2;
	struct iovec iov[2] = {
	    {text, half}, {text + half, strlen(text + half)}};

	return writev(toy.out, iov, 2);
}

static long
step_sync(char *text)
{
	return fdatasync(toy.out);
}

static void *
in_thread(void *text)
{
	return (void *)(step_write(text) == -1 ? (intptr_t)errno : 0);
}

static long
step_thread(char *text)
{
	pthread_t thread;
	void *error;

	if (pthread_create(&thread, NULL, in_thread, text) != 0)
		return -1;
	(void)pthread_join(thread, &error);
	errno = (int)(intptr_t)error;
	return errno == 0 ? 0 : -1;
}

static long
step_send(char *text)
{
	struct iovec iov = {text, strlen(text)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	return sendmsg(toy.pair[0], &mh, 0);
}

static long
step_receive(char *text)
{
	char bytes[256];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	return recvmsg(toy.pair[1], &mh, 0);
}

static long
step_map(char *text)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? -1 : 0;
}

static long
step_break(char *text)
{
	return sbrk(4096) == (void *)-1 ? -1 : 0;
}

/* TEXT is cut at its commas. */
static void
steps_split(char *text, char **steps, size_t room)
{
	char *rest = text;
	size_t n = 0;

	while (n + 1 < room && (steps[n] = strsep(&rest, ",")) != NULL)
		n++;
	steps[n] = NULL;
}

static long
step_child(char *text)
{
	char *argv[STEPS_MAX + 3];
	char *steps = strchr(text, ':');
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	*steps++ = '\0';
	argv[0] = text;
	argv[1] = (char *)(uintptr_t)toy.notes_path;
	argv[2] = (char *)(uintptr_t)toy.out_path;
	steps_split(steps, argv + 3, STEPS_MAX);
	(void)execv(toy.program, argv);
	_exit(1);
}

static long
step_fork(char *text)
{
	char *steps[STEPS_MAX];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	steps_split(text, steps, STEPS_MAX);
	steps_do(steps);
	_exit(0);
}

static long
step_wait(char *text)
{
	while (wait(NULL) != -1)
		continue;
	return 0;
}

static long
step_stop(char *text)
{
	return raise(SIGSTOP);
}

static long
step_input(char *text)
{
	char c;

	return read(STDIN_FILENO, &c, 1);
}

#define ALLOW(name)                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static long
step_walls(char *text)
{
	struct sock_filter filter[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    ALLOW(write),
	    ALLOW(fdatasync),
	    ALLOW(getpid),
	    ALLOW(exit_group),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {
	    sizeof(filter) / sizeof(filter[0]), filter};

	if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) == -1)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static const struct {
	char letter;
	long (*act)(char *text);
} acts[] = {
    {'w', step_write},
    {'v', step_writev},
    {'s', step_sync},
    {'t', step_thread},
    {'m', step_send},
    {'r', step_receive},
    {'a', step_map},
    {'b', step_break},
    {'c', step_child},
    {'f', step_fork},
    {'W', step_wait},
    {'S', step_stop},
    {'i', step_input},
    {'x', step_walls},
};

/* ---- all of them -------------------------------------------------------- */

static void
note(const char *step, int error)
{
	char line[128];
	unsigned at;
	int n;

	n = snprintf(line, sizeof(line), "%s %c %d\n", toy.name, *step, error);
	at = atomic_fetch_add(&toy.notes->used, (unsigned)n);
	if (at + (unsigned)n > NOTES_SIZE - sizeof(*toy.notes))
		_exit(1);
	memcpy(toy.notes->text + at, line, (size_t)n);
}

static void
step_do(char *step)
{
	size_t i;
	long rc;

	for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (acts[i].letter != *step)
			continue;
		rc = acts[i].act(step[1] == ':' ? step + 2 : step + 1);
		note(step, rc == -1 ? errno : 0);
		return;
	}
	_exit(1);
}

static void
steps_do(char *const steps[])
{
	for (; *steps != NULL; steps++)
		step_do(*steps);
}

int
main(int argc, char **argv)
{
	int notes;

	if (argc < 3)
		fatalx("usage: killat_toy NOTES OUT STEP...");
	toy.name = argv[0];
	toy.notes_path = argv[1];
	toy.out_path = argv[2];
	toy.program = "/proc/self/exe";
	notes = open(toy.notes_path, O_RDWR | O_CLOEXEC);
	toy.out = open(toy.out_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (notes == -1 || toy.out == -1)
		fatal("%s", toy.notes_path);
	toy.notes = mmap(
	    NULL, NOTES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, notes, 0);
	if (toy.notes == MAP_FAILED)
		fatal("mmap");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, toy.pair) == -1)
		fatal("socketpair");
	steps_do(argv + 3);
	_exit(0);
}
