/*
 * The summary of a recording that a decision is made on (admission.md 1.6),
 * whatever its type; a chat line is first looked for in its bucket's chats.
 */
#ifndef INTAKE_RECORDING_H
#define INTAKE_RECORDING_H

#include "intake/gate.h"
#include "intake/lists.h"

/* Texts have len 0 and bytes "" when absent; they are TREE's. */
struct summary {
	json_t *tree;
	struct json_text status, type, title, app_url, updated_at;
	struct json_text content; /* rich text; empty where it counts not */
	struct json_text project_name, creator_name;
	int64_t id, parent_id, bucket_id; /* 0: absent */
	struct author creator;            /* id 0: absent */
	int64_t campfire_id;              /* of a chat line */
};
void summary_free(struct summary *s);

/* How a subject is read; the part of an event type before its last dot. */
struct subject {
	const char *name;
	const char *path;                  /* "messages/"; "" for a chat line */
	const char *title[2], *content[2]; /* the first that is not empty */
};
/* NULL when there is no read for it. */
const struct subject *subject_of(const char *event_type);
/* The same by a recording's type ("Kanban::Card"); NULL likewise. */
const struct subject *subject_of_type(const char *type);

/*
 * Fill S from TREE, which is taken over in every case. Fails when members
 * have the wrong kind.
 */
int summary_read(
    struct summary *s, const struct subject *subject, json_t *tree);

struct recording_read;
/* S is the callee's to take (zero it) when READ_OK; else it is empty. */
typedef void (*recording_done)(
    enum read_outcome outcome, struct summary *s, void *arg);

/*
 * Read what P points to. LIMITS, BUDGET and P outlive the read. DONE is
 * called once, from the loop; the read is gone when it returns.
 */
struct recording_read *recording_read(struct api *api, struct lists *lists,
    const struct pointer *p, const int64_t *limits, struct read_budget *budget,
    recording_done done, void *arg);
/* NULL is fine, and so is the read's own DONE. */
void recording_cancel(struct recording_read *r);

/* One look for a chat line in the chats of its bucket; campfire.c. */
struct campfire_search;
/* TREE (taken over by the callee) and CAMPFIRE are set when READ_OK. */
typedef void (*campfire_done)(enum read_outcome outcome, json_t *tree,
    int64_t campfire, int64_t retry_after, void *arg);
struct campfire_search *campfire_search(struct api *api, struct lists *lists,
    int64_t bucket, int64_t line, campfire_done done, void *arg);
void campfire_cancel(struct campfire_search *s);

#endif
