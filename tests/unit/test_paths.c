/* Where files are, by the environment and by their names. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/paths.h"
#include "tests/unit/trap.h"

static void
assert_says(const struct error *e, const char *part)
{
	if (strstr(e->text, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e->text, part);
}

/* ---- text ---------------------------------------------------------------- */

static void
test_profile(void **state)
{
	char long_name[66];

	(void)state;
	memset(long_name, 'a', 65);
	long_name[65] = '\0';
	assert_false(path_profile_ok(long_name));
	long_name[64] = '\0';
	assert_true(path_profile_ok(long_name));
	assert_true(path_profile_ok("Demo_2-x"));
	assert_false(path_profile_ok(""));
	assert_false(path_profile_ok("."));
	assert_false(path_profile_ok("a/b"));
	assert_false(path_profile_ok("a b"));
	assert_false(path_profile_ok("\xc3\xa4"));
}

static void
test_clean(void **state)
{
	static const struct {
		const char *dir, *clean;
	} rows[] = {
	    {"/", "/"},
	    {"//", "/"},
	    {"/..", "/"},
	    {"/a", "/a"},
	    {"/a/", "/a"},
	    {"/a//b", "/a/b"},
	    {"/a/./b/.", "/a/b"},
	    {"/a/../b", "/b"},
	    {"/a/b/../../..", "/"},
	    {"/a/..b/...", "/a/..b/..."},
	};
	char *clean, here[PATH_MAX], expected[PATH_MAX + 8];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		clean = path_clean(rows[i].dir);
		assert_string_equal(rows[i].clean, clean);
		assert_true(path_is_clean(clean));
		assert_int_equal(strcmp(rows[i].dir, clean) == 0,
		    path_is_clean(rows[i].dir));
		free(clean);
	}
	assert_false(path_is_clean("a"));
	assert_false(path_is_clean(""));
	assert_non_null(getcwd(here, sizeof(here)));
	(void)snprintf(expected, sizeof(expected), "%s/x/y",
	    strcmp(here, "/") == 0 ? "" : here);
	clean = path_clean("x/./z/../y/");
	assert_string_equal(expected, clean);
	free(clean);
}

static void
test_contains(void **state)
{
	(void)state;
	assert_true(path_contains("/a", "/a"));
	assert_true(path_contains("/a", "/a/b"));
	assert_true(path_contains("/", "/a"));
	assert_true(path_contains("/", "/"));
	assert_false(path_contains("/a", "/ab"));
	assert_false(path_contains("/a/b", "/a"));
}

/* ---- where things are ---------------------------------------------------- */

static const char *const variables[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR", "STATE_DIRECTORY", "RUNTIME_DIRECTORY",
    "CACHE_DIRECTORY", "HOME"};

/* Only these are set: "NAME=value ...", up to NULL. */
static void
environment(const char *first, ...)
{
	va_list ap;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		assert_int_equal(0, unsetenv(variables[i]));
	va_start(ap, first);
	for (; first != NULL; first = va_arg(ap, const char *))
		assert_int_equal(0, putenv((char *)first));
	va_end(ap);
}

static void
assert_paths(const char *config, const char *state_root, const char *run,
    const char *cache)
{
	char control[256];
	struct paths p;
	struct error e = {0, ""};

	if (path_resolve("demo", &p, &e) == -1)
		fail_msg("%s", e.text);
	(void)snprintf(control, sizeof(control), "%s/control.sock", run);
	assert_string_equal(config, p.config_dir);
	assert_string_equal(state_root, p.state_root);
	assert_string_equal(run, p.runtime_dir);
	assert_string_equal(control, p.control_socket);
	assert_string_equal(cache, p.cache_dir);
	path_free(&p);
}

static void
test_resolve(void **state)
{
	char run[64];

	(void)state;
	environment("XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s",
	    "XDG_RUNTIME_DIR=/r/", "HOME=/h", NULL);
	assert_paths("/c/connectd/demo", "/s/basecamp/connect",
	    "/r/connectd/demo", "/var/tmp");
	/* The service manager's win; they are directories of our own. */
	environment("XDG_STATE_HOME=/s", "XDG_RUNTIME_DIR=/r", "HOME=/h",
	    "STATE_DIRECTORY=/var/lib/x", "RUNTIME_DIRECTORY=/run/x",
	    "CACHE_DIRECTORY=/var/cache/x", "XDG_CONFIG_HOME=/c", NULL);
	assert_paths(
	    "/c/connectd/demo", "/var/lib/x", "/run/x/demo", "/var/cache/x");
	environment("HOME=/h", "XDG_STATE_HOME=", NULL);
	if (geteuid() == 0) {
		assert_paths("/etc/connectd/demo", "/var/lib/connectd",
		    "/run/connectd/demo", "/var/tmp");
		return;
	}
	(void)snprintf(
	    run, sizeof(run), "/tmp/connectd-%u/demo", (unsigned int)geteuid());
	assert_paths("/h/.config/connectd/demo",
	    "/h/.local/state/basecamp/connect", run, "/var/tmp");
}

