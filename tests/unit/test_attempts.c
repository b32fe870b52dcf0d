/*
 * An attempt's life in the supervisor, asked over a real link: its mcpd, its
 * worker, the task's socket, the end of its tree (design 3.1, 5, 5.1, 6.1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "tests/unit/attempt_house.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Long enough for the loop to come back after a fork, whatever else runs. */
#define LATE_MS 500

/* ---- tests -------------------------------------------------------------- */

static void
test_whole_life(void **state)
{
	struct msg_worker_spawned w;
	struct attempt *attempt;
	struct answer a;
	char *dir, *declaration;
	struct stat st;

	(void)state;
	house_prepare();
	attempt = attempt_find(&house.sv, ATTEMPT);
	dir = xstrdup(attempt->session->dir);
	declaration = xstrdup(attempt->session->declaration);
	w = house_start_worker();
	assert_int_equal(w.pid, w.pgid);
	assert_true(w.started_ticks > 0);
	assert_int_equal(strlen(attempt->session_id), 36);
	assert_int_equal(attempts_hold_pid(&house.sv, (pid_t)w.pid), 1);
	assert_int_equal(attempts_hold_pid(&house.sv, getpid()), 0);
	assert_int_equal(attempts_live(&house.sv), 1);
	assert_int_equal(lstat(declaration, &st), 0);
	/* A second worker of it, never. */
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_end_and_assert("gone");
	assert_int_equal(house.exits, 1);
	assert_true(house.exit_signaled);
	assert_int_equal(house.exit_code, SIGTERM);
	house_worker_forget(&w);
	assert_int_equal(attempts_live(&house.sv), 0);
	/* It is closed for ever, and tells its fate again. */
	house_ask_end(&a, ATTEMPT, 0);
	house_await(&a);
	assert_string_equal(a.word, "gone");
	house_assert_refused(ATTEMPT);
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_run_until(house_no_children, NULL, "the cleaning");
	assert_int_equal(lstat(dir, &st), -1);
	free(dir);
	free(declaration);
}

static bool
has_exited(const void *arg)
{
	(void)arg;
	return house.exits > 0;
}

static bool
is_starting(const void *attempt)
{
	return ((const struct attempt *)attempt)->state == ATTEMPT_STARTING;
}

/* What the ledger knows when RUNNING was never committed: no process. */
static const char *
finds_unrecorded(void)
{
	static const struct msg_identity_is known = {.found = true,
	    .state = "launching",
	    .run_id = RUN,
	    .boot_id = "",
	    .containment = ""};

	const char *found = recovery_finds(&house.sv, ATTEMPT, &known);

	return found == NULL ? "nothing" : found;
}

/* A person says that nothing of it runs; we know better of our own child. */
static void
test_own_tree_is_found(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	assert_string_equal("nothing", finds_unrecorded());
	house_prepare();
	assert_string_equal("nothing", finds_unrecorded());
	w = house_start_worker();
	assert_string_equal("its worker's process runs", finds_unrecorded());
	house_end_and_assert("gone");
	assert_string_equal("nothing", finds_unrecorded());
	house_worker_forget(&w);
}

