/* What nobody can guess, and nobody else has: nonces and ids. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stddef.h>

/*
 * BYTES random bytes, at most 256, as 2 * BYTES lower-case hex digits and a
 * NUL. Fatal when the kernel has none.
 */
void random_hex(char *out, size_t bytes);

#endif
