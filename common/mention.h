/*
 * Mentions in rich text (ledger.md 8, admission.md 8.1-8.2).
 *
 * There is one walk. Admission asks it whether a text mentions the agent,
 * mcpd takes the agent's mentions out of what the worker reads; since both
 * see with the same eyes, no mention that admitted an event stays in the
 * instruction, and none goes that was not counted.
 *
 * A mention is a start tag named bc-attachment, of any content type and
 * anywhere in the text, whose first sgid attribute names a person. The ids
 * are claims of whoever wrote the text as served (sgid.h).
 */
#ifndef COMMON_MENTION_H
#define COMMON_MENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets into the text; [start, tag_end) is the start tag, with its `<` `>`.
 */
struct mention {
	int64_t person;
	size_t start;
	size_t tag_end;
};

/* Return false to end the walk. */
typedef bool (*mention_visit)(const struct mention *m, void *arg);

/* Visit every mention, in the order of the text. */
void mention_walk(const char *html, size_t len, mention_visit visit, void *arg);

/*
 * The persons mentioned, each once, in the order of the text. Fills at most
 * MAX of IDS; returns how many it filled.
 */
size_t mention_find(const char *html, size_t len, int64_t *ids, size_t max);

bool mention_has(const char *html, size_t len, int64_t person);

/* Where the element of a mention ends: after its end tag, or its start tag. */
size_t mention_end(const char *html, size_t len, const struct mention *m);

enum mention_stripped {
	MENTION_UNCHANGED, /* PERSON is not mentioned: the same bytes */
	MENTION_STRIPPED,  /* one space for each element */
	MENTION_ESCAPED,   /* backstop: the result as escaped text */
};

/*
 * Take PERSON's mentions out. *OUT is malloc'ed, NUL-terminated and the
 * caller's; the reader finds no mention of PERSON in it.
 */
enum mention_stripped mention_strip(
    const char *html, size_t len, int64_t person, char **out, size_t *out_len);

#endif
