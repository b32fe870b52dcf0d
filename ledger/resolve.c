/*
 * RESOLVE: a person's word on a message (operator.md 1.4, 1.12). Nobody can
 * prove whether it was posted: the person names it, gives it up or has it sent
 * again. One that Basecamp refused may be sent again as well.
 */
#include <inttypes.h>
#include <string.h>

#include "ledger/adopt.h"
#include "ledger/handlers.h"
#include "ledger/intent.h"
#include "ledger/lines.h"
#include "ledger/retraction.h"

struct resolution {
	const char *name;
	enum stmt write;
	const char *to;
	bool has_receipt;
	bool is_of_refused; /* too */
};

static const struct resolution resolutions[] = {
    {"sent", STMT_RESOLVE_SENT, "sent", true, false},
    {"abandon", STMT_RESOLVE_ABANDON, "abandoned", false, false},
    {"resend", STMT_RESOLVE_RESEND, "pending", false, true},
};

static const struct resolution *
resolution_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(resolutions) / sizeof(resolutions[0]); i++) {
		if (strcmp(resolutions[i].name, name) == 0)
			return &resolutions[i];
	}
	return NULL;
}

/* The intent as it stood before. */
struct resolved_intent {
	const char *state;
	bool is_refused;
	struct opt event_id;
	const char *message_kind;
};

/* 1; 0 with A refused; -1. */
static int
intent_read(struct ledger *l, struct answer *a, int64_t intent_id,
    struct resolved_intent *i)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_RESOLUTION_INTENT, WITH(v_int(intent_id)));
	if (rc == 0)
		return answer_fail(
		    a, "not_found", "no intent %" PRId64, intent_id);
	if (rc == -1)
		return -1;
	row = sql_row(l, STMT_RESOLUTION_INTENT);
	i->state = answer_text(a, row_text(row, 0));
	i->is_refused = row_int(row, 1) != 0;
	i->event_id = row_opt(row, 2);
	i->message_kind = answer_text(a, row_text(row, 3));
	return 1;
}

/* A message is one intent's; 1, 0 with A refused, -1. */
static int
receipt_check(struct ledger *l, struct answer *a, const struct msg_resolve *m,
    const struct resolved_intent *i)
{
	int64_t owner;

	if (sql_number(l, STMT_RECEIPT_OWNER,
		WITH(v_text(i->message_kind), v_int(m->receipt_id)),
		&owner) == -1)
		return -1;
	if (owner != 0)
		return answer_fail(a, "refused",
		    "message %" PRId64 " is the receipt of intent %" PRId64,
		    m->receipt_id, owner);
	return 1;
}

/* Every refusal is here, before anything is written: 1, 0 with A, -1. */
static int
resolve_check(struct ledger *l, struct answer *a, const struct msg_resolve *m,
    const struct resolution *r, struct resolved_intent *i)
{
	int rc;

	if (r->has_receipt != (m->receipt_id != 0))
		return answer_fail(a, "refused",
		    "only sent, and always sent, names a message");
	if ((rc = intent_read(l, a, m->intent_id, i)) != 1)
		return rc;
	if (strcmp(i->state, "indeterminate") != 0 &&
	    !(r->is_of_refused && i->is_refused))
		return answer_fail(a, "refused", "intent %" PRId64 " is %s: %s",
		    m->intent_id, i->state,
		    r->is_of_refused
			? "it is neither indeterminate nor refused by Basecamp"
			: "it is not indeterminate");
	return r->has_receipt ? receipt_check(l, a, m, i) : 1;
}

static int
resolve_write(struct ledger *l, const struct msg_resolve *m,
    const struct resolution *r, const struct resolved_intent *i)
{
	const struct value values[] = {v_int(m->intent_id), v_text(l->now),
	    v_text(m->by), v_int(m->receipt_id)};

	if (sql_run(l, r->write, values, r->has_receipt ? 4 : 3) != 1)
		return -1;
	return sql_run(l, STMT_DECISION_RESOLVE,
	    WITH(v_text(m->nonce), v_opt(i->event_id), v_int(m->intent_id),
		v_text(m->by), v_text(l->now), v_text(i->state),
		v_text(r->to)));
}

/*
 * The outbox, if it or its retraction is to go out; the worker whose message
 * it was, or the outcome that this worker left unknown.
 */
static int
resolve_tell(struct ledger *l, struct answer *a, const struct msg_resolve *m,
    const struct resolution *r)
{
	if (line_outbox(l, a, m->intent_id) == -1)
		return -1;
	if (strcmp(r->to, "pending") == 0) {
		answer_notice(a, MSG_POST_WAITS, m->intent_id, "");
		return 0;
	}
	if (intent_tell_worker(l, a, m->intent_id) == -1 ||
	    adopt_posted(l, m->intent_id) == -1)
		return -1;
	return retraction_notice_settled(l, a, m->intent_id);
}

static int
resolved(struct answer *a, const char *state, bool changed)
{
	a->reply.type = MSG_RESOLVED;
	a->reply.resolved.state = answer_text(a, state);
	a->reply.resolved.changed = changed;
	return 0;
}

/* The same decision again: what the intent is by now. */
static int
resolve_again(struct ledger *l, struct answer *a, const struct msg_resolve *m,
    const struct resolution *r)
{
	sqlite3_stmt *row = sql_row(l, STMT_RESOLUTION_BY_NONCE);

	if (row_int(row, 0) != m->intent_id ||
	    strcmp(row_text(row, 2), r->to) != 0)
		return answer_fail(
		    a, "refused", "this nonce is of another decision");
	return resolved(a, row_text(row, 1), false);
}

int
handle_resolve(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_resolve *m = &q->m->resolve;
	const struct resolution *r = resolution_by_name(m->resolution);
	struct resolved_intent i = {0};
	int rc;

	if (r == NULL)
		return answer_fail(
		    a, "refused", "a resolution is sent, abandon or resend");
	rc = sql_first(l, STMT_RESOLUTION_BY_NONCE, WITH(v_text(m->nonce)));
	if (rc == -1)
		return -1;
	if (rc == 1)
		return resolve_again(l, a, m, r);
	if ((rc = resolve_check(l, a, m, r, &i)) != 1)
		return rc;
	if (resolve_write(l, m, r, &i) == -1 || resolve_tell(l, a, m, r) == -1)
		return -1;
	return resolved(a, r->to, true);
}
