/*
 * Its own functions for SHA-256, not EVP's, which need the whole library and
 * read its configuration: 0.7 MB and 1.5 ms for each process.
 */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

#include "common/digest.h"
#include "common/log.h"

void
digest_sha256_hex(
    const void *bytes, size_t len, char out[static DIGEST_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[SHA256_DIGEST_LENGTH];
	SHA256_CTX ctx;
	size_t i;

	if (SHA256_Init(&ctx) != 1 || SHA256_Update(&ctx, bytes, len) != 1 ||
	    SHA256_Final(hash, &ctx) != 1)
		fatalx("libcrypto has no SHA-256");
	for (i = 0; i < sizeof(hash); i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 0xf];
	}
	out[DIGEST_HEX_LEN] = '\0';
}
