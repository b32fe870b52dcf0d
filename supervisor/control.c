#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
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
#include "supervisor/door.h"
#include "supervisor/instance.h"

/* Between two looks at who has the path, when that may pass. */
#define LOOK_AGAIN_MS 20

struct control {
	struct supervisor *sv;
	gid_t group;
	struct door *door;
	struct client_list clients;
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

static void
on_visit(int fd, const struct socket_peer *peer, void *arg)
{
	struct control *control = arg;
	enum control_right right;
	const char *why;

	right = control_vet(control->sv, fd, control->group, peer, &why);
	if (right != CONTROL_NONE &&
	    clients_of(control, peer->uid) >= CONTROL_CLIENTS_MAX) {
		right = CONTROL_NONE;
		why = "too many connections of this user";
	}
	if (right == CONTROL_NONE) {
		door_log_refusal(control->door, peer, why);
		turn_away(fd, why);
	} else {
		(void)client_new(
		    control->sv, &control->clients, fd, peer->uid, right);
	}
}

/* ---- another connector? -------------------------------------------------- */

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
is_served(const char *path)
{
	int64_t until = clock_monotonic_ms() + INSTANCE_WAIT_MS;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	enum server who;

	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	do {
		who = look_who_serves(&sun);
	} while (who == SERVER_SILENT && clock_monotonic_ms() < until);
	return who != SERVER_NONE;
}

/* ---- its life ------------------------------------------------------------ */

int
control_open(struct supervisor *sv, struct error *e)
{
	struct control *control = xcalloc(1, sizeof(*control));
	struct door_plan plan = {
	    .what = "control socket",
	    .path = sv->paths.control_socket,
	    .mode = sv->is_root ? 0660 : 0600,
	    .visited = on_visit,
	};

	control->sv = sv;
	TAILQ_INIT(&control->clients);
	sv->control = control;
	if (accounts_control_group(sv, &control->group, e) == -1)
		return -1;
	plan.group = sv->is_root ? control->group : (gid_t)-1;
	if (is_served(plan.path)) {
		(void)error_set(e,
		    "%s: a connector already serves this "
		    "profile",
		    plan.path);
		e->code = EADDRINUSE;
		return -1;
	}
	control->door = door_open(sv, &plan, control, e);
	return control->door == NULL ? -1 : 0;
}

void
control_close(struct supervisor *sv)
{
	struct control *control = sv->control;
	struct client *client;

	if (control == NULL)
		return;
	door_close(control->door);
	while ((client = TAILQ_FIRST(&control->clients)) != NULL)
		client_free(client);
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

void
control_attempt_over(
    struct control *control, const char *attempt, enum fate fate)
{
	struct client *client, *next;

	if (control == NULL)
		return;
	for (client = TAILQ_FIRST(&control->clients); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, entry);
		command_attempt_over(client, attempt, fate);
	}
}
