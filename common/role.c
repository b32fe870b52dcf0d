#include <sys/random.h>
#include <sys/stat.h>

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/process.h"
#include "common/role.h"
#include "common/xmalloc.h"

#define SETUP_WAIT_MS 10000
/* Above this much unsent a log line is dropped. */
#define LOG_QUEUE_MAX 65536
#define EXIT_FLUSH_MS 500
#define EXIT_FLUSH_PAUSE_MS 5

/*
 * The one role of this process, for callbacks whose argument is the role's
 * own state, and for the log sink, which has none.
 */
static struct role *self;
static bool is_running; /* in the loop, which writes what is queued */
static struct config_reader reader;
static struct peer_ops supervisor_ops;
static peer_handler supervisor_handlers[MSG_COUNT];
static struct peer_ops child_ops[ROLE_COUNT];
static const peer_handler no_handlers[MSG_COUNT];

/* ---- telling the supervisor ------------------------------------------- */

static void
supervisor_flush(void)
{
	if (peer_is_linked(self->supervisor))
		link_flush(peer_link(self->supervisor));
}

static void
supervisor_tell(struct msg *m)
{
	peer_notice(self->supervisor, m);
	if (!is_running)
		supervisor_flush();
}

/* A line that a full link would have to wait for is dropped. */
static void
log_to_supervisor(enum log_level level, const char *line)
{
	static bool is_inside; /* what is below may want to log as well */
	struct msg m = {.type = MSG_LOG};

	if (is_inside)
		return;
	is_inside = true;
	m.log.level = level;
	m.log.text = line;
	(void)peer_notice_droppable(self->supervisor, &m, LOG_QUEUE_MAX);
	/* After the last level comes the end of the process. */
	if (!is_running || level == LOG_LEVEL_ERROR)
		supervisor_flush();
	is_inside = false;
}

void
role_state(struct role *role, const char *name, const char *fmt, ...)
{
	struct msg m = {.type = MSG_STATE};
	char value[301];
	va_list ap;

	(void)role;
	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	m.state.name = name;
	m.state.value = value;
	supervisor_tell(&m);
}

/* Written before the next step is taken, which may be the last. */
void
role_in_hand(struct role *role, int64_t event_id, bool taken)
{
	struct msg m = {.type = MSG_IN_HAND};

	m.in_hand.event_id = event_id;
	m.in_hand.taken = taken;
	peer_notice(role->supervisor, &m);
	if (peer_is_linked(role->supervisor))
		link_flush(peer_link(role->supervisor));
}

void
role_accuse(struct role *role, struct peer *peer, const char *text)
{
	struct msg m = {.type = MSG_ACCUSE};
	char cut[257];

	(void)role;
	log_warnx(
	    "%s broke the protocol: %s", role_name(peer_role(peer)), text);
	(void)snprintf(cut, sizeof(cut), "%s", text[0] == '\0' ? "?" : text);
	m.accuse.role = peer_role(peer);
	m.accuse.attempt = peer_attempt(peer);
	m.accuse.guest = peer_guest(peer);
	m.accuse.text = cut;
	supervisor_tell(&m);
}

void
role_starting(struct role *role, const char *fmt, ...)
{
	struct msg m = {.type = MSG_STARTING};
	char text[257];
	va_list ap;

	(void)role;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	m.starting.text = text;
	supervisor_tell(&m);
}

void
role_ready(struct role *role)
{
	struct msg m = {.type = MSG_READY};

	m.ready.protocol = PROTOCOL_VERSION;
	m.ready.build = build_id;
	m.ready.seccomp = role->walls.seccomp;
	m.ready.no_new_privs = role->walls.no_new_privs;
	m.ready.dumpable = role->walls.dumpable;
	m.ready.landlock_abi = role->walls.landlock_abi;
	m.ready.lacks = role->walls.lacks;
	supervisor_tell(&m);
}

/* ---- waiting for others ------------------------------------------------ */

/* One timer for all peers; it runs only while something is unanswered. */
static struct event *waiting;

