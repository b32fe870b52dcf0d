#include "common/utf8.h"

/* The smallest number that needs a form of 2, 3, 4 bytes. */
static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};

static bool
is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length that the first byte claims, its own bits in *BITS; or 0. */
static size_t
form_of(unsigned char first, uint32_t *bits)
{
	if (first < 0x80) {
		*bits = first;
		return 1;
	}
	if ((first & 0xe0) == 0xc0) {
		*bits = first & 0x1f;
		return 2;
	}
	if ((first & 0xf0) == 0xe0) {
		*bits = first & 0x0f;
		return 3;
	}
	if ((first & 0xf8) == 0xf0) {
		*bits = first & 0x07;
		return 4;
	}
	return 0;
}

static bool
is_scalar(uint32_t cp)
{
	return cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);
}

size_t
utf8_next(const char *text, size_t len, uint32_t *cp)
{
	uint32_t bits;
	size_t i, n;

	if (len == 0)
		return 0;
	n = form_of((unsigned char)text[0], &bits);
	if (n == 0 || n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if (!is_continuation(text[i]))
			return 0;
		bits = bits << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (bits < LEAST[n] || !is_scalar(bits))
		return 0;
	if (cp != NULL)
		*cp = bits;
	return n;
}

size_t
utf8_put(uint32_t cp, char out[static 4])
{
	if (!is_scalar(cp))
		cp = UTF8_REPLACEMENT;
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

bool
utf8_is_valid(const char *text, size_t len)
{
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = utf8_next(text + i, len - i, NULL);
		if (n == 0)
			return false;
	}
	return true;
}

bool
utf8_is_space(uint32_t cp)
{
	if (cp < 0x80)
		return cp == ' ' || (cp >= '\t' && cp <= '\r');
	if (cp >= 0x2000 && cp <= 0x200a)
		return true;
	return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || cp == 0x2028 ||
	    cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

/* At most three bytes back: what is no UTF-8 is not searched for a start. */
size_t
utf8_cut(const char *text, size_t len, size_t max)
{
	size_t back;

	if (len <= max)
		return len;
	for (back = 0; back < 3 && back < max; back++)
		if (!is_continuation(text[max - back]))
			return max - back;
	return is_continuation(text[max - back]) ? max : max - back;
}

size_t
utf8_cut_front(const char *text, size_t len, size_t max)
{
	size_t skip;

	if (len <= max)
		return 0;
	for (skip = len - max; skip < len; skip++)
		if (!is_continuation(text[skip]))
			break;
	return skip;
}
