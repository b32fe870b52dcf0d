/*
 * The table of repeats under real kills (design 3.1): each request is sent to
 * a real ledger that dies before its COMMIT, between COMMIT and lines, or
 * between lines and the reply; the next ledger over the same file answers the
 * repeat as was promised, and there is one effect.
 *
 *	kill_repeats KILLAT CONNECTD-LEDGER
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/role.h"
#include "common/xmalloc.h"
#include "tests/crash/ledger_life.h"
#include "tests/unit/repeats.h"

#define LEDGER "connectd-ledger"

/* What an undisturbed ledger did with a row's request. */
struct course {
	const struct repeat *row;
	struct msg m;
	char before_dir[DIR_SIZE], dir[DIR_SIZE];
	char *before, *after;       /* as dir_dump() */
	struct msg *first, *second; /* the answers: to the repeat, too */
	size_t lines;
	int syncs;       /* how many before the answer */
	int sends_to_us; /* on the supervisor's link */
};

/* ---- points ------------------------------------------------------------- */

enum effect { NO_EFFECT, EFFECT };

/* The call before which it dies, in killat's words; false: there is none. */
typedef bool (*point_call)(const struct course *c, char *out, size_t size);

static bool
at_wal(const struct course *c, char *out, size_t size)
{
	return snprintf(out, size, "pwrite64:1") > 0;
}

static bool
at_sync(const struct course *c, char *out, size_t size)
{
	return snprintf(out, size, "fdatasync:%d", c->syncs) > 0;
}

static bool
at_lines(const struct course *c, char *out, size_t size)
{
	return c->lines > 0 && snprintf(out, size, "sendmsg/3:1") > 0;
}

static bool
at_reply(const struct course *c, char *out, size_t size)
{
	if (c->row->from == ROLE_SUPERVISOR)
		(void)snprintf(out, size, "sendmsg/3:%d", c->sends_to_us);
	else
		(void)snprintf(out, size, "sendmsg/!3:1");
	return true;
}

static struct {
	const char *name;
	point_call call;
	enum effect effect;  /* is it in the file after the death? */
	bool lines_are_told; /* before it */
	size_t tried;
} points[] = {
    {"before COMMIT, at the WAL's first write", at_wal, NO_EFFECT, false, 0},
    {"before COMMIT, at the WAL's last sync", at_sync, EFFECT, false, 0},
    {"between COMMIT and lines", at_lines, EFFECT, false, 0},
    {"between lines and the reply", at_reply, EFFECT, true, 0},
};
#define POINT_COUNT (sizeof(points) / sizeof(points[0]))

/* ---- two answers -------------------------------------------------------- */

static bool
same_text(const char *a, const char *b)
{
	char *x = xstrdup(a), *y = xstrdup(b);
	bool same;

	stamps_hide(x);
	stamps_hide(y);
	same = strcmp(x, y) == 0;
	free(x);
	free(y);
	return same;
}

static bool
same_field(const struct msg_field *f, const void *a, const void *b)
{
	const struct blob *x = a, *y = b;
	const struct opt *o = a, *p = b;
	const struct ids *i = a, *j = b;

	switch (f->kind) {
	case FIELD_I64:
		return *(const int64_t *)a == *(const int64_t *)b;
	case FIELD_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case FIELD_OPT:
		return o->has == p->has && o->value == p->value;
	case FIELD_STR:
		return same_text(
		    *(const char *const *)a, *(const char *const *)b);
	case FIELD_LARGE:
		return x->len == y->len &&
		    (x->len == 0 || memcmp(x->bytes, y->bytes, x->len) == 0);
	case FIELD_IDS:
		return i->count == j->count &&
		    memcmp(i->list, j->list, i->count * sizeof(*i->list)) == 0;
	default:
		return true; /* a descriptor */
	}
}

