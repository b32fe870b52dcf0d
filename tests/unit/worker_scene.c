/* What worker_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker_scene.h"

char worker_token[TOKEN_LEN + 1]; /* of the task under test */

/* Event 101 launched; its token in `token`. */
void
worker_launch(struct fixture *f)
{
	(void)snprintf(worker_token, sizeof(worker_token), "%s",
	    launch_new(f, 101, ATT_1));
	assert_int_equal(TOKEN_LEN, strlen(worker_token));
}

void
worker_hold(struct fixture *f)
{
	sql_ok(f,
	    "INSERT OR IGNORE INTO generations (id, cause, opened_by,"
	    " opened_at) VALUES (1, 'hold', 'me', 'o');"
	    "INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me', 'h')");
}

struct msg *
worker_get(struct fixture *f, int64_t id)
{
	return get_dispatch(f, worker_token, id, ATT_1);
}

struct msg *
worker_ack(struct fixture *f, int64_t ack_id)
{
	return ack_dispatch(f, worker_token, 101, ack_id, ATT_1);
}

struct msg *
worker_complete(struct fixture *f, const char *outcome)
{
	return complete_dispatch(f, worker_token, 101, outcome, ATT_1);
}

struct msg *
worker_bind(struct fixture *f, const char *with, const char *attempt)
{
	struct msg m = {.type = MSG_BIND};

	m.bind.token = with;
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

const char *
worker_delivery(struct fixture *f)
{
	return sql_get(f,
	    "SELECT delivery FROM task_events"
	    " WHERE event_id = 101");
}

/* Everything of the row and the record's revision: nothing may change. */
const char *
worker_rows(struct fixture *f)
{
	return sql_get(f,
	    "SELECT group_concat(delivery || ',' || guard || ','"
	    " || exposed_at || ',' || COALESCE(pulled_at, '-') || ','"
	    " || COALESCE(delivered_at, '-') || ','"
	    " || COALESCE(completed_at, '-') || ',' || COALESCE(ack_id, '-')"
	    " || ',' || outcome || ',' || links || ','"
	    " || COALESCE(reply_id, '-') || ',' || e.revision)"
	    " FROM task_events t JOIN events e ON e.id = t.event_id");
}