static void
test_own_orphan_is_found(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	house_settings_make("orphan", "bin/agent");
	house_prepare();
	w = house_start_worker();
	house_run_until(has_exited, NULL, "WORKER_EXITED");
	assert_string_equal(
	    "processes that its worker left run", finds_unrecorded());
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

/* From the first that is asked of it, for ever. */
static void
test_whom_this_run_had(void **state)
{
	(void)state;
	assert_false(attempts_had(&house.sv, ATTEMPT));
	house_prepare();
	assert_true(attempts_had(&house.sv, ATTEMPT));
	house_end_and_assert("never_forked");
	assert_true(attempts_had(&house.sv, ATTEMPT));
	assert_false(attempts_had(&house.sv, EARLIER));
}

/* It goes by itself: told once; reaped at once, for nothing is left of it. */
static void
test_exit_by_itself(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	house_prepare();
	w = house_start_worker();
	(void)close(w.input);
	w.input = -1;
	house_run_until(has_exited, NULL, "WORKER_EXITED");
	assert_false(house.exit_signaled);
	assert_int_equal(house.exit_code, 3);
	assert_int_equal(kill((pid_t)w.pid, 0), -1);
	house_end_and_assert("gone");
	assert_int_equal(house.exits, 1);
	house_worker_forget(&w);
}

/* Its leader is gone and a child of it is not: a zombie keeps the number. */
static void
test_leaderless(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	house_settings_make("orphan", "bin/agent");
	house_prepare();
	w = house_start_worker();
	house_run_until(has_exited, NULL, "WORKER_EXITED");
	assert_int_equal(house.exit_code, 5);
	assert_int_equal(kill((pid_t)w.pid, 0), 0);
	assert_int_equal(identity_group_members((pid_t)w.pid), 1);
	house_end_and_assert("gone");
	assert_int_equal(identity_group_members((pid_t)w.pid), 0);
	assert_int_equal(house.exits, 1);
	house_worker_forget(&w);
}

static void
test_deaf_worker(void **state)
{
	struct msg_worker_spawned w;
	struct answer first, second;

	(void)state;
	house_settings_make("deaf", "bin/agent");
	house_prepare();
	w = house_start_worker();
	house_ask_end(&first, ATTEMPT, 60000);
	house_settle();
	house_ask_end(&second, ATTEMPT, 0); /* more in a hurry */
	house_await(&first);
	assert_string_equal(first.word, "cancelled");
	house_run_until(house_drain_began, &(int){0}, "the drain");
	house_mcpd_ends();
	house_await(&second);
	assert_string_equal(second.word, "gone");
	assert_int_equal(house.exit_code, SIGKILL);
	house_worker_forget(&w);
}

/*
 * A person settles what was held, while it is being ended once more: whatever
 * comes of that, nobody settles it again.
 */
static void
test_settled_while_it_ends(void **state)
{
	struct msg_worker_spawned w;
	struct attempt *attempt;
	struct answer a;

	(void)state;
	house_settings_make("deaf", "bin/agent");
	house_prepare();
	w = house_start_worker();
	house_ask_end(&a, ATTEMPT, 60000);
	house_settle();
	attempts_settled(&house.sv, ATTEMPT);
	attempt = attempt_find(&house.sv, ATTEMPT);
	assert_int_equal(attempt->state, ATTEMPT_ENDING);
	attempt_happens(attempt, ATTEMPT_TREE_DOUBTED);
	house_run_until(house_drain_began, &(int){0}, "the drain");
	house_mcpd_ends();
	house_await(&a);
	assert_string_equal(a.word, "gone");
	assert_int_equal(kill(-(pid_t)w.pgid, SIGKILL), 0);
	house_worker_forget(&w);
}

static void
test_never_forked(void **state)
{
	(void)state;
	house_prepare();
	house_end_and_assert("never_forked");
	house_assert_refused(ATTEMPT);
}

/* A stop of 8 s has half a second for it. */
static void
test_drain_in_a_stop(void **state)
{
	(void)state;
	house_prepare();
	house.sv.settings->config->limits[LIMIT_stop_bound] = 8000;
	house.sv.stopping = true;
	house_end_and_assert("never_forked");
}

/* Asked with another generation than the present one: at most once, still. */
static void
test_stale_config(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	house_ask_worker(&a, house.sv.generation - 1);
	house_await(&a);
	assert_string_equal(a.word, "stale_config");
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_end_and_assert("never_forked");
}

static void
test_config_unreadable(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	house.sv.config_unreadable = true;
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "stale_config");
	house_end_and_assert("never_forked");
}

static void
test_no_route(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	config_ids_add(&house.sv.settings->config->scope, PROJECT + 1);
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "unusable");
	house_end_and_assert("never_forked");
}

static void
test_not_started(void **state)
{
	struct answer a;

	(void)state;
	house_settings_make("plain", "bin/no-such-agent");
	house_prepare();
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "not_started");
	assert_non_null(strstr(a.text, "No such file"));
	assert_int_equal(house.exits, 0);
	house_end_and_assert("never_forked");
}

/* Of the attempt: its program is to say within so long that it runs. */
static struct attempt *
fork_worker(struct answer *a, int64_t within_ms)
{
	struct attempt *attempt = attempt_find(&house.sv, ATTEMPT);

	house.sv.settings->config->limits[LIMIT_ready_deadline] = within_ms;
	house_ask_worker(a, house.sv.generation);
	house_run_until(is_starting, attempt, "the fork");
	return attempt;
}

/*
 * The supervisor comes late to the verdict, being stopped for a while, say. The
 * program has run since, and left a process: it is none that was never forked.
 */
