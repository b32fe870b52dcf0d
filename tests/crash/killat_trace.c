/* The tree, thread by thread, from stop to stop. */
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/crash/killat.h"

#define OPTIONS                                                            \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | \
	    PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)
#define CALL_STOP (SIGTRAP | 0x80)
#define FORK_SUFFIX "/fork"
#define PATH_SIZE 4096

struct tasks tasks = TAILQ_HEAD_INITIALIZER(tasks);
static STAILQ_HEAD(, actor) actors = STAILQ_HEAD_INITIALIZER(actors);
bool trace_counts_all;

static struct {
	pid_t pid;
	char name[NAME_SIZE]; /* "" before its exec */
	char program[PATH_SIZE];
	bool is_seized;
	bool is_awake; /* from the stop before its exec */
	bool is_dead;  /* and the whole tree with it, by our hand */
} root;

/* ---- who is who --------------------------------------------------------- */

static struct actor *
actor_get(const char *name)
{
	struct actor *a;

	STAILQ_FOREACH (a, &actors, entry) {
		if (strcmp(a->name, name) == 0)
			return a;
	}
	a = xcalloc(1, sizeof(*a));
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	a->is_watched = trace_counts_all || rules_watch(name);
	STAILQ_INSERT_TAIL(&actors, a, entry);
	return a;
}

static struct actor *
actor_of_fork(const struct actor *parent)
{
	const size_t suffix = strlen(FORK_SUFFIX);
	size_t len;
	char name[NAME_SIZE * 2];

	if (parent == NULL)
		return NULL;
	len = strlen(parent->name);
	if (len >= suffix &&
	    strcmp(parent->name + len - suffix, FORK_SUFFIX) == 0)
		return actor_get(parent->name);
	(void)snprintf(name, sizeof(name), "%s" FORK_SUFFIX, parent->name);
	name[NAME_SIZE - 1] = '\0';
	return actor_get(name);
}

static struct task *
task_find(pid_t tid)
{
	struct task *t;

	TAILQ_FOREACH (t, &tasks, entry) {
		if (t->tid == tid)
			return t;
	}
	return NULL;
}

/* A number of /proc/TID/status, whose line begins with LABEL; -1: none. */
static pid_t
status_number(pid_t tid, const char *label)
{
	char path[64], line[256];
	pid_t found = -1;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	while (found == -1 && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, label, strlen(label)) == 0)
			found = (pid_t)strtol(line + strlen(label), NULL, 10);
	}
	(void)fclose(file);
	return found;
}

/*
 * Its first stop may come before its parent's word of it. A thread is its
 * process; a process is what its parent was, until it execs.
 */
static struct task *
task_new(pid_t tid)
{
	struct task *t = xcalloc(1, sizeof(*t)), *other;

	t->tid = tid;
	t->pid = status_number(tid, "Tgid:");
	if (t->pid == -1)
		fatalx("%d: whose thread is that?", tid);
	if (t->pid != tid) {
		other = task_find(t->pid);
		t->actor = other == NULL ? NULL : other->actor;
	} else {
		other = task_find(status_number(tid, "PPid:"));
		t->actor = other == NULL ? NULL : actor_of_fork(other->actor);
	}
	TAILQ_INSERT_TAIL(&tasks, t, entry);
	return t;
}

static void
task_free(struct task *t)
{
	TAILQ_REMOVE(&tasks, t, entry);
	free(t);
}

/* The last part of argv[0]. */
static void
exec_name_read(pid_t pid, char name[static NAME_SIZE])
{
	char path[64], argv0[4096];
	const char *slash;
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd != -1) {
		n = read(fd, argv0, sizeof(argv0) - 1);
		(void)close(fd);
	}
	argv0[n > 0 ? n : 0] = '\0';
	slash = strrchr(argv0, '/');
	(void)snprintf(name, NAME_SIZE, "%.*s", NAME_SIZE - 1,
	    slash == NULL ? argv0 : slash + 1);
}

static bool
name_is_of_tree(const char *name)
{
	size_t len = strlen(root.name);

	return strncmp(name, root.name, len) == 0 &&
	    (name[len] == '\0' || name[len] == '-');
}

/* The program it runs; "": it is gone, or hidden from us. */
static void
program_read(pid_t pid, char program[static PATH_SIZE])
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, program, PATH_SIZE - 1);
	program[n > 0 ? n : 0] = '\0';
}

/*
 * Of the tree still, or, before we have heard of it, at an exec that leads out
 * of it? Within an exec the program is another's already and argv[0] nobody's.
 */
static bool
is_of_tree(pid_t pid)
{
	char program[PATH_SIZE], name[NAME_SIZE];

	program_read(pid, program);
	if (program[0] == '\0' || strcmp(program, root.program) == 0)
		return true;
	exec_name_read(pid, name);
	if (name[0] == '\0')
		(void)snprintf(name, sizeof(name), "%.*s", NAME_SIZE - 1,
		    strrchr(program, '/') + 1);
	return name_is_of_tree(name);
}

/* ---- going on ----------------------------------------------------------- */

/* What is gone meanwhile is told by its end. */
static void
resume(struct task *t, int request, int signal)
{
	if (ptrace(request, t->tid, NULL, (void *)(intptr_t)signal) == -1 &&
	    errno != ESRCH)
		fatal("%d", t->tid);
}

void
task_resume(struct task *t, int signal)
{
	bool at_calls = t->actor != NULL && t->actor->is_watched;

	if (t->held_by == NULL)
		resume(t, at_calls ? PTRACE_SYSCALL : PTRACE_CONT, signal);
}

