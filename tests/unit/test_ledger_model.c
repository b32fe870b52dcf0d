#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/log.h"
#include "ledger/retention.h"
#include "tests/unit/eye.h"
#include "tests/unit/invariants.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/model_pick.h"
#include "tests/unit/model_story.h"

#define SEQUENCES 1000
#define SEQUENCES_SANITIZED 60
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif
#define STEPS_LEAST 40
#define STEPS_MOST 60
#define JOINED_MOST 4
#define CHECK_EVERY 20

struct story {
	struct fixture *f;
	sqlite3 *eye;
	struct model *w;
	struct step steps[STEPS_MOST];
	int count;
	bool is_loud; /* every step is printed */
	char why[32768];
	/* Of the turn in hand. */
	struct model_answer due[JOINED_MOST];
	struct said said[JOINED_MOST];
	int said_count;
};

/* How often each request had which answer, over all stories. */
static int answered[MSG_COUNT], refused[MSG_COUNT];

/* ---- a turn --------------------------------------------------------- */

/* The task that a token was minted for. */
static struct model_task *
task_keyed(struct model *w, const struct said *s)
{
	const char *attempt = s->m.type == MSG_LAUNCH ? s->m.launch.attempt
	    : s->m.type == MSG_REKEY                  ? s->m.rekey.attempt
						      : s->m.take_over.attempt;

	return model_task(w, model_attempt(w, attempt)->task_id);
}

/* The descriptor of a reply that brings a token, or NULL. */
static int *
reply_key(struct msg *m)
{
	switch (m->type) {
	case MSG_LAUNCHED:
		return &m->launched.token;
	case MSG_REKEYED:
		return &m->rekeyed.token;
	case MSG_TAKEN_OVER:
		return &m->taken_over.token;
	default:
		return NULL;
	}
}

/* Keep the token that REPLY brings, if no later one replaced it. */
static void
token_keep(struct story *s, int n, struct msg *reply, bool is_last)
{
	const char *token = token_read(reply_key(reply));
	struct model_task *t;

	t = task_keyed(s->w, &s->said[n]);
	if (is_last)
		t->token = model_text("%s", token);
	else
		t->old_token = model_text("%s", token);
}

static bool
is_last_key(struct story *s, int n)
{
	const struct model_task *t = task_keyed(s->w, &s->said[n]);

	for (int i = n + 1; i < s->said_count; i++)
		if (reply_key(&s->due[i].m) != NULL &&
		    task_keyed(s->w, &s->said[i]) == t)
			return false;
	return true;
}

static bool
turn_check(struct story *s)
{
	struct fixture *f = s->f;
	size_t first = f->reply_count;
	char asked[4096], differs[4096 * 2 + 512];

	if (s->said_count == 0)
		return true;
	fixture_turn(f);
	if (f->reply_count != first + (size_t)s->said_count) {
		(void)snprintf(s->why, sizeof(s->why), "%d asked, %zu answered",
		    s->said_count, f->reply_count - first);
		return false;
	}
	for (int i = 0; i < s->said_count; i++) {
		struct msg *reply = f->replies[first + (size_t)i];

		if (model_answer_matches(
			&s->due[i], reply, differs, sizeof(differs))) {
			if (reply_key(reply) != NULL)
				token_keep(s, i, reply, is_last_key(s, i));
			continue;
		}
		model_message_text(&s->said[i].m, asked, sizeof(asked));
		(void)snprintf(
		    s->why, sizeof(s->why), "%s\n  to %s", differs, asked);
		return false;
	}
	s->said_count = 0;
	return true;
}

static bool
state_check(struct story *s)
{
	return model_tables_match(s->w, s->eye, s->why, sizeof(s->why)) &&
	    invariants_hold(s->eye, s->why, sizeof(s->why));
}

/* ---- a step --------------------------------------------------------- */

static void
step_ask(struct story *s, const struct step *step)
{
	struct said *said = &s->said[s->said_count];
	struct model_answer *due = &s->due[s->said_count++];

	story_say(s->w, step, said);
	model_ask(s->w, &said->m, said->attempt, due);
	(due->m.type == MSG_FAILED ? refused : answered)[said->m.type]++;
	fixture_add(s->f, &said->m, said->from, said->attempt);
}

