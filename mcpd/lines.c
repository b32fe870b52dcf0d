#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "mcpd/lines.h"

/* An idle reader keeps no more than this. */
#define ROOM_KEPT 65536

void
lines_init(struct lines *l, size_t max)
{
	*l = (struct lines){.max = max};
}

char *
lines_room(struct lines *l, size_t want)
{
	if (l->start != 0) {
		memmove(l->bytes, l->bytes + l->start, l->len - l->start);
		l->len -= l->start;
		l->start = 0;
	}
	if (l->room - l->len < want) {
		l->room = 2 * l->len + want;
		l->bytes = xreallocarray(l->bytes, l->room, 1);
	}
	return l->bytes + l->len;
}

void
lines_added(struct lines *l, size_t n)
{
	l->len += n;
}

/* Everything was handed out: give back what a long line took. */
static void
lines_shrink(struct lines *l)
{
	if (l->start != l->len || l->room <= ROOM_KEPT)
		return;
	free(l->bytes);
	l->bytes = NULL;
	l->start = l->len = l->room = l->searched = 0;
}

/* Drop what belongs to the line that was cut; true at its end. */
static bool
lines_skip(struct lines *l)
{
	const char *lf = memchr(l->bytes + l->start, '\n', l->len - l->start);

	l->start = lf == NULL ? l->len : (size_t)(lf + 1 - l->bytes);
	l->is_skipping = lf == NULL;
	return lf != NULL;
}

/* Hand out LEN bytes from START and go on behind NEXT of them. */
static void
lines_hand_out(struct lines *l, size_t len, size_t next, struct json_span *line)
{
	*line = (struct json_span){l->bytes + l->start, len};
	l->start += next;
	l->searched = 0;
}

enum lines_got
lines_next(struct lines *l, struct json_span *line)
{
	const char *from, *lf;
	size_t have, len;

	if (l->len == l->start || (l->is_skipping && !lines_skip(l))) {
		lines_shrink(l);
		return LINES_NONE;
	}
	from = l->bytes + l->start;
	have = l->len - l->start;
	lf = memchr(from + l->searched, '\n', have - l->searched);
	len = lf == NULL ? have : (size_t)(lf - from);
	/* A CR may be the LF's and not the line's. */
	if (len > l->max + 1 || (len == l->max + 1 && from[l->max] != '\r')) {
		l->is_skipping = lf == NULL;
		lines_hand_out(l, l->max, lf == NULL ? have : len + 1, line);
		return LINES_CUT;
	}
	if (lf == NULL) {
		l->searched = have;
		return LINES_NONE;
	}
	lines_hand_out(l, len, len + 1, line);
	if (len != 0 && from[len - 1] == '\r')
		line->len--;
	return LINES_WHOLE;
}

void
lines_free(struct lines *l)
{
	free(l->bytes);
	lines_init(l, l->max);
}
