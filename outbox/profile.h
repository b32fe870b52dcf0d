/* The walls of connectd-outbox (design 2.1); its row and tests/sandbox use
 * them. */
#ifndef OUTBOX_PROFILE_H
#define OUTBOX_PROFILE_H

#include "common/sandbox.h"

extern const struct sandbox_profile outbox_profile;

#endif
