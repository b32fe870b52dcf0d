#include <sys/queue.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/kernel.h"
#include "supervisor/listener.h"
#include "supervisor/spawn.h"

/* In one turn of the loop; the others have work too. */
#define ACCEPTS_MAX 8
/* After this many refusals of one attempt the log has seen enough. */
#define REFUSALS_LOGGED 10

/* A process that connected, for as long as somebody asks. */
struct bridge {
	struct identity who;
	int pidfd;
};

struct visitor {
	TAILQ_ENTRY(visitor) entry;
	struct bridge bridge;
	int stream;
};

struct listener {
	struct event_base *base;
	char attempt[32];
	int fd;
	listener_pass pass;
	void *arg;
	uid_t uid;
	struct identity leader;
	char *cgroup;
	struct event *readable, *pause;
	struct event *ended; /* of the connected bridge; NULL: none is */
	struct bridge connected;
	struct identity known[LISTENER_BRIDGES_MAX];
	size_t known_count, waiting_count;
	TAILQ_HEAD(, visitor) waiting; /* oldest first */
	unsigned refusals;
};

static bool
is_same(const struct identity *a, const struct identity *b)
{
	return a->pid == b->pid && a->started_ticks == b->started_ticks;
}

static void
close_if_open(int fd)
{
	if (fd != -1)
		(void)close(fd);
}

static void
visitor_drop(struct listener *l, struct visitor *v)
{
	TAILQ_REMOVE(&l->waiting, v, entry);
	l->waiting_count--;
	close_if_open(v->stream);
	close_if_open(v->bridge.pidfd);
	free(v);
}

/* ---- serving ------------------------------------------------------------ */

static void
bridge_gone(struct listener *l)
{
	if (l->ended == NULL)
		return;
	event_free(l->ended);
	l->ended = NULL;
	close_if_open(l->connected.pidfd);
}

static void
on_bridge_ended(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	bridge_gone(arg);
	listener_serve(arg);
}

/* The place is taken until this process ends. */
static void
bridge_connected(struct listener *l, struct visitor *v)
{
	bridge_gone(l);
	l->connected = v->bridge;
	v->bridge.pidfd = -1;
	l->ended =
	    event_new(l->base, l->connected.pidfd, EV_READ, on_bridge_ended, l);
	if (l->ended == NULL)
		fatalx("%s: no event", l->attempt);
	(void)event_add(l->ended, NULL);
}

static bool
visitor_lives(const struct visitor *v)
{
	const struct socket_peer peer = {.pidfd = v->bridge.pidfd};

	return kernel_socket_peer_lives(&peer);
}

/* The next that may have the place: a bridge that comes again has it. */
static struct visitor *
visitor_next(struct listener *l)
{
	struct visitor *v, *next;

	for (v = TAILQ_FIRST(&l->waiting); v != NULL; v = next) {
		next = TAILQ_NEXT(v, entry);
		if (!visitor_lives(v))
			visitor_drop(l, v);
		else if (l->ended == NULL ||
		    is_same(&v->bridge.who, &l->connected.who))
			return v;
	}
	return NULL;
}

void
listener_serve(struct listener *l)
{
	struct visitor *v;

	while ((v = visitor_next(l)) != NULL) {
		if (!l->pass(v->stream, l->arg))
			return;
		v->stream = -1;
		bridge_connected(l, v);
		visitor_drop(l, v);
	}
}

/* ---- vetting ------------------------------------------------------------ */

static bool
is_of_the_tree(const struct listener *l, pid_t pid)
{
	if (l->cgroup != NULL && cgroup_holds(l->cgroup, pid) == 1)
		return true;
	return identity_descends(pid, l->leader.pid) == 1;
}

/* Its place among the processes counted; false when they are too many. */
static bool
bridge_count(struct listener *l, const struct identity *who)
{
	size_t i;

	for (i = 0; i < l->known_count; i++) {
		if (is_same(&l->known[i], who))
			return true;
	}
	if (l->known_count == LISTENER_BRIDGES_MAX)
		return false;
	l->known[l->known_count++] = *who;
	return true;
}

