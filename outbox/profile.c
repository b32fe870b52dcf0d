#include "outbox/profile.h"

/* Posts to Basecamp; no file but what names and certificates need. */
const struct sandbox_profile outbox_profile = {
    .words = SANDBOX_STDIO | SANDBOX_SENDFD | SANDBOX_RECVFD | SANDBOX_INET,
};