static void
test_late_verdict(void **state)
{
	int64_t since = clock_monotonic_ms();
	struct pollfd out = {.events = POLLIN};
	struct answer a;

	(void)state;
	house_settings_make("orphan", "bin/agent");
	house_prepare();
	out.fd = fork_worker(&a, LATE_MS)->worker.output;
	assert_int_equal(poll(&out, 1, DEADLINE_MS), 1);
	while (clock_monotonic_ms() <= since + 2 * LATE_MS)
		(void)poll(NULL, 0, 1);
	house_await(&a);
	assert_string_equal(a.word, "");
	assert_int_equal(a.type, MSG_WORKER_SPAWNED);
	house_run_until(has_exited, NULL, "WORKER_EXITED");
	assert_int_equal(house.exit_code, 5);
	assert_string_equal(
	    "processes that its worker left run", finds_unrecorded());
	house_end_and_assert("gone");
	house_worker_forget(&a.worker);
}

/* It never says a word and is killed: it may have been started just before. */
static void
test_no_verdict(void **state)
{
	struct attempt *attempt;
	struct answer a;
	int silent[2];

	(void)state;
	house_prepare();
	assert_int_equal(pipe2(silent, O_NONBLOCK | O_CLOEXEC), 0);
	attempt = fork_worker(&a, LATE_MS);
	assert_int_equal(dup3(silent[0], attempt->worker.status, O_CLOEXEC),
	    attempt->worker.status);
	house_await(&a);
	assert_string_equal(a.word, "");
	assert_int_equal(a.type, MSG_WORKER_SPAWNED);
	house_run_until(has_exited, NULL, "WORKER_EXITED");
	assert_int_equal(house.exit_code, SIGKILL);
	house_end_and_assert("gone");
	house_worker_forget(&a.worker);
	(void)close(silent[0]);
	(void)close(silent[1]);
}

static void
test_mcpd_does_not_start(void **state)
{
	struct answer a;

	(void)state;
	house.spawn_fails = true;
	house_ask_mcpd(&a, ATTEMPT);
	house_await(&a);
	assert_string_equal(a.word, "not_started");
	house.spawn_fails = false;
	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	house_mcpd_ends(); /* before it was ready */
	house_await(&a);
	assert_string_equal(a.word, "not_started");
	assert_int_equal(house.mcpd_exits, 0);
	/* A worker needs one that has been ready. */
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_ask_end(&a, ATTEMPT, 0);
	house_await(&a);
	assert_string_equal(a.word, "never_forked");
}

/* A re-keyed task: the one before is ended first. */
static void
test_rekey(void **state)
{
	struct msg_worker_spawned w;
	struct answer a, b;

	(void)state;
	house_prepare();
	w = house_start_worker();
	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	assert_int_equal(house.mcpd_drained, 1);
	assert_int_equal(house.mcpd_spawned, 1);
	house_ask_mcpd(&b, ATTEMPT); /* the last one wins */
	house_await(&a);
	assert_string_equal(a.word, "cancelled");
	assert_int_equal(house.mcpd_drained, 1);
	house_mcpd_ends();
	assert_int_equal(house.mcpd_spawned, 2);
	assert_int_equal(house.mcpd_exits, 0); /* it was asked for */
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&b);
	assert_int_equal(b.type, MSG_DONE);
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

static bool
has_stream(const void *arg)
{
	(void)arg;
	return house.stream != -1;
}

static char
stream_byte(void)
{
	struct pollfd pfd = {.fd = house.stream, .events = POLLIN};
	char byte = 0;

	assert_int_equal(poll(&pfd, 1, DEADLINE_MS), 1);
	(void)!read(house.stream, &byte, 1);
	return byte;
}

static bool
mcpd_has_exited(const void *arg)
{
	(void)arg;
	return house.mcpd_exits > 0;
}

/* While the mcpd is away, or not ready, connections wait for it. */
static void
test_bridge_waits(void **state)
{
	struct msg_worker_spawned w;
	struct answer a;

	(void)state;
	house_settings_make("bridge", "bin/agent");
	house_prepare();
	house_mcpd_ends();
	house_run_until(mcpd_has_exited, NULL, "MCPD_EXITED");
	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	assert_int_equal(house.mcpd_spawned, 2);
	w = house_start_worker(); /* its bridge has connected */
	house_settle();
	house_settle();
	assert_int_equal(house.stream, -1);
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&a);
	house_run_until(has_stream, NULL, "CONNECTED");
	assert_int_equal(stream_byte(), '0');
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

