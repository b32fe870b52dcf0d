#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/accounts.h"
#include "supervisor/client.h"
#include "supervisor/instance.h"

#define BACKLOG 64
/* After EMFILE, or when the socket could not be made again. */
#define TRY_AGAIN_S 1
/* Between two looks at who has the path, when that may pass. */
#define LOOK_AGAIN_MS 20
/* So many refusals are logged, then none until so much later. */
#define REFUSALS_LOGGED 10
#define REFUSALS_AGAIN_MS 60000

struct control {
	struct supervisor *sv;
	gid_t group;
	const char *name; /* of the socket in the run-time directory */
	struct evconnlistener *listener;
	dev_t dev; /* of the socket's path, to see it replaced */
	ino_t ino;
	int watch_fd; /* on the directory, -1 while it is gone */
	struct event *watch, *again;
	struct client_list clients;
	unsigned refusals; /* since then (monotonic) */
	int64_t refusals_since;
};

/* ---- who may ------------------------------------------------------------- */

static bool
may_read(const struct supervisor *sv, int fd, gid_t group,
    const struct socket_peer *peer)
{
	if (peer->uid == 0 || peer->uid == geteuid())
		return true;
	return sv->is_root && kernel_socket_peer_in_group(fd, peer, group);
}

/*
 * A worker is not the operator, whatever its uid. The chain is read after the
 * connect, so its first link must still be the process that connected.
 */
static const char *
descends_from_us(struct supervisor *sv, const struct socket_peer *peer)
{
	int held, ours;

	if (peer->pid <= 0)
		return "its process cannot be told";
	held = attempts_hold_pid(sv, peer->pid);
	ours = identity_descends(peer->pid, getpid());
	if (held == 1 || ours == 1)
		return "it belongs to a worker";
	if (held != 0 || ours != 0 || !kernel_socket_peer_lives(peer))
		return "where it comes from cannot be read";
	return NULL;
}

enum control_right
control_vet(struct supervisor *sv, int fd, gid_t group,
    const struct socket_peer *peer, const char **why)
{
	*why = "its user is neither root, nor ours, nor of the "
	       "group " CONTROL_GROUP;
	if (!may_read(sv, fd, group, peer))
		return CONTROL_NONE;
	*why = descends_from_us(sv, peer);
	if (*why != NULL)
		return CONTROL_NONE;
	return peer->uid == 0 || peer->uid == geteuid() ? CONTROL_CHANGE
							: CONTROL_READ;
}

static size_t
clients_of(const struct control *control, uid_t uid)
{
	const struct client *client;
	size_t count = 0;

	TAILQ_FOREACH (client, &control->clients, entry)
		count += client->uid == uid;
	return count;
}

/* A word for the one who is turned away, if it listens; nothing waits. */
static void
turn_away(int fd, const char *why)
{
	char line[256];
	int n;

	n = snprintf(line, sizeof(line),
	    "{\"ok\":false,\"error\":\"refused\",\"text\":\"%s\"}\n", why);
	(void)send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(fd);
}

/* A worker may try without end: that is no reason to fill the log. */
static void
log_refusal(
    struct control *control, const struct socket_peer *peer, const char *why)
{
	int64_t now = clock_monotonic_ms();

	if (now - control->refusals_since >= REFUSALS_AGAIN_MS)
		control->refusals = 0;
	if (control->refusals == 0)
		control->refusals_since = now;
	if (control->refusals == REFUSALS_LOGGED)
		return;
	control->refusals++;
	log_warnx("control socket: pid %ld of uid %ld refused: %s%s",
	    (long)peer->pid, (long)peer->uid, why,
	    control->refusals == REFUSALS_LOGGED
		? "; further ones are not logged for a minute"
		: "");
}

