/*
 * IMPORT: a cutover's reconciliation file (operator.md 3.8, ledger.md 3.6), all
 * of it or nothing. What is done ends here; what is left needs a person.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/decision.h"
#include "ledger/handlers.h"
#include "ledger/hold.h"
#include "ledger/import_file.h"
#include "ledger/lines.h"
#include "ledger/record.h"
#include "ledger/retraction.h"

/* What `done` makes of a record, by its state. */
enum done {
	DONE_ENDS,    /* discarded, imported_done */
	DONE_DECIDES, /* the same, if its outcome was unknown or failed */
	DONE_STANDS,  /* it has ended already */
	DONE_REFUSES  /* the whole file */
};
static const enum done dones[] = {
    [RECORD_SEEN] = DONE_ENDS,
    [RECORD_ADMITTED] = DONE_ENDS,
    [RECORD_QUEUED] = DONE_ENDS,
    [RECORD_BLOCKED] = DONE_ENDS,
    [RECORD_DISPATCHED] = DONE_REFUSES,
    [RECORD_COMPLETED] = DONE_DECIDES,
    [RECORD_DISCARDED] = DONE_STANDS,
    [RECORD_HELD] = DONE_ENDS,
};
static_assert(sizeof(dones) / sizeof(dones[0]) == RECORD_STATES,
    "an import answers every state");

struct import {
	const char *by;
	size_t number; /* of the entry in hand, from 1 */
	int64_t event_id;
	int64_t tombstoned, discarded, already_terminal;
};

/* The record of an entry, as the file finds it; good until the next one. */
struct known {
	enum record_state state;
	const char *reason;
	const char *outcome;
	const char *completed_at;
};

static int
refuse(struct answer *a, const struct import *im, const char *why)
{
	return answer_fail(a, "refused",
	    "entry %zu (event %" PRId64
	    "): %s; nothing of the file was applied",
	    im->number, im->event_id, why);
}

/* 1; 0 when the ledger has never seen it; -1. */
static int
known_read(struct ledger *l, int64_t event_id, struct known *k)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_IMPORT_RECORD, WITH(v_int(event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_IMPORT_RECORD);
	k->state = record_state_by_name(row_text(row, 0));
	k->reason = row_text(row, 1);
	k->outcome = row_text(row, 2);
	k->completed_at = row_text(row, 3);
	return 1;
}

/* Before the move that it allows, and not dated before the outcome. */
static int
decide(struct ledger *l, const struct import *im, const struct known *k,
    enum record_state to)
{
	const char *at =
	    strcmp(k->completed_at, l->now) > 0 ? k->completed_at : l->now;

	return sql_run(l, STMT_IMPORT_DECISION,
		   WITH(v_int(im->event_id), v_text(im->by), v_text(at),
		       v_text(record_state_name(k->state)), v_text(k->reason),
		       v_text(k->outcome), v_text(record_state_name(to)))) == -1
	    ? -1
	    : 0;
}

static int
tombstone_write(struct ledger *l, struct import *im, const struct known *none)
{
	if (decide(l, im, none, RECORD_DISCARDED) == -1 ||
	    sql_run(l, STMT_IMPORT_TOMBSTONE,
		WITH(v_int(im->event_id), v_text(l->now))) == -1)
		return -1;
	im->tombstoned++;
	return 0;
}

/* What the connector would still say of it. */
static int
intents_cancel(struct ledger *l, struct answer *a, int64_t event_id)
{
	int64_t decision_id = sqlite3_last_insert_rowid(l->db), *ids;
	size_t count, i;
	int rc = 0;

	if (sql_ids(l, STMT_IMPORT_INTENTS, WITH(v_int(event_id)), &ids,
		&count) == -1)
		return -1;
	for (i = 0; i < count && rc == 0; i++) {
		if (sql_run(l, STMT_INTENT_CANCEL,
			WITH(v_int(ids[i]), v_text(l->now),
			    v_int(decision_id))) == -1 ||
		    line_outbox(l, a, ids[i]) == -1)
			rc = -1;
	}
	free(ids);
	return rc;
}

/* Authorizations and a waiting redispatch end with it. */
static int
done_end(struct ledger *l, struct answer *a, struct import *im,
    const struct known *k)
{
	enum move_result moved;

	if (decide(l, im, k, RECORD_DISCARDED) == -1 ||
	    intents_cancel(l, a, im->event_id) == -1)
		return -1;
	moved = record_move(l,
	    &(struct move){.event_id = im->event_id,
		.to = RECORD_DISCARDED,
		.by = BY_PERSON,
		.reason = "imported_done"});
	if (moved == MOVE_ERROR)
		return -1;
	if (moved != MOVED)
		return refuse(a, im, move_result_text(moved));
	if (k->state == RECORD_SEEN)
		l->depth--;
	im->discarded++;
	if (line_decided(l, a, im->event_id) == -1)
		return -1;
	return retraction_decided(l, a, im->event_id);
}

