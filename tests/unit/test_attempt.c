/*
 * An attempt's life, told as stories: what the dispatcher asks of ledger and
 * supervisor, in which order, and how the attempt ends. The other ends of the
 * links are played here; the worker's pipes are real.
 */
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
#include "dispatcher/attempt.h"

#define SESSION "11111111-2222-4333-8444-555555555555"
#define INIT                                                                  \
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" SESSION \
	"\",\"permissionMode\":\"acceptEdits\",\"mcp_servers\":"              \
	"[{\"name\":\"basecamp\",\"status\":\"connected\"}]}"
#define BAD_INIT "{\"type\":\"system\",\"subtype\":\"init\"}"
#define GOOD "{\"type\":\"result\",\"subtype\":\"success\"}"
#define BAD "{\"type\":\"result\",\"subtype\":\"error_during_execution\"}"

struct stage {
	struct event_base *base;
	struct dispatcher d;
	struct peer *ledger, *supervisor; /* as the dispatcher sees them */
	struct peer *at_ledger, *at_supervisor; /* the dispatcher, seen so */
	struct msg *asked; /* the newest request, not yet answered */
	struct reply_to to;
	int input, output, errors; /* the worker's own ends */
	char end[64];              /* how END settled it */
	/* REFUSAL: how often it was asked, and what it said last. */
	int refusal_asks;
	int64_t refusals_noted;
	bool refuses_to_note;
	int drops; /* DROP_DECLARATION */
};

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
    [MSG_SPAWN_MCPD] = on_asked,
    [MSG_SPAWN_WORKER] = on_asked,
    [MSG_END_TREE] = on_asked,
    [MSG_DROP_DECLARATION] = on_asked,
    [MSG_TREE_HELD] = on_asked,
    [MSG_STOP_SERVING] = on_asked,
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

int64_t
dispatcher_limit(const struct dispatcher *d, enum limit limit)
{
	return d->role.config->limits[limit];
}

