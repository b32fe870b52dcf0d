/* The walls of connectd-ledger (design 2.1); its row and tests/sandbox use
 * them. */
#ifndef LEDGER_PROFILE_H
#define LEDGER_PROFILE_H

#include "common/sandbox.h"

extern const struct sandbox_profile ledger_profile;

#endif
