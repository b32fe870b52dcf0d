/* The table of messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/protocol.h"

/* The table holds together: replies exist, go back, and are replies. */
static void
every_request_has_its_reply(void **state)
{
	int type;

	for (type = MSG_NONE + 1; type < MSG_COUNT; type++) {
		const struct msg_info *info = msg_info(type), *reply;

		assert_true(info->from != 0 && info->to != 0);
		if (!msg_is_request(type)) {
			assert_int_equal(MSG_NONE, info->reply);
			assert_string_equal("", info->key);
			continue;
		}
		reply = msg_info(info->reply);
		assert_non_null(reply);
		assert_int_equal(MSG_REPLY, reply->kind);
		assert_int_equal(info->to, info->to & reply->from);
		assert_int_equal(info->from, info->from & reply->to);
		if (info->kind == MSG_FACT)
			assert_string_not_equal("", info->key);
	}
}

static void
who_may_send_what(void **state)
{
	assert_true(msg_permitted(MSG_RECORD, ROLE_INTAKE, ROLE_LEDGER));
	assert_false(msg_permitted(MSG_RECORD, ROLE_OUTBOX, ROLE_LEDGER));
	assert_false(msg_permitted(MSG_RECORD, ROLE_INTAKE, ROLE_OUTBOX));
	assert_false(
	    msg_permitted(MSG_CREDENTIAL, ROLE_SUPERVISOR, ROLE_INTAKE));
	assert_false(msg_permitted(MSG_COUNT, ROLE_INTAKE, ROLE_LEDGER));
	assert_false(msg_permitted(-1, ROLE_INTAKE, ROLE_LEDGER));
	assert_false(msg_permitted(0, ROLE_INTAKE, ROLE_LEDGER));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_request_has_its_reply),
	    cmocka_unit_test(who_may_send_what),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
