/*
 * What a worker is planned to be, and what its process is once it runs
 * (dispatch.md 8.1; design 2.1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/xmalloc.h"
#include "supervisor/worker.h"
#include "tests/unit/worker_settings.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define DEADLINE_MS 10000

struct house {
	char top[64], *work, *secret, *script;
	struct supervisor sv;
	struct settings *settings;
	struct sessions *sessions;
	struct session *session;
};

static char *
dir_make(const char *top, const char *name)
{
	char *path;

	(void)xasprintf(&path, "%s/%s", top, name);
	if (mkdir(path, 0755) == -1)
		fail_msg("%s: %s", path, strerror(errno));
	return path;
}

static void
account_find(struct account *a, char *home)
{
	const struct passwd *pw =
	    geteuid() == 0 ? getpwnam("nobody") : getpwuid(geteuid());
	static gid_t group;

	assert_non_null(pw);
	group = pw->pw_gid;
	*a = (struct account){.uid = pw->pw_uid,
	    .gid = pw->pw_gid,
	    .name = xstrdup(pw->pw_name),
	    .home = home,
	    .shell = xstrdup("/bin/sh"),
	    .groups = &group,
	    .group_count = 1};
}

static int
house_make(void **state)
{
	static char bridge[] = "/bin/true";
	static struct house h;
	struct error e;
	char *home;

	memset(&h, 0, sizeof(h));
	(void)umask(022);
	(void)snprintf(h.top, sizeof(h.top), "/tmp/test_worker.XXXXXX");
	if (mkdtemp(h.top) == NULL || chmod(h.top, 0755) == -1)
		return -1;
	home = dir_make(h.top, "home");
	h.work = dir_make(h.top, "work");
	h.secret = dir_make(h.top, "secret");
	free(dir_make(h.top, "conf"));
	h.sv.paths.config_dir = dir_make(h.top, "conf/demo");
	h.sv.paths.state_root = dir_make(h.top, "state");
	free(dir_make(h.top, "run"));
	h.sv.paths.runtime_dir = dir_make(h.top, "run/demo");
	h.sv.paths.cache_dir = dir_make(h.top, "cache");
	h.sv.is_root = geteuid() == 0;
	h.sv.bridge_path = bridge;
	account_find(&h.sv.worker_account, home);
	if (h.sv.is_root &&
	    (chown(home, h.sv.worker_account.uid, h.sv.worker_account.gid) ==
		    -1 ||
		chown(h.work, h.sv.worker_account.uid,
		    h.sv.worker_account.gid) == -1))
		return -1;
	if (!h.sv.is_root)
		(void)setenv("HOME", home, 1);
	h.sessions = sessions_open(&h.sv.paths, "/state/1-2",
	    &h.sv.worker_account, h.sv.is_root, h.sv.boot_id, &e);
	if (h.sessions == NULL)
		fail_msg("%s", e.text);
	h.session = session_new(h.sessions, "att_0123456789abcdef01234567", &e);
	if (h.session == NULL)
		fail_msg("%s", e.text);
	*state = &h;
	return 0;
}

static int
house_remove(void **state)
{
	struct house *h = *state;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", h->top, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	session_remove(h->session);
	sessions_close(h->sessions);
	settings_free(h->settings);
	free(h->work);
	free(h->secret);
	free(h->script);
	free(h->sv.paths.config_dir);
	free(h->sv.paths.state_root);
	free(h->sv.paths.runtime_dir);
	free(h->sv.paths.cache_dir);
	free(h->sv.worker_account.name);
	free(h->sv.worker_account.home);
	free(h->sv.worker_account.shell);
	return 0;
}

/* A program of the test's for the agent: a shell script beside the work. */
static void
house_script(struct house *h, const char *text, const char *more)
{
	char *worker;
	int fd;

	(void)xasprintf(&h->script, "%s/home/agent", h->top);
	fd = open(h->script, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	assert_true(fd != -1);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
	(void)xasprintf(&worker, "{\"command\":[\"%s\"]%s}", h->script, more);
	h->settings = settings_with(&h->sv.paths, worker);
	h->sv.settings = h->settings;
	free(worker);
}

/* Everything up to EOF of all three, and the exit status. */
struct outcome {
	struct spawned process;
	int verdict, status;
	char failure[SPAWN_TEXT_MAX], *output;
};

static char *
read_all(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	struct buffer b = {0};
	char chunk[4096];
	ssize_t n;

	do {
		assert_int_equal(poll(&pfd, 1, DEADLINE_MS), 1);
		n = read(fd, chunk, sizeof(chunk));
		assert_true(n >= 0);
		buffer_add(&b, chunk, (size_t)n);
	} while (n > 0);
	buffer_add(&b, "", 0);
	return b.bytes;
}

static void
await_verdict(struct outcome *o)
{
	struct pollfd pfd = {.fd = o->process.status, .events = POLLIN};

	assert_int_equal(poll(&pfd, 1, DEADLINE_MS), 1);
	o->verdict = spawn_verdict(o->process.status, o->failure);
}

static struct outcome
house_run(struct house *h)
{
	const struct config_route route = {
	    .project_id = 1, .path = h->work, .class = (char[]){""}};
	struct worker_plan plan;
	struct outcome o = {0};
	struct error e;

	if (worker_plan_make(&plan, &h->sv, h->session, &route, NULL, &e) == -1)
		fail_msg("%s: %s", plan.reason, e.text);
	if (spawn_worker(&plan.spawn, &o.process, &e) == -1)
		fail_msg("%s", e.text);
	worker_plan_free(&plan);
	await_verdict(&o);
	(void)close(o.process.input);
	o.process.input = -1;
	o.output = read_all(o.process.output);
	assert_int_equal(waitpid(o.process.identity.pid, &o.status, 0),
	    o.process.identity.pid);
	spawned_close(&o.process);
	return o;
}

static void __attribute__((format(printf, 2, 3)))
assert_line(const char *text, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (strstr(text, line) == NULL)
		fail_msg("\"%s\" is not in:\n%s", line, text);
}

static void
test_process(void **state)
{
	/* A shell that starts a program blocks and clears signals itself. */
	static const char script[] =
	    "#!/bin/sh\n"
	    "while read -r status; do case $status in\n"
	    "SigBlk*|SigIgn*|NoNewPrivs*) echo \"$status\";;\n"
	    "esac; done < /proc/$$/status\n"
	    "read -r line; echo \"line $line\"\n"
	    "echo \"cwd $(pwd)\"\n"
	    "echo \"ids $(id -u) $(id -g) $(id -G)\"\n"
	    "echo \"umask $(umask)\"\n"
	    "echo \"arg $1\"\n"
	    "read -r _ _ _ _ group session _ < /proc/$$/stat\n"
	    "echo \"group $((group - $$)) $((session - $$))\"\n"
	    "echo \"fds\" $(ls /proc/$$/fd)\n"
	    "echo \"nofile $(ulimit -Sn)\"\n"
	    "exit 3\n";
	struct house *h = *state;
	const struct config_route route = {
	    .project_id = 1, .path = h->work, .class = (char[]){""}};
	struct worker_plan plan;
	struct outcome o = {0};
	struct rlimit files;
	struct error e;
	char real[4096];
	int other;

	house_script(h, script, "");
	/* What the supervisor has and its worker must not. */
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	/* Not even close-on-exec. */
	other = fcntl(STDERR_FILENO, F_DUPFD, 33);
	assert_int_equal(other, 33);
	if (worker_plan_make(&plan, &h->sv, h->session, &route, NULL, &e) == -1)
		fail_msg("%s: %s", plan.reason, e.text);
	assert_int_equal(spawn_worker(&plan.spawn, &o.process, &e), 0);
	worker_plan_free(&plan);
	assert_int_equal(o.process.identity.pgid, o.process.identity.pid);
	assert_true(o.process.identity.started_ticks > 0);
	assert_true(o.process.pidfd != -1);
	await_verdict(&o);
	assert_int_equal(o.verdict, 1);
	assert_int_equal(write(o.process.input, "hello\n", 6), 6);
	o.output = read_all(o.process.output);
	assert_int_equal(waitpid(o.process.identity.pid, &o.status, 0),
	    o.process.identity.pid);
	assert_int_equal(WEXITSTATUS(o.status), 3);
	assert_non_null(realpath(h->work, real));
	assert_line(o.output, "line hello\n");
	assert_line(o.output, "cwd %s\n", real);
	assert_line(o.output, "ids %u %u %u\n", h->sv.worker_account.uid,
	    h->sv.worker_account.gid, h->sv.worker_account.gid);
	assert_line(o.output, "umask 0022\n");
	assert_line(o.output, "arg -p\n");
	assert_line(o.output, "group 0 0\n");
	assert_line(o.output, "SigBlk:\t0000000000000000\n");
	assert_line(o.output, "SigIgn:\t0000000000000000\n");
	assert_line(o.output, "NoNewPrivs:\t1\n");
	assert_line(o.output, "fds 0 1");
	assert_null(strstr(o.output, " 33"));
	assert_line(o.output, "nofile 1024\n");
	(void)close(other);
	free(o.output);
	spawned_close(&o.process);
	(void)signal(SIGPIPE, SIG_DFL);
}

/* The walls: what it may write and read, and what not. */
static void
test_confined(void **state)
{
	struct house *h = *state;
	struct outcome o;
	char *script;

	if (sandbox_landlock_abi() < 2)
		skip();
	(void)xasprintf(&script,
	    "#!/bin/sh\n"
	    "t() { if \"$@\" 2>/dev/null; then echo yes; else echo no; fi; }\n"
	    "w() { (: > \"$1\"); }\n"
	    "echo \"work $(t w x)\"\n"
	    "echo \"temp $(t w \"$TMPDIR/x\")\"\n"
	    "echo \"own $(t w \"$HOME/.claude/x\")\"\n"
	    "echo \"home $(t w \"$HOME/x\")\"\n"
	    "echo \"secret $(t ls %s/secret)\"\n"
	    "echo \"config $(t ls %s/conf)\"\n"
	    "echo \"declared $(t grep -q alwaysLoad %s)\"\n"
	    "echo \"null $(t w /dev/null)\"\n"
	    "echo \"tmp $(t ls /tmp)\"\n"
	    "echo \"signal $(t kill -0 %d)\"\n",
	    h->top, h->top, h->session->declaration, (int)getppid());
	assert_int_equal(chmod(h->secret, 0777), 0);
	house_script(h, script, "");
	o = house_run(h);
	assert_line(o.output, "work yes\n");
	assert_line(o.output, "temp yes\n");
	assert_line(o.output, "own yes\n"); /* it was made for it */
	assert_line(o.output, "home no\n");
	assert_line(o.output, "secret no\n");
	assert_line(o.output, "config no\n");
	assert_line(o.output, "declared yes\n");
	assert_line(o.output, "null yes\n");
	assert_line(o.output, "tmp no\n");
	assert_line(o.output, "signal no\n");
	free(o.output);
	free(script);
}

/* A launcher may need a set-user-id program; an agent's own walls do not. */
static void
test_no_new_privs(void **state)
{
	static const char script[] =
	    "#!/bin/sh\ngrep NoNewPrivs /proc/$$/status\n";
	struct house *h = *state;
	struct outcome o;

	house_script(h, script, ",\"confine\":\"agent\"");
	o = house_run(h);
	assert_line(o.output, "NoNewPrivs:\t1\n");
	free(o.output);
	settings_free(h->settings);
	free(h->script);
	assert_true(session_drop_declaration(h->session));
	house_script(h, script, ",\"confine\":\"none\"");
	o = house_run(h);
	assert_line(o.output, "NoNewPrivs:\t0\n");
	free(o.output);
}

static void
test_further_directories(void **state)
{
	struct house *h = *state;
	struct outcome o;
	char *script, *more;

	if (sandbox_landlock_abi() < 2)
		skip();
	(void)xasprintf(&script,
	    "#!/bin/sh\n"
	    "ls %s/secret && echo listed\n(: > %s/secret/x) || "
	    "echo shut\n",
	    h->top, h->top);
	(void)xasprintf(&more, ",\"read\":[\"%s/secret\"]", h->top);
	assert_int_equal(chmod(h->secret, 0777), 0);
	house_script(h, script, more);
	o = house_run(h);
	assert_line(o.output, "listed\nshut\n");
	free(o.output);
	free(script);
	free(more);
}

/* What did not start says why, and has ended. */
static void
test_not_started(void **state)
{
	struct house *h = *state;
	struct outcome o;

	house_script(h, "#!/no/such/interpreter\n", "");
	o = house_run(h);
	assert_int_equal(o.verdict, -1);
	assert_line(o.failure, "agent: No such file or directory");
	assert_true(WIFEXITED(o.status) && WEXITSTATUS(o.status) != 0);
	free(o.output);
}

static void
assert_plan_fails(
    struct house *h, const char *path, const char *reason, const char *says)
{
	char *copy = xstrdup(path);
	const struct config_route route = {
	    .project_id = 1, .path = copy, .class = (char[]){""}};
	struct worker_plan plan;
	struct error e;

	if (worker_plan_make(&plan, &h->sv, h->session, &route, NULL, &e) == 0)
		fail_msg("planned in %s", path);
	assert_string_equal(plan.reason, reason);
	if (strstr(e.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, says);
	worker_plan_free(&plan);
	assert_false(session_drop_declaration(h->session));
	free(copy);
}

static void
test_plans_refused(void **state)
{
	struct house *h = *state;
	char *link, *program;

	house_script(h, "#!/bin/sh\n", "");
	assert_plan_fails(h, "/no/such/dir", "not_started", "No such file");
	(void)xasprintf(&link, "%s/link", h->top);
	assert_int_equal(symlink(h->work, link), 0);
	assert_plan_fails(h, link, "not_started", "link");
	/* By a link above it, into connectd's own directories. */
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(h->top, link), 0);
	(void)xasprintf(&program, "%s/conf/demo", link);
	assert_plan_fails(
	    h, program, "not_started", "connectd's own directory");
	free(program);
	settings_free(h->settings);
	h->sv.settings = h->settings = settings_with(
	    &h->sv.paths, "{\"command\":[\"no-such-program-here\"]}");
	assert_plan_fails(
	    h, h->work, "not_started", "no-such-program-here: not found");
	settings_free(h->settings);
	(void)xasprintf(&program, "{\"command\":[\"%s/conf/demo/x\"]}", h->top);
	h->sv.settings = h->settings = settings_with(&h->sv.paths, program);
	free(program);
	(void)xasprintf(&program, "%s/conf/demo/x", h->top);
	assert_int_equal(close(open(program, O_CREAT | O_WRONLY, 0755)), 0);
	assert_plan_fails(h, h->work, "unusable", "connectd's own directory");
	free(program);
	free(link);
}

static void
test_find_program(void **state)
{
	struct house *h = *state;
	char *path, *found, *file;

	house_script(h, "#!/bin/sh\n", "");
	(void)xasprintf(&path, "relative:%s/work:%s/home:/bin", h->top, h->top);
	(void)xasprintf(&file, "%s/work/agent", h->top);
	assert_int_equal(mkdir(file, 0755), 0); /* a directory is no program */
	found = worker_find_program("agent", path);
	assert_string_equal(found, h->script);
	free(found);
	assert_null(worker_find_program("agent", "/bin"));
	assert_null(worker_find_program("agent", NULL));
	free(path);
	free(file);
}

int
main(void)
{
#define IN_HOUSE(test) \
	cmocka_unit_test_setup_teardown(test, house_make, house_remove)
	const struct CMUnitTest tests[] = {
	    IN_HOUSE(test_process),
	    IN_HOUSE(test_confined),
	    IN_HOUSE(test_no_new_privs),
	    IN_HOUSE(test_further_directories),
	    IN_HOUSE(test_not_started),
	    IN_HOUSE(test_plans_refused),
	    IN_HOUSE(test_find_program),
	};

	/* As the supervisor is: its /proc entries are nobody's. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
