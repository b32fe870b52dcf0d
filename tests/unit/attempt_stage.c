/* What attempt_stage.h says. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/unit/attempt_stage.h"

static void
on_asked(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;

	if (m->type == MSG_DROP_DECLARATION || m->type == MSG_PROGRESS) {
		struct reply_to to = peer_reply_to(peer, m);

		s->drops += m->type == MSG_DROP_DECLARATION;
		peer_done(&to, true);
		msg_free(m);
		return;
	}
	assert_null(s->asked);
	s->asked = m;
	s->to = peer_reply_to(peer, m);
}

static void
on_refusal(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;
	struct reply_to to = peer_reply_to(peer, m);

	s->refusal_asks++;
	if (s->refuses_to_note) {
		peer_fail(&to, "not_found", 0, "because");
	} else {
		s->refusals_noted = m->refusal.number;
		peer_done(&to, true);
	}
	msg_free(m);
}

static void
on_join(struct peer *peer, struct msg *m, void *arg)
{
	struct msg reply = {.type = MSG_JOINED};
	struct stage *s = arg;
	struct reply_to to = peer_reply_to(peer, m);

	s->joins++;
	if (s->unexposed == -1) {
		on_asked(peer, m, arg);
		return;
	}
	reply.joined.unexposed = s->unexposed;
	peer_reply(&to, &reply);
	msg_free(m);
}

static void
on_still_running(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;
	struct reply_to to = peer_reply_to(peer, m);

	assert_int_equal(s->still_running + 1, m->still_running.number);
	s->still_running = m->still_running.number;
	peer_done(&to, true);
	msg_free(m);
}

static void
on_exited(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;
	struct attempt *a = attempt_find(&s->d, m->worker_exited.attempt);

	if (a != NULL)
		attempt_worker_exited(a, &m->worker_exited);
	msg_free(m);
}

static void
on_mcpd(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;
	struct attempt *a = attempt_find(&s->d, m->mcpd_exited.attempt);

	if (a != NULL)
		attempt_mcpd_lost(a);
	msg_free(m);
}

static void
on_in_hand(struct peer *peer, struct msg *m, void *arg)
{
	struct stage *s = arg;

	assert_int_equal(s->in_hand, m->in_hand.taken ? 0 : 101);
	s->in_hand = m->in_hand.taken ? m->in_hand.event_id : 0;
	msg_free(m);
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	fail_msg("%s", text);
}

static const peer_handler none[MSG_COUNT] = {NULL};
static const peer_handler asked_handlers[MSG_COUNT] = {
    [MSG_LAUNCH] = on_asked,
    [MSG_REKEY] = on_asked,
    [MSG_RUNNING] = on_asked,
    [MSG_END] = on_asked,
    [MSG_PROGRESS] = on_asked,
    [MSG_REFUSAL] = on_refusal,
    [MSG_NEXT_STARTABLE] = on_asked,
    [MSG_JOIN] = on_join,
    [MSG_EXPOSE] = on_asked,
    [MSG_STILL_RUNNING] = on_still_running,
    [MSG_NEXT_LIVE] = on_asked,
    [MSG_ADOPTABLE_NEXT] = on_asked,
    [MSG_ADOPT] = on_asked,
    [MSG_LIST_REPLIES] = on_asked,
    [MSG_SPAWN_MCPD] = on_asked,
    [MSG_SPAWN_WORKER] = on_asked,
    [MSG_END_TREE] = on_asked,
    [MSG_DROP_DECLARATION] = on_asked,
    [MSG_TREE_HELD] = on_asked,
    [MSG_STOP_SERVING] = on_asked,
    [MSG_IN_HAND] = on_in_hand,
};
static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_WORKER_EXITED] = on_exited,
    [MSG_MCPD_EXITED] = on_mcpd,
};
static const struct peer_ops plain_ops = {
    .handlers = none, .broken = on_broken};
static const struct peer_ops asked_ops = {
    .handlers = asked_handlers, .broken = on_broken};
static const struct peer_ops supervisor_ops = {
    .handlers = supervisor_handlers, .broken = on_broken};

/* The dispatcher's own part is not under test here. */
struct peer *
dispatcher_ledger(struct dispatcher *d)
{
	return d->role.peers[0];
}

struct peer *
dispatcher_supervisor(struct dispatcher *d)
{
	return d->role.supervisor;
}

struct peer *
dispatcher_outbox(struct dispatcher *d)
{
	return d->role.peers[1];
}

int64_t
dispatcher_limit(const struct dispatcher *d, enum limit limit)
{
	return d->role.config->limits[limit];
}

void
dispatcher_attempt_gone(struct dispatcher *d)
{
	struct stage *s = d->role.arg;

	s->attempts_gone++;
}

void
dispatcher_attempt_over(struct dispatcher *d)
{
	dispatcher_attempt_gone(d);
}

void
pass_goes_on(struct dispatcher *d)
{
}

