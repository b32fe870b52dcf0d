/* What a service manager is told. */
#include <sys/socket.h>
#include <sys/un.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/notify.h"

/* A manager that listens at an abstract address, or at a path. */
struct manager {
	int fd;
	char address[64]; /* as NOTIFY_SOCKET says it */
};

static void
manager_listen(struct manager *m, char first)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	size_t len;

	(void)snprintf(m->address, sizeof(m->address),
	    first == '@' ? "@connectd-test-%ld" : "/tmp/connectd-test-%ld",
	    (long)getpid());
	len = strlen(m->address);
	memcpy(sun.sun_path, m->address, len);
	if (first == '@')
		sun.sun_path[0] = '\0';
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_not_equal(m->fd, -1);
	assert_int_equal(
	    bind(m->fd, (struct sockaddr *)&sun,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
	    0);
	assert_int_equal(setenv("NOTIFY_SOCKET", m->address, 1), 0);
	notify_init();
}

static void
manager_close(struct manager *m)
{
	(void)close(m->fd);
	if (m->address[0] == '/')
		(void)unlink(m->address);
}

/* The next datagram; "" when there is none. */
static const char *
manager_heard(const struct manager *m)
{
	static char text[2048];
	ssize_t n = recv(m->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n == -1 ? 0 : n] = '\0';
	return text;
}

static void
test_both_kinds_of_address(void **arg)
{
	static const char kinds[] = "@/";
	struct manager m;
	size_t i;

	(void)arg;
	for (i = 0; i < 2; i++) {
		manager_listen(&m, kinds[i]);
		assert_null(getenv("NOTIFY_SOCKET"));
		(void)notify_send("READY=%d\n", 1);
		assert_string_equal(manager_heard(&m), "READY=1\n");
		manager_close(&m);
	}
}

static void
test_nobody_asked(void **arg)
{
	static const char *const addresses[] = {"relative", "", "@"};
	size_t i;

	(void)arg;
	(void)unsetenv("NOTIFY_SOCKET");
	notify_init();
	(void)notify_send("READY=1\n");
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		(void)setenv("NOTIFY_SOCKET", addresses[i], 1);
		notify_init();
		(void)notify_send("READY=1\n");
	}
}

static void
test_status_is_said_once(void **arg)
{
	struct manager m;

	(void)arg;
	manager_listen(&m, '@');
	notify_status("running");
	notify_status("running");
	assert_string_equal(manager_heard(&m), "STATUS=running\n");
	assert_string_equal(manager_heard(&m), "");
	notify_status("stopping");
	assert_string_equal(manager_heard(&m), "STATUS=stopping\n");
	manager_close(&m);
}

static void
test_reloading_has_its_stamp(void **arg)
{
	struct manager m;
	long long usec = 0;

	(void)arg;
	manager_listen(&m, '@');
	notify_reloading();
	assert_int_equal(sscanf(manager_heard(&m),
			     "RELOADING=1\nMONOTONIC_USEC=%lld\n", &usec),
	    1);
	assert_true(usec > 0);
	manager_close(&m);
}

static void
test_watchdog(void **arg)
{
	char pid[24];

	(void)arg;
	(void)unsetenv("NOTIFY_SOCKET");
	(void)setenv("WATCHDOG_USEC", "30000000", 1);
	(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	(void)setenv("WATCHDOG_PID", pid, 1);
	notify_init();
	assert_int_equal(notify_watchdog_ms(), 30000);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));

	(void)setenv("WATCHDOG_USEC", "30000000", 1);
	(void)setenv("WATCHDOG_PID", "1", 1); /* meant for somebody else */
	notify_init();
	assert_int_equal(notify_watchdog_ms(), 0);

	(void)setenv("WATCHDOG_USEC", "-5", 1);
	notify_init();
	assert_int_equal(notify_watchdog_ms(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_both_kinds_of_address),
	    cmocka_unit_test(test_nobody_asked),
	    cmocka_unit_test(test_status_is_said_once),
	    cmocka_unit_test(test_reloading_has_its_stamp),
	    cmocka_unit_test(test_watchdog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
