#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/tree.h"

#define LOOK_FIRST_MS 2
#define LOOK_MOST_MS 200

enum tree_phase {
	TREE_AT_REST,
	TREE_ASKED, /* SIGTERM was sent, or comes with the first look */
	TREE_KILLED
};

enum tree_look { TREE_EMPTY, TREE_POPULATED, TREE_UNCERTAIN };

struct tree {
	struct identity leader; /* pid 0: only a cgroup */
	char *cgroup;           /* or NULL */
	bool is_ours;           /* the leader is our child, not reaped */
	bool was_same; /* a recorded leader was seen alive in this ending */
	bool has_asked, has_complained;
	bool was_signaled; /* in this ending or one before */
	enum tree_phase phase;
	int64_t kill_at, give_up_at, confirm_ms; /* monotonic */
	int64_t pause_ms;
	struct event *timer;
	tree_done done;
	void *arg;
};

static void tree_step(struct tree *tree);

static void
tree_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tree_step(arg);
}

static struct tree *
tree_new(struct event_base *base, const char *cgroup)
{
	struct tree *tree = xcalloc(1, sizeof(*tree));

	if (cgroup != NULL)
		tree->cgroup = xstrdup(cgroup);
	tree->timer = evtimer_new(base, tree_on_timer, tree);
	if (tree->timer == NULL)
		fatalx("tree: no event");
	return tree;
}

struct tree *
tree_of_child(
    struct event_base *base, const struct identity *leader, const char *cgroup)
{
	struct tree *tree = tree_new(base, cgroup);

	tree->leader = *leader;
	tree->is_ours = true;
	return tree;
}

struct tree *
tree_of_record(
    struct event_base *base, const struct identity *leader, const char *cgroup)
{
	struct tree *tree = tree_new(base, cgroup);

	tree->leader = *leader;
	return tree;
}

struct tree *
tree_of_cgroup(struct event_base *base, const char *cgroup)
{
	return tree_new(base, cgroup);
}

void
tree_free(struct tree *tree)
{
	if (tree == NULL)
		return;
	event_free(tree->timer);
	free(tree->cgroup);
	free(tree);
}

/* ---- looking ------------------------------------------------------------ */

static enum tree_look
look_at_cgroup(const struct tree *tree)
{
	struct error e;
	int populated;

	if (tree->cgroup == NULL)
		return TREE_EMPTY;
	populated = cgroup_populated(tree->cgroup, &e);
	if (populated == 1)
		return TREE_POPULATED;
	/* Only an empty one can be removed. */
	if (populated == 0 || e.code == ENOENT)
		return TREE_EMPTY;
	return TREE_UNCERTAIN;
}

static enum tree_look
look_at_group(const struct tree *tree)
{
	int members;

	if (tree->leader.pid == 0)
		return TREE_EMPTY;
	switch (identity_check(&tree->leader)) {
	case IDENTITY_SAME:
		return TREE_POPULATED;
	case IDENTITY_UNKNOWN:
		return TREE_UNCERTAIN;
	case IDENTITY_GONE:
		break;
	}
	members = identity_group_members(tree->leader.pgid);
	if (members == -1)
		return TREE_UNCERTAIN;
	return members == 0 ? TREE_EMPTY : TREE_POPULATED;
}

static enum tree_look
tree_look(const struct tree *tree)
{
	enum tree_look cgroup = look_at_cgroup(tree);
	enum tree_look group = look_at_group(tree);

	if (cgroup == TREE_POPULATED || group == TREE_POPULATED)
		return TREE_POPULATED;
	return cgroup == TREE_EMPTY ? group : cgroup;
}

bool
tree_is_populated(const struct tree *tree)
{
	return tree_look(tree) == TREE_POPULATED;
}

/* ---- signals ------------------------------------------------------------ */

/* No live process has the leader's number: its group is its orphans. */
static bool
leader_left_orphans(const struct tree *tree)
{
	struct identity now;
	struct error e;

	return tree->leader.pid == tree->leader.pgid &&
	    identity_read(tree->leader.pid, &now, &e) == -1 && e.code == ESRCH;
}

/* Asked before every signal; see the head of tree.h. */
static bool
group_is_known(struct tree *tree, int sig)
{
	pid_t pgid = tree->leader.pgid;

	if (tree->leader.pid == 0 || pgid <= 1 || pgid == getpgrp())
		return false;
	if (tree->is_ours)
		return true;
	if (identity_check(&tree->leader) == IDENTITY_SAME) {
		tree->was_same = true;
		return true;
	}
	return sig == SIGKILL && tree->was_same && leader_left_orphans(tree);
}

