/*
 * What a worker wrote, as Basecamp takes it. No markup of a worker's passes:
 * raw HTML in Markdown becomes text that shows what it was, so that nothing
 * is lost and nobody is mentioned.
 */
#ifndef MCPD_MARKUP_H
#define MCPD_MARKUP_H

#include <stddef.h>

/* All NUL-terminated, without other NULs, and the caller's to free(). */

/* Markdown (CommonMark) as HTML. */
char *markup_markdown_html(const char *text, size_t len, size_t *out_len);
/* Plain text as HTML: escaped, its line ends kept. */
char *markup_plain_html(const char *text, size_t len, size_t *out_len);
/* Plain text as plain text: without NULs and outer white space. */
char *markup_plain_text(const char *text, size_t len, size_t *out_len);

#endif
