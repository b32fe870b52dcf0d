/* What an operator decides, from the control socket to the ledger and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/control_world.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define ATTEMPT "att_0123456789abcdef01234567"
#define OTHER "att_ffffffffffffffffffffffff"
#define REDISPATCH \
	"{\"command\":\"redispatch\",\"event\":101,\"nonce\":\"" NONCE "\"}"

static void
assert_says(const char *line, const char *what)
{
	if (strstr(line, what) == NULL)
		fail_msg("%s is not in %s", what, line);
}

static void
test_what_was_decided_is_told(void **arg)
{
	int fd = greeted();
	const char *line;

	(void)arg;
	world.decided = (struct msg_decided){.decision_id = 7,
	    .from_state = "blocked",
	    .from_reason = "no_route",
	    .state = "blocked",
	    .rerun = true,
	    .canceled = 2};
	line = ask(fd, REDISPATCH);
	assert_string_equal(line,
	    "{\"ok\":true,\"data\":{\"decision_id\":7,\"from_state\":"
	    "\"blocked\",\"from_reason\":\"no_route\",\"from_outcome\":null,"
	    "\"state\":\"blocked\",\"already\":false,\"pending\":false,"
	    "\"rerun\":true,\"held\":false,\"superseded_task_id\":null,"
	    "\"attempt_id\":null,\"canceled\":2}}");
	assert_string_equal(world.decision.nonce, NONCE);
	assert_int_equal(world.decision.id, 101);
	assert_int_equal(strncmp(world.decision.by, "local:", 6), 0);
	assert_true(strlen(world.decision.by) > 6);
	assert_says(ask(fd,
			"{\"command\":\"discard\",\"event\":102,\"nonce\":"
			"\"" NONCE "\"}"),
	    "\"ok\":true");
	assert_int_equal(world.decision.id, 102);
	(void)close(fd);
}

/* What intake makes of a record that is decided anew is such a transition. */
static void
test_a_redispatch_may_be_followed(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.decided = (struct msg_decided){
	    .from_state = "blocked", .state = "blocked", .rerun = true};
	control_publish(sv.control, "{\"before\":1}");
	assert_says(ask(fd, REDISPATCH), "\"rerun\":true");
	control_publish(sv.control, "{\"unasked\":1}");
	assert_says(ask(fd,
			"{\"command\":\"redispatch\",\"event\":101,\"nonce\":"
			"\"" NONCE "\",\"follow\":true}"),
	    "\"rerun\":true");
	control_publish(sv.control, "{\"after\":1}");
	settle();
	assert_string_equal(read_line(fd), "{\"after\":1}");
	(void)close(fd);
}

/* A refusal is followed by nothing. */
static void
test_what_is_refused_says_why(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.refuses = "event 101 is admitted: it runs without one";
	assert_string_equal(
	    ask(fd,
		"{\"command\":\"redispatch\",\"event\":101,\"nonce\":"
		"\"" NONCE "\",\"follow\":true}"),
	    "{\"ok\":false,\"error\":\"failed\",\"text\":"
	    "\"event 101 is admitted: it runs without one\"}");
	control_publish(sv.control, "{\"unasked\":1}");
	assert_says(ask(fd, REDISPATCH), "\"ok\":false");
	(void)close(fd);
}

/* A decision without its nonce could be made twice. */
static void
test_half_a_decision_is_none(void **arg)
{
	static const char *const halves[] = {
	    "{\"command\":\"redispatch\",\"nonce\":\"" NONCE "\"}",
	    "{\"command\":\"redispatch\",\"event\":101}",
	    "{\"command\":\"discard\",\"event\":101,\"nonce\":\"abc\"}",
	    "{\"command\":\"discard\",\"event\":101,\"nonce\":"
	    "\"0123456789ABCDEF0123456789ABCDEF\"}",
	    "{\"command\":\"resolve\",\"intent\":5,\"nonce\":\"" NONCE "\"}",
	    "{\"command\":\"resolve\",\"intent\":5,\"nonce\":\"" NONCE
	    "\",\"resolution\":\"sent\"}",
	    "{\"command\":\"resolve\",\"intent\":5,\"nonce\":\"" NONCE
	    "\",\"resolution\":\"resend\",\"receipt\":9}",
	    "{\"command\":\"resolve\",\"intent\":5,\"nonce\":\"" NONCE
	    "\",\"resolution\":\"forget\"}",
	};
	int fd = greeted();
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
		assert_says(ask(fd, halves[i]), "\"error\":\"usage\"");
	assert_int_equal(world.asked, 0);
	(void)close(fd);
}

static void
test_a_reader_decides_nothing(void **arg)
{
	struct client_list list;
	int fd = client_alone(&list, CONTROL_READ);

	(void)arg;
	assert_says(ask(fd, REDISPATCH), "\"error\":\"refused\"");
	assert_int_equal(world.asked, 0);
	client_free(TAILQ_FIRST(&list));
	(void)close(fd);
}

