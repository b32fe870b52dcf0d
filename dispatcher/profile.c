#include "dispatcher/profile.h"

/* Messages, and the pipes of workers that arrive in them. */
const struct sandbox_profile dispatcher_profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD,
};
