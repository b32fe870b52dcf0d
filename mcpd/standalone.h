/*
 * The standalone form (design 6.1, ledger.md 7): a task's MCP server on its
 * own standard input and output, for whoever holds the task's token, beside
 * the connector that runs over a state directory. It comes to that connector
 * as a guest; when it goes away the worker is told so, and the next call tries
 * again.
 */
#ifndef MCPD_STANDALONE_H
#define MCPD_STANDALONE_H

#include "mcpd/server.h"

/*
 * TOKEN is what the descriptor held, and is wiped; STATE the directory as it
 * was given. Ends the process: when standard input ends, by INT, TERM or HUP,
 * or at once with a text and its exit code when there is nothing to serve.
 */
_Noreturn void standalone_serve(struct server *server, char *token,
    const char *state, unsigned int domains);

#endif
