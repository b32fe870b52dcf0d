/*
 * SHA-256. In a library of its own (common_digest), so that only those who
 * hash link libcrypto.
 */
#ifndef COMMON_DIGEST_H
#define COMMON_DIGEST_H

#include <stddef.h>

#define DIGEST_HEX_LEN 64
#define DIGEST_HEX_SIZE (DIGEST_HEX_LEN + 1)

/* Lower-case hex, NUL-terminated. Fatal if libcrypto cannot. */
void digest_sha256_hex(
    const void *bytes, size_t len, char out[static DIGEST_HEX_SIZE]);

#endif
