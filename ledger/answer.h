/*
 * What a handler leaves behind. Nothing of it leaves the process before the
 * transaction that the request ran in is committed.
 */
#ifndef LEDGER_ANSWER_H
#define LEDGER_ANSWER_H

#include <sys/queue.h>

#include "common/protocol.h"

#define TOKEN_LEN 43        /* 32 random bytes in base64url */
#define FAILED_TEXT_MAX 512 /* of FAILED; what is longer is cut */

/* One NDJSON line without its newline. */
struct line {
	STAILQ_ENTRY(line) entry;
	char *text;
};
STAILQ_HEAD(line_list, line);

/* A notice with an id; to the role that its message is for. */
struct notice {
	STAILQ_ENTRY(notice) entry;
	enum msg_type type;
	int64_t id;
	char attempt[29]; /* of the mcpd meant, or told of; else "" */
};
STAILQ_HEAD(notice_list, notice);

struct answer {
	struct msg reply;
	struct line_list lines;
	struct notice_list notices;
	/*
	 * A token just minted; "" for none. It goes into a pipe whose read
	 * end becomes the reply's FD field, once its hash is committed.
	 */
	char token[TOKEN_LEN + 1];
	struct piece *memory; /* what the reply's fields point into, */
	size_t bytes;         /* and how much that is */
};

/* Zero first: `struct answer a = {0}` is not enough. */
void answer_init(struct answer *a);
/* Free everything, wipe the token, and be as after answer_init(). */
void answer_clear(struct answer *a);

/* Copies that live as long as the answer. NULL reads as "". */
const char *answer_text(struct answer *a, const char *text);
struct blob answer_blob(struct answer *a, const void *bytes, size_t len);

/* DONE. Returns 0, for a handler to return. */
int answer_done(struct answer *a, bool changed);
/* FAILED with a reason of protocol.def; returns 0 as well. */
int answer_fail(struct answer *a, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool answer_failed(const struct answer *a);

/* TEXT is taken over. */
void answer_line(struct answer *a, char *text);
/* ATTEMPT is copied. The same type, id and attempt twice is told once. */
void answer_notice(
    struct answer *a, enum msg_type type, int64_t id, const char *attempt);

#endif
