/*
 * Ending a process tree and proving that it is gone (design 5.1, dispatch.md
 * 8.2-8.4). A tree is a group with its leader, a cgroup, or both; gone means
 * that nothing lives in any of them.
 *
 * A signal goes only to something whose identity was just established: to the
 * group of a child of ours that is not reaped (the kernel keeps its number),
 * to the group of a recorded leader that is that very process now, or to its
 * orphans after it was that in this same ending. Never to a group of 1 or
 * less, nor to our own. Whatever cannot be told is doubt, not absence.
 */
#ifndef SUPERVISOR_TREE_H
#define SUPERVISOR_TREE_H

#include <event2/event.h>

#include "common/identity.h"

struct tree;

enum tree_fate {
	TREE_GONE, /* proved */
	TREE_DOUBT /* TEXT says why; tree_end() may be tried again */
};

typedef void (*tree_done)(
    struct tree *tree, enum tree_fate fate, const char *text, void *arg);

/*
 * Of a child of ours that leads its group. It must not be reaped before the
 * tree is gone. CGROUP (may be NULL) is copied.
 */
struct tree *tree_of_child(
    struct event_base *base, const struct identity *leader, const char *cgroup);
/* Of an earlier run: known by its recorded identity. CGROUP as above. */
struct tree *tree_of_record(
    struct event_base *base, const struct identity *leader, const char *cgroup);
/* Of an earlier run: whatever is in that cgroup. */
struct tree *tree_of_cgroup(struct event_base *base, const char *cgroup);
void tree_free(struct tree *tree);

/*
 * Nothing of it lives; something does: looked at now, not remembered. Neither,
 * where that cannot be told. Before a group that may be signalled is called
 * empty it is given a SIGKILL, and looked at once more.
 */
bool tree_is_empty(struct tree *tree);
bool tree_is_populated(const struct tree *tree);
/* SIGKILL, now; nobody waits for the proof. */
void tree_kill(struct tree *tree);
/* tree_end() sent it a signal; false when it ended by itself before that. */
bool tree_was_signaled(const struct tree *tree);
/* waitid() saw the leader end: no need to wait for the next look. */
void tree_leader_ended(struct tree *tree);

/*
 * Ask it to end (SIGTERM), after GRACE_MS or once the leader has ended make it
 * end (SIGKILL), and look until it is gone, at most CONFIRM_MS after that.
 * DONE is called once, from the loop. A second call while it is ending
 * replaces DONE and can only shorten the grace.
 */
void tree_end(struct tree *tree, int64_t grace_ms, int64_t confirm_ms,
    tree_done done, void *arg);

#endif
