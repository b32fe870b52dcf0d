/*
 * CLAIM: the next intent that is due and still called for becomes `sending`,
 * committed before anything is posted (operator.md 1.6, 1.7). What has lost
 * its point since it was written stands down.
 */
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/lifecycle.h"
#include "ledger/lines.h"
#include "ledger/machine.h"

/*
 * The guard of an event on a task: if nobody says a word within its time, the
 * connector does. It settles once, when it is claimed: better no word than two.
 */
/* clang-format off */
static const struct machine_state states[] = {
	/*		 - u a c f */
	{MACHINE_NONE,	" mm t"},
	{"unarmed",	" =   "},
	{"armed",	"  =mm"},
	{"canceled",	"   = "},
	{"fired",	"    ="},
};

static const struct edge edges[] = {
	{MACHINE_NONE, "unarmed", "LAUNCH, JOIN", "nobody waits for a word", ""},
	{MACHINE_NONE, "armed", "LAUNCH, JOIN", "the record's acknowledge", ""},
	{MACHINE_NONE, "fired", "LAUNCH, JOIN",
	    "the same, and guard_ack may be posted already", ""},
	{"armed", "canceled", "GET_DISPATCH", "whatever the delivery",
	    "pulled_at; a pending guard_ack is canceled"},
	{"armed", "fired", "CLAIM", "of guard_ack, while it is called for",
	    "guard_ack sending"},
};
/* clang-format on */

const struct machine guard_machine = {
    .name = "guard",
    .table = "task_events",
    .state = "CASE guard WHEN '' THEN 'unarmed' ELSE guard END",
    MACHINE_TABLES(states, edges),
};
#include "ledger/retraction.h"

/* One CLAIM stands down at most so many before it answers. */
#define STAND_DOWN_MAX 64

/* An intent that is due, as it is about to be claimed. */
struct due {
	int64_t id;
	const char *kind;
	int64_t event_id;
	const char *attempt_id;
	const char *answers_reason;
	const char *message_kind;
	int64_t bucket_id;
	int64_t recording_id;
	struct blob body;
	int64_t retracts; /* a retraction's notice */
};

static int
due_read(struct ledger *l, struct answer *a, int64_t after, struct due *d)
{
	struct blob body;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_OUTBOX_DUE, WITH(v_text(l->now), v_int(after)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_OUTBOX_DUE);
	d->id = row_int(row, 0);
	d->kind = answer_text(a, row_text(row, 1));
	d->event_id = row_int(row, 2);
	d->attempt_id = answer_text(a, row_text(row, 3));
	d->answers_reason = answer_text(a, row_text(row, 4));
	d->message_kind = answer_text(a, row_text(row, 5));
	d->bucket_id = row_int(row, 6);
	d->recording_id = row_int(row, 7);
	body = row_blob(row, 8);
	d->body = answer_blob(a, body.bytes, body.len);
	d->retracts = row_int(row, 9);
	return 1;
}

/* Still called for? (operator.md 1.7); 1, 0, -1. */
typedef int (*called_for)(struct ledger *l, struct answer *a, struct due *d);

static int
always(struct ledger *l, struct answer *a, struct due *d)
{
	return 1;
}

static int
guard_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	int64_t yes;

	if (sql_number(l, STMT_GUARD_IS_CALLED_FOR, WITH(v_int(d->event_id)),
		&yes) == -1)
		return -1;
	if (yes && sql_run(l, STMT_GUARD_FIRE, WITH(v_int(d->event_id))) == -1)
		return -1;
	return yes != 0;
}

/*
 * Each holding reply answers its own reason only. While a redispatch waits for
 * its verdict none is due: OUTBOX_DUE passes it over.
 */
static int
holding_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	int64_t yes;

	if (sql_number(l, STMT_HOLDING_IS_CALLED_FOR,
		WITH(v_int(d->event_id), v_text(d->answers_reason)),
		&yes) == -1)
		return -1;
	return yes != 0;
}

/* While it works; of an attempt that has ended the end is told. */
static int
still_running_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	int rc = sql_first(l, STMT_ATTEMPT_TASK, WITH(v_text(d->attempt_id)));

	if (rc != 1)
		return rc;
	return strcmp(row_text(sql_row(l, STMT_ATTEMPT_TASK), 1), "ended") != 0;
}

/* A person may have decided since: said again from the rows as they are. */
static int
completion_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	struct buffer text = {0};
	int rc;

	rc = lifecycle_completion(l, d->attempt_id, d->message_kind, &text);
	d->body = answer_blob(a, text.bytes, text.len);
	buffer_free(&text);
	return rc == -1 ? -1 : d->body.len != 0;
}

/*
 * Its notice has settled and its record has moved, or it would not be due. It
 * answers a notice that is there and asks; the last decision is its answer.
 */
