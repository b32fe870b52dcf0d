#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "supervisor/past.h"

#define PREFIX "att_"

static const char *const fate_names[] = {
    [FATE_OPEN] = "open",
    [FATE_GONE] = "gone",
    [FATE_NEVER_FORKED] = "never_forked",
    [FATE_HELD] = "held",
};
static_assert(sizeof(fate_names) / sizeof(fate_names[0]) == FATE_COUNT,
    "a word for every fate");

const char *
fate_name(enum fate fate)
{
	return fate_names[fate];
}

bool
attempt_id_is_ok(const char *attempt)
{
	return strlen(attempt) == ATTEMPT_ID_LEN &&
	    strncmp(attempt, PREFIX, strlen(PREFIX)) == 0 &&
	    strspn(attempt + strlen(PREFIX), "0123456789abcdef") ==
	    ATTEMPT_ID_LEN - strlen(PREFIX);
}

static unsigned int
digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void
id_bytes(const char *attempt, unsigned char out[static 12])
{
	const char *p = attempt + strlen(PREFIX);
	size_t i;

	for (i = 0; i < 12; i++, p += 2)
		out[i] = (unsigned char)(digit(p[0]) << 4 | digit(p[1]));
}

/* Where the id is, or would be. */
static size_t
past_place(const struct past *past, const unsigned char *id)
{
	size_t low = 0, high = past->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (memcmp(past->rows[middle].id, id, 12) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
past_has(const struct past *past, size_t at, const unsigned char *id)
{
	return at < past->count && memcmp(past->rows[at].id, id, 12) == 0;
}

void
past_put(struct past *past, const char *attempt, enum fate fate)
{
	unsigned char id[12];
	size_t at;

	id_bytes(attempt, id);
	at = past_place(past, id);
	if (!past_has(past, at, id)) {
		if (past->count == past->size) {
			past->size = past->size == 0 ? 64 : past->size * 2;
			past->rows = xreallocarray(
			    past->rows, past->size, sizeof(*past->rows));
		}
		memmove(&past->rows[at + 1], &past->rows[at],
		    (past->count - at) * sizeof(*past->rows));
		memcpy(past->rows[at].id, id, sizeof(id));
		past->count++;
	}
	past->rows[at].fate = (unsigned char)fate;
}

enum fate
past_get(const struct past *past, const char *attempt)
{
	unsigned char id[12];
	size_t at;

	id_bytes(attempt, id);
	at = past_place(past, id);
	return past_has(past, at, id) ? (enum fate)past->rows[at].fate
				      : FATE_OPEN;
}

void
past_free(struct past *past)
{
	free(past->rows);
	memset(past, 0, sizeof(*past));
}
