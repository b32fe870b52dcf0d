/* The walls of connectd-dispatcher (design 2.1); its row and tests/sandbox use
 * them. */
#ifndef DISPATCHER_PROFILE_H
#define DISPATCHER_PROFILE_H

#include "common/sandbox.h"

extern const struct sandbox_profile dispatcher_profile;

#endif
