/*
 * Lines out of a stream of bytes (mcp.md 1.1, 7): what a reader was given is
 * kept until its LF is there. A line longer than the bound is handed out once,
 * cut at the bound, and the rest of it is skipped. Needs libc only: the bridge
 * uses it too.
 */
#ifndef MCPD_LINES_H
#define MCPD_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json.h"

/*
 * The longest line that mcpd writes, so the bridge takes no longer one
 * (mcp.md 7).
 */
#define LINES_MCPD_MAX ((size_t)1024 * 1024)

struct lines {
	size_t max; /* bytes of a line, without its LF */
	char *bytes;
	size_t start, len, room; /* START: of what was not handed out yet */
	size_t searched;         /* behind START, and without an LF */
	bool is_skipping;
};

enum lines_got { LINES_NONE, LINES_WHOLE, LINES_CUT };

void lines_init(struct lines *l, size_t max);
/* Room for WANT more bytes. */
char *lines_room(struct lines *l, size_t want);
/* N bytes were put there. */
void lines_added(struct lines *l, size_t n);
/*
 * The next line, without LF and without a CR before it; it points into the
 * buffer and is good until the next call.
 */
enum lines_got lines_next(struct lines *l, struct json_span *line);
void lines_free(struct lines *l);

#endif
