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
		buffer_printf(b, "\\u%04x", (unsigned)cp);
	} else {
		buffer_add(b, bytes, n);
	}
}

void
json_write_string(struct buffer *b, const char *text, size_t len)
{
	uint32_t cp;
	size_t i, n;

	buffer_add_char(b, '"');
	for (i = 0; i < len; i += n == 0 ? 1 : n) {
		n = utf8_next(text + i, len - i, &cp);
		if (n == 0)
			buffer_add_text(b, UTF8_REPLACEMENT_TEXT);
		else
			write_char(b, cp, text + i, n);
	}
	buffer_add_char(b, '"');
}
