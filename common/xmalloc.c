#ifdef __APPLE__
#include <malloc/malloc.h>
#define malloc_usable_size malloc_size
#else
#include <malloc.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* No clean-up: whatever a role owes to others is in the ledger already. */
static _Noreturn void
out_of_memory(size_t size)
{
	log_warnx("out of memory asking for %zu bytes", size);
	exit_now(EXIT_STORAGE);
}

void *
xmalloc(size_t size)
{
	void *p = malloc(size == 0 ? 1 : size);

	if (p == NULL)
		out_of_memory(size);
	return p;
}

void *
xcalloc(size_t count, size_t size)
{
	void *p = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);

	if (p == NULL)
		out_of_memory(count * size);
	return p;
}

void *
xreallocarray(void *old, size_t count, size_t size)
{
	void *p;

	if (count == 0 || size == 0)
		count = size = 1;
	p = reallocarray(old, count, size);
	if (p == NULL)
		out_of_memory(count * size);
	return p;
}

char *
xstrdup(const char *text)
{
	return xmemdup(text, strlen(text) + 1);
}

char *
xstrndup(const char *text, size_t len)
{
	char *p = xmalloc(len + 1);

	memcpy(p, text, len);
	p[len] = '\0';
	return p;
}

void *
xmemdup(const void *bytes, size_t len)
{
	void *p = xmalloc(len);

	if (len != 0)
		memcpy(p, bytes, len);
	return p;
}

int
xasprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(out, fmt, ap);
	va_end(ap);
	if (n == -1)
		out_of_memory(0);
	return n;
}

void
xfree_wiped(void *p)
{
	if (p != NULL)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}
