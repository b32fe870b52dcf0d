/* Redaction: each rule, their order, and the last line of a stderr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/redact.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) (s), sizeof(s) - 1
#define FFFD UTF8_REPLACEMENT_TEXT

#define C40 "0123456789abcdefghijABCDEFGHIJ_-0123456z"
#define TOKEN "kq3vJ0fB6T-2p9_XsWl4Zr8YnHcUaEoGdIjMbQtVxN1"
#define HIDDEN "[credential redacted]"

static void
assert_redacts(
    const struct redactor *r, const char *text, size_t len, const char *want)
{
	char *copy = xmemdup(text, len), *got, *again;

	got = redact(r, copy, len);
	assert_string_equal(want, got);
	again = redact(r, got, strlen(got));
	assert_string_equal(got, again);
	free(again);
	free(got);
	free(copy);
}

static struct redactor *
make_redactor(void)
{
	struct redactor *r = redactor_new();

	redactor_add_secret(r, "s3c");
	redactor_add_secret(r, "s3cret-value");
	redactor_add_secret(r, "");
	redactor_add_environment(r, "API_KEY", "key123");
	redactor_add_environment(r, "SHORT", "key12");
	redactor_add_environment(r, "HOME", "/home/worker");
	redactor_add_environment(r, "XDG_STATE_HOME", "statehome");
	redactor_add_environment(r, "home", "lowercase-home");
	redactor_add_directory(r, "/run/user/1/bcc/", "/var/run/real");
	redactor_add_directory(r, "/state dir", NULL);
	redactor_add_directory(r, "/state dir/deeper", NULL);
	redactor_add_directory(r, "/", "relative");
	return r;
}

static void
named_values_go(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"", ""},
	    {"nothing here", "nothing here"},
	    {"a s3cret-value b", "a [redacted] b"},
	    {"s3cs3cret-value", "[redacted][redacted]"},
	    {"xs3cx", "x[redacted]x"},
	    {"s3cret-valu", "[redacted]ret-valu"},
	    {"API_KEY=key123;", "API_KEY=[redacted];"},
	    {"key12", "key12"},
	    {"/home/worker statehome", "/home/worker statehome"},
	    {"lowercase-home", "[redacted]"},
	    {"S3CRET-VALUE", "S3CRET-VALUE"},
	};
	struct redactor *r = make_redactor();
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_redacts(
		    r, rows[i].text, strlen(rows[i].text), rows[i].want);
	redactor_free(r);
	redactor_free(NULL);
}

/* Where two overlap, what sticks out of the first goes with it. */
static void
overlapping_values_leave_no_rest(void **state)
{
	struct redactor *r = redactor_new();

	redactor_add_secret(r, "abcdef");
	redactor_add_secret(r, "defghijkl");
	redactor_add_secret(r, "lmn");
	assert_redacts(r, TEXT("abcdefghijklmnop"), "[redacted]op");
	assert_redacts(r, TEXT("abcdefabcdef"), "[redacted][redacted]");
	redactor_free(r);
}

static void
paths_go_to_their_end(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"/run/user/1/bcc", "[connector path]"},
	    {"open /run/user/1/bcc/a/b.sock: no", "open [connector path]: no"},
	    {"'/run/user/1/bcc/a b'", "'[connector path] b'"},
	    {"(/var/run/real/x)", "([connector path])"},
	    {"[/var/run/real/x]", "[[connector path]]"},
	    {"`/var/run/real`;\"/var/run/real\",",
		"`[connector path]`;\"[connector path]\","},
	    {"/var/run/real.", "[connector path]"},
	    {"/var/run/realm/x", "[connector path]"},
	    {"/x/var/run/real/y", "/x[connector path]"},
	    {"/state dir/deeper/x y", "[connector path] y"},
	    {"/state dir/other x", "[connector path] x"},
	    {"/state", "/state"},
	    {"/run/user/1/bc", "/run/user/1/bc"},
	    {"relative / path", "relative / path"},
	    {"/var/run/real\n/var/run/real/z\tq",
		"[connector path]\n[connector path]\tq"},
	};
	struct redactor *r = make_redactor();
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_redacts(
		    r, rows[i].text, strlen(rows[i].text), rows[i].want);
	redactor_free(r);
}

