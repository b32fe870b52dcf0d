/*
 * The exit codes of connectd, its children and connectctl. They are a
 * protocol: the supervisor decides about a restart by them, and scripts and
 * service units read them.
 */
#ifndef COMMON_EXIT_H
#define COMMON_EXIT_H

#include <unistd.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,       /* the command could not do what was asked */
	EXIT_USAGE = 64,       /* wrong words on the command line */
	EXIT_NOT_RUNNING = 69, /* no connector answers */
	EXIT_CRASH = 70,       /* fatal(): a bug of the process itself */
	EXIT_WALLS = 71,       /* a wall could not be put up */
	EXIT_BUSY = 73,        /* the instance lock is held elsewhere */
	EXIT_STORAGE = 75,     /* failed COMMIT or allocation: no bug of ours */
	EXIT_PEER = 76,        /* a peer above sent something impossible */
	EXIT_REFUSED = 77,     /* permission: not owner, not private, not you */
	EXIT_CONFIG = 78,      /* configuration; no restart can help */
	EXIT_INTERRUPTED = 130,
	EXIT_TERMINATED = 143,
};

/* End without atexit handlers or stdio: nothing of ours may run after this. */
static inline _Noreturn void
exit_now(enum exit_code code)
{
	_exit((int)code);
}

#endif
