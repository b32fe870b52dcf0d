/* A child's life: the table in supervisor/child.c, pair by pair. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/exec.h"
#include "supervisor/watchdog.h"

/* ---- the world around child.c -------------------------------------------- */

static struct {
	int64_t now_ms;
	int spawns, walls_missing, downs, dispatcher_gone, mcpd_ready;
	int mcpd_exited;
	int signal; /* the last one sent */
	enum spawn_result result;
} world;

static struct supervisor sv;
static struct settings settings;

static void
world_now(clockid_t id, struct timespec *out)
{
	(void)id;
	out->tv_sec = world.now_ms / 1000;
	out->tv_nsec = world.now_ms % 1000 * 1000000;
}

static const struct clock_source clock_source = {world_now};
static const peer_handler handlers[MSG_COUNT];
const struct peer_ops child_peer_ops = {.handlers = handlers};

enum spawn_result
child_spawn(struct child *c, struct error *e)
{
	world.spawns++;
	if (world.result == SPAWN_DONE)
		c->pid = 4242;
	else
		(void)error_set(e, "no");
	return world.result;
}

void
child_signal(const struct child *c, int signal)
{
	(void)c;
	world.signal = signal;
}

void
child_values_clear(struct child *c)
{
	(void)c;
}

void
watchdog_forget(struct child *c)
{
	c->ping = 0;
}

const char *
exec_name(enum role_id role)
{
	return role_name(role);
}

void
supervisor_child_changed(struct supervisor *s, struct child *c)
{
	(void)s;
	(void)c;
}

void
supervisor_walls_missing(struct supervisor *s)
{
	(void)s;
	world.walls_missing++;
}

void
stop_child_down(struct supervisor *s)
{
	(void)s;
	world.downs++;
}

void
attempts_dispatcher_gone(struct supervisor *s)
{
	(void)s;
	world.dispatcher_gone++;
}

void
attempt_mcpd_ready(struct supervisor *s, const char *attempt)
{
	(void)s;
	assert_string_equal(attempt, "att_000000000000000000000001");
	world.mcpd_ready++;
}

void
attempt_mcpd_exited(struct supervisor *s, const char *attempt)
{
	(void)s;
	assert_string_equal(attempt, "att_000000000000000000000001");
	world.mcpd_exited++;
}

static int
set_up(void **state)
{
	struct child *c;

	memset(&world, 0, sizeof(world));
	memset(&sv, 0, sizeof(sv));
	memset(&settings, 0, sizeof(settings));
	world.now_ms = 1000000;
	clock_set_source(&clock_source);
	sv.base = event_base_new();
	settings.config = config_new();
	sv.settings = &settings;
	TAILQ_INIT(&sv.mcpds);
	c = child_new(&sv, ROLE_OUTBOX, "");
	c->wanted = true;
	*state = c;
	return 0;
}

static int
tear_down(void **state)
{
	if (*state != NULL)
		child_free(*state);
	config_free(settings.config);
	event_base_free(sv.base);
	clock_set_source(NULL);
	return 0;
}

/* It exits with CODE, or is killed by SIGNAL, AFTER so many ms. */
static void
dies(struct child *c, int code, int signal, int64_t after)
{
	world.now_ms += after;
	c->pid = 0;
	c->link_ended = true;
	c->end.si_code = signal != 0 ? CLD_KILLED : CLD_EXITED;
	c->end.si_status = signal != 0 ? signal : code;
	child_happens(c, CHILD_DEATH);
}

static bool
has_timer(const struct child *c)
{
	return evtimer_pending(c->timer, NULL) != 0;
}

/* ---- the table ----------------------------------------------------------- */

#define D CHILD_DOWN
#define S CHILD_STARTING
#define R CHILD_READY
#define E CHILD_STOPPING
#define K CHILD_KILLED
#define B CHILD_BACKOFF
#define P CHILD_PARKED

