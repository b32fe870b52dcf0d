#include <sys/random.h>

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/log.h"
#include "ledger/token.h"

#define TOKEN_BYTES 32

static_assert(BASE64_LEN(TOKEN_BYTES) == TOKEN_LEN, "a token's length");

void
token_mint(char token[static TOKEN_LEN + 1])
{
	unsigned char bytes[TOKEN_BYTES];

	if (getentropy(bytes, sizeof(bytes)) == -1)
		fatal("no random bytes for a token");
	base64url_encode(bytes, sizeof(bytes), token);
	explicit_bzero(bytes, sizeof(bytes));
}

void
token_hash(const char *token, char hash[static DIGEST_HEX_SIZE])
{
	digest_sha256_hex(token, strlen(token), hash);
}

int
token_pipe(const char *token, struct error *e)
{
	char line[TOKEN_LEN + 2];
	size_t len = strlen(token);
	ssize_t n;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return error_errno(e, "no pipe for a token");
	memcpy(line, token, len);
	line[len] = '\n';
	n = write(fds[1], line, len + 1); /* an empty pipe takes it whole */
	explicit_bzero(line, sizeof(line));
	(void)close(fds[1]);
	if (n != (ssize_t)len + 1) {
		(void)close(fds[0]);
		return error_set(e, "a pipe did not take a token");
	}
	return fds[0];
}
