/*
 * An attempt is ended by the dispatcher (END), or by a person who settles a
 * held one whose mcpd lives (SETTLE): what its worker reported before that
 * counts, however the real ledger comes upon the two links.
 *
 *	reports_first KILLAT CONNECTD-LEDGER
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/crash/ledger_life.h"
#include "tests/unit/ledger_fixture.h"

/* Where it has something to read. */
#define HELD_AT_A_LINK "later:hold@connectd-ledger:recvmsg:1"

/* A worker that has its event and has reported nothing; its token. */
static char *
story_prepare(const char *dir)
{
	struct fixture *f;
	void *state;
	char *token;

	(void)fixture_setup(&state);
	f = state;
	token = xstrdup(launch_new(f, 101, ATT_1));
	(void)get_dispatch(f, token, 0, ATT_1);
	dir_copy(f->dir, dir);
	(void)fixture_teardown(&state);
	return token;
}

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	*(struct msg **)arg = msg_copy(reply);
	(void)event_base_loopbreak(life_base());
}

/* It is in the ledger's socket when this returns. */
static void
send_now(struct peer *peer, struct msg *m, struct msg **answer)
{
	*answer = NULL;
	(void)peer_request(peer, m, on_answer, answer);
	link_flush(peer_link(peer));
	assert_int_equal(0, link_queued(peer_link(peer)));
}

static void
await(const struct life *life, struct msg *const *answer)
{
	while (*answer == NULL && !life->is_gone)
		(void)event_base_dispatch(life_base());
	assert_non_null(*answer);
}

/*
 * The ledger stands at ENDER's link, where something waits already: it reads
 * END there before it looks at mcpd's link, which had the report first.
 */
static void
both_are_there(const struct life *life, struct tracer *t, struct peer *ender,
    struct msg *report, struct msg *end, struct msg **reported,
    struct msg **ended)
{
	struct msg ping = {.type = MSG_PING};
	struct msg *pong;

	tracer_await_armed(t, 1);
	send_now(ender, &ping, &pong);
	tracer_await(t, "hold");
	send_now(life->peer, report, reported);
	send_now(ender, end, ended);
	tracer_go(t, 1);
	await(life, &pong);
	await(life, ended);
	await(life, reported);
	msg_free(pong);
}

/* A link of the dispatcher's; nothing of its beginnings is still to be read. */
static struct peer *
dispatcher_begin(struct life *life)
{
	struct peer *peer = peer_new(
	    life_base(), ROLE_DISPATCHER, ROLE_LEDGER, "", life_asker(), life);
	struct msg ping = {.type = MSG_PING};
	struct msg *pong = NULL;

	nursery_relink(&life->ledger, ROLE_DISPATCHER, "", peer);
	(void)peer_request(peer, &ping, on_answer, &pong);
	await(life, &pong);
	msg_free(pong);
	return peer;
}

/*
 * A worker that has an event reports it completed, and FROM, not its mcpd, ends
 * its attempt with END; FROM's reply, which the caller frees.
 */
static struct msg *
report_and_end(enum role_id from, struct msg *end)
{
	struct msg report = {.type = MSG_COMPLETE_DISPATCH};
	struct msg *reported, *ended;
	char dir[DIR_SIZE], *token;
	struct peer *dispatcher;
	struct tracer tracer;
	struct life life;

	dir_make("ledger", dir);
	token = story_prepare(dir);
	tracer_start(
	    &tracer, life_killat(), (const char *[]){HELD_AT_A_LINK, NULL});
	life_begin(&life, dir, ROLE_MCPD, ATT_1, &tracer);
	dispatcher = dispatcher_begin(&life);
	report.complete_dispatch.token = token;
	report.complete_dispatch.event_id = 101;
	report.complete_dispatch.outcome = "failed";
	both_are_there(&life, &tracer,
	    from == ROLE_DISPATCHER ? dispatcher : life.ledger.child, &report,
	    end, &reported, &ended);
	assert_int_equal(MSG_REPORT_IS, reported->type);
	assert_string_equal("failed", reported->report_is.outcome);
	assert_int_equal(0, life_end(&life));
	assert_int_equal(0, tracer_end(&tracer));
	peer_free(dispatcher);
	msg_free(reported);
	free(token);
	return ended;
}

static void
before_the_end(void **state)
{
	struct msg end = end_of(ATT_1, "finished");
	struct msg *ended = report_and_end(ROLE_DISPATCHER, &end);

	assert_int_equal(MSG_ENDED, ended->type);
	assert_int_equal(0, ended->ended.unknown);
	msg_free(ended);
}

static void
before_a_settlement(void **state)
{
	struct msg settle = {.type = MSG_SETTLE};
	struct msg *settled;

	settle.settle = (struct msg_settle){NONCE_1, "local:a", ATT_1};
	settled = report_and_end(ROLE_SUPERVISOR, &settle);
	assert_int_equal(MSG_ATTEMPT_SETTLED, settled->type);
	assert_int_equal(0, settled->attempt_settled.unknown);
	msg_free(settled);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(before_the_end),
	    cmocka_unit_test(before_a_settlement),
	};
	int rc;

	if (argc != 3)
		fatalx("usage: reports_first KILLAT CONNECTD-LEDGER");
	log_init("reports_first", LOG_LEVEL_WARN);
	life_init(argv[1], argv[2]);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	life_done();
	return rc;
}
