/* What a walled process tries; each returns 0 or the errno of its failure. */
#ifndef TESTS_SANDBOX_ACTS_H
#define TESTS_SANDBOX_ACTS_H

#define ACT(name) int act_##name(void);
#include "tests/sandbox/acts.def"
#undef ACT

#endif
