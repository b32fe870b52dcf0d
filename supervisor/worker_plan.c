#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"
#include "supervisor/worker.h"

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

extern char **environ;

static int
refuse(struct worker_plan *plan, const char *reason)
{
	plan->reason = reason;
	return -1;
}

/* ---- directories -------------------------------------------------------- */

/* The kernel calls a link that is not followed no directory. */
static int
dir_refuse(const char *dir, struct error *e)
{
	struct stat st;
	int code = errno;

	if (code == ENOTDIR && lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
		return error_set(e,
		    "%s: a symbolic link; name the directory itself",
		    log_safe(dir));
	errno = code;
	return error_errno(e, "%s", log_safe(dir));
}

/*
 * Open DIR and judge where it really is: what is opened is what is used, so
 * that nothing can be put in its place afterwards. The descriptor stays the
 * plan's.
 */
static int
dir_open(struct worker_plan *plan, const struct supervisor *sv, const char *dir,
    int flags, struct error *e)
{
	char real[PATH_MAX];
	const char *own;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);

	if (fd == -1)
		return dir_refuse(dir, e);
	plan->fds =
	    xreallocarray(plan->fds, plan->fd_count + 1, sizeof(*plan->fds));
	plan->fds[plan->fd_count++] = fd;
	if (spawn_path_of(fd, real, sizeof(real)) == -1) {
		(void)error_errno(e, "%s", log_safe(dir));
		return -1;
	}
	own = settings_own_directory(&sv->paths, real);
	if (own == NULL)
		return fd;
	return error_set(e,
	    "%s: contains or lies in connectd's own directory "
	    "%s",
	    log_safe(dir), log_safe(own));
}

/* A rule by the descriptor, which the forked child still has. */
static void
rule_add(struct string_list *list, int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	string_list_add(list, path);
}

static int
rules_add(struct worker_plan *plan, const struct supervisor *sv,
    struct string_list *list, const struct string_list *dirs, struct error *e)
{
	size_t i;
	int fd;

	for (i = 0; i < dirs->count; i++) {
		fd = dir_open(plan, sv, dirs->list[i], 0, e);
		if (fd == -1)
			return refuse(plan, WORKER_UNUSABLE);
		rule_add(list, fd);
	}
	return 0;
}

/* The directory in which a program lies, to be read by who runs it. */
static int
rule_for_program(struct worker_plan *plan, const struct supervisor *sv,
    const char *program, struct error *e)
{
	char real[PATH_MAX], *slash;
	int fd;

	if (program[0] != '/' || realpath(program, real) == NULL)
		return 0; /* its exec will tell */
	slash = strrchr(real, '/');
	slash[slash == real] = '\0';
	fd = dir_open(plan, sv, real, 0, e);
	if (fd == -1)
		return refuse(plan, WORKER_UNUSABLE);
	rule_add(&plan->read, fd);
	return 0;
}

/* Where the agent keeps its own settings and sessions. */
static int
plan_own_dir(
    struct worker_plan *plan, const struct supervisor *sv, struct error *e)
{
	const char *dir = worker_env_get(&plan->env, "CLAUDE_CONFIG_DIR");
	const char *home = worker_env_get(&plan->env, "HOME");
	const char *own;

	if (dir != NULL && dir[0] != '\0')
		plan->own_dir = xstrdup(dir);
	else
		(void)xasprintf(&plan->own_dir, "%s/.claude",
		    home != NULL ? home : sv->worker_account.home);
	if (!path_is_clean(plan->own_dir)) {
		(void)error_set(e,
		    "the agent's own directory %s is not a "
		    "clean absolute path",
		    log_safe(plan->own_dir));
		return refuse(plan, WORKER_UNUSABLE);
	}
	own = settings_own_directory(&sv->paths, plan->own_dir);
	if (own == NULL)
		return 0;
	(void)error_set(e,
	    "the agent's own directory %s contains or lies in "
	    "connectd's own %s",
	    log_safe(plan->own_dir), log_safe(own));
	return refuse(plan, WORKER_UNUSABLE);
}

static int
plan_rules(struct worker_plan *plan, const struct supervisor *sv,
    const struct session *session, const char *program, struct error *e)
{
	const struct settings *s = sv->settings;

	if (plan_own_dir(plan, sv, e) == -1 ||
	    rule_for_program(plan, sv, plan->file, e) == -1 ||
	    rule_for_program(plan, sv, program, e) == -1 ||
	    rule_for_program(plan, sv, sv->bridge_path, e) == -1 ||
	    rules_add(plan, sv, &plan->read, &s->worker.read, e) == -1)
		return -1;
	string_list_add(&plan->read, session->dir);
	rule_add(&plan->write, plan->spawn.route);
	string_list_add(&plan->write, session->temp);
	string_list_add(&plan->write, plan->own_dir);
	return rules_add(plan, sv, &plan->write, &s->worker.write, e);
}

