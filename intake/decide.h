/*
 * One decision: from a pointer to a verdict (admission.md 1.5, 1.9). It uses
 * the configuration that it began with to its end.
 */
#ifndef INTAKE_DECIDE_H
#define INTAKE_DECIDE_H

#include "intake/intake.h"
#include "intake/verdict.h"

struct decision;

/* V is borrowed; the decision is gone when this returns. */
typedef void (*decided)(const struct pointer *p, const struct policy *policy,
    const struct verdict *v, void *arg);

/*
 * Decide P, whose texts are copied. DONE is called once, from the loop,
 * unless the decision is cancelled: then the record stays as it was.
 */
struct decision *decision_start(struct api *api, struct lists *lists,
    struct policy *policy, const struct pointer *p, decided done, void *arg);
void decision_cancel(struct decision *d);
int64_t decision_event(const struct decision *d);

#endif
