/* The far ends of an attempt_house.h: dispatcher, ledger and a task's mcpd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/control.h"
#include "tests/unit/attempt_ends.h"

/* ---- stand-ins for child.c ---------------------------------------------- */

struct child {
	struct peer *peer, *far; /* the supervisor's and the mcpd's own end */
	bool is_drained;
	int token;
};

static struct child mcpd;                      /* at most one lives at a time */
static struct peer *to_dispatcher, *to_ledger; /* the supervisor's ends */

static void
on_connected(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	if (house.stream != -1)
		(void)close(house.stream);
	house.stream = m->connected.stream;
	m->connected.stream = -1;
	msg_free(m);
}

static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops no_ops = {.handlers = no_handlers};
static const peer_handler mcpd_handlers[MSG_COUNT] = {
    [MSG_CONNECTED] = on_connected};
static const struct peer_ops mcpd_ops = {.handlers = mcpd_handlers};

static void
peers_join(struct peer *a, struct peer *b)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	peer_attach(a, pair[0], 1);
	peer_attach(b, pair[1], 1);
}

struct child *
child_spawn_mcpd(
    struct supervisor *s, const char *attempt, int token, struct error *e)
{
	assert_false(house.mcpd_lives); /* two of one task may not be */
	if (house.spawn_fails) {
		(void)close(token);
		(void)error_set(e, "no mcpd today");
		return NULL;
	}
	house.mcpd_lives = true;
	house.mcpd_spawned++;
	mcpd = (struct child){.token = token};
	mcpd.peer =
	    peer_new(s->base, ROLE_SUPERVISOR, ROLE_MCPD, attempt, &no_ops, s);
	mcpd.far =
	    peer_new(s->base, ROLE_MCPD, ROLE_SUPERVISOR, "", &mcpd_ops, s);
	peers_join(mcpd.peer, mcpd.far);
	return &mcpd;
}

/* The test says when it has drained. */
void
child_drain(struct child *c, int64_t bound_ms)
{
	assert_int_equal(bound_ms, house.sv.stopping ? 500 : 2000);
	assert_false(c->is_drained);
	c->is_drained = true;
	house.mcpd_drained++;
}

struct peer *
child_peer(struct child *c)
{
	return c->peer;
}

struct peer *
supervisor_peer(struct supervisor *s, enum role_id role)
{
	(void)s;
	return role == ROLE_DISPATCHER ? to_dispatcher
	    : role == ROLE_LEDGER      ? to_ledger
				       : NULL;
}

void
house_mcpd_ends(void)
{
	peer_free(mcpd.peer);
	peer_free(mcpd.far);
	(void)close(mcpd.token);
	house.mcpd_lives = false;
	attempt_mcpd_exited(&house.sv, ATTEMPT);
}

/* No client waits here. */
void
control_attempt_over(
    struct control *control, const char *attempt, enum fate fate)
{
	(void)control;
	(void)attempt;
	(void)fate;
}

/* ---- the dispatcher and the ledger, at the far ends --------------------- */

static struct peer *dispatcher, *ledger;

static void
on_exited(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	house.exits++;
	house.exit_code = (int)m->worker_exited.code;
	house.exit_signaled = m->worker_exited.signaled;
	msg_free(m);
}

static void
on_mcpd_exited(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	(void)arg;
	house.mcpd_exits++;
	msg_free(m);
}

static void
on_identity(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {
	    .type = MSG_IDENTITY_IS, .identity_is = house.known};
	struct reply_to to = peer_reply_to(peer, m);

	(void)arg;
	peer_reply(&to, &reply);
	msg_free(m);
}

static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_SPAWN_MCPD] = on_spawn_mcpd,
    [MSG_SPAWN_WORKER] = on_spawn_worker,
    [MSG_END_TREE] = on_end_tree,
    [MSG_DROP_DECLARATION] = on_drop_declaration,
    [MSG_STOP_SERVING] = on_stop_serving};
static const struct peer_ops supervisor_ops = {.handlers = supervisor_handlers};
static const peer_handler dispatcher_handlers[MSG_COUNT] = {
    [MSG_WORKER_EXITED] = on_exited, [MSG_MCPD_EXITED] = on_mcpd_exited};
