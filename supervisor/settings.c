#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"

#define CLASS_MAX 40
#define WORKER_LIMIT_MAX 64

static const struct place at_profile = {NULL, "profile"};
static const struct place at_limits = {NULL, "limits"};

#define FIELD(field) offsetof(struct draft, field)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- the account ---------------------------------------------------- */

/* Decimal digits above 0 without a leading zero, within int64. */
static int
digits_read(const char *text, int64_t *id)
{
	const char *p;

	*id = 0;
	if (text[0] < '1' || text[0] > '9')
		return -1;
	for (p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' ||
		    __builtin_mul_overflow(*id, 10, id) ||
		    __builtin_add_overflow(*id, *p - '0', id))
			return -1;
	}
	return 0;
}

static int
read_account(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	if (document_string(d, at, value, key, target) == -1)
		return -1;
	if (digits_read(t->account, &t->account_id) == -1)
		return document_refuse(
		    d, at, "not an account id: decimal digits in quotes");
	return 0;
}

/* ---- projects ----------------------------------------------------------- */

/* One entry of `projects` while it is read. */
struct project {
	const struct draft *draft;
	const char *path, *class;
	bool watch_completions;
};

int
settings_read_directory(const struct document *d, const struct place *at,
    const json_t *value, const struct draft *t, const char **out)
{
	const char *own;

	if (document_text(d, at, value, 1, PATH_MAX - 1, out) == -1)
		return -1;
	if ((*out)[0] != '/')
		return document_refuse(d, at, "not an absolute path");
	if (!path_is_clean(*out))
		return document_refuse(d, at,
		    "not a clean path (no //, ., .. or slash at its end)");
	own = settings_own_directory(t->paths, *out);
	if (own != NULL)
		return document_refuse(d, at,
		    "contains or lies in connectd's own directory %s",
		    log_safe(own));
	return 0;
}

static int
read_path(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	struct project *p = target;

	(void)key;
	return settings_read_directory(d, at, value, p->draft, &p->path);
}

static bool
class_is_ok(const char *class)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	return class[0] == '\0' ||
	    (strchr(letters, class[0]) != NULL &&
		strspn(class, "abcdefghijklmnopqrstuvwxyz0123456789_-") ==
		    strlen(class));
}

static int
read_class(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct project *p = target;

	(void)key;
	if (document_text(d, at, value, 0, CLASS_MAX, &p->class) == -1)
		return -1;
	if (!class_is_ok(p->class))
		return document_refuse(d, at,
		    "must be lower-case letters, digits, - and _, and begin "
		    "with a letter or digit");
	return 0;
}

static const struct document_key project_keys[] = {
    {"path", true, read_path, 0, 0, 0},
    {"class", false, read_class, 0, 0, 0},
    {"watch_completions", false, document_bool,
	offsetof(struct project, watch_completions), 0, 0},
};

static int
read_project(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	struct draft *t = target;
	struct project p = {.draft = t, .class = ""};
	int64_t id;

	if (digits_read(at->name, &id) == -1)
		return document_refuse(d, at, "not a project id above 0");
	if (document_object(
		d, at, value, project_keys, COUNT(project_keys), &p) == -1)
		return -1;
	config_route_add(
	    t->settings->config, id, p.path, p.class, p.watch_completions);
	return 0;
}

static int
read_projects(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	(void)key;
	return document_members(d, at, value, read_project, target);
}

/* ---- limits ------------------------------------------------------------- */

/* Files of a cgroup that only bound what is in it. */
static bool
worker_limit_is_known(const char *name)
{
	static const char *const controllers[] = {
	    "memory.", "pids.", "cpu.", "io.", "cpuset."};
	size_t i, len;

	for (i = 0; i < COUNT(controllers); i++) {
		len = strlen(controllers[i]);
		if (strncmp(name, controllers[i], len) == 0 &&
		    name[len] != '\0' &&
		    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") ==
			strlen(name))
			return true;
	}
	return false;
}

static int
read_worker_limit(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	struct draft *t = target;
	const char *text;
	char *row;

	if (!worker_limit_is_known(at->name))
		return document_refuse(d, at,
		    "not a limit of a cgroup (memory. pids. cpu. io. "
		    "cpuset.)");
	if (document_text(d, at, value, 1, WORKER_LIMIT_MAX, &text) == -1)
		return -1;
	(void)xasprintf(&row, "%s=%s", at->name, text);
	string_list_add(&t->settings->worker_limits, row);
	free(row);
	return 0;
}

