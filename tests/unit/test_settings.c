/*
 * connect.json: what is accepted and what it means, and every refusal with its
 * file, line and key (admission.md 4.1, 5, T55-T62).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define PERSON 12345

/* A whole file; each test changes one spot of it. */
static const char good[] =
    "{\n"
    " \"version\": 1,\n"
    " \"profile\": \"demo\",\n"
    " \"account_id\": \"999\",\n"
    " \"agent\": {\"person_id\": 52007412, \"kind\": \"agent\"},\n"
    " \"trust\": {\"mode\": \"operator\", \"operator_id\": 26909558},\n"
    " \"projects\": {\n"
    "  \"48699913\": {\"path\": \"/srv/web\", \"class\": \"web\","
    " \"watch_completions\": true},\n"
    "  \"7\": {\"path\": \"/srv/other\"}\n"
    " },\n"
    " \"concurrency\": 3,\n"
    " \"deadline\": \"1h30m\",\n"
    " \"worker\": {\n"
    "  \"driver\": \"claude\",\n"
    "  \"command\": [\"/opt/claude/bin/claude\", \"--x\"],\n"
    "  \"user\": \"nobody\",\n"
    "  \"confine\": \"landlock\",\n"
    "  \"read\": [\"/srv/shared\"],\n"
    "  \"write\": [\"/srv/out\"],\n"
    "  \"env\": {\"ZED\": \"1\", \"ANTHROPIC_MODEL\": \"m\"},\n"
    "  \"mcp_servers\": {\"docs\": {\"command\": \"/bin/docs\"}},\n"
    "  \"launcher\": {\"command\": [\"bwrap\", \"--\"],"
    " \"keeps_tree\": true}\n"
    " },\n"
    " \"limits\": {\"feed_poll\": \"200ms\", \"pause_depth\": 6000,\n"
    "  \"worker\": {\"memory.max\": \"2G\", \"pids.max\": \"512\"}},\n"
    " \"retention\": {\"discarded\": \"720h\", \"completed\": \"2160h\"},\n"
    " \"mcp\": {\"socket\": true},\n"
    " \"engine\": {\"enabled\": false}\n"
    "}\n";

static struct paths paths = {.config_dir = "/conf/connectd/demo",
    .state_root = "/state/basecamp/connect",
    .runtime_dir = "/run-time/connectd/demo",
    .control_socket = "/run-time/connectd/demo/control.sock",
    .cache_dir = "/var/tmp"};

static char profile[] = "demo";

/* GOOD with the first FROM in it made TO. The caller frees it. */
static char *
changed(const char *from, const char *to)
{
	struct buffer b = {0};
	const char *at = strstr(good, from);

	if (at == NULL)
		fail_msg("not in the text: %s", from);
	buffer_add(&b, good, (size_t)(at - good));
	buffer_add_text(&b, to);
	buffer_add_text(&b, at + strlen(from));
	return buffer_take(&b, NULL);
}

static struct settings *
parse(const char *text, size_t len, const struct options *o, uid_t euid,
    struct error *e)
{
	e->text[0] = '\0';
	return settings_parse(
	    "/conf/connect.json", text, len, &paths, o, euid, e);
}

static struct settings *
parse_changed(const char *from, const char *to, const struct options *o,
    uid_t euid, struct error *e)
{
	char *text = changed(from, to);
	struct settings *s = parse(text, strlen(text), o, euid, e);

	free(text);
	return s;
}

static const struct options plain = {.profile = profile};

