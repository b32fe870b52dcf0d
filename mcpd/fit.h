/*
 * A result as text, within the size rule (mcp.md 7): pretty JSON of at most
 * FIT_TEXT_MAX bytes. Only `content` members are cut, the longest first, at a
 * character; each object that lost some of it says `content_truncated`.
 */
#ifndef MCPD_FIT_H
#define MCPD_FIT_H

#include <stddef.h>

#include <jansson.h>

#define FIT_TEXT_MAX 48000

/* Changes JSON if it must. NUL-terminated, the caller's to free(). */
char *fit_text(json_t *json, size_t *len);

#endif