static int
read_limit(const struct document *d, const struct place *at,
    const json_t *value, enum limit limit, struct draft *t)
{
	const struct limit_row *row = &limit_rows[limit];
	const struct document_key key = {
	    .name = row->name, .least = row->least, .most = row->most};
	const struct document_key never = {.name = row->name};
	void *target = &t->settings->config->limits[limit];

	if (row->kind == KIND_COUNT)
		return document_int(d, at, value, &key, target);
	if (row->kind == KIND_PACE &&
	    document_duration(d, at, value, &never, target) == 0)
		return 0;
	return document_duration(d, at, value, &key, target);
}

static int
read_limit_or_worker(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	enum limit limit = limit_by_name(at->name);

	if (strcmp(at->name, "worker") == 0)
		return document_members(
		    d, at, value, read_worker_limit, target);
	if (limit == LIMIT_COUNT)
		return document_refuse(d, at, "unknown key");
	return read_limit(d, at, value, limit, target);
}

static int
read_limits(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	(void)key;
	return document_members(d, at, value, read_limit_or_worker, target);
}

/* ---- retention ---------------------------------------------------------- */

/*
 * What has lost its content cannot be redispatched: persons have a day at the
 * least. What a task still works on is left alone however long that takes.
 */
#define KEEP_LEAST_MS (INT64_C(24) * 3600 * 1000)
#define KEEP_MOST_MS (INT64_C(87600) * 3600 * 1000)

static const struct document_key retention_keys[] = {
    {"discarded", false, document_duration,
	offsetof(struct config, keep_discarded_ms), KEEP_LEAST_MS,
	KEEP_MOST_MS},
    {"completed", false, document_duration,
	offsetof(struct config, keep_completed_ms), KEEP_LEAST_MS,
	KEEP_MOST_MS},
};

static int
read_retention(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	(void)key;
	return document_object(d, at, value, retention_keys,
	    COUNT(retention_keys), t->settings->config);
}

/* ---- the document ------------------------------------------------------- */

static const struct document_key engine_keys[] = {
    {"enabled", false, document_bool, FIELD(engine), 0, 0},
};

static int
read_mcp(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	static const struct document_key keys[] = {
	    {"socket", false, document_bool,
		offsetof(struct settings, mcp_socket), 0, 0},
	};
	struct draft *t = target;

	(void)key;
	return document_object(d, at, value, keys, COUNT(keys), t->settings);
}

static int
read_engine(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	(void)key;
	if (document_object(
		d, at, value, engine_keys, COUNT(engine_keys), target) == -1)
		return -1;
	return t->engine ? document_refuse(d, at,
			       "the workspace engine is not in this version")
			 : 0;
}

static const struct document_key top_keys[] = {
    {"version", true, document_int, FIELD(version), 1, 1},
    {"profile", true, document_string, FIELD(profile), 1, 64},
    {"account_id", true, read_account, FIELD(account), 1, 32},
    {"agent", true, settings_read_agent, 0, 0, 0},
    {"trust", true, settings_read_trust, 0, 0, 0},
    {"projects", false, read_projects, 0, 0, 0},
    {"concurrency", false, document_int, FIELD(concurrency), 1, 32},
    {"deadline", false, document_duration, FIELD(deadline_ms), 60000, 86400000},
    {"worker", false, settings_read_worker, 0, 0, 0},
    {"limits", false, read_limits, 0, 0, 0},
    {"retention", false, read_retention, 0, 0, 0},
    {"mcp", false, read_mcp, 0, 0, 0},
    {"engine", false, read_engine, 0, 0, 0},
};

/* ---- what no key shows by itself ---------------------------------------- */

static int
check_profile(const struct document *d, const struct draft *t)
{
	if (strcmp(t->profile, t->options->profile) != 0)
		return document_refuse(d, &at_profile,
		    "this is the directory of profile %s",
		    log_safe(t->options->profile));
	return 0;
}