/* All that they say, but for which time it is. */
static void
assert_same_msg(const struct msg *a, const struct msg *b, const char *where)
{
	const struct msg_info *info = msg_info(a->type);
	const struct msg_field *f;
	size_t i;

	if (b == NULL)
		fail_msg("%s: no answer to the repeat", where);
	if (a->type != b->type)
		fail_msg(
		    "%s: %s, not %s", where, msg_name(b->type), info->name);
	for (i = 0; i < info->field_count; i++) {
		f = &info->fields[i];
		if (!same_field(f, (const char *)a + f->offset,
			(const char *)b + f->offset))
			fail_msg(
			    "%s: another %s in %s", where, f->name, info->name);
	}
}

/* ---- the undisturbed course --------------------------------------------- */

/* The story up to the request, told in this process. */
static void
course_prepare(struct course *c)
{
	struct fixture *f;
	void *state;

	(void)fixture_setup(&state);
	f = state;
	c->row->before(f);
	c->m = repeat_request(c->row);
	dir_copy(f->dir, c->before_dir);
	(void)fixture_teardown(&state);
}

/* One more record of the calls before the answer. */
static void
course_note(struct course *c, const json_t *record)
{
	const char *call = json_string_value(json_object_get(record, "call"));
	json_int_t fd = json_integer_value(json_object_get(record, "fd"));

	if (strcmp(call, "fdatasync") == 0)
		c->syncs++;
	else if (fd == ROLE_LINK_FD)
		c->sends_to_us++;
}

/* Until what was armed, once more, is: all before was before the answer. */
static void
course_note_all(struct course *c, struct tracer *t)
{
	json_t *record;
	bool is_armed = false;

	tracer_arm(t, 1);
	while (!is_armed && (record = tracer_next(t)) != NULL) {
		if (tracer_said(record, "note"))
			course_note(c, record);
		is_armed = tracer_said(record, "armed");
		json_decref(record);
	}
}

static void
course_first(struct course *c)
{
	static const char *const rules[] = {"later:note@" LEDGER ":sendmsg:1+",
	    "later:note@" LEDGER ":fdatasync:1+", NULL};
	struct tracer tracer;
	struct life life;

	tracer_start(&tracer, life_killat(), rules);
	life_begin(
	    &life, c->dir, c->row->from, repeat_attempt(c->row), &tracer);
	tracer_await_armed(&tracer, 1);
	tracer_await_armed(&tracer, 2);
	life_ask(&life, &c->m);
	assert_non_null(life.reply);
	course_note_all(c, &tracer);
	c->first = msg_copy(life.reply);
	c->lines = life.lines;
	assert_int_equal(0, life_end(&life));
	(void)tracer_end(&tracer);
}

/* What a repeat is answered by a ledger that was stopped in order. */
static void
course_second(struct course *c)
{
	struct life life;

	life_begin(&life, c->dir, c->row->from, repeat_attempt(c->row), NULL);
	life_ask(&life, &c->m);
	assert_non_null(life.reply);
	assert_same_answer(c->first, life.reply);
	c->second = msg_copy(life.reply);
	assert_int_equal(0, life_end(&life));
}

static void
course_run(struct course *c, const struct repeat *row)
{
	*c = (struct course){.row = row};
	dir_make("before", c->before_dir);
	dir_make("ledger", c->dir);
	course_prepare(c);
	c->before = dir_dump(c->before_dir, row->rewritten);
	dir_copy(c->before_dir, c->dir);
	course_first(c);
	if (c->first->type == MSG_FAILED)
		fail_msg("%s: %s", msg_name(c->m.type), c->first->failed.text);
	c->after = dir_dump(c->dir, row->rewritten);
	course_second(c);
}

static void
course_free(struct course *c)
{
	free(c->before);
	free(c->after);
	msg_free(c->first);
	msg_free(c->second);
}

/* ---- a kill ------------------------------------------------------------- */

