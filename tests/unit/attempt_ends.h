/* What attempt_house.c builds its house between. */
#ifndef TESTS_UNIT_ATTEMPT_ENDS_H
#define TESTS_UNIT_ATTEMPT_ENDS_H

#include "tests/unit/attempt_house.h"

/* The supervisor's links to dispatcher and ledger, with both at their ends. */
void house_links_make(void);
void house_links_free(void);

#endif
