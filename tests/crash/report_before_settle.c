/*
 * A person settles a held attempt whose mcpd lives (common/protocol.def): what
 * its worker reported before that counts, however the real ledger comes upon
 * the two links.
 *
 *	report_before_settle KILLAT CONNECTD-LEDGER
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/role.h"
#include "common/xmalloc.h"
#include "tests/crash/ledger_life.h"
#include "tests/unit/ledger_fixture.h"

/* At the supervisor's link, where it has something to read. */
#define HELD_AT_ITS_LINK "later:hold@connectd-ledger:recvmsg/%d:1"

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
 * The ledger stands at the supervisor's link, where something waits already:
 * it reads SETTLE before it looks at mcpd's link, which had the report first.
 */
static void
both_are_there(struct life *life, struct tracer *t, const char *token,
    struct msg **reported, struct msg **settled)
{
	struct msg ping = {.type = MSG_PING};
	struct msg report = {.type = MSG_COMPLETE_DISPATCH};
	struct msg settle = {.type = MSG_SETTLE};
	struct msg *pong;

	report.complete_dispatch.token = token;
	report.complete_dispatch.event_id = 101;
	report.complete_dispatch.outcome = "failed";
	settle.settle = (struct msg_settle){NONCE_1, "local:a", ATT_1};
	tracer_await_armed(t, 1);
	send_now(life->ledger.child, &ping, &pong);
	tracer_await(t, "hold");
	send_now(life->peer, &report, reported);
	send_now(life->ledger.child, &settle, settled);
	tracer_go(t, 1);
	await(life, &pong);
	await(life, settled);
	await(life, reported);
	msg_free(pong);
}

static void
a_report_in_its_hands_is_before_the_settlement(void **state)
{
	struct msg *reported, *settled;
	char rule[64], dir[DIR_SIZE], *token;
	struct tracer tracer;
	struct life life;

	dir_make("ledger", dir);
	token = story_prepare(dir);
	(void)snprintf(rule, sizeof(rule), HELD_AT_ITS_LINK, ROLE_LINK_FD);
	tracer_start(&tracer, life_killat(), (const char *[]){rule, NULL});
	life_begin(&life, dir, ROLE_MCPD, ATT_1, &tracer);
	both_are_there(&life, &tracer, token, &reported, &settled);
	assert_int_equal(MSG_ATTEMPT_SETTLED, settled->type);
	assert_int_equal(0, settled->attempt_settled.unknown);
	assert_int_equal(MSG_REPORT_IS, reported->type);
	assert_string_equal("failed", reported->report_is.outcome);
	assert_int_equal(0, life_end(&life));
	assert_int_equal(0, tracer_end(&tracer));
	msg_free(reported);
	msg_free(settled);
	free(token);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_report_in_its_hands_is_before_the_settlement),
	};
	int rc;

	if (argc != 3)
		fatalx("usage: report_before_settle KILLAT CONNECTD-LEDGER");
	log_init("report_before_settle", LOG_LEVEL_WARN);
	life_init(argv[1], argv[2]);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	life_done();
	return rc;
}
