/* What follow_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/follow_scene.h"

void
follow_wait(struct fixture *f, int64_t id)
{
	(void)record_event(f, id);
	(void)admit_event(f, id, "k");
}

/* A verdict of its own kind: another route, or nobody to be answered. */
void
follow_wait_as(
    struct fixture *f, int64_t id, const char *route, bool acknowledge)
{
	struct msg m;

	(void)record_event(f, id);
	if (strcmp(route, ROUTE) != 0)
		sql_ok(f, "UPDATE events SET bucket_id = %d WHERE id = %lld",
		    OTHER_PROJECT, (long long)id);
	m = verdict_of(f, id, "admitted");
	m.verdict.conversation_key = "k";
	m.verdict.route = route;
	m.verdict.acknowledge = acknowledge;
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
}

struct msg
follow_join_of(const char *attempt)
{
	struct msg m = {.type = MSG_JOIN};

	m.join = (struct msg_join){attempt, 1};
	return m;
}

struct msg_joined *
follow_join(struct fixture *f, const char *attempt)
{
	struct msg m = follow_join_of(attempt);

	return &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_JOINED)->joined;
}

/* "101 exposed armed, 102 admitted armed" */
const char *
follow_rows(struct fixture *f, int64_t task_id)
{
	return sql_get(f,
	    "SELECT group_concat(event_id || ' ' || delivery || ' ' || guard,"
	    " ', ') FROM (SELECT * FROM task_events WHERE task_id = %lld"
	    " ORDER BY event_id)",
	    (long long)task_id);
}
