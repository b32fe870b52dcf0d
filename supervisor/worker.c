#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/buffer.h"
#include "common/log.h"
#include "common/redact.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"
#include "supervisor/worker.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* What Claude Code itself is told by, beside the base names. */
static const char *const driver_names[] = {
    "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"};

/* Declared to servers as empty: an agent's own values must not reach them. */
static const char *const server_names[] = {"DBUS_SESSION_BUS_ADDRESS",
    "BASECAMP_NO_KEYRING", "BASECAMP_BASE_URL", "BASECAMP_CACHE_DIR"};

/* ---- arguments ---------------------------------------------------------- */

char *
worker_servers(const struct settings *s, const char *prefix)
{
	json_t *servers = json_loads(s->worker.mcp_servers, 0, NULL);
	struct buffer b = {0};
	const char *name;
	json_t *entry;

	buffer_printf(&b, "%sbasecamp", prefix);
	json_object_foreach (servers, name, entry) {
		(void)entry;
		buffer_printf(&b, ",%s%s", prefix, name);
	}
	json_decref(servers);
	return buffer_take(&b, NULL);
}

void
worker_argv(struct string_list *out, const struct settings *s,
    const char *program, const char *declaration, const char *session_id)
{
	static const char *const before[] = {"-p", "--input-format",
	    "stream-json", "--output-format", "stream-json", "--verbose",
	    "--setting-sources", "", "--permission-mode", "acceptEdits",
	    "--permission-prompts", "none", "--tools",
	    "Edit,Write,NotebookEdit,Read,Glob,Grep,TodoWrite",
	    "--allowed-tools"};
	char *tools = worker_servers(s, "mcp__");
	size_t i;

	for (i = 0; i < s->worker.launcher.count; i++)
		string_list_add(out, s->worker.launcher.list[i]);
	string_list_add(out, program);
	for (i = 1; i < s->worker.command.count; i++)
		string_list_add(out, s->worker.command.list[i]);
	for (i = 0; i < COUNT(before); i++)
		string_list_add(out, before[i]);
	string_list_add(out, tools);
	string_list_add(out, "--strict-mcp-config");
	string_list_add(out, "--mcp-config");
	string_list_add(out, declaration);
	string_list_add(out, "--session-id");
	string_list_add(out, session_id);
	free(tools);
}

void
worker_session_id(char out[static SESSION_ID_LEN + 1])
{
	unsigned char r[16];

	if (getentropy(r, sizeof(r)) == -1)
		fatal("getentropy");
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	(void)snprintf(out, SESSION_ID_LEN + 1,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10],
	    r[11], r[12], r[13], r[14], r[15]);
}

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & 0111) != 0;
}

char *
worker_find_program(const char *name, const char *path)
{
	const char *end;
	char *found;

	for (; path != NULL && *path != '\0'; path = end + (*end == ':')) {
		end = strchrnul(path, ':');
		if (*path != '/')
			continue; /* never by where we happen to be */
		(void)xasprintf(
		    &found, "%.*s/%s", (int)(end - path), path, name);
		if (is_program(found))
			return found;
		free(found);
	}
	return NULL;
}

/* ---- environment -------------------------------------------------------- */

static size_t
name_length(const char *row)
{
	return strcspn(row, "=");
}

static bool
name_is(const char *row, const char *name)
{
	size_t len = strlen(name);

	return strncmp(row, name, len) == 0 && row[len] == '=';
}

const char *
worker_env_get(const struct string_list *env, const char *name)
{
	size_t i;

	for (i = 0; i < env->count; i++) {
		if (name_is(env->list[i], name))
			return env->list[i] + strlen(name) + 1;
	}
	return NULL;
}

/* The later word about a name counts. */
static void
env_put(struct string_list *env, const char *row)
{
	size_t i, len = name_length(row) + 1;

	for (i = 0; i < env->count; i++) {
		if (strncmp(env->list[i], row, len) == 0) {
			free(env->list[i]);
			env->list[i] = xstrdup(row);
			return;
		}
	}
	string_list_add(env, row);
}

static void
env_set(struct string_list *env, const char *name, const char *value)
{
	char *row;

	(void)xasprintf(&row, "%s=%s", name, value);
	env_put(env, row);
	free(row);
}

/* Of the supervisor's own variables, those a worker gets as they are. */
static bool
is_inherited(const char *row, bool is_other_account)
{
	char *name = xstrndup(row, name_length(row));
	bool is = redact_is_base_name(name);
	size_t i;

	if (is_other_account && strncmp(name, "XDG_", 4) == 0)
		is = false;
	for (i = 0; i < COUNT(driver_names); i++)
		is = is || strcmp(driver_names[i], name) == 0;
	free(name);
	return is;
}

static int
compare_rows(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
worker_env(struct string_list *out, const struct settings *s,
    const struct account *account, const char *temp, char *const *parent)
{
	size_t i;

	for (; *parent != NULL; parent++) {
		if (strchr(*parent, '=') != NULL &&
		    is_inherited(*parent, account != NULL))
			env_put(out, *parent);
	}
	if (account != NULL) {
		env_set(out, "HOME", account->home);
		env_set(out, "USER", account->name);
		env_set(out, "LOGNAME", account->name);
		env_set(out, "SHELL", account->shell);
	}
	for (i = 0; i < s->worker.env.count; i++)
		env_put(out, s->worker.env.list[i]);
	env_set(out, "TMPDIR", temp);
	qsort(out->list, out->count, sizeof(*out->list), compare_rows);
}

/* ---- declaration -------------------------------------------------------- */

static json_t *
server_env(const struct string_list *env)
{
	json_t *map = json_object();
	char *name;
	size_t i;

	for (i = 0; i < env->count; i++) {
		name = xstrndup(env->list[i], name_length(env->list[i]));
		/* A value that is not UTF-8 has no place in JSON. */
		if (redact_is_base_name(name))
			(void)json_object_set_new(map, name,
			    json_string(env->list[i] + strlen(name) + 1));
		free(name);
	}
	for (i = 0; i < COUNT(server_names); i++)
		(void)json_object_set_new(
		    map, server_names[i], json_string(""));
	return map;
}

/* "alwaysLoad": without it Claude hides the tools behind a search. */
char *
worker_declaration(const struct settings *s, const char *bridge,
    const char *socket, const struct string_list *env)
{
	json_t *servers = json_loads(s->worker.mcp_servers, 0, NULL);
	json_t *root;
	char *text, *out;

	(void)json_object_set_new(servers, "basecamp",
	    json_pack("{s:s, s:s, s:[s], s:o, s:b}", "type", "stdio", "command",
		bridge, "args", socket, "env", server_env(env), "alwaysLoad",
		1));
	root = json_pack("{s:o}", "mcpServers", servers);
	text = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	if (text == NULL)
		fatalx("the MCP declaration cannot be written");
	(void)xasprintf(&out, "%s\n", text);
	free(text);
	return out;
}
