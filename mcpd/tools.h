/*
 * The tools a worker sees (design 6), as one static table: each a gateway of
 * its domain that is called with {action, params}.
 */
#ifndef MCPD_TOOLS_H
#define MCPD_TOOLS_H

#include "mcpd/call.h"
#include "mcpd/params.h"

/* What the server says of itself to a model that sees no tool yet. */
extern const char tools_instructions[];

struct action {
	const char *name;
	const struct param *params;
	size_t param_count;
	/* ARGS point into the request, which is gone when this returns. */
	void (*start)(struct call *call, const struct arguments *args);
};

struct tool {
	const char *name;
	unsigned int domain;
	const struct action *actions;
	size_t action_count;
	const char *json; /* as tools/list shows it */
};

/* The array of tools/list for these domains, always the same bytes. */
void tools_render(unsigned int domains, struct buffer *out);
/* NULL when these domains have no tool of that name. */
const struct tool *tool_find(
    unsigned int domains, const char *name, size_t len);
/* Begin the call; what is wrong with ARGUMENTS is the call's own result. */
void tool_start(
    const struct tool *tool, struct call *call, const json_t *arguments);

/* The actions of the domains: connect.c, thread.c. */
#define CONNECT_ACTIONS 3
#define THREAD_ACTIONS 3
extern const struct action connect_actions[CONNECT_ACTIONS];
extern const struct action thread_actions[THREAD_ACTIONS];

/* For the rows of both. */
#define PARAM_AT(member) offsetof(struct arguments, member)
#define ROWS(table) (table), sizeof(table) / sizeof((table)[0])

#endif
