/*
 * The task's token, once, from a descriptor (ledger.md 7). No text of it is
 * in any message.
 */
#ifndef MCPD_TOKEN_H
#define MCPD_TOKEN_H

#include "common/error.h"

#define TOKEN_FD_LEAST 3
#define TOKEN_READ_MAX 4096
#define TOKEN_WAIT_MS 5000

/* TEXT, a decimal number, as a descriptor's number. */
int token_fd_parse(const char *text, int *fd, struct error *e);

/*
 * Read the token: up to a newline or the end, within TOKEN_WAIT_MS. What is
 * below TOKEN_FD_LEAST, not open, or neither a pipe nor a socket is refused
 * and left as it was; from then on FD is ours and is closed in every case.
 * NUL-terminated; the caller's to free with token_free(). NULL on failure.
 */
char *token_read(int fd, struct error *e);
/* Wipes it first. NULL is fine. */
void token_free(char *token);

#endif
