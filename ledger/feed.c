/*
 * What intake read of the feed (feed.md 4.1-4.4). A known id is never
 * rewritten: a finished record is a tombstone, and history served again can
 * start nothing.
 */
#include <string.h>

#include "common/log.h"
#include "ledger/handlers.h"
#include "ledger/lines.h"
#include "ledger/machine.h"

/* clang-format off */
static const struct machine_state checkpoint_states[] = {
	/*		 - u p */
	{MACHINE_NONE,	" mm"},
	{"unplaced",	" =m"},
	{"placed",	" m="},
};

static const struct edge checkpoint_edges[] = {
	{MACHINE_NONE, "unplaced", "CHECKPOINT", "with a served id only",
	    "last_poll_served_id"},
	{"(none), unplaced", "placed", "CHECKPOINT",
	    "a page whose rows are recorded",
	    "last_poll_served_id, if it is greater"},
	{"placed", "placed", "CHECKPOINT", "the same", "the same"},
	{"placed", "unplaced", "DROP_POSITION", "the position that was refused",
	    "last_poll_served_id stays"},
};
/* clang-format on */

const struct machine checkpoint_machine = {
    .name = "checkpoint",
    .table = "checkpoints",
    .state = "CASE position WHEN '' THEN 'unplaced' ELSE 'placed' END",
    MACHINE_TABLES(checkpoint_states, checkpoint_edges),
};

int
handle_entry(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_entry *m = &q->m->entry;
	struct msg_entry_is *is = &a->reply.entry_is;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_ENTRY,
		WITH(v_text(m->flat_key), v_text(m->lineage),
		    v_text(l->run_id))) == -1)
		return -1;
	row = sql_row(l, STMT_ENTRY);
	a->reply.type = MSG_ENTRY_IS;
	is->position = answer_text(a, row_text(row, 0));
	is->served_id = row_int(row, 1);
	is->lineage_served_id = row_int(row, 2);
	is->lineage_is_known = row_int(row, 3) != 0;
	is->is_saved = row_int(row, 4) != 0;
	is->depth = l->depth;
	return 0;
}

/* What the message table cannot say of a record. */
static const char *
record_fault(const struct msg_record *m)
{
	if (strcmp(m->lane, "poll") != 0 && strcmp(m->lane, "live") != 0 &&
	    strcmp(m->lane, "repair") != 0)
		return "lane is none";
	if (!ledger_is_stamp(m->created_at))
		return "created_at is no stamp";
	return NULL;
}

/* Almost never: asking is cheaper than an UPDATE of nothing. */
static int
losses_recover(struct ledger *l, int64_t event_id)
{
	int64_t is_lost;

	if (sql_number(
		l, STMT_LOSS_ID_IS_OPEN, WITH(v_int(event_id)), &is_lost) == -1)
		return -1;
	if (!is_lost)
		return 0;
	return sql_run(l, STMT_LOSS_ID_RECOVER, WITH(v_int(event_id)));
}

int
handle_record(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_record *m = &q->m->record;
	const char *fault = record_fault(m);
	int is_new;

	if (fault != NULL)
		return answer_fail(a, "refused", "RECORD: %s", fault);
	is_new = sql_run(l, STMT_EVENT_INSERT,
	    WITH(v_int(m->event_id), v_text(m->lane), v_text(m->event_type),
		v_text(m->kind), v_text(m->action), v_int(m->bucket_id),
		v_int(m->creator_id), v_opt(m->performed_by_id),
		v_int(m->recording_id), v_blob(m->details),
		v_text(m->actor_type), v_opt(m->visible_to_clients),
		v_text(m->created_at), v_text(l->now)));
	if (is_new == -1 || losses_recover(l, m->event_id) == -1)
		return -1;
	if (is_new == 1) {
		l->depth++;
		line_pointer(a, m);
	}
	a->reply.type = MSG_RECORDED;
	a->reply.recorded.is_new = is_new == 1;
	a->reply.recorded.depth = l->depth;
	return 0;
}

/* The served id first: it is the safe re-entry if the position is lost. */
int
handle_checkpoint(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_checkpoint *m = &q->m->checkpoint;
	int served = 0, saved = 0;

	if (m->served_id != 0)
		served = sql_change_or_begin(l, STMT_CHECKPOINT_SERVED,
		    STMT_CHECKPOINT_BEGIN_SERVED,
		    WITH(v_text(m->flat_key), v_text(m->lineage),
			v_int(m->served_id), v_text(l->now)));
	if (served != -1 && *m->position != '\0')
		saved = sql_change_or_begin(l, STMT_CHECKPOINT_SAVE,
		    STMT_CHECKPOINT_BEGIN_SAVED,
		    WITH(v_text(m->flat_key), v_text(m->lineage),
			v_text(m->position), v_text(l->now),
			v_text(l->run_id)));
	if (served == -1 || saved == -1)
		return -1;
	return answer_done(a, served + saved > 0);
}

int
handle_drop_position(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_drop_position *m = &q->m->drop_position;
	int n = sql_run(l, STMT_CHECKPOINT_DROP,
	    WITH(v_text(m->flat_key), v_text(m->position), v_text(l->now)));

	return n == -1 ? -1 : answer_done(a, n == 1);
}

static bool
is_one_of(const char *word, const char *const *words, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(words[i], word) == 0)
			return true;
	}
	return false;
}

/* What the message table cannot say of a gap. 1, 0 with A refused. */
static int
gap_check(struct answer *a, const struct msg_gap *m)
{
	static const char *const classes[] = {"epoch", "retention"};
	static const char *const entries[] = {
	    "", "present", "replay", "unknown"};

	if (!is_one_of(m->class, classes, sizeof(classes) / sizeof(*classes)))
		return answer_fail(a, "refused",
		    "GAP: class '%s' is neither epoch nor retention",
		    log_safe(m->class));
	if (!is_one_of(
		m->entry_class, entries, sizeof(entries) / sizeof(*entries)))
		return answer_fail(a, "refused",
		    "GAP: entry_class '%s' is none of present, replay, unknown",
		    log_safe(m->entry_class));
	if ((strcmp(m->class, "epoch") == 0) != m->epoch_after_id.has)
		return answer_fail(
		    a, "refused", "GAP: an epoch, and only that, has an id");
	return 1;
}

int
handle_gap(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_gap *m = &q->m->gap;
	int n;

	if (gap_check(a, m) != 1)
		return 0;
	n = sql_run(l, STMT_GAP_INSERT,
	    WITH(v_text(m->nonce), v_text(l->now), v_text(m->class),
		v_opt(m->epoch_after_id), v_text(m->entry_class),
		v_text(m->note)));
	return n == -1 ? -1 : answer_done(a, n == 1);
}
