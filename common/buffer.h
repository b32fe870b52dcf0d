/*
 * A growing run of bytes, for output that is put together piece by piece.
 * Start with `struct buffer b = {0}`; BYTES is NULL until something was
 * added, and always NUL-terminated afterwards. Allocation is fatal on
 * failure, so nothing here fails; whoever feeds it foreign bytes bounds them.
 */
#ifndef COMMON_BUFFER_H
#define COMMON_BUFFER_H

#include <stddef.h>

struct buffer {
	char *bytes;
	size_t len;
	size_t size;
};

void buffer_add(struct buffer *b, const void *bytes, size_t len);
void buffer_add_char(struct buffer *b, char c);
void buffer_add_text(struct buffer *b, const char *text);
void buffer_printf(struct buffer *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));

/* Hand the bytes over ("" when nothing was added), B is empty again. */
char *buffer_take(struct buffer *b, size_t *len);
void buffer_free(struct buffer *b);

#endif