/*
 * Where each event leads from each state. The death is that of a process
 * which somebody killed before it was ready; it is wanted.
 */
static const enum child_state leads_to[CHILD_STATE_COUNT][CHILD_EVENT_COUNT] = {
    /*      start ready unfit death time wrong silent unlnk stop rest reload */
    [D] = {S, D, D, D, D, D, D, D, D, D, D},
    [S] = {S, R, K, B, K, K, S, E, E, E, S},
    [R] = {R, K, K, B, R, K, K, E, E, E, R},
    [E] = {E, E, E, B, K, K, E, E, E, E, E},
    [K] = {K, K, K, B, K, K, K, K, K, K, K},
    [B] = {S, B, B, B, S, B, B, B, D, S, S},
    [P] = {S, P, P, P, P, P, P, P, D, S, S},
};

#undef D
#undef S
#undef R
#undef E
#undef K
#undef B
#undef P

static void
test_every_pair(void **arg)
{
	struct child *c = *arg;
	int state, event;

	c->end.si_code = CLD_KILLED;
	c->end.si_status = SIGKILL;
	for (state = 0; state < CHILD_STATE_COUNT; state++) {
		for (event = 0; event < CHILD_EVENT_COUNT; event++) {
			c->state = (enum child_state)state;
			c->wanted = true;
			c->was_ready = c->asked = false;
			c->failures = 0;
			child_happens(c, (enum child_event)event);
			if (c->state != leads_to[state][event])
				fail_msg("state %d, event %d: now %d", state,
				    event, c->state);
		}
	}
}

/* Only states that wait for something have a bound. */
static void
test_bounds(void **arg)
{
	static const struct {
		enum child_event event;
		bool timer;
	} steps[] = {
	    {CHILD_START, true},
	    {CHILD_SAID_READY, false},
	    {CHILD_RESTART, true},
	    {CHILD_TIMEOUT, false},
	};
	struct child *c = *arg;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		child_happens(c, steps[i].event);
		assert_int_equal(has_timer(c), steps[i].timer);
	}
	assert_int_equal(c->state, CHILD_KILLED);
	assert_int_equal(world.signal, SIGKILL);
}

/* ---- after a death ------------------------------------------------------- */

static void
test_pauses(void **arg)
{
	static const int64_t steps[] = {
	    250, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
	unsigned i;

	(void)arg;
	assert_int_equal(child_pause_ms(0, true, 0), 0);
	assert_int_equal(child_pause_ms(0, true, UINT32_MAX), 0);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_int_equal(child_pause_ms(i, false, 0), steps[i]);
		if (i > 0)
			assert_int_equal(child_pause_ms(i, true, 0), steps[i]);
		assert_in_range(child_pause_ms(i, false, UINT32_MAX),
		    steps[i] - steps[i] / 4, steps[i] - 1);
	}
	assert_int_equal(child_pause_ms(UINT32_MAX, true, 0), 30000);
}

/* At once; then, within ten seconds, after a pause; later at once again. */
static void
test_first_death_restarts_at_once(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	dies(c, 0, SIGKILL, 5);
	assert_int_equal(c->state, CHILD_STARTING);
	assert_int_equal(world.spawns, 2);
	child_happens(c, CHILD_SAID_READY);
	dies(c, 0, SIGKILL, 9999);
	assert_int_equal(c->state, CHILD_BACKOFF);
	assert_int_equal(world.spawns, 2);
	child_happens(c, CHILD_TIMEOUT);
	child_happens(c, CHILD_SAID_READY);
	dies(c, 0, SIGKILL, 10000);
	assert_int_equal(c->state, CHILD_STARTING);
	assert_int_equal(c->restarts, 3);
}

