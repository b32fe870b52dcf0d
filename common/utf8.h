/*
 * UTF-8. Overlong forms, surrogates and numbers above U+10FFFF are not.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffdu
#define UTF8_REPLACEMENT_TEXT "\xef\xbf\xbd"

/*
 * The length (1..4) of the character at TEXT, its number in *CP unless CP is
 * NULL; 0 when what stands there is not UTF-8, or LEN is 0.
 */
size_t utf8_next(const char *text, size_t len, uint32_t *cp);
/* Writes 1..4 bytes; a surrogate or too large a number as U+FFFD. */
size_t utf8_put(uint32_t cp, char out[static 4]);
bool utf8_is_valid(const char *text, size_t len);
/* Unicode's White_Space, no-break spaces and NEL included. */
bool utf8_is_space(uint32_t cp);

/* How many bytes of TEXT, at most MAX, end where a character ends. */
size_t utf8_cut(const char *text, size_t len, size_t max);
/* How many to skip so that at most MAX are left, from a character's start. */
size_t utf8_cut_front(const char *text, size_t len, size_t max);

#endif