static void
join(struct peer *one, struct peer *other)
{
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(one, fds[0], 1);
	peer_attach(other, fds[1], 1);
}

struct stage *
stage_new(void)
{
	struct stage *s = xcalloc(1, sizeof(*s));
	struct config *c = config_new();

	s->base = event_base_new();
	s->input = s->output = s->errors = -1;
	LIST_INIT(&s->d.attempts);
	s->d.role.base = s->base;
	s->d.role.arg = s;
	s->d.role.config = c;
	c->generation = 3;
	c->concurrency = 2;
	c->deadline_ms = 60000;
	c->limits[LIMIT_adoption_bound] = 60000;
	c->limits[LIMIT_still_running] = 600000;
	c->limits[LIMIT_exit_wait] = 30;
	c->limits[LIMIT_close_grace] = 30;
	c->limits[LIMIT_cancel_grace] = 30;
	(void)snprintf(c->driver, sizeof(c->driver), "claude");
	s->ledger =
	    peer_new(s->base, ROLE_DISPATCHER, ROLE_LEDGER, "", &plain_ops, s);
	s->supervisor = peer_new(
	    s->base, ROLE_DISPATCHER, ROLE_SUPERVISOR, "", &supervisor_ops, s);
	s->at_ledger =
	    peer_new(s->base, ROLE_LEDGER, ROLE_DISPATCHER, "", &asked_ops, s);
	s->at_supervisor = peer_new(
	    s->base, ROLE_SUPERVISOR, ROLE_DISPATCHER, "", &asked_ops, s);
	s->outbox =
	    peer_new(s->base, ROLE_DISPATCHER, ROLE_OUTBOX, "", &plain_ops, s);
	s->at_outbox =
	    peer_new(s->base, ROLE_OUTBOX, ROLE_DISPATCHER, "", &asked_ops, s);
	join(s->outbox, s->at_outbox);
	s->d.role.peers[0] = s->ledger;
	s->d.role.peers[1] = s->outbox;
	s->d.role.supervisor = s->supervisor;
	join(s->ledger, s->at_ledger);
	join(s->supervisor, s->at_supervisor);
	attempt_start(&s->d, 101);
	return s;
}

