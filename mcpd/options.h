/*
 * The command line of connectd-mcpd (ledger.md 7, design 6.1). Nothing is
 * decided before all of it was read: no descriptor is touched here.
 */
#ifndef MCPD_OPTIONS_H
#define MCPD_OPTIONS_H

#include <stdbool.h>

#include "common/error.h"

#define TOKEN_VARIABLE "BASECAMP_CONNECT_TASK_TOKEN"

struct options {
	const char *state; /* NULL: not given, or blank */
	const char *token_fd;
	bool is_supervised, is_read_only, wants_help, wants_version;
	unsigned int domains;
};

extern const char options_usage[];

/*
 * Read ARGV and the environment, in the order of ledger.md 7. The text of a
 * failure is for the person who wrote the command. TOKEN_VARIABLE is removed
 * from the environment, unread, where it makes the command fail.
 */
int options_read(int argc, char **argv, struct options *out, struct error *e);

#endif
