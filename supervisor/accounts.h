/*
 * The users that roles and workers become when connectd runs as root, looked
 * up once at start (design 2.1).
 */
#ifndef SUPERVISOR_ACCOUNTS_H
#define SUPERVISOR_ACCOUNTS_H

#include "supervisor/supervisor.h"

#define CONTROL_GROUP "connectd"

/*
 * Fill role_ids and worker_account. As a person all are that person's own. As
 * root every role's user must exist (else the text names the sysusers file)
 * and worker.user must be neither root nor a role's.
 */
int accounts_resolve(struct supervisor *sv, struct error *e);
/* The group that may read the control socket. As a person: one's own. */
int accounts_control_group(
    const struct supervisor *sv, gid_t *gid, struct error *e);

#endif
