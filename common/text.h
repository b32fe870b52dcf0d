/*
 * HTML text and single lines. Results are malloc'ed, NUL-terminated,
 * valid UTF-8 and the caller's. Bytes that are not UTF-8 become U+FFFD.
 */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stddef.h>

/* The same text with U+FFFD for what is not UTF-8. */
char *text_make_utf8(const char *text, size_t len, size_t *out_len);

/*
 * What a message says, for comparing a stored body with a sent one
 * (operator.md 1.8): `<br>` and the ends of div, p, li, h1..h6 part words,
 * every other tag goes, entities are decoded, white space is one space and
 * none at the ends.
 */
char *text_normalise(const char *html, size_t len, size_t *out_len);

/* & < > " ' as entities; line ends and all else as they are. */
char *text_escape_html(const char *text, size_t len, size_t *out_len);

/*
 * Entities of HTML text: numeric ones with or without `;` (Windows-1252
 * numbers as browsers read them; none that is no character), named ones of
 * common/entities.def with `;`. What is no entity stays.
 */
char *text_decode_entities(const char *html, size_t len, size_t *out_len);

/*
 * One printable line: terminal sequences (CSI, OSC, DCS and the like, also
 * with 8-bit introducers) go whole; other controls (C0, DEL, C1, U+2028,
 * U+2029) count as white space, so that taking them out joins nothing; runs
 * of white space are one space, none at the ends.
 */
char *text_single_line(const char *text, size_t len, size_t *out_len);

#endif