static void
addresses_go(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"a@b.co", "[email redacted]"},
	    {"<john.doe+x_y%z@mail.example.com>", "<[email redacted]>"},
	    {"to: a@b.com, c@d.org.",
		"to: [email redacted], "
		"[email redacted]."},
	    {"a@b.com-", "[email redacted]-"},
	    {"a@b.com1", "[email redacted]"},
	    {"x@y@z.com", "x@[email redacted]"},
	    {"a@b.com@c.com", "[email redacted]@c.com"},
	    {"j\xc3\xbcrgen@b\xc3\xbc"
	     "ro.de",
		"[email redacted]"},
	    {"@b.com", "@b.com"},
	    {"a@b", "a@b"},
	    {"a@b.c", "a@b.c"},
	    {"a@.com", "a@.com"},
	    {"a@b.1", "a@b.1"},
	    {"a@", "a@"},
	    {"@", "@"},
	    {"a @b.com", "a @b.com"},
	    {"git@github.com:x/y", "[email redacted]:x/y"},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_redacts(
		    NULL, rows[i].text, strlen(rows[i].text), rows[i].want);
}

static void
credentials_go(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"Authorization: Bearer abc.DEF~+/=-_9",
		"Authorization: Bearer " HIDDEN},
	    {"bearer \t x!", "bearer \t " HIDDEN "!"},
	    {"BEARER a BEARER b", "BEARER " HIDDEN " BEARER " HIDDEN},
	    {"x-bearer abc", "x-bearer " HIDDEN},
	    {"forbearer abc", "forbearer abc"},
	    {"bearer", "bearer"},
	    {"bearer ", "bearer "},
	    {"bearer:abc", "bearer:abc"},
	    {"bearer [x]", "bearer [x]"},
	    {C40, HIDDEN},
	    {"x=" C40 ";", "x=" HIDDEN ";"},
	    {"0123456789abcdefghijABCDEFGHIJ_-0123456",
		"0123456789abcdefghijABCDEFGHIJ_-0123456"},
	    {TOKEN, HIDDEN},
	    {"--" C40 "--", "--" HIDDEN "--"},
	    {"\xc3\xa9" C40 "\xc3\xa9", "\xc3\xa9" HIDDEN "\xc3\xa9"},
	    {"0123456789abcdefghij.ABCDEFGHIJ0123456789abcd",
		"0123456789abcdefghij.ABCDEFGHIJ0123456789abcd"},
	    {"--------------------------------------------------",
		"--------------------------------------------------"},
	    {"da39a3ee5e6b4b0d3255bfef95601890afd80709", HIDDEN},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_redacts(
		    NULL, rows[i].text, strlen(rows[i].text), rows[i].want);
}

/* Values before paths, paths before addresses, all before runs. */
static void
the_order_is_kept(void **state)
{
	struct redactor *r = redactor_new();

	redactor_add_secret(r, "run");
	redactor_add_directory(r, "/run/x", NULL);
	assert_redacts(r, TEXT("/run/x/y"), "/[redacted]/x/y");
	redactor_free(r);
	r = redactor_new();
	redactor_add_directory(r, "/d", NULL);
	assert_redacts(r, TEXT("/d/me@x.org"), "[connector path]");
	assert_redacts(r, TEXT("/d/" C40), "[connector path]");
	assert_redacts(r, TEXT(C40 "@x.org"), "[email redacted]");
	assert_redacts(r, TEXT("Bearer me@x.org"), "Bearer [email redacted]");
	redactor_free(r);
}

static void
the_result_is_text(void **state)
{
	struct redactor *r = redactor_new();

	redactor_add_secret(r, "\xff\xfe-secret");
	assert_redacts(r, TEXT("a\xff\xfe-secretb\xff"), "a[redacted]b" FFFD);
	assert_redacts(r, TEXT("a\0b"), "a" FFFD "b");
	redactor_free(r);
}

static void
base_names_are_exact(void **state)
{
	static const char *const base[] = {"HOME", "PATH", "USER", "LOGNAME",
	    "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ",
	    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	    "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"};
	static const char *const others[] = {"", "home", "HOME_", "LC_",
	    "LC_MESSAGES", "CODEX_HOME", "BASECAMP_BASE_URL", "PWD"};
	size_t i;

	for (i = 0; i < COUNT(base); i++)
		assert_true(redact_is_base_name(base[i]));
	for (i = 0; i < COUNT(others); i++)
		assert_false(redact_is_base_name(others[i]));
}

