/*
 * What a forked child of the supervisor does before it is somebody else:
 * nothing of connectd's may reach it.
 */
#ifndef SUPERVISOR_BECOME_H
#define SUPERVISOR_BECOME_H

#include <stddef.h>

#include "supervisor/supervisor.h"

/* All signals at their defaults and none blocked. Async-signal-safe. */
void become_plain(void);
/* The limits and umask that a login would give, after our own. */
void become_modest(void);
/* Close every descriptor from 3 on but KEEP's, -1 among them is skipped. */
void become_alone(const int *keep, size_t count);
/*
 * The account's ids and groups, for good; nothing to do when they are ours.
 * -1 with errno. Async-signal-safe.
 */
int become_account(const struct account *account);
/* Can the account's processes reach and enter DIR? Forks to find out. */
bool become_can_enter(const struct account *account, const char *dir);

#endif