static void
step_configure(struct story *s, const struct step *step)
{
	struct config *c = s->f->config;

	story_configure(s->w, step);
	while (c->route_count > 0) {
		c->route_count--;
		free(c->routes[c->route_count].path);
		free(c->routes[c->route_count].class);
	}
	for (int i = 0; i < s->w->route_count; i++)
		config_route_add(c, s->w->routes[i].project_id,
		    s->w->routes[i].path, "", false);
	c->generation = s->w->generation;
	c->keep_discarded_ms = c->keep_completed_ms = KEEP_MS;
	fixture_config_changed(s->f);
}

static void
step_retain(struct story *s)
{
	struct retention r = {0};
	enum retention_step step;

	while ((step = retention_step(&s->f->l, &r)) == RETENTION_MORE)
		;
	assert_int_equal(RETENTION_OVER, step);
	model_retain(s->w, KEEP_MS, KEEP_MS);
}

static void
story_wait_ms(struct story *s, int64_t ms)
{
	fixture_wait(ms);
	model_time(s->w, s->w->now_ns + ms * 1000000);
}

static void
step_print(struct story *s, const struct step *step)
{
	char text[2048];

	switch (step->type) {
	case STEP_WAIT:
		print_message("  wait %lld ms\n", (long long)story_wait(step));
		return;
	case STEP_RESTART:
		print_message("  restart\n");
		return;
	case STEP_CONFIGURE:
		print_message("  configure\n");
		return;
	case STEP_RETAIN:
		print_message("  retain\n");
		return;
	default:
		model_message_text(
		    &s->said[s->said_count - 1].m, text, sizeof(text));
		print_message("  %s%s\n", text, step->is_joined ? " +" : "");
	}
}

/* Requests are kept until their turn; anything else ends the turn first. */
static bool
step_do(struct story *s, const struct step *step)
{
	if (step->type == MSG_LISTED || step->type == MSG_ADOPTABLE_NEXT ||
	    step->type == MSG_ADOPT) {
		/* Words are compared, and some are the ledger's. */
		if (!turn_check(s))
			return false;
		model_read_bodies(s->w, s->eye);
	}
	if (model_knows(step->type))
		step_ask(s, step);
	if (s->is_loud)
		step_print(s, step);
	if (s->said_count > 0 && step->is_joined && model_knows(step->type) &&
	    s->said_count < JOINED_MOST)
		return true;
	if (!turn_check(s))
		return false;
	if (step->type == STEP_WAIT)
		story_wait_ms(s, story_wait(step));
	else if (step->type == STEP_RESTART)
		fixture_restart(s->f);
	else if (step->type == STEP_CONFIGURE)
		step_configure(s, step);
	else if (step->type == STEP_RETAIN)
		step_retain(s);
	else
		story_wait_ms(s, (int64_t)(step->dice % 3));
	return true;
}

/* ---- a story -------------------------------------------------------- */

/* The same file for all stories: a new one takes longer than its story. */
static void
story_open(struct story *s)
{
	const struct step first = {.type = STEP_CONFIGURE, .dice = 1};

	eye_wipe(s->eye);
	assert_int_equal(SQLITE_OK, sql(s->f, "PRAGMA synchronous=OFF"));
	model_init(s->w, clock_wall_ns());
	s->w->generation = s->f->config->generation;
	s->w->agent_id = AGENT;
	s->w->boot_id = s->f->l.boot_id;
	s->w->run_id = s->f->l.run_id;
	s->said_count = 0;
	s->f->l.depth = 0;
	step_configure(s, &first);
	assert_int_equal(2, s->w->route_count);
}

static void
story_close(struct story *s)
{
	fixture_forget(s->f);
	while (s->f->reply_count > 0)
		msg_free(s->f->replies[--s->f->reply_count]);
}

/* Steps made up as things stand, if DICE are given; else those of S again. */
static bool
story_tell(struct story *s, uint64_t *dice)
{
	bool holds = true;
	int since = 0;

	story_open(s);
	for (int i = 0; i < s->count && holds; i++) {
		if (dice != NULL)
			s->steps[i] = story_next(s->w, dice);
		holds = step_do(s, &s->steps[i]);
		if (holds && s->said_count == 0 && ++since >= CHECK_EVERY) {
			since = 0;
			holds = state_check(s);
		}
		if (!holds)
			s->count = i + 1;
	}
	holds = holds && turn_check(s) && state_check(s);
	story_close(s);
	return holds;
}

