/*
 * The table of repeats (design 3.1): every request that changes something,
 * with the story before it. It is tried in one process by
 * test_ledger_repeats.c, and by tests/crash/kill_repeats.c on real ledgers
 * that are killed in the middle of it.
 */
#ifndef TESTS_REPEATS_H
#define TESTS_REPEATS_H

#include "tests/unit/ledger_fixture.h"

struct repeat {
	/* Tells the story up to the request. */
	void (*before)(struct fixture *f);
	enum role_id from;
	struct msg m; /* see repeat_request() */
	/* Columns that the repeat may write again; or NULL. */
	const char *rewritten;
};
extern const struct repeat repeats[];
extern const size_t repeat_count;

/*
 * The request to send; some of it is only known once `before` has run. Valid
 * until the next row's has.
 */
struct msg repeat_request(const struct repeat *r);
/* Of whoever sends it; "" when that is no mcpd. */
const char *repeat_attempt(const struct repeat *r);

/*
 * All tables but for the columns of those names, a line a value; the
 * caller's to free.
 */
char *repeat_dump(sqlite3 *db, const char *rewritten);
/* B says again what a repeat of the request that A answered must say. */
void assert_same_answer(const struct msg *a, const struct msg *b);

#endif
