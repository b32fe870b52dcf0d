/* What decision_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/decision_scene.h"

char put_token[TOKEN_LEN + 1];

void
put_admitted(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
}

void
put_seen(struct fixture *f)
{
	(void)record_event(f, 101);
}

void
put_blocked(struct fixture *f)
{
	put_seen(f);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

void
put_dispatched(struct fixture *f)
{
	put_admitted(f);
	(void)snprintf(
	    put_token, sizeof(put_token), "%s", launch(f, 101, ATT_1));
}

void
put_held(struct fixture *f)
{
	put_admitted(f);
	assert_int_equal(1, set_hold(f)->hold_is.held);
}

void
put_unknown(struct fixture *f)
{
	put_dispatched(f);
	(void)end_attempt(f, ATT_1, "lost");
}

void
put_reported(struct fixture *f, const char *outcome)
{
	put_dispatched(f);
	(void)get_dispatch(f, put_token, 0, ATT_1);
	(void)complete_dispatch(f, put_token, 101, outcome, ATT_1);
	(void)end_attempt(f, ATT_1, "finished");
}

void
put_failed(struct fixture *f)
{
	put_reported(f, "failed");
}

const char *
decision_last(struct fixture *f)
{
	return sql_get(f,
	    "SELECT action || ' ' || event_id || ' ' || decided_by || ' ' ||"
	    " decided_at || ' ' || from_state || ' ' || from_reason || ' ' ||"
	    " from_outcome || ' ' || to_state FROM decisions"
	    " ORDER BY id DESC");
}

const char *
authorization_now(struct fixture *f)
{
	return sql_get(f,
	    "SELECT COALESCE(authorized_at, '-') || ' ' || authorized_by"
	    " FROM events WHERE id = 101");
}
