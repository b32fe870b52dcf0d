/* stdout and stderr of connectd: whole lines, or a count of what is lost. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/lines.h"

#define LINES 3000

/* Descriptors 1 and 2 as they are for the test's own words. */
static int kept_out, kept_err;
static struct event_base *base;

static void
put_in_place(int out, int err)
{
	(void)fflush(stdout);
	assert_int_not_equal(dup2(out, STDOUT_FILENO), -1);
	assert_int_not_equal(dup2(err, STDERR_FILENO), -1);
}

static int
set_up(void **state)
{
	(void)state;
	base = event_base_new();
	kept_out = dup(STDOUT_FILENO);
	kept_err = dup(STDERR_FILENO);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	lines_end();
	put_in_place(kept_out, kept_err);
	(void)close(kept_out);
	(void)close(kept_err);
	event_base_free(base);
	return 0;
}

/* All that came so far and comes while the loop runs; NUL-terminated. */
static size_t
read_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		n = read(fd, out + len, size - 1 - len);
		if (n > 0) {
			len += (size_t)n;
			continue;
		}
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
		n = read(fd, out + len, size - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}

/* Every line is whole and in order, or counted where it is missing. */
static void
check_lines(char *text, int count)
{
	char *line, *rest = text;
	int next = 0, number, lost = 0;

	while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
		if (sscanf(line, "{\"type\":\"lost\",\"n\":%d}", &number) ==
		    1) {
			lost += number;
			next += number;
			continue;
		}
		assert_int_equal(sscanf(line, "{\"n\":%d,", &number), 1);
		assert_int_equal(line[strlen(line) - 1], '}');
		assert_int_equal(number, next);
		next++;
	}
	assert_string_equal(line, ""); /* no half line at the end */
	assert_int_equal(next, count);
	assert_true(lost > 0);
}

static void
test_slow_reader_is_told_what_it_lost(void **arg)
{
	char line[1024], *text = malloc(8 * LINES_QUEUE_MAX);
	int fds[2], null = open("/dev/null", O_WRONLY), i;
	size_t len;

	(void)arg;
	assert_int_equal(pipe(fds), 0);
	put_in_place(fds[1], null);
	lines_init(base);
	memset(line, 'x', sizeof(line));
	for (i = 0; i < LINES; i++) { /* three times what the queue takes */
		(void)snprintf(
		    line, sizeof(line), "{\"n\":%d,\"x\":\"%01000d\"}", i, 0);
		lines_publish(line);
	}
	(void)event_base_loop(base, EVLOOP_NONBLOCK); /* must not block */
	len = read_all(fds[0], text, 8 * LINES_QUEUE_MAX);
	lines_publish("{\"n\":3000,\"last\":1}");
	(void)read_all(fds[0], text + len, 8 * LINES_QUEUE_MAX - len);
	put_in_place(kept_out, kept_err);
	check_lines(text, LINES + 1);
	free(text);
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(null);
}

static void
test_log_names_who_said_it(void **arg)
{
	char text[4096];
	int fds[2], null = open("/dev/null", O_WRONLY);

	(void)arg;
	log_init("connectd", LOG_LEVEL_INFO);
	assert_int_equal(pipe(fds), 0);
	put_in_place(null, fds[1]);
	lines_init(base);
	lines_log("connectd-intake", LOG_LEVEL_WARN, "it rains");
	log_info("and we %s", "know");
	(void)read_all(fds[0], text, sizeof(text));
	lines_end();
	log_info("afterwards");
	(void)read_all(
	    fds[0], text + strlen(text), sizeof(text) - strlen(text));
	put_in_place(kept_out, kept_err);
	assert_string_equal(text,
	    "connectd-intake: warn: it rains\n"
	    "connectd: info: and we know\n"
	    "connectd: info: afterwards\n");
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(null);
}

/* epoll does not take them: they are written at once. */
static void
test_files_are_written_at_once(void **arg)
{
	char path[] = "/tmp/connectd-test-XXXXXX", text[64];
	int file = mkstemp(path), null = open("/dev/null", O_WRONLY);
	ssize_t n;

	(void)arg;
	assert_int_not_equal(file, -1);
	put_in_place(file, null);
	lines_init(base);
	lines_publish("{}");
	lines_log("x", LOG_LEVEL_INFO, "to nowhere");
	n = pread(file, text, sizeof(text), 0);
	put_in_place(kept_out, kept_err);
	assert_int_equal(n, 3);
	assert_memory_equal(text, "{}\n", 3);
	(void)unlink(path);
	(void)close(file);
	(void)close(null);
}

/* `connectd run | head -1`: the reader is gone, we are not. */
static void
test_reader_is_gone(void **arg)
{
	int fds[2], null = open("/dev/null", O_WRONLY), i;

	(void)arg;
	assert_int_equal(pipe(fds), 0);
	put_in_place(fds[1], null);
	(void)close(fds[0]);
	(void)close(fds[1]);
	lines_init(base);
	for (i = 0; i < 3; i++) {
		lines_publish("{}");
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
	}
	(void)close(null);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_slow_reader_is_told_what_it_lost),
	    TEST(test_log_names_who_said_it),
	    TEST(test_files_are_written_at_once),
	    TEST(test_reader_is_gone),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as connectd does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
