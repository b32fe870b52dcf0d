/*
 * The files of settings: who may write connect.json and read credentials.json,
 * and what is said of one that others may (admission.md 5, T57, T58).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/settings.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct paths paths = {.config_dir = "/conf/connectd/demo",
    .state_root = "/state/basecamp/connect",
    .runtime_dir = "/run-time/connectd/demo",
    .control_socket = "/run-time/connectd/demo/control.sock",
    .cache_dir = "/var/tmp"};

static char profile[] = "demo";

struct files {
	char top[64], *all, *dir, *file, *secret;
	struct paths paths;
	struct options options;
};

static void
write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd != -1);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static int
files_make(void **state)
{
	static struct files f;
	const char *person =
	    "{\"version\":1,\"profile\":\"demo\","
	    "\"account_id\":\"1\",\"agent\":{\"person_id\":2,\"kind\":"
	    "\"agent\"},\"trust\":{\"mode\":\"operator\",\"operator_id\":3},"
	    "\"worker\":{\"user\":\"nobody\"}}";

	(void)snprintf(f.top, sizeof(f.top), "/tmp/test_settings.XXXXXX");
	if (mkdtemp(f.top) == NULL)
		return -1;
	(void)xasprintf(&f.all, "%s/connectd", f.top);
	(void)xasprintf(&f.dir, "%s/demo", f.all);
	(void)xasprintf(&f.file, "%s/connect.json", f.dir);
	(void)xasprintf(&f.secret, "%s/credentials.json", f.dir);
	if (mkdir(f.all, 0700) == -1 || mkdir(f.dir, 0700) == -1)
		return -1;
	f.paths = paths;
	f.paths.config_dir = f.dir;
	f.options.profile = profile;
	if (geteuid() != 0)
		person = "{\"version\":1,\"profile\":\"demo\","
			 "\"account_id\":\"1\",\"agent\":{\"person_id\":2,"
			 "\"kind\":\"agent\"},\"trust\":{\"mode\":\"operator\","
			 "\"operator_id\":3}}";
	write_file(f.file, person, 0644);
	*state = &f;
	return 0;
}

static int
files_remove(void **state)
{
	struct files *f = *state;

	(void)unlink(f->file);
	(void)unlink(f->secret);
	(void)rmdir(f->dir);
	(void)rmdir(f->all);
	(void)rmdir(f->top);
	free(f->all);
	free(f->dir);
	free(f->file);
	free(f->secret);
	return 0;
}

static void
assert_load_says(struct files *f, const char *says)
{
	struct error e = {0, ""};
	struct settings *s = settings_load(&f->paths, &f->options, &e);

	if (s != NULL)
		fail_msg("accepted in spite of: %s", says);
	if (strstr(e.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

/* T57, T58 */
static void
test_file_privacy(void **state)
{
	struct files *f = *state;
	struct settings *s;
	struct error e;
	char *other;

	s = settings_load(&f->paths, &f->options, &e); /* 0644 is fine */
	if (s == NULL)
		fail_msg("%s", e.text);
	settings_free(s);
	assert_int_equal(chmod(f->file, 0664), 0);
	assert_load_says(f, "connect.json has mode 0664");
	assert_int_equal(chmod(f->file, 0600), 0);
	assert_int_equal(chmod(f->dir, 0720), 0);
	assert_load_says(f, "demo: others may write to it");
	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_int_equal(chmod(f->all, 0702), 0);
	assert_load_says(f, "connectd: others may write to it");
	assert_int_equal(chmod(f->all, 0700), 0);
	assert_int_equal(chmod(f->top, 0777), 0);
	assert_load_says(f, "writable by others");
	assert_int_equal(chmod(f->top, 01777), 0);
	s = settings_load(&f->paths, &f->options, &e);
	assert_non_null(s);
	settings_free(s);
	assert_int_equal(chmod(f->top, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(f->file, 1, 1), 0);
		assert_load_says(f, "belongs to uid 1");
		assert_int_equal(chown(f->file, 0, 0), 0);
	}
	(void)xasprintf(&other, "%s/real.json", f->dir);
	assert_int_equal(rename(f->file, other), 0);
	assert_load_says(f, "No such file");
	assert_int_equal(symlink(other, f->file), 0);
	assert_load_says(f, "symbolic link");
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(mkfifo(f->file, 0600), 0);
	assert_load_says(f, "not a regular file");
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(rename(other, f->file), 0);
	free(other);
}

static void
test_own_directory_resolved(void **state)
{
	struct files *f = *state;
	char *link;

	(void)xasprintf(&link, "%s/innocent", f->top);
	assert_int_equal(symlink(f->all, link), 0);
	assert_non_null(settings_own_directory(&f->paths, link));
	assert_null(settings_own_directory(&f->paths, "/srv/web"));
	assert_int_equal(unlink(link), 0);
	free(link);
}

/* ---- credentials.json --------------------------------------------------- */

#define SECRET_HEAD "{\"client_id\":\"c\",\"client_secret\":\"s3cret\","

static const struct {
	const char *text, *says; /* "": accepted */
} secrets[] = {
    {SECRET_HEAD "\"token_endpoint\":\"https://x.example/oauth\","
		 "\"scope\":\"full\",\"resource\":\"r\"}",
	""},
    {SECRET_HEAD "\"token_endpoint\":\"http://127.0.0.1:1/t\"}", ""},
    {SECRET_HEAD "\"token_endpoint\":\"http://x.example/t\"}",
	"line 1: token_endpoint: neither https"},
    {SECRET_HEAD "\"token_endpoint\":\"https://u@x.example/t\"}",
	"token_endpoint: has a user"},
    {SECRET_HEAD "\"token_endpoint\":\"nonsense\"}", "token_endpoint: "},
    {SECRET_HEAD "\"token_endpoint\":\"https://x.example/\",\"x\":1}",
	"line 1: x: unknown key"},
    {"{\"client_id\":\"c\",\"token_endpoint\":\"https://x.example/\"}",
	"client_secret: missing"},
    {"{\"client_id\":\"\",\"client_secret\":\"s\",\"token_endpoint\":"
     "\"https://x.example/\"}",
	"client_id: empty"},
    {SECRET_HEAD "\"token_endpoint\":\"https://x.example/\"} x", "line 1"},
    {"[]", "not an object"},
};

static void
test_credential(void **state)
{
	struct files *f = *state;
	struct credential c;
	struct error e;
	int result;
	size_t i;

	for (i = 0; i < COUNT(secrets); i++) {
		write_file(f->secret, secrets[i].text, 0600);
		result = credential_load(&f->paths, &c, &e);
		if (secrets[i].says[0] == '\0') {
			if (result == -1)
				fail_msg("%s", e.text);
			assert_string_equal(c.client_secret, "s3cret");
			credential_wipe(&c);
			assert_null(c.client_secret);
			continue;
		}
		assert_int_equal(result, -1);
		if (strstr(e.text, secrets[i].says) == NULL ||
		    strstr(e.text, "credentials.json: ") == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.text,
			    secrets[i].says);
		assert_null(strstr(e.text, "s3cret"));
		assert_null(c.client_secret);
	}
	write_file(f->secret, secrets[0].text, 0640);
	assert_int_equal(credential_load(&f->paths, &c, &e), -1);
	assert_non_null(strstr(e.text, "credentials.json has mode 0640"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_file_privacy, files_make, files_remove),
	    cmocka_unit_test_setup_teardown(
		test_own_directory_resolved, files_make, files_remove),
	    cmocka_unit_test_setup_teardown(
		test_credential, files_make, files_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
