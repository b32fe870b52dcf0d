/*
 * What became of a claimed intent (operator.md 1.4-1.8). Every answer bears the
 * claim's nonce: one of an earlier claim changes nothing.
 */
#include <string.h>

#include "ledger/adopt.h"
#include "ledger/handlers.h"
#include "ledger/intent.h"
#include "ledger/lines.h"
#include "ledger/machine.h"
#include "ledger/outbox.h"

/*
 * A message is claimed before it is posted, and what may have been posted is
 * never posted again by itself. Only what Basecamp refused was surely not.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		  - p s t i c r a */
	{MACHINE_NONE,	 " m      "},
	{"pending",	 " =m  m  "},
	{"sending",	 "  =mm m "},
	{"sent",	 "   =    "},
	{"indeterminate", " p p=  p"},
	{"canceled",	 "     =  "},
	{"refused",	 " p    = "},
	{"abandoned",	 "       ="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "pending", "VERDICT, STILL_RUNNING, END",
	    "a word is called for; its key is unknown; it has a place and a "
	    "body", ""},
	{MACHINE_NONE, "pending", "POST", "a worker's, of a pulled event", ""},
	{MACHINE_NONE, "pending", "REDISPATCH, DISCARD, IMPORT",
	    "a retraction of a posted notice", "the decision"},
	{"pending", "sending", "CLAIM",
	    "due and still called for; no hold stands, or it is a worker's",
	    "sending_at, nonce; of guard_ack: armed guards fired"},
	{"pending", "canceled", "CLAIM", "no longer called for", "note"},
	{"pending", "canceled", "GET_DISPATCH", "guard_ack of its event",
	    "note get_dispatch"},
	{"pending", "canceled", "VERDICT, HOLD, IMPORT, END",
	    "guard_ack of a record that became held", "note held"},
	{"pending", "canceled", "DISCARD, REDISPATCH, IMPORT",
	    "of an event that a person closed", "note"},
	{"sending", "sent", "RECEIPT", "the claim's nonce",
	    "receipt_id, one message's alone; the worker is told"},
	{"sending", "sent", "LISTED",
	    "one candidate that is nobody else's, and no rival", "the same"},
	{"sending", "refused", "REFUSED", "the claim's nonce",
	    "note; the worker is told"},
	{"sending", "indeterminate", "LISTED",
	    "no candidate or several, or a rival", "note"},
	{"sending", "indeterminate", "IN_DOUBT",
	    "its place cannot be listed, or not after ten tries", "note"},
	{"indeterminate", "sent", "RESOLVE, sent", "a receipt is named",
	    "receipt_id, resolved_by"},
	{"indeterminate", "abandoned", "RESOLVE, abandon", "", "resolved_by"},
	{"indeterminate, refused", "pending", "RESOLVE, resend", "",
	    "the claim's columns cleared, not_before now, resolved_by"},
};
/* clang-format on */

const struct machine message_machine = {
    .name = "message",
    .table = "outbox",
    .state = "CASE refused WHEN 1 THEN 'refused' ELSE state END",
    MACHINE_TABLES(states, edges),
};

int
outbox_claimed(struct ledger *l, struct answer *a, int64_t intent_id,
    const char *nonce, struct claimed_intent *i)
{
	struct blob body;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_OUTBOX_INTENT, WITH(v_int(intent_id)));
	if (rc == -1)
		return -1;
	if (rc == 0)
		return answer_fail(a, "not_found", "no such intent");
	row = sql_row(l, STMT_OUTBOX_INTENT);
	if (strcmp(row_text(row, 1), nonce) != 0)
		return answer_fail(a, "refused", "not this claim's intent");
	i->id = intent_id;
	i->is_sending = strcmp(row_text(row, 0), "sending") == 0;
	i->receipt_id = row_int(row, 2);
	i->message_kind = answer_text(a, row_text(row, 3));
	i->recording_id = row_int(row, 4);
	body = row_blob(row, 5);
	i->body = answer_blob(a, body.bytes, body.len);
	return 1;
}

int
outbox_settled(
    struct ledger *l, struct answer *a, int64_t intent_id, int changes)
{
	if (changes == -1 ||
	    (changes == 1 &&
		(line_outbox(l, a, intent_id) == -1 ||
		    intent_tell_worker(l, a, intent_id) == -1 ||
		    adopt_posted(l, intent_id) == -1)) ||
	    sql_first(l, STMT_OUTBOX_INTENT, WITH(v_int(intent_id))) != 1)
		return -1;
	a->reply.type = MSG_SETTLED;
	a->reply.settled.state =
	    answer_text(a, row_text(sql_row(l, STMT_OUTBOX_INTENT), 0));
	return 0;
}

int
outbox_receive(struct ledger *l, struct answer *a,
    const struct claimed_intent *i, int64_t receipt_id, const char *note)
{
	return outbox_settled(l, a, i->id,
	    sql_run(l, STMT_OUTBOX_SENT,
		WITH(v_int(i->id), v_text(l->now), v_int(receipt_id),
		    v_text(note))));
}

