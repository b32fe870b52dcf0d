#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/attempt.h"
#include "supervisor/settings.h"

extern char **environ;

/* ---- the cgroup --------------------------------------------------------- */

/* A limit that cannot be set is not left out silently. */
static int
cgroup_set_limits(const struct attempt *a, struct error *e)
{
	const struct string_list *limits = &a->sv->settings->worker_limits;
	char *name, *value;
	int result = 0;
	size_t i;

	for (i = 0; i < limits->count && result == 0; i++) {
		name = xstrdup(limits->list[i]);
		value = strchr(name, '=');
		*value++ = '\0';
		result = cgroup_limit(a->cgroup, name, value, e);
		free(name);
	}
	if (result == -1 && a->sv->options.insecure) {
		log_warnx("%s: %s", a->id, e->text);
		result = 0;
	}
	return result;
}

static void
cgroup_drop(struct attempt *a)
{
	struct error e;

	if (a->cgroup != NULL && cgroup_remove(a->cgroup, &e) == -1)
		log_warnx("%s: %s", a->id, e.text);
	free(a->cgroup);
	a->cgroup = NULL;
}

/* One for each attempt, by its id: that is what LAUNCH recorded. */
static int
cgroup_prepare(struct attempt *a, struct error *e)
{
	if (a->sv->cgroup_base == NULL)
		return 0;
	(void)xasprintf(&a->cgroup, "%s/%s", a->sv->cgroup_base, a->id);
	if (cgroup_make(a->cgroup, e) == -1) {
		free(a->cgroup);
		a->cgroup = NULL;
		return -1;
	}
	if (cgroup_set_limits(a, e) == 0)
		return 0;
	cgroup_drop(a);
	return -1;
}

/* ---- the start ---------------------------------------------------------- */

/* Also when we come late to it: what the child says counts, not the clock. */
static void
worker_on_verdict(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;
	int verdict = spawn_verdict(a->worker.status, a->failure);

	(void)fd;
	if (verdict == 1) {
		attempt_happens(a, ATTEMPT_RUNS);
	} else if (verdict == 0 && (what & EV_TIMEOUT) != 0) {
		/* Our own child, unreaped: the number is its. */
		log_warnx("%s: its program was not started in time", a->id);
		(void)kill(a->worker.identity.pid, SIGKILL);
	}
	/* Else: it says why, and ends; that is seen as the leader's end. */
}

static void
worker_await(struct attempt *a)
{
	int64_t bound = attempt_limit(a, LIMIT_ready_deadline);
	struct timeval tv = {
	    .tv_sec = bound / 1000, .tv_usec = bound % 1000 * 1000};

	a->verdict = event_new(
	    a->sv->base, a->worker.status, EV_READ, worker_on_verdict, a);
	if (a->verdict == NULL)
		fatalx("%s: no event", a->id);
	(void)event_add(a->verdict, &tv);
}

/*
 * Without a word of failure its program counts as started, and as ended: also
 * when we killed it, for it may have been started just before.
 */
enum attempt_event
worker_start_verdict(struct attempt *a)
{
	if (a->failure[0] != '\0' ||
	    spawn_verdict(a->worker.status, a->failure) == -1)
		return ATTEMPT_NOT_STARTED;
	return ATTEMPT_RUNS;
}

/* NULL, or the word for FAILED with E set. */
static const char *
worker_start(
    struct attempt *a, const struct config_route *route, struct error *e)
{
	struct worker_plan plan;
	const char *reason = NULL;

	if (cgroup_prepare(a, e) == -1)
		return WORKER_UNUSABLE;
	if (worker_plan_make(&plan, a->sv, a->session, route, a->cgroup, e) ==
	    -1)
		reason = plan.reason;
	else if (spawn_worker(&plan.spawn, &a->worker, e) == -1)
		reason = WORKER_NOT_STARTED;
	if (reason == NULL)
		memcpy(a->session_id, plan.session_id, sizeof(a->session_id));
	else
		cgroup_drop(a);
	worker_plan_free(&plan);
	return reason;
}

/* The route that the generation asked about gives the project, or NULL. */
static const struct config_route *
route_of(const struct attempt *a, int64_t project_id)
{
	const struct config *c = a->sv->settings->config;

	if (c->scope.count > 0 && !config_ids_has(&c->scope, project_id))
		return NULL;
	return config_route(c, project_id);
}

static const char *
worker_try(struct attempt *a, struct error *e)
{
	const struct msg_spawn_worker *asked = &a->m->spawn_worker;
	const struct config_route *route;

	/* STOP_SERVING may come at any time; its bridge would find nobody. */
	if (a->listener == NULL) {
		(void)error_set(e, "its socket is not served any more");
		return WORKER_NOT_STARTED;
	}
	if (asked->generation != a->sv->generation ||
	    a->sv->config_unreadable) {
		(void)error_set(e, "the configuration is another one by now");
		return "stale_config";
	}
	route = route_of(a, asked->project_id);
	if (route == NULL) {
		(void)error_set(e, "project %lld has no route",
		    (long long)asked->project_id);
		return WORKER_UNUSABLE;
	}
	return worker_start(a, route, e);
}

