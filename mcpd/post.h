/*
 * A message that a worker asks to post (design 4, L8): handed to the ledger,
 * waited for, asked about again. The key is the content, so that a call that
 * is made twice posts once.
 */
#ifndef MCPD_POST_H
#define MCPD_POST_H

#include "mcpd/call.h"

#define POST_ACK "worker_ack"     /* a boost */
#define POST_REPLY "worker_reply" /* a comment or a chat line */

/* What a message may hold (protocol.def, POST). */
#define POST_BODY_MAX 262144

/* CONTENT is what the worker wrote, the bodies what is made of it. */
void post_start(struct call *call, const char *kind, int64_t event_id,
    const struct json_span *content, const struct json_span *comment,
    const struct json_span *line);
/* An intent settled; 0: any may have. Asks again for a call that waits. */
void post_settled(struct call *call, int64_t intent_id);

#endif