static void
test_failing_is_shown_and_goes_on(void **arg)
{
	struct child *c = *arg;
	int i;

	child_happens(c, CHILD_START);
	for (i = 1; i <= 100; i++) {
		dies(c, 1, 0, 10);
		assert_int_equal(c->state, CHILD_BACKOFF);
		assert_true(has_timer(c));
		assert_int_equal(child_is_failing(c), i >= CHILD_FAILING_FROM);
		child_happens(c, CHILD_TIMEOUT);
	}
	assert_string_equal(child_state_name(c), "failing");
	assert_int_equal(c->own_deaths, 100);
	child_happens(c, CHILD_SAID_READY);
	assert_false(child_is_failing(c));
}

static void
test_bad_configuration_is_a_state(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	dies(c, EXIT_CONFIG, 0, 10);
	assert_int_equal(c->state, CHILD_PARKED);
	assert_false(has_timer(c));
	assert_true(child_is_failing(c));
	assert_string_equal(child_state_name(c), "parked");
	child_happens(c, CHILD_RELOAD);
	assert_int_equal(c->state, CHILD_STARTING);
	assert_int_equal(world.spawns, 2);
}

static void
test_what_cannot_be_spawned(void **arg)
{
	struct child *c = *arg;

	world.result = SPAWN_FAILED;
	child_happens(c, CHILD_START);
	assert_int_equal(c->state, CHILD_BACKOFF);
	world.result = SPAWN_UNCONFIGURED;
	child_happens(c, CHILD_TIMEOUT);
	assert_int_equal(c->state, CHILD_PARKED);
	assert_string_equal(c->last_words, "no");
}

/* It is no failure and costs no pause, however often it is asked for. */
static void
test_operators_restart_does_not_count(void **arg)
{
	struct child *c = *arg;
	int i;

	child_happens(c, CHILD_START);
	for (i = 0; i < 10; i++) {
		child_happens(c, CHILD_SAID_READY);
		child_happens(c, CHILD_RESTART);
		assert_int_equal(c->state, CHILD_STOPPING);
		dies(c, 0, 0, 1);
		assert_int_equal(c->state, CHILD_STARTING);
	}
	assert_int_equal(c->failures, 0);
	assert_int_equal(c->own_deaths, 0);
}

static void
test_stop_is_for_good(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	child_happens(c, CHILD_STOP);
	assert_int_equal(world.downs, 0);
	dies(c, 0, 0, 1);
	assert_int_equal(c->state, CHILD_DOWN);
	assert_int_equal(world.downs, 1);
	assert_int_equal(world.spawns, 1);
}

/* A stop that finds it restarting wins over the restart. */
static void
test_stop_after_restart(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_RESTART);
	child_happens(c, CHILD_STOP);
	dies(c, 0, 0, 1);
	assert_int_equal(c->state, CHILD_DOWN);
	assert_int_equal(world.spawns, 1);
}

static void
test_silence_is_aborted_then_killed(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	child_happens(c, CHILD_SILENT);
	assert_int_equal(world.signal, SIGABRT);
	assert_true(has_timer(c));
	child_happens(c, CHILD_TIMEOUT);
	assert_int_equal(world.signal, SIGKILL);
	dies(c, 0, SIGKILL, 1);
	assert_int_equal(c->own_deaths, 1);
	assert_int_equal(c->silences, 1);
	assert_string_not_equal(c->death_id, "");
	/* Its successor's end by another's hand is no such death. */
	dies(c, 0, SIGKILL, 1);
	assert_string_equal(c->death_id, "");
}

static void
test_missing_walls_end_the_start(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	dies(c, EXIT_WALLS, 0, 1);
	assert_int_equal(world.walls_missing, 1);
}