static const struct peer_ops dispatcher_ops = {.handlers = dispatcher_handlers};
static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_IDENTITY] = on_identity};
static const struct peer_ops ledger_ops = {.handlers = ledger_handlers};

void
house_links_make(void)
{
	to_dispatcher = peer_new(house.sv.base, ROLE_SUPERVISOR,
	    ROLE_DISPATCHER, "", &supervisor_ops, &house.sv);
	dispatcher = peer_new(house.sv.base, ROLE_DISPATCHER, ROLE_SUPERVISOR,
	    "", &dispatcher_ops, NULL);
	peers_join(to_dispatcher, dispatcher);
	to_ledger = peer_new(house.sv.base, ROLE_SUPERVISOR, ROLE_LEDGER, "",
	    &no_ops, &house.sv);
	ledger = peer_new(
	    house.sv.base, ROLE_LEDGER, ROLE_SUPERVISOR, "", &ledger_ops, NULL);
	peers_join(to_ledger, ledger);
}

void
house_links_free(void)
{
	peer_free(dispatcher);
	peer_free(to_dispatcher);
	peer_free(ledger);
	peer_free(to_ledger);
}

/* ---- asked and awaited --------------------------------------------------- */

static void
on_answer(struct peer *peer, struct msg *m, void *arg)
{
	struct answer *a = arg;
	struct msg_worker_spawned *w = &m->worker_spawned;

	(void)peer;
	assert_false(a->is_there);
	a->is_there = true;
	a->type = m->type;
	if (m->type == MSG_FAILED) {
		(void)snprintf(
		    a->word, sizeof(a->word), "%s", m->failed.reason);
		(void)snprintf(a->text, sizeof(a->text), "%s", m->failed.text);
	} else if (m->type == MSG_TREE_IS) {
		(void)snprintf(a->word, sizeof(a->word), "%s", m->tree_is.fate);
		(void)snprintf(a->text, sizeof(a->text), "%s", m->tree_is.text);
	} else if (m->type == MSG_WORKER_SPAWNED) {
		a->worker = *w;
		w->pidfd = w->input = w->output = w->errors = -1;
	}
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

/* Run the loop until IS_TRUE says so, or fail. */
void
house_run_until(
    bool (*is_true)(const void *arg), const void *arg, const char *what)
{
	const struct timeval tv = {.tv_sec = DEADLINE_MS / 1000};
	bool is_late = false;
	struct event *timer = evtimer_new(house.sv.base, on_deadline, &is_late);

	(void)evtimer_add(timer, &tv);
	while (!is_true(arg)) {
		if (is_late)
			fail_msg("waited in vain for %s", what);
		(void)event_base_loop(house.sv.base, EVLOOP_ONCE);
	}
	event_free(timer);
}

static bool
is_answered(const void *arg)
{
	return ((const struct answer *)arg)->is_there;
}

void
house_await(const struct answer *a)
{
	house_run_until(is_answered, a, "an answer");
}

/* All that is under way has been handled: an echo has gone round. */
void
house_settle(void)
{
	struct msg m = {.type = MSG_PING};
	struct answer pong = {0};

	(void)peer_request(dispatcher, &m, on_answer, &pong);
	house_await(&pong);
	(void)event_base_loop(house.sv.base, EVLOOP_NONBLOCK);
}

void
house_ask(struct answer *a, struct msg *m)
{
	memset(a, 0, sizeof(*a));
	(void)peer_request(dispatcher, m, on_answer, a);
}

void
house_ask_mcpd(struct answer *a, const char *attempt)
{
	struct msg m = {.type = MSG_SPAWN_MCPD};
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	(void)close(pair[1]);
	m.spawn_mcpd.attempt = attempt;
	m.spawn_mcpd.token = pair[0];
	house_ask(a, &m);
}

void
house_ask_worker(struct answer *a, int64_t generation)
{
	struct msg m = {.type = MSG_SPAWN_WORKER};

	m.spawn_worker.attempt = ATTEMPT;
	m.spawn_worker.project_id = PROJECT;
	m.spawn_worker.generation = generation;
	house_ask(a, &m);
}

void
house_ask_end(struct answer *a, const char *attempt, int64_t grace_ms)
{
	struct msg m = {.type = MSG_END_TREE};

	m.end_tree.attempt = attempt;
	m.end_tree.grace_ms = grace_ms;
	house_ask(a, &m);
}
