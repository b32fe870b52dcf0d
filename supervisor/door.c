#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/door.h"
#include "supervisor/instance.h"

#define BACKLOG 64
/* After EMFILE, or when the socket could not be made again. */
#define TRY_AGAIN_S 1
/* So many refusals are logged, then none until so much later. */
#define REFUSALS_LOGGED 10
#define REFUSALS_AGAIN_MS 60000

struct door {
	struct supervisor *sv;
	struct door_plan plan;
	void *arg;
	const char *name; /* of the socket in the run-time directory */
	struct evconnlistener *listener;
	dev_t dev; /* of the socket's path, to see it replaced */
	ino_t ino;
	int watch_fd; /* on the directory, -1 while it is gone */
	struct event *watch, *again;
	unsigned refusals; /* since then (monotonic) */
	int64_t refusals_since;
};

/* ---- visits -------------------------------------------------------------- */

/* A worker may try without end: that is no reason to fill the log. */
void
door_log_refusal(
    struct door *door, const struct socket_peer *peer, const char *why)
{
	int64_t now = clock_monotonic_ms();

	if (now - door->refusals_since >= REFUSALS_AGAIN_MS)
		door->refusals = 0;
	if (door->refusals == 0)
		door->refusals_since = now;
	if (door->refusals == REFUSALS_LOGGED)
		return;
	door->refusals++;
	log_warnx("%s: pid %ld of uid %ld refused: %s%s", door->plan.what,
	    (long)peer->pid, (long)peer->uid, why,
	    door->refusals == REFUSALS_LOGGED
		? "; further ones are not logged for a minute"
		: "");
}

static void
on_connect(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *address, int len, void *arg)
{
	struct door *door = arg;
	struct socket_peer peer;

	(void)listener;
	(void)address;
	(void)len;
	if (kernel_socket_peer(fd, &peer) == -1) {
		log_warn("%s: no credentials", door->plan.what);
		(void)close(fd);
		return;
	}
	door->plan.visited(fd, &peer, door->arg);
	if (peer.pidfd != -1)
		(void)close(peer.pidfd);
}

static void
door_try_again(struct door *door)
{
	const struct timeval tv = {.tv_sec = TRY_AGAIN_S};

	(void)evtimer_add(door->again, &tv);
}

/* Out of descriptors: those who wait are served when some are free again. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct door *door = arg;

	log_warn("%s: accept", door->plan.what);
	(void)evconnlistener_disable(listener);
	door_try_again(door);
}

/* ---- the socket ---------------------------------------------------------- */

/* Nobody can connect before listen(): then owner and mode are right. */
static int
socket_bind(struct door *door, int fd, struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	mode_t before = umask(0177);
	struct stat st;
	int rc;

	(void)snprintf(
	    sun.sun_path, sizeof(sun.sun_path), "%s", door->plan.path);
	(void)unlink(sun.sun_path);
	rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
	(void)umask(before);
	if (rc == -1 ||
	    (door->plan.group != (gid_t)-1 &&
		lchown(sun.sun_path, geteuid(), door->plan.group) == -1) ||
	    chmod(sun.sun_path, door->plan.mode) == -1 ||
	    lstat(sun.sun_path, &st) == -1)
		return error_errno(e, "%s", sun.sun_path);
	door->dev = st.st_dev;
	door->ino = st.st_ino;
	return 0;
}

static int
socket_make(struct door *door, struct error *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1)
		return error_errno(e, "socket");
	if (socket_bind(door, fd, e) == -1) {
		(void)close(fd);
		return -1;
	}
	door->listener = evconnlistener_new(door->sv->base, on_connect, door,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
	if (door->listener == NULL) {
		(void)close(fd);
		return error_errno(e, "%s: listen", door->plan.path);
	}
	evconnlistener_set_error_cb(door->listener, on_accept_error);
	return 0;
}

/* ---- a socket whose path vanished is made again -------------------------- */

static void on_watch(evutil_socket_t fd, short what, void *arg);

static void
door_watch(struct door *door)
{
	struct supervisor *sv = door->sv;

	door->watch_fd = kernel_watch_open(sv->paths.runtime_dir);
	if (door->watch_fd == -1) {
		door_try_again(door);
		return;
	}
	door->watch = event_new(
	    sv->base, door->watch_fd, EV_READ | EV_PERSIST, on_watch, door);
	if (door->watch == NULL || event_add(door->watch, NULL) == -1)
		fatalx("%s: no event", door->plan.what);
}

static void
door_unwatch(struct door *door)
{
	if (door->watch != NULL)
		event_free(door->watch);
	if (door->watch_fd != -1)
		(void)close(door->watch_fd);
	door->watch = NULL;
	door->watch_fd = -1;
}

static bool
is_in_place(const struct door *door)
{
	struct stat st;

	return lstat(door->plan.path, &st) == 0 && st.st_dev == door->dev &&
	    st.st_ino == door->ino;
}

/*
 * Those who came in stay in. The directory is made and watched anew each
 * time: of its end nothing is said while our socket is in it.
 */
static void
door_mend(struct door *door)
{
	struct error e;

	if (instance_runtime_directory(door->sv, &e) == -1) {
		log_warnx("%s", e.text);
		door_try_again(door);
		return;
	}
	door_unwatch(door);
	door_watch(door);
	if (door->listener != NULL && is_in_place(door)) {
		(void)evconnlistener_enable(door->listener);
		return;
	}
	if (door->listener != NULL)
		evconnlistener_free(door->listener);
	door->listener = NULL;
	if (socket_make(door, &e) == 0) {
		log_warnx("%s had vanished; it is made again", door->plan.path);
		return;
	}
	log_warnx("%s", e.text);
	door_try_again(door);
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct door *door = arg;
	enum watch_news news = kernel_watch_read(fd, door->name);

	(void)what;
	if (news == WATCH_GONE)
		door_unwatch(door);
	if (news == WATCH_GONE || !is_in_place(door))
		door_mend(door);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	door_mend(arg);
}

/* ---- its life ------------------------------------------------------------ */

struct door *
door_open(struct supervisor *sv, const struct door_plan *plan, void *arg,
    struct error *e)
{
	struct door *door = xcalloc(1, sizeof(*door));

	door->sv = sv;
	door->plan = *plan;
	door->arg = arg;
	door->name = strrchr(plan->path, '/') + 1;
	door->watch_fd = -1;
	door->again = evtimer_new(sv->base, on_again, door);
	if (door->again == NULL)
		fatalx("%s: no event", plan->what);
	if (socket_make(door, e) == 0) {
		door_watch(door);
		return door;
	}
	door_close(door);
	return NULL;
}

void
door_close(struct door *door)
{
	if (door == NULL)
		return;
	door_unwatch(door);
	if (door->listener != NULL && is_in_place(door))
		(void)unlink(door->plan.path);
	if (door->listener != NULL)
		evconnlistener_free(door->listener);
	event_free(door->again);
	free(door);
}
