/* Descriptors over a real socketpair: all that was sent, or none and a word. */
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"

#define FD_END 256

struct scene {
	int pair[2];
	int pipe[2]; /* what is sent */
	int before;  /* descriptors open */
};
static struct scene scene;

static int
descriptors_open(void)
{
	int fd, count = 0;

	for (fd = 0; fd < FD_END; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static int
scene_set_up(void **state)
{
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, scene.pair));
	assert_int_equal(0, pipe(scene.pipe));
	scene.before = descriptors_open();
	return 0;
}

static int
scene_tear_down(void **state)
{
	(void)close(scene.pair[0]);
	(void)close(scene.pair[1]);
	(void)close(scene.pipe[0]);
	(void)close(scene.pipe[1]);
	return 0;
}

/* "word", with the pipe's reading end COUNT times. */
static void
send_word(size_t count)
{
	int fds[DESCRIPTORS_MOST];
	size_t i;

	for (i = 0; i < DESCRIPTORS_MOST; i++)
		fds[i] = scene.pipe[0];
	assert_int_equal(4,
	    descriptors_send(
		scene.pair[0], "word", 4, fds, count, MSG_DONTWAIT));
}

static ssize_t
receive(int *fds, size_t count)
{
	char bytes[16];

	return descriptors_receive(
	    scene.pair[1], bytes, sizeof(bytes), fds, count, MSG_DONTWAIT);
}

static void
assert_nothing_kept(const int *fds, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		assert_int_equal(-1, fds[i]);
	assert_int_equal(scene.before, descriptors_open());
}

static void
one_comes_beside_the_bytes(void **state)
{
	int fd, none = -1;
	char byte;

	send_word(1);
	assert_int_equal(4, receive(&fd, 1));
	assert_int_equal(FD_CLOEXEC, fcntl(fd, F_GETFD));
	assert_int_equal(1, write(scene.pipe[1], "x", 1));
	assert_int_equal(1, read(fd, &byte, 1));
	(void)close(fd);
	assert_int_equal(
	    1, descriptors_send(scene.pair[0], "y", 1, &none, 1, 0));
	assert_int_equal(1, receive(&fd, 1));
	assert_nothing_kept(&fd, 1);
}

static void
as_many_come_as_may(void **state)
{
	int fds[DESCRIPTORS_MOST];
	size_t i;

	send_word(DESCRIPTORS_MOST);
	assert_int_equal(4, receive(fds, DESCRIPTORS_MOST));
	for (i = 0; i < DESCRIPTORS_MOST; i++) {
		assert_int_equal(FD_CLOEXEC, fcntl(fds[i], F_GETFD));
		(void)close(fds[i]);
	}
	send_word(2);
	assert_int_equal(4, receive(fds, 3));
	assert_int_equal(-1, fds[2]);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(scene.before, descriptors_open());
}

/* A second one fits into the room that alignment adds; a third is cut off. */
static void
a_surplus_is_closed(void **state)
{
	int fds[DESCRIPTORS_MOST];
	size_t room, sent;

	for (room = 0; room < DESCRIPTORS_MOST; room++) {
		for (sent = room + 1; sent <= DESCRIPTORS_MOST; sent++) {
			send_word(sent);
			errno = 0;
			assert_int_equal(-1, receive(fds, room));
			assert_int_equal(EBADMSG, errno);
			assert_nothing_kept(fds, room);
		}
	}
}

/* We may open one more, and two were sent: the other is lost on its way. */
static void
a_loss_is_told(void **state)
{
	struct rlimit was, one_more;
	int fds[2], error, spare;
	ssize_t n;

	send_word(2);
	spare = dup(0);
	assert_int_equal(0, close(spare)); /* the next to be given */
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &was));
	one_more = was;
	one_more.rlim_cur = (rlim_t)spare + 1;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &one_more));
	errno = 0;
	n = receive(fds, 2);
	error = errno;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &was));
	assert_int_equal(-1, n);
	assert_int_equal(EBADMSG, error);
	assert_nothing_kept(fds, 2);
}

static void
what_the_kernel_says_is_passed_on(void **state)
{
	int fd = scene.pipe[0];

	assert_int_equal(-1, receive(&fd, 1));
	assert_int_equal(EAGAIN, errno);
	assert_nothing_kept(&fd, 1);
	(void)close(scene.pair[0]);
	scene.pair[0] = -1;
	assert_int_equal(0, receive(&fd, 1));
	assert_int_equal(-1, fd);
	assert_int_equal(
	    -1, descriptors_send(scene.pair[1], "x", 1, &scene.pipe[0], 1, 0));
	assert_int_equal(EPIPE, errno);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(one_comes_beside_the_bytes),
	    TEST(as_many_come_as_may),
	    TEST(a_surplus_is_closed),
	    TEST(a_loss_is_told),
	    TEST(what_the_kernel_says_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