static void
assert_given(const char *state_root, const char *run)
{
	struct paths p;
	struct error e = {0, ""};

	if (path_resolve("demo", &p, &e) == -1)
		fail_msg("%s", e.text);
	assert_string_equal(state_root, p.state_given);
	assert_string_equal(run, p.runtime_given);
	path_free(&p);
}

/* Only what somebody else made must be there before the first start. */
static void
test_given(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	environment("HOME=/h", NULL);
	assert_given(root ? "/var/lib" : "/h", root ? "/run" : "/tmp");
	environment(
	    "HOME=/h", "XDG_STATE_HOME=/s/", "XDG_RUNTIME_DIR=/r//x/", NULL);
	assert_given("/s", "/r/x");
	environment("HOME=/h", "STATE_DIRECTORY=/var/lib/x",
	    "RUNTIME_DIRECTORY=/run/x", NULL);
	assert_given("/var/lib", "/run");
	environment("HOME=/h", NULL);
}

static void
assert_homes(const char *const *dirs, const char *const *files, size_t count)
{
	struct path_homes homes;
	struct error e = {0, ""};
	size_t i;

	if (path_homes(&homes, &e) == -1)
		fail_msg("%s", e.text);
	assert_int_equal(count, homes.count);
	for (i = 0; i < count; i++) {
		assert_string_equal(dirs[i], homes.list[i].dir);
		assert_string_equal(files[i], homes.list[i].file);
	}
	/* The last two are always the system's. */
	assert_true(homes.list[count - 1].is_system);
	assert_true(homes.list[count - 2].is_system);
	path_homes_free(&homes);
}

/* Profiles lie where path_resolve() puts one, and in the system's places. */
static void
test_homes(void **state)
{
	static const char *const set[] = {
	    "/c/connectd", "/r/connectd", "/etc/connectd", "/run/connectd"};
	static const char *const files[] = {
	    "connect.json", "control.sock", "connect.json", "control.sock"};
	char *socket = path_system_socket("demo");
	char run[64];
	const char *const unset[] = {
	    "/h/.config/connectd", run, "/etc/connectd", "/run/connectd"};
	struct path_homes homes;
	struct error e;

	(void)state;
	environment(
	    "HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_RUNTIME_DIR=/r", NULL);
	assert_homes(set, files, 4);
	environment("HOME=/h", NULL);
	(void)snprintf(
	    run, sizeof(run), "/tmp/connectd-%u", (unsigned int)geteuid());
	if (geteuid() == 0)
		assert_homes(set + 2, files + 2, 2);
	else
		assert_homes(unset, files, 4);
	environment("HOME=/h", "XDG_RUNTIME_DIR=r", NULL);
	assert_int_equal(-1, path_homes(&homes, &e));
	assert_says(&e, "XDG_RUNTIME_DIR");
	path_homes_free(&homes);
	environment("HOME=/h", NULL);
	assert_string_equal("/run/connectd/demo/control.sock", socket);
	free(socket);
}

static void
assert_unresolved(const char *profile, const char *part)
{
	struct error e = {0, ""};
	struct paths p;

	assert_int_equal(-1, path_resolve(profile, &p, &e));
	assert_says(&e, part);
	path_free(&p);
}

/* Whatever is asked for first: what is set and cannot be meant is said. */
static void
test_variables_are_alike(void **state)
{
	static const char *const values[] = {"some/where", "./x", "/a:/b"};
	char text[64];
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		/* Root has no need of a home. */
		if (geteuid() == 0 && strcmp(variables[i], "HOME") == 0)
			continue;
		for (k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			(void)snprintf(text, sizeof(text), "%s=%s",
			    variables[i], values[k]);
			environment("HOME=/h", text, NULL);
			assert_unresolved("demo", variables[i]);
			assert_unresolved("demo", values[k]);
		}
	}
	environment("HOME=/h", NULL);
}