/* Do both say that the same thing differs, whatever its values are? */
static bool
is_same_difference(const struct story *a, const struct story *b)
{
	size_t len = strcspn(a->why, ":");

	return strncmp(a->why, b->why, len + 1) == 0;
}

/* Leave out each step that the difference does not need. Were there any? */
static bool
story_shrink(struct story *s)
{
	static struct story less;
	bool shorter = false;

	for (int i = s->count - 1; i >= 0; i--) {
		less = *s;
		less.count--;
		memmove(&less.steps[i], &less.steps[i + 1],
		    (size_t)(less.count - i) * sizeof(less.steps[0]));
		if (story_tell(&less, NULL) || !is_same_difference(s, &less))
			continue;
		*s = less;
		shorter = true;
		if (i > s->count)
			i = s->count;
	}
	return shorter;
}

/* ---- the tests ------------------------------------------------------ */

static uint64_t
number_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void
story_fail(struct story *s, uint64_t seed, int sequence)
{
	print_message("CONNECTD_SEED=%llu CONNECTD_SEQUENCE=%d: %s\n",
	    (unsigned long long)seed, sequence, s->why);
	while (story_shrink(s))
		;
	s->is_loud = true;
	print_message("%d steps suffice:\n", s->count);
	(void)story_tell(s, NULL);
	fail_msg("%s", s->why);
}

/* What is hardly ever said, or always refused, is not tested. */
static void
answers_check(bool is_whole)
{
	for (enum msg_type type = 0; type < MSG_COUNT; type++) {
		if (!model_knows(type))
			continue;
		print_message("%-18s %6d answered %6d refused\n",
		    msg_name(type), answered[type], refused[type]);
		if (is_whole && answered[type] < 10)
			fail_msg("%s is too seldom answered", msg_name(type));
	}
}

static void
quiet(enum log_level level, const char *line)
{
}

/* Sequence I of SEED, wherever it is told. */
static uint64_t
dice_of(uint64_t seed, int i)
{
	uint64_t dice = (seed << 32) + (uint64_t)i * 2 + 1;

	for (int n = 0; n < 8; n++)
		(void)dice_throw(&dice);
	return dice;
}

static void
ledger_and_model_agree(void **state)
{
	static struct model w;
	static struct story s = {.w = &w};
	uint64_t seed = number_of("CONNECTD_SEED", 1);
	int first = (int)number_of("CONNECTD_SEQUENCE", 0);
	bool is_slow = IS_SANITIZED || getenv("CONNECTD_SANITIZED") != NULL;
	int count = (int)number_of(
	    "CONNECTD_SEQUENCES", is_slow ? SEQUENCES_SANITIZED : SEQUENCES);

	print_message("CONNECTD_SEED=%llu\n", (unsigned long long)seed);
	s.f = *state;
	s.eye = eye_open(s.f->dir);
	for (int i = first; i < first + count; i++) {
		uint64_t dice = dice_of(seed, i);

		s.count = STEPS_LEAST +
		    (int)(dice_throw(&dice) % (STEPS_MOST - STEPS_LEAST + 1));
		if (!story_tell(&s, &dice))
			story_fail(&s, seed, i);
	}
	eye_close(s.eye);
	answers_check(count >= SEQUENCES);
}

static bool
is_asked_of_the_ledger(enum msg_type type)
{
	for (enum role_id from = 0; from < ROLE_COUNT; from++)
		if (msg_is_request(type) &&
		    msg_permitted(type, from, ROLE_LEDGER))
			return true;
	return false;
}

/* QUERY changes nothing, and what it shows has tests of its own. */
static void
no_request_is_forgotten(void **state)
{
	for (enum msg_type type = 0; type < MSG_COUNT; type++)
		if (is_asked_of_the_ledger(type) && type != MSG_PING &&
		    type != MSG_QUERY && !model_knows(type))
			fail_msg("the model has no %s", msg_name(type));
}

static void
no_column_is_forgotten(void **state)
{
	struct fixture *f = *state;
	sqlite3 *eye = eye_open(f->dir);
	char unknown[2048];

	model_columns_unknown(eye, unknown, sizeof(unknown));
	eye_close(eye);
	assert_string_equal("", unknown);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_request_is_forgotten),
	    cmocka_unit_test_setup_teardown(
		no_column_is_forgotten, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(
		ledger_and_model_agree, fixture_setup, fixture_teardown),
	};

	log_set_sink(quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
