/*
 * The errors a worker is told in band (ledger.md 6.4): a kind that programs
 * read and a text that a model can act on. What is not of the domain is one
 * generic text: nothing of a database or a disk reaches the model.
 */
#ifndef MCPD_REFUSAL_H
#define MCPD_REFUSAL_H

#include <jansson.h>

#include "common/protocol.h"

#define REFUSAL_TEXT_MAX 1024

/* A new {"error": kind, "message": text}. */
json_t *refusal_json(const char *kind, const char *text);
/* The same for what a peer said: FAILED of the ledger or of intake. */
json_t *refusal_of(const struct msg_failed *failed);

#endif
