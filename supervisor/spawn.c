#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/process.h"
#include "supervisor/become.h"
#include "supervisor/spawn.h"

/* Pairs of descriptors made for one worker; the child's end comes first. */
struct pipes {
	int input[2], output[2], errors[2], status[2];
};

/* ---- in the child ------------------------------------------------------- */

/* Say what failed, and end: nobody has been told that we run. */
static _Noreturn void
child_fail(int status, const char *what, int code)
{
	char text[SPAWN_TEXT_MAX];
	int n;

	if (code != 0)
		n = snprintf(
		    text, sizeof(text), "%s: %s", what, strerror(code));
	else
		n = snprintf(text, sizeof(text), "%s", what);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	if (n > 0 && write(status, text, (size_t)n) == -1)
		exit_now(EXIT_CRASH);
	exit_now(EXIT_FAILED);
}

static void
child_enter_cgroup(int cgroup_fd, int status)
{
	int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd == -1 || write(fd, "0", 1) == -1)
		child_fail(status, "cgroup", errno);
	(void)close(fd);
}

static void
child_stdio(const struct pipes *p)
{
	if (dup2(p->input[0], STDIN_FILENO) == -1 ||
	    dup2(p->output[0], STDOUT_FILENO) == -1 ||
	    dup2(p->errors[0], STDERR_FILENO) == -1)
		child_fail(p->status[0], "stdio", errno);
}

/* As the agent does itself on its first run. */
static void
child_make_own_dir(const char *dir, int status)
{
	if (dir != NULL && mkdir(dir, 0700) == -1 && errno != EEXIST)
		child_fail(status, dir, errno);
}

static void
child_confine(const struct spawn *how, int status)
{
	struct error e;

	if (how->no_new_privs && spawn_no_new_privs() == -1)
		child_fail(status, "no_new_privs", errno);
	if (how->is_confined &&
	    sandbox_confine_worker(how->read_dirs, how->write_dirs, &e) == -1)
		child_fail(status, e.text, 0);
}

/*
 * The order: the group and cgroup first, so that nothing is ever outside
 * them; the ids before the directory, so that it is the worker's rights that
 * count; the walls last, for they would hide what is still needed.
 */
static _Noreturn void
child_run(
    const struct spawn *how, const struct pipes *p, int cgroup_fd, bool outside)
{
	int status = p->status[0];
	struct error e;

	(void)setsid();
	if (outside)
		child_enter_cgroup(cgroup_fd, status);
	child_stdio(p);
	if (become_account(how->account) == -1)
		child_fail(status, "becoming the worker's account", errno);
	become_modest();
	if (fchdir(how->route) == -1)
		child_fail(status, how->route_path, errno);
	child_make_own_dir(how->own_dir, status);
	child_confine(how, status);
	become_plain();
	if (process_seal(&e) == -1)
		child_fail(status, e.text, 0);
	(void)execve(how->file, how->argv, how->env);
	child_fail(status, how->file, errno);
}

/* ---- in the supervisor -------------------------------------------------- */

static void
pair_close(int pair[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (pair[i] != -1)
			(void)close(pair[i]);
		pair[i] = -1;
	}
}

static void
pipes_close(struct pipes *p)
{
	pair_close(p->input);
	pair_close(p->output);
	pair_close(p->errors);
	pair_close(p->status);
}

/* The end that is written to goes to the child, unless READS is the child. */
static int
pair_make(int pair[2], bool child_reads)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) == -1)
		return -1;
	pair[0] = ends[child_reads ? 0 : 1];
	pair[1] = ends[child_reads ? 1 : 0];
	return 0;
}

static int
pipes_make(struct pipes *p, struct error *e)
{
	*p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	if (pair_make(p->input, true) == 0 &&
	    pair_make(p->output, false) == 0 &&
	    pair_make(p->errors, false) == 0 &&
	    pair_make(p->status, false) == 0 &&
	    fcntl(p->status[1], F_SETFL, O_NONBLOCK) == 0)
		return 0;
	(void)error_errno(e, "pipe");
	pipes_close(p);
	return -1;
}

static void
spawned_take(struct spawned *out, struct pipes *p, pid_t pid)
{
	struct error e;

	/* It may have ended by now; its number is still its own. */
	if (identity_read(pid, &out->identity, &e) == -1)
		out->identity = (struct identity){.pid = pid};
	out->identity.pgid = pid;
	out->input = p->input[1];
	out->output = p->output[1];
	out->errors = p->errors[1];
	out->status = p->status[1];
	p->input[1] = p->output[1] = p->errors[1] = p->status[1] = -1;
}

/* Signals wait until the child has put off our handlers for them. */
static pid_t
fork_quietly(
    const struct spawn *how, const struct pipes *p, int cgroup_fd, int *pidfd)
{
	sigset_t all, before;
	bool outside;
	pid_t pid;
	int saved;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	pid = spawn_fork(cgroup_fd, pidfd, &outside);
	if (pid == 0)
		child_run(how, p, cgroup_fd, outside);
	saved = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

int
spawn_worker(const struct spawn *how, struct spawned *out, struct error *e)
{
	int cgroup_fd = -1;
	struct pipes p;
	pid_t pid;

	if (how->cgroup != NULL) {
		cgroup_fd = open(how->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (cgroup_fd == -1)
			return error_errno(e, "%s", how->cgroup);
	}
	if (pipes_make(&p, e) == -1) {
		pid = -1;
	} else {
		pid = fork_quietly(how, &p, cgroup_fd, &out->pidfd);
		if (pid == -1)
			(void)error_errno(e, "fork");
		else
			spawned_take(out, &p, pid);
		pipes_close(&p);
	}
	if (cgroup_fd != -1)
		(void)close(cgroup_fd);
	return pid == -1 ? -1 : 0;
}

int
spawn_verdict(int status, char text[static SPAWN_TEXT_MAX])
{
	ssize_t n = read(status, text, SPAWN_TEXT_MAX - 1);

	if (n == 0)
		return 1;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == -1)
		n = snprintf(text, SPAWN_TEXT_MAX, "%s", strerror(errno));
	text[n] = '\0';
	return -1;
}

void
spawned_close(struct spawned *s)
{
	int *const fds[] = {
	    &s->pidfd, &s->input, &s->output, &s->errors, &s->status};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] != -1)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}
