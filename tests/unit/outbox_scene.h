/*
 * What is to be posted of events in conversations of their own, and what the
 * outbox says of it (operator.md 1).
 */
#ifndef TESTS_OUTBOX_SCENE_H
#define TESTS_OUTBOX_SCENE_H

#include "tests/unit/ledger_fixture.h"

#define HASH_A \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B \
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

extern char apart_token[TOKEN_LEN + 1]; /* of event 101's task */

void admit_apart(struct fixture *f, int64_t id);
/* Event 101, as attempt ATT_1. */
void launch_apart(struct fixture *f);
/* POST of its worker's, with KIND and the argument's HASH; the reply. */
struct msg *post_text(
    struct fixture *f, const char *kind, const char *hash, const char *text);
/* RECEIPT and REFUSED of the outbox's; the reply. */
struct msg *tell_receipt(
    struct fixture *f, int64_t intent, const char *nonce, int64_t id);
struct msg *tell_refused(struct fixture *f, int64_t intent, const char *nonce);

#endif
