/*
 * A test that proves a trap (T1 to T90) or an invariant (I1 to I18) of
 * ledger.md bears its name, so that a test can tell which of them has none.
 */
#ifndef TESTS_TRAP_H
#define TESTS_TRAP_H

/* A row of a table of tests; TRAPS is "T26", or "T26 T27 I10". */
#define TRAP(traps, test, setup, teardown)                   \
	{                                                    \
		traps " " #test, test, setup, teardown, NULL \
	}

#endif
