/*
 * Base64 (RFC 4648). Written is always base64url without padding; read is
 * what people and Rails write.
 */
#ifndef COMMON_BASE64_H
#define COMMON_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Characters of N bytes in base64url, without the NUL. */
#define BASE64_LEN(n) (((n)*4 + 2) / 3)

/* OUT holds BASE64_LEN(len) + 1 bytes and is NUL-terminated. */
void base64url_encode(const void *bytes, size_t len, char *out);

/* Exactly what base64url_encode() writes, or -1. OUT holds SIZE bytes. */
ssize_t base64url_decode(const char *text, size_t len, void *out, size_t size);

/*
 * Either alphabet, padding optional and not counted, CR and LF skipped, bits
 * left over at the end ignored. Returns the bytes written to OUT, or -1 when
 * TEXT is not that or does not fit in SIZE.
 */
ssize_t base64_decode_lenient(
    const char *text, size_t len, void *out, size_t size);

#endif