/* The decision at once; the worker's state when it is known. */
static void
test_the_worker_that_is_ended_is_told_of(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.is_known = world.was_signaled = true;
	world.decided.attempt = ATTEMPT;
	world.decided.pending = true;
	world.decided.superseded_task_id = 9;
	assert_says(ask(fd, REDISPATCH), "\"attempt_id\":\"" ATTEMPT "\"");
	control_attempt_over(sv.control, OTHER, FATE_GONE);
	control_attempt_over(sv.control, ATTEMPT, FATE_GONE);
	assert_string_equal(read_line(fd),
	    "{\"ok\":true,\"data\":{\"worker\":{\"attempt_id\":\"" ATTEMPT
	    "\",\"state\":\"stopped\",\"signaled\":true,\"note\":null}}}");
	/* Once; and the next request is heard. */
	control_attempt_over(sv.control, ATTEMPT, FATE_HELD);
	world.decided.attempt = "";
	assert_says(ask(fd, REDISPATCH), "\"attempt_id\":null");
	(void)close(fd);
}

static void
test_a_worker_of_an_earlier_run_is_held(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.decided.attempt = ATTEMPT;
	world.fate = FATE_HELD;
	(void)ask(fd, REDISPATCH);
	assert_says(read_line(fd),
	    "\"state\":\"held\",\"signaled\":null,\"note\":\"it is not proved");
	(void)close(fd);
}

/* It does not end in time: that is said, and the decision stands. */
static void
test_a_worker_that_does_not_end(void **arg)
{
	int64_t *limits = sv.settings->config->limits;
	int fd = greeted();

	(void)arg;
	limits[LIMIT_cancel_grace] = limits[LIMIT_close_grace] = 0;
	limits[LIMIT_mcpd_drain] = -CONTROL_QUERY_MS + 20;
	world.is_known = true;
	world.decided.attempt = ATTEMPT;
	(void)ask(fd, REDISPATCH);
	assert_says(read_line(fd),
	    "\"state\":\"running\",\"signaled\":false,"
	    "\"note\":\"it is being ended still");
	(void)close(fd);
}

/* Whether it was decided is not known: who asks is told to look. */
static void
test_an_answer_that_does_not_come(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.ledger_answers = false;
	assert_says(ask(fd, REDISPATCH), "it may be decided all the same");
	ledger.state = CHILD_BACKOFF;
	assert_says(ask(fd, REDISPATCH), "the ledger does not answer");
	(void)close(fd);
}

static void
test_a_message_is_resolved(void **arg)
{
	int fd = greeted();

	(void)arg;
	assert_string_equal(
	    ask(fd,
		"{\"command\":\"resolve\",\"intent\":5,\"nonce\":\"" NONCE
		"\",\"resolution\":\"sent\",\"receipt\":77}"),
	    "{\"ok\":true,\"data\":{\"state\":\"pending\",\"changed\":true}}");
	assert_int_equal(world.decision.id, 5);
	assert_int_equal(world.decision.receipt, 77);
	assert_string_equal(world.decision.resolution, "sent");
	(void)close(fd);
}

#define SETTLE                                                 \
	"{\"command\":\"settle\",\"attempt\":\"" WORLD_ATTEMPT \
	"\",\"gone\":true,\"nonce\":\"" NONCE "\"}"

/* Whom nobody can identify, a person may settle; whatever runs, nobody. */
static void
test_a_held_attempt_is_settled(void **arg)
{
	int fd = greeted();

	(void)arg;
	assert_says(ask(fd, SETTLE), "is not held: it ends by itself");
	world.fate = FATE_HELD;
	world.runs = "its worker's process runs";
	assert_says(ask(fd, SETTLE), "its worker's process runs");
	assert_int_equal(world.asked, 0);
	world.runs = NULL;
	assert_string_equal(ask(fd, SETTLE),
	    "{\"ok\":true,\"data\":{\"attempt_id\":\"" WORLD_ATTEMPT
	    "\",\"task_id\":9,\"unknown\":2}}");
	assert_int_equal(world.let_go, 1);
	assert_string_equal(world.decision.nonce, NONCE);
	assert_int_equal(strncmp(world.decision.by, "local:", 6), 0);
	world.refuses = "it has ended";
	assert_says(ask(fd, SETTLE), "it has ended");
	assert_int_equal(world.let_go, 1);
	(void)close(fd);
}

/* The ledger has SETTLE and has said nothing in time. */
static int
settle_is_overdue(void)
{
	struct msg known = {.type = MSG_IDENTITY_IS};
	int fd = greeted();

	world.fate = FATE_HELD;
	world.ledger_answers = false;
	say(fd, SETTLE "\n");
	settle();
	known.identity_is.found = true;
	peer_reply(&world.late, &known);
	settle();
	assert_int_equal(world.asked, 1);
	assert_says(read_line(fd), "it may be decided all the same");
	return fd;
}

static void
settled_is_said(void)
{
	struct msg m = {.type = MSG_ATTEMPT_SETTLED};

	assert_int_equal(world.let_go, 0);
	m.attempt_settled = (struct msg_attempt_settled){9, 2};
	peer_reply(&world.late, &m);
	settle();
}

