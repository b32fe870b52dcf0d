#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/text.h"
#include "common/utf8.h"

#define NAME_MAX_LEN 8

struct entity {
	char name[NAME_MAX_LEN + 1];
	uint16_t cp;
};

static const struct entity entities[] = {
#define ENTITY(name, cp) {#name, cp},
#include "common/entities.def"
#undef ENTITY
};

/* Numbers 0x80-0x9f mean the characters of Windows-1252, in every browser. */
static const uint16_t windows_1252[] = {0x20ac, 0x0081, 0x201a, 0x0192, 0x201e,
    0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x008d,
    0x017d, 0x008f, 0x0090, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013,
    0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x009d, 0x017e, 0x0178};
static_assert(sizeof(windows_1252) / sizeof(windows_1252[0]) == 32,
    "one for each number");

static int
entity_order(const void *key, const void *item)
{
	return strcmp(key, ((const struct entity *)item)->name);
}

static uint32_t
number_meaning(uint32_t number)
{
	if (number >= 0x80 && number <= 0x9f)
		return windows_1252[number - 0x80];
	return number == 0 ? UTF8_REPLACEMENT : number;
}

static int
digit_value(char c, uint32_t base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After "&#": the bytes that the number and its `;` take, 0 if none. */
static size_t
numeric_next(const char *text, size_t len, uint32_t *cp)
{
	uint32_t number = 0, base = 10;
	size_t at = 0, first;
	int digit;

	if (len != 0 && (text[0] | 0x20) == 'x') {
		base = 16;
		at = 1;
	}
	for (first = at; at < len; at++) {
		digit = digit_value(text[at], base);
		if (digit == -1)
			break;
		number = number * base + (uint32_t)digit;
		if (number > 0x10ffff)
			number = 0x110000;
	}
	if (at == first)
		return 0;
	*cp = number_meaning(number);
	return at + (at < len && text[at] == ';');
}

/* After "&": the bytes that the name and its `;` take, 0 if it is none. */
static size_t
named_next(const char *text, size_t len, uint32_t *cp)
{
	const struct entity *found;
	char name[NAME_MAX_LEN + 1];
	const char *end;
	size_t n;

	end = memchr(text, ';', len <= NAME_MAX_LEN ? len : NAME_MAX_LEN + 1);
	if (end == NULL)
		return 0;
	n = (size_t)(end - text);
	memcpy(name, text, n);
	name[n] = '\0';
	if (strlen(name) != n)
		return 0; /* a NUL is part of no name */
	found = bsearch(name, entities, sizeof(entities) / sizeof(entities[0]),
	    sizeof(entities[0]), entity_order);
	if (found == NULL)
		return 0;
	*cp = found->cp;
	return n + 1;
}

/* An entity at TEXT, which is an ampersand; its length, 0 if it is none. */
static size_t
entity_next(const char *text, size_t len, uint32_t *cp)
{
	size_t n;

	if (len > 1 && text[1] == '#') {
		n = numeric_next(text + 2, len - 2, cp);
		return n == 0 ? 0 : n + 2;
	}
	n = named_next(text + 1, len - 1, cp);
	return n == 0 ? 0 : n + 1;
}

char *
text_decode_entities(const char *html, size_t len, size_t *out_len)
{
	struct buffer b = {0};
	const char *amp, *at = html, *end = html + len;
	char utf8[4], *decoded, *valid;
	uint32_t cp;
	size_t n;

	while ((amp = memchr(at, '&', (size_t)(end - at))) != NULL) {
		buffer_add(&b, at, (size_t)(amp - at));
		n = entity_next(amp, (size_t)(end - amp), &cp);
		if (n != 0)
			buffer_add(&b, utf8, utf8_put(cp, utf8));
		else
			buffer_add_char(&b, '&');
		at = amp + (n != 0 ? n : 1);
	}
	buffer_add(&b, at, (size_t)(end - at));
	decoded = buffer_take(&b, &len);
	valid = text_make_utf8(decoded, len, out_len);
	free(decoded);
	return valid;
}