/* Without any mcpd they wait just as well. */
static void
test_bridge_waits_for_next(void **state)
{
	struct msg_worker_spawned w;
	struct answer a;

	(void)state;
	house_settings_make("bridge", "bin/agent");
	house_prepare();
	house_mcpd_ends();
	w = house_start_worker();
	house_settle();
	assert_int_equal(house.stream, -1);
	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&a);
	house_run_until(has_stream, NULL, "CONNECTED");
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

static int bridge_turns;

static bool
five_came(const void *arg)
{
	(void)arg;
	if (house.stream != -1) {
		assert_int_equal(stream_byte(), '0' + bridge_turns++);
		(void)close(
		    house.stream); /* EOF: the bridge ends, the next comes */
		house.stream = -1;
	}
	return bridge_turns == LISTENER_BRIDGES_MAX;
}

/* One after the other, and the sixth process is one too many. */
static void
test_bridges_are_counted(void **state)
{
	struct pollfd pfd = {.events = POLLIN};
	struct answer a;
	char text[2];

	(void)state;
	house_settings_make("bridges", "bin/agent");
	house_prepare();
	bridge_turns = 0;
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_int_equal(a.type, MSG_WORKER_SPAWNED);
	house_run_until(five_came, NULL, "five bridges");
	/* It is through with all six, the last one refused. */
	pfd.fd = a.worker.output;
	while (poll(&pfd, 1, 10) == 0)
		(void)event_base_loop(house.sv.base, EVLOOP_NONBLOCK);
	assert_int_equal(read(a.worker.output, text, 2), 2);
	assert_int_equal(house.stream, -1);
	house_end_and_assert("gone");
	house_worker_forget(&a.worker);
}

/* Not of the worker's tree: refused, even with its uid. */
static void
test_stranger(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct msg_worker_spawned w;
	struct pollfd pfd = {.events = POLLIN};
	uid_t uid = house.sv.worker_account.uid;
	char byte;

	(void)state;
	house_prepare();
	house.sv.worker_account.uid =
	    geteuid(); /* so that our uid is the right one */
	if (house.sv.is_root)
		house.sv.worker_account.gid = 0;
	w = house_start_worker();
	house.sv.worker_account.uid = uid;
	pfd.fd = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s",
	    attempt_find(&house.sv, ATTEMPT)->session->socket);
	assert_int_equal(
	    connect(pfd.fd, (struct sockaddr *)&un, sizeof(un)), 0);
	while (poll(&pfd, 1, 10) == 0)
		(void)event_base_loop(house.sv.base, EVLOOP_NONBLOCK);
	assert_int_equal(read(pfd.fd, &byte, 1), 0);
	assert_int_equal(house.stream, -1);
	(void)close(pfd.fd);
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

static void
test_drop_declaration(void **state)
{
	struct msg m = {.type = MSG_DROP_DECLARATION};
	struct msg_worker_spawned w;
	struct answer a = {0};
	struct stat st;

	(void)state;
	house_prepare();
	w = house_start_worker();
	m.drop_declaration.attempt = ATTEMPT;
	house_ask(&a, &m);
	house_await(&a);
	assert_int_equal(a.type, MSG_DONE);
	assert_int_equal(
	    lstat(attempt_find(&house.sv, ATTEMPT)->session->declaration, &st),
	    -1);
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

static void
stop_serving(void)
{
	struct msg m = {.type = MSG_STOP_SERVING};
	struct answer a;

	m.stop_serving.attempt = ATTEMPT;
	house_ask(&a, &m);
	house_await(&a);
	assert_int_equal(a.type, MSG_DONE);
}

/* Its bridge would find no socket: no worker is started of it any more. */
static void
test_not_served_before_start(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	stop_serving();
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "not_started");
	assert_non_null(strstr(a.text, "not served"));
	assert_true(house_no_children(NULL)); /* not even forked */
	house_end_and_assert("never_forked");
}

/* The next mcpd, which is ready at once. */
static void
another_mcpd(void)
{
	struct answer a;

	house_ask_mcpd(&a, ATTEMPT);
	house_settle();
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&a);
	assert_int_equal(a.type, MSG_DONE);
}

/* While its mcpd is not ready, and before a worker is asked for. */
static void
test_not_served_while_prepared(void **state)
{
	struct answer a, b;

	(void)state;
	house_ask_mcpd(&a, ATTEMPT);
	stop_serving();
	attempt_mcpd_ready(&house.sv, ATTEMPT);
	house_await(&a);
	assert_int_equal(a.type, MSG_DONE);
	house_ask_worker(&b, house.sv.generation);
	house_await(&b);
	assert_string_equal(b.word, "not_started");
	house_end_and_assert("never_forked");
}

