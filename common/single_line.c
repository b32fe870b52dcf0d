#include <stdbool.h>
#include <stdlib.h>

#include "common/buffer.h"
#include "common/text.h"
#include "common/utf8.h"

#define ESC 0x1bu
#define BEL 0x07u
#define CSI 0x9bu
#define STRING_END 0x9cu

struct line {
	const char *text;
	size_t len;
	size_t at;
	struct buffer out;
	bool is_parted;
};

/* The character at OFFSET, U+FFFD for what is none, 0 at the end. */
static uint32_t
char_at(const struct line *l, size_t offset, size_t *n)
{
	uint32_t cp = 0;

	*n = 0;
	if (offset >= l->len)
		return 0;
	*n = utf8_next(l->text + offset, l->len - offset, &cp);
	if (*n == 0) {
		*n = 1;
		cp = UTF8_REPLACEMENT;
	}
	return cp;
}

static bool
is_between(uint32_t cp, uint32_t least, uint32_t most)
{
	return cp >= least && cp <= most;
}

/* Step over characters of a range; one byte each, they are ASCII. */
static void
skip_range(struct line *l, unsigned char least, unsigned char most)
{
	while (l->at < l->len &&
	    is_between((unsigned char)l->text[l->at], least, most))
		l->at++;
}

/* Parameters, intermediates, one final byte; what breaks it off stays. */
static void
skip_csi(struct line *l)
{
	skip_range(l, 0x30, 0x3f);
	skip_range(l, 0x20, 0x2f);
	if (l->at < l->len &&
	    is_between((unsigned char)l->text[l->at], 0x40, 0x7e))
		l->at++;
}

/* DCS, SOS, OSC, PM, APC: the C1 controls that begin a command string. */
static bool
begins_string(uint32_t c1)
{
	return c1 == 0x90 || c1 == 0x98 || is_between(c1, 0x9d, 0x9f);
}

/*
 * A command string, to its terminator. Without one, only its introducer goes:
 * a stray escape must not hide the rest of a line. ESC or another
 * introducer ends it in any case, so that a row of them is looked at once.
 */
static void
skip_string(struct line *l)
{
	size_t at, n;
	uint32_t cp;

	for (at = l->at; at < l->len; at += n) {
		cp = char_at(l, at, &n);
		if (cp == BEL || cp == STRING_END) {
			l->at = at + n;
			return;
		}
		if (cp == ESC) {
			l->at = at;
			if (at + 1 < l->len && l->text[at + 1] == '\\')
				l->at = at + 2;
			return;
		}
		if (cp == CSI || begins_string(cp)) {
			l->at = at;
			return;
		}
	}
}

/* Behind ESC; returns whether a sequence stood there. */
static bool
skip_escape(struct line *l)
{
	uint32_t c;

	if (l->at >= l->len)
		return false;
	c = (unsigned char)l->text[l->at];
	if (!is_between(c, 0x20, 0x7e))
		return false;
	l->at++;
	if (c == '[')
		skip_csi(l);
	else if (begins_string(c + 0x40))
		skip_string(l);
	else if (c <= 0x2f) {
		skip_range(l, 0x20, 0x2f);
		l->at += l->at < l->len &&
		    is_between((unsigned char)l->text[l->at], 0x30, 0x7e);
	}
	return true;
}

/* A terminal sequence that begins with CP, which was just stepped over. */
static bool
skip_sequence(struct line *l, uint32_t cp)
{
	if (cp == ESC)
		return skip_escape(l);
	if (cp == CSI) {
		skip_csi(l);
		return true;
	}
	if (begins_string(cp)) {
		skip_string(l);
		return true;
	}
	return false;
}

static bool
is_control(uint32_t cp)
{
	return cp < 0x20 || is_between(cp, 0x7f, 0x9f);
}

static void
add_char(struct line *l, uint32_t cp)
{
	char utf8[4];

	if (l->is_parted)
		buffer_add_char(&l->out, ' ');
	l->is_parted = false;
	buffer_add(&l->out, utf8, utf8_put(cp, utf8));
}

char *
text_single_line(const char *text, size_t len, size_t *out_len)
{
	struct line l = {.text = text, .len = len};
	uint32_t cp;
	size_t n;

	while (l.at < l.len) {
		cp = char_at(&l, l.at, &n);
		l.at += n;
		if (skip_sequence(&l, cp))
			continue;
		if (is_control(cp) || utf8_is_space(cp))
			l.is_parted = l.out.len != 0;
		else
			add_char(&l, cp);
	}
	return buffer_take(&l.out, out_len);
}
