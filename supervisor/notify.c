#include <sys/socket.h>
#include <sys/un.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/notify.h"

#define NOTIFY_MAX 1024

static struct sockaddr_un address;
static socklen_t address_len; /* 0: nobody asked */
static int64_t watchdog_ms;
static char last_status[NOTIFY_MAX];

/* '@' stands for the NUL of an abstract address. */
static void
address_take(const char *path)
{
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') ||
	    len >= sizeof(address.sun_path))
		return;
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void
watchdog_take(const char *usec, const char *pid)
{
	if (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid())
		return;
	watchdog_ms = strtoll(usec, NULL, 10) / 1000;
	if (watchdog_ms < 0)
		watchdog_ms = 0;
}

void
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const char *usec = getenv("WATCHDOG_USEC");

	address_len = 0;
	watchdog_ms = 0;
	last_status[0] = '\0';
	if (path != NULL)
		address_take(path);
	if (usec != NULL)
		watchdog_take(usec, getenv("WATCHDOG_PID"));
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

int64_t
notify_watchdog_ms(void)
{
	return watchdog_ms;
}

bool
notify_send(const char *fmt, ...)
{
	char text[NOTIFY_MAX];
	va_list ap;
	ssize_t sent;
	int fd, n;

	if (address_len == 0)
		return true;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return false;
	sent = sendto(fd, text, (size_t)n, MSG_NOSIGNAL,
	    (const struct sockaddr *)&address, address_len);
	(void)close(fd);
	return sent == n;
}

void
notify_reloading(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)notify_send("RELOADING=1\nMONOTONIC_USEC=%lld\n",
	    (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void
notify_status(const char *text)
{
	if (strcmp(text, last_status) == 0)
		return;
	if (notify_send("STATUS=%s\n", text))
		(void)snprintf(last_status, sizeof(last_status), "%s", text);
}