void
dispatcher_attempt_over(struct dispatcher *d)
{
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

static struct stage *
stage_new(void)
{
	struct stage *s = xcalloc(1, sizeof(*s));
	struct config *c = config_new();

	s->base = event_base_new();
	s->input = s->output = s->errors = -1;
	LIST_INIT(&s->d.attempts);
	s->d.role.base = s->base;
	s->d.role.config = c;
	c->generation = 3;
	c->concurrency = 2;
	c->deadline_ms = 60000;
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
	s->d.role.peers[0] = s->ledger;
	s->d.role.supervisor = s->supervisor;
	join(s->ledger, s->at_ledger);
	join(s->supervisor, s->at_supervisor);
	attempt_start(&s->d, 101);
	return s;
}

static void
stage_close(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void
stage_free(struct stage *s)
{
	msg_free(s->asked);
	assert_true(LIST_EMPTY(&s->d.attempts));
	peer_free(s->ledger);
	peer_free(s->supervisor);
	peer_free(s->at_ledger);
	peer_free(s->at_supervisor);
	config_free(s->d.role.config);
	stage_close(&s->input);
	stage_close(&s->output);
	stage_close(&s->errors);
	event_base_free(s->base);
	free(s);
}

/* Turn until the request TYPE is there, or fail after 5 s. */
static void
expect(struct stage *s, enum msg_type type)
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

static void
turn(struct stage *s)
{
	int i;

	for (i = 0; i < 50; i++)
		event_base_loop(s->base, EVLOOP_NONBLOCK);
}

static void
answer(struct stage *s, struct msg *m)
{
	msg_free(s->asked);
	s->asked = NULL;
	peer_reply(&s->to, m);
	turn(s);
}

static void
refuse(struct stage *s, const char *reason)
{
	msg_free(s->asked);
	s->asked = NULL;
	peer_fail(&s->to, reason, 0, "because");
	turn(s);
}

static void
done(struct stage *s)
{
	struct msg m = {.type = MSG_DONE};

	m.done.changed = true;
	answer(s, &m);
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

static void
launched(struct stage *s)
{
	struct msg m = {.type = MSG_LAUNCHED};

	expect(s, MSG_LAUNCH);
	assert_int_equal(101, s->asked->launch.event_id);
	assert_int_equal(3, s->asked->launch.generation);
	m.launched.task_id = 9;
	m.launched.trigger = "mentioned";
	m.launched.project_id = 7;
	m.launched.token = token_pipe();
	answer(s, &m);
}

static void
mcpd_up(struct stage *s)
{
	expect(s, MSG_SPAWN_MCPD);
	assert_true(s->asked->spawn_mcpd.token >= 0);
	done(s);
}

static void
rekeyed(struct stage *s)
{
	struct msg m = {.type = MSG_REKEYED};

	expect(s, MSG_REKEY);
	m.rekeyed.token = token_pipe();
	answer(s, &m);
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

static void
worker_up(struct stage *s)
{
	struct msg m = {.type = MSG_WORKER_SPAWNED};

	expect(s, MSG_SPAWN_WORKER);
	assert_int_equal(7, s->asked->spawn_worker.project_id);
	assert_int_equal(3, s->asked->spawn_worker.generation);
	m.worker_spawned.pid = 4242;
	m.worker_spawned.pgid = 4242;
	m.worker_spawned.started_ticks = 77;
	m.worker_spawned.session_id = SESSION;
	m.worker_spawned.servers = "basecamp";
	worker_pipes(s, &m.worker_spawned);
	answer(s, &m);
}

/* What was written to the worker so far. */
static const char *
told(struct stage *s)
{
	static char bytes[8192];
	ssize_t n;

	turn(s);
	n = read(s->input, bytes, sizeof(bytes) - 1);
	bytes[n > 0 ? n : 0] = '\0';
	return bytes;
}

/* Nothing is said to the worker before the ledger knows it. */
static void
marked(struct stage *s)
{
	expect(s, MSG_RUNNING);
	assert_int_equal(4242, s->asked->running.pid);
	assert_int_equal(77, s->asked->running.started_ticks);
	assert_string_equal(SESSION, s->asked->running.session_id);
	assert_string_equal("", told(s));
	done(s);
	assert_non_null(strstr(told(s), "event_id 101"));
}

static void
running(struct stage *s)
{
	launched(s);
	mcpd_up(s);
	worker_up(s);
	marked(s);
}

static void
says(struct stage *s, const char *line)
{
	assert_int_equal(
	    (ssize_t)strlen(line), write(s->output, line, strlen(line)));
	assert_int_equal(1, write(s->output, "\n", 1));
	turn(s);
}

/* More than a pipe holds. */
static void
floods(struct stage *s, const char *bytes, size_t len)
{
	ssize_t n;

	(void)fcntl(s->output, F_SETFL, O_NONBLOCK);
	for (; len > 0; len -= (size_t)n, bytes += n) {
		n = write(s->output, bytes, len);
		if (n == -1)
			n = 0;
		event_base_loop(s->base, EVLOOP_NONBLOCK);
	}
	turn(s);
}

static void
exits(struct stage *s, bool signaled, int code)
{
	struct msg m = {.type = MSG_WORKER_EXITED};

	m.worker_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	m.worker_exited.signaled = signaled;
	m.worker_exited.code = code;
	peer_notice(s->at_supervisor, &m);
	stage_close(&s->output);
	turn(s);
}

static void
mcpd_dies(struct stage *s)
{
	struct msg m = {.type = MSG_MCPD_EXITED};

	m.mcpd_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	peer_notice(s->at_supervisor, &m);
	turn(s);
}

static void
tree_is(struct stage *s, const char *fate)
{
	struct msg m = {.type = MSG_TREE_IS};

	expect(s, MSG_END_TREE);
	m.tree_is.fate = fate;
	answer(s, &m);
}

/* The attempt ends like this: stop reason and the flags that are set. */
static void
ends(struct stage *s, const char *stop, const char *flags)
{
	struct msg m = {.type = MSG_ENDED};
	const struct msg_end *e;
	char got[64];

	expect(s, MSG_END);
	e = &s->asked->end;
	(void)snprintf(got, sizeof(got), "%s%s%s%s", e->stop_reason,
	    e->spawn_failed ? " spawn_failed" : "",
	    e->no_retry ? " no_retry" : "", e->uncharged ? " uncharged" : "");
	(void)snprintf(s->end, sizeof(s->end), "%s%s", stop, flags);
	assert_string_equal(s->end, got);
	m.ended.stop_reason = stop;
	answer(s, &m);
	stage_free(s);
}

/* ---- stories ---------------------------------------------------------------
 */

static void
a_turn_that_ends_well(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says(s, GOOD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

/* Clean answer, then a code of its own: failed. Ended by us: finished. */
static void
an_exit_code_after_the_answer(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says(s, GOOD);
	exits(s, false, 3);
	tree_is(s, "gone");
	ends(s, "failed", "");

	s = stage_new();
	running(s);
	says(s, INIT);
	says(s, GOOD);
	exits(s, true, 9);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

/* One that does not go when told is ended with its tree. */
static void
a_worker_that_lingers(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says(s, GOOD);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

static void
a_turn_that_ends_badly(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says(s, BAD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "failed", "");
}

/* Gone in the middle: its own code is a failure, all else a loss. */
static void
a_worker_that_vanishes(void **state)
{
	static const struct {
		bool signaled;
		int code;
		const char *stop;
	} cases[] = {
	    {false, 3, "failed"}, {true, 9, "lost"}, {false, 0, "lost"}};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct stage *s = stage_new();

		running(s);
		says(s, INIT);
		exits(s, cases[i].signaled, cases[i].code);
		tree_is(s, "gone");
		ends(s, cases[i].stop, "");
	}
}

/* A last answer that was still in the pipe counts. */
static void
a_late_answer_counts(void **state)
{
	struct stage *s = stage_new();
	struct msg m = {.type = MSG_WORKER_EXITED};

	running(s);
	says(s, INIT);
	m.worker_exited.attempt = LIST_FIRST(&s->d.attempts)->id;
	peer_notice(s->at_supervisor, &m);
	turn(s);
	says(s, GOOD);
	stage_close(&s->output);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

/* Answers after the answer are no reason to wait for it any longer. */
static void
a_worker_that_answers_without_end(void **state)
{
	int64_t until = clock_monotonic_ms() + 2000;
	struct stage *s = stage_new();
	struct timeval tick = {0, 5000};

	running(s);
	says(s, INIT);
	while (s->asked == NULL && clock_monotonic_ms() < until) {
		says(s, GOOD);
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	assert_non_null(s->asked);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

/* Lines that are logged, of all that FLOOD says at once, 1000 times. */
static int
lines_logged(struct stage *s, const char *flood)
{
	int kept = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	int i, count = 0;
	char c;

	assert_int_equal(STDERR_FILENO, dup2(log, STDERR_FILENO));
	for (i = 0; i < 1000; i++)
		says(s, flood);
	assert_int_equal(STDERR_FILENO, dup2(kept, STDERR_FILENO));
	close(kept);
	assert_int_equal(0, lseek(log, 0, SEEK_SET));
	while (read(log, &c, 1) == 1)
		count += c == '\n';
	close(log);
	return count;
}

/* A worker's lines are not the log's, however many there are. */
static void
a_worker_that_complains_without_end(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	assert_int_equal(1, lines_logged(s, BAD));
	tree_is(s, "gone");
	ends(s, "failed", "");

	s = stage_new();
	running(s);
	assert_int_equal(1, lines_logged(s, BAD_INIT));
	assert_int_equal(1, s->drops);
	tree_is(s, "gone");
	ends(s, "failed", "");
}

/* Nothing behind it is read: the session is over, though the pipe is open. */
static void
a_line_too_long_is_the_end(void **state)
{
	size_t len = STREAM_LINE_MOST + 1;
	struct stage *s = stage_new();
	char *line = xmalloc(len);

	running(s);
	says(s, INIT);
	memset(line, 'x', len);
	floods(s, line, len);
	free(line);
	floods(s, "\n" GOOD "\n", sizeof("\n" GOOD "\n") - 1);
	tree_is(s, "gone");
	ends(s, "lost", "");
}

/* ---- refusals ------------------------------------------------------------ */

/* A result that lists COUNT calls without an id, each of them refused. */
static void
says_refused(struct stage *s, size_t count)
{
	static const char before[] = "{\"type\":\"result\",\"subtype\":"
				     "\"success\",\"permission_denials\":[{}";
	size_t len = sizeof(before) - 1 + 3 * (count - 1) + 3;
	char *line = xmalloc(len + 1), *at = line;

	at += snprintf(at, sizeof(before), "%s", before);
	while (--count > 0)
		at += snprintf(at, 4, ",{}");
	(void)snprintf(at, 4, "]}\n");
	floods(s, line, len);
	free(line);
}

/* The newest count says it all: a flood of them is not one of requests. */
static void
many_refusals_are_few_requests(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says(s, "{\"type\":\"system\",\"subtype\":\"permission_denied\"}");
	assert_int_equal(1, s->refusals_noted);
	says_refused(s, 100000);
	assert_int_equal(100001, s->refusals_noted);
	assert_in_range(s->refusal_asks, 2, 5);
	exits(s, false, 0);
	tree_is(s, "gone");
	expect(s, MSG_END);
	assert_int_equal(0, s->asked->end.refusals);
	ends(s, "finished", "");
}

/* What the ledger did not write down then, it does at the end; once. */
static void
refusals_not_noted_are_settled(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	says_refused(s, 2);
	s->refuses_to_note = true;
	says_refused(s, 3);
	assert_int_equal(2, s->refusals_noted);
	exits(s, false, 0);
	tree_is(s, "gone");
	expect(s, MSG_END);
	assert_int_equal(3, s->asked->end.refusals);
	ends(s, "finished", "");

	s = stage_new();
	running(s);
	says(s, INIT);
	s->refuses_to_note = true;
	says_refused(s, 2);
	s->refuses_to_note = false;
	says_refused(s, 3);
	assert_int_equal(5, s->refusals_noted);
	exits(s, false, 0);
	tree_is(s, "gone");
	expect(s, MSG_END);
	assert_int_equal(0, s->asked->end.refusals);
	ends(s, "finished", "");
}

/* Never verified: failed, although its end alone would be a loss. */
static void
a_session_never_verified(void **state)
{
	struct stage *s = stage_new();

	running(s);
	exits(s, true, 9);
	tree_is(s, "gone");
	ends(s, "failed", "");
}

static void
another_session_than_asked_for(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, BAD_INIT);
	expect(s, MSG_END_TREE);
	assert_int_equal(0, s->asked->end_tree.grace_ms);
	tree_is(s, "gone");
	ends(s, "failed", "");
}

static void
a_launch_refused_leaves_nothing(void **state)
{
	struct stage *s = stage_new();

	expect(s, MSG_LAUNCH);
	refuse(s, "not_startable");
	assert_null(s->asked);
	stage_free(s);
}

/* No process ever was: retried once, unless a retry cannot help. */
static void
a_worker_that_does_not_start(void **state)
{
	static const char *const cases[][2] = {{"not_started", " spawn_failed"},
	    {"unusable", " spawn_failed no_retry"},
	    {"stale_config", " spawn_failed uncharged"}};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct stage *s = stage_new();

		launched(s);
		mcpd_up(s);
		expect(s, MSG_SPAWN_WORKER);
		refuse(s, cases[i][0]);
		tree_is(s, "never_forked");
		ends(s, "failed", cases[i][1]);
	}
}

/*
 * A start goes by the configuration of its launch: asked for by a newer one,
 * it would use a route or a launcher that the ledger never heard of.
 */
static void
a_reload_between_launch_and_start(void **state)
{
	struct stage *s = stage_new();

	launched(s);
	s->d.role.config->generation = 4;
	mcpd_up(s);
	expect(s, MSG_SPAWN_WORKER);
	assert_int_equal(3, s->asked->spawn_worker.generation);
	refuse(s, "stale_config");
	tree_is(s, "never_forked");
	ends(s, "failed", " spawn_failed uncharged");
}

/* A refusal whose process existed all the same is never a failed spawn. */
static void
a_refused_start_with_a_process(void **state)
{
	struct stage *s = stage_new();

	launched(s);
	mcpd_up(s);
	expect(s, MSG_SPAWN_WORKER);
	refuse(s, "unusable");
	tree_is(s, "gone");
	ends(s, "failed", "");
}

/* mcpd dies before it serves: a new token, another mcpd, and on. */
static void
an_mcpd_that_dies_at_its_start(void **state)
{
	struct stage *s = stage_new();

	launched(s);
	expect(s, MSG_SPAWN_MCPD);
	refuse(s, "transient");
	rekeyed(s);
	mcpd_up(s);
	worker_up(s);
	marked(s);
	says(s, INIT);
	says(s, GOOD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

static void
an_mcpd_that_never_starts(void **state)
{
	struct stage *s = stage_new();
	int i;

	launched(s);
	for (i = 0;; i++) {
		expect(s, MSG_SPAWN_MCPD);
		refuse(s, "transient");
		turn(s);
		if (s->asked != NULL && s->asked->type == MSG_END_TREE)
			break;
		rekeyed(s);
	}
	assert_true(i < ATTEMPT_KEYINGS_MOST);
	tree_is(s, "never_forked");
	ends(s, "failed", " spawn_failed");
}

/* mcpd dies beside a running turn: re-keyed, and the turn goes on. */
static void
an_mcpd_that_dies_in_a_turn(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	mcpd_dies(s);
	rekeyed(s);
	mcpd_up(s);
	mcpd_dies(s);
	rekeyed(s);
	expect(s, MSG_SPAWN_MCPD);
	refuse(s, "transient"); /* and again by itself */
	rekeyed(s);
	mcpd_up(s);
	says(s, GOOD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "finished", "");
}

/* A task that gets no mcpd any more: what waits for one is told. */
static void
an_mcpd_that_dies_too_often(void **state)
{
	struct stage *s = stage_new();
	int i;

	running(s);
	says(s, INIT);
	for (i = 1; i < ATTEMPT_KEYINGS_MOST; i++) {
		mcpd_dies(s);
		rekeyed(s);
		mcpd_up(s);
	}
	mcpd_dies(s);
	expect(s, MSG_STOP_SERVING);
	done(s);
	says(s, GOOD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "finished", "");

	s = stage_new();
	running(s);
	mcpd_dies(s);
	expect(s, MSG_REKEY);
	refuse(s, "refused");
	expect(s, MSG_STOP_SERVING);
	done(s);
	exits(s, true, 9);
	tree_is(s, "gone");
	ends(s, "failed", "");
}

/* The deadline interrupts the turn, waits, and ends the tree. */
static void
a_deadline_in_a_turn(void **state)
{
	struct stage *s = stage_new();

	running(s);
	says(s, INIT);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_DEADLINE);
	assert_non_null(strstr(told(s), "interrupt"));
	tree_is(s, "gone"); /* after the grace */
	ends(s, "deadline", "");

	s = stage_new();
	running(s);
	says(s, INIT);
	attempt_event(LIST_FIRST(&s->d.attempts), EV_DEADLINE);
	says(s, BAD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "deadline", "");
}

static void
the_deadline_is_a_timer(void **state)
{
	struct stage *s = stage_new();

	s->d.role.config->deadline_ms = 1;
	launched(s);
	expect(s, MSG_SPAWN_MCPD);
	msg_free(s->asked);
	s->asked = NULL;
	tree_is(s, "never_forked");
	ends(s, "failed", " spawn_failed");
}

/* An orderly stop at every place of the way. */
static void
a_stop_at_each_step(void **state)
{
	struct stage *s = stage_new();

	attempts_shutdown(&s->d);
	launched(s);
	tree_is(s, "never_forked");
	ends(s, "failed", " spawn_failed uncharged");

	s = stage_new();
	launched(s);
	mcpd_up(s);
	worker_up(s);
	expect(s, MSG_RUNNING);
	attempts_shutdown(&s->d);
	msg_free(s->asked);
	s->asked = NULL;
	tree_is(s, "gone");
	ends(s, "shutdown", "");

	s = stage_new();
	running(s);
	says(s, INIT);
	attempts_shutdown(&s->d);
	assert_non_null(strstr(told(s), "interrupt"));
	says(s, BAD);
	exits(s, false, 0);
	tree_is(s, "gone");
	ends(s, "shutdown", "");
}

/* Nobody can prove it gone: held, counted, never settled. */
static void
a_tree_that_cannot_be_proved_gone(void **state)
{
	struct stage *s = stage_new();
	struct attempt *a;

	running(s);
	says(s, INIT);
	says(s, GOOD);
	exits(s, false, 0);
	tree_is(s, "held");
	expect(s, MSG_TREE_HELD);
	done(s);
	assert_null(s->asked);
	assert_int_equal(1, attempts_held(&s->d));
	assert_int_equal(1, attempts_count(&s->d));
	a = LIST_FIRST(&s->d.attempts);
	attempts_shutdown(&s->d);
	attempt_event(a, EV_DEADLINE);
	turn(s);
	assert_null(s->asked);
	LIST_REMOVE(a, entry);
	event_free(a->timer);
	event_free(a->deadline);
	free(a->trigger);
	free(a->url);
	free(a);
	stage_free(s);
}

/* What an earlier dispatcher left: ended first, then settled as lost. */
static void
recovery_ends_and_settles(void **state)
{
	struct stage *s = stage_new();
	struct msg_live live = {.found = true,
	    .attempt = "att_000000000000000000000000",
	    .task_id = 5};

	expect(s, MSG_LAUNCH);
	refuse(s, "not_startable");
	attempt_recover(&s->d, &live);
	tree_is(s, "gone");
	ends(s, "lost", "");

	s = stage_new();
	expect(s, MSG_LAUNCH);
	refuse(s, "not_startable");
	attempt_recover(&s->d, &live);
	tree_is(s, "never_forked");
	ends(s, "failed", " spawn_failed");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_turn_that_ends_well),
	    cmocka_unit_test(an_exit_code_after_the_answer),
	    cmocka_unit_test(a_worker_that_lingers),
	    cmocka_unit_test(a_turn_that_ends_badly),
	    cmocka_unit_test(a_worker_that_vanishes),
	    cmocka_unit_test(a_late_answer_counts),
	    cmocka_unit_test(a_worker_that_answers_without_end),
	    cmocka_unit_test(a_worker_that_complains_without_end),
	    cmocka_unit_test(a_line_too_long_is_the_end),
	    cmocka_unit_test(many_refusals_are_few_requests),
	    cmocka_unit_test(refusals_not_noted_are_settled),
	    cmocka_unit_test(a_session_never_verified),
	    cmocka_unit_test(another_session_than_asked_for),
	    cmocka_unit_test(a_launch_refused_leaves_nothing),
	    cmocka_unit_test(a_worker_that_does_not_start),
	    cmocka_unit_test(a_reload_between_launch_and_start),
	    cmocka_unit_test(a_refused_start_with_a_process),
	    cmocka_unit_test(an_mcpd_that_dies_at_its_start),
	    cmocka_unit_test(an_mcpd_that_never_starts),
	    cmocka_unit_test(an_mcpd_that_dies_in_a_turn),
	    cmocka_unit_test(an_mcpd_that_dies_too_often),
	    cmocka_unit_test(a_deadline_in_a_turn),
	    cmocka_unit_test(the_deadline_is_a_timer),
	    cmocka_unit_test(a_stop_at_each_step),
	    cmocka_unit_test(a_tree_that_cannot_be_proved_gone),
	    cmocka_unit_test(recovery_ends_and_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
