/* Requests over links that come and go: asked until answered, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/peer.h"
#include "common/xmalloc.h"

struct world {
	struct event_base *base;
	struct peer *intake_of_ledger; /* the ledger, as intake sees it */
	struct peer *ledger_of_intake; /* intake, as the ledger sees it */
	struct msg *asked[256];
	struct reply_to to[256];
	size_t asked_count;
	int64_t answers[256];
	size_t answer_count;
	int linked, unlinked;
	char broken[128];
};

static void
on_ask(struct peer *peer, struct msg *m, void *arg)
{
	struct world *w = arg;

	assert_true(w->asked_count < 256);
	w->to[w->asked_count] = peer_reply_to(peer, m);
	w->asked[w->asked_count++] = m;
}

static void
on_linked(struct peer *peer, void *arg)
{
	((struct world *)arg)->linked++;
}

static void
on_unlinked(struct peer *peer, void *arg)
{
	((struct world *)arg)->unlinked++;
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	struct world *w = arg;

	(void)snprintf(w->broken, sizeof(w->broken), "%s", text);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {[MSG_RECORD] = on_ask,
    [MSG_NEXT_UNDECIDED] = on_ask,
    [MSG_VERDICT] = on_ask,
    [MSG_COUNT_DEATH] = on_ask};
static const peer_handler no_handlers[MSG_COUNT] = {NULL};
static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers, .broken = on_broken};
static const struct peer_ops intake_ops = {.handlers = no_handlers,
    .linked = on_linked,
    .unlinked = on_unlinked,
    .broken = on_broken};

static void
join(struct world *w)
{
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->intake_of_ledger, fds[0], 1);
	peer_attach(w->ledger_of_intake, fds[1], 1);
}

static void
new_ledger(struct world *w)
{
	w->ledger_of_intake =
	    peer_new(w->base, ROLE_LEDGER, ROLE_INTAKE, "", &ledger_ops, w);
}

static struct world *
world_new(void)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->base = event_base_new();
	w->intake_of_ledger =
	    peer_new(w->base, ROLE_INTAKE, ROLE_LEDGER, "", &intake_ops, w);
	new_ledger(w);
	return w;
}

static void
world_free(struct world *w)
{
	size_t i;

	for (i = 0; i < w->asked_count; i++)
		msg_free(w->asked[i]);
	peer_free(w->intake_of_ledger);
	peer_free(w->ledger_of_intake);
	event_base_free(w->base);
	free(w);
}

static void
turn(struct world *w)
{
	int i;

	for (i = 0; i < 100; i++)
		event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	struct world *w = arg;

	w->answers[w->answer_count++] =
	    reply->type == MSG_UNDECIDED ? reply->undecided.event_id : -1;
}

static void
ask(struct world *w, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_UNDECIDED};

	m.next_undecided.after = after;
	peer_request(w->intake_of_ledger, &m, on_answer, w);
}

static void
answer(struct world *w, size_t i)
{
	struct msg m = {.type = MSG_UNDECIDED};

	m.undecided.event_id = w->asked[i]->next_undecided.after;
	peer_reply(&w->to[i], &m);
}

static void
a_request_waits_for_a_link(void **state)
{
	struct world *w = world_new();

	ask(w, 1);
	turn(w);
	assert_int_equal(0, w->asked_count);
	join(w);
	turn(w);
	assert_int_equal(1, w->asked_count);
	answer(w, 0);
	turn(w);
	assert_int_equal(1, w->answer_count);
	assert_int_equal(1, w->answers[0]);
	assert_int_equal(0, peer_unanswered(w->intake_of_ledger));
	world_free(w);
}

