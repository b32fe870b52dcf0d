/* What the supervisor knows, as JSON for connectctl (operator.md 3.1). */
#ifndef SUPERVISOR_STATUS_H
#define SUPERVISOR_STATUS_H

#include "common/buffer.h"
#include "supervisor/supervisor.h"

/*
 * The whole of `status`: one line, an object. LEDGER is the ledger's own
 * part, an object in one line, or NULL: then it is named as silent.
 */
void status_write(const struct supervisor *sv, struct buffer *b,
    const char *ledger, size_t len);
/* One line for a service manager and a person. */
void status_summary(const struct supervisor *sv, char *out, size_t size);
/* "starting", "running", "stopping". */
const char *status_state(const struct supervisor *sv);

#endif
