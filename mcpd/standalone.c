#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/config.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/role.h"
#include "mcpd/opener.h"
#include "mcpd/profile.h"
#include "mcpd/reach.h"
#include "mcpd/standalone.h"
#include "mcpd/stream.h"
#include "mcpd/token.h"

/* Whom a server becomes that root has started; sysusers.d lists it. */
#define OWN_USER "_connectd-mcp"
#define NOFILE 1024
#define STDERR_A_MINUTE 65536
/* From the connection to BOUND. */
#define REACH_MS 10000
/* For the client to read, and the ledger to answer, when input has ended. */
#define LEAVE_MS 2000

/* The one of this process. */
static struct {
	struct server *server;
	struct event_base *base;
	char *token; /* until it is the server's */
	char *dir;
	uid_t uid;
	gid_t gid;
	int opener, out_fd;
	struct peer *supervisor; /* NULL: the connector is away */
	struct config_reader reader;
	bool is_welcome; /* its HELLO came: it is of this build */
	bool was_bound;  /* once: from then on nothing ends us but our client */
	struct event *cut, *late;
} self;

/* ---- the connector comes and goes --------------------------------------- */

/* Outside the callbacks of the peers, which are freed by it. */
static void
connector_lost(const char *text)
{
	if (!self.was_bound)
		role_start_failed(EXIT_NOT_RUNNING, text);
	log_warnx("%s", text);
	event_active(self.cut, EV_TIMEOUT, 0);
}

static void
on_hello(struct peer *peer, struct msg *m, void *arg)
{
	self.is_welcome = m->hello.protocol == PROTOCOL_VERSION &&
	    m->hello.schema == SCHEMA_VERSION &&
	    strcmp(m->hello.build, build_id) == 0;
	msg_free(m);
	if (!self.is_welcome)
		connector_lost("the connector is of another build than this "
			       "connectd-mcpd");
}

static void
on_link(struct peer *peer, struct msg *m, void *arg)
{
	struct peer *other = m->link.role == ROLE_LEDGER ? self.server->ledger
	    : m->link.role == ROLE_INTAKE                ? self.server->intake
							 : NULL;

	if (self.is_welcome && other != NULL) {
		peer_mourn(other, m->link.death);
		peer_attach(other, m->link.end, m->link.generation);
		m->link.end = -1;
	}
	msg_free(m);
}

static void
on_config(struct peer *peer, struct msg *m, void *arg)
{
	struct error e = {0, ""};
	struct config *whole = config_reader_take(&self.reader, m, &e);

	msg_free(m);
	if (e.text[0] != '\0')
		connector_lost(e.text);
	if (whole == NULL)
		return;
	self.server->call_deadline_ms = whole->limits[LIMIT_call_deadline];
	self.server->post_wait_ms = whole->limits[LIMIT_post_wait];
	config_free(whole);
}

/* An end without a welcome: it looked who we are, and let nobody in. */
static void
on_supervisor_gone(struct peer *peer, void *arg)
{
	connector_lost(self.is_welcome
		? "the connector is not running any more"
		: "the connector did not let this process in; its log says "
		  "why");
}

static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_HELLO] = on_hello,
    [MSG_LINK] = on_link,
    [MSG_CONFIG] = on_config,
    [MSG_ROUTE] = on_config,
    [MSG_MEMBER] = on_config,
    [MSG_LIMIT] = on_config,
    [MSG_CONFIG_END] = on_config,
};
static const struct peer_ops supervisor_ops = {
    .handlers = supervisor_handlers,
    .unlinked = on_supervisor_gone,
};

/* ---- ledger and intake -------------------------------------------------- */

static void
on_post_settled(struct peer *peer, struct msg *m, void *arg)
{
	server_post_settled(self.server, m->post_settled.intent_id);
	msg_free(m);
}

/* A ledger that started anew: the supervisor told it which attempt we serve. */
static void
on_ledger_linked(struct peer *peer, void *arg)
{
	if (self.server->reach == SERVER_LINKED)
		server_post_settled(self.server, 0);
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	log_warnx("%s broke the protocol: %s", role_name(peer_role(peer)),
	    log_safe(text));
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_POST_SETTLED] = on_post_settled,
};
static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = on_ledger_linked,
    .broken = on_broken,
};
static const peer_handler intake_handlers[MSG_COUNT] = {NULL};
static const struct peer_ops intake_ops = {
    .handlers = intake_handlers,
    .broken = on_broken,
};