static void
test_whose_death_it_is(void **arg)
{
	static const struct {
		int code, signal;
		const char *killed_for;
		bool own;
	} ends[] = {
	    {0, 0, NULL, false},
	    {1, 0, NULL, true},
	    {EXIT_STORAGE, 0, NULL, false},
	    {EXIT_CRASH, 0, NULL, true},
	    {0, SIGSEGV, NULL, true},
	    {0, SIGABRT, NULL, true},
	    {0, SIGBUS, NULL, true},
	    {0, SIGSYS, NULL, true},
	    {0, SIGKILL, NULL, false},
	    {0, SIGTERM, NULL, false},
	    {0, SIGKILL, "does not answer", true},
	};
	siginfo_t end;
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		memset(&end, 0, sizeof(end));
		end.si_code = ends[i].signal != 0 ? CLD_KILLED : CLD_EXITED;
		end.si_status =
		    ends[i].signal != 0 ? ends[i].signal : ends[i].code;
		assert_int_equal(
		    child_end_is_own(&end, ends[i].killed_for), ends[i].own);
	}
}

/* ---- the two halves of an end, and who else hears of it ------------------ */

/* A successor must not start before the old link is read and the old reaped. */
static void
test_death_needs_both_halves(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	c->end.si_code = CLD_KILLED;
	c->end.si_status = SIGKILL;
	child_process_ended(c);
	(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
	assert_int_equal(c->state, CHILD_READY);
	assert_false(child_is_there(c));
	child_link_ended(c);
	(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
	assert_int_equal(c->state, CHILD_STARTING);
	assert_int_equal(world.spawns, 2);
}

static void
test_link_without_process_is_ended(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	child_link_ended(c);
	assert_int_equal(c->state, CHILD_STOPPING);
	assert_false(child_is_there(c));
	child_happens(c, CHILD_TIMEOUT);
	assert_int_equal(world.signal, SIGKILL);
}

/* It has work to finish, for which it may need another that died. */
static void
test_finishing_child_is_linked(void **arg)
{
	struct child *c = *arg;

	child_happens(c, CHILD_START);
	assert_true(child_is_there(c));
	child_happens(c, CHILD_SAID_READY);
	assert_true(child_is_there(c));
	child_happens(c, CHILD_STOP);
	assert_int_equal(c->state, CHILD_STOPPING);
	assert_true(child_is_there(c));
	child_happens(c, CHILD_TIMEOUT);
	assert_int_equal(c->state, CHILD_KILLED);
	assert_false(child_is_there(c));
}

static void
test_dispatchers_death_is_told(void **arg)
{
	struct child *c = child_new(&sv, ROLE_DISPATCHER, "");

	(void)arg;
	c->wanted = true;
	child_happens(c, CHILD_START);
	dies(c, 0, SIGKILL, 1);
	assert_int_equal(world.dispatcher_gone, 1);
	child_free(c);
}

/* One life, and then it is gone, whatever ended it. */
static void
test_mcpd_has_one_life(void **arg)
{
	struct child *c =
	    child_new(&sv, ROLE_MCPD, "att_000000000000000000000001");

	(void)arg;
	TAILQ_INSERT_HEAD(&sv.mcpds, c, entry);
	child_happens(c, CHILD_START);
	child_happens(c, CHILD_SAID_READY);
	assert_int_equal(world.mcpd_ready, 1);
	dies(c, 0, SIGKILL, 1);
	assert_int_equal(world.mcpd_exited, 1);
	assert_int_equal(world.spawns, 1);
	assert_true(TAILQ_EMPTY(&sv.mcpds));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_every_pair),
	    TEST(test_bounds),
	    TEST(test_pauses),
	    TEST(test_first_death_restarts_at_once),
	    TEST(test_failing_is_shown_and_goes_on),
	    TEST(test_bad_configuration_is_a_state),
	    TEST(test_what_cannot_be_spawned),
	    TEST(test_operators_restart_does_not_count),
	    TEST(test_stop_is_for_good),
	    TEST(test_stop_after_restart),
	    TEST(test_silence_is_aborted_then_killed),
	    TEST(test_missing_walls_end_the_start),
	    TEST(test_whose_death_it_is),
	    TEST(test_death_needs_both_halves),
	    TEST(test_link_without_process_is_ended),
	    TEST(test_finishing_child_is_linked),
	    TEST(test_dispatchers_death_is_told),
	    TEST(test_mcpd_has_one_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
