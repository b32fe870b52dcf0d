/*
 * When nothing runs: `connectd-ledger --inspect`, walled and as the state
 * directory's owner, reads what is there and creates nothing (design L3).
 */
#ifndef CONNECTCTL_OFFLINE_H
#define CONNECTCTL_OFFLINE_H

#include <jansson.h>

#include "common/error.h"
#include "common/paths.h"

/*
 * WORDS follow the state directory: "status", or "events" and a count, or
 * "show" and an id; NULL ends them. Returns the ledger's answer; NULL with an
 * exit code in e->code.
 */
json_t *offline_ask(
    const struct paths *paths, const char *const words[], struct error *e);
/*
 * Who took the instance lock last, as its note says, with `pid_status`; a new
 * JSON null when there is no note. Diagnostic only.
 */
json_t *offline_lock_holder(const struct paths *paths);

#endif
