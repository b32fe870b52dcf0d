#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/xmalloc.h"

const struct limit_row limit_rows[LIMIT_COUNT] = {
#define LIMIT(name, kind, normal, least, most) \
	[LIMIT_##name] = {#name, KIND_##kind, normal, least, most},
#include "common/limits.def"
#undef LIMIT
};

struct config *
config_new(void)
{
	struct config *c = xcalloc(1, sizeof(*c));
	int i;

	for (i = 0; i < LIMIT_COUNT; i++)
		c->limits[i] = limit_rows[i].normal;
	return c;
}

void
config_free(struct config *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->route_count; i++) {
		free(c->routes[i].path);
		free(c->routes[i].class);
	}
	free(c->routes);
	free(c->allowlist.list);
	free(c->agents.list);
	free(c->scope.list);
	free(c);
}

/* Index of the first route whose project is not below PROJECT_ID. */
static size_t
route_place(const struct config *c, int64_t project_id)
{
	size_t i = 0;

	while (i < c->route_count && c->routes[i].project_id < project_id)
		i++;
	return i;
}

const struct config_route *
config_route(const struct config *c, int64_t project_id)
{
	size_t i = route_place(c, project_id);

	return i < c->route_count && c->routes[i].project_id == project_id
	    ? &c->routes[i]
	    : NULL;
}

void
config_route_add(struct config *c, int64_t project_id, const char *path,
    const char *class, bool watch_completions)
{
	size_t i = route_place(c, project_id);
	struct config_route *r;

	if (i == c->route_count || c->routes[i].project_id != project_id) {
		c->routes = xreallocarray(
		    c->routes, c->route_count + 1, sizeof(*c->routes));
		memmove(&c->routes[i + 1], &c->routes[i],
		    (c->route_count - i) * sizeof(*c->routes));
		c->route_count++;
	} else {
		free(c->routes[i].path);
		free(c->routes[i].class);
	}
	r = &c->routes[i];
	r->project_id = project_id;
	r->path = xstrdup(path);
	r->class = xstrdup(class);
	r->watch_completions = watch_completions;
}

bool
config_ids_has(const struct config_ids *ids, int64_t id)
{
	size_t i;

	for (i = 0; i < ids->count; i++) {
		if (ids->list[i] == id)
			return true;
	}
	return false;
}

void
config_ids_add(struct config_ids *ids, int64_t id)
{
	size_t i = ids->count;

	if (config_ids_has(ids, id))
		return;
	ids->list =
	    xreallocarray(ids->list, ids->count + 1, sizeof(*ids->list));
	for (; i > 0 && ids->list[i - 1] > id; i--)
		ids->list[i] = ids->list[i - 1];
	ids->list[i] = id;
	ids->count++;
}

enum limit
limit_by_name(const char *name)
{
	int i;

	for (i = 0; i < LIMIT_COUNT; i++) {
		if (strcmp(limit_rows[i].name, name) == 0)
			break;
	}
	return (enum limit)i;
}

/* ---- receiving -------------------------------------------------------- */

static int
take_config(struct config *c, const struct msg *m)
{
	const struct msg_config *in = &m->config;

	c->generation = in->generation;
	c->readable = in->readable;
	c->account_id = in->account_id;
	c->agent_id = in->agent_id;
	c->operator_id = in->operator_id;
	c->allow_assignments = in->allow_assignments;
	c->since = in->since;
	c->concurrency = in->concurrency;
	c->deadline_ms = in->deadline_ms;
	c->keep_discarded_ms = in->keep_discarded_ms;
	c->keep_completed_ms = in->keep_completed_ms;
	(void)snprintf(
	    c->trust_mode, sizeof(c->trust_mode), "%s", in->trust_mode);
	(void)snprintf(c->driver, sizeof(c->driver), "%s", in->driver);
	(void)snprintf(c->profile, sizeof(c->profile), "%s", in->profile);
	return 0;
}

static int
take_route(struct config *c, const struct msg *m)
{
	config_route_add(c, m->route.project_id, m->route.path, m->route.class,
	    m->route.watch_completions);
	return 0;
}

/* The lists by the name they have in MEMBER. */
static struct config_ids *
member_list(struct config *c, const char *name)
{
	if (strcmp(name, "allowlist") == 0)
		return &c->allowlist;
	if (strcmp(name, "agents") == 0)
		return &c->agents;
	return strcmp(name, "scope") == 0 ? &c->scope : NULL;
}

