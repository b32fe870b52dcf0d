/*
 * Whose connector is meant when nobody says it: a posted notice names a
 * command without a profile (operator.md 2), and most machines have one.
 */
#ifndef CONNECTCTL_PROFILE_H
#define CONNECTCTL_PROFILE_H

#include "common/error.h"

/*
 * The only profile of this machine, the caller's to free. -1 with E, whose
 * text names those there are and whose code is the exit code.
 */
int profile_find(char **out, struct error *e);

#endif
