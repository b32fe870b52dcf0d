/*
 * What a worker is started with (design 2.1 and 5, step 5; dispatch.md 5.3,
 * 14.1, 14.2): program, arguments, environment, declaration of its servers,
 * the directories its walls leave open. All of it comes from connect.json and
 * the supervisor's own state; a request brings ids only.
 */
#ifndef SUPERVISOR_WORKER_H
#define SUPERVISOR_WORKER_H

#include "supervisor/session.h"
#include "supervisor/spawn.h"
#include "supervisor/supervisor.h"

#define SESSION_ID_LEN 36

/* Why a worker cannot be started: the word of protocol.def's FAILED. */
#define WORKER_NOT_STARTED "not_started"
#define WORKER_UNUSABLE "unusable" /* no retry can help */

struct worker_plan {
	struct spawn spawn; /* points into what follows */
	struct string_list argv, env, read, write;
	char *file, *own_dir;
	int *fds; /* of directories that were judged, kept open */
	size_t fd_count;
	char session_id[SESSION_ID_LEN + 1];
	const char *reason; /* on failure: one of the words above */
};

/*
 * Prepare the worker of SESSION in ROUTE, in CGROUP if that is not NULL, and
 * write its declaration. On failure -1, the error and plan->reason set, and
 * nothing left behind. Freed with worker_plan_free() in every case.
 */
int worker_plan_make(struct worker_plan *plan, const struct supervisor *sv,
    const struct session *session, const struct config_route *route,
    const char *cgroup, struct error *e);
void worker_plan_free(struct worker_plan *plan);

/* ---- its parts, pure functions of their arguments ----------------------- */

/* PROGRAM stands for the first word of worker.command. */
void worker_argv(struct string_list *out, const struct settings *s,
    const char *program, const char *declaration, const char *session_id);
/*
 * From PARENT, the supervisor's own environment. ACCOUNT gives HOME, USER,
 * LOGNAME and SHELL and takes XDG_* away; NULL: they are the person's own.
 */
void worker_env(struct string_list *out, const struct settings *s,
    const struct account *account, const char *temp, char *const *parent);
/* The declared servers, PREFIX before each, comma-separated; malloc'ed. */
char *worker_servers(const struct settings *s, const char *prefix);
/* Malloc'ed JSON text with a newline. */
char *worker_declaration(const struct settings *s, const char *bridge,
    const char *socket, const struct string_list *env);
/* The value of NAME in rows NAME=value, or NULL. */
const char *worker_env_get(const struct string_list *env, const char *name);
/* The first executable file of that name on PATH (may be NULL), malloc'ed. */
char *worker_find_program(const char *name, const char *path);
/* A random UUID, version 4, lower case. */
void worker_session_id(char out[static SESSION_ID_LEN + 1]);

#endif
