#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/exit.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "connectctl/offline.h"
#include "supervisor/kernel.h"
#include "supervisor/locate.h"

#define CONFIG_MOST ((size_t)1024 * 1024)
#define ANSWER_MOST ((size_t)16 * 1024 * 1024)
#define NOTE_MOST 4096
#define WORDS_MOST 8
#define WORDS_SIZE 512 /* of a reason */

static const struct json_rules config_rules = {
    .max_bytes = CONFIG_MOST, .max_depth = 64, .max_members = 100000};
static const struct json_rules answer_rules = {
    .max_bytes = ANSWER_MOST, .max_depth = 64, .max_members = 1000000};

/* Returns -1; what E said, as it is, under an exit code. */
static int
wrong(struct error *e, enum exit_code code)
{
	e->code = (int)code;
	return -1;
}

/* ---- which state directory ----------------------------------------------- */

struct who {
	int64_t account_id, agent_id;
};

/* connect.json writes the account as digits in a string. */
static int
account_read(const json_t *config, int64_t *out, struct error *e)
{
	struct json_text text;
	char *end;

	if (json_member_string(config, "account_id", JSON_REQUIRED, &text, e) ==
	    -1)
		return -1;
	errno = 0;
	*out = strtoll(text.bytes, &end, 10);
	if (errno != 0 || *end != '\0' || text.has_nul || *out <= 0)
		return error_set(e, "account_id is no number");
	return 0;
}

/*
 * Of connect.json only what names the state directory: whether the rest is
 * right is for connectd to say.
 */
static int
who_read(const struct paths *paths, struct who *who, struct error *e)
{
	char *path, *text = NULL;
	json_t *config = NULL, *agent;
	struct error why;
	size_t len;
	int rc = -1;

	(void)xasprintf(&path, "%s/connect.json", paths->config_dir);
	if (path_read_private(
		path, geteuid(), 022, CONFIG_MOST, &text, &len, e) == -1) {
		e->code = e->code == ENOENT ? EXIT_CONFIG : EXIT_REFUSED;
		goto out;
	}
	config = json_read(text, len, &config_rules, &why);
	if (config != NULL &&
	    account_read(config, &who->account_id, &why) == 0 &&
	    json_member_object(config, "agent", JSON_REQUIRED, &agent, &why) ==
		0 &&
	    json_member_id(
		agent, "person_id", JSON_REQUIRED, &who->agent_id, &why) == 0) {
		rc = 0;
	} else {
		(void)error_set(e, "%s: %s", path, why.text);
		e->code = EXIT_CONFIG;
	}
out:
	json_decref(config);
	free(text);
	free(path);
	return rc;
}

/* ---- the lock's note ----------------------------------------------------- */

/* A number may have been used again: that is all that can be said. */
static const char *
pid_status(int64_t pid)
{
	if (pid <= 1)
		return "unknown";
	if (kill((pid_t)pid, 0) == 0 || errno == EPERM)
		return "present";
	return errno == ESRCH ? "absent" : "unknown";
}

json_t *
offline_lock_holder(const struct paths *paths)
{
	char *path = NULL, *text = NULL;
	json_t *note = NULL, *holder = json_null();
	struct json_text started;
	struct error e;
	struct who who;
	int64_t pid;
	size_t len;

	if (who_read(paths, &who, &e) == -1)
		return holder;
	(void)xasprintf(&path, "%s/instance-%lld-%lld.lock.json",
	    paths->state_root, (long long)who.account_id,
	    (long long)who.agent_id);
	if (path_read_private(
		path, geteuid(), 077, NOTE_MOST, &text, &len, &e) == 0)
		note = json_read(text, len, &config_rules, &e);
	if (note != NULL &&
	    json_member_id(note, "pid", JSON_REQUIRED, &pid, &e) == 0 &&
	    json_member_string(
		note, "started_at", JSON_REQUIRED, &started, &e) == 0)
		holder = json_pack("{s:I,s:s,s:s}", "pid", (json_int_t)pid,
		    "started_at", started.bytes, "pid_status", pid_status(pid));
	json_decref(note);
	free(text);
	free(path);
	return holder;
}

/* ---- the inspection ------------------------------------------------------ */

struct inspection {
	char *state_dir;
	uid_t uid;
	gid_t gid;
	int program;
	int pipe[2];
	int said[2]; /* its standard error */
	char *argv[WORDS_MOST + 1];
};

/* In the forked child: the owner, so that nothing it makes is root's. */
static _Noreturn void
inspection_exec(const struct inspection *i)
{
#ifdef INSECURE_BUILD
	extern char **environ; /* it holds what sanitizers are told */
	char **env = environ;
#else
	char *env[] = {NULL};
#endif

	if (geteuid() == 0 &&
	    (setgroups(1, &i->gid) == -1 ||
		setresgid(i->gid, i->gid, i->gid) == -1 ||
		setresuid(i->uid, i->uid, i->uid) == -1))
		_exit(EXIT_WALLS);
	if (dup2(i->pipe[1], STDOUT_FILENO) != -1 &&
	    dup2(i->said[1], STDERR_FILENO) != -1)
		kernel_exec(i->program, STDERR_FILENO + 1, i->argv, env);
	_exit(EXIT_CRASH);
}