/* Limits that would contradict each other. */
static int
check_limits(const struct document *d, const struct draft *t)
{
	static const enum limit pairs[][2] = {
	    {LIMIT_feed_retry, LIMIT_feed_retry_most},
	    {LIMIT_read_retry, LIMIT_read_retry_most},
	    {LIMIT_reconcile_backoff, LIMIT_reconcile_backoff_most},
	    {LIMIT_resume_depth, LIMIT_pause_depth},
	};
	const int64_t *limits = t->settings->config->limits;
	size_t i;

	for (i = 0; i < COUNT(pairs); i++) {
		struct place at = {&at_limits, limit_rows[pairs[i][0]].name};

		if (limits[pairs[i][0]] > limits[pairs[i][1]])
			return document_refuse(d, &at, "is above %s",
			    limit_rows[pairs[i][1]].name);
	}
	return 0;
}

static int (*const checks[])(
    const struct document *d, const struct draft *t) = {
    check_profile,
    settings_check_trust,
    check_limits,
    settings_check_worker,
};

/* ---- putting it together ------------------------------------------------ */

static void
text_copy(char *out, size_t size, const char *text)
{
	size_t len = strlen(text);

	assert(len < size);
	memcpy(out, text, len + 1);
}

/* The command line has the last word, where it has one. */
static void
draft_finish(struct draft *t)
{
	struct config *c = t->settings->config;
	size_t i;

	c->readable = true;
	c->account_id = t->account_id;
	c->agent_id = t->agent_id;
	c->operator_id = t->operator_id;
	c->allow_assignments = t->allow_assignments;
	c->concurrency = t->concurrency;
	c->deadline_ms = t->deadline_ms;
	c->since = t->options->since;
	text_copy(c->trust_mode, sizeof(c->trust_mode), t->mode);
	text_copy(c->profile, sizeof(c->profile), t->profile);
	text_copy(c->driver, sizeof(c->driver), t->settings->worker.driver);
	for (i = 0; i < t->options->projects.count; i++)
		config_ids_add(&c->scope, t->options->projects.list[i]);
}

static int
draft_read(const struct document *d, struct draft *t)
{
	static const char *const free_paths[] = {
	    "worker/env", "worker/mcp_servers", "limits/worker", NULL};
	json_t *root = document_parse(d, free_paths);
	int result;
	size_t i;

	if (root == NULL)
		return -1;
	result = document_object(d, NULL, root, top_keys, COUNT(top_keys), t);
	json_decref(root);
	for (i = 0; i < COUNT(checks) && result == 0; i++)
		result = checks[i](d, t);
	return result;
}

struct settings *
settings_parse(const char *file, const char *bytes, size_t len,
    const struct paths *paths, const struct options *options, uid_t euid,
    struct error *e)
{
	struct document d = {file, bytes, len, e};
	struct draft t = {.paths = paths,
	    .options = options,
	    .euid = euid,
	    .concurrency = 2,
	    .deadline_ms = 45 * 60 * 1000};
	int result;

	t.settings = xcalloc(1, sizeof(*t.settings));
	t.settings->config = config_new();
	result = draft_read(&d, &t);
	if (result == 0)
		draft_finish(&t);
	free(t.profile);
	free(t.account);
	free(t.kind);
	free(t.mode);
	if (result == 0)
		return t.settings;
	settings_free(t.settings);
	return NULL;
}

void
settings_free(struct settings *s)
{
	if (s == NULL)
		return;
	config_free(s->config);
	free(s->worker.driver);
	free(s->worker.user);
	free(s->worker.confine);
	free(s->worker.mcp_servers);
	string_list_free(&s->worker.command);
	string_list_free(&s->worker.read);
	string_list_free(&s->worker.write);
	string_list_free(&s->worker.env);
	string_list_free(&s->worker.launcher);
	string_list_free(&s->worker_limits);
	free(s);
}

void
string_list_add(struct string_list *list, const char *text)
{
	list->list =
	    xreallocarray(list->list, list->count + 2, sizeof(*list->list));
	list->list[list->count++] = xstrdup(text);
	list->list[list->count] = NULL;
}

void
string_list_free(struct string_list *list)
{
	while (list->count > 0)
		free(list->list[--list->count]);
	free(list->list);
	list->list = NULL;
}