/* ---- the whole ---------------------------------------------------------- */

/* A program by its path, or by its name on the supervisor's PATH. */
static char *
program_find(const char *word, struct error *e)
{
	char *found;

	if (strchr(word, '/') != NULL)
		return xstrdup(word);
	found = worker_find_program(word, getenv("PATH"));
	if (found == NULL)
		(void)error_set(e, "%s: not found on the PATH", log_safe(word));
	return found;
}

/*
 * What is run, and in *PROGRAM the agent's own program: as written when a
 * launcher finds it, for that may be elsewhere.
 */
static int
plan_program(struct worker_plan *plan, const struct settings *s, char **program,
    struct error *e)
{
	const char *word = s->worker.command.count > 0
	    ? s->worker.command.list[0]
	    : s->worker.driver;

	if (s->worker.launcher.count > 0) {
		*program = xstrdup(word);
		plan->file = program_find(s->worker.launcher.list[0], e);
	} else {
		plan->file = program_find(word, e);
		*program = plan->file == NULL ? NULL : xstrdup(plan->file);
	}
	return plan->file == NULL ? refuse(plan, WORKER_NOT_STARTED) : 0;
}

static int
plan_declare(struct worker_plan *plan, const struct supervisor *sv,
    const struct session *session, struct error *e)
{
	char *text = worker_declaration(
	    sv->settings, sv->bridge_path, session->socket, &plan->env);
	int result = session_declare(session, text, e);

	free(text);
	return result == -1 ? refuse(plan, WORKER_NOT_STARTED) : 0;
}

static void
plan_walls(struct worker_plan *plan, const struct supervisor *sv)
{
	const struct settings *s = sv->settings;
	struct spawn *spawn = &plan->spawn;

	spawn->is_confined = strcmp(s->worker.confine, "landlock") == 0 &&
	    sandbox_landlock_abi() > 0;
	/* A launcher may need a set-user-id program for its own walls. */
	spawn->no_new_privs = strcmp(s->worker.confine, "none") != 0;
	spawn->own_dir = spawn->is_confined ? plan->own_dir : NULL;
	spawn->read_dirs = (const char *const *)plan->read.list;
	spawn->write_dirs = (const char *const *)plan->write.list;
}

static int
plan_fill(struct worker_plan *plan, const struct supervisor *sv,
    const struct session *session, const struct config_route *route,
    char **program, struct error *e)
{
	const struct settings *s = sv->settings;

	plan->spawn.route_path = route->path;
	plan->spawn.route = dir_open(plan, sv, route->path, O_NOFOLLOW, e);
	if (plan->spawn.route == -1)
		return refuse(plan, WORKER_NOT_STARTED);
	if (plan_program(plan, s, program, e) == -1)
		return -1;
	worker_argv(
	    &plan->argv, s, *program, session->declaration, plan->session_id);
	worker_env(&plan->env, s, sv->is_root ? &sv->worker_account : NULL,
	    session->temp, environ);
	if (plan_rules(plan, sv, session, *program, e) == -1)
		return -1;
	return plan_declare(plan, sv, session, e);
}

int
worker_plan_make(struct worker_plan *plan, const struct supervisor *sv,
    const struct session *session, const struct config_route *route,
    const char *cgroup, struct error *e)
{
	char *program = NULL;
	int result;

	memset(plan, 0, sizeof(*plan));
	plan->spawn.route = -1;
	worker_session_id(plan->session_id);
	result = plan_fill(plan, sv, session, route, &program, e);
	free(program);
	if (result == -1)
		return -1;
	plan_walls(plan, sv);
	plan->spawn.file = plan->file;
	plan->spawn.argv = plan->argv.list;
	plan->spawn.env = plan->env.list;
	plan->spawn.cgroup = cgroup;
	plan->spawn.account = &sv->worker_account;
	return 0;
}

void
worker_plan_free(struct worker_plan *plan)
{
	while (plan->fd_count > 0)
		(void)close(plan->fds[--plan->fd_count]);
	free(plan->fds);
	string_list_free(&plan->argv);
	string_list_free(&plan->env);
	string_list_free(&plan->read);
	string_list_free(&plan->write);
	free(plan->file);
	free(plan->own_dir);
}
