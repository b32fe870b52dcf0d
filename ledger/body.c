#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ledger/body.h"

struct body
body_begin(struct buffer *out, const char *message_kind)
{
	return (struct body){out, strcmp(message_kind, "comment") == 0};
}

void
body_text(struct body *b, const char *line)
{
	char *escaped;

	if (!b->is_html) {
		buffer_printf(
		    b->out, "%s%s", b->out->len == 0 ? "" : "\n", line);
		return;
	}
	escaped = text_escape_html(line, strlen(line), NULL);
	buffer_printf(
	    b->out, "%s%s", b->out->len == 0 ? "<div>" : "<br>", escaped);
	free(escaped);
}

void
body_line(struct body *b, const char *fmt, ...)
{
	char line[BODY_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	body_text(b, line);
}

void
body_end(struct body *b)
{
	if (b->is_html && b->out->len != 0)
		buffer_add_text(b->out, "</div>");
}
