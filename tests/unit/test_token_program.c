/*
 * The token's descriptor in the hands of connectd-mcpd itself, in both forms
 * (ledger.md 7, T81 to T88): what it still holds is looked at in the moment of
 * its exit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "mcpd/options.h"
#include "mcpd/token.h"
#include "tests/unit/trap.h"

#define TOKEN "0123456789abcdefghijklmnopqrstuvwxyzABCDE-_"
#define STATE "--connect-state", "/nowhere"
#define FD "--connect-token-fd"
#define TOKEN_FD 9
#define LINK_FD 3
#define WORDS_MAX 10
#define WAIT_MS 10000

static const char *mcpd_path; /* argv[1] of the test */

/* What the supervised form has more. */
static const char *const forms[] = {NULL, "--supervised"};
#define FORMS 2

/* ---- one run ---------------------------------------------------------- */

struct run {
	pid_t pid;
	int said; /* its standard error */
	int link; /* our end of what is its descriptor 3 */

	/* At its exit. */
	int status;
	char errors[2048];
	char held[64]; /* what its TOKEN_FD was, "" when it was closed */
	bool is_sealed;
};

/* What a descriptor of that process is: "pipe:[4711]"; "" when closed. */
static void
descriptor_of(pid_t pid, int fd, char out[static 64])
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, out, 63);
	out[n < 0 ? 0 : n] = '\0';
}

static bool
is_cloexec(pid_t pid, int fd)
{
	char path[64], text[256];
	unsigned int flags = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (fgets(text, sizeof(text), file) != NULL &&
	    sscanf(text, "flags: %o", &flags) != 1)
		continue;
	(void)fclose(file);
	return (flags & O_CLOEXEC) != 0;
}

/* The child's part: its descriptors are TOKEN_FD, the link, and stdio. */
static _Noreturn void
exec_program(int fd, int link, int said, char *const argv[])
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (fd == TOKEN_FD || link == TOKEN_FD || said == TOKEN_FD)
		_exit(126);
	if (fd != -1)
		(void)dup2(fd, TOKEN_FD);
	(void)dup2(said, STDERR_FILENO);
	(void)dup2(said, STDOUT_FILENO);
	(void)dup2(link, LINK_FD);
	(void)execv(mcpd_path, argv);
	_exit(127);
}

/* FD (-1: none) becomes its TOKEN_FD. It waits to be let go. */
static void
run_begin(struct run *run, int fd, const char *const words[], const char *form)
{
	char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t)mcpd_path};
	int said[2], link[2];
	size_t n = 1;

	memset(run, 0, sizeof(*run));
	for (; *words != NULL; words++)
		argv[n++] = (char *)(uintptr_t)*words;
	argv[n] = (char *)(uintptr_t)form;
	assert_int_equal(0, pipe2(said, O_CLOEXEC));
	assert_int_equal(
	    0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link));
	run->pid = fork();
	if (run->pid == 0)
		exec_program(fcntl(fd, F_DUPFD_CLOEXEC, 20),
		    fcntl(link[1], F_DUPFD_CLOEXEC, 20),
		    fcntl(said[1], F_DUPFD_CLOEXEC, 20), argv);
	(void)close(said[1]);
	(void)close(link[1]);
	run->said = said[0];
	run->link = link[0];
	assert_int_equal(run->pid, waitpid(run->pid, &run->status, 0));
	assert_true(WIFSTOPPED(run->status)); /* at its exec */
	assert_int_equal(0,
	    ptrace(PTRACE_SETOPTIONS, run->pid, NULL,
		(void *)(uintptr_t)PTRACE_O_TRACEEXIT));
	assert_int_equal(0, ptrace(PTRACE_CONT, run->pid, NULL, NULL));
}

static void
run_look(struct run *run)
{
	descriptor_of(run->pid, TOKEN_FD, run->held);
	run->is_sealed = is_cloexec(run->pid, TOKEN_FD);
}

static void
run_end(struct run *run)
{
	size_t len = 0;
	ssize_t n;
	int signal;

	for (;;) {
		assert_int_equal(run->pid, waitpid(run->pid, &run->status, 0));
		if (!WIFSTOPPED(run->status))
			break;
		signal = WSTOPSIG(run->status);
		if (run->status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
			run_look(run);
			signal = 0;
		}
		(void)ptrace(PTRACE_CONT, run->pid, NULL,
		    (void *)(uintptr_t)(unsigned int)signal);
	}
	run->status =
	    WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -run->status;
	while ((n = read(run->said, run->errors + len,
		    sizeof(run->errors) - 1 - len)) > 0)
		len += (size_t)n;
	run->errors[len] = '\0';
	(void)close(run->said);
	(void)close(run->link);
	assert_null(strstr(run->errors, TOKEN));
}