static void
waiting_begin(void)
{
	int64_t bound = self->config == NULL
	    ? limit_rows[LIMIT_watchdog].normal
	    : self->config->limits[LIMIT_watchdog];
	int64_t ms = bound / 3;
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (!event_pending(waiting, EV_TIMEOUT, NULL))
		(void)event_add(waiting, &tv);
}

/* Who hangs while nobody needed it is looked for now that somebody does. */
static void
on_waiting(evutil_socket_t fd, short what, void *arg)
{
	struct msg m = {.type = MSG_WAITING};
	size_t i = 0;

	(void)fd;
	(void)what;
	(void)arg;
	while (i < self->peer_count && peer_unanswered(self->peers[i]) == 0)
		i++;
	if (i == self->peer_count)
		return;
	supervisor_tell(&m);
	waiting_begin();
}

static void
on_child_waits(struct peer *peer, void *arg)
{
	(void)peer;
	(void)arg;
	waiting_begin();
}

/* ---- peers ------------------------------------------------------------ */

/*
 * An mcpd's peer serves one attempt: of those whose link has ended and to
 * whom nothing is owed, the one that came first makes room.
 */
static void
peers_make_room(struct role *role)
{
	struct peer *peer;
	size_t i;

	for (i = 0; i < role->peer_count; i++) {
		peer = role->peers[i];
		if (peer_role(peer) == ROLE_MCPD && !peer_is_linked(peer) &&
		    peer_unanswered(peer) == 0)
			break;
	}
	if (i == role->peer_count)
		fatalx("more than %d peers at once", ROLE_PEERS_MAX);
	peer_free(role->peers[i]);
	role->peer_count--;
	memmove(&role->peers[i], &role->peers[i + 1],
	    (role->peer_count - i) * sizeof(role->peers[0]));
}

/* A guest is known by its number: its attempt may become known later. */
static struct peer *
peer_find(
    struct role *role, enum role_id peer, const char *attempt, int64_t guest)
{
	struct peer *p;
	size_t i;

	for (i = 0; i < role->peer_count; i++) {
		p = role->peers[i];
		if (peer_role(p) == peer && peer_guest(p) == guest &&
		    (guest != 0 || strcmp(peer_attempt(p), attempt) == 0))
			return p;
	}
	return NULL;
}

static struct peer *
peer_of(
    struct role *role, enum role_id peer, const char *attempt, int64_t guest)
{
	struct peer *p = peer_find(role, peer, attempt, guest);

	if (p != NULL)
		return p;
	if (role->row->peers[peer] == NULL)
		fatalx("no link to %s is foreseen", role_name(peer));
	if (role->peer_count == ROLE_PEERS_MAX)
		peers_make_room(role);
	p = peer_new(role->base, role->row->role, peer, attempt,
	    &child_ops[peer], role->arg);
	peer_set_guest(p, guest);
	role->peers[role->peer_count++] = p;
	return p;
}

struct peer *
role_peer(struct role *role, enum role_id peer, const char *attempt)
{
	return peer == ROLE_SUPERVISOR ? role->supervisor
				       : peer_of(role, peer, attempt, 0);
}

/* Say it, then let the role clear up. The link is closed already. */
static void
on_child_broken(struct peer *peer, const char *text, void *arg)
{
	const struct peer_ops *ops = self->row->peers[peer_role(peer)];

	role_accuse(self, peer, text);
	if (ops->broken != NULL)
		ops->broken(peer, text, arg);
}

/* ---- what the supervisor sends ---------------------------------------- */

/* Uphill only the accuser dies: it says why, and its successor asks anew. */
static _Noreturn void
blame_supervisor(const char *text)
{
	log_warnx("supervisor broke the protocol: %s", text);
	role_exit(self, EXIT_PEER);
}

static void
on_link(struct peer *peer, struct msg *m, void *arg)
{
	enum role_id role = (enum role_id)m->link.role;
	struct peer *other;

	(void)peer;
	(void)arg;
	if (role == ROLE_SUPERVISOR || self->row->peers[role] == NULL)
		blame_supervisor("LINK: to a role we have none with");
	other = peer_of(self, role, m->link.attempt, m->link.guest);
	peer_mourn(other, m->link.death);
	peer_attach(other, m->link.end, m->link.generation);
	m->link.end = -1;
	msg_free(m);
}