/* The decision is made: nobody else would ever let it go in this run. */
static void
test_a_settlement_is_heard_when_nobody_waits(void **arg)
{
	(void)arg;
	(void)close(settle_is_overdue());
	settle();
	settled_is_said();
	assert_int_equal(world.let_go, 1);
}

/* Whoever was told that no answer came is not told of it any more. */
static void
test_a_settlement_is_heard_late(void **arg)
{
	int fd = settle_is_overdue();

	(void)arg;
	settled_is_said();
	assert_int_equal(world.let_go, 1);
	world.ledger_answers = true;
	world.fate = FATE_OPEN;
	assert_says(ask(fd, SETTLE), "is not held: it ends by itself");
	(void)close(fd);
}

/* Nor is it let go by a refusal, and nobody is there to be told that. */
static void
test_a_refusal_is_heard_when_nobody_waits(void **arg)
{
	(void)arg;
	(void)close(settle_is_overdue());
	settle();
	peer_fail(&world.late, "refused", 0, "no");
	settle();
	assert_int_equal(world.let_go, 0);
}

/*
 * The ledger has it as over, and this run still as held: it was settled, and
 * the answer has not come here. Whoever asks again is heard.
 */
static void
test_what_has_ended_is_let_go(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.fate = FATE_HELD;
	world.known_state = "ended";
	world.refuses_settle = "has ended already";
	assert_says(ask(fd, SETTLE), "has ended already");
	assert_int_equal(world.let_go, 1);
	world.fate = FATE_GONE;
	assert_says(ask(fd, SETTLE), "has ended already");
	assert_int_equal(world.let_go, 1);
	world.fate = FATE_HELD;
	world.runs = "its worker's process runs";
	assert_says(ask(fd, SETTLE), "its worker's process runs");
	assert_int_equal(world.let_go, 1);
	(void)close(fd);
}

/*
 * Of this run, and not here yet: its LAUNCH is written, its mcpd not asked for.
 * What this run has had and cannot end is held like any other.
 */
static void
test_what_is_being_launched_is_not_held(void **arg)
{
	int fd = greeted();

	(void)arg;
	world.fate = FATE_HELD;
	world.run_id = sv.run_id;
	assert_says(ask(fd, SETTLE), "is not held: it is being launched");
	assert_int_equal(world.asked, 0);
	world.was_had = true;
	assert_says(ask(fd, SETTLE), "\"unknown\":2");
	(void)close(fd);
}

/* It counts what the attempt is when the ledger has said whose it is. */
static void
test_what_is_launched_meanwhile_is_not_held(void **arg)
{
	struct msg known = {.type = MSG_IDENTITY_IS};
	int fd = greeted();

	(void)arg;
	world.fate = FATE_HELD;
	world.ledger_answers = false;
	say(fd, SETTLE "\n");
	settle();
	world.fate = FATE_OPEN;
	world.ledger_answers = true;
	known.identity_is.found = true;
	known.identity_is.run_id = sv.run_id;
	peer_reply(&world.late, &known);
	assert_says(read_line(fd), "is not held: it ends by itself");
	assert_int_equal(world.asked, 0);
	(void)close(fd);
}

static void
test_half_a_settlement_is_none(void **arg)
{
	static const char *const halves[] = {
	    "{\"command\":\"settle\",\"gone\":true,\"nonce\":\"" NONCE "\"}",
	    "{\"command\":\"settle\",\"attempt\":\"" WORLD_ATTEMPT
	    "\",\"nonce\":\"" NONCE "\"}",
	    "{\"command\":\"settle\",\"attempt\":\"" WORLD_ATTEMPT
	    "\",\"gone\":true}",
	};
	int fd = greeted();
	size_t i;

	(void)arg;
	world.fate = FATE_HELD;
	for (i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
		assert_says(ask(fd, halves[i]), "\"error\":\"usage\"");
	assert_says(ask(fd,
			"{\"command\":\"settle\",\"attempt\":\"" OTHER
			"\",\"gone\":true,\"nonce\":\"" NONCE "\"}"),
	    "\"error\":\"not_found\"");
	assert_int_equal(world.asked, 0);
	(void)close(fd);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_what_was_decided_is_told),
	    TEST(test_a_redispatch_may_be_followed),
	    TEST(test_what_is_refused_says_why),
	    TEST(test_half_a_decision_is_none),
	    TEST(test_a_reader_decides_nothing),
	    TEST(test_the_worker_that_is_ended_is_told_of),
	    TEST(test_a_worker_of_an_earlier_run_is_held),
	    TEST(test_a_worker_that_does_not_end),
	    TEST(test_an_answer_that_does_not_come),
	    TEST(test_a_message_is_resolved),
	    TEST(test_a_held_attempt_is_settled),
	    TEST(test_a_settlement_is_heard_when_nobody_waits),
	    TEST(test_a_settlement_is_heard_late),
	    TEST(test_a_refusal_is_heard_when_nobody_waits),
	    TEST(test_what_has_ended_is_let_go),
	    TEST(test_what_is_being_launched_is_not_held),
	    TEST(test_what_is_launched_meanwhile_is_not_held),
	    TEST(test_half_a_settlement_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
