#include <stdbool.h>
#include <stdint.h>

#include "common/base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void
base64url_encode(const void *bytes, size_t len, char *out)
{
	const uint8_t *in = bytes;
	uint32_t bits = 0;
	unsigned count = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		bits = bits << 8 | in[i];
		for (count += 8; count >= 6; count -= 6)
			*out++ = alphabet[bits >> (count - 6) & 0x3f];
	}
	if (count != 0)
		*out++ = alphabet[bits << (6 - count) & 0x3f];
	*out = '\0';
}

/* The value of a character of base64url, or of base64 with EITHER. */
static int
value_of(char c, bool either)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-' || (either && c == '+'))
		return 62;
	return c == '_' || (either && c == '/') ? 63 : -1;
}

static ssize_t
decode(const char *text, size_t len, uint8_t *out, size_t size, bool lenient)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t i, n = 0;
	int value;

	for (i = 0; i < len; i++) {
		if (lenient && (text[i] == '\r' || text[i] == '\n'))
			continue;
		value = value_of(text[i], lenient);
		if (value == -1)
			return -1;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count < 8)
			continue;
		if (n == size)
			return -1;
		count -= 8;
		out[n++] = (uint8_t)(bits >> count);
	}
	/* Six bits left are a character too many. */
	if (count == 6 || (!lenient && (bits & ((1u << count) - 1)) != 0))
		return -1;
	return (ssize_t)n;
}

ssize_t
base64url_decode(const char *text, size_t len, void *out, size_t size)
{
	return decode(text, len, out, size, false);
}

ssize_t
base64_decode_lenient(const char *text, size_t len, void *out, size_t size)
{
	while (len != 0 && text[len - 1] == '=')
		len--;
	return decode(text, len, out, size, true);
}