/* What the dead one did not answer is asked again, in order, and once. */
static void
unanswered_requests_are_repeated(void **state)
{
	struct world *w = world_new();
	int64_t i;

	join(w);
	for (i = 1; i <= 5; i++)
		ask(w, i);
	turn(w);
	answer(w, 1);
	turn(w);
	peer_free(w->ledger_of_intake);
	turn(w);
	assert_int_equal(1, w->unlinked);
	ask(w, 6); /* while there is no link */
	new_ledger(w);
	join(w);
	turn(w);
	assert_int_equal(10, w->asked_count);
	assert_int_equal(1, w->asked[5]->next_undecided.after);
	assert_int_equal(3, w->asked[6]->next_undecided.after);
	assert_int_equal(5, w->asked[8]->next_undecided.after);
	assert_int_equal(6, w->asked[9]->next_undecided.after);
	for (i = 5; i < 10; i++)
		answer(w, (size_t)i);
	turn(w);
	assert_int_equal(6, w->answer_count);
	assert_int_equal(2, w->linked);
	world_free(w);
}

/* A reply to the old link's request does not reach the new link. */
static void
late_replies_are_dropped(void **state)
{
	struct world *w = world_new();
	int fds[2];

	join(w);
	ask(w, 1);
	turn(w);
	/* The ledger lives, intake is started anew. */
	peer_free(w->intake_of_ledger);
	turn(w);
	w->intake_of_ledger =
	    peer_new(w->base, ROLE_INTAKE, ROLE_LEDGER, "", &intake_ops, w);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->intake_of_ledger, fds[0], 2);
	peer_attach(w->ledger_of_intake, fds[1], 2);
	turn(w);
	answer(w, 0);
	turn(w);
	assert_int_equal(0, w->answer_count);
	assert_string_equal("", w->broken);
	world_free(w);
}

static void
the_window_holds(void **state)
{
	struct world *w = world_new();
	int64_t i;

	join(w);
	for (i = 1; i <= 100; i++)
		ask(w, i);
	turn(w);
	assert_int_equal(PEER_WINDOW, w->asked_count);
	assert_int_equal(0, peer_room(w->intake_of_ledger));
	answer(w, 0);
	turn(w);
	assert_int_equal(PEER_WINDOW + 1, w->asked_count);
	world_free(w);
}

/* `unavailable` is no answer: it is asked again after a pause. */
static void
unavailable_is_asked_again(void **state)
{
	struct world *w = world_new();
	int64_t until = clock_monotonic_ms() + 5000;

	join(w);
	ask(w, 8);
	turn(w);
	peer_fail(&w->to[0], "unavailable", 0, "no");
	while (w->asked_count < 2 && clock_monotonic_ms() < until)
		event_base_loop(w->base, EVLOOP_ONCE);
	assert_int_equal(2, w->asked_count);
	assert_int_equal(0, w->answer_count);
	answer(w, 1);
	turn(w);
	assert_int_equal(1, w->answer_count);
	world_free(w);
}

static void
another_failure_is_the_answer(void **state)
{
	struct world *w = world_new();

	join(w);
	ask(w, 8);
	turn(w);
	peer_fail(&w->to[0], "refused", 0, "no");
	turn(w);
	assert_int_equal(1, w->answer_count);
	assert_int_equal(-1, w->answers[0]);
	world_free(w);
}

/* The next link is used only when the old one was read to its end. */
static void
a_new_link_waits_for_the_old_ones_end(void **state)
{
	struct world *w = world_new();
	int fds[2];

	join(w);
	turn(w);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->intake_of_ledger, fds[0], 2);
	turn(w);
	assert_int_equal(1, w->linked);
	peer_free(w->ledger_of_intake);
	turn(w);
	assert_int_equal(2, w->linked);
	assert_int_equal(2, peer_generation(w->intake_of_ledger));
	new_ledger(w);
	peer_attach(w->ledger_of_intake, fds[1], 1);
	ask(w, 3);
	turn(w);
	assert_int_equal(1, w->asked_count);
	world_free(w);
}

/* ---- poison ---------------------------------------------------------------
 */

#define DEATH_1 "11111111111111111111111111111111"
#define DEATH_2 "22222222222222222222222222222222"

static void
verdict(struct world *w, int64_t event_id)
{
	struct msg m = {.type = MSG_VERDICT};

	m.verdict.event_id = event_id;
	m.verdict.state = "discarded";
	(void)peer_request(w->intake_of_ledger, &m, NULL, NULL);
}

