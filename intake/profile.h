/* The walls of connectd-intake (design 2.1); its row and tests/sandbox use
 * them. */
#ifndef INTAKE_PROFILE_H
#define INTAKE_PROFILE_H

#include "common/sandbox.h"

extern const struct sandbox_profile intake_profile;

#endif
