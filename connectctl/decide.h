/*
 * A person's decisions (operator.md 1.12, 3.3, 3.4; design 7): redispatch,
 * discard, resolve, settle. Each is made under a nonce of its own, so that a
 * repeat of it is the same decision.
 */
#ifndef CONNECTCTL_DECIDE_H
#define CONNECTCTL_DECIDE_H

#include "connectctl/words.h"

/* Each returns the exit code. */
int run_redispatch(const struct wish *w, const struct paths *paths);
int run_discard(const struct wish *w, const struct paths *paths);
int run_resolve(const struct wish *w, const struct paths *paths);
int run_settle(const struct wish *w, const struct paths *paths);

#endif
