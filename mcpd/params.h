/*
 * The parameters of an action (ledger.md 6.1), read by rows of a table: what
 * is not in it is an error that names it, and nothing is rounded.
 */
#ifndef MCPD_PARAMS_H
#define MCPD_PARAMS_H

#include <stddef.h>

#include <jansson.h>

#include "common/error.h"
#include "common/json.h"
#include "common/protocol.h"

enum param_kind {
	PARAM_ID,    /* struct opt */
	PARAM_TEXT,  /* struct json_text; "" counts as missing */
	PARAM_LINKS, /* const json_t *: an array of strings */
	PARAM_KIND_COUNT
};

struct param {
	const char *name;
	enum param_kind kind;
	enum json_need need;
	size_t offset; /* in struct arguments */
};

/* Whatever an action may be given; borrowed from the call's JSON. */
struct arguments {
	struct opt event_id, ack_id, reply_id;
	struct json_text outcome, content, format, cursor;
	const json_t *links;
};

/* PARAMS may be NULL: none. The error names the parameter. */
int params_read(const json_t *params, const struct param *rows, size_t count,
    struct arguments *out, struct error *e);

#endif