int
handle_receipt(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_receipt *m = &q->m->receipt;
	struct claimed_intent i;
	int rc;

	rc = outbox_claimed(l, a, m->intent_id, m->nonce, &i);
	if (rc != 1)
		return rc;
	if (i.receipt_id != 0 && i.receipt_id != m->receipt_id)
		return answer_fail(a, "refused", "it has another receipt");
	return outbox_receive(l, a, &i, m->receipt_id, "");
}

/* The answers that move or mark a claimed intent by one statement. */
static int
claimed_run(struct ledger *l, struct answer *a, int64_t intent_id,
    const char *nonce, enum stmt id, const struct value *values, size_t count)
{
	struct claimed_intent i;
	int rc;

	rc = outbox_claimed(l, a, intent_id, nonce, &i);
	if (rc != 1)
		return rc;
	return outbox_settled(
	    l, a, intent_id, i.is_sending ? sql_run(l, id, values, count) : 0);
}

int
handle_refused(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_refused *m = &q->m->refused;

	return claimed_run(l, a, m->intent_id, m->nonce, STMT_OUTBOX_REFUSED,
	    WITH(v_int(m->intent_id), v_text(l->now), v_text(m->note)));
}

/* Nothing has become of it yet: no line, nobody told. */
int
handle_defer(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_defer *m = &q->m->defer;
	char until[CLOCK_STAMP_SIZE];
	struct claimed_intent i;
	int rc;

	rc = outbox_claimed(l, a, m->intent_id, m->nonce, &i);
	if (rc != 1)
		return rc;
	ledger_stamp_in(l, m->delay_ms, until);
	if (sql_run(l, STMT_OUTBOX_DEFER,
		WITH(v_int(m->intent_id), v_text(until), v_int(m->failures))) ==
	    -1)
		return -1;
	return outbox_settled(l, a, m->intent_id, 0);
}

int
handle_in_doubt(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_in_doubt *m = &q->m->in_doubt;

	return claimed_run(l, a, m->intent_id, m->nonce, STMT_OUTBOX_IN_DOUBT,
	    WITH(v_int(m->intent_id), v_text(l->now), v_int(m->failures),
		v_text(m->note)));
}

/* A clock that is far off may come right: no answer is to outlast that long. */
#define LOOK_AGAIN_MS INT64_C(3600000)

/* From one stamp to a later one; what is no moment of ours is far off. */
static int64_t
ms_between(const char *earlier, const char *later)
{
	int64_t from, to, ms;

	if (clock_parse(earlier, &from) == -1 || clock_parse(later, &to) == -1)
		return LOOK_AGAIN_MS;
	if (to <= from)
		return 0;
	ms = (to - from - 1) / 1000000 + 1;
	return ms < LOOK_AGAIN_MS ? ms : LOOK_AGAIN_MS;
}

/* When NEXT_SENDING finds one: it is old enough then, and has backed off. */
static int
sending_next_due(struct ledger *l, const char *oldest, struct opt *in_ms)
{
	sqlite3_stmt *row = sql_row(l, STMT_OUTBOX_SENDING_DUE);
	const char *backing_off;
	int64_t ms, back;
	int rc;

	rc = sql_first(l, STMT_OUTBOX_SENDING_DUE, WITH_NOTHING);
	for (; rc == 1; rc = sql_next(l, STMT_OUTBOX_SENDING_DUE)) {
		ms = ms_between(oldest, row_text(row, 0));
		backing_off = row_text(row, 1);
		back =
		    *backing_off == '\0' ? 0 : ms_between(l->now, backing_off);
		if (back > ms)
			ms = back;
		if (!in_ms->has || ms < in_ms->value)
			*in_ms = (struct opt){true, ms};
	}
	return rc;
}

int
handle_next_sending(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_next_sending *m = &q->m->next_sending;
	struct msg_sending *s = &a->reply.sending;
	char oldest[CLOCK_STAMP_SIZE];
	struct blob body;
	sqlite3_stmt *row;
	int rc;

	a->reply.type = MSG_SENDING;
	ledger_stamp_in(l, -m->least_age_ms, oldest);
	rc = sql_first(l, STMT_OUTBOX_NEXT_SENDING,
	    WITH(v_int(m->after), v_text(oldest), v_text(l->now)));
	if (rc == 0)
		return sending_next_due(l, oldest, &s->in_ms);
	if (rc == -1)
		return -1;
	row = sql_row(l, STMT_OUTBOX_NEXT_SENDING);
	s->found = true;
	s->intent_id = row_int(row, 0);
	s->nonce = answer_text(a, row_text(row, 1));
	s->kind = answer_text(a, row_text(row, 2));
	s->message_kind = answer_text(a, row_text(row, 3));
	s->bucket_id = row_int(row, 4);
	s->recording_id = row_int(row, 5);
	body = row_blob(row, 6);
	s->body = answer_blob(a, body.bytes, body.len);
	s->sending_at = answer_text(a, row_text(row, 7));
	s->failures = row_int(row, 8);
	return 0;
}