/* CONFIG, its parts, and CONFIG_END, which makes it count. */
static void
on_config(struct peer *peer, struct msg *m, void *arg)
{
	struct error e = {0, ""};
	struct config *whole = config_reader_take(&reader, m, &e);
	struct config *old = self->config;

	(void)peer;
	(void)arg;
	msg_free(m);
	if (e.text[0] != '\0')
		blame_supervisor(e.text);
	if (whole == NULL)
		return;
	self->config = whole;
	if (self->row->configured != NULL)
		self->row->configured(self);
	config_free(old);
}

static void
on_stop(struct peer *peer, struct msg *m, void *arg)
{
	int64_t bound_ms = m->stop.bound_ms;

	(void)peer;
	(void)arg;
	msg_free(m);
	if (self->row->stop == NULL)
		role_exit(self, EXIT_OK);
	self->row->stop(self, bound_ms);
}

/* Its link is closed: the exit status is all that can still be told. */
static void
on_supervisor_broken(struct peer *peer, const char *text, void *arg)
{
	(void)peer;
	(void)text;
	(void)arg;
	exit_now(EXIT_PEER);
}

/* Nobody is left who could start, stop or hear us. */
static void
on_supervisor_gone(struct peer *peer, void *arg)
{
	(void)peer;
	(void)arg;
	exit_now(EXIT_OK);
}

/* ---- start ------------------------------------------------------------ */

void
role_start_failed(enum exit_code code, const char *text)
{
	log_warnx("%s", text);
	exit_now(code);
}

/* A person may try to run a role from a shell: say what it is. */
static void
require_link(void)
{
	struct stat st;

	if (fstat(ROLE_LINK_FD, &st) == 0 && S_ISSOCK(st.st_mode))
		return;
	role_start_failed(EXIT_USAGE,
	    "a part of connectd, started by it alone (descriptor 3 is no "
	    "socket)");
}

static struct msg *
read_setup(const struct role_row *row)
{
	struct error e;
	struct msg *m = link_read_one(
	    ROLE_LINK_FD, row->role, ROLE_SUPERVISOR, SETUP_WAIT_MS, &e);

	if (m == NULL)
		role_start_failed(EXIT_CONFIG, e.text);
	if (m->type != MSG_SETUP)
		role_start_failed(EXIT_CONFIG, "first message is not SETUP");
	if (m->setup.protocol != PROTOCOL_VERSION)
		role_start_failed(
		    EXIT_CONFIG, "SETUP: another protocol version");
	if (m->setup.role != (int64_t)row->role)
		role_start_failed(EXIT_CONFIG, "SETUP: meant for another role");
	return m;
}

static struct event_base *
base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	/*
	 * One thread; the environment does not steer us; and no timerfd, for
	 * a millisecond is as precise as anything here has to be.
	 */
	if (config != NULL &&
	    event_config_set_flag(config,
		EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0)
		base = event_base_new_with_config(config);
	if (base == NULL)
		fatalx("no event base");
	event_config_free(config);
	return base;
}

static void
supervisor_ops_fill(const struct role_row *row)
{
	const struct peer_ops *own = row->peers[ROLE_SUPERVISOR];
	static const enum msg_type config_parts[] = {
	    MSG_CONFIG, MSG_ROUTE, MSG_MEMBER, MSG_LIMIT, MSG_CONFIG_END};
	size_t i;

	if (own != NULL && own->handlers != NULL)
		memcpy(supervisor_handlers, own->handlers,
		    sizeof(supervisor_handlers));
	for (i = 0; i < sizeof(config_parts) / sizeof(config_parts[0]); i++)
		supervisor_handlers[config_parts[i]] = on_config;
	supervisor_handlers[MSG_LINK] = on_link;
	supervisor_handlers[MSG_STOP] = on_stop;
	supervisor_ops.handlers = supervisor_handlers;
	supervisor_ops.broken = on_supervisor_broken;
	supervisor_ops.unlinked = on_supervisor_gone;
}

