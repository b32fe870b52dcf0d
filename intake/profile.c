#include "intake/profile.h"

/* Reads Basecamp; no file but what names and certificates need. */
const struct sandbox_profile intake_profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD | SANDBOX_INET,
};
