/* The hold, pair by pair (ledger.md 3.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/machine_pairs.h"

static const struct kind no_kinds[] = {{'\0', NULL}};

/* clang-format off */
static const struct raw_state hold_states[] = {
	/*		  - s    - s */
	{"(none)",	" p",	"!."},
	{"standing",	"p=",	".."},
};
/* clang-format on */

static void
hold_put(struct fixture *f, const char *from, const char *to)
{
	sql_put(f,
	    "INSERT INTO generations (id, cause, opened_by, opened_at)"
	    " VALUES (1, 'hold', 'me', 'o'), (2, 'hold', 'me', 'o')");
	if (is(from, "standing"))
		sql_put(f,
		    "INSERT INTO hold_marker"
		    " VALUES (1, 1, 'hold', 'me', 'h')");
}

static void
hold_move_sql(const char *from, const char *to, char *out, size_t size)
{
	if (is(from, MACHINE_NONE))
		(void)snprintf(out, size,
		    "INSERT INTO hold_marker"
		    " VALUES (1, 1, 'hold', 'me', 'h')");
	else if (is(to, MACHINE_NONE))
		(void)snprintf(out, size, "DELETE FROM hold_marker");
	else
		(void)snprintf(
		    out, size, "UPDATE hold_marker SET generation = 2");
}

static void
every_pair_by_raw_sql(void **state)
{
	static const struct raw_proof proof = {&hold_machine, hold_states,
	    COUNT_OF(hold_states), no_kinds, hold_put, hold_move_sql};

	raw_proof_run(*state, &proof);
}

/* ---- through the handlers ---------------------------------------------- */

static void
put_none(struct fixture *f)
{
}

static void
put_standing(struct fixture *f)
{
	assert_true(hold(f, "hold")->hold_is.stands);
}

static void
put_standing_by_promote(struct fixture *f)
{
	assert_true(hold(f, "shadow_promote")->hold_is.stands);
}

static void
put_released(struct fixture *f)
{
	put_standing(f);
	assert_false(release(f)->hold_is.stands);
}

static struct msg *
ask_promote(struct fixture *f)
{
	return hold(f, "shadow_promote");
}

static struct msg *
ask_hold_for_nothing(struct fixture *f)
{
	return hold(f, "nothing");
}

static void
every_pair_by_the_write_path(void **state)
{
	static const struct place places[] = {
	    {"none", MACHINE_NONE, put_none},
	    {"released", MACHINE_NONE, put_released},
	    {"standing", "standing", put_standing},
	    {"standing by a promote", "standing", put_standing_by_promote},
	};
	static const struct request_row requests[] = {
	    {"HOLD", "standing", ask_hold, "ss=="},
	    {"HOLD, shadow_promote", "standing", ask_promote, "ss=="},
	    {"HOLD, another cause", "standing", ask_hold_for_nothing, "RRRR"},
	    {"RELEASE", MACHINE_NONE, release, "==--"},
	};
	static const struct path_proof proof = {&hold_machine, "-s",
	    "SELECT 'standing' FROM hold_marker", places, COUNT_OF(places),
	    requests, COUNT_OF(requests), ""};

	path_proof_run(&proof);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		every_pair_by_raw_sql, fixture_setup, fixture_teardown),
	    cmocka_unit_test(every_pair_by_the_write_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
