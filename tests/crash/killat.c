#include "tests/crash/killat.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#define EXIT_MISSED 1
#define EXIT_WRONG 2

static struct {
	int signals; /* SIGCHLD, and what ends us */
	bool hears_commands;
	char line[256]; /* of a command, as far as it has come */
	size_t len;
} self;

void
say(json_t *line)
{
	char *text;

	if (line == NULL)
		fatalx("nothing to say");
	text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	if (text == NULL || puts(text) == EOF || fflush(stdout) == EOF)
		fatal("standard output");
	free(text);
}

static void
say_error(const char *what)
{
	say(json_pack("{ss ss}", "what", "error", "why", what));
}

/* ---- commands ----------------------------------------------------------- */

/* What cannot be followed does not start. */
static void
do_seize(unsigned long pid)
{
	if (pid <= 1 || pid > INT_MAX)
		fatalx("seize %lu", pid);
	if (trace_seize((pid_t)pid) == 0)
		return;
	log_warn("seize %lu", pid);
	(void)trace_kill((pid_t)pid);
	exit(EXIT_WRONG);
}

static void
do_arm(unsigned long number)
{
	struct rule *r = rule_get(number);

	if (r == NULL) {
		say_error("arm: no such rule");
		return;
	}
	rule_arm(r);
	say(json_pack("{ss si}", "what", "armed", "rule", rule_number(r)));
}

static void
do_go(unsigned long number)
{
	held_go(rule_get(number)); /* 0 is all */
}

/* The tree at once, wherever it is. */
static void
do_kill(void)
{
	trace_kill_tree(NULL);
	say(json_pack("{ss si}", "what", "kill", "rule", 0));
}

static const struct {
	const char *word;
	void (*act)(unsigned long number);
} commands[] = {{"seize ", do_seize}, {"arm ", do_arm}, {"go ", do_go}};

static void
command_do(const char *line)
{
	size_t i, len;

	if (strcmp(line, "counts") == 0) {
		trace_say_counts();
		return;
	}
	if (strcmp(line, "kill") == 0) {
		do_kill();
		return;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		len = strlen(commands[i].word);
		if (strncmp(line, commands[i].word, len) == 0) {
			commands[i].act(strtoul(line + len, NULL, 10));
			return;
		}
	}
	say_error("no such command");
}

static void
commands_read(void)
{
	char *end;
	ssize_t n;

	n = read(STDIN_FILENO, self.line + self.len,
	    sizeof(self.line) - 1 - self.len);
	if (n <= 0) {
		self.hears_commands = false;
		return;
	}
	self.len += (size_t)n;
	self.line[self.len] = '\0';
	while ((end = strchr(self.line, '\n')) != NULL) {
		*end = '\0';
		command_do(self.line);
		self.len -= (size_t)(end + 1 - self.line);
		memmove(self.line, end + 1, self.len + 1);
	}
	if (self.len == sizeof(self.line) - 1)
		fatalx("a command that is too long");
}

/* ---- the loop ----------------------------------------------------------- */

static void
signals_take(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	self.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (self.signals == -1)
		fatal("signalfd");
}

/* False when one came that ends us. */
static bool
signals_read(void)
{
	struct signalfd_siginfo info;

	while (read(self.signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			return false;
	}
	return true;
}

static void
loop(void)
{
	struct pollfd fds[2] = {
	    {.fd = self.signals, .events = POLLIN}, {.events = POLLIN}};

	while (trace_reap()) {
		fds[1].fd = self.hears_commands ? STDIN_FILENO : -1;
		if (poll(fds, 2, -1) == -1 && errno != EINTR)
			fatal("poll");
		if (fds[0].revents != 0 && !signals_read())
			return;
		if (fds[1].revents != 0)
			commands_read();
	}
}

/* Stopped before its exec, as whoever is seized must be. */
static void
command_start(char *const argv[])
{
	sigset_t none;
	pid_t pid = fork();

	if (pid == -1)
		fatal("fork");
	if (pid != 0) {
		do_seize((unsigned long)pid);
		return;
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	(void)raise(SIGSTOP);
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)execvp(argv[0], argv);
	log_warn("%s", argv[0]);
	_exit(EXIT_WRONG);
}

static int
verdict(void)
{
	json_t *missed = json_array();
	bool any = rules_missed(missed);

	trace_say_counts();
	say(json_pack("{ss so}", "what", "end", "missed", missed));
	return any ? EXIT_MISSED : EXIT_SUCCESS;
}

static _Noreturn void
usage(void)
{
	(void)fprintf(
	    stderr, "usage: killat [-c] RULE... [-- COMMAND [ARGUMENT...]]\n");
	exit(EXIT_WRONG);
}

int
main(int argc, char **argv)
{
	const char *why;
	int i = 1;

	log_init("killat", LOG_LEVEL_INFO);
	if (i < argc && strcmp(argv[i], "-c") == 0) {
		trace_counts_all = true;
		i++;
	}
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (rule_add(argv[i], &why) == -1) {
			log_warnx("%s: %s", argv[i], why);
			usage();
		}
	}
	if (i == argc - 1)
		usage();
	signals_take();
	self.hears_commands = true;
	if (i < argc)
		command_start(argv + i + 1);
	loop();
	return verdict();
}
