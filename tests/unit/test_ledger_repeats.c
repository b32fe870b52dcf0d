/*
 * Every request that changes something, sent again after the ledger died
 * behind its first answer (design 3.1): one effect, the promised answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/repeats.h"

static void
repeat_row(const struct repeat *r)
{
	const char *attempt = repeat_attempt(r);
	struct msg m, *first, *second;
	char *before, *after;
	struct fixture *f;
	void *state;

	(void)fixture_setup(&state);
	f = state;
	r->before(f);
	m = repeat_request(r);
	first = fixture_ask(f, &m, r->from, attempt);
	if (first->type == MSG_FAILED)
		fail_msg("%s: %s", msg_name(m.type), first->failed.text);
	before = repeat_dump(f->l.db, r->rewritten);
	fixture_restart(f);
	fixture_wait(1000);
	fixture_forget(f);
	second = fixture_ask(f, &m, r->from, attempt);
	assert_same_answer(first, second);
	after = repeat_dump(f->l.db, r->rewritten);
	assert_string_equal(before, after);
	assert_int_equal(0, f->line_count);
	free(before);
	free(after);
	(void)fixture_teardown(&state);
}

static void
a_repeat_has_no_second_effect(void **state)
{
	size_t i;

	for (i = 0; i < repeat_count; i++)
		repeat_row(&repeats[i]);
}

/* The table of messages says which requests have a key; all are tried. */
static void
every_request_with_a_key_is_tried(void **state)
{
	const struct msg_info *info;
	size_t i;
	int type;

	for (type = 0; type < MSG_COUNT; type++) {
		info = msg_info(type);
		if (info == NULL || *info->key == '\0' ||
		    info->to != 1u << ROLE_LEDGER)
			continue;
		for (i = 0; i < repeat_count; i++) {
			if ((int)repeats[i].m.type == type)
				break;
		}
		if (i == repeat_count)
			fail_msg("%s is not tried", info->name);
	}
}

/* And every request to the ledger has its handler. */
static void
every_request_has_a_handler(void **state)
{
	const struct msg_info *info;
	int type;

	for (type = 0; type < MSG_COUNT; type++) {
		info = msg_info(type);
		if (info == NULL || info->to != 1u << ROLE_LEDGER ||
		    !msg_is_request(type))
			continue;
		if (ledger_handlers[type] == NULL)
			fail_msg("%s has no handler", info->name);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_repeat_has_no_second_effect),
	    cmocka_unit_test(every_request_with_a_key_is_tried),
	    cmocka_unit_test(every_request_has_a_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
