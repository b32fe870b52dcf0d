/*
 * A task's token (design 5, step 3): 32 random bytes as text. The ledger keeps
 * its hash; the text goes into a pipe and nowhere else.
 */
#ifndef LEDGER_TOKEN_H
#define LEDGER_TOKEN_H

#include "common/digest.h"
#include "common/error.h"
#include "ledger/answer.h"

/* A new token. Ends the process when the kernel has no random bytes. */
void token_mint(char token[static TOKEN_LEN + 1]);
/* What tasks.token_sha256 holds. */
void token_hash(const char *token, char hash[static DIGEST_HEX_SIZE]);
/* A pipe that holds the token and its end: the read end, or -1. */
int token_pipe(const char *token, struct error *e);

#endif
