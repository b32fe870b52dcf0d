/* What connectctl is shown, and what nobody is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "ledger/token.h"
#include "tests/unit/ledger_fixture.h"

#define POSITION "a-position-of-the-feed"

static char token[TOKEN_LEN + 1];

/* A ledger with some of everything. */
static void
story(struct fixture *f)
{
	struct msg m = {.type = MSG_CHECKPOINT};
	struct msg connection = {.type = MSG_CONNECTION};

	m.checkpoint = (struct msg_checkpoint){"key", "lineage", POSITION, 104};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE);
	connection.connection = (struct msg_connection){"running", 77, ""};
	(void)fixture_get(f, &connection, ROLE_SUPERVISOR, "", MSG_DONE);
	(void)snprintf(token, sizeof(token), "%s", launch_new(f, 101, ATT_1));
	run_attempt(f, ATT_1, 4242);
	(void)get_dispatch(f, token, 0, ATT_1);
	(void)ack_dispatch(f, token, 101, 7, ATT_1);
	(void)record_event(f, 102);
	(void)refuse_event(f, 102, "blocked", "no_route");
	(void)record_event(f, 103);
	(void)record_event(f, 104);
	sql_ok(f, "UPDATE events SET review = 1 WHERE id = 104");
	(void)admit_event(f, 104, "l");
}

static json_t *
query(struct fixture *f, const char *what, int64_t event_id, int64_t count)
{
	struct msg m = {.type = MSG_QUERY}, *reply;
	json_t *json;

	m.query = (struct msg_query){what, event_id, count};
	reply = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_ANSWER);
	json = json_loadb(
	    reply->answer.json.bytes, reply->answer.json.len, 0, NULL);
	assert_non_null(json);
	return json;
}

static const char *
text_at(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text == NULL ? "" : text;
}

static int64_t
int_at(const json_t *json, const char *name)
{
	return json_integer_value(json_object_get(json, name));
}

static void
status_of_an_empty_ledger_is_whole(void **state)
{
	static const char *const lists[] = {"positions", "gaps", "open_losses",
	    "live_tasks", "indeterminate_intents", "held_records",
	    "dispatches"};
	struct fixture *f = *state;
	json_t *json = query(f, "status", 0, 0);
	size_t i;

	assert_int_equal(1, int_at(json, "schema_version"));
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_true(json_is_array(json_object_get(json, lists[i])));
	assert_true(json_is_object(json_object_get(json, "queues")));
	assert_null(json_object_get(json, "hold"));
	assert_null(json_object_get(json, "connection"));
	json_decref(json);
}

static void
status_tells_the_story(void **state)
{
	struct fixture *f = *state;
	json_t *json, *one;

	story(f);
	json = query(f, "status", 0, 0);
	assert_string_equal(
	    "running", text_at(json_object_get(json, "connection"), "state"));
	one = json_array_get(json_object_get(json, "positions"), 0);
	assert_true(json_is_true(json_object_get(one, "has_position")));
	assert_int_equal(104, int_at(one, "last_poll_served_id"));
	one = json_object_get(json, "queues");
	assert_int_equal(1, int_at(one, "seen"));
	assert_int_equal(1, int_at(one, "blocked"));
	assert_int_equal(1, int_at(one, "dispatched"));
	assert_int_equal(1, int_at(one, "held"));
	assert_int_equal(
	    1, int_at(json_object_get(json, "blocked"), "no_route"));
	one = json_array_get(json_object_get(json, "live_tasks"), 0);
	assert_string_equal(ATT_1, text_at(one, "attempt_id"));
	assert_int_equal(4242, int_at(one, "pid"));
	assert_string_equal(ROUTE, text_at(one, "work_dir"));
	assert_int_equal(101,
	    json_integer_value(
		json_array_get(json_object_get(one, "event_ids"), 0)));
	one = json_array_get(json_object_get(json, "held_records"), 0);
	assert_int_equal(104, int_at(one, "event_id"));
	one = json_array_get(json_object_get(json, "dispatches"), 0);
	one = json_array_get(json_object_get(one, "events"), 0);
	assert_string_equal("delivered", text_at(one, "delivery"));
	assert_true(json_is_false(json_object_get(one, "withdrawn")));
	json_decref(json);
}

