/* The control socket: who may connect, and its life (design 7). */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

#include "supervisor/control_wire.h"
#include "supervisor/kernel.h"
#include "supervisor/past.h"
#include "supervisor/supervisor.h"

/* Make the socket and serve it. EADDRINUSE in e->code: another one does. */
int control_open(struct supervisor *sv, struct error *e);
/* Remove the socket, drop everybody. */
void control_close(struct supervisor *sv);
/* A committed transition, to those who follow. */
void control_publish(struct control *control, const char *line);
/* A child's state changed: somebody may wait for its restart. */
void control_child_changed(struct control *control, const struct child *c);

/* An attempt's tree is gone, or cannot be proved so: who asked is told. */
void control_attempt_over(
    struct control *control, const char *attempt, enum fate fate);

enum control_right { CONTROL_NONE, CONTROL_READ, CONTROL_CHANGE };

/*
 * What the process at the other end of FD may do, with the reason if that is
 * nothing: reads need the socket's group, changes root or our own uid, and
 * none of it goes to a process that descends from us.
 */
enum control_right control_vet(struct supervisor *sv, int fd, gid_t group,
    const struct socket_peer *peer, const char **why);

#endif
