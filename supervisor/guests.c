#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/control.h"
#include "supervisor/door.h"
#include "supervisor/guests.h"

struct guest {
	TAILQ_ENTRY(guest) entry;
	struct guests *guests;
	int64_t number;
	pid_t pid;
	char attempt[29]; /* "": it has not shown a token yet */
	struct peer *peer;
	struct event *leaves; /* outside the callbacks of its peer */
};

struct guests {
	struct supervisor *sv;
	struct door *door; /* NULL: they are not wanted */
	TAILQ_HEAD(, guest) list;
	size_t count;
	int64_t last_number;
};

/* ---- links --------------------------------------------------------------- */

static void
link_tell(struct peer *to, struct msg_link *link)
{
	struct msg m = {.type = MSG_LINK};

	m.link = *link;
	peer_notice(to, &m);
}

/* What LINK says of the guest is our word: the attempt is one it has shown. */
static void
guest_link(struct guest *g, struct child *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1) {
		log_warn(
		    "guest %lld: no link to %s", (long long)g->number, c->name);
		return;
	}
	link_tell(g->peer,
	    &(struct msg_link){.role = (int64_t)c->role,
		.generation = c->generation,
		.death = c->death_id,
		.end = pair[0]});
	link_tell(c->peer,
	    &(struct msg_link){.role = ROLE_MCPD,
		.generation = g->number,
		.attempt = g->attempt,
		.guest = g->number,
		.end = pair[1]});
}

/* To a child that has its links already. */
static void
guest_link_role(struct guest *g, enum role_id role)
{
	struct child *c = g->guests->sv->children[role];

	if (c != NULL && child_is_there(c))
		guest_link(g, c);
}

void
guests_link(struct supervisor *sv, struct child *c)
{
	struct guest *g;

	if (sv->guests == NULL)
		return;
	TAILQ_FOREACH (g, &sv->guests->list, entry) {
		if (c->role == ROLE_LEDGER ||
		    (c->role == ROLE_INTAKE && g->attempt[0] != '\0'))
			guest_link(g, c);
	}
}

static struct guest *
guest_find(struct supervisor *sv, int64_t number)
{
	struct guest *g;

	if (sv->guests == NULL)
		return NULL;
	TAILQ_FOREACH (g, &sv->guests->list, entry) {
		if (g->number == number)
			return g;
	}
	return NULL;
}

/* Told again it changes nothing: once bound, always bound. */
void
guests_bound(struct supervisor *sv, const struct msg_guest_bound *bound)
{
	struct guest *g = guest_find(sv, bound->guest);

	if (g == NULL || g->attempt[0] != '\0')
		return;
	(void)snprintf(g->attempt, sizeof(g->attempt), "%s", bound->attempt);
	log_info("guest %lld (pid %ld) serves %s", (long long)g->number,
	    (long)g->pid, g->attempt);
	guest_link_role(g, ROLE_INTAKE);
}

/* ---- one guest ----------------------------------------------------------- */

static void
guest_free(struct guest *g)
{
	TAILQ_REMOVE(&g->guests->list, g, entry);
	g->guests->count--;
	peer_free(g->peer);
	event_free(g->leaves);
	free(g);
}

static void
on_leaves(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	guest_free(arg);
}

static void
on_unlinked(struct peer *peer, void *arg)
{
	struct guest *g = arg;

	(void)peer;
	event_active(g->leaves, EV_TIMEOUT, 0);
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	const struct guest *g = arg;

	(void)peer;
	log_warnx("guest %lld (pid %ld): %s", (long long)g->number,
	    (long)g->pid, log_safe(text));
}

/* It hears of us and has nothing to say. */
static const peer_handler no_handlers[MSG_COUNT] = {NULL};
static const struct peer_ops guest_ops = {
    .handlers = no_handlers,
    .unlinked = on_unlinked,
    .broken = on_broken,
};

/*
 * For one that does not read, what is queued grows by what an operator
 * reloads and by the lives of two children, and not by what it does.
 */
static void
configure_send(struct msg *m, void *arg)
{
	struct guest *g = arg;

	peer_notice(g->peer, m);
}

/* HELLO first: it may be of another build, and would misread all the rest. */
static void
guest_welcome(struct guest *g)
{
	struct supervisor *sv = g->guests->sv;
	struct msg m = {.type = MSG_HELLO};

	m.hello.protocol = PROTOCOL_VERSION;
	m.hello.schema = SCHEMA_VERSION;
	m.hello.build = build_id;
	peer_notice(g->peer, &m);
	config_write(sv->settings->config, configure_send, g);
	guest_link_role(g, ROLE_LEDGER);
}

