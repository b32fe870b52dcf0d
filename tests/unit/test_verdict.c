/* What a verdict says, and when it is tried again (admission.md 1.11, 1.12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "intake/verdict.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static void
test_schedule(void **state)
{
	static const struct {
		const char *reason;
		int64_t since, retry_at, want;
	} t[] = {
	    /* now 100000, every 600, for 86400 */
	    {"read_failed", 100000, 0, 100600},
	    {"read_unresolved", 14200, 0, 100600},
	    {"read_unresolved", 14199, 0, 0},
	    {"delta_unverified", 100000, 0, 100600},
	    {"trust_unverified", 14199, 0, 0},
	    {"throttled", 100000, 100100, 100600},
	    {"throttled", 100000, 101000, 101000},
	    {"throttled", 100000, 186400, 186400},
	    {"throttled", 100000, 186401, 0},
	    {"config_unreadable", 0, 0, 100600},
	    {"bucket_mismatch", 100000, 0, 0},
	    {"unroutable", 100000, 0, 0},
	    {"no_route", 100000, 0, 0},
	    {"rule_not_served", 100000, 0, 0},
	    {"what else", 100000, 0, 0},
	};
	struct retry_clock c = {
	    .now = 100000, .interval = 600, .window = 86400};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].reason);
		c.since = t[i].since;
		c.retry_at = t[i].retry_at;
		assert_int_equal(
		    verdict_next_retry(t[i].reason, &c), t[i].want);
	}
}

/* The window runs from the first verdict of one reason, not from each. */
static void
test_window_of_a_reason(void **state)
{
	static const struct {
		const char *blocked_for;
		int64_t days_ago;
		bool is_tried_again;
	} t[] = {{"", 0, true}, {"read_failed", 0, true},
	    {"read_failed", 2, false}, {"config_unreadable", 2, true}};
	struct verdict v = {.state = VERDICT_BLOCKED, .reason = "read_failed"};
	struct config *c = config_new();
	struct verdict_stamps stamps;
	struct msg_verdict m;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		struct pointer p = {.event_id = 1};

		(void)snprintf(p.blocked_for, sizeof(p.blocked_for), "%s",
		    t[i].blocked_for);
		p.blocked_since_ns = clock_wall_ns() -
		    t[i].days_ago * INT64_C(86400) * 1000000000;
		verdict_fill(&v, &p, c->limits, &stamps, &m);
		assert_int_equal(t[i].is_tried_again, *m.next_retry_at != '\0');
	}
	config_free(c);
}

/* However long, and however it is written: it fits the message. */
static void
test_snapshot_bound(void **state)
{
	static const char chars[] = {'a', '\x01', '"'};
	struct summary s = {0};
	struct snapshot_facts facts = {.summary = &s};
	struct buffer b;
	char *text;
	size_t i, len = 6 * 1024 * 1024;

	(void)state;
	text = malloc(len + 1);
	assert_non_null(text);
	s.type = s.title = s.app_url = s.updated_at = s.project_name =
	    s.creator_name = (struct json_text){.bytes = ""};
	for (i = 0; i < COUNT(chars); i++) {
		memset(text, chars[i], len);
		text[len] = '\0';
		s.content = (struct json_text){text, len, false};
		s.title = s.content;
		b = (struct buffer){0};
		verdict_snapshot(&b, &facts);
		assert_true(b.len <= SNAPSHOT_MAX);
		assert_true(b.len > SNAPSHOT_MAX / 4);
		assert_non_null(strstr(b.bytes, "\"content_truncated\":true"));
		buffer_free(&b);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_schedule),
	    cmocka_unit_test(test_window_of_a_reason),
	    cmocka_unit_test(test_snapshot_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