static void
test_good(void **state)
{
	struct error e;
	struct settings *s = parse(good, sizeof(good) - 1, &plain, 0, &e);
	const struct config_route *r;

	(void)state;
	if (s == NULL)
		fail_msg("%s", e.text);
	assert_true(s->config->readable);
	assert_int_equal(s->config->account_id, 999);
	assert_int_equal(s->config->agent_id, 52007412);
	assert_int_equal(s->config->operator_id, 26909558);
	assert_string_equal(s->config->trust_mode, "operator");
	assert_string_equal(s->config->driver, "claude");
	assert_string_equal(s->config->profile, "demo");
	assert_int_equal(s->config->concurrency, 3);
	assert_int_equal(s->config->deadline_ms, 5400000);
	assert_int_equal(s->config->keep_discarded_ms, INT64_C(2592000000));
	assert_int_equal(s->config->keep_completed_ms, INT64_C(7776000000));
	assert_int_equal(s->config->limits[LIMIT_feed_poll], 200);
	assert_int_equal(s->config->limits[LIMIT_pause_depth], 6000);
	assert_int_equal(s->config->limits[LIMIT_mcpd_drain], 2000);
	assert_int_equal(s->config->route_count, 2);
	r = config_route(s->config, 48699913);
	assert_string_equal(r->path, "/srv/web");
	assert_string_equal(r->class, "web");
	assert_true(r->watch_completions);
	r = config_route(s->config, 7);
	assert_string_equal(r->class, "");
	assert_false(r->watch_completions);
	assert_int_equal(s->worker.command.count, 2);
	assert_string_equal(s->worker.command.list[1], "--x");
	assert_null(s->worker.command.list[2]);
	assert_string_equal(s->worker.user, "nobody");
	assert_string_equal(s->worker.read.list[0], "/srv/shared");
	assert_string_equal(s->worker.write.list[0], "/srv/out");
	assert_string_equal(s->worker.env.list[0], "ANTHROPIC_MODEL=m");
	assert_string_equal(s->worker.env.list[1], "ZED=1");
	assert_string_equal(
	    s->worker.mcp_servers, "{\"docs\":{\"command\":\"/bin/docs\"}}");
	assert_string_equal(s->worker.launcher.list[0], "bwrap");
	assert_true(s->worker.launcher_keeps_tree);
	assert_int_equal(s->worker_limits.count, 2);
	assert_true(s->mcp_socket);
	settings_free(s);
}

/* What may be left out, and what it then is. */
static void
test_defaults(void **state)
{
	static const char least[] =
	    "{\"version\":1,\"profile\":\"demo\",\"account_id\":\"1\","
	    "\"agent\":{\"person_id\":2,\"kind\":\"bot_user\","
	    "\"identity_id\":4},\"trust\":{\"mode\":\"project\","
	    "\"operator_id\":3}}";
	struct error e;
	struct settings *s =
	    parse(least, sizeof(least) - 1, &plain, PERSON, &e);

	(void)state;
	if (s == NULL)
		fail_msg("%s", e.text);
	assert_int_equal(s->config->concurrency, 2);
	assert_int_equal(s->config->deadline_ms, 45 * 60 * 1000);
	assert_int_equal(s->config->route_count, 0);
	assert_int_equal(s->config->keep_discarded_ms, 0);
	assert_int_equal(s->config->keep_completed_ms, 0);
	assert_string_equal(s->worker.driver, "claude");
	assert_string_equal(s->worker.confine, "landlock");
	assert_string_equal(s->worker.mcp_servers, "{}");
	assert_int_equal(s->worker.command.count, 0);
	assert_false(s->mcp_socket);
	settings_free(s);
}

static void
test_command_line(void **state)
{
	int64_t ids[] = {48699913};
	char claude[] = "claude", codex[] = "codex";
	struct options o = {.profile = profile,
	    .since = 77,
	    .driver = claude,
	    .projects = {ids, 1}};
	struct error e;
	struct settings *s = parse_changed(
	    "\"driver\": \"claude\"", "\"driver\": \"codex\"", &o, 0, &e);

	(void)state;
	if (s == NULL)
		fail_msg("%s", e.text);
	assert_int_equal(s->config->since, 77);
	assert_int_equal(s->config->scope.count, 1);
	assert_int_equal(s->config->scope.list[0], 48699913);
	assert_string_equal(s->config->driver, "claude");
	settings_free(s);
	o.driver = codex;
	assert_null(parse(good, sizeof(good) - 1, &o, 0, &e));
	assert_non_null(
	    strstr(e.text, "--driver: codex is not in this version"));
}

