/*
 * Guests: mcpds that the supervisor did not start, in their standalone form
 * (design 6.1). With mcp.socket they come through ledger.sock and get the
 * links that a task's own mcpd has: to the ledger at once, to intake once a
 * token has shown which attempt they serve. The token is what they may do
 * anything by; who may come at all is an operator's process: root's or our
 * own user's, and none of a worker's, which has its task's socket.
 */
#ifndef SUPERVISOR_GUESTS_H
#define SUPERVISOR_GUESTS_H

#include "common/buffer.h"
#include "supervisor/child.h"

/* At once. With as many tasks as may run they fit ROLE_PEERS_MAX. */
#define GUESTS_MAX 16

/* Open the socket, if connect.json says so. */
int guests_open(struct supervisor *sv, struct error *e);
/* Everybody leaves; the socket is removed. Also before guests_open(). */
void guests_close(struct supervisor *sv);
/* Another configuration is in force: the socket may come or go. */
void guests_configure(struct supervisor *sv);
/* A new life of a child: a link to each guest that has one with its role. */
void guests_link(struct supervisor *sv, struct child *c);
/* One of them broke the protocol. */
void guests_accused(struct supervisor *sv, int64_t number);
/* GUEST_BOUND: a token of that attempt was shown. */
void guests_bound(struct supervisor *sv, const struct msg_guest_bound *bound);
/* How many there are, and which attempts they serve; for status. */
void guests_write(const struct supervisor *sv, struct buffer *b);

#endif
