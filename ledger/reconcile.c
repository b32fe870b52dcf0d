/*
 * LISTED: the outbox listed a destination and found these messages with the
 * text of an intent that may have been posted (operator.md 1.8, steps 4 to 7).
 * Exactly one that is nobody else's is adopted; any doubt is a person's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ledger/handlers.h"
#include "ledger/outbox.h"

#define NOTE_MAX 128

/* Another intent's receipt, or what a worker reported as its own. */
static int
is_spoken_for(
    struct ledger *l, const struct claimed_intent *i, int64_t id, bool *yes)
{
	int64_t found;

	if (sql_number(l, STMT_MESSAGE_IS_SPOKEN_FOR,
		WITH(v_text(i->message_kind), v_int(id), v_int(i->id)),
		&found) == -1)
		return -1;
	*yes = found != 0;
	return 0;
}

static bool
is_repeated(const struct ids *ids, size_t at)
{
	size_t k;

	for (k = 0; k < at; k++) {
		if (ids->list[k] == ids->list[at])
			return true;
	}
	return false;
}

/* How many are left, and one of them. */
static int
candidates_count(struct ledger *l, const struct claimed_intent *i,
    const struct ids *ids, size_t *count, int64_t *id)
{
	bool is_others;
	size_t k;

	*count = 0;
	for (k = 0; k < ids->count; k++) {
		if (is_repeated(ids, k))
			continue;
		if (is_spoken_for(l, i, ids->list[k], &is_others) == -1)
			return -1;
		if (is_others)
			continue;
		*id = ids->list[k];
		(*count)++;
	}
	return 0;
}

static bool
is_same_text(struct blob body, const char *text, size_t len)
{
	size_t other_len;
	char *other = text_normalise(body.bytes, body.len, &other_len);
	bool same = other_len == len && memcmp(other, text, len) == 0;

	free(other);
	return same;
}

/* Another intent there that may be what was found; 0: none. */
static int
rival_find(struct ledger *l, const struct claimed_intent *i, int64_t *rival)
{
	sqlite3_stmt *row = sql_row(l, STMT_OUTBOX_RIVALS);
	size_t len;
	char *text = text_normalise(i->body.bytes, i->body.len, &len);
	int rc;

	*rival = 0;
	rc = sql_first(l, STMT_OUTBOX_RIVALS,
	    WITH(
		v_text(i->message_kind), v_int(i->recording_id), v_int(i->id)));
	for (; rc == 1; rc = sql_next(l, STMT_OUTBOX_RIVALS)) {
		if (is_same_text(row_blob(row, 1), text, len)) {
			*rival = row_int(row, 0);
			rc = 0;
			break;
		}
	}
	free(text);
	return rc;
}

static int
doubt(struct ledger *l, struct answer *a, const struct claimed_intent *i,
    const char *note)
{
	return outbox_settled(l, a, i->id,
	    sql_run(l, STMT_OUTBOX_DOUBT,
		WITH(v_int(i->id), v_text(l->now), v_text(note))));
}

int
handle_listed(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_listed *m = &q->m->listed;
	struct claimed_intent i;
	int64_t id = 0, rival;
	char note[NOTE_MAX];
	size_t count;
	int rc;

	rc = outbox_claimed(l, a, m->intent_id, m->nonce, &i);
	if (rc != 1)
		return rc;
	if (!i.is_sending)
		return outbox_settled(l, a, i.id, 0);
	if (candidates_count(l, &i, &m->candidates, &count, &id) == -1)
		return -1;
	if (count != 1) {
		(void)snprintf(
		    note, sizeof(note), "%zu matching messages", count);
		return doubt(l, a, &i, note);
	}
	if (rival_find(l, &i, &rival) == -1)
		return -1;
	if (rival != 0) {
		(void)snprintf(note, sizeof(note),
		    "intent %" PRId64 " could claim the same message", rival);
		return doubt(l, a, &i, note);
	}
	return outbox_receive(l, a, &i, id, "adopted by reconciliation");
}