static void
run_whole(struct run *run, int fd, const char *const words[], const char *form)
{
	run_begin(run, fd, words, form);
	run_end(run);
}

/* ---- a token in a pipe ------------------------------------------------- */

struct offer {
	int fds[2];
	int flags; /* of the read end, as made */
	char name[64];
};

static void
offer_make(struct offer *o, const char *text, size_t len)
{
	assert_int_equal(0, pipe2(o->fds, O_CLOEXEC));
	assert_int_equal((ssize_t)len, write(o->fds[1], text, len));
	o->flags = fcntl(o->fds[0], F_GETFL);
	descriptor_of(getpid(), o->fds[0], o->name);
}

static void
offer_drop(struct offer *o)
{
	(void)close(o->fds[0]);
	(void)close(o->fds[1]);
}

/* Nothing was read, and it is the descriptor that it was, mode and all. */
static bool
is_untouched(const struct offer *o, const struct run *run)
{
	struct pollfd pfd = {.fd = o->fds[0], .events = POLLIN};
	char left[64];

	return strcmp(o->name, run->held) == 0 &&
	    fcntl(o->fds[0], F_GETFL) == o->flags && poll(&pfd, 1, 0) == 1 &&
	    read(o->fds[0], left, sizeof(left)) == (ssize_t)strlen(TOKEN) + 1;
}

/* ---- T81: what is no whole command takes nothing ----------------------- */

static const struct {
	const char *words[WORDS_MAX];
	int status;
	const char *says;
} untouched[] = {
    {{STATE, FD, "9", "--read-only"}, 64, "--read-only"},
    {{FD, "9", "--read-only"}, 64, "--read-only"},
    {{FD, "9"}, 64, "--connect-state"},
    {{"--connect-state", " ", FD, "9"}, 64, "--connect-state"},
    {{STATE}, 64, "--connect-token-fd"},
    {{STATE, FD, "9", "--help"}, 0, "usage:"},
    {{"--help"}, 0, "usage:"},
    {{STATE, FD, "9", "--version"}, 0, "connectd-mcpd "},
    {{STATE, FD, "9", "--frob"}, 64, "--frob"},
    {{STATE, FD, "9", "--domains", "x"}, 64, "--domains"},
    {{STATE, FD, "9", "more"}, 64, "more"},
    {{STATE, FD, "9x"}, 64, "not a descriptor"},
    {{STATE, FD, "2147483648"}, 64, "out of range"},
    {{STATE, FD, "2"}, 78, "2 is not for"},
    {{STATE, FD, "77"}, 78, "77"},
};

static void
try_untouched(size_t i, const char *form)
{
	struct offer o;
	struct run run;

	offer_make(&o, TOKEN "\n", strlen(TOKEN) + 1);
	run_whole(&run, o.fds[0], untouched[i].words, form);
	if (run.status != untouched[i].status ||
	    strstr(run.errors, untouched[i].says) == NULL)
		fail_msg("row %zu: %d, %s", i, run.status, run.errors);
	if (!is_untouched(&o, &run))
		fail_msg("row %zu: its pipe was touched", i);
	assert_true(run.is_sealed);
	offer_drop(&o);
}

static void
what_is_no_whole_command_leaves_the_pipe(void **state)
{
	size_t i, form;

	for (form = 0; form < FORMS; form++) {
		for (i = 0; i < sizeof(untouched) / sizeof(untouched[0]); i++)
			try_untouched(i, forms[form]);
	}
}

/* ---- T82, T83: what is no pipe ------------------------------------------ */

static const char *const whole[] = {STATE, FD, "9", NULL};

static void
try_no_pipe(int fd, const char *form)
{
	int flags = fcntl(fd, F_GETFL);
	off_t at = lseek(fd, 0, SEEK_CUR);
	struct run run;
	char name[64];

	descriptor_of(getpid(), fd, name);
	run_whole(&run, fd, whole, form);
	assert_int_equal(78, run.status);
	assert_non_null(strstr(run.errors, "neither a pipe nor a socket"));
	assert_string_equal(name, run.held);
	assert_int_equal(flags, fcntl(fd, F_GETFL));
	assert_int_equal(at, lseek(fd, 0, SEEK_CUR));
}

