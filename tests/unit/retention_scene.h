/*
 * A ledger that keeps what ended for a while (ledger.md I16), and its nights.
 */
#ifndef TESTS_RETENTION_SCENE_H
#define TESTS_RETENTION_SCENE_H

#include "tests/unit/ledger_fixture.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)
#define KEEP_DISCARDED (30 * DAY_MS)
#define KEEP_COMPLETED (90 * DAY_MS)

/* For cmocka, with fixture_teardown. */
int retention_setup(void **state);
/* To three o'clock, DAYS after the first morning. */
void wait_night(int days);
/* The whole of a night's work, whatever the hour: how many were cleared. */
int64_t retention_night(struct fixture *f);
/* Recorded, and discarded at once. */
void discard_new(struct fixture *f, int64_t id);

#endif
