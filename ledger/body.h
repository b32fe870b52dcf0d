/*
 * How a message of the connector's own is put together (operator.md 2.5): line
 * by line, one div of HTML for a comment, plain text for a chat line.
 */
#ifndef LEDGER_BODY_H
#define LEDGER_BODY_H

#include <stdbool.h>

#include "common/buffer.h"

/* Ends each message, so that nobody takes it for the agent's. */
#define SIGNATURE "posted by connectd, not by the agent"
/* What a person types; who looks for it reads the whole number behind it. */
#define REDISPATCH_ASK "connectctl redispatch "
#define REDISPATCH REDISPATCH_ASK "%" PRId64

#define BODY_LINE_MAX 300

struct body {
	struct buffer *out;
	bool is_html;
};

/* Into OUT, which is empty; it stays so until there is a line. */
struct body body_begin(struct buffer *out, const char *message_kind);
/* A line of words and numbers, at most BODY_LINE_MAX - 1 bytes. */
void body_line(struct body *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A line of any length. */
void body_text(struct body *b, const char *line);
void body_end(struct body *b);

#endif
