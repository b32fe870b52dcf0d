/* Lines to a stderr that nobody may be reading. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"

#define MOST 65536

/* Ours is put back: cmocka prints to it. */
static struct {
	int reader, stderr_before;
} stage;

static int
stage_set_up(void **state)
{
	int pipe_fds[2];

	if (pipe2(pipe_fds, O_CLOEXEC) == -1)
		return -1;
	stage.reader = pipe_fds[0];
	stage.stderr_before = dup(STDERR_FILENO);
	(void)dup2(pipe_fds[1], STDERR_FILENO);
	(void)close(pipe_fds[1]);
	(void)fcntl(stage.reader, F_SETFL, O_NONBLOCK);
	log_bound_stderr(MOST);
	return 0;
}

static int
stage_tear_down(void **state)
{
	(void)dup2(stage.stderr_before, STDERR_FILENO);
	(void)close(stage.stderr_before);
	(void)close(stage.reader);
	return 0;
}

/* What came, and how much of it. */
static size_t
drain(void)
{
	char room[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = read(stage.reader, room, sizeof(room))) > 0)
		all += (size_t)n;
	return all;
}

/* An alarm ends the test when a line waits. */
static void
a_line_without_room_is_dropped(void **state)
{
	static const char piece[1024];
	int size = fcntl(STDERR_FILENO, F_GETPIPE_SZ), i;

	for (i = 0; i < size; i += (int)sizeof(piece))
		assert_int_equal(
		    sizeof(piece), write(STDERR_FILENO, piece, sizeof(piece)));
	(void)alarm(10);
	log_warnx("nobody reads this");
	(void)alarm(0);
	assert_int_equal(size, drain());
	log_warnx("but this");
	assert_int_equal(strlen(": warn: but this\n"), drain());
}

static void
a_minute_has_its_bound(void **state)
{
	size_t all = 0;
	int i;

	for (i = 0; i < 10000; i++) {
		log_warnx("the same again and again");
		all += drain();
	}
	assert_in_range(all, MOST - 64, MOST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		a_line_without_room_is_dropped, stage_set_up, stage_tear_down),
	    cmocka_unit_test_setup_teardown(
		a_minute_has_its_bound, stage_set_up, stage_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
