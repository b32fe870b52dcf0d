#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/crash/tracer.h"

static _Noreturn void
be_killat(const char *program, const char *const *rules, int input, int output)
{
	char *argv[16] = {(char *)(uintptr_t)program};
	size_t i;

	for (i = 0; rules[i] != NULL; i++) {
		if (i + 2 == sizeof(argv) / sizeof(argv[0]))
			_exit(1);
		argv[i + 1] = (char *)(uintptr_t)rules[i];
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(input, STDIN_FILENO) == -1 ||
	    dup2(output, STDOUT_FILENO) == -1)
		_exit(1);
	(void)execv(program, argv);
	_exit(1);
}

void
tracer_start(struct tracer *t, const char *program, const char *const *rules)
{
	int input[2], output[2];

	if (pipe2(input, O_CLOEXEC) == -1 || pipe2(output, O_CLOEXEC) == -1)
		fatal("pipe");
	t->pid = fork();
	if (t->pid == -1)
		fatal("fork");
	if (t->pid == 0)
		be_killat(program, rules, input[0], output[1]);
	(void)close(input[0]);
	(void)close(output[1]);
	t->commands = input[1];
	t->said = fdopen(output[0], "re");
	if (t->said == NULL)
		fatal("fdopen");
}

void
tracer_birth(struct tracer *t)
{
	(void)prctl(PR_SET_PTRACER, t->pid, 0, 0, 0);
	if (dprintf(t->commands, "seize %d\n", getpid()) < 0)
		_exit(1);
	(void)raise(SIGSTOP);
}

bool
tracer_said(const json_t *record, const char *what)
{
	const char *said = json_string_value(json_object_get(record, "what"));

	return said != NULL && strcmp(said, what) == 0;
}

json_t *
tracer_next(struct tracer *t)
{
	json_t *record;
	json_error_t e;
	char *line = NULL;
	size_t size = 0;

	if (getline(&line, &size, t->said) == -1) {
		free(line);
		return NULL;
	}
	record = json_loads(line, JSON_ALLOW_NUL, &e);
	if (record == NULL)
		fatalx("killat said %s", log_safe(line));
	free(line);
	return record;
}

void
tracer_arm(struct tracer *t, int n)
{
	if (dprintf(t->commands, "arm %d\n", n) < 0)
		fatal("killat");
}

void
tracer_await(struct tracer *t, const char *what)
{
	json_t *record;
	bool is_said = false;

	while (!is_said) {
		record = tracer_next(t);
		if (record == NULL)
			fatalx("killat ended, and had not said %s", what);
		is_said = tracer_said(record, what);
		json_decref(record);
	}
}

void
tracer_await_armed(struct tracer *t, int n)
{
	tracer_arm(t, n);
	tracer_await(t, "armed");
}

void
tracer_go(struct tracer *t, int n)
{
	if (dprintf(t->commands, "go %d\n", n) < 0)
		fatal("killat");
}

int
tracer_end(struct tracer *t)
{
	json_t *record;
	int status;

	while ((record = tracer_next(t)) != NULL)
		json_decref(record);
	(void)fclose(t->said);
	(void)close(t->commands);
	while (waitpid(t->pid, &status, 0) == -1) {
		if (errno != EINTR)
			fatal("waitpid");
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
