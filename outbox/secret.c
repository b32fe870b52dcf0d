#include "outbox/secret.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/xmalloc.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no escape stays. */
static char *
decode_percent(const char *text, size_t len, size_t *out_len)
{
	char *out = xmalloc(len + 1);
	int high, low;
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		high = len - i > 2 ? hex_value(text[i + 1]) : -1;
		low = len - i > 2 ? hex_value(text[i + 2]) : -1;
		if (text[i] != '%' || high == -1 || low == -1) {
			out[n++] = text[i];
			continue;
		}
		out[n++] = (char)(high << 4 | low);
		i += 2;
	}
	out[n] = '\0';
	*out_len = n;
	return out;
}

/* Its letters and digits; what is not ASCII counts as letters. */
static char *
letters_of(const char *text, size_t len, size_t *out_len)
{
	char *out = xmalloc(len + 1);
	size_t i, n = 0;
	char c;

	for (i = 0; i < len; i++) {
		c = text[i];
		if ((c >= '0' && c <= '9') ||
		    ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80))
			out[n++] = c;
	}
	out[n] = '\0';
	*out_len = n;
	return out;
}

static bool
holds(const char *text, size_t len, const char *secret)
{
	size_t all_len, bare_len;
	char *all, *bare;
	bool found;

	if (memmem(text, len, secret, strlen(secret)) != NULL)
		return true;
	all = letters_of(text, len, &all_len);
	bare = letters_of(secret, strlen(secret), &bare_len);
	found = bare_len >= SECRET_LETTERS_LEAST &&
	    memmem(all, all_len, bare, bare_len) != NULL;
	explicit_bzero(bare, bare_len);
	free(bare);
	free(all);
	return found;
}

/* As a browser takes an address: what an escape says, not the escape. */
static char *
decode_both(const char *text, size_t len, size_t *out_len)
{
	char *plain = text_decode_entities(text, len, &len);
	char *out = decode_percent(plain, len, out_len);

	explicit_bzero(plain, len);
	free(plain);
	return out;
}

/* Escapes that the secret has itself are decoded with the body's. */
static bool
is_in_address(const char *secret, const char *body, size_t len)
{
	size_t meant_len;
	char *meant = decode_both(secret, strlen(secret), &meant_len);
	char *address = decode_both(body, len, &len);
	bool found = holds(address, len, meant);

	explicit_bzero(meant, meant_len);
	free(meant);
	free(address);
	return found;
}

bool
secret_is_in(const char *secret, const char *body, size_t len)
{
	size_t read_len;
	char *as_read = text_normalise(body, len, &read_len);
	bool found = holds(body, len, secret) ||
	    holds(as_read, read_len, secret) ||
	    is_in_address(secret, body, len);

	free(as_read);
	return found;
}
