/* PING and what follows silence; and silence while there is nothing to do. */
#include <sys/socket.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "supervisor/notify.h"
#include "supervisor/watchdog.h"

#define BOUND_MS 60
#define WAIT_MS 10000

/* Two children, and their own ends of descriptor 3. */
static struct {
	int silent[ROLE_COUNT]; /* CHILD_SILENT came so often */
	int wrong;
	int64_t manager_ms;
	int told; /* WATCHDOG=1 */
	size_t attempts;
} world;

static struct supervisor sv;
static struct settings settings;
static struct child children[2];
static struct peer *ends[2];
static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops plain_ops = {.handlers = no_handlers};

void
child_happens(struct child *c, enum child_event event)
{
	if (event == CHILD_SILENT) {
		world.silent[c->role]++;
		c->state = CHILD_KILLED;
	} else {
		world.wrong++;
	}
}

size_t
attempts_live(const struct supervisor *s)
{
	(void)s;
	return world.attempts;
}

int64_t
notify_watchdog_ms(void)
{
	return world.manager_ms;
}

bool
notify_send(const char *fmt, ...)
{
	assert_string_equal(fmt, "WATCHDOG=1\n");
	world.told++;
	return true;
}

/* A child of that role whose other end answers when the loop runs. */
static void
child_link(int i, enum role_id role)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	memset(&children[i], 0, sizeof(children[i]));
	children[i].sv = &sv;
	children[i].role = role;
	children[i].state = CHILD_READY;
	children[i].peer =
	    peer_new(sv.base, ROLE_SUPERVISOR, role, "", &plain_ops, NULL);
	ends[i] =
	    peer_new(sv.base, role, ROLE_SUPERVISOR, "", &plain_ops, NULL);
	peer_attach(children[i].peer, pair[0], 1);
	peer_attach(ends[i], pair[1], 1);
	sv.children[role] = &children[i];
}

static int
set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	memset(&sv, 0, sizeof(sv));
	sv.base = event_base_new();
	settings.config = config_new();
	settings.config->limits[LIMIT_watchdog] = BOUND_MS;
	sv.settings = &settings;
	TAILQ_INIT(&sv.mcpds);
	child_link(0, ROLE_LEDGER);
	child_link(1, ROLE_INTAKE);
	return 0;
}

static int
tear_down(void **state)
{
	int i;

	(void)state;
	watchdog_end(&sv);
	for (i = 0; i < 2; i++) {
		peer_free(children[i].peer);
		peer_free(ends[i]);
	}
	config_free(settings.config);
	event_base_free(sv.base);
	return 0;
}

