#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/paths.h"
#include "common/xmalloc.h"
#include "supervisor/attempt.h"

#define TREE_TEXT_MAX 256 /* of TREE_IS */
#define CGROUP_WORD "cgroup:"

/* An attempt of an earlier run between END_TREE and its answer. */
struct recovery {
	LIST_ENTRY(recovery) entry;
	struct supervisor *sv;
	char id[ATTEMPT_ID_LEN + 1];
	struct reply_to to;
	int64_t grace_ms;
	struct tree *tree; /* while it is being ended */
	char *cgroup;      /* its own, there or not; or NULL */
	const char *doubt; /* why it is held all the same; or NULL */
};

/* One that holds nobody any more. */
static void
cgroup_drop(const char *id, const char *path)
{
	struct error e;

	if (cgroup_remove(path, &e) == -1)
		log_warnx("%s: %s", id, e.text);
}

static void
recovery_finish(struct recovery *r, enum fate fate, const char *text)
{
	struct msg m = {.type = MSG_TREE_IS};
	char cut[TREE_TEXT_MAX + 1];

	if (fate == FATE_GONE && r->cgroup != NULL)
		cgroup_drop(r->id, r->cgroup);
	past_put(&attempts.past, r->id, fate);
	if (fate == FATE_HELD) {
		log_warnx("%s of an earlier run: held: %s", r->id, text);
		sessions_hold(attempts.sessions, r->id);
	} else {
		log_info("%s of an earlier run: %s", r->id, fate_name(fate));
		sessions_release(attempts.sessions, r->id);
	}
	(void)snprintf(cut, sizeof(cut), "%s", text);
	m.tree_is.fate = fate_name(fate);
	m.tree_is.text = cut;
	peer_reply(&r->to, &m);
	LIST_REMOVE(r, entry);
	tree_free(r->tree);
	free(r->cgroup);
	free(r);
}

static void
on_tree_done(
    struct tree *tree, enum tree_fate fate, const char *text, void *arg)
{
	struct recovery *r = arg;

	(void)tree;
	if (fate == TREE_DOUBT) {
		recovery_finish(r, FATE_HELD, text);
	} else if (r->doubt != NULL) {
		cgroup_drop(r->id, r->cgroup);
		recovery_finish(r, FATE_HELD, r->doubt);
	} else {
		recovery_finish(r, FATE_GONE, text);
	}
}

static void
recovery_end_tree(struct recovery *r, struct tree *tree)
{
	r->tree = tree;
	tree_end(tree, r->grace_ms,
	    r->sv->settings->config->limits[LIMIT_cancel_grace], on_tree_done,
	    r);
}

/* ---- what the ledger knows of it ---------------------------------------- */

static struct identity
leader_of(const struct msg_identity_is *known)
{
	struct identity leader = {.pid = (pid_t)known->pid,
	    .pgid = (pid_t)known->pgid,
	    .started_ticks = known->started_ticks};

	(void)snprintf(
	    leader.boot_id, sizeof(leader.boot_id), "%s", known->boot_id);
	return leader;
}

/*
 * The dispatcher chose what was recorded: only a cgroup that has the attempt's
 * own name can be one that we made for it.
 */
static bool
cgroup_path_is_ok(const char *path, const char *id)
{
	return path_is_clean(path) && strcmp(strrchr(path, '/') + 1, id) == 0;
}

/*
 * The attempt's cgroup, the caller's to free, or NULL. One that was recorded
 * proves by being empty that nothing runs. Nothing is recorded where a launcher
 * may have led the worker out, but one was made for it: what that holds is the
 * attempt's, and nothing follows when it is empty.
 */
static char *
cgroup_find(const struct supervisor *sv, const char *id,
    const char *containment, bool *proves)
{
	size_t len = strlen(CGROUP_WORD);
	char *own = NULL;

	*proves = strncmp(containment, CGROUP_WORD, len) == 0 &&
	    cgroup_path_is_ok(containment + len, id);
	if (*proves)
		return xstrdup(containment + len);
	if (sv->cgroup_base != NULL)
		(void)xasprintf(&own, "%s/%s", sv->cgroup_base, id);
	return own;
}

/*
 * Of the cgroup namespace and mount that this run sees, which a base's name
 * tells (common/identity.h): what is missing there is gone.
 */