/* Over every link of a new connector the token is shown first. */
static void
on_bound(struct peer *peer, struct msg *reply, void *arg)
{
	struct error e;

	(void)event_del(self.late);
	if (reply->type == MSG_BOUND) {
		self.server->agent_id = reply->bound.agent_id;
	} else if (!self.was_bound) {
		(void)error_set(&e, "the token names no current task in %s",
		    log_safe(self.dir));
		role_start_failed(EXIT_REFUSED, e.text);
	} /* else: it refuses every call, and that is the answer */
	server_linked(self.server);
	if (self.was_bound)
		return;
	self.was_bound = true;
	server_connect(self.server, STDIN_FILENO, self.out_fd);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	connector_lost("the connector is not running: it does not answer");
}

static void
connector_join(int fd)
{
	static const struct timeval late = {
	    REACH_MS / 1000, REACH_MS % 1000 * 1000};
	struct msg m = {.type = MSG_BIND};

	self.server->reach = SERVER_REACHING;
	self.is_welcome = false;
	self.supervisor = peer_new(
	    self.base, ROLE_MCPD, ROLE_SUPERVISOR, "", &supervisor_ops, NULL);
	self.server->ledger =
	    peer_new(self.base, ROLE_MCPD, ROLE_LEDGER, "", &ledger_ops, NULL);
	self.server->intake =
	    peer_new(self.base, ROLE_MCPD, ROLE_INTAKE, "", &intake_ops, NULL);
	m.bind.token = self.server->token;
	(void)peer_request(self.server->ledger, &m, on_bound, NULL);
	if (event_add(self.late, &late) == -1)
		fatalx("no timer");
	peer_attach(self.supervisor, fd, 1);
}

/* What was not answered is told so; it may have been done, and may be asked. */
static void
on_cut(evutil_socket_t fd, short what, void *arg)
{
	if (self.supervisor == NULL)
		return;
	(void)event_del(self.late);
	server_away(self.server);
	peer_free(self.supervisor);
	peer_free(self.server->ledger);
	peer_free(self.server->intake);
	self.supervisor = self.server->ledger = self.server->intake = NULL;
	config_free(self.reader.partial);
	self.reader.partial = NULL;
}

static void
on_try_again(struct server *s)
{
	int fd = opener_ask(self.opener);

	if (fd == -1)
		server_away(s);
	else
		connector_join(fd);
}

/* ---- the end ------------------------------------------------------------ */

static void
on_idle(void *arg)
{
	exit_now(EXIT_OK);
}

static void
on_leave_bound(evutil_socket_t fd, short what, void *arg)
{
	exit_now(EXIT_OK);
}

/* As at the end of its input; at once when it has ended, or never began. */
static void
on_signal(evutil_socket_t number, short what, void *arg)
{
	if (self.server->stream == NULL)
		exit_now(EXIT_OK);
	server_disconnect(self.server, self.server->stream);
}

/*
 * Answers that are ready are read yet, if anybody does. What was read of the
 * client is in the ledger before we are gone, and that is all.
 */
static void
on_stream_ends(struct server *s, struct stream *stream)
{
	static const struct timeval bound = {
	    LEAVE_MS / 1000, LEAVE_MS % 1000 * 1000};

	stream_finish(stream, LEAVE_MS);
	if (event_base_once(
		self.base, -1, EV_TIMEOUT, on_leave_bound, NULL, &bound) == -1)
		fatalx("no timer");
	server_when_idle(s, on_idle, NULL);
}

/* ---- the start ---------------------------------------------------------- */

/* Nothing but the server's own lines may reach standard output (mcp.md 1.1). */
static int
take_stdio(struct error *e)
{
	if (fcntl(STDIN_FILENO, F_GETFD) == -1)
		return error_errno(e, "standard input");
	self.out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (self.out_fd == -1)
		return error_errno(e, "standard output");
	if (dup2(STDERR_FILENO, STDOUT_FILENO) == -1)
		return error_errno(e, "standard error");
	return 0;
}