static int
inspection_prepare(struct inspection *i, const struct paths *paths,
    const char *const words[], struct error *e)
{
	static char name[] = "connectd-ledger", flag[] = "--inspect";
	struct stat st;
	struct who who;
	size_t n = 0;
	char *path;

	if (who_read(paths, &who, e) == -1)
		return -1;
	i->state_dir =
	    path_state_dir(paths->state_root, who.account_id, who.agent_id);
	if (stat(i->state_dir, &st) == -1) {
		bool is_missing = errno == ENOENT;

		(void)error_errno(e, "%s%s",
		    is_missing ? "it has not run yet: " : "", i->state_dir);
		return wrong(e, is_missing ? EXIT_NOT_RUNNING : EXIT_REFUSED);
	}
	i->uid = st.st_uid;
	i->gid = st.st_gid;
	if (geteuid() != 0 && geteuid() != st.st_uid) {
		(void)error_set(e, "%s belongs to somebody else", i->state_dir);
		return wrong(e, EXIT_REFUSED);
	}
	if (locate_program(name, "ledger", &path, e) == -1)
		return wrong(e, EXIT_REFUSED);
	i->program = open(path, O_RDONLY | O_CLOEXEC);
	if (i->program == -1)
		(void)error_errno(e, "%s", path);
	free(path);
	i->argv[n++] = name;
	i->argv[n++] = flag;
	i->argv[n++] = i->state_dir;
	while (*words != NULL && n < WORDS_MOST)
		i->argv[n++] = (char *)(uintptr_t)*words++;
	i->argv[n] = NULL;
	return i->program == -1 ? wrong(e, EXIT_REFUSED) : 0;
}

static int
answer_collect(int fd, struct buffer *b, struct error *e)
{
	char piece[65536];
	ssize_t n;

	for (;;) {
		n = read(fd, piece, sizeof(piece));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return error_errno(e, "connectd-ledger --inspect");
		if (n == 0)
			return 0;
		if (b->len + (size_t)n > ANSWER_MOST)
			return error_set(e,
			    "connectd-ledger --inspect: an "
			    "endless answer");
		buffer_add(b, piece, (size_t)n);
	}
}

/* The first line that it said, without who says it; "" for none. */
static void
words_read(int fd, char *words, size_t size)
{
	static const char mark[] = "warn: ";
	ssize_t n = read(fd, words, size - 1);
	const char *found;

	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	found = strstr(words, mark);
	if (found != NULL)
		memmove(words, found + strlen(mark),
		    strlen(found + strlen(mark)) + 1);
}

static int
inspection_end(const struct inspection *i, pid_t pid, struct error *e)
{
	char words[WORDS_SIZE];
	int status;

	words_read(i->said[0], words, sizeof(words));
	while (waitpid(pid, &status, 0) == -1) {
		if (errno != EINTR) {
			(void)error_errno(e, "waitpid");
			return wrong(e, EXIT_FAILED);
		}
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK)
		return 0;
	if (WIFEXITED(status)) {
		(void)error_set(e, "the ledger could not be read%s%s",
		    words[0] == '\0' ? "" : ": ", log_safe(words));
		return wrong(e, (enum exit_code)WEXITSTATUS(status));
	}
	(void)error_set(e, "connectd-ledger --inspect: ended by signal %d",
	    WTERMSIG(status));
	return wrong(e, EXIT_FAILED);
}

/* Its answer has an end when it has; what it says is a line or two. */
static int
inspection_run(struct inspection *i, struct buffer *b, struct error *e)
{
	pid_t pid;
	int rc;

	if (pipe2(i->pipe, O_CLOEXEC) == -1 ||
	    pipe2(i->said, O_CLOEXEC) == -1) {
		(void)error_errno(e, "pipe");
		return wrong(e, EXIT_FAILED);
	}
	pid = fork();
	if (pid == 0)
		inspection_exec(i);
	(void)close(i->pipe[1]);
	(void)close(i->said[1]);
	if (pid == -1)
		rc = error_errno(e, "fork");
	else
		rc = answer_collect(i->pipe[0], b, e);
	(void)close(i->pipe[0]);
	if (rc == -1)
		(void)wrong(e, EXIT_FAILED);
	if (pid != -1 && inspection_end(i, pid, e) == -1)
		rc = -1;
	(void)close(i->said[0]);
	return rc;
}

json_t *
offline_ask(
    const struct paths *paths, const char *const words[], struct error *e)
{
	struct inspection i = {.program = -1};
	struct buffer b = {0};
	json_t *answer = NULL;

	if (inspection_prepare(&i, paths, words, e) == 0 &&
	    inspection_run(&i, &b, e) == 0) {
		answer = json_read(
		    b.bytes == NULL ? "" : b.bytes, b.len, &answer_rules, e);
		if (answer == NULL)
			e->code = EXIT_FAILED;
	}
	if (i.program != -1)
		(void)close(i.program);
	buffer_free(&b);
	free(i.state_dir);
	return answer;
}