static void
on_connect(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *address, int len, void *arg)
{
	struct control *control = arg;
	struct socket_peer peer;
	enum control_right right;
	const char *why = "no credentials";

	(void)listener;
	(void)address;
	(void)len;
	if (kernel_socket_peer(fd, &peer) == -1) {
		turn_away(fd, why);
		return;
	}
	right = control_vet(control->sv, fd, control->group, &peer, &why);
	if (right != CONTROL_NONE &&
	    clients_of(control, peer.uid) >= CONTROL_CLIENTS_MAX) {
		right = CONTROL_NONE;
		why = "too many connections of this user";
	}
	if (right == CONTROL_NONE) {
		log_refusal(control, &peer, why);
		turn_away(fd, why);
	} else {
		(void)client_new(
		    control->sv, &control->clients, fd, peer.uid, right);
	}
	if (peer.pidfd != -1)
		(void)close(peer.pidfd);
}

/* ---- the socket ---------------------------------------------------------- */

static void
control_try_again(struct control *control)
{
	const struct timeval tv = {.tv_sec = TRY_AGAIN_S};

	(void)evtimer_add(control->again, &tv);
}

/* Out of descriptors: those who wait are served when some are free again. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	log_warn("control socket: accept");
	(void)evconnlistener_disable(listener);
	control_try_again(arg);
}

static void
address_of(const struct control *control, struct sockaddr_un *sun)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	(void)snprintf(sun->sun_path, sizeof(sun->sun_path), "%s",
	    control->sv->paths.control_socket);
}

enum server { SERVER_NONE, SERVER_SILENT, SERVER_GREETS };

static enum server
look_who_serves(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	enum server who = SERVER_NONE;
	char c;

	if (fd == -1)
		return SERVER_NONE;
	if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0) {
		if (poll(&pfd, 1, LOOK_AGAIN_MS) != 1)
			who = SERVER_SILENT;
		else if (read(fd, &c, 1) == 1)
			who = SERVER_GREETS;
	} else if (errno == EAGAIN) { /* its backlog is full */
		who = SERVER_SILENT;
		(void)poll(NULL, 0, LOOK_AGAIN_MS);
	}
	(void)close(fd);
	return who;
}

/*
 * Does somebody answer at that path already? A child that a dead connector
 * had just forked has the socket open until its exec, and never answers.
 */
static bool
is_served(const struct sockaddr_un *sun)
{
	int64_t until = clock_monotonic_ms() + INSTANCE_WAIT_MS;
	enum server who;

	do {
		who = look_who_serves(sun);
	} while (who == SERVER_SILENT && clock_monotonic_ms() < until);
	return who != SERVER_NONE;
}

/* Nobody can connect before listen(): then owner and mode are right. */
static int
socket_bind(
    struct control *control, int fd, struct sockaddr_un *sun, struct error *e)
{
	mode_t before = umask(0177), mode = control->sv->is_root ? 0660 : 0600;
	struct stat st;
	int rc;

	(void)unlink(sun->sun_path);
	rc = bind(fd, (const struct sockaddr *)sun, sizeof(*sun));
	(void)umask(before);
	if (rc == -1 ||
	    (control->sv->is_root &&
		lchown(sun->sun_path, geteuid(), control->group) == -1) ||
	    chmod(sun->sun_path, mode) == -1 || lstat(sun->sun_path, &st) == -1)
		return error_errno(e, "%s", sun->sun_path);
	control->dev = st.st_dev;
	control->ino = st.st_ino;
	return 0;
}

