#include <inttypes.h>

#include "common/log.h"
#include "ledger/retention.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_HOUR (3600 * 1000 * NS_PER_MS)
#define NS_PER_DAY (24 * NS_PER_HOUR)

/* The last time that the clock struck that hour. */
static int64_t
last_night(int64_t now_ns)
{
	int64_t hour = RETENTION_HOUR * NS_PER_HOUR;

	return (now_ns - hour) / NS_PER_DAY * NS_PER_DAY + hour;
}

static bool
is_wanted(const struct config *c)
{
	return c != NULL && c->readable &&
	    (c->keep_discarded_ms != 0 || c->keep_completed_ms != 0);
}

/* A run dated ahead of a clock that was set back says nothing. */
static int
plan_read(struct ledger *l, struct retention *r)
{
	int64_t ran_ns, night_ns = last_night(l->now_ns);

	if (sql_first(l, STMT_RETENTION_RAN, WITH_NOTHING) != 1)
		return -1;
	r->due_ns = night_ns;
	if (clock_parse(row_text(sql_row(l, STMT_RETENTION_RAN), 0), &ran_ns) ==
		0 &&
	    ran_ns >= night_ns && ran_ns <= l->now_ns)
		r->due_ns = night_ns + NS_PER_DAY;
	return 0;
}

int
retention_plan(struct ledger *l, struct retention *r)
{
	int rc;

	r->due_ns = INT64_MAX;
	r->cleared = 0;
	if (!is_wanted(l->config))
		return 0;
	l->rc = SQLITE_OK;
	ledger_set_now(l);
	rc = plan_read(l, r);
	sql_reset_all(l);
	return rc;
}

/* How many were cleared of those that ended KEEP_MS ago; -1. */
static int
drop(struct ledger *l, enum stmt id, int64_t keep_ms, int most)
{
	char before[CLOCK_STAMP_SIZE];

	if (keep_ms == 0 || most == 0)
		return 0;
	ledger_stamp_in(l, -keep_ms, before);
	return sql_run(l, id, WITH(v_text(before), v_int(most)));
}

/* A batch that is not full was the last one. */
static int
batch_write(struct ledger *l, const struct retention *r, bool *is_last)
{
	const struct config *c = l->config;
	int discarded, completed;

	discarded =
	    drop(l, STMT_DROP_DISCARDED, c->keep_discarded_ms, RETENTION_BATCH);
	if (discarded == -1)
		return -1;
	completed = drop(l, STMT_DROP_COMPLETED, c->keep_completed_ms,
	    RETENTION_BATCH - discarded);
	if (completed == -1)
		return -1;
	*is_last = discarded + completed < RETENTION_BATCH;
	if (*is_last &&
	    sql_change_or_begin(l, STMT_RETENTION_NOTE, STMT_RETENTION_BEGIN,
		WITH(v_text(l->now),
		    v_int(r->cleared + discarded + completed))) == -1)
		return -1;
	return discarded + completed;
}

/* Nothing of the batch counts; the rest of the night is let be. */
static enum retention_step
step_failed(struct ledger *l, struct retention *r)
{
	log_warnx("retention: %s", l->error.text);
	sql_reset_all(l);
	if (!sqlite3_get_autocommit(l->db))
		(void)sql_run(l, STMT_ROLLBACK, WITH_NOTHING);
	r->due_ns = last_night(l->now_ns) + NS_PER_DAY;
	r->cleared = 0;
	return RETENTION_FAILED;
}

static enum retention_step
step_over(struct ledger *l, struct retention *r)
{
	log_info("retention: the content of %" PRId64 " records was dropped",
	    r->cleared);
	return retention_plan(l, r) == -1 ? step_failed(l, r) : RETENTION_OVER;
}

static enum retention_step
step(struct ledger *l, struct retention *r)
{
	bool is_last = false;
	int n;

	if (sql_run(l, STMT_BEGIN, WITH_NOTHING) == -1 ||
	    (n = batch_write(l, r, &is_last)) == -1)
		return step_failed(l, r);
	if (sql_run(l, STMT_COMMIT, WITH_NOTHING) == -1)
		return RETENTION_UNKNOWN;
	r->cleared += n;
	return is_last ? step_over(l, r) : RETENTION_MORE;
}

enum retention_step
retention_step(struct ledger *l, struct retention *r)
{
	enum retention_step result;

	ledger_set_now(l);
	if (l->now_ns < r->due_ns)
		return RETENTION_WAITS;
	l->rc = SQLITE_OK;
	result = step(l, r);
	sql_reset_all(l);
	return result;
}
