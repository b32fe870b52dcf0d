/* What workers post (ledger.md 6, operator.md 1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/outbox_scene.h"

static void
a_worker_posts_what_it_pulled(void **state)
{
	struct fixture *f = *state;
	struct msg *p;

	launch_apart(f);
	assert_failed(post_text(f, "worker_reply", HASH_A, "x"), "not_exposed");
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	fixture_forget(f);
	p = post_text(f, "worker_reply", HASH_A, "<p>done</p>");
	assert_int_equal(MSG_POST_IS, p->type);
	assert_string_equal("pending", p->post_is.state);
	assert_string_equal("comment", p->post_is.message_kind);
	assert_int_equal(MSG_POST_WAITS, f->notices[0].type);
	assert_string_equal("5101 <p>done</p> 1",
	    sql_get(f,
		"SELECT recording_id || ' ' || body || ' ' || task_id"
		" FROM outbox WHERE kind = 'worker_reply'"));
	p = post_text(f, "worker_ack", HASH_A, "\xf0\x9f\x91\x8d");
	assert_string_equal("boost", p->post_is.message_kind);
	assert_int_equal(RECORDING(101),
	    sql_int(f,
		"SELECT recording_id FROM outbox WHERE kind = 'worker_ack'"));
}

static void
a_reply_goes_where_the_event_says(void **state)
{
	struct fixture *f = *state;
	struct msg m = {.type = MSG_POST};

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	sql_ok(f, "UPDATE events SET reply_kind = 'chat_line'");
	m.post = (struct msg_post){.token = apart_token,
	    .event_id = 101,
	    .kind = "worker_reply",
	    .hash = HASH_A,
	    .comment = {"<p>html</p>", 11},
	    .line = {"plain", 5}};
	(void)fixture_get(f, &m, ROLE_MCPD, ATT_1, MSG_POST_IS);
	assert_string_equal("chat_line plain",
	    sql_get(f,
		"SELECT message_kind || ' ' || body FROM outbox"
		" WHERE kind = 'worker_reply'"));
	sql_ok(f, "UPDATE events SET reply_recording_id = 0");
	m.post.hash = HASH_B;
	assert_failed(fixture_ask(f, &m, ROLE_MCPD, ATT_1), "not_dispatchable");
}

static void
the_same_argument_is_the_same_message(void **state)
{
	struct fixture *f = *state;
	struct msg *first, *again;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	first = post_text(f, "worker_reply", HASH_A, "one");
	again = post_text(f, "worker_reply", HASH_A, "rendered otherwise");
	assert_int_equal(first->post_is.intent_id, again->post_is.intent_id);
	assert_string_equal("one",
	    sql_get(f, "SELECT body FROM outbox WHERE kind = 'worker_reply'"));
	again = post_text(f, "worker_reply", HASH_B, "one");
	assert_int_not_equal(
	    first->post_is.intent_id, again->post_is.intent_id);
}

static void
twenty_of_a_kind_are_enough(void **state)
{
	struct fixture *f = *state;
	char hash[65];
	int i;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	for (i = 0; i < 20; i++) {
		(void)snprintf(hash, sizeof(hash), "%064d", i);
		assert_int_equal(
		    MSG_POST_IS, post_text(f, "worker_reply", hash, "x")->type);
	}
	assert_failed(
	    post_text(f, "worker_reply", HASH_A, "x"), "invalid_report");
	assert_int_equal(MSG_POST_IS, /* it is there already */
	    post_text(f, "worker_reply", hash, "x")->type);
	assert_int_equal(
	    MSG_POST_IS, post_text(f, "worker_ack", HASH_A, "x")->type);
}

static void
an_empty_post_is_invalid(void **state)
{
	struct fixture *f = *state;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	assert_failed(
	    post_text(f, "worker_reply", HASH_A, ""), "invalid_report");
	assert_failed(post_text(f, "guard_ack", HASH_A, "x"), "refused");
}

static void
a_worker_hears_what_became_of_it(void **state)
{
	struct fixture *f = *state;
	struct msg *p;
	int64_t id;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	id = post_text(f, "worker_reply", HASH_A, "one")->post_is.intent_id;
	assert_int_equal(id, claim(f, NONCE_1)->claimed.intent_id);
	fixture_forget(f);
	(void)tell_receipt(f, id, NONCE_1, 77);
	assert_int_equal(1, f->notice_count);
	assert_int_equal(MSG_POST_SETTLED, f->notices[0].type);
	assert_int_equal(id, f->notices[0].id);
	assert_string_equal(ATT_1, f->notices[0].attempt);
	p = post_text(f, "worker_reply", HASH_A, "one");
	assert_string_equal("sent", p->post_is.state);
	assert_int_equal(77, p->post_is.receipt_id.value);
	assert_false(p->post_is.refused);
}

static void
a_refused_post_says_so(void **state)
{
	struct fixture *f = *state;
	struct msg *p;
	int64_t id;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	id = post_text(f, "worker_reply", HASH_A, "one")->post_is.intent_id;
	(void)claim(f, NONCE_1);
	(void)tell_refused(f, id, NONCE_1);
	p = post_text(f, "worker_reply", HASH_A, "one");
	assert_string_equal("canceled", p->post_is.state);
	assert_true(p->post_is.refused);
	assert_string_equal("403", p->post_is.note);
}

/* Whatever became of its task since, it is sent. */
static void
a_pending_post_outlives_its_task(void **state)
{
	struct fixture *f = *state;

	launch_apart(f);
	(void)get_dispatch(f, apart_token, 0, ATT_1);
	(void)post_text(f, "worker_reply", HASH_A, "one");
	(void)end_attempt(f, ATT_1, "lost");
	assert_string_equal("worker_reply", claim(f, NONCE_1)->claimed.kind);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
	    TEST(a_worker_posts_what_it_pulled),
	    TEST(a_reply_goes_where_the_event_says),
	    TEST(the_same_argument_is_the_same_message),
	    TEST(twenty_of_a_kind_are_enough),
	    TEST(an_empty_post_is_invalid),
	    TEST(a_worker_hears_what_became_of_it),
	    TEST(a_refused_post_says_so),
	    TEST(a_pending_post_outlives_its_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