static void
guest_new(struct guests *guests, int fd, pid_t pid)
{
	struct event_base *base = guests->sv->base;
	struct guest *g = xcalloc(1, sizeof(*g));

	g->guests = guests;
	g->number = ++guests->last_number;
	g->pid = pid;
	g->peer = peer_new(base, ROLE_SUPERVISOR, ROLE_MCPD, "", &guest_ops, g);
	g->leaves = evtimer_new(base, on_leaves, g);
	if (g->leaves == NULL)
		fatalx("guests: no event");
	TAILQ_INSERT_TAIL(&guests->list, g, entry);
	guests->count++;
	peer_attach(g->peer, fd, g->number);
	guest_welcome(g);
}

void
guests_accused(struct supervisor *sv, int64_t number)
{
	struct guest *g = guest_find(sv, number);

	if (g != NULL)
		guest_free(g);
}

/* ---- who may come -------------------------------------------------------- */

static const char *
visitor_vet(const struct guests *guests, int fd, const struct socket_peer *peer)
{
	const char *why = NULL;

	switch (control_vet(guests->sv, fd, (gid_t)-1, peer, &why)) {
	case CONTROL_NONE:
		return why;
	case CONTROL_READ:
		return "only root and the user connectd runs as may";
	case CONTROL_CHANGE:
		break;
	}
	if (guests->sv->stopping)
		return "connectd is stopping";
	return guests->count >= GUESTS_MAX ? "too many at once" : NULL;
}

/* Without HELLO it knows that it was turned away. */
static void
on_visit(int fd, const struct socket_peer *peer, void *arg)
{
	struct guests *guests = arg;
	const char *why = visitor_vet(guests, fd, peer);

	if (why == NULL) {
		guest_new(guests, fd, peer->pid);
		return;
	}
	door_log_refusal(guests->door, peer, why);
	(void)close(fd);
}

/* ---- their life ---------------------------------------------------------- */

static int
door_make(struct guests *guests, struct error *e)
{
	struct supervisor *sv = guests->sv;
	const struct door_plan plan = {
	    .what = PATH_LEDGER_SOCKET,
	    .path = sv->paths.ledger_socket,
	    .mode = 0600,
	    .group = (gid_t)-1,
	    .visited = on_visit,
	};

	guests->door = door_open(sv, &plan, guests, e);
	return guests->door == NULL ? -1 : 0;
}

static void
guests_leave(struct guests *guests)
{
	struct guest *g;

	while ((g = TAILQ_FIRST(&guests->list)) != NULL)
		guest_free(g);
	door_close(guests->door);
	guests->door = NULL;
}

int
guests_open(struct supervisor *sv, struct error *e)
{
	struct guests *guests = xcalloc(1, sizeof(*guests));

	guests->sv = sv;
	TAILQ_INIT(&guests->list);
	sv->guests = guests;
	return sv->settings->mcp_socket ? door_make(guests, e) : 0;
}

void
guests_close(struct supervisor *sv)
{
	if (sv->guests == NULL)
		return;
	guests_leave(sv->guests);
	free(sv->guests);
	sv->guests = NULL;
}

void
guests_configure(struct supervisor *sv)
{
	struct guests *guests = sv->guests;
	struct guest *g;
	struct error e;

	if (guests == NULL)
		return;
	if (!sv->settings->mcp_socket)
		guests_leave(guests);
	else if (guests->door == NULL && door_make(guests, &e) == -1)
		log_warnx("%s", e.text);
	TAILQ_FOREACH (g, &guests->list, entry)
		config_write(sv->settings->config, configure_send, g);
}

void
guests_write(const struct supervisor *sv, struct buffer *b)
{
	const struct guest *g;

	buffer_add_char(b, '[');
	if (sv->guests == NULL) {
		buffer_add_char(b, ']');
		return;
	}
	TAILQ_FOREACH (g, &sv->guests->list, entry)
		buffer_printf(b, "%s{\"pid\":%ld,\"attempt_id\":\"%s\"}",
		    g == TAILQ_FIRST(&sv->guests->list) ? "" : ",",
		    (long)g->pid, g->attempt);
	buffer_add_char(b, ']');
}