static bool
is_of_our_view(const struct supervisor *sv, const char *path)
{
	const char *name, *end = strrchr(path, '/');
	size_t len;

	if (sv->cgroup_base == NULL || !cgroup_is_seen(path))
		return false;
	name = strrchr(sv->cgroup_base, '/');
	len = strlen(name);
	return (size_t)(end - path) >= len &&
	    strncmp(end - len, name, len) == 0;
}

/* Of those in the cgroup; of its group some may have been moved elsewhere. */
static struct tree *
tree_in_cgroup(
    struct event_base *base, const char *path, const struct identity *leader)
{
	if (identity_check(leader) == IDENTITY_SAME &&
	    leader->pgid == leader->pid && cgroup_holds(path, leader->pid) == 1)
		return tree_of_record(base, leader, path);
	return tree_of_cgroup(base, path);
}

/*
 * True when the cgroup decides, if only that there is doubt; false: it proves
 * nothing, or the process recorded runs outside it, and both count.
 */
static bool
judge_by_cgroup(struct recovery *r, const struct msg_identity_is *known)
{
	struct identity leader = leader_of(known);
	bool proves;
	char *path = cgroup_find(r->sv, r->id, known->containment, &proves);
	struct error e;
	int populated;

	if (path == NULL)
		return false;
	populated = cgroup_populated(path, &e);
	if (populated == -1 &&
	    (e.code != ENOENT || !is_of_our_view(r->sv, path))) {
		free(path);
		recovery_finish(r, FATE_HELD,
		    "its cgroup cannot be seen from here, and may hold "
		    "processes");
		return true;
	}
	if (!proves && populated != 1) {
		cgroup_drop(r->id, path);
		free(path);
		return false;
	}
	r->cgroup = path;
	if (!proves ||
	    (identity_check(&leader) == IDENTITY_SAME &&
		cgroup_holds(path, leader.pid) != 1))
		return false;
	if (populated == 1)
		recovery_end_tree(
		    r, tree_in_cgroup(r->sv->base, path, &leader));
	else
		recovery_finish(r, FATE_GONE, "");
	return true;
}

static bool
cgroup_is_populated(const char *path)
{
	struct error e;

	return path != NULL && cgroup_populated(path, &e) == 1;
}

/* Held for TEXT, once what can be seen of it has been ended. */
static void
recovery_hold(struct recovery *r, const char *text)
{
	if (!cgroup_is_populated(r->cgroup)) {
		recovery_finish(r, FATE_HELD, text);
		return;
	}
	r->doubt = text;
	recovery_end_tree(r, tree_of_cgroup(r->sv->base, r->cgroup));
}

/* As root: is that very process one of the workers' user? */
static bool
is_a_workers(const struct supervisor *sv, const struct identity *leader)
{
	char path[64];
	struct stat st;

	if (!sv->is_root || identity_check(leader) != IDENTITY_SAME)
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)leader->pid);
	return stat(path, &st) == -1 || st.st_uid == sv->worker_account.uid;
}

/*
 * Both numbers are what the dispatcher says they are. Whom we start leads its
 * own group and cannot leave it, so any other group is a stranger's: nobody in
 * it may be signalled, and that nobody is in it proves nothing.
 */
static bool
is_its_own_group(const struct identity *leader)
{
	return leader->pgid == leader->pid && leader->pgid > 1 &&
	    leader->pgid != getpgrp();
}

/* dispatch.md 9: by the process recorded, and doubt means held. */
static void
judge_by_identity(struct recovery *r, const struct msg_identity_is *known)
{
	struct identity leader = leader_of(known);

	if (known->pid == 0)
		recovery_hold(
		    r, "it was launched and its process was never recorded");
	else if (!is_its_own_group(&leader))
		recovery_hold(
		    r, "the group recorded is none that may be signalled");
	else if (!is_a_workers(r->sv, &leader))
		recovery_hold(
		    r, "the process recorded is not of the workers' user");
	else
		recovery_end_tree(
		    r, tree_of_record(r->sv->base, &leader, r->cgroup));
}

static void
judge(struct recovery *r, const struct msg_identity_is *known)
{
	const struct supervisor *sv = r->sv;

	if (!known->found)
		recovery_finish(r, FATE_NEVER_FORKED, "");
	else if (strcmp(known->state, "ended") == 0)
		recovery_finish(r, FATE_GONE, "");
	else if (strcmp(known->run_id, sv->run_id) == 0)
		/* Of this very run: we would know it if it had been forked. */
		recovery_finish(r, FATE_NEVER_FORKED, "");
	else if (known->boot_id[0] != '\0' &&
	    strcmp(known->boot_id, sv->boot_id) != 0)
		recovery_finish(r, FATE_GONE, "");
	else if (!judge_by_cgroup(r, known))
		judge_by_identity(r, known);
}

