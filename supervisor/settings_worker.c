#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"

#define WORD_MAX 4096
#define VALUE_MAX 32768
#define SERVER_NAME_MAX 64
#define SERVERS_MAX 24 /* their names fit into WORKER_SPAWNED */
#define ROLE_USER_PREFIX "_connectd-"

static const struct place at_worker = {NULL, "worker"};
static const struct place at_driver = {&at_worker, "driver"};
static const struct place at_user = {&at_worker, "user"};
static const struct place at_confine = {&at_worker, "confine"};
static const struct place at_keeps = {&at_worker, "launcher"};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Where a list of strings goes, for document_array(). */
struct strings {
	const struct draft *draft;
	struct string_list *list;
};

static int
read_word(const struct document *d, const struct place *at, const json_t *value,
    void *target)
{
	struct strings *s = target;
	const char *word;

	if (document_text(d, at, value, 1, WORD_MAX, &word) == -1)
		return -1;
	string_list_add(s->list, word);
	return 0;
}

/* The program first: by its path, or by a name for the PATH. */
static int
read_argv(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	struct draft *t = target;
	struct strings s = {
	    t, (struct string_list *)((char *)t->settings + key->offset)};

	if (document_array(d, at, value, read_word, &s) == -1)
		return -1;
	if (s.list->count == 0)
		return document_refuse(d, at, "empty");
	if (strchr(s.list->list[0], '/') != NULL &&
	    !path_is_clean(s.list->list[0]))
		return document_refuse(d, at,
		    "its first word must be a clean absolute path or a name");
	return 0;
}

static int
read_directory(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	struct strings *s = target;
	const char *path;

	if (settings_read_directory(d, at, value, s->draft, &path) == -1)
		return -1;
	string_list_add(s->list, path);
	return 0;
}

static int
read_directories(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;
	struct strings s = {
	    t, (struct string_list *)((char *)t->settings + key->offset)};

	return document_array(d, at, value, read_directory, &s);
}

static int
read_text(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	struct draft *t = target;

	return document_string(d, at, value, key, t->settings);
}

/* ---- env ---------------------------------------------------------------- */

/* No credential of Basecamp's goes to a worker, and its TMPDIR is ours. */
static const char *const kept_names[] = {
    "TMPDIR", "BASECAMP_TOKEN", "BASECAMP_CONNECT_TASK_TOKEN"};

static int
check_name(const struct document *d, const struct place *at)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz_0123456789";
	const char *name = at->name;
	size_t i;

	if (name[0] == '\0' || (name[0] >= '0' && name[0] <= '9') ||
	    strspn(name, letters) != strlen(name))
		return document_refuse(
		    d, at, "not a name of letters, digits and _");
	for (i = 0; i < COUNT(kept_names); i++) {
		if (strcmp(name, kept_names[i]) == 0)
			return document_refuse(
			    d, at, "is not for connect.json to set");
	}
	return 0;
}

static int
read_variable(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	struct draft *t = target;
	const char *text;
	char *row;

	if (check_name(d, at) == -1 ||
	    document_text(d, at, value, 0, VALUE_MAX, &text) == -1)
		return -1;
	(void)xasprintf(&row, "%s=%s", at->name, text);
	string_list_add(&t->settings->worker.env, row);
	free(row);
	return 0;
}

static int
read_env(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	(void)key;
	return document_members(d, at, value, read_variable, target);
}

/* ---- mcp_servers -------------------------------------------------------- */

/* The name becomes part of tool names and of an argument. */
static bool
server_name_is_ok(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789_-";
	size_t len = strlen(name);

	return len > 0 && len <= SERVER_NAME_MAX &&
	    strspn(name, letters) == len;
}

static int
check_server(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	(void)target;
	if (!server_name_is_ok(at->name))
		return document_refuse(
		    d, at, "not a name of letters, digits, - and _");
	if (strcmp(at->name, "basecamp") == 0)
		return document_refuse(d, at, "is connectd's own server");
	if (!json_is_object(value))
		return document_refuse(d, at, "not an object");
	return 0;
}

static int
read_servers(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	(void)key;
	if (json_object_size(value) > SERVERS_MAX)
		return document_refuse(
		    d, at, "more than %d servers", SERVERS_MAX);
	if (document_members(d, at, value, check_server, NULL) == -1)
		return -1;
	t->settings->worker.mcp_servers =
	    json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
	if (t->settings->worker.mcp_servers == NULL)
		return document_refuse(d, at, "cannot be written again");
	return 0;
}

/* ---- launcher, and the object itself ------------------------------------ */

#define WORKER(field) offsetof(struct settings, worker.field)

static int
read_keeps_tree(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	return document_bool(d, at, value, key, t->settings);
}

static int
read_launcher(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	static const struct document_key keys[] = {
	    {"command", true, read_argv, WORKER(launcher), 0, 0},
	    {"keeps_tree", false, read_keeps_tree, WORKER(launcher_keeps_tree),
		0, 0},
	};

	(void)key;
	return document_object(d, at, value, keys, COUNT(keys), target);
}