/* One change each, and what the error must name. As root. */
static const struct {
	const char *from, *to, *says;
} refused[] = {
    /* T55: keys */
    {"\"trust\": {", "\"Trust\": {", "line 6: key \"Trust\""},
    {" \"concurrency\": 3,", " \"trust\": {},", "line 11: key \"trust\""},
    {"\"7\": {", "\"07\": {", "line 9: key \"projects/07\""},
    {"\"7\": {", "\"+7\": {", "line 9: key \"projects/+7\""},
    {"\"class\": \"web\"", "\"Class\": \"web\"",
	"line 8: key \"projects/48699913/Class\""},
    {"\"concurrency\"", "\"concurency\"", "line 11: concurency: unknown key"},
    {"\"watch_completions\": true", "\"watch\": true",
	"line 8: projects.48699913.watch: unknown key"},
    {"\"ZED\": \"1\"", "\"ZED\": \"1\", \"ZED\": \"2\"",
	"line 20: key \"worker/env/ZED\""},
    {"\"engine\": {\"enabled\": false}\n}\n",
	"\"engine\": {\"enabled\": false}\n}\n}", "line 30"},
    {"\"7\": {\"path\": \"/srv/other\"}", "\"7\": null",
	"line 9: projects.7: not an object"},
    {"\"7\": {\"path\": \"/srv/other\"}", "\"7\": {}",
	"line 9: projects.7.path: missing"},
    {"\"7\": {", "\"0\": {", "line 9: projects.0: not a project id"},
    {"\"7\": {", "\"-7\": {", "line 9: projects.-7: not a project id"},
    {"\"7\": {", "\"web\": {", "line 9: projects.web: not a project id"},
    /* paths */
    {"\"/srv/other\"", "\"\"", "line 9: projects.7.path: empty"},
    {"\"/srv/other\"", "\"../x\"", "projects.7.path: not an absolute"},
    {"\"/srv/other\"", "\"/a/../b\"", "projects.7.path: not a clean path"},
    {"\"/srv/other\"", "\"/a/\"", "projects.7.path: not a clean path"},
    {"\"/srv/other\"", "\"/a\\u0000b\"", "projects.7.path: has a NUL"},
    {"\"/srv/other\"", "\"/a\\ud800\"", "line 9"},
    {"\"/srv/other\"", "7", "projects.7.path: not a string"},
    {"\"/srv/other\"", "\"/\"", "projects.7.path: contains or lies in"},
    {"\"/srv/other\"", "\"/conf/connectd/demo\"",
	"connectd's own directory /conf/connectd/demo"},
    {"\"/srv/other\"", "\"/conf\"",
	"connectd's own directory /conf/connectd/demo"},
    {"\"/srv/other\"", "\"/conf/connectd/other/deep\"",
	"connectd's own directory /conf/connectd/demo"},
    {"\"/srv/other\"", "\"/state/basecamp\"",
	"connectd's own directory /state/basecamp/connect"},
    {"\"/srv/other\"", "\"/run-time/connectd/demo/s\"",
	"connectd's own directory /run-time/connectd/demo"},
    {"\"/srv/shared\"", "\"/conf/connectd/demo\"",
	"line 18: worker.read.0: contains or lies in"},
    {"\"/srv/out\"", "\"/state\"", "line 19: worker.write.0: contains"},
    {"\"/srv/out\"", "\"out\"", "worker.write.0: not an absolute path"},
    {"\"class\": \"web\"", "\"class\": \"Web\"",
	"line 8: projects.48699913.class: must be lower-case"},
    {"\"class\": \"web\"", "\"class\": \"-web\"", "class: must be"},
    {"\"class\": \"web\"",
	"\"class\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
	"class: must have 0 to 40 bytes"},
    /* T62 and 4.1 */
    {"\"version\": 1", "\"version\": 2", "line 2: version: must be 1"},
    {"\"version\": 1", "\"version\": \"1\"", "version: not a whole number"},
    {"\"profile\": \"demo\"", "\"profile\": \"other\"",
	"line 3: profile: this is the directory of profile demo"},
    {"\"999\"", "999", "line 4: account_id: not a string"},
    {"\"999\"", "\"0999\"", "line 4: account_id: not an account id"},
    {"\"999\"", "\"0\"", "account_id: not an account id"},
    {"\"999\"", "\"99999999999999999999\"", "account_id: not an account"},
    {"52007412", "0", "line 5: agent.person_id: must be at least 1"},
    {"52007412", "5.0", "agent.person_id: not a whole number"},
    {"52007412", "null", "agent.person_id: not a whole number"},
    {"\"kind\": \"agent\"", "\"kind\": \"robot\"",
	"line 5: agent.kind: not one of these: agent, bot_user"},
    {"\"kind\": \"agent\"", "\"kind\": \"agent\", \"identity_id\": 5",
	"line 5: agent.identity_id: only a bot_user"},
    {"\"kind\": \"agent\"", "\"kind\": \"bot_user\"",
	"agent.identity_id: a bot_user needs"},
    {"\"mode\": \"operator\"", "\"mode\": \"\"", "trust.mode: empty"},
    {"\"mode\": \"operator\"", "\"mode\": \"anyone\"",
	"line 6: trust.mode: not one of"},
    {"26909558", "52007412", "trust.operator_id: is the agent itself"},
    {"26909558", "1, \"allowlist_ids\": [5]",
	"line 6: trust.allowlist_ids: mode operator has no list"},
    {"\"operator\", \"operator_id\": 26909558",
	"\"allowlist\", \"operator_id\": 1, \"allowlist_ids\": [52007412]",
	"trust.allowlist_ids: names the agent itself"},
    {"\"operator\", \"operator_id\": 26909558",
	"\"allowlist\", \"operator_id\": 1, \"allowlist_ids\": [0]",
	"trust.allowlist_ids.0: not an id"},
    {"\"operator\", \"operator_id\": 26909558",
	"\"allowlist\", \"operator_id\": 1, \"allowlist_ids\": [1], "
	"\"allow_assignments\": true",
	"trust.allow_assignments: needs an allowlist"},
    {"26909558", "1, \"allow_assignments\": true",
	"trust.allow_assignments: needs an allowlist"},
    {"26909558", "1, \"agent_ids\": [1]", "trust.agent_ids: names the op"},
    {"26909558", "1, \"agent_ids\": [52007412]",
	"trust.agent_ids: names the agent"},
    {"\"operator\", \"operator_id\": 26909558",
	"\"project\", \"operator_id\": 1, \"allowlist_ids\": [5], "
	"\"agent_ids\": [5]",
	"trust.agent_ids: 5 is on the allowlist too"},
    {"26909558", "1, \"agent_thread_cap\": 101",
	"trust.agent_thread_cap: must be from 0 to 100"},
    {"26909558", "1, \"agent_daily_cap\": -1",
	"trust.agent_daily_cap: must be from 0 to 100"},
    {"\"concurrency\": 3", "\"concurrency\": 0",
	"line 11: concurrency: must be from 1 to 32"},
    {"\"concurrency\": 3", "\"concurrency\": 33", "from 1 to 32"},
    {"\"1h30m\"", "\"59s\"", "line 12: deadline: "},
    {"\"1h30m\"", "\"25h\"", "line 12: deadline: "},
    {"\"1h30m\"", "60", "line 12: deadline: not a duration"},
    {"\"1h30m\"", "\"\"", "line 12: deadline: empty"},
    {"\"1h30m\"", "null", "line 12: deadline: not a duration"},
    {"\"720h\"", "\"23h59m59s\"", "line 26: retention.discarded: "},
    {"\"720h\"", "\"87600h1s\"", "line 26: retention.discarded: "},
    {"\"720h\"", "720", "line 26: retention.discarded: not a duration"},
    {"\"720h\"", "null", "line 26: retention.discarded: not a duration"},
    {"{\"discarded\"", "{\"held\"", "line 26: retention.held: unknown key"},
    {"\"2160h\"", "\"0\"", "line 26: retention.completed: "},
    {"{\"discarded\": \"720h\", \"completed\": \"2160h\"}", "[]",
	"line 26: retention: not an object"},
    {"\"engine\"", "\"dangerous\": true, \"engine\"", "dangerous: unknown key"},
    {"\"enabled\": false", "\"enabled\": true",
	"engine: the workspace engine is not in this version"},
    {"\"socket\": true", "\"socket\": 1", "mcp.socket: neither true nor"},
    /* limits */
    {"\"200ms\"", "\"1ms\"", "line 24: limits.feed_poll: "},
    {"\"200ms\"", "200", "line 24: limits.feed_poll: not a duration"},
    {"6000", "\"6000\"", "limits.pause_depth: not a whole number"},
    {"6000", "4999", "limits.resume_depth: is above pause_depth"},
    {"\"feed_poll\"", "\"feed_pole\"",
	"line 24: limits.feed_pole: unknown key"},
    {"\"memory.max\"", "\"cgroup.kill\"",
	"line 25: limits.worker.cgroup.kill: not a limit"},
    {"\"memory.max\"", "\"memory./../cgroup.kill\"",
	"limits.worker.memory./../cgroup.kill: not a limit"},
    {"\"2G\"", "2", "line 25: limits.worker.memory.max: not a string"},
    /* worker */
    {"\"driver\": \"claude\"", "\"driver\": \"codex\"",
	"line 14: worker.driver: driver codex is not in this version"},
    {"\"driver\": \"claude\"", "\"driver\": \"acp\"",
	"worker.driver: driver acp is not in this version"},
    {"\"driver\": \"claude\"", "\"driver\": \"spawn\"",
	"worker.driver: not one of claude, codex and acp"},
    {"\"/opt/claude/bin/claude\"", "\"bin/claude\"",
	"line 15: worker.command: its first word"},
    {"[\"/opt/claude/bin/claude\", \"--x\"]", "[]", "worker.command: empty"},
    {"\"--x\"", "7", "worker.command.1: not a string"},
    {"\"user\": \"nobody\",", "",
	"line 13: worker.user: missing: started as root"},
    {"\"user\": \"nobody\"", "\"user\": \"root\"",
	"line 16: worker.user: is root"},
    {"\"user\": \"nobody\"", "\"user\": \"no-such-user\"",
	"worker.user: there is no such user"},
    {"\"confine\": \"landlock\"", "\"confine\": \"jail\"",
	"worker.confine: not one of landlock, agent and none"},
    {"\"confine\": \"landlock\"", "\"confine\": \"agent\"",
	"worker.launcher: a launcher goes with"},
    {"\"ZED\"", "\"9ED\"", "worker.env.9ED: not a name"},
    {"\"ZED\"", "\"A=B\"", "worker.env.A=B: not a name"},
    {"\"ZED\"", "\"\"", "worker.env.: not a name"},
    {"\"ZED\"", "\"TMPDIR\"", "line 20: worker.env.TMPDIR: is not for"},
    {"\"ZED\"", "\"BASECAMP_TOKEN\"", "worker.env.BASECAMP_TOKEN: is not"},
    {"\"ZED\": \"1\"", "\"ZED\": \"a\\u0000\"", "worker.env.ZED: has a NUL"},
    {"\"ZED\": \"1\"", "\"ZED\": 1", "worker.env.ZED: not a string"},
    {"\"docs\":", "\"basecamp\":",
	"line 21: worker.mcp_servers.basecamp: is connectd's own"},
    {"\"docs\":", "\"a b\":", "worker.mcp_servers.a b: not a name"},
    {"{\"command\": \"/bin/docs\"}", "[]",
	"worker.mcp_servers.docs: not an object"},
    {"\"keeps_tree\": true", "\"keeps\": true",
	"line 22: worker.launcher.keeps: unknown key"},
    {"\"command\": [\"bwrap\", \"--\"], ", "",
	"worker.launcher.command: missing"},
};

