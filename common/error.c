#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"

/* A cut text is still a text: the result of vsnprintf is not looked at. */
static void __attribute__((format(printf, 2, 0)))
error_format(struct error *e, const char *fmt, va_list ap)
{
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
}

int
error_set(struct error *e, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = 0;
	va_start(ap, fmt);
	error_format(e, fmt, ap);
	va_end(ap);
	return -1;
}

int
error_errno(struct error *e, const char *fmt, ...)
{
	va_list ap;
	size_t used;
	int saved = errno;

	if (e == NULL)
		return -1;
	e->code = saved;
	va_start(ap, fmt);
	error_format(e, fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	(void)snprintf(
	    e->text + used, sizeof(e->text) - used, ": %s", strerror(saved));
	errno = saved;
	return -1;
}
