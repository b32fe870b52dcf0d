/*
 * What is spoken on the control socket (design 7): NDJSON, one object a line
 * both ways. The server speaks first:
 *	{"connectd":1,"version":"0.1.0"}
 * A request is {"command":…} with `event`, `count`, `follow`, `role`,
 * `attempt`, `intent`, `resolution`, `receipt` or `gone` where the command
 * takes them, and a decision with its `nonce`; its answer is one line,
 *	{"ok":true,"data":…} or {"ok":false,"error":WORD,"text":…}
 * with WORD usage, refused, not_found, busy, unavailable or failed. After
 * `events` or `redispatch` with `follow`, committed transitions come as they
 * are, a line each: those behind what was answered. After `stop` the
 * connection stays until the supervisor has ended. After `redispatch` that
 * ends a live attempt a second answer says how it ended. With the answer to
 * `token` comes a descriptor (SCM_RIGHTS): a pipe's read end, that holds the
 * token, a newline and its end.
 */
#ifndef SUPERVISOR_CONTROL_WIRE_H
#define SUPERVISOR_CONTROL_WIRE_H

#define CONTROL_VERSION 1
#define CONTROL_LINE_MAX 65536
#define CONTROL_CLIENTS_MAX 32 /* of one uid */
#define CONTROL_FOLLOWER_MAX (1024 * 1024)
#define CONTROL_EVENTS_MAX 1000
/* How long the ledger may take to answer for one of them. */
#define CONTROL_QUERY_MS 2000

#endif
