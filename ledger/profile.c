#include "ledger/profile.h"

/* The database and its sidecars, and pipes for the tasks' tokens. */
const struct sandbox_profile ledger_profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD | SANDBOX_RPATH |
	SANDBOX_WPATH | SANDBOX_PIPE,
    .dirs = {{"", SANDBOX_WRITE}},
};