static int
retraction_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	struct buffer text = {0};
	int rc;

	rc = retraction_text(
	    l, a, d->retracts, d->event_id, d->message_kind, &text);
	d->body = answer_blob(a, text.bytes, text.len);
	buffer_free(&text);
	return rc == -1 ? -1 : d->body.len != 0;
}

static const struct {
	const char *kind;
	called_for test;
} kinds[] = {
    {"guard_ack", guard_called_for},
    {"holding_reply", holding_called_for},
    {"still_running", still_running_called_for},
    {"completion", completion_called_for},
    {"retraction", retraction_called_for},
    {"worker_ack", always},
    {"worker_reply", always},
};

static int
due_is_called_for(struct ledger *l, struct answer *a, struct due *d)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].kind, d->kind) == 0)
			return kinds[i].test(l, a, d);
	}
	return 0;
}

static int
claim_write(
    struct ledger *l, struct answer *a, const char *nonce, const struct due *d)
{
	struct msg_claimed *c = &a->reply.claimed;

	if (sql_run(l, STMT_OUTBOX_CLAIM,
		WITH(v_int(d->id), v_text(l->now), v_text(nonce),
		    v_text_of(d->body))) != 1)
		return -1;
	c->found = true;
	c->intent_id = d->id;
	c->kind = d->kind;
	c->message_kind = d->message_kind;
	c->bucket_id = d->bucket_id;
	c->recording_id = d->recording_id;
	c->body = d->body;
	return line_outbox(l, a, d->id);
}

/* Claim the first that is still called for; the others before it stand down. */
static int
claim_next(struct ledger *l, struct answer *a, const struct msg_claim *m)
{
	struct due d;
	int i, rc = 0;

	for (i = 0; i < STAND_DOWN_MAX; i++) {
		if ((rc = due_read(l, a, m->after, &d)) != 1)
			return rc;
		if ((rc = due_is_called_for(l, a, &d)) == -1)
			return -1;
		if (rc == 1)
			return claim_write(l, a, m->nonce, &d);
		if (sql_run(l, STMT_OUTBOX_STAND_DOWN,
			WITH(v_int(d.id), v_text(l->now))) == -1 ||
		    line_outbox(l, a, d.id) == -1)
			return -1;
	}
	return 0;
}

/* The same nonce again: the claim it made, while that is being sent. */
static int
claim_again(struct ledger *l, struct answer *a, const char *nonce)
{
	struct msg_claimed *c = &a->reply.claimed;
	struct blob body;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_OUTBOX_BY_NONCE, WITH(v_text(nonce)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_OUTBOX_BY_NONCE);
	if (strcmp(row_text(row, 0), "sending") != 0)
		return 1;
	c->found = true;
	c->intent_id = row_int(row, 1);
	c->kind = answer_text(a, row_text(row, 2));
	c->message_kind = answer_text(a, row_text(row, 3));
	c->bucket_id = row_int(row, 4);
	c->recording_id = row_int(row, 5);
	body = row_blob(row, 6);
	c->body = answer_blob(a, body.bytes, body.len);
	return 1;
}

/* When the next pending one falls due; what is due already, at once. */
static int
claim_next_due(struct ledger *l, int64_t *ms)
{
	const char *stamp;

	if (sql_first(l, STMT_OUTBOX_NEXT_DUE, WITH_NOTHING) == -1)
		return -1;
	stamp = row_text(sql_row(l, STMT_OUTBOX_NEXT_DUE), 0);
	*ms = *stamp == '\0' ? 0 : ledger_ms_until(l, stamp);
	if (*stamp != '\0' && *ms == 0)
		*ms = 1;
	return 0;
}

int
handle_claim(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_claim *m = &q->m->claim;
	int rc;

	a->reply.type = MSG_CLAIMED;
	rc = claim_again(l, a, m->nonce);
	if (rc == 0)
		rc = claim_next(l, a, m);
	if (rc == -1)
		return -1;
	return claim_next_due(l, &a->reply.claimed.due_in_ms);
}

/* A peek, so that the outbox claims only what it can post at once. */
int
handle_next_due(struct ledger *l, const struct request *q, struct answer *a)
{
	struct opt *in_ms = &a->reply.due.in_ms;
	const char *stamp;

	a->reply.type = MSG_DUE;
	if (sql_first(l, STMT_OUTBOX_NEXT_DUE, WITH_NOTHING) == -1)
		return -1;
	stamp = row_text(sql_row(l, STMT_OUTBOX_NEXT_DUE), 0);
	in_ms->has = *stamp != '\0';
	if (in_ms->has)
		in_ms->value = ledger_ms_until(l, stamp);
	return 0;
}