/* Between the fork and the word that its program runs, and from then on. */
static void
test_not_served_while_starting(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	house_ask_worker(&a, house.sv.generation);
	stop_serving();
	house_await(&a);
	assert_int_equal(a.type, MSG_WORKER_SPAWNED);
	house_mcpd_ends();
	another_mcpd();
	stop_serving();
	house_end_and_assert("gone");
	house_worker_forget(&a.worker);
}

/* What waits goes with the socket; the next mcpd has nobody to serve. */
static void
test_not_served_while_a_bridge_waits(void **state)
{
	struct msg_worker_spawned w;

	(void)state;
	house_settings_make("bridge", "bin/agent");
	house_prepare();
	house_mcpd_ends();
	w = house_start_worker();
	house_settle();
	stop_serving();
	another_mcpd();
	house_settle();
	assert_int_equal(house.stream, -1);
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

/* Its pipes are gone; a successor ends it and can start nothing of it. */
static void
test_dispatcher_gone(void **state)
{
	struct msg_worker_spawned w;
	struct answer a;

	(void)state;
	house_prepare();
	w = house_start_worker();
	attempts_dispatcher_gone(&house.sv);
	assert_non_null(attempt_find(&house.sv, ATTEMPT));
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_end_and_assert("gone");
	house_worker_forget(&w);
}

static void
test_dispatcher_gone_before_start(void **state)
{
	struct answer a;

	(void)state;
	house_prepare();
	attempts_dispatcher_gone(&house.sv);
	house_ask_worker(&a, house.sv.generation);
	house_await(&a);
	assert_string_equal(a.word, "refused");
	house_end_and_assert("never_forked");
}

static void
test_bad_ids(void **state)
{
	static const char *const bad[] = {"att_0123456789ABCDEF01234567",
	    "att_../../../../../etc/passw", "xxx_0123456789abcdef01234567"};
	struct answer a;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(bad); i++) {
		house_assert_refused(bad[i]);
		house_ask_end(&a, bad[i], 0);
		house_await(&a);
		assert_string_equal(a.word, "refused");
	}
}

static void
test_redaction(void **state)
{
	char *text = attempts_redact(&house.sv, "it said topsecret and plain");
	char *path;

	(void)state;
	assert_string_equal(text, "it said [redacted] and plain");
	free(text);
	(void)xasprintf(&path, "open %s/run/demo/s-0/x/m: no", house.top);
	text = attempts_redact(&house.sv, path);
	assert_string_equal(text, "open [connector path]: no");
	free(text);
	free(path);
}

int
main(int argc, char *argv[])
{
#define IN_HOUSE(test) \
	cmocka_unit_test_setup_teardown(test, house_make, house_remove)
	const struct CMUnitTest tests[] = {
	    IN_HOUSE(test_whole_life),
	    IN_HOUSE(test_own_tree_is_found),
	    IN_HOUSE(test_own_orphan_is_found),
	    IN_HOUSE(test_whom_this_run_had),
	    IN_HOUSE(test_exit_by_itself),
	    IN_HOUSE(test_leaderless),
	    IN_HOUSE(test_deaf_worker),
	    IN_HOUSE(test_settled_while_it_ends),
	    IN_HOUSE(test_never_forked),
	    IN_HOUSE(test_drain_in_a_stop),
	    IN_HOUSE(test_stale_config),
	    IN_HOUSE(test_config_unreadable),
	    IN_HOUSE(test_no_route),
	    IN_HOUSE(test_not_started),
	    IN_HOUSE(test_late_verdict),
	    IN_HOUSE(test_no_verdict),
	    IN_HOUSE(test_mcpd_does_not_start),
	    IN_HOUSE(test_rekey),
	    IN_HOUSE(test_bridge_waits),
	    IN_HOUSE(test_bridge_waits_for_next),
	    IN_HOUSE(test_bridges_are_counted),
	    IN_HOUSE(test_stranger),
	    IN_HOUSE(test_drop_declaration),
	    IN_HOUSE(test_not_served_before_start),
	    IN_HOUSE(test_not_served_while_prepared),
	    IN_HOUSE(test_not_served_while_starting),
	    IN_HOUSE(test_not_served_while_a_bridge_waits),
	    IN_HOUSE(test_dispatcher_gone),
	    IN_HOUSE(test_dispatcher_gone_before_start),
	    IN_HOUSE(test_bad_ids),
	    IN_HOUSE(test_redaction),
	};

	house_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
