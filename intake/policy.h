/*
 * A generation of configuration that decisions hold on to while the role
 * already has a newer one: one decision uses one generation.
 */
#ifndef INTAKE_POLICY_H
#define INTAKE_POLICY_H

#include "common/config.h"

struct policy {
	struct config *config; /* a copy, never NULL */
	int refs;
};

struct policy *policy_new(const struct config *config);
struct policy *policy_ref(struct policy *p);
/* NULL is fine. */
void policy_unref(struct policy *p);

#endif
