/*
 * What the token endpoint said that outlives a restart of the outbox
 * (feed.md 6.4): not before when this credential may be tried again.
 */
#include "ledger/handlers.h"

int
handle_renewal_hold(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_renewal_hold *m = &q->m->renewal_hold;
	int n;

	if (*m->until != '\0' && !ledger_is_stamp(m->until))
		return answer_fail(
		    a, "refused", "RENEWAL_HOLD: until is no stamp");
	if (*m->reason == '\0')
		n = sql_run(l, STMT_RENEWAL_LIFT, WITH(v_text(m->fingerprint)));
	else
		n = sql_change_or_begin(l, STMT_RENEWAL_HOLD,
		    STMT_RENEWAL_HOLD_BEGIN,
		    WITH(v_text(m->fingerprint), v_text(m->reason),
			v_text(m->until), v_text(l->now)));
	return n == -1 ? -1 : answer_done(a, n == 1);
}

int
handle_renewal_hold_of(
    struct ledger *l, const struct request *q, struct answer *a)
{
	struct msg_renewal_hold_is *is = &a->reply.renewal_hold_is;
	sqlite3_stmt *row;
	int rc;

	a->reply.type = MSG_RENEWAL_HOLD_IS;
	rc = sql_first(l, STMT_RENEWAL_HOLD_OF,
	    WITH(v_text(q->m->renewal_hold_of.fingerprint)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_RENEWAL_HOLD_OF);
	is->found = true;
	is->reason = answer_text(a, row_text(row, 0));
	is->until = answer_text(a, row_text(row, 1));
	return 0;
}
