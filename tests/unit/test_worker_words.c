/* What a worker is started with, word by word (dispatch.md 5.3, 14.1, 14.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "supervisor/worker.h"
#include "tests/unit/worker_settings.h"

#define SESSION "01234567-89ab-4def-8123-456789abcdef"

static char conf[] = "/conf/connectd/demo", states[] = "/state",
	    run[] = "/run-time/connectd/demo";
static struct paths nowhere = {
    .config_dir = conf, .state_root = states, .runtime_dir = run};

static void
assert_words(const struct string_list *got, const char *const *want)
{
	size_t i;

	for (i = 0; want[i] != NULL; i++) {
		if (i >= got->count)
			fail_msg("word %zu, \"%s\", is missing", i, want[i]);
		assert_string_equal(got->list[i], want[i]);
	}
	assert_int_equal(got->count, i);
	assert_null(got->list[i]);
}

static void
test_argv(void **state)
{
	static const char *const want[] = {"/opt/claude", "-p",
	    "--input-format", "stream-json", "--output-format", "stream-json",
	    "--verbose", "--setting-sources", "", "--permission-mode",
	    "acceptEdits", "--permission-prompts", "none", "--tools",
	    "Edit,Write,NotebookEdit,Read,Glob,Grep,TodoWrite",
	    "--allowed-tools", "mcp__basecamp", "--strict-mcp-config",
	    "--mcp-config", "/s/mcp.json", "--session-id", SESSION, NULL};
	struct settings *s = settings_with(&nowhere, "{}");
	struct string_list argv = {0};

	(void)state;
	worker_argv(&argv, s, "/opt/claude", "/s/mcp.json", SESSION);
	assert_words(&argv, want);
	string_list_free(&argv);
	settings_free(s);
}

static void
test_argv_of_operator(void **state)
{
	static const char *const want[] = {
	    "bwrap", "--", "/opt/claude", "--x", "-p", NULL};
	struct settings *s = settings_with(&nowhere,
	    "{\"confine\":\"none\",\"command\":[\"claude\",\"--x\"],"
	    "\"launcher\":{\"command\":[\"bwrap\",\"--\"]},"
	    "\"mcp_servers\":{\"docs\":{},\"a-b\":{}}}");
	struct string_list argv = {0};
	size_t i;

	(void)state;
	worker_argv(&argv, s, "/opt/claude", "/s/mcp.json", SESSION);
	for (i = 0; want[i] != NULL; i++)
		assert_string_equal(argv.list[i], want[i]);
	for (i = 0; strcmp(argv.list[i], "--allowed-tools") != 0; i++)
		continue;
	assert_string_equal(
	    argv.list[i + 1], "mcp__basecamp,mcp__a-b,mcp__docs");
	string_list_free(&argv);
	settings_free(s);
}

static void
test_session_id(void **state)
{
	char a[SESSION_ID_LEN + 1], b[SESSION_ID_LEN + 1];
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		worker_session_id(a);
		worker_session_id(b);
		assert_string_not_equal(a, b);
		assert_int_equal(strlen(a), SESSION_ID_LEN);
		assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
		assert_int_equal(a[14], '4');
		assert_non_null(strchr("89ab", a[19]));
		assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' &&
		    a[23] == '-');
	}
}

/* ---- environment -------------------------------------------------------- */

static char *parent[] = {(char[]){"HOME=/home/u"}, (char[]){"PATH=/bin"},
    (char[]){"USER=u"}, (char[]){"SHELL=/bin/bash"}, (char[]){"LANG=C"},
    (char[]){"TMPDIR=/elsewhere"}, (char[]){"XDG_RUNTIME_DIR=/run/user/1"},
    (char[]){"XDG_CONFIG_HOME=/home/u/.config"},
    (char[]){"ANTHROPIC_API_KEY=key"}, (char[]){"CLAUDE_CONFIG_DIR=/home/u/c"},
    (char[]){"ANTHROPIC_BASE_URL=http://m"}, (char[]){"ANTHROPIC_MODEL=m"},
    (char[]){"BASECAMP_TOKEN=t"}, (char[]){"BASECAMP_BASE_URL=http://b"},
    (char[]){"NOTIFY_SOCKET=/run/n"}, (char[]){"HOMEX=1"}, (char[]){"nonsense"},
    NULL};