static void
assert_last_line(
    const struct redactor *r, const char *text, size_t len, const char *want)
{
	char *copy = xmemdup(text, len);
	char *got = redact_last_line(r, copy, len);

	assert_string_equal(want, got);
	assert_true(strlen(got) <= REDACT_LINE_MAX);
	free(got);
	free(copy);
}

static void
the_last_line_of_a_stderr(void **state)
{
	struct redactor *r = make_redactor();

	assert_last_line(r, TEXT(""), "");
	assert_last_line(r, TEXT(" \n\t\r\n\x1b[0m\n\x07\n"), "");
	assert_last_line(r, TEXT("one\ntwo\n"), "two");
	assert_last_line(r, TEXT("one"), "one");
	assert_last_line(r, TEXT("one\n  \n\x1b[0m\r\n"), "one");
	assert_last_line(r, TEXT("10%\r20%\r"), "20%");
	assert_last_line(r,
	    TEXT("a\x1b[31mb\x07"
		 "c\n"),
	    "ab c");
	assert_last_line(r, TEXT("x\nlost key123 at /state dir/x\n"),
	    "lost [redacted] at [connector path]");
	redactor_free(r);
}

/* A terminal's sequences must not carry a secret past the rules. */
static void
a_secret_cannot_hide_in_a_stderr(void **state)
{
	struct redactor *r = redactor_new();

	redactor_add_secret(r, "BEGIN KEY\nline two  of it\nEND");
	redactor_add_secret(r, "topsecret");
	assert_last_line(
	    r, TEXT("x BEGIN KEY\nline two  of it\nEND\n"), "x [redacted]");
	assert_last_line(r, TEXT("top\x1b[1msecret"), "[redacted]");
	assert_last_line(r, TEXT("me\x1b[0m@x.\x1b[0morg"), "[email redacted]");
	assert_last_line(
	    r, TEXT("0123456789abcdefghij\x1b[mABCDEFGHIJ_-0123456z"), HIDDEN);
	redactor_free(r);
}

static void
the_last_line_keeps_its_end(void **state)
{
	struct buffer b = {0};
	char *got;
	int i;

	buffer_add_text(&b, "start ");
	for (i = 0; i < 150; i++)
		buffer_add_text(&b, "\xe2\x82\xac.");
	buffer_add_text(&b, "end\n");
	got = redact_last_line(NULL, b.bytes, b.len);
	assert_true(strlen(got) <= REDACT_LINE_MAX);
	assert_true(strlen(got) > REDACT_LINE_MAX - 4);
	assert_true(utf8_is_valid(got, strlen(got)));
	assert_string_equal(".end", got + strlen(got) - 4);
	free(got);
	buffer_free(&b);
}

/* Time linear in the text: what is quadratic would take minutes here. */
static void
long_hostile_texts_end_soon(void **state)
{
	static const char *const units[] = {"@", "a@", "a.a@", "a", "-", "_",
	    "bearer ", "bearer", "Bearer\t", " ", "\n", "\x1b]\n", "s3c",
	    "/state dir"};
	struct redactor *r = make_redactor();
	struct buffer b = {0};
	size_t i;

	for (i = 0; i < COUNT(units); i++) {
		b.len = 0;
		while (b.len < 300000)
			buffer_add_text(&b, units[i]);
		free(redact_last_line(r, b.bytes, b.len));
	}
	buffer_free(&b);
	redactor_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(named_values_go),
	    cmocka_unit_test(overlapping_values_leave_no_rest),
	    cmocka_unit_test(paths_go_to_their_end),
	    cmocka_unit_test(addresses_go),
	    cmocka_unit_test(credentials_go),
	    cmocka_unit_test(the_order_is_kept),
	    cmocka_unit_test(the_result_is_text),
	    cmocka_unit_test(base_names_are_exact),
	    cmocka_unit_test(the_last_line_of_a_stderr),
	    cmocka_unit_test(a_secret_cannot_hide_in_a_stderr),
	    cmocka_unit_test(the_last_line_keeps_its_end),
	    cmocka_unit_test(long_hostile_texts_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
