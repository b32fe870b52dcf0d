/*
 * The token's descriptor and the command line (ledger.md 7), function by
 * function; test_token_program.c has the whole program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "mcpd/options.h"
#include "mcpd/server.h"
#include "mcpd/token.h"
#include "tests/unit/trap.h"

#define TOKEN "0123456789abcdefghijklmnopqrstuvwxyzABCDE-_"

/* ---- the number ------------------------------------------------------- */

static const struct number_row {
	const char *text;
	int fd; /* -1: refused */
} number_rows[] = {
    {"3", 3},
    {" 17\n", 17},
    {"0", 0},
    {"007", 7},
    {"2147483647", 2147483647},
    {"2147483648", -1},
    {"99999999999999999999", -1},
    {"", -1},
    {" ", -1},
    {"-1", -1},
    {"+3", -1},
    {"3x", -1},
    {"0x3", -1},
    {"3 4", -1},
    {"3.0", -1},
};

static void
numbers_are_decimal_and_in_range(void **state)
{
	struct error e;
	size_t i;
	int fd, rc;

	for (i = 0; i < sizeof(number_rows) / sizeof(number_rows[0]); i++) {
		fd = -1;
		rc = token_fd_parse(number_rows[i].text, &fd, &e);
		assert_int_equal(number_rows[i].fd == -1 ? -1 : 0, rc);
		assert_int_equal(number_rows[i].fd, fd);
	}
}

/* ---- the descriptor --------------------------------------------------- */

static void
assert_refused_untouched(int fd)
{
	int before = fcntl(fd, F_GETFL);
	struct error e;

	assert_null(token_read(fd, &e));
	assert_int_equal(before, fcntl(fd, F_GETFL));
}