void
worker_begin(struct attempt *a)
{
	const char *reason;
	struct error e;

	reason = worker_try(a, &e);
	if (reason != NULL) {
		a->state = ATTEMPT_UNSTARTED;
		peer_fail(&a->to, reason, 0, "%s", e.text);
		return;
	}
	worker_learn_secrets(a->sv);
	a->state = ATTEMPT_STARTING;
	asked_keep(&a->worker_asked, &a->to);
	a->tree = tree_of_child(a->sv->base, &a->worker.identity, a->cgroup);
	listener_arm(a->listener, a->sv->worker_account.uid,
	    &a->worker.identity, a->cgroup);
	worker_await(a);
}

/* Nobody is left to be told when its dispatcher has died meanwhile. */
void
worker_runs(struct attempt *a)
{
	struct msg m = {.type = MSG_WORKER_SPAWNED};
	struct msg_worker_spawned *told = &m.worker_spawned;
	struct spawned *w = &a->worker;
	char *servers;

	if (a->worker_asked.is_open) {
		servers = worker_servers(a->sv->settings, "");
		told->pid = w->identity.pid;
		told->pgid = w->identity.pgid;
		told->started_ticks = w->identity.started_ticks;
		told->session_id = a->session_id;
		told->servers = servers;
		told->pidfd = w->pidfd;
		told->input = w->input;
		told->output = w->output;
		told->errors = w->errors;
		w->pidfd = w->input = w->output = w->errors = -1;
		a->worker_asked.is_open = false;
		peer_reply(&a->worker_asked.to, &m);
		free(servers);
	}
	worker_close(a);
}

void
worker_close(struct attempt *a)
{
	if (a->verdict != NULL)
		event_free(a->verdict);
	a->verdict = NULL;
	spawned_close(&a->worker);
}

/* ---- the end ------------------------------------------------------------ */

void
worker_tell_end(const struct attempt *a)
{
	struct peer *dispatcher = supervisor_peer(a->sv, ROLE_DISPATCHER);
	struct msg m = {.type = MSG_WORKER_EXITED};

	m.worker_exited.attempt = a->id;
	m.worker_exited.signaled = a->leader_end.si_code != CLD_EXITED;
	m.worker_exited.code = a->leader_end.si_status;
	if (dispatcher != NULL)
		peer_notice(dispatcher, &m);
}

void
worker_reap(struct attempt *a)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)a->worker.identity.pid, &info,
		WEXITED | WNOHANG) == -1)
		log_warn("%s: worker %d", a->id, (int)a->worker.identity.pid);
	/* Its tree was seen to be gone before its SIGCHLD had its turn. */
	if (!a->leader_ended && info.si_pid != 0) {
		a->leader_ended = true;
		a->leader_end = info;
		worker_tell_end(a);
	}
	tree_free(a->tree);
	a->tree = NULL;
	/* Its number may be another's from now on: nobody is of its tree. */
	listener_free(a->listener);
	a->listener = NULL;
	cgroup_drop(a);
}

/* ---- redaction ---------------------------------------------------------- */

static void
learn_rows(struct redactor *r, const struct string_list *env)
{
	char *name;
	size_t i;

	for (i = 0; i < env->count; i++) {
		name = xstrndup(env->list[i], strcspn(env->list[i], "="));
		redactor_add_environment(
		    r, name, env->list[i] + strlen(name) + 1);
		free(name);
	}
}

/* Environments of the operator's own servers: what a worker may read there. */
static void
learn_servers(struct redactor *r, const char *text)
{
	json_t *servers = json_loads(text, 0, NULL), *server, *value;
	const char *name, *variable;

	json_object_foreach (servers, name, server) {
		(void)name;
		json_object_foreach (
		    json_object_get(server, "env"), variable, value) {
			if (json_is_string(value))
				redactor_add_environment(
				    r, variable, json_string_value(value));
		}
	}
	json_decref(servers);
}

static void
learn_directory(struct redactor *r, const char *dir)
{
	char *real;

	if (dir == NULL)
		return;
	real = realpath(dir, NULL);
	redactor_add_directory(r, dir, real);
	free(real);
}

/*
 * Once for each configuration, and added to what was known before: a worker of
 * an earlier one may still speak.
 */
void
worker_learn_secrets(struct supervisor *sv)
{
	struct string_list env = {0};

	if (attempts.redactor == NULL)
		attempts.redactor = redactor_new();
	else if (attempts.redactor_generation == sv->generation)
		return;
	attempts.redactor_generation = sv->generation;
	worker_env(&env, sv->settings, sv->is_root ? &sv->worker_account : NULL,
	    "/", environ);
	learn_rows(attempts.redactor, &env);
	learn_servers(attempts.redactor, sv->settings->worker.mcp_servers);
	learn_directory(attempts.redactor, sv->state_dir);
	learn_directory(attempts.redactor, sv->paths.runtime_dir);
	learn_directory(attempts.redactor, sv->paths.config_dir);
	string_list_free(&env);
}