static void
events_are_the_last_ones_oldest_first(void **state)
{
	struct fixture *f = *state;
	json_t *json, *list;

	story(f);
	json = query(f, "events", 0, 2);
	list = json_object_get(json, "events");
	assert_int_equal(2, json_array_size(list));
	assert_int_equal(103, int_at(json_array_get(list, 0), "event_id"));
	assert_int_equal(104, int_at(json_array_get(list, 1), "event_id"));
	assert_string_equal("seen", text_at(json_array_get(list, 0), "state"));
	json_decref(json);
}

static void
show_tells_all_of_one_event(void **state)
{
	struct fixture *f = *state;
	json_t *json, *one;

	story(f);
	(void)complete_dispatch(f, token, 101, "failed", ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
	json = query(f, "show", 101, 0);
	assert_string_equal(
	    "completed", text_at(json_object_get(json, "event"), "state"));
	one = json_array_get(json_object_get(json, "tasks"), 0);
	assert_string_equal("failed", text_at(one, "outcome"));
	assert_int_equal(7, int_at(one, "ack_id"));
	assert_true(json_is_array(json_object_get(one, "links")));
	one = json_array_get(json_object_get(json, "attempts"), 0);
	assert_string_equal("finished", text_at(one, "stop_reason"));
	/* The guard by its event, the completion by its task. */
	assert_int_equal(2, json_array_size(json_object_get(json, "outbox")));
	json_decref(json);
}

static void
what_is_not_there_is_said(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_QUERY};

	m.query = (struct msg_query){"show", 404, 0};
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "not_found");
	m.query.what = "tables";
	assert_failed(fixture_ask(f, &m, ROLE_SUPERVISOR, ""), "refused");
}

static void
assert_absent(const struct msg *reply, const char *secret)
{
	if (memmem(reply->answer.json.bytes, reply->answer.json.len, secret,
		strlen(secret)) != NULL)
		fail_msg("shown: %s", secret);
}

/* No content, body, position, token or hash; not in a line either. */
static void
nothing_secret_is_shown(void **state)
{
	static const char *const whats[] = {"status", "events", "show"};
	struct fixture *f = *state;
	struct msg m = {.type = MSG_QUERY}, *reply;
	char hash[DIGEST_HEX_SIZE];
	size_t i;

	story(f);
	(void)end_attempt(f, ATT_1, "lost");
	token_hash(token, hash);
	for (i = 0; i < 3; i++) {
		m.query = (struct msg_query){whats[i], 101, 0};
		reply = fixture_get(f, &m, ROLE_SUPERVISOR, "", MSG_ANSWER);
		assert_absent(reply, "secret");
		assert_absent(reply, "\xf0\x9f\x91\x80");
		assert_absent(reply, "posted by connectd");
		assert_absent(reply, POSITION);
		assert_absent(reply, token);
		assert_absent(reply, hash);
	}
	for (i = 0; i < f->line_count; i++) {
		assert_null(strstr(f->lines[i], "secret"));
		assert_null(strstr(f->lines[i], token));
		assert_null(strstr(f->lines[i], POSITION));
	}
}

/* Terminal sequences from outside end at the ledger. */
static void
what_is_shown_is_one_printable_line(void **state)
{
	struct fixture *f = *state;
	json_t *json;

	(void)record_event(f, 101);
	sql_ok(f,
	    "UPDATE events SET event_type = 'a' || char(27) || '[31mb'"
	    " || char(155) || 'c' || char(10) || 'd'");
	json = query(f, "show", 101, 0);
	assert_null(strpbrk(
	    text_at(json_object_get(json, "event"), "event_type"), "\x1b\n"));
	assert_null(strstr(
	    text_at(json_object_get(json, "event"), "event_type"), "\xc2\x9b"));
	json_decref(json);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(status_of_an_empty_ledger_is_whole),
	    TEST(status_tells_the_story),
	    TEST(events_are_the_last_ones_oldest_first),
	    TEST(show_tells_all_of_one_event),
	    TEST(what_is_not_there_is_said),
	    TEST(nothing_secret_is_shown),
	    TEST(what_is_shown_is_one_printable_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
