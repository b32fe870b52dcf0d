#include <stdio.h>

#include "tests/unit/eye.h"
#include "tests/unit/invariants.h"

/* `handed`: exposed or delivered, and not taken back. */
#define HANDED \
	"r.delivery IN ('exposed', 'delivered') AND r.withdrawn_at IS NULL"

const struct invariant invariants[] = {
    {"I1",
	"SELECT 'event ' || event_id || ' is on two tasks' FROM task_events"
	" WHERE retired_at IS NULL GROUP BY event_id HAVING count(*) > 1"},
    {"I2",
	"SELECT 'two tasks on ' || conversation_key FROM tasks"
	" WHERE ended_at IS NULL AND conversation_key <> ''"
	" GROUP BY conversation_key HAVING count(*) > 1"},
    {"I2",
	"SELECT 'rows of two tasks on ' || conversation_key FROM task_events"
	" WHERE retired_at IS NULL AND conversation_key <> ''"
	" GROUP BY conversation_key HAVING count(DISTINCT task_id) > 1"},
    {"I2",
	"SELECT 'event ' || e.id || ' is dispatched beside task ' || t.id"
	" FROM tasks t JOIN events e ON e.conversation_key = t.conversation_key"
	" WHERE t.superseded_at IS NULL AND e.state = 'dispatched'"
	" AND NOT EXISTS (SELECT 1 FROM task_events r WHERE r.task_id = t.id"
	"  AND r.event_id = e.id AND r.retired_at IS NULL)"},
    {"I4",
	"SELECT 'event ' || e.id || ' is ' || e.state || ' with a worker'"
	" FROM events e JOIN task_events r ON r.event_id = e.id"
	" WHERE " HANDED " AND e.state <> 'dispatched'"},
    {"I5",
	"SELECT 'event ' || e.id || ' is dispatched to nobody' FROM events e"
	" WHERE e.state = 'dispatched' AND NOT EXISTS (SELECT 1"
	"  FROM task_events r WHERE r.event_id = e.id"
	"  AND (r.retired_at IS NULL OR (" HANDED ")))"},
    {"I6",
	"SELECT 'event ' || e.id || ' cannot be pulled' FROM events e"
	" JOIN task_events r ON r.event_id = e.id WHERE r.retired_at IS NULL"
	" AND r.pulled_at IS NULL AND NOT (e.state = 'dispatched'"
	"  AND e.content_dropped = 0 AND length(e.snapshot) > 0)"},
    {"I7",
	"SELECT 'event ' || event_id || ' was reported unpulled'"
	" FROM task_events WHERE pulled_at IS NULL AND (ack_id IS NOT NULL"
	" OR delivery = 'delivered' OR outcome IN ('succeeded', 'failed'))"},
    {"I7",
	"SELECT 'event ' || event_id || ' has the outcome ' || outcome"
	" FROM task_events WHERE (delivery = 'completed') <> (outcome <> '')"},
    {"I8",
	"SELECT 'task ' || id || ' ended with its token' FROM tasks"
	" WHERE ended_at IS NOT NULL AND superseded_at IS NULL"},
    {"I8",
	"SELECT 'task ' || t.id || ' is over with a row' FROM tasks t"
	" JOIN task_events r ON r.task_id = t.id"
	" WHERE t.superseded_at IS NOT NULL AND r.retired_at IS NULL"},
    {"I8",
	"SELECT 'attempt ' || a.id || ' is ' || a.state FROM tasks t"
	" JOIN attempts a ON a.task_id = t.id"
	" WHERE (t.ended_at IS NOT NULL) <> (a.state = 'ended')"},
    {"I9",
	"SELECT 'task ' || t.id || ' was not launched whole' FROM tasks t"
	" WHERE NOT EXISTS (SELECT 1 FROM attempts a JOIN task_events r"
	"  ON r.task_id = a.task_id AND r.exposed_attempt_id = a.id"
	"  WHERE a.task_id = t.id AND a.seq = 1"
	"  AND r.event_id = t.originating_event_id AND r.delivery <> "
	"'admitted')"},
    {"I10",
	"SELECT 'event ' || r.event_id || ' was taken back unproved'"
	" FROM task_events r LEFT JOIN attempts a ON a.id = "
	"r.exposed_attempt_id"
	" WHERE r.withdrawn_at IS NOT NULL AND (r.pulled_at IS NOT NULL"
	" OR r.delivery <> 'exposed' OR a.id IS NULL OR a.spawn_failed = 0)"},
    {"I11",
	"SELECT 'event ' || r.event_id || ' was left unsettled'"
	" FROM tasks t JOIN task_events r ON r.task_id = t.id"
	" WHERE t.ended_at IS NOT NULL AND " HANDED},
    {"I12",
	"SELECT 'event ' || event_id || ' adopted a reply' FROM task_events r"
	" WHERE adopted_reply_id IS NOT NULL AND (outcome <> 'unknown'"
	" OR delivered_at IS NULL OR reply_id IS NOT NULL"
	" OR adopted_reply_id IS ack_id)"},
    {"I13",
	"SELECT 'event ' || e.id || ' came back from completed' FROM events e"
	" WHERE e.state NOT IN ('completed', 'discarded') AND EXISTS (SELECT 1"
	"  FROM task_events r WHERE r.event_id = e.id"
	"  AND r.delivery = 'completed') AND NOT EXISTS (SELECT 1"
	"  FROM decisions d WHERE d.event_id = e.id"
	"  AND d.action = 'redispatch')"},
    {"I13",
	"SELECT 'event ' || e.id || ' was discarded by nobody' FROM events e"
	" WHERE e.state = 'discarded' AND e.reason = 'by_operator'"
	" AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.event_id = e.id"
	"  AND d.action = 'discard')"},
    {"I14",
	"SELECT 'event ' || id || ' waits unauthorized' FROM events"
	" WHERE review = 1 AND authorized_at IS NULL"
	" AND state IN ('admitted', 'queued')"},
    {"I15",
	"SELECT 'intent ' || id || ' has no claim' FROM outbox"
	" WHERE state IN ('sending', 'sent', 'indeterminate', 'abandoned')"
	" AND (sending_at IS NULL OR nonce IS NULL)"},
    {"I16",
	"SELECT 'event ' || id || ' lost its content' FROM events"
	" WHERE content_dropped = 1 AND (snapshot IS NOT NULL"
	" OR redispatch_decision IS NOT NULL"
	" OR state NOT IN ('completed', 'discarded'))"},
    {NULL, NULL}};

static bool
invariant_holds(const struct invariant *v, sqlite3 *eye, char *why, size_t size)
{
	sqlite3_stmt *stmt = eye_ask(eye, v->sql);
	bool holds = sqlite3_step(stmt) == SQLITE_DONE;

	if (!holds)
		(void)snprintf(why, size, "%s: %s", v->name,
		    (const char *)sqlite3_column_text(stmt, 0));
	(void)sqlite3_reset(stmt);
	return holds;
}

bool
invariants_hold(sqlite3 *eye, char *why, size_t size)
{
	for (const struct invariant *v = invariants; v->name != NULL; v++)
		if (!invariant_holds(v, eye, why, size))
			return false;
	return true;
}
