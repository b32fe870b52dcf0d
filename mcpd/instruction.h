/*
 * What a worker reads of its dispatch (ledger.md 6.2): an allowlist. What is
 * not built here, route, token or task among it, cannot be told.
 */
#ifndef MCPD_INSTRUCTION_H
#define MCPD_INSTRUCTION_H

#include <jansson.h>

#include "common/protocol.h"

/* {"instruction": ...}; the agent's own mentions are stripped. */
json_t *instruction_json(
    const struct msg_instruction *instruction, int64_t agent_id);
/* The receipt of an ack or a completion. */
json_t *receipt_json(const struct msg_report_is *report);

#endif
