/*
 * Lines as the bridge keeps them. The first byte of a line says what happens:
 * 'r' mcpd sends it, 'x' mcpd dies and is told again, 'g' patience ends;
 * anything else, and the agent sends it.
 */
#include <string.h>

#include "mcpd/lines.h"
#include "mcpd/store.h"
#include "tests/fuzz/fuzz.h"

#define LINE_MAX_BYTES 4096

/* What is said again is whole lines. */
static void
replay(struct store *s)
{
	struct buffer out = {0};

	if (store_is_whole(s))
		store_replay(s, &out);
	MUST(out.len == 0 || out.bytes[out.len - 1] == '\n');
	buffer_free(&out);
}

static void
give_up(struct store *s)
{
	struct buffer out = {0};

	store_give_up(s, &out);
	MUST(store_is_empty(s) && s->bytes == 0 && s->unit_count == 0);
	MUST(out.len == 0 || out.bytes[out.len - 1] == '\n');
	buffer_free(&out);
}

static void
take(struct store *s, const struct json_span *line)
{
	struct json_span rest = {line->bytes + 1, line->len - 1};

	if (line->len != 0 && line->bytes[0] == 'r')
		(void)store_received(s, &rest);
	else if (line->len != 0 && line->bytes[0] == 'x')
		replay(s);
	else if (line->len != 0 && line->bytes[0] == 'g')
		give_up(s);
	else
		store_sent(s, line);
	MUST(s->bytes <= STORE_BYTES_MAX);
}

/* The bytes come in pieces; the lines are the same. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_span line;
	struct lines lines;
	struct store store;
	size_t piece = size == 0 ? 1 : 1 + data[0] % 64, n;

	store_init(&store);
	lines_init(&lines, LINE_MAX_BYTES);
	for (; size > 0; data += n, size -= n) {
		n = size < piece ? size : piece;
		memcpy(lines_room(&lines, n), data, n);
		lines_added(&lines, n);
		while (lines_next(&lines, &line) != LINES_NONE) {
			MUST(line.len <= LINE_MAX_BYTES);
			MUST(memchr(line.bytes, '\n', line.len) == NULL);
			take(&store, &line);
		}
	}
	replay(&store);
	give_up(&store);
	store_clear(&store);
	lines_free(&lines);
	return 0;
}