/* The row's tables, with our own callback where a protocol is broken. */
static void
ops_fill(const struct role_row *row)
{
	int i;

	supervisor_ops_fill(row);
	for (i = ROLE_SUPERVISOR + 1; i < ROLE_COUNT; i++) {
		if (row->peers[i] == NULL)
			continue;
		child_ops[i] = *row->peers[i];
		if (child_ops[i].handlers == NULL)
			child_ops[i].handlers = no_handlers;
		child_ops[i].broken = on_child_broken;
		child_ops[i].waits = on_child_waits;
	}
}

/* jansson would open /dev/urandom at its first object; zone data likewise. */
void
role_seed(void)
{
	size_t seed = 0;

	while (seed == 0) {
		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			fatal("getrandom");
	}
	json_object_seed(seed);
	tzset();
}

static int
become(const struct role *role, struct error *e)
{
	const struct msg_setup *setup = &role->setup->setup;

	return process_become((uid_t)setup->uid, (gid_t)setup->gid, e);
}

/* From here on nothing can be had that is not open, allowed or sent. */
static int
raise_walls(struct role *role, struct error *e)
{
	const struct msg_setup *setup = &role->setup->setup;

	if (process_limit(role->row->nofile, role->row->writes_files, e) ==
		-1 ||
	    become(role, e) == -1)
		return -1;
	/* The change of ids has cleared what was said about the parent. */
	if (process_die_with((pid_t)setup->supervisor_pid, e) == -1) {
		if (e->code == ESRCH)
			exit_now(EXIT_OK);
		return -1;
	}
#ifndef INSECURE_BUILD
	if (process_hide(e) == -1)
		return -1;
#endif
	e->text[0] = '\0';
	if (sandbox_enter(role->row->sandbox, setup->state_dir, setup->insecure,
		&role->walls, e) == -1)
		return -1;
	if (e->text[0] != '\0')
		log_warnx("--insecure: %s", e->text);
	return 0;
}

void
role_start(struct role *role, const struct role_row *row, void *arg)
{
	struct error e = {0, ""};

	log_init(row->title, LOG_LEVEL_INFO);
	if (process_seal(&e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
	require_link();
	if (process_settle(&e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
	process_title(row->title);

	memset(role, 0, sizeof(*role));
	role->row = row;
	role->arg = arg;
	role->setup = read_setup(row);
	role->base = base_new();
	self = role;
	waiting = evtimer_new(role->base, on_waiting, NULL);
	if (waiting == NULL)
		fatalx("no event");
	ops_fill(row);
	role->supervisor = peer_new(
	    role->base, row->role, ROLE_SUPERVISOR, "", &supervisor_ops, arg);
	peer_attach(role->supervisor, ROLE_LINK_FD, 1);
	log_set_sink(log_to_supervisor);

	role_seed();
	if (row->prepare != NULL && row->prepare(role, &e) == -1)
		role_start_failed(EXIT_CONFIG, e.text);
	if (raise_walls(role, &e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
}

/* ---- the loop and its end --------------------------------------------- */

void
role_run(struct role *role)
{
	is_running = true;
	(void)event_base_dispatch(role->base);
	fatalx("left the event loop");
}

static size_t
flush_one(struct peer *peer)
{
	if (!peer_is_linked(peer))
		return 0;
	link_flush(peer_link(peer));
	return link_queued(peer_link(peer));
}

void
role_exit(struct role *role, int code)
{
	int64_t until = clock_monotonic_ms() + EXIT_FLUSH_MS;
	size_t left, i;

	for (;;) {
		left = flush_one(role->supervisor);
		for (i = 0; i < role->peer_count; i++)
			left += flush_one(role->peers[i]);
		if (left == 0 || clock_monotonic_ms() >= until)
			break;
		(void)poll(NULL, 0, EXIT_FLUSH_PAUSE_MS);
	}
	exit_now((enum exit_code)code);
}
