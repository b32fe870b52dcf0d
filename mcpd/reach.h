/*
 * The way from a state directory to the connector that runs over it (design
 * 6.1): the note beside the directory names the run-time directory, and
 * ledger.sock in it is where a standalone server comes in. Nobody but root
 * and us may be able to put anything else in their places (admission.md 5.7).
 */
#ifndef MCPD_REACH_H
#define MCPD_REACH_H

#include "common/error.h"

/*
 * Is there a ledger in DIR, an absolute and clean path, and is DIR trusted? -1
 * with a text for a person and an exit code in E's code.
 */
int reach_check(const char *dir, struct error *e);

/* A connected socket; or -1, with the same as above. */
int reach_connect(const char *dir, struct error *e);

#endif