/* NULL when it may come in, else why not. */
static const char *
vet(struct listener *l, const struct socket_peer *peer, struct identity *who)
{
	struct error e;

	if (peer->uid != l->uid)
		return "another user";
	if (peer->pid <= 0 || peer->pidfd == -1 ||
	    identity_read(peer->pid, who, &e) == -1)
		return "its process is gone, or cannot be told";
	if (!is_of_the_tree(l, peer->pid))
		return "not a process of this worker";
	/* What was read of that pid was this process's: it lives yet. */
	if (!kernel_socket_peer_lives(peer))
		return "its process is gone";
	if (!bridge_count(l, who))
		return "too many bridge processes";
	return NULL;
}

static void
refuse(struct listener *l, const struct socket_peer *peer, const char *why)
{
	l->refusals++;
	if (l->refusals > REFUSALS_LOGGED)
		return;
	log_warnx("%s: refused a connection to its socket (pid %d, uid %u): "
		  "%s%s",
	    l->attempt, (int)peer->pid, peer->uid, why,
	    l->refusals == REFUSALS_LOGGED ? "; further ones are not logged"
					   : "");
}

/* A bridge that comes again has given up what waits of it. */
static void
visitor_add(struct listener *l, const struct bridge *bridge, int stream)
{
	struct visitor *v, *next;

	for (v = TAILQ_FIRST(&l->waiting); v != NULL; v = next) {
		next = TAILQ_NEXT(v, entry);
		if (is_same(&v->bridge.who, &bridge->who))
			visitor_drop(l, v);
	}
	v = xcalloc(1, sizeof(*v));
	v->bridge = *bridge;
	v->stream = stream;
	TAILQ_INSERT_TAIL(&l->waiting, v, entry);
	l->waiting_count++;
}

static void
take(struct listener *l, int stream)
{
	struct socket_peer peer = {.pidfd = -1};
	struct bridge bridge = {.pidfd = -1};
	const char *why;

	if (kernel_socket_peer(stream, &peer) == -1) {
		why = "its process cannot be told";
	} else {
		if (peer.pidfd == -1)
			peer.pidfd = spawn_pidfd(peer.pid);
		why = vet(l, &peer, &bridge.who);
	}
	if (why == NULL && l->waiting_count >= LISTENER_WAITING_MAX)
		why = "too many are waiting";
	if (why == NULL) {
		bridge.pidfd = peer.pidfd;
		visitor_add(l, &bridge, stream);
		return;
	}
	refuse(l, &peer, why);
	close_if_open(peer.pidfd);
	(void)close(stream);
}

/* ---- accepting ---------------------------------------------------------- */

/* Out of descriptors: the backlog keeps them for a second. */
static void
pause_accepting(struct listener *l)
{
	const struct timeval second = {.tv_sec = 1};

	log_warn("%s: cannot accept", l->attempt);
	(void)event_del(l->readable);
	(void)evtimer_add(l->pause, &second);
}

static void
on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	(void)event_add(l->readable, NULL);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;
	int i, stream;

	(void)fd;
	(void)what;
	for (i = 0; i < ACCEPTS_MAX; i++) {
		stream = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
		if (stream != -1) {
			take(l, stream);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_accepting(l);
		break;
	}
	listener_serve(l);
}

struct listener *
listener_new(struct event_base *base, int fd, const char *attempt,
    listener_pass pass, void *arg)
{
	struct listener *l = xcalloc(1, sizeof(*l));

	l->base = base;
	(void)snprintf(l->attempt, sizeof(l->attempt), "%s", attempt);
	l->fd = fd;
	l->pass = pass;
	l->arg = arg;
	TAILQ_INIT(&l->waiting);
	l->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, l);
	l->pause = evtimer_new(base, on_pause_over, l);
	if (l->readable == NULL || l->pause == NULL)
		fatalx("%s: no event", l->attempt);
	return l;
}

void
listener_arm(struct listener *l, uid_t uid, const struct identity *leader,
    const char *cgroup)
{
	l->uid = uid;
	l->leader = *leader;
	if (cgroup != NULL)
		l->cgroup = xstrdup(cgroup);
	(void)event_add(l->readable, NULL);
}

void
listener_free(struct listener *l)
{
	struct visitor *v;

	if (l == NULL)
		return;
	while ((v = TAILQ_FIRST(&l->waiting)) != NULL)
		visitor_drop(l, v);
	bridge_gone(l);
	event_free(l->readable);
	event_free(l->pause);
	(void)close(l->fd);
	free(l->cgroup);
	free(l);
}
