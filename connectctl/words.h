/* The command line of connectctl. */
#ifndef CONNECTCTL_WORDS_H
#define CONNECTCTL_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/paths.h"

/* What the words said. */
struct wish {
	const struct command *command;
	const char *profile;
	const char *argument; /* the first; NULL: none */
	char **more;          /* the others, NULL behind the last */
	bool json, follow, help, gone;
	int64_t count, fd;
};

/* FLAG_FD and FLAG_GONE are needed where they are taken. */
enum flag { FLAG_FOLLOW = 1, FLAG_COUNT = 2, FLAG_FD = 4, FLAG_GONE = 8 };

struct command {
	const char *name;
	const char *argument; /* in the usage; NULL: takes none */
	int most;             /* arguments, where it takes more than one */
	unsigned flags;       /* of enum flag, that it takes */
	const char *what;
	bool needs_profile, takes_event;
	bool refuses_token; /* BASECAMP_TOKEN: it may read Basecamp */
	int (*run)(const struct wish *w, const struct paths *paths);
};

/*
 * Read the words; COMMANDS ends with a nameless one. -1 with the wrong word in
 * E; w->json is right then, too. With help asked for, nothing else is looked
 * at.
 */
int words_read(int argc, char *argv[], const struct command *commands,
    struct wish *w, struct error *e);
/* A decimal number from LEAST to MOST, and nothing else; -1: it is none. */
int number_read(const char *text, int64_t least, int64_t most, int64_t *out);
void words_usage(const struct command *commands, FILE *out);

#endif
