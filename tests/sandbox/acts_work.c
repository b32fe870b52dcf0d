#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/spill.h"
#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

/* All of malloc's ways: the heap, a mapping, growing and giving back. */
int
act_work_memory(void)
{
	char *small = malloc(100), *large = malloc(1 << 20), *larger;

	if (small == NULL || large == NULL)
		return errno;
	memset(large, 1, 1 << 20);
	larger = realloc(large, 64 << 20);
	if (larger == NULL)
		return errno;
	larger[(64 << 20) - 1] = 1;
	free(larger);
	free(small);
	return 0;
}

int
act_work_clock(void)
{
	struct timespec pause = {0, 1000};
	time_t now = time(NULL);
	struct tm tm;

	if (nanosleep(&pause, NULL) == -1)
		return errno;
	return localtime_r(&now, &tm) == NULL ? EINVAL : 0;
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(int *)arg;
}

/* A loop that was made before the walls. */
int
act_work_events(void)
{
	struct timeval soon = {0, 1000};
	int ticks = 0;
	struct event *timer = event_new(scene.base, -1, 0, on_tick, &ticks);

	if (timer == NULL || event_add(timer, &soon) == -1)
		return EINVAL;
	(void)event_base_dispatch(scene.base);
	event_free(timer);
	return ticks == 1 ? 0 : ETIME;
}

int
act_work_memfd(void)
{
	char out[5];
	int fd = spill_make("hello", 5);

	if (fd == -1)
		return errno;
	return spill_read(fd, out, 5) == 0 && memcmp(out, "hello", 5) == 0
	    ? 0
	    : EIO;
}

/* The socketpair is the scene's, as a role's links are its supervisor's. */
int
act_work_pass_descriptor(void)
{
	char byte = 'x';
	int came;

	if (descriptors_send(scene.pair[0], &byte, 1, &scene.file, 1, 0) != 1 ||
	    descriptors_receive(scene.pair[1], &byte, 1, &came, 1, 0) != 1)
		return errno;
	return came != -1 ? 0 : EIO;
}

/* What curl's resolver thread does. */
static void *
resolve(void *arg)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo **out = arg;
	char port[16];

	(void)snprintf(port, sizeof(port), "%u", scene.port);
	if (getaddrinfo("localhost", port, &hints, out) != 0)
		*out = NULL;
	return NULL;
}

int
act_work_resolve_and_connect(void)
{
	struct addrinfo *found = NULL, *at;
	pthread_t thread;
	int fd, rc = ENOENT;

	rc = pthread_create(&thread, NULL, resolve, &found);
	if (rc != 0)
		return rc;
	(void)pthread_join(thread, NULL);
	if (found == NULL)
		return EHOSTUNREACH;
	for (at = found; at != NULL; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC,
		    at->ai_protocol);
		if (fd != -1 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
			break;
		rc = errno;
	}
	freeaddrinfo(found);
	return at != NULL ? 0 : rc;
}

/* Over UDP; whatever the answer, if any, the asking must be possible. */
int
act_work_ask_dns(void)
{
	struct addrinfo *found = NULL;
	int rc = getaddrinfo("walls.invalid", "80", NULL, &found);

	if (rc == 0)
		freeaddrinfo(found);
	return rc == EAI_SYSTEM ? errno : 0;
}

/* The ledger's ways with its file: WAL, a savepoint that spills, checkpoint. */
int
act_work_sqlite(void)
{
	static const char work[] =
	    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
	    "PRAGMA temp_store=MEMORY;"
	    "CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB);"
	    "BEGIN IMMEDIATE; SAVEPOINT s;"
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n"
	    " WHERE i<2000) INSERT INTO t(b) SELECT zeroblob(1000) FROM n;"
	    "UPDATE t SET b=zeroblob(1200); ROLLBACK TO s;"
	    "INSERT INTO t(b) VALUES ('x'); RELEASE s; COMMIT;"
	    "PRAGMA wal_checkpoint(TRUNCATE); VACUUM;";
	char path[PATH_MAX + 16];
	sqlite3 *db = NULL;
	char *text = NULL;
	int error = 0;

	(void)snprintf(path, sizeof(path), "%s/test.db", scene.inside);
	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, work, NULL, NULL, &text) != SQLITE_OK)
		error = sqlite3_system_errno(db) != 0 ? sqlite3_system_errno(db)
						      : EIO;
	(void)sqlite3_close(db);
	return error;
}
