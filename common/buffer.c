#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define BUFFER_LEAST 64

/* Room for LEN more bytes and the NUL; doubles, so that adding is linear. */
static void
buffer_reserve(struct buffer *b, size_t len)
{
	size_t want;

	if (len > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
		fatalx("buffer of %zu bytes cannot grow by %zu", b->len, len);
	want = b->len + len + 1;
	if (want <= b->size)
		return;
	if (want < b->size * 2)
		want = b->size * 2;
	if (want < BUFFER_LEAST)
		want = BUFFER_LEAST;
	b->bytes = xreallocarray(b->bytes, want, 1);
	b->size = want;
}

void
buffer_add(struct buffer *b, const void *bytes, size_t len)
{
	buffer_reserve(b, len);
	if (len != 0)
		memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
	b->bytes[b->len] = '\0';
}

void
buffer_add_char(struct buffer *b, char c)
{
	buffer_add(b, &c, 1);
}

void
buffer_add_text(struct buffer *b, const char *text)
{
	buffer_add(b, text, strlen(text));
}

void
buffer_printf(struct buffer *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		fatal("vsnprintf");
	buffer_reserve(b, (size_t)n);
	va_start(ap, fmt);
	(void)vsnprintf(b->bytes + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

char *
buffer_take(struct buffer *b, size_t *len)
{
	char *bytes;

	buffer_reserve(b, 0);
	b->bytes[b->len] = '\0';
	bytes = b->bytes;
	if (len != NULL)
		*len = b->len;
	*b = (struct buffer){0};
	return bytes;
}

void
buffer_free(struct buffer *b)
{
	free(b->bytes);
	*b = (struct buffer){0};
}
