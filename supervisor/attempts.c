/*
 * All attempts of the supervisor: what the dispatcher asks about one of them
 * by its id, and what the rest of the supervisor wants to know of them.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/attempt.h"

struct attempts attempts;

/* ---- one more, and one among them --------------------------------------- */

static struct attempt *
attempt_new(struct supervisor *sv, const char *id, struct error *e)
{
	struct session *session = session_new(attempts.sessions, id, e);
	struct attempt *a;
	int fd;

	if (session == NULL)
		return NULL;
	fd = session_listen(session, e);
	if (fd == -1) {
		session_remove(session);
		return NULL;
	}
	a = xcalloc(1, sizeof(*a));
	a->sv = sv;
	memcpy(a->id, id, sizeof(a->id));
	a->session = session;
	a->listener = listener_new(sv->base, fd, id, mcpd_connect, a);
	a->next_token = -1;
	a->worker = (struct spawned){
	    .pidfd = -1, .input = -1, .output = -1, .errors = -1, .status = -1};
	LIST_INSERT_HEAD(&sv->attempts, a, entry);
	return a;
}

static size_t
attempts_count(const struct supervisor *sv)
{
	const struct attempt *a;
	size_t count = 0;

	LIST_FOREACH (a, &sv->attempts, entry)
		count++;
	return count;
}

/* NULL when the request was refused. */
static struct attempt *
attempt_for_mcpd(
    struct supervisor *sv, const char *id, const struct reply_to *to)
{
	struct attempt *a = attempt_find(sv, id);
	struct error e;

	if (a != NULL)
		return a;
	if (!attempt_id_is_ok(id) ||
	    past_get(&attempts.past, id) != FATE_OPEN) {
		peer_fail(to, "refused", 0, "no id for a new attempt");
		return NULL;
	}
	if (attempts_count(sv) >= ATTEMPTS_MAX || sv->stopping) {
		peer_fail(to, "busy", 0,
		    sv->stopping ? "stopping" : "too many attempts");
		return NULL;
	}
	a = attempt_new(sv, id, &e);
	if (a == NULL) {
		log_warnx("%s: %s", id, e.text);
		peer_fail(to, "not_started", 0, "%s", e.text);
	}
	return a;
}

struct attempt *
attempt_find(const struct supervisor *sv, const char *id)
{
	struct attempt *a;

	LIST_FOREACH (a, &sv->attempts, entry) {
		if (strcmp(a->id, id) == 0)
			return a;
	}
	return NULL;
}

/* ---- asked by the dispatcher -------------------------------------------- */

void
on_spawn_mcpd(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct attempt *a = attempt_for_mcpd(arg, m->spawn_mcpd.attempt, &to);

	if (a != NULL) {
		a->to = to;
		a->m = m;
		attempt_happens(a, ATTEMPT_SPAWN_MCPD);
	}
	msg_free(m);
}

void
on_spawn_worker(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct attempt *a = attempt_find(arg, m->spawn_worker.attempt);

	if (a != NULL) {
		a->to = to;
		a->m = m;
		attempt_happens(a, ATTEMPT_SPAWN_WORKER);
	} else {
		peer_fail(&to, "refused", 0, "no such attempt");
	}
	msg_free(m);
}

/* What is over is told again; what this run never had is looked into. */
void
on_end_tree(struct peer *peer, struct msg *m, void *arg)
{
	struct msg told = {.type = MSG_TREE_IS};
	struct reply_to to = peer_reply_to(peer, m);
	const char *id = m->end_tree.attempt;
	struct attempt *a = attempt_find(arg, id);
	enum fate fate;

	if (a != NULL) {
		a->to = to;
		a->m = m;
		attempt_happens(a, ATTEMPT_END_TREE);
	} else if (!attempt_id_is_ok(id)) {
		peer_fail(&to, "refused", 0, "no attempt's id");
	} else {
		fate = past_get(&attempts.past, id);
		if (fate == FATE_OPEN || fate == FATE_HELD) {
			recovery_begin(arg, id, &to, m->end_tree.grace_ms);
		} else {
			told.tree_is.fate = fate_name(fate);
			peer_reply(&to, &told);
		}
	}
	msg_free(m);
}

void
on_drop_declaration(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct attempt *a = attempt_find(arg, m->drop_declaration.attempt);

	peer_done(&to, a != NULL && session_drop_declaration(a->session));
	msg_free(m);
}

void
on_stop_serving(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct attempt *a = attempt_find(arg, m->stop_serving.attempt);
	bool is_open = a != NULL && a->listener != NULL;

	if (is_open) {
		listener_free(a->listener);
		a->listener = NULL;
	}
	peer_done(&to, is_open);
	msg_free(m);
}

void
on_recovered(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	sessions_sweep(attempts.sessions);
	msg_free(m);
}

/* ---- for the rest of the supervisor ------------------------------------- */