/*
 * A group is looked at process by process: one that was born behind the look,
 * of one that died before it came to it, is missed. SIGKILL misses none, for
 * the kernel gives it to a group at once and lets nobody fork who has it; so
 * after it the look is true. Who finds nobody was not signalled by it.
 */
bool
tree_is_empty(struct tree *tree)
{
	if (tree_look(tree) != TREE_EMPTY)
		return false;
	if (group_is_known(tree, SIGKILL))
		(void)kill(-tree->leader.pgid, SIGKILL);
	return tree_look(tree) == TREE_EMPTY;
}

/* False when there is nothing that may be signalled. */
static bool
tree_signal(struct tree *tree, int sig)
{
	struct error e;

	if (tree->cgroup != NULL && sig == SIGKILL) {
		if (cgroup_kill(tree->cgroup, &e) == 0) {
			tree->was_signaled = true;
		} else if (e.code != ENOENT && !tree->has_complained) {
			tree->has_complained = true;
			log_warnx("%s", e.text);
		}
	}
	if (!group_is_known(tree, sig))
		return tree->cgroup != NULL;
	if (kill(-tree->leader.pgid, sig) == 0)
		tree->was_signaled = true;
	else if (errno != ESRCH)
		log_warn(
		    "signal %d to the group of %d", sig, (int)tree->leader.pid);
	return true;
}

/* ---- the ending --------------------------------------------------------- */

static void
tree_wait(struct tree *tree)
{
	struct timeval tv = {.tv_usec = tree->pause_ms * 1000};

	(void)evtimer_add(tree->timer, &tv);
	tree->pause_ms *= 2;
	if (tree->pause_ms > LOOK_MOST_MS)
		tree->pause_ms = LOOK_MOST_MS;
}

static void
tree_finish(struct tree *tree, enum tree_fate fate, const char *text)
{
	tree->phase = TREE_AT_REST;
	tree->done(tree, fate, text, tree->arg); /* may free it */
}

static bool
leader_lives(const struct tree *tree)
{
	return identity_check(&tree->leader) == IDENTITY_SAME;
}

/* Ask once, and let the leader have its grace. False: nothing could be. */
static bool
step_asked(struct tree *tree, int64_t now)
{
	if (tree->kill_at > now && leader_lives(tree)) {
		if (tree->has_asked)
			return true;
		tree->has_asked = true;
		return tree_signal(tree, SIGTERM);
	}
	tree->phase = TREE_KILLED;
	tree->give_up_at = now + tree->confirm_ms;
	tree->pause_ms = LOOK_FIRST_MS;
	return tree_signal(tree, SIGKILL);
}

/* Killed again with every look: a member may have forked since the last. */
static void
tree_step(struct tree *tree)
{
	int64_t now = clock_monotonic_ms();

	if (tree->phase == TREE_AT_REST)
		return;
	if (tree_is_empty(tree))
		tree_finish(tree, TREE_GONE, "");
	else if (tree_look(tree) == TREE_UNCERTAIN && !tree->is_ours)
		tree_finish(tree, TREE_DOUBT,
		    "it cannot be told whether its processes are gone");
	else if (tree->phase == TREE_KILLED && now >= tree->give_up_at)
		tree_finish(
		    tree, TREE_DOUBT, "processes of it are left after SIGKILL");
	else if (!(tree->phase == TREE_ASKED ? step_asked(tree, now)
					     : tree_signal(tree, SIGKILL)))
		tree_finish(tree, TREE_DOUBT,
		    "its leader is gone, its group is not: nobody may be "
		    "signalled");
	else
		tree_wait(tree);
}

void
tree_end(struct tree *tree, int64_t grace_ms, int64_t confirm_ms,
    tree_done done, void *arg)
{
	int64_t kill_at = clock_monotonic_ms() + grace_ms;

	tree->done = done;
	tree->arg = arg;
	tree->confirm_ms = confirm_ms;
	if (tree->phase != TREE_AT_REST && tree->kill_at < kill_at)
		kill_at = tree->kill_at;
	tree->kill_at = kill_at;
	if (tree->phase == TREE_AT_REST) {
		tree->phase = TREE_ASKED;
		tree->has_asked = tree->has_complained = false;
		tree->was_same = false;
	}
	tree->pause_ms = LOOK_FIRST_MS;
	event_active(tree->timer, EV_TIMEOUT, 0);
}

bool
tree_was_signaled(const struct tree *tree)
{
	return tree->was_signaled;
}

void
tree_kill(struct tree *tree)
{
	(void)tree_signal(tree, SIGKILL);
}

void
tree_leader_ended(struct tree *tree)
{
	if (tree->phase != TREE_AT_REST)
		event_active(tree->timer, EV_TIMEOUT, 0);
}