/* The ledger is gone, and another one comes after that DEATH. */
static void
ledger_dies(struct world *w, const char *death)
{
	peer_free(w->ledger_of_intake);
	turn(w);
	new_ledger(w);
	peer_mourn(w->intake_of_ledger, death);
	join(w);
	turn(w);
}

/* The only one that came since I is of that type; it is answered. */
static void
came_alone(struct world *w, size_t i, enum msg_type type)
{
	struct msg verdict_is = {.type = MSG_VERDICT_IS};
	struct msg counted = {.type = MSG_DEATH_COUNTED};

	assert_int_equal(w->asked_count, i + 1);
	assert_int_equal(w->asked[i]->type, type);
	if (type == MSG_VERDICT)
		peer_reply(&w->to[i], &verdict_is);
	else if (type == MSG_COUNT_DEATH)
		peer_reply(&w->to[i], &counted);
	else
		answer(w, i);
	turn(w);
}

/* What was in hand is counted, then goes one at a time; then all is as before.
 */
static void
after_its_own_death_one_at_a_time(void **state)
{
	struct world *w = world_new();

	join(w);
	verdict(w, 101);
	ask(w, 5);
	verdict(w, 102);
	turn(w);
	assert_int_equal(3, w->asked_count);
	ledger_dies(w, DEATH_1);
	ask(w, 6);
	ask(w, 7);
	turn(w);
	assert_int_equal(101, w->asked[3]->count_death.event_id);
	assert_string_equal(DEATH_1, w->asked[3]->count_death.death);
	came_alone(w, 3, MSG_COUNT_DEATH);
	assert_int_equal(102, w->asked[4]->count_death.event_id);
	came_alone(w, 4, MSG_COUNT_DEATH);
	assert_int_equal(101, w->asked[5]->verdict.event_id);
	came_alone(w, 5, MSG_VERDICT);
	came_alone(w, 6, MSG_NEXT_UNDECIDED);
	assert_int_equal(102, w->asked[7]->verdict.event_id);
	came_alone(w, 7, MSG_VERDICT);
	/* What came later was nobody's poison: together. */
	assert_int_equal(10, w->asked_count);
	world_free(w);
}

/* Only what was out at that death counts; what waits its turn does not. */
static void
the_second_death_finds_the_one(void **state)
{
	struct world *w = world_new();

	join(w);
	verdict(w, 101);
	verdict(w, 102);
	turn(w);
	ledger_dies(w, DEATH_1);
	came_alone(w, 2, MSG_COUNT_DEATH);
	came_alone(w, 3, MSG_COUNT_DEATH);
	assert_int_equal(101, w->asked[4]->verdict.event_id);
	ledger_dies(w, DEATH_2);
	assert_int_equal(101, w->asked[5]->count_death.event_id);
	assert_string_equal(DEATH_2, w->asked[5]->count_death.death);
	came_alone(w, 5, MSG_COUNT_DEATH);
	came_alone(w, 6, MSG_VERDICT);
	came_alone(w, 7, MSG_VERDICT);
	assert_int_equal(102, w->asked[7]->verdict.event_id);
	assert_int_equal(0, peer_unanswered(w->intake_of_ledger));
	world_free(w);
}

/* A count that is out at a death is repeated, and counts nothing itself. */
static void
a_count_is_repeated_as_it_was(void **state)
{
	struct world *w = world_new();

	join(w);
	verdict(w, 101);
	turn(w);
	ledger_dies(w, DEATH_1);
	assert_int_equal(w->asked_count, 2);
	ledger_dies(w, DEATH_2);
	assert_string_equal(DEATH_1, w->asked[2]->count_death.death);
	came_alone(w, 2, MSG_COUNT_DEATH);
	came_alone(w, 3, MSG_VERDICT);
	assert_int_equal(0, peer_unanswered(w->intake_of_ledger));
	world_free(w);
}