/*
 * The decision says what stands, not what the file wished for. A word from
 * before its end may wait still, while nobody posts.
 */
static int
done_stands(struct ledger *l, struct answer *a, struct import *im,
    const struct known *k)
{
	im->already_terminal++;
	if (decide(l, im, k, k->state) == -1)
		return -1;
	return intents_cancel(l, a, im->event_id);
}

static int
done_apply(struct ledger *l, struct answer *a, struct import *im,
    const struct known *k)
{
	enum done done;
	int rc;

	/* No CHECK holds the column: the index is made sure of here. */
	if (k->state >= RECORD_STATES)
		return refuse(a, im, "its state is not known");
	done = dones[k->state];
	if (done == DONE_REFUSES)
		return refuse(a, im, "it is dispatched: a worker has it");
	if (done == DONE_DECIDES)
		done = strcmp(k->outcome, "unknown") == 0 ||
			strcmp(k->outcome, "failed") == 0
		    ? DONE_ENDS
		    : DONE_STANDS;
	rc = done == DONE_ENDS ? done_end(l, a, im, k)
			       : done_stands(l, a, im, k);
	if (rc == -1)
		return -1;
	return sql_run(l, STMT_IMPORT_CLEAR, WITH(v_int(im->event_id))) == -1
	    ? -1
	    : 0;
}

static int
entry_apply(struct ledger *l, struct answer *a, struct import *im,
    const struct import_entry *entry)
{
	struct known k = {RECORD_STATES, "", "", ""};
	int rc;

	rc = known_read(l, entry->event_id, &k);
	if (rc == -1)
		return -1;
	if (!entry->is_done)
		return rc == 1
		    ? 0
		    : refuse(a, im, "held, but it is not in the ledger");
	return rc == 0 ? tombstone_write(l, im, &k) : done_apply(l, a, im, &k);
}

static int
entries_apply(struct ledger *l, struct answer *a, struct import *im,
    const struct import_file *file)
{
	size_t i;

	for (i = 0; i < file->count && !answer_failed(a); i++) {
		im->number = i + 1;
		im->event_id = file->entries[i].event_id;
		if (entry_apply(l, a, im, &file->entries[i]) == -1)
			return -1;
	}
	return 0;
}

/* Everything of the file, the tags, and the decision; or A is refused. */
static int
import_apply(struct ledger *l, struct answer *a, const struct msg_import *m,
    const struct import_file *file, int64_t *decision_id)
{
	struct import im = {.by = m->by};

	if (entries_apply(l, a, &im, file) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (records_tag(l, a) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	if (sql_run(l, STMT_IMPORT_NOTE,
		WITH(v_text(m->nonce), v_text(m->by), v_text(l->now),
		    v_int(im.tombstoned), v_int(im.discarded),
		    v_int(im.already_terminal))) == -1)
		return -1;
	*decision_id = sqlite3_last_insert_rowid(l->db);
	return 0;
}

/* IMPORTED: what the decision says, at first and ever after. */
static int
import_tell(struct ledger *l, struct answer *a, int64_t decision_id)
{
	struct msg_imported *is = &a->reply.imported;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_IMPORT_IS, WITH(v_int(decision_id))) != 1)
		return -1;
	row = sql_row(l, STMT_IMPORT_IS);
	a->reply.type = MSG_IMPORTED;
	is->tombstoned = row_int(row, 0);
	is->discarded = row_int(row, 1);
	is->already_terminal = row_int(row, 2);
	is->tagged = row_int(row, 3);
	is->held = row_int(row, 4);
	return 0;
}

static int
import_first(struct ledger *l, struct answer *a, const struct msg_import *m)
{
	struct import_file file;
	int64_t decision_id = 0;
	struct error e;
	int rc;

	if (import_file_read(m->file.bytes, m->file.len, &file, &e) == -1)
		return answer_fail(a, "refused", "%s", e.text);
	rc = import_apply(l, a, m, &file, &decision_id);
	import_file_free(&file);
	if (rc == -1 || answer_failed(a))
		return rc;
	return import_tell(l, a, decision_id);
}

int
handle_import(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_import *m = &q->m->import;
	int64_t decision_id;

	if (decision_by_nonce(l, a, m->nonce, "import", 0, &decision_id) == -1)
		return -1;
	if (answer_failed(a))
		return 0;
	return decision_id != 0 ? import_tell(l, a, decision_id)
				: import_first(l, a, m);
}
