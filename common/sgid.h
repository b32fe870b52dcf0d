/*
 * Signed global ids, read side (ledger.md 8.3, admission.md 8.3-8.5).
 *
 * The signature is not verified; only Basecamp can. So an id found here is
 * a claim of whoever wrote the text: good to ask "does this mention the
 * agent", never to decide who may direct it.
 */
#ifndef COMMON_SGID_H
#define COMMON_SGID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SGID_ENCODED_MAX 5464
#define SGID_DECODED_MAX 4096
#define SGID_DEPTH_MAX 32

/* Whether SGID names a person attachably; only then *PERSON is set, >= 1. */
bool sgid_person(const char *sgid, size_t len, int64_t *person);

#endif