static void
take_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct event *event;
	sigset_t none;
	size_t i;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN); /* the opener is not waited for */
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		event = evsignal_new(self.base, numbers[i], on_signal, NULL);
		if (event == NULL || evsignal_add(event, NULL) == -1)
			fatalx("no event for signal %d", numbers[i]);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* By poll: standard input may be a file, which epoll does not take. */
static struct event_base *
base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config != NULL && event_config_avoid_method(config, "epoll") == 0 &&
	    event_config_set_flag(config,
		EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0)
		base = event_base_new_with_config(config);
	if (base == NULL)
		fatalx("no event base");
	event_config_free(config);
	return base;
}

/* As root there is a user for this; a person's server is that person. */
static int
take_ids(struct error *e)
{
	const struct passwd *pw;

	self.uid = geteuid();
	self.gid = getegid();
	if (self.uid != 0)
		return 0;
	pw = getpwnam(OWN_USER);
	if (pw == NULL || pw->pw_uid == 0)
		return error_set(e,
		    "there is no user " OWN_USER ": make the users that "
		    "sysusers.d/connectd.conf lists");
	self.uid = pw->pw_uid;
	self.gid = pw->pw_gid;
	return 0;
}

/* Another user's process is dumpable again. */
static int
hide(struct error *e)
{
#ifdef INSECURE_BUILD
	(void)e;
	return 0;
#else
	return process_hide(e);
#endif
}

static int
raise_walls(struct error *e)
{
	struct sandbox_report report;

	if (process_become(self.uid, self.gid, e) == -1 || hide(e) == -1)
		return -1;
	return sandbox_enter(&mcpd_profile, "/", false, &report, e);
}

static void
forget(void)
{
	token_free(self.token);
}

/* The first connection, and the way to later ones, before the walls. */
static int
connector_find(const char *state)
{
	struct error e = {0, ""};
	int fd = -1;

	self.dir = path_clean(state);
	if (self.dir == NULL)
		role_start_failed(
		    EXIT_CONFIG, "the working directory is not known");
	if (reach_check(self.dir, &e) == -1 ||
	    (fd = reach_connect(self.dir, &e)) == -1)
		role_start_failed((enum exit_code)e.code, e.text);
	self.opener = opener_start(self.dir, forget, &e);
	if (self.opener == -1)
		role_start_failed(EXIT_FAILED, e.text);
	return fd;
}

static void
server_take(unsigned int domains)
{
	struct error e;

	server_init(self.server, self.base, domains);
	self.server->call_deadline_ms = limit_rows[LIMIT_call_deadline].normal;
	self.server->post_wait_ms = limit_rows[LIMIT_post_wait].normal;
	self.server->try_again = on_try_again;
	self.server->stream_ends = on_stream_ends;
	if (strlen(self.token) != TOKEN_LEN) {
		(void)error_set(&e, "the token names no current task in %s",
		    log_safe(self.dir));
		role_start_failed(EXIT_REFUSED, e.text);
	}
	memcpy(self.server->token, self.token, TOKEN_LEN);
	token_free(self.token);
}

void
standalone_serve(
    struct server *server, char *token, const char *state, unsigned int domains)
{
	struct error e;
	int fd;

	log_bound_stderr(STDERR_A_MINUTE);
	self.server = server;
	self.token = token;
	if (take_stdio(&e) == -1)
		role_start_failed(EXIT_USAGE, e.text);
	if (take_ids(&e) == -1)
		role_start_failed(EXIT_CONFIG, e.text);
	if (process_limit(NOFILE, true, &e) == -1 || hide(&e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
	role_seed();
	self.base = base_new();
	take_signals();
	fd = connector_find(state);
	self.cut = evtimer_new(self.base, on_cut, NULL);
	self.late = evtimer_new(self.base, on_late, NULL);
	if (self.cut == NULL || self.late == NULL)
		fatalx("no event");
	if (raise_walls(&e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
	server_take(domains);
	connector_join(fd);
	(void)event_base_dispatch(self.base);
	fatalx("left the event loop");
}
