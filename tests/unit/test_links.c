/* Who may talk to whom: the matrix, and the message table beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "supervisor/child.h"

/* As design 3 lists them; the supervisor talks to all and is not here. */
static const struct {
	enum role_id a, b;
} wanted[] = {
    {ROLE_INTAKE, ROLE_LEDGER},
    {ROLE_DISPATCHER, ROLE_LEDGER},
    {ROLE_OUTBOX, ROLE_LEDGER},
    {ROLE_MCPD, ROLE_LEDGER},
    {ROLE_INTAKE, ROLE_OUTBOX},
    {ROLE_MCPD, ROLE_INTAKE},
    {ROLE_DISPATCHER, ROLE_OUTBOX},
};

/* Nobody is there in this test: only the matrix is looked at. */
bool
child_is_there(const struct child *c)
{
	(void)c;
	return false;
}

static bool
is_wanted(int a, int b)
{
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (((int)wanted[i].a == a && (int)wanted[i].b == b) ||
		    ((int)wanted[i].a == b && (int)wanted[i].b == a))
			return true;
	}
	return false;
}

static void
test_matrix(void **arg)
{
	int a, b;

	(void)arg;
	for (a = 0; a < ROLE_COUNT; a++) {
		for (b = 0; b < ROLE_COUNT; b++)
			assert_int_equal(
			    links_has((enum role_id)a, (enum role_id)b),
			    is_wanted(a, b));
	}
}

/* HELLO, PING and the plain answers may go wherever a link is. */
static bool
is_everybodys(int type)
{
	return type == MSG_HELLO || type == MSG_PING || type == MSG_PONG ||
	    type == MSG_DONE || type == MSG_FAILED;
}

/* No message is foreseen between two roles that have no link. */
static void
test_messages_have_links(void **arg)
{
	int type, from, to;

	(void)arg;
	for (type = 1; type < MSG_COUNT; type++) {
		for (from = ROLE_LEDGER; from < ROLE_COUNT; from++) {
			for (to = ROLE_LEDGER; to < ROLE_COUNT; to++) {
				if (!is_everybodys(type) &&
				    msg_permitted(type, (enum role_id)from,
					(enum role_id)to) &&
				    !is_wanted(from, to))
					fail_msg("%s from %s to %s",
					    msg_name(type),
					    role_name((enum role_id)from),
					    role_name((enum role_id)to));
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_matrix),
	    cmocka_unit_test(test_messages_have_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