static void
what_is_no_pipe_is_refused_and_left(void **state)
{
	char path[] = "/tmp/test_token.XXXXXX";
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int file = mkstemp(path), dir = open("/", O_RDONLY | O_CLOEXEC);
	size_t form;

	assert_int_equal(44, write(file, TOKEN "\n", 44));
	assert_int_equal(5, lseek(file, 5, SEEK_SET));
	assert_int_not_equal(-1, terminal);
	for (form = 0; form < FORMS; form++) {
		try_no_pipe(file, forms[form]);
		try_no_pipe(dir, forms[form]);
		try_no_pipe(terminal, forms[form]);
	}
	(void)close(file);
	(void)close(dir);
	(void)close(terminal);
	(void)unlink(path);
}

static void
a_closed_number_is_refused(void **state)
{
	struct run run;
	size_t form;

	for (form = 0; form < FORMS; form++) {
		run_whole(&run, -1, whole, forms[form]);
		assert_int_equal(78, run.status);
		assert_non_null(strstr(run.errors, "--connect-token-fd: 9"));
	}
}

/* ---- T84, T85: what is no token is taken, and closed -------------------- */

static void
a_silent_writer_is_given_up(void **state)
{
	int64_t from = clock_monotonic_ms();
	struct run runs[FORMS];
	struct offer offers[FORMS];
	size_t form;

	for (form = 0; form < FORMS; form++) {
		offer_make(&offers[form], "half", 4);
		run_begin(&runs[form], offers[form].fds[0], whole, forms[form]);
	}
	for (form = 0; form < FORMS; form++) {
		run_end(&runs[form]);
		assert_in_range(clock_monotonic_ms() - from, 4900, 9000);
		assert_int_equal(78, runs[form].status);
		assert_non_null(strstr(runs[form].errors, "within 5 s"));
		assert_string_equal("", runs[form].held);
		offer_drop(&offers[form]);
	}
}

static const struct {
	size_t len; /* of that many x; 0: the text */
	const char *text, *says;
} no_tokens[] = {
    {TOKEN_READ_MAX + 1, "", "too long"},
    {0, "\n", "empty"},
    {0, " \t\r\n", "empty"},
};

static void
no_token_is_refused_and_the_pipe_closed(void **state)
{
	static char bytes[TOKEN_READ_MAX + 1];
	struct offer o;
	struct run run;
	size_t i, form, len;

	for (i = 0; i < sizeof(no_tokens) / sizeof(no_tokens[0]); i++) {
		len = no_tokens[i].len;
		memset(bytes, 'x', sizeof(bytes));
		if (len == 0) {
			len = strlen(no_tokens[i].text);
			memcpy(bytes, no_tokens[i].text, len);
		}
		for (form = 0; form < FORMS; form++) {
			offer_make(&o, bytes, len);
			run_whole(&run, o.fds[0], whole, forms[form]);
			assert_int_equal(78, run.status);
			assert_non_null(strstr(run.errors, no_tokens[i].says));
			assert_null(strstr(run.errors, "xxx"));
			assert_string_equal("", run.held);
			offer_drop(&o);
		}
	}
}

/* ---- T86: closed before anything else ----------------------------------- */

/* Its own end is the last one: when it is closed the writer hears of it. */
static void
wait_closed(int write_end)
{
	struct pollfd pfd = {.fd = write_end};
	int64_t until = clock_monotonic_ms() + WAIT_MS;

	while (poll(&pfd, 1, 100) == 0)
		assert_true(clock_monotonic_ms() < until);
	assert_true((pfd.revents & POLLERR) != 0);
}

/* It waits for SETUP, long before it could bind; then it never can. */
static void
the_supervised_form_has_closed_it_before_setup(void **state)
{
	static const char *const words[] = {
	    "--supervised", STATE, FD, "9", NULL};
	struct offer o;
	struct run run;

	offer_make(&o, TOKEN "\n", strlen(TOKEN) + 1);
	run_begin(&run, o.fds[0], words, NULL);
	(void)close(o.fds[0]);
	wait_closed(o.fds[1]);
	descriptor_of(run.pid, TOKEN_FD, run.held);
	assert_string_equal("", run.held);
	assert_int_equal(0, kill(run.pid, 0)); /* it is there, and waits */
	(void)close(run.link);
	run.link = -1;
	run_end(&run);
	assert_int_not_equal(0, run.status);
	assert_string_equal("", run.held);
	(void)close(o.fds[1]);
}