/* It must die there, having told what is told before, and nothing after. */
static void
kill_there(struct course *c, size_t point, const char *call)
{
	const char *name = points[point].name;
	struct tracer tracer;
	struct life life;
	size_t lines;
	int status;
	char rule[128];

	(void)snprintf(rule, sizeof(rule), "later:kill@" LEDGER ":%s", call);
	tracer_start(&tracer, life_killat(), (const char *[]){rule, NULL});
	life_begin(
	    &life, c->dir, c->row->from, repeat_attempt(c->row), &tracer);
	tracer_await_armed(&tracer, 1);
	life_ask(&life, &c->m);
	if (life.reply != NULL)
		fail_msg("%s: answered, not killed", name);
	lines = life.lines;
	status = life_end(&life);
	if (tracer_end(&tracer) != 0 || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL)
		fail_msg("%s: not killed there: %#x", name, status);
	if (lines != (points[point].lines_are_told ? c->lines : 0))
		fail_msg("%s: %zu lines were told", name, lines);
}

static void
assert_dump(struct course *c, const char *expected, const char *where)
{
	char *found = dir_dump(c->dir, c->row->rewritten);

	if (strcmp(expected, found) != 0)
		print_error("%s: %s\n", msg_name(c->m.type), where);
	assert_string_equal(expected, found);
	free(found);
}

/* The next ledger over the same file, and the same request. */
static void
repeat_there(struct course *c, size_t point)
{
	bool had_effect = points[point].effect == EFFECT;
	const char *name = points[point].name;
	struct life life;

	life_begin(&life, c->dir, c->row->from, repeat_attempt(c->row), NULL);
	life_ask(&life, &c->m);
	assert_same_msg(had_effect ? c->second : c->first, life.reply, name);
	if (life.lines != (had_effect ? 0 : c->lines))
		fail_msg("%s: the repeat told %zu lines", name, life.lines);
	assert_int_equal(0, life_end(&life));
}

static void
point_try(struct course *c, size_t point)
{
	char call[64];

	if (!points[point].call(c, call, sizeof(call)))
		return;
	dir_copy(c->before_dir, c->dir);
	kill_there(c, point, call);
	assert_dump(c, points[point].effect == EFFECT ? c->after : c->before,
	    points[point].name);
	repeat_there(c, point);
	assert_dump(c, c->after, "after the repeat");
	points[point].tried++;
}

static void
a_repeat_after_a_kill_has_one_effect(void **state)
{
	struct course c;
	size_t i;

	course_run(&c, *state);
	for (i = 0; i < POINT_COUNT; i++)
		point_try(&c, i);
	course_free(&c);
}

/* ---- all of them -------------------------------------------------------- */

static void
say_tried(void)
{
	size_t i, sum = 0;

	for (i = 0; i < POINT_COUNT; i++) {
		print_message("%3zu %s\n", points[i].tried, points[i].name);
		sum += points[i].tried;
	}
	print_message(
	    "%zu rows of the table of repeats, %zu kills\n", repeat_count, sum);
}

int
main(int argc, char **argv)
{
	struct CMUnitTest *tests = xcalloc(repeat_count, sizeof(*tests));
	char *name;
	size_t i;
	int rc;

	if (argc != 3)
		fatalx("usage: kill_repeats KILLAT CONNECTD-LEDGER");
	log_init("kill_repeats", LOG_LEVEL_WARN);
	life_init(argv[1], argv[2]);
	for (i = 0; i < repeat_count; i++) {
		(void)xasprintf(
		    &name, "%zu %s", i, msg_name(repeats[i].m.type));
		tests[i] = (struct CMUnitTest){.name = name,
		    .test_func = a_repeat_after_a_kill_has_one_effect,
		    .initial_state = (void *)(uintptr_t)&repeats[i]};
	}
	rc = _cmocka_run_group_tests(
	    "kill_repeats", tests, repeat_count, NULL, NULL);
	say_tried();
	life_done();
	return rc;
}