static void
test_refused(void **state)
{
	struct settings *s;
	struct error e;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(refused); i++) {
		s = parse_changed(
		    refused[i].from, refused[i].to, &plain, 0, &e);
		if (s != NULL)
			fail_msg("accepted: %s", refused[i].to);
		if (strstr(e.text, refused[i].says) == NULL ||
		    strncmp(e.text, "/conf/connect.json: line ", 25) != 0)
			fail_msg("%s: \"%s\" does not say \"%s\"",
			    refused[i].to, e.text, refused[i].says);
	}
}

/* Values that dispatch.md 22 names beside a range; -1: refused. */
static const struct {
	enum limit limit;
	const char *text;
	int64_t value;
} special[] = {
    {LIMIT_still_running, "\"still_running\": \"0s\"", 0},
    {LIMIT_still_running, "\"still_running\": \"0\"", 0},
    {LIMIT_still_running, "\"still_running\": \"50ms\"", 50},
    {LIMIT_still_running, "\"still_running\": \"49ms\"", -1},
    {LIMIT_still_running, "\"still_running\": \"-1s\"", -1},
    {LIMIT_still_running, "\"still_running\": 0", -1},
    {LIMIT_cancel_grace, "\"cancel_grace\": \"0s\"", -1},
    {LIMIT_guard_delay, "\"guard_delay\": \"0s\"", 0},
};