/* There is no ledger to bind to: closed all the same. */
static void
the_standalone_form_has_closed_it_when_it_fails(void **state)
{
	struct offer o;
	struct run run;

	offer_make(&o, TOKEN "\nrest", strlen(TOKEN) + 5);
	run_whole(&run, o.fds[0], whole, NULL);
	assert_int_equal(69, run.status);
	assert_non_null(strstr(run.errors, "no connector ledger in /nowhere"));
	assert_string_equal("", run.held);
	offer_drop(&o);
}

/* ---- T87: sealed first, or not at all ----------------------------------- */

/* In the child only: this call fails from now on. */
static void
refuse_close_range(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (ctx == NULL ||
	    seccomp_rule_add(
		ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(close_range), 0) != 0 ||
	    seccomp_load(ctx) != 0)
		_exit(125);
	seccomp_release(ctx);
}

static void
what_cannot_be_sealed_is_not_started(void **state)
{
	static const char *const help[] = {"--help", NULL};
	const char *const *const commands[] = {whole, help};
	size_t i, form;
	int status;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		for (form = 0; form < FORMS; form++) {
			struct offer o;
			struct run run;

			offer_make(&o, TOKEN "\n", strlen(TOKEN) + 1);
			pid = fork();
			if (pid == 0) {
				refuse_close_range();
				run_whole(
				    &run, o.fds[0], commands[i], forms[form]);
				_exit(run.status == 71 && !run.is_sealed &&
					    is_untouched(&o, &run)
					? 0
					: 1);
			}
			assert_int_equal(pid, waitpid(pid, &status, 0));
			assert_int_equal(0, status);
			offer_drop(&o);
		}
	}
}

/* ---- T88: not from the environment -------------------------------------- */

static void
the_variable_is_refused_whatever_is_asked(void **state)
{
	static const char *const commands[][WORDS_MAX] = {
	    {STATE, FD, "9"},
	    {STATE},
	    {FD, "9"},
	    {"--help"},
	    {"--version"},
	    {"--read-only"},
	    {NULL},
	};
	struct offer o;
	struct run run;
	size_t i, form;

	assert_int_equal(0, setenv(TOKEN_VARIABLE, TOKEN, 1));
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (form = 0; form < FORMS; form++) {
			offer_make(&o, TOKEN "\n", strlen(TOKEN) + 1);
			run_whole(&run, o.fds[0], commands[i], forms[form]);
			assert_int_equal(64, run.status);
			assert_non_null(strstr(run.errors, TOKEN_VARIABLE));
			assert_true(is_untouched(&o, &run));
			offer_drop(&o);
		}
	}
	(void)unsetenv(TOKEN_VARIABLE);
}

/* The link is not to be mistaken for it. */
static void
the_link_is_no_token(void **state)
{
	static const char *const words[] = {STATE, FD, "3", NULL};
	struct run run;

	run_whole(&run, -1, words, "--supervised");
	assert_int_equal(64, run.status);
	assert_non_null(strstr(run.errors, "3 is the link"));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TRAP("T81 T83", what_is_no_whole_command_leaves_the_pipe, NULL,
		NULL),
	    TRAP("T82", what_is_no_pipe_is_refused_and_left, NULL, NULL),
	    TRAP("T83", a_closed_number_is_refused, NULL, NULL),
	    TRAP("T84", a_silent_writer_is_given_up, NULL, NULL),
	    TRAP("T85", no_token_is_refused_and_the_pipe_closed, NULL, NULL),
	    TRAP("T86", the_supervised_form_has_closed_it_before_setup, NULL,
		NULL),
	    TRAP("T86", the_standalone_form_has_closed_it_when_it_fails, NULL,
		NULL),
	    TRAP("T87", what_cannot_be_sealed_is_not_started, NULL, NULL),
	    TRAP("T88", the_variable_is_refused_whatever_is_asked, NULL, NULL),
	    cmocka_unit_test(the_link_is_no_token),
	};

	if (argc < 2)
		return 77;
	mcpd_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