static int
take_member(struct config *c, const struct msg *m)
{
	struct config_ids *ids = member_list(c, m->member.list);

	if (ids == NULL)
		return -1;
	config_ids_add(ids, m->member.id);
	return 0;
}

static bool
limit_may_be(const struct limit_row *row, int64_t value)
{
	return (row->kind == KIND_PACE && value == 0) ||
	    (value >= row->least && value <= row->most);
}

static int
take_limit(struct config *c, const struct msg *m)
{
	enum limit i = limit_by_name(m->limit.name);

	if (i == LIMIT_COUNT || !limit_may_be(&limit_rows[i], m->limit.value))
		return -1;
	c->limits[i] = m->limit.value;
	return 0;
}

static int
take_end(struct config *c, const struct msg *m)
{
	return m->config_end.generation == c->generation ? 0 : -1;
}

static const struct {
	enum msg_type type;
	int (*take)(struct config *, const struct msg *);
} takers[] = {
    {MSG_CONFIG, take_config},
    {MSG_ROUTE, take_route},
    {MSG_MEMBER, take_member},
    {MSG_LIMIT, take_limit},
    {MSG_CONFIG_END, take_end},
};

struct config *
config_reader_take(
    struct config_reader *r, const struct msg *m, struct error *e)
{
	struct config *whole;
	size_t i;

	e->text[0] = '\0';
	if (m->type == MSG_CONFIG) {
		config_free(r->partial);
		r->partial = config_new();
	}
	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		if (takers[i].type != m->type || r->partial == NULL)
			continue;
		if (takers[i].take(r->partial, m) == -1)
			break;
		if (m->type != MSG_CONFIG_END)
			return NULL;
		whole = r->partial;
		r->partial = NULL;
		return whole;
	}
	(void)error_set(
	    e, "%s: out of place or out of bounds", msg_name(m->type));
	return NULL;
}

/* ---- sending ---------------------------------------------------------- */

struct sink {
	void (*send)(struct msg *m, void *arg);
	void *arg;
};

static void
send_ids(const struct config_ids *ids, const char *list, struct sink *to)
{
	struct msg m = {.type = MSG_MEMBER};
	size_t i;

	for (i = 0; i < ids->count; i++) {
		m.member.list = list;
		m.member.id = ids->list[i];
		to->send(&m, to->arg);
	}
}

static void
send_routes(const struct config *c, struct sink *to)
{
	struct msg m = {.type = MSG_ROUTE};
	size_t i;

	for (i = 0; i < c->route_count; i++) {
		m.route.project_id = c->routes[i].project_id;
		m.route.path = c->routes[i].path;
		m.route.class = c->routes[i].class;
		m.route.watch_completions = c->routes[i].watch_completions;
		to->send(&m, to->arg);
	}
}

static void
send_limits(const struct config *c, struct sink *to)
{
	struct msg m = {.type = MSG_LIMIT};
	int i;

	for (i = 0; i < LIMIT_COUNT; i++) {
		m.limit.name = limit_rows[i].name;
		m.limit.value = c->limits[i];
		to->send(&m, to->arg);
	}
}

void
config_write(
    const struct config *c, void (*send)(struct msg *m, void *arg), void *arg)
{
	struct sink to = {send, arg};
	struct msg head = {.type = MSG_CONFIG};
	struct msg end = {.type = MSG_CONFIG_END};

	head.config = (struct msg_config){.generation = c->generation,
	    .readable = c->readable,
	    .account_id = c->account_id,
	    .agent_id = c->agent_id,
	    .operator_id = c->operator_id,
	    .trust_mode = c->trust_mode,
	    .allow_assignments = c->allow_assignments,
	    .since = c->since,
	    .concurrency = c->concurrency,
	    .deadline_ms = c->deadline_ms,
	    .keep_discarded_ms = c->keep_discarded_ms,
	    .keep_completed_ms = c->keep_completed_ms,
	    .driver = c->driver,
	    .profile = c->profile};
	send(&head, arg);
	send_routes(c, &to);
	send_ids(&c->allowlist, "allowlist", &to);
	send_ids(&c->agents, "agents", &to);
	send_ids(&c->scope, "scope", &to);
	send_limits(c, &to);
	end.config_end.generation = c->generation;
	send(&end, arg);
}
