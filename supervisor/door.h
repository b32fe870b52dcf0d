/*
 * A unix socket in the run-time directory that stays reachable for as long as
 * it is open: nobody can connect before its owner and mode are right, and it
 * is made again, directory and all, should its path vanish (design 7). Who may
 * come in is the owner's to decide.
 */
#ifndef SUPERVISOR_DOOR_H
#define SUPERVISOR_DOOR_H

#include "supervisor/kernel.h"
#include "supervisor/supervisor.h"

struct door;

struct door_plan {
	const char *what; /* "control socket", for the log */
	const char *path; /* outlives the door */
	mode_t mode;
	gid_t group; /* (gid_t)-1: left as it comes */
	/* FD is taken over and non-blocking; PEER's pidfd stays the door's. */
	void (*visited)(int fd, const struct socket_peer *peer, void *arg);
};

/* Whatever was at that path is removed. NULL with E. */
struct door *door_open(struct supervisor *sv, const struct door_plan *plan,
    void *arg, struct error *e);
/* Remove the socket, if it is still ours. NULL is fine. */
void door_close(struct door *door);

/* Log that PEER was turned away; a few times a minute at most. */
void door_log_refusal(
    struct door *door, const struct socket_peer *peer, const char *why);

#endif