int
trace_seize(pid_t pid)
{
	if (root.is_seized) {
		errno = EBUSY;
		return -1;
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)OPTIONS) == -1)
		return -1;
	root.pid = pid;
	root.is_seized = true;
	(void)task_new(pid);
	say(json_pack("{ss si}", "what", "seized", "pid", pid));
	return 0;
}

/* Neither 0 nor -1, which are many, may ever get there. */
int
trace_kill(pid_t pid)
{
	if (pid <= 1)
		fatalx("not to be killed: %d", pid);
	return kill(pid, SIGKILL);
}

void
trace_kill_root(void)
{
	(void)trace_kill(root.pid);
}

/*
 * First nobody comes back from a call any more: a role that saw its supervisor
 * gone would end in order before its turn to be killed.
 */
void
trace_kill_tree(const struct task *there)
{
	struct task *t;

	root.is_dead = true;
	TAILQ_FOREACH (t, &tasks, entry) {
		t->has_left = !is_of_tree(t->pid);
		if (!t->has_left)
			(void)kill(t->pid, SIGSTOP);
	}
	trace_kill_root();
	TAILQ_FOREACH (t, &tasks, entry) {
		if (!t->has_left && (there == NULL || t->pid != there->pid))
			(void)trace_kill(t->pid);
	}
	if (there != NULL)
		(void)trace_kill(there->pid);
}

/* ---- stops -------------------------------------------------------------- */

/* The thread that execs becomes its process's first; the others end. */
static void
former_forget(const struct task *t)
{
	unsigned long former;
	struct task *gone;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) == -1 ||
	    (pid_t)former == t->tid)
		return;
	gone = task_find((pid_t)former);
	if (gone != NULL)
		task_free(gone);
}

static void
on_exec(struct task *t)
{
	char name[NAME_SIZE];

	former_forget(t);
	exec_name_read(t->tid, name);
	if (t->pid == root.pid && root.name[0] == '\0') {
		memcpy(root.name, name, sizeof(root.name));
		program_read(root.pid, root.program);
	}
	t->call = (struct call){NULL, {0}};
	if (!name_is_of_tree(name)) {
		resume(t, PTRACE_DETACH, 0);
		say(json_pack("{ss ss si}", "what", "let_go", "name", name,
		    "pid", t->pid));
		task_free(t);
		return;
	}
	t->actor = actor_get(name);
	say(json_pack(
	    "{ss ss si}", "what", "exec", "name", name, "pid", t->pid));
	rules_exec(t);
	task_resume(t, 0);
}

static void
on_entry(struct task *t, const struct __ptrace_syscall_info *info)
{
	unsigned classes;
	size_t i;

	t->call = call_of(info->entry.nr, info->entry.args);
	classes = call_classes(&t->call);
	if (t->actor == NULL || t->call.row == NULL)
		return;
	for (i = 0; i < CLASSES; i++) {
		if ((classes & (1u << i)) != 0)
			t->actor->counts[i]++;
	}
	rules_entry(t);
}

static void
on_return(struct task *t, const struct __ptrace_syscall_info *info)
{
	if (t->failing != 0)
		(void)call_fail(t->tid, &t->call, t->failing);
	else if (t->actor != NULL && info->exit.rval > 0 &&
	    (call_classes(&t->call) & CLASS_READ) != 0)
		rules_read(t, (size_t)info->exit.rval);
	t->failing = 0;
	t->call = (struct call){NULL, {0}};
}

static void
on_call(struct task *t)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, (void *)sizeof(info),
		&info) > 0) {
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			on_entry(t, &info);
		else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
			on_return(t, &info);
	}
	task_resume(t, 0);
}

/*
 * A new process, or one that SIGSTOP and its like have stopped: there it stays
 * until SIGCONT. The root is woken by us, once.
 */
static void
on_pause(struct task *t, int signal)
{
	if (signal == SIGTRAP) {
		task_resume(t, 0);
	} else if (t->pid == root.pid && !root.is_awake) {
		root.is_awake = true;
		(void)kill(t->pid, SIGCONT);
		task_resume(t, 0);
	} else {
		resume(t, PTRACE_LISTEN, 0);
	}
}

static void
on_stop(struct task *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (root.is_dead && !t->has_left)
		(void)trace_kill(t->pid); /* born while it died */
	else if (event == PTRACE_EVENT_EXEC)
		on_exec(t);
	else if (event == PTRACE_EVENT_STOP)
		on_pause(t, signal);
	else if (event != 0)
		task_resume(t, 0);
	else if (signal == CALL_STOP)
		on_call(t);
	else
		task_resume(t, signal);
}

static void
on_end(struct task *t, int status)
{
	if (t->tid == t->pid)
		say(json_pack("{ss ss si si si}", "what", "exit", "name",
		    t->actor == NULL ? "" : t->actor->name, "pid", t->pid,
		    "status", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		    "signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
	task_free(t);
}

bool
trace_reap(void)
{
	struct task *t;
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		t = task_find(tid);
		if (WIFSTOPPED(status))
			on_stop(t == NULL ? task_new(tid) : t, status);
		else if (t != NULL)
			on_end(t, status);
	}
	return !root.is_seized || !TAILQ_EMPTY(&tasks);
}

/* ---- the counts --------------------------------------------------------- */

void
trace_say_counts(void)
{
	json_t *names = json_object(), *counts;
	const struct actor *a;
	size_t i;

	STAILQ_FOREACH (a, &actors, entry) {
		if (!a->is_watched)
			continue;
		counts = json_object();
		for (i = 0; i < CLASSES; i++)
			(void)json_object_set_new(
			    counts, class_names[i], json_integer(a->counts[i]));
		(void)json_object_set_new(names, a->name, counts);
	}
	say(json_pack("{ss so}", "what", "counts", "names", names));
}
