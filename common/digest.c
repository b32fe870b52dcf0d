#include <openssl/evp.h>

#include "common/digest.h"
#include "common/log.h"

void
digest_sha256_hex(
    const void *bytes, size_t len, char out[static DIGEST_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[DIGEST_HEX_LEN / 2];
	unsigned n = sizeof(hash), i;

	if (EVP_Digest(bytes, len, hash, &n, EVP_sha256(), NULL) != 1 ||
	    n != sizeof(hash))
		fatalx("libcrypto has no SHA-256");
	for (i = 0; i < n; i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 0xf];
	}
	out[DIGEST_HEX_LEN] = '\0';
}
