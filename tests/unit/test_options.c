/* The command line of connectd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/options.h"

#define WORDS_MAX 16

/* WORDS are parted by blanks; the program's name is put in front. */
static enum options_what
read_words(const char *words, struct options *o, struct error *e)
{
	static char text[512];
	char *argv[WORDS_MAX + 1], *word, *rest = text;
	static char name[] = "connectd";
	int argc = 0;

	(void)snprintf(text, sizeof(text), "%s", words);
	argv[argc++] = name;
	while ((word = strsep(&rest, " ")) != NULL && argc < WORDS_MAX) {
		if (word[0] != '\0')
			argv[argc++] = word;
	}
	argv[argc] = NULL;
	return options_read(argc, argv, o, e);
}

static void
test_run(void **arg)
{
	struct options o;
	struct error e;

	(void)arg;
	assert_int_equal(read_words("run --profile demo", &o, &e), OPTIONS_RUN);
	assert_string_equal(o.profile, "demo");
	assert_int_equal(o.projects.count, 0);
	assert_int_equal(o.since, 0);
	assert_null(o.driver);
	assert_false(o.insecure);
	options_free(&o);
	assert_int_equal(read_words("run -P a-b_1 --insecure --since=77 "
				    "--driver claude --project 5",
			     &o, &e),
	    OPTIONS_RUN);
	assert_string_equal(o.profile, "a-b_1");
	assert_int_equal(o.since, 77);
	assert_string_equal(o.driver, "claude");
	assert_true(o.insecure);
	options_free(&o);
}

/* Repeated or parted by commas, each once, in order. */
static void
test_projects(void **arg)
{
	static const int64_t want[] = {3, 5, 9};
	struct options o;
	struct error e;
	size_t i;

	(void)arg;
	assert_int_equal(
	    read_words(
		"run -P p --project 9,3 --project 5 --project 3", &o, &e),
	    OPTIONS_RUN);
	assert_int_equal(o.projects.count, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(o.projects.list[i], want[i]);
	options_free(&o);
}

static void
test_others(void **arg)
{
	struct options o;
	struct error e;

	(void)arg;
	assert_int_equal(read_words("--help", &o, &e), OPTIONS_HELP);
	assert_int_equal(read_words("run --help", &o, &e), OPTIONS_HELP);
	assert_int_equal(read_words("--version", &o, &e), OPTIONS_VERSION);
}

/* What is wrong, and what the text must name. */
static const struct {
	const char *words, *named;
} wrong[] = {
    {"", "no command"},
    {"walk", "\"walk\""},
    {"run", "--profile"},
    {"run --profile", "--profile: needs a value"},
    {"run -P", "-P: needs a value"},
    {"run -P ../x", "--profile"},
    {"run -P p --project", "--project"},
    {"run -P p --project 0", "--project"},
    {"run -P p --project -5", "--project"},
    {"run -P p --project +5", "--project"},
    {"run -P p --project 5,", "--project"},
    {"run -P p --project 5,x", "\"x\""},
    {"run -P p --project 99999999999999999999", "--project"},
    {"run -P p --since -1", "--since"},
    {"run -P p --since 1e3", "--since"},
    {"run -P p --driver vim", "--driver"},
    {"run -P p --hold", "--hold: not in this version"},
    {"run -P p --shadow", "--shadow: not in this version"},
    {"run -P p --frobnicate", "--frobnicate: no such flag"},
    {"run -P p -x", "-x: no such flag"},
    {"run -P p extra", "\"extra\""},
    {"run -P p --insecure=yes", "--insecure"},
    {"--version now", "\"--version\""},
};

static void
test_wrong_words(void **arg)
{
	struct options o;
	struct error e;
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		e.text[0] = '\0';
		if (read_words(wrong[i].words, &o, &e) != OPTIONS_WRONG)
			fail_msg("taken: %s", wrong[i].words);
		if (strstr(e.text, wrong[i].named) == NULL)
			fail_msg("%s: %s", wrong[i].words, e.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_run),
	    cmocka_unit_test(test_projects),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_wrong_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