static void
what_is_no_pipe_stays_as_it_was(void **state)
{
	char path[] = "/tmp/test_token.XXXXXX", byte;
	int file = mkstemp(path), dir = open("/", O_RDONLY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(5, write(file, "token", 5));
	assert_int_equal(1, lseek(file, 1, SEEK_SET));
	assert_refused_untouched(file);
	assert_int_equal(1, lseek(file, 0, SEEK_CUR));
	assert_int_equal(1, read(file, &byte, 1));
	assert_refused_untouched(dir);
	assert_refused_untouched(null);
	(void)close(file);
	(void)close(dir);
	(void)close(null);
	(void)unlink(path);
}

static void
low_and_closed_numbers_are_refused(void **state)
{
	struct error e;
	int fd;

	for (fd = 0; fd < 3; fd++)
		assert_refused_untouched(fd);
	assert_null(token_read(999, &e));
	assert_non_null(strstr(e.text, "999"));
}

/* What the writer wrote; then its end, if it closes. */
static char *
read_written(const char *bytes, size_t len, bool closes, struct error *e)
{
	int fds[2];
	char *token;

	assert_int_equal(0, pipe2(fds, O_CLOEXEC));
	assert_int_equal((ssize_t)len, write(fds[1], bytes, len));
	if (closes)
		(void)close(fds[1]);
	e->text[0] = '\0';
	token = token_read(fds[0], e);
	/* Ours from the first byte on: closed whatever came of it. */
	assert_int_equal(-1, fcntl(fds[0], F_GETFD));
	assert_int_equal(EBADF, errno);
	if (!closes)
		(void)close(fds[1]);
	return token;
}

static const struct text_row {
	const char *text;
	bool closes;
	const char *token; /* NULL: refused */
} text_rows[] = {
    {TOKEN "\n", false, TOKEN},
    {TOKEN, true, TOKEN},
    {TOKEN "\nrest", false, TOKEN},
    {" \t" TOKEN " \r\n", true, TOKEN},
    {"tok\nrest", true, "tok"},
    {"", true, NULL},
    {"\n", false, NULL},
    {" \t\r\n", true, NULL},
};

static void
the_token_is_one_trimmed_line(void **state)
{
	const struct text_row *row;
	struct error e;
	char *token;
	size_t i;

	for (i = 0; i < sizeof(text_rows) / sizeof(text_rows[0]); i++) {
		row = &text_rows[i];
		token =
		    read_written(row->text, strlen(row->text), row->closes, &e);
		if (row->token == NULL) {
			assert_null(token);
			assert_string_not_equal("", e.text);
		} else {
			assert_string_equal(row->token, token);
		}
		token_free(token);
	}
}

static void
a_token_has_its_bound(void **state)
{
	char bytes[TOKEN_READ_MAX + 1];
	struct error e;
	char *token;

	memset(bytes, 'x', sizeof(bytes));
	token = read_written(bytes, TOKEN_READ_MAX, true, &e);
	assert_int_equal(TOKEN_READ_MAX, strlen(token));
	token_free(token);
	assert_null(read_written(bytes, TOKEN_READ_MAX + 1, true, &e));
	assert_non_null(strstr(e.text, "too long"));
	assert_null(strstr(e.text, "xxx"));
	assert_null(read_written("a\0b\n", 4, true, &e));
}

static void
a_socket_hands_over_as_well(void **state)
{
	struct error e;
	int fds[2];
	char *token;

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	assert_int_equal(4, write(fds[1], "abc\n", 4));
	token = token_read(fds[0], &e);
	assert_string_equal("abc", token);
	token_free(token);
	assert_int_equal(-1, fcntl(fds[0], F_GETFD));
	(void)close(fds[1]);
}

static void
a_silent_writer_is_not_waited_for(void **state)
{
	struct error e;
	int64_t from = clock_monotonic_ms();

	assert_null(read_written("half", 4, false, &e));
	assert_in_range(clock_monotonic_ms() - from, 4900, 8000);
	assert_non_null(strstr(e.text, "5 s"));
}

static void
a_write_end_is_closed_all_the_same(void **state)
{
	struct error e;
	int fds[2];

	assert_int_equal(0, pipe2(fds, O_CLOEXEC));
	(void)close(fds[0]);
	assert_null(token_read(fds[1], &e));
	assert_int_equal(-1, fcntl(fds[1], F_GETFD));
}

/* ---- the command line ------------------------------------------------- */

#define STATE "--connect-state", "/s"
#define FD_9 "--connect-token-fd", "9"

static const struct words_row {
	const char *words[8];
	bool has_variable;
	const char *error; /* a part of it; NULL: accepted */
	bool keeps_variable;
} words_rows[] = {
    {{STATE, FD_9}, false, NULL, false},
    {{STATE, "--connect-token-fd=9", "--supervised"}, false, NULL, false},
    {{STATE, FD_9, "--domains", "thread"}, false, NULL, false},
    {{STATE, FD_9, "--domains", "connect,thread"}, false, NULL, false},
    {{STATE, FD_9, "--domains", "cards"}, false, "--domains", false},
    {{STATE, FD_9, "--domains", ""}, false, "--domains", false},
    {{STATE, FD_9, "--read-only"}, false, "--read-only", false},
    {{STATE, FD_9, "--read-only"}, true, "--read-only", true},
    {{"--read-only"}, true, TOKEN_VARIABLE, false},
    {{"--read-only"}, false, "--read-only", false},
    {{STATE, FD_9}, true, TOKEN_VARIABLE, false},
    {{STATE}, true, TOKEN_VARIABLE, false},
    {{NULL}, true, TOKEN_VARIABLE, false},
    {{"--help"}, true, TOKEN_VARIABLE, false},
    {{"--help"}, false, NULL, false},
    {{"--version"}, false, NULL, false},
    {{FD_9}, false, "--connect-state", false},
    {{"--connect-state", " ", FD_9}, false, "--connect-state", false},
    {{STATE}, false, "--connect-token-fd", false},
    {{STATE, "--connect-token-fd", ""}, false, "--connect-token-fd", false},
    {{STATE, FD_9, "more"}, false, "more", false},
    {{STATE, FD_9, "--frob"}, false, "--frob", false},
    {{STATE, "--connect-token-fd"}, false, "--connect-token-fd", false},
    {{NULL}, false, "--connect-state", false},
};

static void
words_are_judged_in_order(void **state)
{
	const struct words_row *row;
	struct options options;
	char *argv[10] = {(char *)"connectd-mcpd"};
	struct error e;
	size_t i, n;
	int rc;

	for (i = 0; i < sizeof(words_rows) / sizeof(words_rows[0]); i++) {
		row = &words_rows[i];
		(void)unsetenv(TOKEN_VARIABLE);
		if (row->has_variable)
			(void)setenv(TOKEN_VARIABLE, TOKEN, 1);
		for (n = 0; n < 8 && row->words[n] != NULL; n++)
			argv[n + 1] = (char *)row->words[n];
		argv[n + 1] = NULL;
		rc = options_read((int)n + 1, argv, &options, &e);
		assert_int_equal(row->error == NULL ? 0 : -1, rc);
		if (rc == -1) {
			if (strstr(e.text, row->error) == NULL)
				fail_msg("row %zu: %s", i, e.text);
			assert_null(strstr(e.text, TOKEN));
		}
		assert_int_equal(
		    row->keeps_variable, getenv(TOKEN_VARIABLE) != NULL);
	}
	(void)unsetenv(TOKEN_VARIABLE);
}

static void
the_last_number_counts_and_connect_is_always_served(void **state)
{
	char *argv[] = {(char *)"m", (char *)"--connect-state", (char *)"/s",
	    (char *)"--connect-token-fd", (char *)"8",
	    (char *)"--connect-token-fd", (char *)"9", (char *)"--domains",
	    (char *)"thread", NULL};
	struct options options;
	struct error e;

	assert_int_equal(0, options_read(9, argv, &options, &e));
	assert_string_equal("9", options.token_fd);
	assert_int_equal(DOMAIN_CONNECT | DOMAIN_THREAD, options.domains);
	argv[8] = (char *)"connect";
	assert_int_equal(0, options_read(9, argv, &options, &e));
	assert_int_equal(DOMAIN_CONNECT, options.domains);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers_are_decimal_and_in_range),
	    TRAP("T82", what_is_no_pipe_stays_as_it_was, NULL, NULL),
	    TRAP("T83", low_and_closed_numbers_are_refused, NULL, NULL),
	    TRAP("T85", the_token_is_one_trimmed_line, NULL, NULL),
	    TRAP("T85", a_token_has_its_bound, NULL, NULL),
	    cmocka_unit_test(a_socket_hands_over_as_well),
	    TRAP("T84", a_silent_writer_is_not_waited_for, NULL, NULL),
	    cmocka_unit_test(a_write_end_is_closed_all_the_same),
	    TRAP("T81 T88", words_are_judged_in_order, NULL, NULL),
	    cmocka_unit_test(
		the_last_number_counts_and_connect_is_always_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
