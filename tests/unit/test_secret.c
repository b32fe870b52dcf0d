/* A secret in a body, whatever the renderer made of it (design L8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcpd/markup.h"
#include "outbox/secret.h"

static const char *const secrets[] = {
    "plain-secret-12", "s3cr&t-and-more", "s3cret\"quoted'", "a<b>c12345",
    "s3c*r*et-x-9", "with__two__bars", "[s3c]ret(12)34", "back\\`tick`\\12",
    "p%41ssw\xc3\xb6rd+/=1", "&amp;s3cret&lt;",
    "a&b<c>", /* too few letters to be found by them */
};

/* What a worker may put around it. */
static const struct around {
	const char *before, *behind;
} arounds[] = {
    {"", ""},
    {"see ", " here"},
    {"see `", "` here"},
    {"> - see **", "**"},
    {"    ", ""},
    {"<a title=\"", "\">it</a>"},
    {"[it](http://example.test/?key=", ")"},
    {"<http://example.test/?key=", ">"},
};

typedef char *(*renderer)(const char *text, size_t len, size_t *out_len);

static const renderer renders[] = {
    markup_markdown_html, markup_plain_html, markup_plain_text};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool
is_in_rendered(renderer render, const struct around *around, const char *said,
    const char *secret)
{
	char raw[256], *body;
	size_t len;
	bool found;

	(void)snprintf(
	    raw, sizeof(raw), "%s%s%s", around->before, said, around->behind);
	body = render(raw, strlen(raw), &len);
	found = secret_is_in(secret, body, len);
	if (!found && strcmp(said, secret) == 0)
		print_error("%s: %s\n", raw, body);
	free(body);
	return found;
}

static void
a_secret_is_found_in_every_form(void **state)
{
	size_t i, j, k, missed = 0;

	for (i = 0; i < COUNT(renders); i++)
		for (j = 0; j < COUNT(arounds); j++)
			for (k = 0; k < COUNT(secrets); k++)
				missed += !is_in_rendered(renders[i],
				    &arounds[j], secrets[k], secrets[k]);
	assert_int_equal(0, missed);
}

/* What follows it makes another escape of its end. */
static void
a_secret_is_found_as_it_stands(void **state)
{
	static const struct around around = {"", "1"};

	assert_true(is_in_rendered(
	    markup_plain_text, &around, "<a>s3cret-%4", "<a>s3cret-%4"));
}

/* Somebody who reads it puts it together again. */
static void
marks_and_tags_in_between_do_not_hide_it(void **state)
{
	static const char *const saids[] = {"plain-**secret**-12",
	    "plain-*sec*ret-12", "plain-sec\\ret-12", "plain-&#115;ecret-12"};
	size_t i;

	for (i = 0; i < COUNT(saids); i++)
		assert_true(is_in_rendered(markup_markdown_html, &arounds[1],
		    saids[i], "plain-secret-12"));
}

static void
other_words_are_no_secret(void **state)
{
	static const char *const saids[] = {
	    "", "plain", "secret-12", "plain-secret-1", "PLAIN-SECRET-12"};
	size_t i, j;

	for (i = 0; i < COUNT(renders); i++)
		for (j = 0; j < COUNT(saids); j++)
			assert_false(is_in_rendered(renders[i], &arounds[2],
			    saids[j], "plain-secret-12"));
	/* By seven letters alone nothing is found. */
	assert_false(is_in_rendered(
	    markup_plain_text, &arounds[1], "abcdefg", "abc-defg"));
	assert_true(is_in_rendered(
	    markup_plain_text, &arounds[1], "abcdefgh", "abc-defgh"));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_secret_is_found_in_every_form),
	    cmocka_unit_test(a_secret_is_found_as_it_stands),
	    cmocka_unit_test(marks_and_tags_in_between_do_not_hide_it),
	    cmocka_unit_test(other_words_are_no_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
