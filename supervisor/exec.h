/*
 * The executables of this build. All are opened when connectd starts and run
 * by descriptor, so that an upgrade on disk cannot mix builds (design 2).
 */
#ifndef SUPERVISOR_EXEC_H
#define SUPERVISOR_EXEC_H

#include "supervisor/supervisor.h"

/* The program of a role, "connectd-ledger". */
const char *exec_name(enum role_id role);

/*
 * Open what is there; a role whose program is missing keeps -1 and is logged:
 * it will be shown as failing. Fails on one that others could have written.
 */
int exec_open_all(struct supervisor *sv, struct error *e);
/* Is another build on disk by now? Then a restart is pending. */
bool exec_changed(const struct supervisor *sv);

#endif
