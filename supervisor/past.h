/*
 * The attempts that are over in this run: their ids are closed for ever, and
 * what became of them is told again to whoever asks (design 3.1, "Fences").
 */
#ifndef SUPERVISOR_PAST_H
#define SUPERVISOR_PAST_H

#include <stdbool.h>
#include <stddef.h>

#define ATTEMPT_ID_LEN 28

enum fate {
	FATE_OPEN, /* not over, or not known here */
	FATE_GONE,
	FATE_NEVER_FORKED,
	FATE_HELD, /* of an earlier run: closed, and to be looked at again */
	FATE_COUNT
};

/* The word of TREE_IS. */
const char *fate_name(enum fate fate);

/* "att_" and 24 lower-case hexadecimal digits. */
bool attempt_id_is_ok(const char *attempt);

struct past_row {
	unsigned char id[12];
	unsigned char fate;
};

/* In the order of the ids. */
struct past {
	struct past_row *rows;
	size_t count, size;
};

void past_put(struct past *past, const char *attempt, enum fate fate);
enum fate past_get(const struct past *past, const char *attempt);
void past_free(struct past *past);

#endif
