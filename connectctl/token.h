/*
 * `token ATTEMPT --fd N`: an operator takes a running task over. The token
 * comes in a pipe beside the control socket and goes to descriptor N, for
 * whoever will serve the task; no other byte of us holds it.
 */
#ifndef CONNECTCTL_TOKEN_H
#define CONNECTCTL_TOKEN_H

#include "common/error.h"

/*
 * Will FD do? A pipe or a socket, as the one at its other end will ask for:
 * nowhere does a token stay. To be asked before anything else is opened.
 */
int token_fd_check(int fd, struct error *e);

/* Copy what the pipe FROM holds to TO, whole; FROM is closed. */
int token_hand_over(int from, int to, struct error *e);

#endif
