/*
 * One supervisor serves one agent on one account: the instance lock beside
 * the state directory (operator.md 4). It is the kernel's; the .json file
 * next to it only says who holds it, and, to a standalone mcpd that knows no
 * more than the state directory, where the run-time directory is.
 */
#ifndef SUPERVISOR_INSTANCE_H
#define SUPERVISOR_INSTANCE_H

#include "supervisor/supervisor.h"

/* A dead supervisor's ledger or outbox may be in its last fsync: wait. */
#define INSTANCE_WAIT_MS 10000
/* Between its lock and its note a connector does next to nothing. */
#define INSTANCE_NOTE_MS 2000

/* Make the state root, the state directory and the run-time directory. */
int instance_directories(struct supervisor *sv, struct error *e);

/* The run-time directory alone, should somebody have swept it away. */
int instance_runtime_directory(const struct supervisor *sv, struct error *e);

/*
 * Take the lock into sv->lock_fd. -1 with EWOULDBLOCK in e->code and a text
 * that names the holder when it is held; when its holder is dead and only a
 * child of it still has the descriptor, that child's end is waited for.
 */
int instance_lock(struct supervisor *sv, struct error *e);
/* Note down who holds it. Failing does no harm. */
void instance_note(const struct supervisor *sv);
/* Take the note away; the lock goes with the process and its children. */
void instance_release(const struct supervisor *sv);

#endif