static void
nobodys_fault_counts_nothing(void **state)
{
	struct world *w = world_new();

	join(w);
	verdict(w, 101);
	verdict(w, 102);
	turn(w);
	ledger_dies(w, "");
	assert_int_equal(4, w->asked_count);
	assert_int_equal(MSG_VERDICT, w->asked[2]->type);
	assert_int_equal(MSG_VERDICT, w->asked[3]->type);
	world_free(w);
}

/* It was never asked anything: lives that came and went in between. */
static void
lives_we_had_no_link_with(void **state)
{
	struct world *w = world_new();
	int fds[2];

	join(w);
	verdict(w, 101);
	turn(w);
	/* Two LINKs come before the end of the link is read. */
	peer_mourn(w->intake_of_ledger, DEATH_1);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->intake_of_ledger, fds[0], 2);
	close(fds[1]);
	peer_mourn(w->intake_of_ledger, "");
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->intake_of_ledger, fds[0], 3);
	peer_free(w->ledger_of_intake);
	new_ledger(w);
	peer_attach(w->ledger_of_intake, fds[1], 3);
	turn(w);
	assert_string_equal(DEATH_1, w->asked[1]->count_death.death);
	came_alone(w, 1, MSG_COUNT_DEATH);
	came_alone(w, 2, MSG_VERDICT);
	world_free(w);
}

/* The first frame says which build speaks; another one is refused by name. */
static void
another_build_is_refused(void **state)
{
	struct world *w = world_new();
	struct msg hello = {.type = MSG_HELLO};
	struct frame f;
	struct error e;
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	peer_attach(w->ledger_of_intake, fds[1], 1);
	hello.hello.protocol = PROTOCOL_VERSION;
	hello.hello.schema = SCHEMA_VERSION;
	hello.hello.build = "another";
	assert_int_equal(0, frame_encode(&hello, &f, &e));
	assert_int_equal((ssize_t)f.len, write(fds[0], f.bytes, f.len));
	turn(w);
	assert_string_equal(
	    "HELLO: another build; a restart is pending", w->broken);
	frame_free(&f);
	close(fds[0]);
	world_free(w);
}

/* A type that this role does not handle breaks the link. */
static void
unhandled_types_break(void **state)
{
	struct world *w = world_new();
	struct msg m = {.type = MSG_ENTRY};

	join(w);
	m.entry.flat_key = m.entry.lineage = "k";
	peer_request(w->intake_of_ledger, &m, on_answer, w);
	turn(w);
	assert_string_equal("ENTRY: not handled here", w->broken);
	world_free(w);
}

/* No loop runs: what was written is read, and that it was the last. */
static void
what_was_written_is_caught_up_with(void **state)
{
	struct world *w = world_new();
	int64_t i;

	join(w);
	for (i = 1; i <= PEER_WINDOW; i++)
		ask(w, i);
	link_flush(peer_link(w->intake_of_ledger));
	assert_int_equal(0, w->asked_count);
	peer_catch_up(w->ledger_of_intake);
	assert_int_equal(PEER_WINDOW, w->asked_count);
	peer_free(w->intake_of_ledger);
	w->intake_of_ledger = NULL;
	peer_catch_up(w->ledger_of_intake);
	assert_false(peer_is_linked(w->ledger_of_intake));
	peer_catch_up(w->ledger_of_intake);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_request_waits_for_a_link),
	    cmocka_unit_test(unanswered_requests_are_repeated),
	    cmocka_unit_test(late_replies_are_dropped),
	    cmocka_unit_test(the_window_holds),
	    cmocka_unit_test(what_was_written_is_caught_up_with),
	    cmocka_unit_test(unavailable_is_asked_again),
	    cmocka_unit_test(another_failure_is_the_answer),
	    cmocka_unit_test(a_new_link_waits_for_the_old_ones_end),
	    cmocka_unit_test(after_its_own_death_one_at_a_time),
	    cmocka_unit_test(the_second_death_finds_the_one),
	    cmocka_unit_test(a_count_is_repeated_as_it_was),
	    cmocka_unit_test(nobodys_fault_counts_nothing),
	    cmocka_unit_test(lives_we_had_no_link_with),
	    cmocka_unit_test(another_build_is_refused),
	    cmocka_unit_test(unhandled_types_break),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
