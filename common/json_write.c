#include <string.h>

#include "common/json.h"
#include "common/utf8.h"

/* Control characters, and the line ends that only JavaScript knows. */
static bool
needs_number(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0x2028 ||
	    cp == 0x2029;
}

/* By hand: a text may be nothing but these. */
static void
write_number(struct buffer *b, uint32_t cp)
{
	static const char digits[] = "0123456789abcdef";
	const char escape[] = {'\\', 'u', digits[cp >> 12 & 15],
	    digits[cp >> 8 & 15], digits[cp >> 4 & 15], digits[cp & 15]};

	buffer_add(b, escape, sizeof(escape));
}

static void
write_char(struct buffer *b, uint32_t cp, const char *bytes, size_t n)
{
	static const char meanings[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *found = NULL;

	if (cp != 0 && cp < 0x80)
		found = strchr(meanings, (int)cp);
	if (found != NULL) {
		buffer_add_char(b, '\\');
		buffer_add_char(b, letters[found - meanings]);
	} else if (needs_number(cp)) {
		write_number(b, cp);
	} else {
		buffer_add(b, bytes, n);
	}
}

/* So many bytes go as they are, and at once: most of what is written. */
static size_t
plain_run(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' &&
	    text[n] != '\\')
		n++;
	return n;
}

static size_t
write_next(struct buffer *b, const char *text, size_t len)
{
	size_t n = plain_run(text, len);
	uint32_t cp;

	if (n != 0) {
		buffer_add(b, text, n);
		return n;
	}
	n = utf8_next(text, len, &cp);
	if (n == 0) {
		buffer_add_text(b, UTF8_REPLACEMENT_TEXT);
		return 1;
	}
	write_char(b, cp, text, n);
	return n;
}

void
json_write_string(struct buffer *b, const char *text, size_t len)
{
	size_t i = 0;

	buffer_add_char(b, '"');
	while (i < len)
		i += write_next(b, text + i, len - i);
	buffer_add_char(b, '"');
}
