/* Who asks: bearer tokens and the OAuth server (feed.md 6.4, 8.3). */
#ifndef SIMULATOR_AUTH_H
#define SIMULATOR_AUTH_H

#include "tests/simulator/exchange.h"
#include "tests/simulator/world.h"

#define AUTH_SCOPE_FULL "full"
/* Every access token that is minted here begins so, and nothing else does. */
#define AUTH_TOKEN_PREFIX "fake-token-"

/* The operator's fixed bearer. */
void auth_init(void);
/* Sets caller and may_write from the bearer as it is valid now. */
void auth_identify(struct exchange *x);
/* Gives the refusal and returns true when the route's flags forbid it. */
bool auth_refuses(struct exchange *x);
/* TOKEN then belongs to PERSON; CLIENT may be "". */
void auth_grant(
    const char *token, int64_t person, const char *scope, const char *client);
/* NULL stands for any; returns how many are no longer valid. */
size_t auth_revoke(const char *token, const char *client);
size_t auth_count(void);
/* How many were minted so far, valid or not. */
unsigned int auth_minted(void);
/* Is ASKED one of the known scopes, and no wider than HELD? */
bool auth_scope_within(const char *asked, const char *held);

#endif