int
settings_read_worker(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	static const struct document_key keys[] = {
	    {"driver", false, read_text, WORKER(driver), 1, 16},
	    {"command", false, read_argv, WORKER(command), 0, 0},
	    {"user", false, read_text, WORKER(user), 1, 64},
	    {"confine", false, read_text, WORKER(confine), 1, 16},
	    {"read", false, read_directories, WORKER(read), 0, 0},
	    {"write", false, read_directories, WORKER(write), 0, 0},
	    {"env", false, read_env, 0, 0, 0},
	    {"mcp_servers", false, read_servers, 0, 0, 0},
	    {"launcher", false, read_launcher, 0, 0, 0},
	};

	(void)key;
	return document_object(d, at, value, keys, COUNT(keys), target);
}

/* ---- what no key shows by itself ---------------------------------------- */

static void
set_if_absent(char **text, const char *normal)
{
	if (*text == NULL)
		*text = xstrdup(normal);
}

static int
check_driver(const struct document *d, const struct draft *t)
{
	char **driver = &t->settings->worker.driver;

	if (t->options->driver != NULL) {
		free(*driver);
		*driver = xstrdup(t->options->driver);
	}
	set_if_absent(driver, "claude");
	if (strcmp(*driver, "claude") == 0)
		return 0;
	if (t->options->driver != NULL)
		return error_set(
		    d->e, "--driver: %s is not in this version", *driver);
	if (strcmp(*driver, "codex") == 0 || strcmp(*driver, "acp") == 0)
		return document_refuse(
		    d, &at_driver, "driver %s is not in this version", *driver);
	return document_refuse(
	    d, &at_driver, "not one of claude, codex and acp");
}

/* As root: an account of the workers' own. */
static int
check_user_of_root(const struct document *d, const char *user)
{
	const struct passwd *pw;

	if (user == NULL)
		return document_refuse(d, &at_user,
		    "missing: started as root, connectd needs an account for "
		    "its workers");
	errno = 0;
	pw = getpwnam(user);
	if (pw == NULL && errno != 0 && errno != ENOENT)
		return document_refuse(
		    d, &at_user, "cannot be looked up: %s", strerror(errno));
	if (pw == NULL)
		return document_refuse(d, &at_user, "there is no such user");
	if (pw->pw_uid == 0)
		return document_refuse(d, &at_user, "is root");
	if (strncmp(user, ROLE_USER_PREFIX, strlen(ROLE_USER_PREFIX)) == 0)
		return document_refuse(
		    d, &at_user, "is a user of connectd's own processes");
	return 0;
}

static int
check_user(const struct document *d, const struct draft *t)
{
	const char *user = t->settings->worker.user;
	const struct passwd *pw;

	if (t->euid == 0)
		return check_user_of_root(d, user);
	if (user == NULL)
		return 0;
	pw = getpwnam(user);
	if (pw == NULL || pw->pw_uid != t->euid)
		return document_refuse(d, &at_user,
		    "only root can start workers as somebody else");
	return 0;
}

/* What keeps a worker of our own uid from reading the credentials. */
static int
check_confine(const struct document *d, const struct draft *t)
{
	char **confine = &t->settings->worker.confine;

	const char *readable = settings_readable_directory(t->paths);

	set_if_absent(confine, "landlock");
	if (strcmp(*confine, "landlock") == 0) {
		if (t->euid == 0 || readable == NULL || t->options->insecure)
			return 0;
		return document_refuse(d, &at_confine,
		    "%s lies where every worker may read", log_safe(readable));
	}
	if (strcmp(*confine, "agent") != 0 && strcmp(*confine, "none") != 0)
		return document_refuse(
		    d, &at_confine, "not one of landlock, agent and none");
	if (t->euid != 0 && !t->options->insecure)
		return document_refuse(d, &at_confine,
		    "without an account of its own (worker.user, as root) a "
		    "worker could read all of yours, credentials included; "
		    "--insecure allows it");
	return 0;
}

static int
check_launcher(const struct document *d, const struct draft *t)
{
	if (t->settings->worker.launcher.count > 0 &&
	    strcmp(t->settings->worker.confine, "agent") == 0)
		return document_refuse(d, &at_keeps,
		    "a launcher goes with confine landlock or none");
	return 0;
}

static int
compare_rows(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
settings_check_worker(const struct document *d, const struct draft *t)
{
	struct string_list *env = &t->settings->worker.env;

	set_if_absent(&t->settings->worker.mcp_servers, "{}");
	if (check_driver(d, t) == -1 || check_user(d, t) == -1 ||
	    check_confine(d, t) == -1 || check_launcher(d, t) == -1)
		return -1;
	if (env->count > 0)
		qsort(env->list, env->count, sizeof(*env->list), compare_rows);
	return 0;
}
