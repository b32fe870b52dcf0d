/*
 * Lists of Basecamp that many decisions ask for: the people of a project, the
 * chats docked there, all chats (admission.md 1.6, 1.7). Each is loaded once
 * for all who wait, kept for ten minutes, and asked for again no sooner than
 * after thirty seconds, which is the caller's to heed.
 */
#ifndef INTAKE_LISTS_H
#define INTAKE_LISTS_H

#include <sys/queue.h>

#include "intake/reads.h"

#define LIST_FRESH_MS INT64_C(600000)
#define LIST_FLOOR_MS INT64_C(30000)

enum list_kind { LIST_PEOPLE, LIST_DOCK, LIST_CHATS, LIST_KINDS };

struct list_item {
	int64_t id;
	int64_t bucket; /* LIST_CHATS; else the key */
};

struct list {
	LIST_ENTRY(list) entry;
	enum list_kind kind;
	int64_t key;        /* the bucket; 0 for LIST_CHATS */
	int64_t started_ns; /* wall clock at the request of what is here */
	int64_t started_ms; /* the same on the monotonic clock */
	struct list_item *items;
	size_t count;
	bool is_loaded;
};

/* Somebody who waits for a load; zeroed by its owner, who keeps it. */
struct list_wait {
	LIST_ENTRY(list_wait) entry;
	bool is_waiting;
	/* READ_OK: look at the list again. */
	void (*loaded)(
	    enum read_outcome outcome, int64_t retry_after, void *arg);
	void *arg;
};

struct lists;

struct lists *lists_new(struct api *api);
/* What is kept and not yet too old, or NULL; valid until the next load. */
const struct list *list_kept(
    struct lists *lists, enum list_kind kind, int64_t key);
/* Its age in milliseconds. */
int64_t list_age_ms(const struct list *list);
/* Load it, or join the load that is under way. Answers from the loop. */
void list_load(
    struct lists *lists, enum list_kind kind, int64_t key, struct list_wait *w);
/* Stop waiting; nothing happens if W does not wait. */
void list_unwait(struct list_wait *w);

#endif