static void
test_env_of_person(void **state)
{
	static const char *const want[] = {"ANTHROPIC_API_KEY=key",
	    "ANTHROPIC_BASE_URL=http://mine", "CLAUDE_CONFIG_DIR=/home/u/c",
	    "EXTRA=", "HOME=/home/u", "LANG=C", "PATH=/bin", "SHELL=/bin/bash",
	    "TMPDIR=/tmp/own", "USER=u", "XDG_CONFIG_HOME=/home/u/.config",
	    "XDG_RUNTIME_DIR=/run/user/1", NULL};
	struct settings *s = settings_with(&nowhere,
	    "{\"env\":{\"EXTRA\":\"\",\"ANTHROPIC_BASE_URL\":"
	    "\"http://mine\"}}");
	struct string_list env = {0};

	(void)state;
	worker_env(&env, s, NULL, "/tmp/own", parent);
	assert_words(&env, want);
	assert_string_equal(worker_env_get(&env, "HOME"), "/home/u");
	assert_null(worker_env_get(&env, "HOM"));
	string_list_free(&env);
	settings_free(s);
}

/* As root: the account's own, and none of root's XDG directories. */
static void
test_env_of_account(void **state)
{
	static const char *const want[] = {"ANTHROPIC_API_KEY=key",
	    "ANTHROPIC_BASE_URL=http://m", "CLAUDE_CONFIG_DIR=/home/u/c",
	    "HOME=/home/w", "LANG=C", "LOGNAME=w", "PATH=/bin",
	    "SHELL=/bin/false", "TMPDIR=/tmp/own", "USER=w", NULL};
	struct account w = {.name = (char[]){"w"},
	    .home = (char[]){"/home/w"},
	    .shell = (char[]){"/bin/false"}};
	struct settings *s = settings_with(&nowhere, "{}");
	struct string_list env = {0};

	(void)state;
	worker_env(&env, s, &w, "/tmp/own", parent);
	assert_words(&env, want);
	string_list_free(&env);
	settings_free(s);
}

/* ---- declaration -------------------------------------------------------- */

static void
test_declaration(void **state)
{
	struct settings *s = settings_with(&nowhere,
	    "{\"mcp_servers\":{\"docs\":{\"command\":\"/bin/d\","
	    "\"env\":{\"K\":\"v\"}}}}");
	struct string_list env = {0};
	json_t *root, *all, *server, *vars;
	char *text;

	(void)state;
	worker_env(&env, s, NULL, "/tmp/own", parent);
	text = worker_declaration(s, "/lib/connect-bridge", "/s/m", &env);
	root = json_loads(text, 0, NULL);
	assert_int_equal(json_object_size(root), 1);
	all = json_object_get(root, "mcpServers");
	assert_int_equal(json_object_size(all), 2);
	assert_string_equal(json_string_value(json_object_get(
				json_object_get(all, "docs"), "command")),
	    "/bin/d");
	server = json_object_get(all, "basecamp");
	assert_int_equal(json_object_size(server), 5);
	assert_string_equal(
	    json_string_value(json_object_get(server, "type")), "stdio");
	assert_string_equal(
	    json_string_value(json_object_get(server, "command")),
	    "/lib/connect-bridge");
	assert_int_equal(json_array_size(json_object_get(server, "args")), 1);
	assert_string_equal(json_string_value(json_array_get(
				json_object_get(server, "args"), 0)),
	    "/s/m");
	assert_true(json_is_true(json_object_get(server, "alwaysLoad")));
	vars = json_object_get(server, "env");
	/* The base names as the worker has them, the servers' own as empty. */
	assert_int_equal(json_object_size(vars), 8 + 4);
	assert_string_equal(
	    json_string_value(json_object_get(vars, "HOME")), "/home/u");
	assert_string_equal(
	    json_string_value(json_object_get(vars, "TMPDIR")), "/tmp/own");
	assert_string_equal(
	    json_string_value(json_object_get(vars, "BASECAMP_BASE_URL")), "");
	assert_string_equal(json_string_value(json_object_get(
				vars, "DBUS_SESSION_BUS_ADDRESS")),
	    "");
	assert_null(json_object_get(vars, "ANTHROPIC_API_KEY"));
	assert_null(json_object_get(vars, "BASECAMP_TOKEN"));
	json_decref(root);
	free(text);
	string_list_free(&env);
	settings_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_argv),
	    cmocka_unit_test(test_argv_of_operator),
	    cmocka_unit_test(test_session_id),
	    cmocka_unit_test(test_env_of_person),
	    cmocka_unit_test(test_env_of_account),
	    cmocka_unit_test(test_declaration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
