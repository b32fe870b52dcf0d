#include "mcpd/profile.h"

/* Messages, and the worker's stream that arrives in one. */
const struct sandbox_profile mcpd_profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD,
};