/* A worker without the wall that connect.json calls for is not started. */
static int
check_walls(const struct supervisor *sv, struct error *e)
{
	const struct settings *s = sv->settings;

	if (sv->options.insecure)
		return 0;
	if (strcmp(s->worker.confine, "landlock") == 0 &&
	    sandbox_landlock_abi() < 2)
		return error_set(e,
		    "worker.confine is landlock and this "
		    "kernel's Landlock has ABI %d of at least 2; --insecure "
		    "starts without it",
		    sandbox_landlock_abi());
	if (s->worker_limits.count > 0 && sv->cgroup_base == NULL)
		return error_set(e,
		    "limits.worker needs cgroups, and there is "
		    "none to write to; --insecure starts without the limits");
	return 0;
}

int
attempts_init(struct supervisor *sv, struct error *e)
{
	if (check_walls(sv, e) == -1)
		return -1;
	attempts.sessions = sessions_open(&sv->paths, sv->state_dir,
	    &sv->worker_account, sv->is_root, sv->boot_id, e);
	if (attempts.sessions == NULL)
		return -1;
	sessions_collect(attempts.sessions);
	return 0;
}

void
attempt_mcpd_ready(struct supervisor *sv, const char *attempt)
{
	struct attempt *a = attempt_find(sv, attempt);

	if (a != NULL)
		attempt_happens(a, ATTEMPT_MCPD_READY);
}

void
attempt_mcpd_exited(struct supervisor *sv, const char *attempt)
{
	struct attempt *a = attempt_find(sv, attempt);

	if (a == NULL)
		return;
	mcpd_clear(a);
	attempt_happens(a, ATTEMPT_MCPD_GONE);
}

bool
attempt_reaped(struct supervisor *sv, const siginfo_t *info)
{
	struct attempt *a;

	LIST_FOREACH (a, &sv->attempts, entry) {
		if (a->tree != NULL && a->worker.identity.pid == info->si_pid)
			break;
	}
	if (a == NULL)
		return false;
	if (!a->leader_ended) {
		a->leader_ended = true;
		a->leader_end = *info;
		attempt_happens(a, ATTEMPT_LEADER_ENDED);
	}
	return true;
}

void
attempts_dispatcher_gone(struct supervisor *sv)
{
	struct attempt *a, *next;

	for (a = LIST_FIRST(&sv->attempts); a != NULL; a = next) {
		next = LIST_NEXT(a, entry);
		attempt_happens(a, ATTEMPT_ORPHANED);
	}
}

void
attempts_end(struct supervisor *sv)
{
	struct attempt *a, *next;

	for (a = LIST_FIRST(&sv->attempts); a != NULL; a = next) {
		next = LIST_NEXT(a, entry);
		attempt_happens(a, ATTEMPT_STOPPED);
	}
	recoveries_end();
}

void
attempts_kill(struct supervisor *sv)
{
	struct attempt *a;

	LIST_FOREACH (a, &sv->attempts, entry) {
		if (a->tree != NULL)
			tree_kill(a->tree);
	}
	recoveries_kill();
}

int
attempts_hold_pid(struct supervisor *sv, pid_t pid)
{
	const struct attempt *a;
	int in_cgroup, in_tree, result = 0;

	LIST_FOREACH (a, &sv->attempts, entry) {
		if (a->tree == NULL)
			continue;
		in_cgroup =
		    a->cgroup == NULL ? 0 : cgroup_holds(a->cgroup, pid);
		in_tree = identity_descends(pid, a->worker.identity.pid);
		if (in_cgroup == 1 || in_tree == 1)
			return 1;
		if (in_cgroup == -1 || in_tree == -1)
			result = -1;
	}
	return result;
}

enum fate
attempts_fate(const struct supervisor *sv, const char *attempt)
{
	const struct attempt *a = attempt_find(sv, attempt);
	enum fate fate;

	if (a != NULL)
		return a->state == ATTEMPT_HELD ? FATE_HELD : FATE_OPEN;
	fate = past_get(&attempts.past, attempt);
	return fate == FATE_OPEN ? FATE_HELD : fate;
}

bool
attempts_had(const struct supervisor *sv, const char *attempt)
{
	return attempt_find(sv, attempt) != NULL ||
	    past_get(&attempts.past, attempt) != FATE_OPEN;
}

bool
attempts_signaled(
    const struct supervisor *sv, const char *attempt, bool *was_signaled)
{
	const struct attempt *a = attempt_find(sv, attempt);

	if (a == NULL)
		return false;
	*was_signaled =
	    a->was_signaled || (a->tree != NULL && tree_was_signaled(a->tree));
	return true;
}

void
attempts_settled(struct supervisor *sv, const char *attempt)
{
	struct attempt *a = attempt_find(sv, attempt);

	if (a != NULL) {
		attempt_happens(a, ATTEMPT_SETTLED);
		return;
	}
	past_put(&attempts.past, attempt, FATE_GONE);
	sessions_release(attempts.sessions, attempt);
}

size_t
attempts_live(const struct supervisor *sv)
{
	const struct attempt *a;
	size_t count = 0;

	LIST_FOREACH (a, &sv->attempts, entry)
		count += a->tree != NULL || a->mcpd != NULL;
	return count;
}

size_t
attempts_left(const struct supervisor *sv)
{
	return attempts_live(sv) + recoveries_count();
}

char *
attempts_redact(struct supervisor *sv, const char *text)
{
	worker_learn_secrets(sv);
	return redact(attempts.redactor, text, strlen(text));
}
