/*
 * The methods of both eras as two tables (mcp.md 2, 3.4): what is not in a
 * request's own table does not exist for it.
 */
#ifndef MCPD_METHOD_H
#define MCPD_METHOD_H

#include <stdbool.h>

#include "mcpd/message.h"
#include "mcpd/origin.h"

struct method {
	const char *name;
	/* The request's answer, now or by a call. */
	void (*serve)(const struct origin *o, const struct message *m);
	bool needs_session; /* legacy: initialize comes before */
};

/* Both end with a row without a name. */
extern const struct method legacy_methods[];
extern const struct method modern_methods[];

bool method_is(const struct message *m, const char *name);
/* NULL when TABLE has it not. */
const struct method *method_find(
    const struct method *table, const struct message *m);

#endif