static void
test_resolve_refuses(void **state)
{
	char dir[SOCKET_PATH_MAX + 64];
	static const char tail[] = "/connectd/demo/control.sock";
	size_t len;
	struct paths p;
	struct error e;

	(void)state;
	environment("HOME=/h", NULL);
	assert_unresolved("de/mo", "profile");
	if (geteuid() != 0) {
		environment(NULL);
		assert_unresolved("demo", "HOME");
	}
	/* As long as may be, and one byte longer. */
	len = SOCKET_PATH_MAX - (sizeof(tail) - 1);
	(void)snprintf(
	    dir, sizeof(dir), "XDG_RUNTIME_DIR=/%0*d", (int)len - 1, 0);
	environment("HOME=/h", dir, NULL);
	assert_int_equal(0, path_resolve("demo", &p, &e));
	assert_int_equal(SOCKET_PATH_MAX, strlen(p.control_socket));
	path_free(&p);
	(void)snprintf(dir, sizeof(dir), "XDG_RUNTIME_DIR=/%0*d", (int)len, 0);
	assert_unresolved("demo", "XDG_RUNTIME_DIR");
	environment("HOME=/h", NULL);
}

/* ---- the state directory --------------------------------------------------
 */

static void
test_state_dir(void **state)
{
	static const struct {
		const char *dir, *word; /* NULL: it is the one */
	} rows[] = {
	    {"/s/root/999-52007412", NULL},
	    {"/s/root/999-52007412/", NULL},
	    {"/s/root/./x/../999-52007412", NULL},
	    {"/s/root//999-52007412//.", NULL},
	    {"/s/root/998-5/../999-52007412", NULL},
	    {"/s/root/0999-52007412", NULL}, /* as numbers */
	    {"/s/root/-52007412", "misnamed"},
	    {"/s/root/999-", "misnamed"},
	    {"/s/root/999-+5", "misnamed"},
	    {"/s/root/999-05", "misnamed"},
	    {"/s/root/999-abc", "misnamed"},
	    {"/s/root/999-5x", "misnamed"},
	    {"/s/root/999-5-6", "misnamed"},
	    {"/s/root/999-0", "misnamed"},
	    {"/s/root/999--5", "misnamed"},
	    {"/s/root/+999-5", "misnamed"},
	    {"/s/root/ 999-5", "misnamed"},
	    {"/s/root/0-5", "misnamed"},
	    {"/s/root/999", "misnamed"},
	    {"/s/root/abc-5", "misnamed"},
	    {"/s/root/999-9223372036854775808", "misnamed"},
	    {"/s/root/99999999999999999999-5", "misnamed"},
	    {"/s/root/x999-5", "misnamed"},
	    {"/s/root/999 -5", "misnamed"},
	    {"/s/root/999-5 ", "misnamed"},
	    {"/s/root/18446744073709551616-5", "misnamed"},
	    {"/s/root/998-52007412", "other account"},
	    {"/s/root/18446744073709551615-5", "other account"},
	    {"/s/else/999-52007412", "elsewhere"},
	    {"/s/root", "elsewhere"},
	    {"/s/root/999-5/999-5", "elsewhere"},
	    {"/s/root/../999-5", "elsewhere"},
	    {"/s/root/999-5/..", "elsewhere"},
	    {"/s/roott/999-5", "elsewhere"},
	    {"999-5", "elsewhere"}, /* in the working directory */
	    {"/", "elsewhere"},
	};
	struct error e;
	int64_t agent;
	char *dir;
	size_t i;

	(void)state;
	dir = path_state_dir("/s/root", 999, 52007412);
	assert_string_equal("/s/root/999-52007412", dir);
	free(dir);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		agent = 0;
		e.text[0] = '\0';
		if (rows[i].word != NULL) {
			assert_int_equal(-1,
			    path_state_check(
				"/s/root", rows[i].dir, 999, &agent, &e));
			assert_says(&e, rows[i].word);
			continue;
		}
		if (path_state_check(
			"/s/root/", rows[i].dir, 999, &agent, &e) == -1)
			fail_msg("%s", e.text);
		assert_int_equal(52007412, agent);
	}
	assert_int_equal(0,
	    path_state_check(
		"/s/root", "/s/root/9-9223372036854775807", 9, &agent, &e));
	assert_int_equal(INT64_MAX, agent);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_profile),
	    cmocka_unit_test(test_clean),
	    cmocka_unit_test(test_contains),
	    cmocka_unit_test(test_resolve),
	    cmocka_unit_test(test_given),
	    cmocka_unit_test(test_homes),
	    cmocka_unit_test(test_variables_are_alike),
	    cmocka_unit_test(test_resolve_refuses),
	    TRAP("T80", test_state_dir, NULL, NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
