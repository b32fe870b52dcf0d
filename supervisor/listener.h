/*
 * The task's socket (design 6.1). Who connects is vetted: the worker's uid,
 * and its tree by the chain of parents or its cgroup. At most five bridge
 * processes in an attempt's life, one connected at a time; while the task's
 * mcpd is away, or another bridge is connected, connections wait. What is
 * refused is closed and logged.
 */
#ifndef SUPERVISOR_LISTENER_H
#define SUPERVISOR_LISTENER_H

#include <event2/event.h>

#include "common/identity.h"

#define LISTENER_BRIDGES_MAX 5
#define LISTENER_WAITING_MAX 8

struct listener;

/* Take STREAM over to the task's mcpd; false, and not taken: it is away. */
typedef bool (*listener_pass)(int stream, void *arg);

/*
 * FD is a listening, non-blocking socket and taken over. Nothing is accepted
 * yet: early connections stay in the backlog. ATTEMPT is copied, for the log.
 */
struct listener *listener_new(struct event_base *base, int fd,
    const char *attempt, listener_pass pass, void *arg);
/* The worker is there: accept what it and its descendants send. */
void listener_arm(struct listener *l, uid_t uid, const struct identity *leader,
    const char *cgroup);
/* The mcpd is there (again): pass on what waits. */
void listener_serve(struct listener *l);
/* Close the socket and what waits on it. */
void listener_free(struct listener *l);

#endif
