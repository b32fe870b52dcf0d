/* The walls of connectd-mcpd (design 2.1); its row and tests/sandbox use them.
 */
#ifndef MCPD_PROFILE_H
#define MCPD_PROFILE_H

#include "common/sandbox.h"

extern const struct sandbox_profile mcpd_profile;

#endif
