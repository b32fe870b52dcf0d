#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buffer.h"
#include "common/text.h"
#include "common/utf8.h"

static void
add_char(struct buffer *b, uint32_t cp)
{
	char utf8[4];

	buffer_add(b, utf8, utf8_put(cp == 0 ? UTF8_REPLACEMENT : cp, utf8));
}

/* Step over one character; a byte that is not UTF-8 is U+FFFD. */
static size_t
next_char(const char *text, size_t len, uint32_t *cp)
{
	size_t n = utf8_next(text, len, cp);

	if (n != 0)
		return n;
	*cp = UTF8_REPLACEMENT;
	return 1;
}

char *
text_make_utf8(const char *text, size_t len, size_t *out_len)
{
	struct buffer b = {0};
	uint32_t cp;
	size_t i;

	for (i = 0; i < len;) {
		i += next_char(text + i, len - i, &cp);
		add_char(&b, cp);
	}
	return buffer_take(&b, out_len);
}

static const char *
escape_of(uint32_t cp)
{
	switch (cp) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

char *
text_escape_html(const char *text, size_t len, size_t *out_len)
{
	struct buffer b = {0};
	const char *escape;
	uint32_t cp;
	size_t i;

	for (i = 0; i < len;) {
		i += next_char(text + i, len - i, &cp);
		escape = escape_of(cp);
		if (escape != NULL)
			buffer_add_text(&b, escape);
		else
			add_char(&b, cp);
	}
	return buffer_take(&b, out_len);
}

/* Runs of white space as one space, none at the ends. */
static char *
collapse(const char *text, size_t len, size_t *out_len)
{
	struct buffer b = {0};
	bool is_parted = false;
	uint32_t cp;
	size_t i;

	for (i = 0; i < len;) {
		i += next_char(text + i, len - i, &cp);
		if (utf8_is_space(cp)) {
			is_parted = b.len != 0;
			continue;
		}
		if (is_parted)
			buffer_add_char(&b, ' ');
		is_parted = false;
		add_char(&b, cp);
	}
	return buffer_take(&b, out_len);
}

static bool
is_name_char(char c)
{
	return (c >= '0' && c <= '9') ||
	    ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Whether the tag whose inside this is parts the words around it. */
static bool
tag_parts(const char *inside, size_t len)
{
	static const char *const blocks[] = {
	    "div", "p", "li", "h1", "h2", "h3", "h4", "h5", "h6"};
	bool is_end = len != 0 && inside[0] == '/';
	size_t i, n;

	inside += is_end;
	len -= is_end;
	for (n = 0; n < len && is_name_char(inside[n]); n++)
		continue;
	if (n == 2 && strncasecmp(inside, "br", n) == 0)
		return true;
	for (i = 0; is_end && i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (n == strlen(blocks[i]) &&
		    strncasecmp(inside, blocks[i], n) == 0)
			return true;
	return false;
}

/* Tags out; a `<` without any `>` behind it is text. */
static char *
drop_tags(const char *html, size_t len, size_t *out_len)
{
	struct buffer b = {0};
	const char *open, *close, *at = html, *end = html + len;

	while ((open = memchr(at, '<', (size_t)(end - at))) != NULL) {
		close = memchr(open, '>', (size_t)(end - open));
		if (close == NULL)
			break;
		buffer_add(&b, at, (size_t)(open - at));
		if (tag_parts(open + 1, (size_t)(close - open) - 1))
			buffer_add_char(&b, ' ');
		at = close + 1;
	}
	buffer_add(&b, at, (size_t)(end - at));
	return buffer_take(&b, out_len);
}

char *
text_normalise(const char *html, size_t len, size_t *out_len)
{
	char *bare, *plain, *text;

	bare = drop_tags(html, len, &len);
	plain = text_decode_entities(bare, len, &len);
	text = collapse(plain, len, out_len);
	free(plain);
	free(bare);
	return text;
}