/* The loop, until COUNTER is at least WANT, or for MS if that is later. */
static void
run_until(const int *counter, int want, int64_t ms)
{
	int64_t now = clock_monotonic_ms(), least = now + ms;
	int64_t most = now + WAIT_MS;

	while (*counter < want || clock_monotonic_ms() < least) {
		assert_true(clock_monotonic_ms() < most);
		(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
		(void)poll(NULL, 0, 1);
	}
}

static void
test_idle_is_left_alone(void **arg)
{
	(void)arg;
	watchdog_init(&sv);
	watchdog_wake(&sv);
	link_pause(peer_link(ends[1])); /* it would not answer */
	run_until(&world.told, 0, 4 * BOUND_MS);
	assert_int_equal(world.silent[ROLE_INTAKE], 0);
	assert_int_equal(peer_unanswered(children[1].peer), 0);
}

/* While something is outstanding who does not answer is ended, nobody else. */
static void
test_silence_is_found(void **arg)
{
	(void)arg;
	world.attempts = 1;
	watchdog_init(&sv);
	link_pause(peer_link(ends[1]));
	watchdog_wake(&sv);
	run_until(&world.silent[ROLE_INTAKE], 1, 4 * BOUND_MS);
	assert_int_equal(world.silent[ROLE_INTAKE], 1);
	assert_int_equal(world.silent[ROLE_LEDGER], 0);
	assert_int_equal(world.wrong, 0);
}

/* A record in somebody's hand is something outstanding as well. */
static void
test_a_hand_is_looked_after(void **arg)
{
	(void)arg;
	children[1].hand_count = 1;
	watchdog_init(&sv);
	link_pause(peer_link(ends[0]));
	watchdog_wake(&sv);
	run_until(&world.silent[ROLE_LEDGER], 1, 0);
	assert_int_equal(world.silent[ROLE_INTAKE], 0);
}

/* One transition, of which notices went out: all are asked, once. */
static void
test_a_stir_finds_it(void **arg)
{
	(void)arg;
	watchdog_init(&sv);
	watchdog_stir(&sv);
	run_until(&world.told, 0, 4 * BOUND_MS);
	assert_int_equal(peer_unanswered(children[0].peer), 0);
	link_pause(peer_link(ends[0]));
	watchdog_stir(&sv);
	run_until(&world.silent[ROLE_LEDGER], 1, 0);
	assert_int_equal(world.silent[ROLE_INTAKE], 0);
}

/* Somebody asks for status: that is enough to find who is stuck. */
static void
test_asking_finds_it_too(void **arg)
{
	(void)arg;
	watchdog_init(&sv);
	link_pause(peer_link(ends[0]));
	watchdog_ask(&sv);
	run_until(&world.silent[ROLE_LEDGER], 1, 0);
}

/* The service manager hears of us while all answer, and then no more. */
static void
test_manager_hears_only_the_truth(void **arg)
{
	int64_t began = clock_monotonic_ms();
	int before;

	(void)arg;
	world.manager_ms = 2 * BOUND_MS;
	settings.config->limits[LIMIT_watchdog] = 100 * BOUND_MS;
	watchdog_init(&sv);
	run_until(&world.told, 5, 0);
	link_pause(peer_link(ends[0]));
	link_pause(peer_link(ends[1]));
	before = world.told;
	/* Ended at half of the manager's bound, before the manager ends us. */
	run_until(&world.silent[ROLE_LEDGER], 1, 0);
	assert_true(clock_monotonic_ms() - began < 50 * BOUND_MS);
	assert_in_range(world.told - before, 0, 2);
	/* One that is being restarted has its own deadlines. */
	run_until(&world.told, before + 4, 0);
}

/* We were the ones asleep: they get their time from now on. */
static void
test_our_own_sleep_is_not_theirs(void **arg)
{
	(void)arg;
	world.attempts = 1;
	watchdog_init(&sv);
	watchdog_ask(&sv);
	(void)poll(NULL, 0, 3 * BOUND_MS);
	run_until(&world.told, 0, 4 * BOUND_MS);
	assert_int_equal(world.silent[ROLE_LEDGER], 0);
	assert_int_equal(world.silent[ROLE_INTAKE], 0);
}

static void
test_a_new_life_owes_nothing(void **arg)
{
	(void)arg;
	world.attempts = 1;
	watchdog_init(&sv);
	link_pause(peer_link(ends[0]));
	watchdog_ask(&sv);
	assert_int_not_equal(children[0].ping, 0);
	watchdog_forget(&children[0]);
	assert_int_equal(children[0].ping, 0);
	watchdog_ask(&sv);               /* the new life's own question */
	link_resume(peer_link(ends[0])); /* the old answer comes late */
	run_until(&world.told, 0, 2 * BOUND_MS);
	assert_int_equal(world.wrong, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_idle_is_left_alone),
	    TEST(test_silence_is_found),
	    TEST(test_a_hand_is_looked_after),
	    TEST(test_a_stir_finds_it),
	    TEST(test_asking_finds_it_too),
	    TEST(test_manager_hears_only_the_truth),
	    TEST(test_our_own_sleep_is_not_theirs),
	    TEST(test_a_new_life_owes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