static void
test_special_limits(void **state)
{
	struct settings *s;
	struct error e;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(special); i++) {
		s = parse_changed(
		    "\"feed_poll\": \"200ms\"", special[i].text, &plain, 0, &e);
		if ((s == NULL) != (special[i].value == -1))
			fail_msg("%s: %s", special[i].text,
			    s == NULL ? e.text : "accepted");
		if (s != NULL)
			assert_int_equal(special[i].value,
			    s->config->limits[special[i].limit]);
		settings_free(s);
	}
}

/* Escaped or not, it is the same key; and a NUL byte is no JSON. */
static void
test_refused_bytes(void **state)
{
	char *text = changed("\"user\":", "\"driv\\u0065r\": \"x\", \"user\":");
	struct error e;

	(void)state;
	assert_null(parse(text, strlen(text), &plain, 0, &e));
	assert_non_null(strstr(e.text, "key \"worker/driver\""));
	free(text);
	assert_null(parse(good, sizeof(good), &plain, 0, &e));
	assert_null(parse("", 0, &plain, 0, &e));
}

/* A person without an account for workers has the walls instead. */
static void
test_person(void **state)
{
	struct options insecure = {.profile = profile, .insecure = true};
	struct paths in_etc = paths;
	struct settings *s;
	struct error e;
	char *text;

	(void)state;
	text = changed("\"user\": \"nobody\",", "");
	s = parse(text, strlen(text), &plain, PERSON, &e);
	if (s == NULL)
		fail_msg("%s", e.text);
	settings_free(s);
	in_etc.state_root = (char[]){"/etc/state"};
	assert_null(settings_parse(
	    "f", text, strlen(text), &in_etc, &plain, PERSON, &e));
	assert_non_null(strstr(e.text, "worker.confine: /etc/state lies"));
	free(text);
	assert_null(parse(good, sizeof(good) - 1, &plain, PERSON, &e));
	assert_non_null(strstr(e.text, "worker.user: only root can"));
	text = changed("\"user\": \"nobody\",\n  \"confine\": \"landlock\"",
	    "\"confine\": \"none\"");
	assert_null(parse(text, strlen(text), &plain, PERSON, &e));
	assert_non_null(strstr(e.text, "worker.confine: without an account"));
	s = parse(text, strlen(text), &insecure, PERSON, &e);
	assert_non_null(s);
	settings_free(s);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_command_line),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_special_limits),
	    cmocka_unit_test(test_refused_bytes),
	    cmocka_unit_test(test_person),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
