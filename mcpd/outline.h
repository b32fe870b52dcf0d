/*
 * What mcpd will make of a line, for the bridge, which passes it on and must
 * know whether an answer will come. The judgement is mcpd/message's, which
 * tests/unit/test_store.c holds against this one. Needs libc only.
 */
#ifndef MCPD_OUTLINE_H
#define MCPD_OUTLINE_H

#include <stdbool.h>

#include "common/json.h"

enum outline_kind {
	OUTLINE_SILENT,   /* nothing is said of it, or nothing with an id */
	OUTLINE_ANSWERED, /* a result or an error will carry ID */
	OUTLINE_NOTIFICATION,
	OUTLINE_BATCH, /* its elements have outlines of their own */
};

/* The spans point into the line. */
struct outline {
	enum outline_kind kind;
	struct json_span id;
	struct json_span method; /* a string, quotes included; or len 0 */
};

void outline_read(struct outline *o, const struct json_span *line);
bool outline_method_is(const struct outline *o, const char *name);

#endif