void
stage_close(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

void
stage_free(struct stage *s)
{
	msg_free(s->asked);
	assert_true(LIST_EMPTY(&s->d.attempts));
	peer_free(s->ledger);
	peer_free(s->supervisor);
	peer_free(s->at_ledger);
	peer_free(s->outbox);
	peer_free(s->at_outbox);
	peer_free(s->at_supervisor);
	config_free(s->d.role.config);
	stage_close(&s->input);
	stage_close(&s->output);
	stage_close(&s->errors);
	event_base_free(s->base);
	free(s);
}

/* Turn until the request TYPE is there, or fail after 5 s. */
void
stage_expect(struct stage *s, enum msg_type type)
{
	int64_t until = clock_monotonic_ms() + 5000;
	struct timeval tick = {0, 5000};

	while (s->asked == NULL && clock_monotonic_ms() < until) {
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	if (s->asked == NULL || s->asked->type != type)
		fail_msg("%s was asked, not %s",
		    s->asked == NULL ? "nothing" : msg_name(s->asked->type),
		    msg_name(type));
}

void
stage_turn(struct stage *s)
{
	int i;

	for (i = 0; i < 50; i++)
		event_base_loop(s->base, EVLOOP_NONBLOCK);
}

void
stage_answer(struct stage *s, struct msg *m)
{
	msg_free(s->asked);
	s->asked = NULL;
	peer_reply(&s->to, m);
	stage_turn(s);
}

void
stage_refuse(struct stage *s, const char *reason)
{
	msg_free(s->asked);
	s->asked = NULL;
	peer_fail(&s->to, reason, 0, "because");
	stage_turn(s);
}

void
stage_done(struct stage *s)
{
	struct msg m = {.type = MSG_DONE};

	m.done.changed = true;
	stage_answer(s, &m);
}

static int
token_pipe(void)
{
	int fds[2];

	assert_int_equal(0, pipe(fds));
	close(fds[1]);
	return fds[0];
}

/* ---- the steps of stories ------------------------------------------------ */

void
stage_launched(struct stage *s)
{
	struct msg m = {.type = MSG_LAUNCHED};

	stage_expect(s, MSG_LAUNCH);
	assert_int_equal(101, s->asked->launch.event_id);
	assert_int_equal(3, s->asked->launch.generation);
	m.launched.task_id = 9;
	m.launched.trigger = "mentioned";
	m.launched.project_id = 7;
	m.launched.token = token_pipe();
	stage_answer(s, &m);
}

void
stage_mcpd_up(struct stage *s)
{
	stage_expect(s, MSG_SPAWN_MCPD);
	assert_true(s->asked->spawn_mcpd.token >= 0);
	stage_done(s);
}

void
stage_rekeyed(struct stage *s)
{
	struct msg m = {.type = MSG_REKEYED};

	stage_expect(s, MSG_REKEY);
	m.rekeyed.token = token_pipe();
	stage_answer(s, &m);
}

static void
worker_pipes(struct stage *s, struct msg_worker_spawned *out)
{
	int in[2], o[2], e[2];

	assert_int_equal(0, pipe(in));
	assert_int_equal(0, pipe(o));
	assert_int_equal(0, pipe(e));
	s->input = in[0];
	s->output = o[1];
	s->errors = e[1];
	(void)fcntl(s->input, F_SETFL, O_NONBLOCK);
	out->input = in[1];
	out->output = o[0];
	out->errors = e[0];
	out->pidfd = memfd_create("pidfd", MFD_CLOEXEC);
}

void
stage_worker_up(struct stage *s)
{
	struct msg m = {.type = MSG_WORKER_SPAWNED};

	stage_expect(s, MSG_SPAWN_WORKER);
	assert_int_equal(7, s->asked->spawn_worker.project_id);
	assert_int_equal(3, s->asked->spawn_worker.generation);
	m.worker_spawned.pid = 4242;
	m.worker_spawned.pgid = 4242;
	m.worker_spawned.started_ticks = 77;
	m.worker_spawned.session_id = SESSION;
	m.worker_spawned.servers = "basecamp";
	worker_pipes(s, &m.worker_spawned);
	stage_answer(s, &m);
}

/* What was written to the worker so far. */
const char *
stage_told(struct stage *s)
{
	static char bytes[8192];
	ssize_t n;

	stage_turn(s);
	n = read(s->input, bytes, sizeof(bytes) - 1);
	bytes[n > 0 ? n : 0] = '\0';
	return bytes;
}

/* Nothing is said to the worker before the ledger knows it. */
void
stage_marked(struct stage *s)
{
	stage_expect(s, MSG_RUNNING);
	assert_int_equal(4242, s->asked->running.pid);
	assert_int_equal(77, s->asked->running.started_ticks);
	assert_string_equal(SESSION, s->asked->running.session_id);
	assert_string_equal("", stage_told(s));
	stage_done(s);
	assert_non_null(strstr(stage_told(s), "event_id 101"));
}

void
stage_running(struct stage *s)
{
	stage_launched(s);
	stage_mcpd_up(s);
	stage_worker_up(s);
	stage_marked(s);
}

void
stage_says(struct stage *s, const char *line)
{
	assert_int_equal(
	    (ssize_t)strlen(line), write(s->output, line, strlen(line)));
	assert_int_equal(1, write(s->output, "\n", 1));
	stage_turn(s);
}

/* More than a pipe holds. */
void
stage_floods(struct stage *s, const char *bytes, size_t len)
{
	ssize_t n;

	(void)fcntl(s->output, F_SETFL, O_NONBLOCK);
	for (; len > 0; len -= (size_t)n, bytes += n) {
		n = write(s->output, bytes, len);
		if (n == -1)
			n = 0;
		event_base_loop(s->base, EVLOOP_NONBLOCK);
	}
	stage_turn(s);
}

void
stage_exits(struct stage *s, bool signaled, int code)
{
	struct msg m = {.type = MSG_WORKER_EXITED};

	m.worker_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	m.worker_exited.signaled = signaled;
	m.worker_exited.code = code;
	peer_notice(s->at_supervisor, &m);
	stage_close(&s->output);
	stage_turn(s);
}

void
stage_mcpd_dies(struct stage *s)
{
	struct msg m = {.type = MSG_MCPD_EXITED};

	m.mcpd_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	peer_notice(s->at_supervisor, &m);
	stage_turn(s);
}

void
stage_tree_is(struct stage *s, const char *fate)
{
	struct msg m = {.type = MSG_TREE_IS};

	stage_expect(s, MSG_END_TREE);
	m.tree_is.fate = fate;
	stage_answer(s, &m);
}

/* The attempt ends like this: stop reason and the flags that are set. */
void
stage_ends(struct stage *s, const char *stop, const char *flags)
{
	struct msg m = {.type = MSG_ENDED};
	const struct msg_end *e;
	char got[64];
	int gone;

	stage_expect(s, MSG_END);
	e = &s->asked->end;
	(void)snprintf(got, sizeof(got), "%s%s%s%s", e->stop_reason,
	    e->spawn_failed ? " spawn_failed" : "",
	    e->no_retry ? " no_retry" : "", e->uncharged ? " uncharged" : "");
	(void)snprintf(s->end, sizeof(s->end), "%s%s", stop, flags);
	assert_string_equal(s->end, got);
	m.ended.stop_reason = stop;
	m.ended.unknown = s->unknown;
	gone = s->attempts_gone;
	stage_answer(s, &m);
	assert_int_equal(gone + 1, s->attempts_gone);
	if (s->unknown == 0)
		stage_free(s);
}
