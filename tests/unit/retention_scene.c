/* What retention_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/retention.h"
#include "tests/unit/retention_scene.h"

int
retention_setup(void **state)
{
	struct fixture *f;

	(void)fixture_setup(state);
	f = *state;
	f->config->keep_discarded_ms = KEEP_DISCARDED;
	f->config->keep_completed_ms = KEEP_COMPLETED;
	return 0;
}

/* To three o'clock, DAYS after the first morning. */
void
wait_night(int days)
{
	fixture_wait(days * DAY_MS - 6 * HOUR_MS);
}

/* The whole of a night's work, whatever the hour: how many were cleared. */
int64_t
retention_night(struct fixture *f)
{
	struct retention r = {0};
	enum retention_step step;

	while ((step = retention_step(&f->l, &r)) == RETENTION_MORE)
		;
	assert_int_equal(RETENTION_OVER, step);
	return sql_int(f, "SELECT cleared FROM retention");
}

void
discard_new(struct fixture *f, int64_t id)
{
	(void)record_event(f, id);
	(void)refuse_event(f, id, "discarded", "not_addressed");
}
