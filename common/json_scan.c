#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/utf8.h"

static enum json_event
fault(struct json_scan *s, int code, const char *why)
{
	s->state = JSON_STATE_FAULT;
	s->start = s->end = s->at;
	s->fault = code;
	s->why = why;
	return JSON_EVENT_FAULT;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The byte at the scanner's place; 0 at the end, which no token starts with. */
static char
here(const struct json_scan *s)
{
	return s->at < s->len ? s->text[s->at] : '\0';
}

void
json_scan_init(struct json_scan *s, const char *text, size_t len,
    unsigned max_depth, size_t max_members)
{
	*s = (struct json_scan){
	    .text = text,
	    .len = len,
	    .max_depth = max_depth,
	    .max_members = max_members,
	    .state = JSON_STATE_VALUE,
	};
	if (s->max_depth > JSON_DEPTH_MOST)
		s->max_depth = JSON_DEPTH_MOST;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		(void)fault(s, EILSEQ, "a byte order mark");
}

/* After a whole value, or a container closed. */
static enum json_event
event(struct json_scan *s, enum json_event what)
{
	s->end = s->at;
	s->state = JSON_STATE_AFTER;
	return what;
}

static enum json_event
open_container(struct json_scan *s, bool is_object)
{
	if (s->depth >= s->max_depth)
		return fault(s, E2BIG, "nested too deep");
	s->at++;
	s->end = s->at;
	s->in_object[s->depth++] = is_object;
	s->state = is_object ? JSON_STATE_FIRST_NAME : JSON_STATE_FIRST_ELEMENT;
	return is_object ? JSON_EVENT_OBJECT : JSON_EVENT_ARRAY;
}

static enum json_event
close_container(struct json_scan *s)
{
	s->at++;
	s->depth--;
	return event(s, JSON_EVENT_CLOSE);
}

static bool
is_high(uint32_t unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool
is_low(uint32_t unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* \uXXXX at TEXT: 6, or 0 if it is not one. */
static size_t
unit_next(const char *text, size_t len, uint32_t *unit)
{
	uint32_t value = 0;
	size_t i;
	char c;

	if (len < 6 || text[0] != '\\' || text[1] != 'u')
		return 0;
	for (i = 2; i < 6; i++) {
		c = text[i];
		if (is_digit(c))
			value = value << 4 | (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
		else
			return 0;
	}
	*unit = value;
	return 6;
}

/* \uXXXX, or two of them that make one character. */
static size_t
unicode_next(const char *text, size_t len, struct json_char *c)
{
	uint32_t low;

	if (unit_next(text, len, &c->cp) == 0)
		return 0;
	if (is_high(c->cp) && unit_next(text + 6, len - 6, &low) != 0 &&
	    is_low(low)) {
		c->cp = 0x10000 + ((c->cp - 0xd800) << 10) + (low - 0xdc00);
		return 12;
	}
	if (is_high(c->cp) || is_low(c->cp)) {
		c->cp = UTF8_REPLACEMENT;
		c->lone = true;
	}
	return 6;
}

size_t
json_char_next(const char *text, size_t len, struct json_char *c)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter;

	c->lone = false;
	if (len == 0)
		return 0;
	if (text[0] != '\\')
		return utf8_next(text, len, &c->cp);
	if (len < 2 || text[1] == '\0')
		return 0;
	if (text[1] == 'u')
		return unicode_next(text, len, c);
	letter = strchr(letters, text[1]);
	if (letter == NULL)
		return 0;
	c->cp = (unsigned char)meanings[letter - letters];
	return 2;
}

/* A string from its opening quote; notes what its characters are. */
static enum json_event
scan_string(struct json_scan *s, bool is_name)
{
	struct json_char c;
	size_t n;

	s->lone = s->fffd = false;
	for (s->at++; here(s) != '"'; s->at += n) {
		if (s->at >= s->len)
			return fault(s, EINVAL, "a string without its end");
		if ((unsigned char)here(s) < 0x20)
			return fault(s, EINVAL, "a raw control in a string");
		n = json_char_next(s->text + s->at, s->len - s->at, &c);
		if (n == 0 && here(s) == '\\')
			return fault(s, EINVAL, "a wrong escape");
		if (n == 0)
			return fault(s, EILSEQ, "not UTF-8");
		if (is_name && c.cp == 0)
			return fault(s, ERANGE, "NUL in a member name");
		s->lone |= c.lone;
		s->fffd |= c.cp == UTF8_REPLACEMENT;
	}
	s->at++;
	return event(s, is_name ? JSON_EVENT_NAME : JSON_EVENT_STRING);
}

/* One digit or more. */
static bool
scan_digits(struct json_scan *s)
{
	size_t from = s->at;

	while (is_digit(here(s)))
		s->at++;
	return s->at > from;
}

static enum json_event
scan_number(struct json_scan *s)
{
	s->is_integer = true;
	if (here(s) == '-')
		s->at++;
	if (here(s) == '0')
		s->at++;
	else if (!scan_digits(s))
		return fault(s, EINVAL, "a malformed number");
	if (here(s) == '.') {
		s->is_integer = false;
		s->at++;
		if (!scan_digits(s))
			return fault(s, EINVAL, "a malformed number");
	}
	if (here(s) == 'e' || here(s) == 'E') {
		s->is_integer = false;
		s->at++;
		if (here(s) == '+' || here(s) == '-')
			s->at++;
		if (!scan_digits(s))
			return fault(s, EINVAL, "a malformed number");
	}
	return event(s, JSON_EVENT_NUMBER);
}

static enum json_event
scan_word(struct json_scan *s)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t i, n;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		n = strlen(words[i]);
		if (s->len - s->at >= n &&
		    memcmp(s->text + s->at, words[i], n) == 0) {
			s->at += n;
			return event(s, JSON_EVENT_WORD);
		}
	}
	if (s->at == s->len)
		return fault(s, EINVAL, "the text ends too soon");
	if (utf8_next(s->text + s->at, s->len - s->at, NULL) == 0)
		return fault(s, EILSEQ, "not UTF-8");
	return fault(s, EINVAL, "no value here");
}

static enum json_event
at_value(struct json_scan *s)
{
	char c = here(s);

	if (c == '{' || c == '[')
		return open_container(s, c == '{');
	if (c == '"')
		return scan_string(s, false);
	if (c == '-' || is_digit(c))
		return scan_number(s);
	return scan_word(s);
}

static bool
count_member(struct json_scan *s)
{
	return s->members++ < s->max_members;
}

static enum json_event
at_name(struct json_scan *s)
{
	enum json_event got;

	if (here(s) != '"')
		return fault(s, EINVAL, "no member name here");
	if (!count_member(s))
		return fault(s, E2BIG, "too many members");
	got = scan_string(s, true);
	if (got == JSON_EVENT_FAULT)
		return got;
	while (is_blank(here(s)))
		s->at++;
	if (here(s) != ':')
		return fault(s, EINVAL, "no colon after a member name");
	s->at++;
	s->state = JSON_STATE_VALUE;
	return got;
}

static enum json_event
at_first_name(struct json_scan *s)
{
	return here(s) == '}' ? close_container(s) : at_name(s);
}

static enum json_event
at_element(struct json_scan *s)
{
	if (!count_member(s))
		return fault(s, E2BIG, "too many elements");
	return at_value(s);
}

static enum json_event
at_first_element(struct json_scan *s)
{
	return here(s) == ']' ? close_container(s) : at_element(s);
}

/* Behind a value: the end of the text, of its container, or a comma. */
static enum json_event
at_after(struct json_scan *s)
{
	bool in_object;

	if (s->depth == 0) {
		if (s->at < s->len)
			return fault(s, EINVAL, "something after the value");
		return JSON_EVENT_END;
	}
	in_object = s->in_object[s->depth - 1];
	if (here(s) == (in_object ? '}' : ']'))
		return close_container(s);
	if (here(s) != ',')
		return fault(s, EINVAL, "no comma and no end here");
	for (s->at++; is_blank(here(s)); s->at++)
		continue;
	s->start = s->at;
	return in_object ? at_name(s) : at_element(s);
}

static enum json_event
at_fault(struct json_scan *s)
{
	return JSON_EVENT_FAULT;
}

static enum json_event (*const states[])(struct json_scan *) = {
    [JSON_STATE_VALUE] = at_value,
    [JSON_STATE_FIRST_NAME] = at_first_name,
    [JSON_STATE_FIRST_ELEMENT] = at_first_element,
    [JSON_STATE_AFTER] = at_after,
    [JSON_STATE_FAULT] = at_fault,
};
static_assert(sizeof(states) / sizeof(states[0]) == JSON_STATE_COUNT,
    "a handler for every state");

enum json_event
json_scan_next(struct json_scan *s)
{
	if (s->state != JSON_STATE_FAULT) {
		while (is_blank(here(s)))
			s->at++;
		s->start = s->at;
	}
	return states[s->state](s);
}

bool
json_scan_skip(struct json_scan *s, enum json_event first)
{
	unsigned depth;

	if (first != JSON_EVENT_OBJECT && first != JSON_EVENT_ARRAY)
		return first != JSON_EVENT_FAULT;
	for (depth = s->depth; s->depth >= depth;)
		if (json_scan_next(s) == JSON_EVENT_FAULT)
			return false;
	return true;
}
