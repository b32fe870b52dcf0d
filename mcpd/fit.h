/*
 * A result as text, within the size rules (mcp.md 7): pretty JSON of at most
 * FIT_TEXT_MAX bytes, that has room in its line. Only `content` members are
 * cut, the longest first, at a character; each object that lost some of it
 * says `content_truncated`. Where that makes not enough room, in a line that
 * many share, long texts and lists of texts are left out whole: their object
 * names them in `left_out`.
 */
#ifndef MCPD_FIT_H
#define MCPD_FIT_H

#include <stddef.h>

#include <jansson.h>

#define FIT_TEXT_MAX 48000

/*
 * Changes JSON if it must. ROOM is the text's as a JSON string, quotes
 * included. NUL-terminated, the caller's to free(); NULL: there is not room
 * enough for what is left.
 */
char *fit_text(json_t *json, size_t room, size_t *len);
/* The same of what may not be cut: a page's cursors count its bytes. */
char *fit_whole(const json_t *json, size_t room, size_t *len);

#endif
