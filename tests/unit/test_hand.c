/* Records in hand at a death, and who is told of it (design 3.1, poison). */
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/child.h"

/* Two children, and their own ends of descriptor 3. */
static struct {
	int64_t counted[CHILD_HAND_MAX];
	char deaths[CHILD_HAND_MAX][DEATH_ID_LEN + 1];
	size_t count;
	char linked[ROLE_COUNT][DEATH_ID_LEN + 1]; /* what LINK said */
	int links;
} world;

static struct supervisor sv;
static struct child ledger, intake;
static struct peer *ends[ROLE_COUNT];

bool
child_is_there(const struct child *c)
{
	return true;
}

static void
on_count_death(struct peer *peer, struct msg *m, void *arg)
{
	assert_true(world.count < CHILD_HAND_MAX);
	world.counted[world.count] = m->count_death.event_id;
	(void)snprintf(world.deaths[world.count++], DEATH_ID_LEN + 1, "%s",
	    m->count_death.death);
	msg_free(m);
}

static void
on_link(struct peer *peer, struct msg *m, void *arg)
{
	int64_t role = m->link.role;

	(void)snprintf(
	    world.linked[role], DEATH_ID_LEN + 1, "%s", m->link.death);
	world.links++;
	(void)close(m->link.end);
	m->link.end = -1;
	msg_free(m);
}

static const peer_handler no_handlers[MSG_COUNT];
static const peer_handler child_handlers[MSG_COUNT] = {
    [MSG_COUNT_DEATH] = on_count_death,
    [MSG_LINK] = on_link,
};
static const struct peer_ops plain_ops = {.handlers = no_handlers};
static const struct peer_ops child_ops = {.handlers = child_handlers};

static void
child_init(struct child *c, enum role_id role)
{
	memset(c, 0, sizeof(*c));
	c->sv = &sv;
	c->role = role;
	c->generation = 1;
	c->peer =
	    peer_new(sv.base, ROLE_SUPERVISOR, role, "", &plain_ops, NULL);
	ends[role] =
	    peer_new(sv.base, role, ROLE_SUPERVISOR, "", &child_ops, NULL);
	sv.children[role] = c;
}

static void
child_link(struct child *c)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	peer_attach(c->peer, pair[0], 1);
	peer_attach(ends[c->role], pair[1], 1);
}

static void
turn(void)
{
	int i;

	for (i = 0; i < 20; i++)
		(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
}

static int
set_up(void **state)
{
	memset(&world, 0, sizeof(world));
	memset(&sv, 0, sizeof(sv));
	sv.base = event_base_new();
	TAILQ_INIT(&sv.mcpds);
	child_init(&ledger, ROLE_LEDGER);
	child_init(&intake, ROLE_INTAKE);
	child_link(&ledger);
	child_link(&intake);
	return 0;
}

static int
tear_down(void **state)
{
	peer_free(ledger.peer);
	peer_free(intake.peer);
	peer_free(ends[ROLE_LEDGER]);
	peer_free(ends[ROLE_INTAKE]);
	event_base_free(sv.base);
	return 0;
}

/* Each record that was not laid down, under the one id of the death. */
static void
test_a_death_of_its_own_is_counted(void **state)
{
	assert_int_equal(hand_move(&intake, 101, true), 0);
	assert_int_equal(hand_move(&intake, 102, true), 0);
	assert_int_equal(hand_move(&intake, 103, true), 0);
	assert_int_equal(hand_move(&intake, 102, false), 0);
	hand_bury(&intake, true);
	turn();
	assert_int_equal(world.count, 2);
	assert_int_equal(world.counted[0], 101);
	assert_int_equal(world.counted[1], 103);
	assert_int_equal(strlen(intake.death_id), DEATH_ID_LEN);
	assert_string_equal(world.deaths[0], intake.death_id);
	assert_string_equal(world.deaths[1], intake.death_id);
	/* The next life begins with empty hands, and ends by another id. */
	assert_int_equal(hand_move(&intake, 101, true), 0);
	hand_bury(&intake, true);
	turn();
	assert_int_equal(world.count, 3);
	assert_int_equal(world.counted[2], 101);
	assert_string_not_equal(world.deaths[2], world.deaths[0]);
}

static void
test_nobodys_fault_is_not(void **state)
{
	assert_int_equal(hand_move(&intake, 101, true), 0);
	hand_bury(&intake, true);
	assert_int_equal(hand_move(&intake, 102, true), 0);
	hand_bury(&intake, false);
	turn();
	assert_int_equal(world.count, 1);
	assert_int_equal(world.counted[0], 101);
	assert_string_equal(intake.death_id, "");
	assert_int_equal(intake.hand_count, 0);
}

/* The count outlives a ledger that is away, or goes without an answer. */
static void
test_the_next_ledger_is_told(void **state)
{
	peer_free(ends[ROLE_LEDGER]);
	turn();
	assert_int_equal(hand_move(&intake, 101, true), 0);
	hand_bury(&intake, true);
	turn();
	assert_int_equal(world.count, 0);
	ends[ROLE_LEDGER] = peer_new(
	    sv.base, ROLE_LEDGER, ROLE_SUPERVISOR, "", &child_ops, NULL);
	child_link(&ledger);
	turn();
	assert_int_equal(world.count, 1);
}

/* Twice in hand is once; what was not in hand can be laid down. */
static void
test_a_hand_has_its_bound(void **state)
{
	int64_t i;

	for (i = 1; i <= CHILD_HAND_MAX; i++)
		assert_int_equal(hand_move(&intake, i, true), 0);
	assert_int_equal(hand_move(&intake, 1, true), 0);
	assert_int_equal(hand_move(&intake, 999, false), 0);
	assert_int_equal(hand_move(&intake, 999, true), -1);
	assert_int_equal(intake.hand_count, CHILD_HAND_MAX);
}

/* Those it left hear of the death; its successor has nothing to mourn. */
static void
test_link_names_the_death(void **state)
{
	struct error e;

	hand_bury(&intake, true);
	(void)snprintf(ledger.death_id, sizeof(ledger.death_id), "old");
	assert_int_equal(links_make(&intake, &e), 0);
	turn();
	assert_int_equal(world.links, 2);
	assert_string_equal(world.linked[ROLE_INTAKE], intake.death_id);
	assert_string_equal(world.linked[ROLE_LEDGER], "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_a_death_of_its_own_is_counted),
	    TEST(test_nobodys_fault_is_not),
	    TEST(test_the_next_ledger_is_told),
	    TEST(test_a_hand_has_its_bound),
	    TEST(test_link_names_the_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
