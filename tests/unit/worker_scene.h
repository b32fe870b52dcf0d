/*
 * A worker of event 101 as attempt ATT_1 says what it says, each a request of
 * its mcpd; the reply (ledger.md 6).
 */
#ifndef TESTS_WORKER_SCENE_H
#define TESTS_WORKER_SCENE_H

#include "tests/unit/ledger_fixture.h"

extern char worker_token[TOKEN_LEN + 1]; /* of its task */

void worker_launch(struct fixture *f);
/* A hold stands, by raw SQL. */
void worker_hold(struct fixture *f);
struct msg *worker_bind(
    struct fixture *f, const char *with, const char *attempt);
struct msg *worker_get(struct fixture *f, int64_t id);
struct msg *worker_ack(struct fixture *f, int64_t ack_id);
struct msg *worker_complete(struct fixture *f, const char *outcome);

const char *worker_delivery(struct fixture *f);
/* Everything of the row and the record's revision: nothing may change. */
const char *worker_rows(struct fixture *f);

#endif
