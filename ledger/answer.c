#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "ledger/answer.h"

struct piece {
	struct piece *next;
	char bytes[];
};

void
answer_init(struct answer *a)
{
	memset(a, 0, sizeof(*a));
	STAILQ_INIT(&a->lines);
	STAILQ_INIT(&a->notices);
}

void
answer_clear(struct answer *a)
{
	struct line *line;
	struct notice *notice;
	struct piece *piece;

	while ((line = STAILQ_FIRST(&a->lines)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->lines, entry);
		free(line->text);
		free(line);
	}
	while ((notice = STAILQ_FIRST(&a->notices)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->notices, entry);
		free(notice);
	}
	while ((piece = a->memory) != NULL) {
		a->memory = piece->next;
		free(piece);
	}
	explicit_bzero(a->token, sizeof(a->token));
	answer_init(a);
}

static void *
answer_memory(struct answer *a, size_t len)
{
	struct piece *piece = xmalloc(sizeof(*piece) + len);

	piece->next = a->memory;
	a->memory = piece;
	a->bytes += len;
	return piece->bytes;
}

const char *
answer_text(struct answer *a, const char *text)
{
	size_t size = text == NULL ? 1 : strlen(text) + 1;

	return memcpy(answer_memory(a, size), text == NULL ? "" : text, size);
}

struct blob
answer_blob(struct answer *a, const void *bytes, size_t len)
{
	struct blob b = {NULL, len};

	if (len > 0)
		b.bytes = memcpy(answer_memory(a, len), bytes, len);
	return b;
}

int
answer_done(struct answer *a, bool changed)
{
	a->reply.type = MSG_DONE;
	a->reply.done.changed = changed;
	return 0;
}

int
answer_fail(struct answer *a, const char *reason, const char *fmt, ...)
{
	char text[FAILED_TEXT_MAX + 1];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	a->reply.type = MSG_FAILED;
	a->reply.failed.reason = answer_text(a, reason);
	a->reply.failed.text = answer_text(a, text);
	a->reply.failed.wait_ms = 0;
	return 0;
}

bool
answer_failed(const struct answer *a)
{
	return a->reply.type == MSG_FAILED;
}

void
answer_line(struct answer *a, char *text)
{
	struct line *line = xmalloc(sizeof(*line));

	line->text = text;
	STAILQ_INSERT_TAIL(&a->lines, line, entry);
}

void
answer_notice(
    struct answer *a, enum msg_type type, int64_t id, const char *attempt)
{
	struct notice *n;

	STAILQ_FOREACH (n, &a->notices, entry) {
		if (n->type == type && n->id == id &&
		    strcmp(n->attempt, attempt) == 0)
			return;
	}
	n = xcalloc(1, sizeof(*n));
	n->type = type;
	n->id = id;
	(void)snprintf(n->attempt, sizeof(n->attempt), "%s", attempt);
	STAILQ_INSERT_TAIL(&a->notices, n, entry);
}
