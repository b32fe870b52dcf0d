/*
 * Records of one conversation that follow each other (ledger.md 3.2.4).
 */
#ifndef TESTS_FOLLOW_SCENE_H
#define TESTS_FOLLOW_SCENE_H

#include "tests/unit/ledger_fixture.h"

/* Recorded and decided in conversation "k"; it may have to wait. */
void follow_wait(struct fixture *f, int64_t id);
/* A verdict of its own kind: another route, or nobody to be answered. */
void follow_wait_as(
    struct fixture *f, int64_t id, const char *route, bool acknowledge);
struct msg follow_join_of(const char *attempt);
struct msg_joined *follow_join(struct fixture *f, const char *attempt);
/* "101 exposed armed, 102 admitted armed" */
const char *follow_rows(struct fixture *f, int64_t task_id);

#endif
