/*
 * Allocation that does not fail: without memory the process ends with
 * EXIT_STORAGE, which the supervisor does not count as the child's own death
 * (design: poison). Never give these a size that a peer chose before it was
 * held against a bound of the message table.
 */
#ifndef COMMON_XMALLOC_H
#define COMMON_XMALLOC_H

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *old, size_t count, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
void *xmemdup(const void *bytes, size_t len);
/* Returns the length; *OUT is the caller's to free. */
int xasprintf(char **out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* free(), after whatever stood there is wiped. NULL is fine. */
void xfree_wiped(void *p);

#endif
