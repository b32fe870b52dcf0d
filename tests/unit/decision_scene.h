/*
 * Event 101 as a person finds it who decides about it (ledger.md 3.6).
 */
#ifndef TESTS_DECISION_SCENE_H
#define TESTS_DECISION_SCENE_H

#include "tests/unit/ledger_fixture.h"

#define START "2026-01-05T09:00:00.000000000Z" /* when the fixture begins */

extern char put_token[TOKEN_LEN + 1]; /* of the task, once there is one */

void put_seen(struct fixture *f);
void put_admitted(struct fixture *f);
void put_blocked(struct fixture *f);
void put_dispatched(struct fixture *f);
void put_held(struct fixture *f);
/* Completed, its attempt over: lost, or as the worker reported it. */
void put_unknown(struct fixture *f);
void put_reported(struct fixture *f, const char *outcome);
void put_failed(struct fixture *f);

/* The last decision, every column that is not its own id. */
const char *decision_last(struct fixture *f);
/* "STAMP PERSON"; "- " for none. */
const char *authorization_now(struct fixture *f);

#endif
