/*
 * Is a person a member of a project, for trust (admission.md 1.7)? "Yes" may
 * be ten minutes old; "no" counts only from a list asked for since the event
 * was seen, because it discards.
 */
#ifndef INTAKE_MEMBERS_H
#define INTAKE_MEMBERS_H

#include "intake/lists.h"

struct member_read;
/* IS_MEMBER counts when READ_OK. */
typedef void (*member_done)(
    enum read_outcome outcome, bool is_member, void *arg);

/* LIMITS and BUDGET outlive the read. DONE as for recording_read(). */
struct member_read *member_read(struct api *api, struct lists *lists,
    int64_t bucket, int64_t person, int64_t seen_at_ns, const int64_t *limits,
    struct read_budget *budget, member_done done, void *arg);
/* NULL is fine, and so is the read's own DONE. */
void member_cancel(struct member_read *m);

/* What a kept list says (NULL: none), for members.c and its tests. */
enum member_says { MEMBER_YES, MEMBER_NO, MEMBER_ASK, MEMBER_UNVERIFIED };
enum member_says member_look(
    const struct list *list, int64_t person, int64_t seen_at_ns);

#endif
