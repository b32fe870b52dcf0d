/*
 * One generation of configuration as a child holds it: what connect.json and
 * the command line say, without credentials. It arrives as CONFIG, ROUTE,
 * MEMBER and LIMIT messages and counts from CONFIG_END on.
 */
#ifndef COMMON_CONFIG_H
#define COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

/* Indexes of the limits, LIMIT_<name>; values as limits.def says. */
enum limit {
#define LIMIT(name, kind, normal, least, most) LIMIT_##name,
#include "common/limits.def"
#undef LIMIT
	LIMIT_COUNT
};

enum limit_kind { KIND_DURATION, KIND_PACE, KIND_COUNT };

struct limit_row {
	const char *name;
	enum limit_kind kind;
	int64_t normal, least, most;
};
extern const struct limit_row limit_rows[LIMIT_COUNT];

struct config_route {
	int64_t project_id;
	char *path;
	char *class;
	bool watch_completions;
};

struct config_ids {
	int64_t *list; /* ascending */
	size_t count;
};

struct config {
	int64_t generation;
	bool readable; /* false: connect.json is not: authorize nothing new */
	int64_t account_id, agent_id, operator_id;
	char trust_mode[17];
	bool allow_assignments;
	int64_t since;
	int64_t concurrency;
	int64_t deadline_ms;
	int64_t keep_discarded_ms, keep_completed_ms; /* 0: for ever */
	char driver[17];
	char profile[65];
	struct config_route *routes; /* by project_id, ascending */
	size_t route_count;
	struct config_ids allowlist, agents, scope;
	int64_t limits[LIMIT_COUNT];
};

struct config *config_new(void); /* limits at their normal values */
void config_free(struct config *c);
/* NULL when the project has none. */
const struct config_route *config_route(
    const struct config *c, int64_t project_id);
bool config_ids_has(const struct config_ids *ids, int64_t id);
/* Append, keeping the order; a repeat is ignored. */
void config_ids_add(struct config_ids *ids, int64_t id);
/* A copy of PATH and CLASS is kept. A second route of a project replaces. */
void config_route_add(struct config *c, int64_t project_id, const char *path,
    const char *class, bool watch_completions);
/* The limit of that name, or LIMIT_COUNT. */
enum limit limit_by_name(const char *name);

/*
 * The receiving end: give it each CONFIG…CONFIG_END message. Returns the
 * whole generation at CONFIG_END (the caller's to free), NULL before it, and
 * NULL with E's text set when the sequence is wrong.
 */
struct config_reader {
	struct config *partial;
};
struct config *config_reader_take(
    struct config_reader *r, const struct msg *m, struct error *e);

/* The sending end: the messages of C in order, each given to SEND. */
void config_write(
    const struct config *c, void (*send)(struct msg *m, void *arg), void *arg);

#endif
