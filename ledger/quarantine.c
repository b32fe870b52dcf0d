/*
 * COUNT_DEATH: a record that was in hand when a process died of itself may
 * be what it died of (design 3.1, poison). After the second such death it
 * waits for a person. The count outlives every process, so it is kept here.
 */
#include <inttypes.h>

#include "common/log.h"
#include "ledger/handlers.h"
#include "ledger/lines.h"
#include "ledger/record.h"
#include "ledger/retraction.h"

#define DEATHS_MOST 2
#define REASON "quarantined"

/* A record before it is blocked: what its line says of it. */
struct suspect {
	enum record_state state;
	const char *event_type;
	int64_t bucket_id;
	int64_t recording_id;
	struct msg_verdict verdict; /* it had; only what the line shows */
};

static int
suspect_read(
    struct ledger *l, struct answer *a, int64_t event_id, struct suspect *s)
{
	sqlite3_stmt *row = sql_row(l, STMT_QUARANTINED_RECORD);

	if (sql_first(l, STMT_QUARANTINED_RECORD, WITH(v_int(event_id))) != 1)
		return -1;
	s->state = record_state_by_name(row_text(row, 0));
	s->event_type = answer_text(a, row_text(row, 1));
	s->bucket_id = row_int(row, 2);
	s->recording_id = row_int(row, 3);
	s->verdict.event_id = event_id;
	s->verdict.trigger = answer_text(a, row_text(row, 4));
	s->verdict.class = answer_text(a, row_text(row, 5));
	s->verdict.route = answer_text(a, row_text(row, 6));
	s->verdict.recording_url = answer_text(a, row_text(row, 7));
	s->verdict.requester_id = row_int(row, 8);
	return 0;
}

/* What waited behind it in its conversation may be startable now. */
static void
quarantined_tell(struct ledger *l, struct answer *a, const struct suspect *s)
{
	log_warnx("event %" PRId64 " was in hand at %d deaths: it is "
		  "quarantined until redispatch",
	    s->verdict.event_id, DEATHS_MOST);
	line_verdict(a, &s->verdict, s->event_type, s->bucket_id,
	    s->recording_id, record_state_name(RECORD_BLOCKED), REASON);
	if (s->state == RECORD_SEEN)
		l->depth--;
	else if (s->state != RECORD_BLOCKED)
		answer_notice(a, MSG_WORK_WAITS, 0, "");
}

/* Blocked, and no retry of it is owed. What answers an ask may be due now. */
static int
quarantine(struct ledger *l, struct answer *a, int64_t event_id)
{
	const struct move move = {.event_id = event_id,
	    .to = RECORD_BLOCKED,
	    .from = RECORD_SET(RECORD_SEEN) | RECORD_SET(RECORD_ADMITTED) |
		RECORD_SET(RECORD_QUEUED) | RECORD_SET(RECORD_BLOCKED),
	    .reason = REASON};
	struct suspect s = {0};
	enum move_result moved;

	if (suspect_read(l, a, event_id, &s) == -1 ||
	    (moved = record_move(l, &move)) == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return answer_fail(
		    a, "refused", "COUNT_DEATH: %s", move_result_text(moved));
	quarantined_tell(l, a, &s);
	return retraction_moved(l, a, event_id);
}

/* How often it was in hand at a death: 1, 0 when there is no record, -1. */
static int
deaths_of(struct ledger *l, int64_t event_id, struct msg_death_counted *is)
{
	int rc = sql_first(l, STMT_DEATHS_OF, WITH(v_int(event_id)));

	if (rc != 1)
		return rc;
	is->count = row_int(sql_row(l, STMT_DEATHS_OF), 0);
	is->quarantined = row_int(sql_row(l, STMT_DEATHS_OF), 1) != 0;
	return 1;
}

int
handle_count_death(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_count_death *m = &q->m->count_death;
	struct msg_death_counted is;
	int n, rc;

	n = sql_run(
	    l, STMT_DEATH_COUNT, WITH(v_int(m->event_id), v_text(m->death)));
	if (n == -1 || (rc = deaths_of(l, m->event_id, &is)) == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_found", "no such record");
	if (n == 1 && is.count >= DEATHS_MOST) {
		if (quarantine(l, a, m->event_id) == -1 ||
		    deaths_of(l, m->event_id, &is) == -1)
			return -1;
		if (answer_failed(a))
			return 0;
	}
	a->reply.type = MSG_DEATH_COUNTED;
	a->reply.death_counted = is;
	return 0;
}