static int
socket_make(struct control *control, struct error *e)
{
	struct sockaddr_un sun;
	int fd;

	address_of(control, &sun);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return error_errno(e, "socket");
	if (socket_bind(control, fd, &sun, e) == -1) {
		(void)close(fd);
		return -1;
	}
	control->listener =
	    evconnlistener_new(control->sv->base, on_connect, control,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
	if (control->listener == NULL) {
		(void)close(fd);
		return error_errno(e, "%s: listen", sun.sun_path);
	}
	evconnlistener_set_error_cb(control->listener, on_accept_error);
	return 0;
}

/* ---- a socket whose path vanished is made again -------------------------- */

static void on_watch(evutil_socket_t fd, short what, void *arg);

static void
control_watch(struct control *control)
{
	struct supervisor *sv = control->sv;

	control->watch_fd = kernel_watch_open(sv->paths.runtime_dir);
	if (control->watch_fd == -1) {
		control_try_again(control);
		return;
	}
	control->watch = event_new(sv->base, control->watch_fd,
	    EV_READ | EV_PERSIST, on_watch, control);
	if (control->watch == NULL || event_add(control->watch, NULL) == -1)
		fatalx("control socket: no event");
}

static void
control_unwatch(struct control *control)
{
	if (control->watch != NULL)
		event_free(control->watch);
	if (control->watch_fd != -1)
		(void)close(control->watch_fd);
	control->watch = NULL;
	control->watch_fd = -1;
}

static bool
is_in_place(const struct control *control)
{
	struct stat st;

	return lstat(control->sv->paths.control_socket, &st) == 0 &&
	    st.st_dev == control->dev && st.st_ino == control->ino;
}

/*
 * Those who are connected stay connected. The directory is made and watched
 * anew each time: of its end nothing is said while our socket is in it.
 */
static void
control_mend(struct control *control)
{
	struct error e;

	if (instance_runtime_directory(control->sv, &e) == -1) {
		log_warnx("%s", e.text);
		control_try_again(control);
		return;
	}
	control_unwatch(control);
	control_watch(control);
	if (control->listener != NULL && is_in_place(control)) {
		(void)evconnlistener_enable(control->listener);
		return;
	}
	if (control->listener != NULL)
		evconnlistener_free(control->listener);
	control->listener = NULL;
	if (socket_make(control, &e) == 0) {
		log_warnx("%s had vanished; it is made again",
		    control->sv->paths.control_socket);
		return;
	}
	log_warnx("%s", e.text);
	control_try_again(control);
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;
	enum watch_news news = kernel_watch_read(fd, control->name);

	(void)what;
	if (news == WATCH_GONE)
		control_unwatch(control);
	if (news == WATCH_GONE || !is_in_place(control))
		control_mend(control);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	control_mend(arg);
}

/* ---- its life ------------------------------------------------------------ */

int
control_open(struct supervisor *sv, struct error *e)
{
	struct control *control = xcalloc(1, sizeof(*control));
	struct sockaddr_un sun;

	control->sv = sv;
	control->watch_fd = -1;
	TAILQ_INIT(&control->clients);
	sv->control = control;
	control->name = strrchr(sv->paths.control_socket, '/') + 1;
	control->again = evtimer_new(sv->base, on_again, control);
	if (control->again == NULL)
		fatalx("control socket: no event");
	if (accounts_control_group(sv, &control->group, e) == -1)
		return -1;
	address_of(control, &sun);
	if (is_served(&sun)) {
		(void)error_set(e,
		    "%s: a connector already serves this "
		    "profile",
		    sun.sun_path);
		e->code = EADDRINUSE;
		return -1;
	}
	if (socket_make(control, e) == -1)
		return -1;
	control_watch(control);
	return 0;
}

void
control_close(struct supervisor *sv)
{
	struct control *control = sv->control;
	struct client *client;

	if (control == NULL)
		return;
	control_unwatch(control);
	if (control->listener != NULL && is_in_place(control))
		(void)unlink(sv->paths.control_socket);
	if (control->listener != NULL)
		evconnlistener_free(control->listener);
	while ((client = TAILQ_FIRST(&control->clients)) != NULL)
		client_free(client);
	event_free(control->again);
	free(control);
	sv->control = NULL;
}

void
control_publish(struct control *control, const char *line)
{
	struct client *client, *next;

	for (client = TAILQ_FIRST(&control->clients); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, entry);
		client_publish(client, line);
	}
}

void
control_child_changed(struct control *control, const struct child *c)
{
	struct client *client, *next;

	for (client = TAILQ_FIRST(&control->clients); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, entry);
		command_child_changed(client, c);
	}
}