static void
on_identity(struct peer *peer, struct msg *reply, void *arg)
{
	struct recovery *r = arg;

	(void)peer;
	if (reply->type == MSG_IDENTITY_IS)
		judge(r, &reply->identity_is);
	else
		recovery_finish(r, FATE_HELD, reply->failed.text);
}

/* ---- asked for ---------------------------------------------------------- */

static struct recovery *
recovery_find(const char *id)
{
	struct recovery *r;

	LIST_FOREACH (r, &attempts.recoveries, entry) {
		if (strcmp(r->id, id) == 0)
			return r;
	}
	return NULL;
}

/* The one who asked before is dead, or asks again, more in a hurry. */
static void
recovery_ask_again(
    struct recovery *r, const struct reply_to *to, int64_t grace_ms)
{
	peer_fail(&r->to, "cancelled", 0, "asked again since");
	r->to = *to;
	r->grace_ms = grace_ms;
	if (r->tree != NULL)
		recovery_end_tree(r, r->tree);
}

void
recoveries_end(void)
{
	struct recovery *r;

	LIST_FOREACH (r, &attempts.recoveries, entry) {
		r->grace_ms = 0;
		if (r->tree != NULL)
			recovery_end_tree(r, r->tree);
	}
}

void
recoveries_kill(void)
{
	struct recovery *r;

	LIST_FOREACH (r, &attempts.recoveries, entry) {
		if (r->tree != NULL)
			tree_kill(r->tree);
	}
}

size_t
recoveries_count(void)
{
	const struct recovery *r;
	size_t count = 0;

	LIST_FOREACH (r, &attempts.recoveries, entry)
		count += r->tree != NULL;
	return count;
}

void
recovery_begin(struct supervisor *sv, const char *id, const struct reply_to *to,
    int64_t grace_ms)
{
	struct peer *ledger = supervisor_peer(sv, ROLE_LEDGER);
	struct recovery *r = recovery_find(id);
	struct msg m = {.type = MSG_IDENTITY};

	if (r != NULL) {
		recovery_ask_again(r, to, grace_ms);
		return;
	}
	if (ledger == NULL) {
		peer_fail(to, "unavailable", 0, "the ledger is not there");
		return;
	}
	r = xcalloc(1, sizeof(*r));
	r->sv = sv;
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	r->to = *to;
	r->grace_ms = grace_ms;
	LIST_INSERT_HEAD(&attempts.recoveries, r, entry);
	past_put(&attempts.past, id, FATE_HELD);
	m.identity.attempt = r->id;
	(void)peer_request(ledger, &m, on_identity, r);
}

/*
 * Nobody has the leader's number and its group has members: these are most
 * likely its orphans, for the kernel gives that number to nobody meanwhile.
 * That group has the leader's number whatever was recorded as its own: another
 * one would have a person end strangers, or settle what runs.
 */
static bool
group_outlived(const struct identity *leader)
{
	struct identity now;
	struct error e;

	return identity_read(leader->pid, &now, &e) == -1 && e.code == ESRCH &&
	    identity_group_members(leader->pid) > 0;
}

/* Its tree as it is here: RUNNING may not have reached the ledger. */
static const char *
own_tree_finds(const struct supervisor *sv, const char *id)
{
	const struct attempt *a = attempt_find(sv, id);

	if (a == NULL || a->tree == NULL || !tree_is_populated(a->tree))
		return NULL;
	return a->leader_ended ? "processes that its worker left run"
			       : "its worker's process runs";
}

const char *
recovery_finds(const struct supervisor *sv, const char *id,
    const struct msg_identity_is *known)
{
	const char *own = own_tree_finds(sv, id);
	struct identity leader = leader_of(known);
	bool is_populated, proves;
	char *cgroup;

	if (own != NULL)
		return own;
	if (known->boot_id[0] != '\0' &&
	    strcmp(known->boot_id, sv->boot_id) != 0)
		return NULL;
	cgroup = cgroup_find(sv, id, known->containment, &proves);
	is_populated = cgroup_is_populated(cgroup);
	free(cgroup);
	if (is_populated)
		return "its cgroup holds processes";
	if (known->pid == 0)
		return NULL;
	if (identity_check(&leader) == IDENTITY_SAME)
		return "its worker's process runs";
	if (group_outlived(&leader))
		return "its process group holds processes; end them first";
	return NULL;
}
