/*
 * What the feed's buffer dropped (ledger.md 3.8, feed.md 4.8 and 4.9). The
 * ids are rows before the signal is accepted; a repair walk, which may begin
 * anew after any crash, looks for them, and RECORD finds them.
 */
#include <stdlib.h>

#include "common/json.h"
#include "ledger/handlers.h"
#include "ledger/machine.h"

/* clang-format off */
static const struct machine_state loss_states[] = {
	/*		 - o r */
	{MACHINE_NONE,	" mm"},
	{"open",	" =m"},
	{"resolved",	"  ="},
};

static const struct edge loss_edges[] = {
	{MACHINE_NONE, "open", "LOSS", "an id of it is unknown",
	    "its ids missing or never_lost"},
	{MACHINE_NONE, "resolved", "LOSS", "every id of it is known",
	    "its ids never_lost"},
	{"open", "resolved", "LOSS_CLOSE", "its window is over",
	    "its missing ids unrecovered"},
};

static const struct machine_state lost_id_states[] = {
	/*		 - m n r u */
	{MACHINE_NONE,	" mm  "},
	{"missing",	" = mm"},
	{"never_lost",	"  =  "},
	{"recovered",	"   = "},
	{"unrecovered",	"   m="},
};

static const struct edge lost_id_edges[] = {
	{MACHINE_NONE, "missing", "LOSS", "it is no record", "the loss"},
	{MACHINE_NONE, "never_lost", "LOSS", "it is a record", "the loss"},
	{"missing, unrecovered", "recovered", "RECORD",
	    "of any lane, its loss open or resolved", "the record"},
	{"missing", "unrecovered", "LOSS_CLOSE", "its window is over",
	    "the loss resolved"},
	{"missing", "unrecovered", "LOSS_ENTRY",
	    "an epoch begins at it or above", "repair_since"},
};
/* clang-format on */

const struct machine loss_machine = {
    .name = "loss",
    .table = "losses",
    .state = "CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved' END",
    MACHINE_TABLES(loss_states, loss_edges),
};

const struct machine lost_id_machine = {
    .name = "lost id",
    .table = "loss_ids",
    .state = "state",
    MACHINE_TABLES(lost_id_states, lost_id_edges),
};

#define LOSS_IDS_MOST 100000

static const struct json_rules ids_rules = {
    .max_bytes = 2097152,
    .max_depth = 1,
    .max_members = LOSS_IDS_MOST,
};

/* The ids as they were sent, repeats included; NULL with E. */
static json_t *
ids_read(struct blob text, struct error *e)
{
	json_t *ids, *id;
	size_t i;

	ids = json_read(text.bytes, text.len, &ids_rules, e);
	if (ids == NULL)
		return NULL;
	if (!json_is_array(ids) || json_array_size(ids) == 0) {
		(void)error_set(e, "ids is no array of any");
		json_decref(ids);
		return NULL;
	}
	json_array_foreach (ids, i, id) {
		if (json_is_integer(id) && json_integer_value(id) > 0)
			continue;
		(void)error_set(e, "element %zu of ids is no id", i + 1);
		json_decref(ids);
		return NULL;
	}
	return ids;
}

/* LOSS_IS, from the rows. */
static int
loss_stands(struct ledger *l, struct answer *a, int64_t loss_id)
{
	struct msg_loss_is *is = &a->reply.loss_is;
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_LOSS_STANDS, WITH(v_int(loss_id)));
	if (rc == 0)
		return answer_fail(a, "not_found", "no such loss");
	if (rc == -1)
		return -1;
	row = sql_row(l, STMT_LOSS_STANDS);
	a->reply.type = MSG_LOSS_IS;
	is->loss_id = loss_id;
	is->missing = row_int(row, 0);
	is->repair_since = row_int(row, 1);
	is->resolved = row_int(row, 2) != 0;
	return 0;
}

static int
loss_write(struct ledger *l, const struct msg_loss *m, const json_t *ids,
    int64_t *loss_id)
{
	char deadline[CLOCK_STAMP_SIZE];
	size_t i;

	ledger_stamp_in(l, m->window_ms, deadline);
	if (sql_run(l, STMT_LOSS_INSERT,
		WITH(v_text(m->nonce), v_text(l->now), v_text(deadline),
		    v_text(m->filters))) == -1)
		return -1;
	*loss_id = sqlite3_last_insert_rowid(l->db);
	for (i = 0; i < json_array_size(ids); i++) {
		if (sql_run(l, STMT_LOSS_ID_INSERT,
			WITH(v_int(*loss_id),
			    v_int(json_integer_value(
				json_array_get(ids, i))))) == -1)
			return -1;
	}
	return sql_run(l, STMT_LOSS_SUM, WITH(v_int(*loss_id), v_text(l->now)));
}

int
handle_loss(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_loss *m = &q->m->loss;
	int64_t loss_id;
	struct error e;
	json_t *ids;
	int rc;

	if (sql_number(
		l, STMT_LOSS_BY_NONCE, WITH(v_text(m->nonce)), &loss_id) == -1)
		return -1;
	if (loss_id != 0)
		return loss_stands(l, a, loss_id);
	if ((ids = ids_read(m->ids, &e)) == NULL)
		return answer_fail(a, "refused", "LOSS: %s", e.text);
	rc = loss_write(l, m, ids, &loss_id);
	json_decref(ids);
	return rc == -1 ? -1 : loss_stands(l, a, loss_id);
}

int
handle_loss_next(struct ledger *l, const struct request *q, struct answer *a)
{
	struct msg_loss_open *open = &a->reply.loss_open;
	sqlite3_stmt *row;
	int rc;

	a->reply.type = MSG_LOSS_OPEN;
	rc = sql_first(
	    l, STMT_LOSS_NEXT_OPEN, WITH(v_int(q->m->loss_next.after)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_LOSS_NEXT_OPEN);
	open->found = true;
	open->loss_id = row_int(row, 0);
	open->detected_at = answer_text(a, row_text(row, 1));
	open->deadline_at = answer_text(a, row_text(row, 2));
	open->repair_since = row_int(row, 3);
	open->repair_cursor = answer_text(a, row_text(row, 4));
	open->filters = answer_text(a, row_text(row, 5));
	open->missing = row_int(row, 6);
	return 0;
}

int
handle_loss_cursor(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_loss_cursor *m = &q->m->loss_cursor;

	if (sql_run(l, STMT_LOSS_SET_CURSOR,
		WITH(v_int(m->loss_id), v_text(m->cursor))) == -1)
		return -1;
	return loss_stands(l, a, m->loss_id);
}

int
handle_loss_entry(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_loss_entry *m = &q->m->loss_entry;

	if (sql_run(l, STMT_LOSS_GIVE_UP,
		WITH(v_int(m->loss_id), v_int(m->epoch_after_id))) == -1 ||
	    sql_run(l, STMT_LOSS_SET_ENTRY,
		WITH(v_int(m->loss_id), v_int(m->epoch_after_id))) == -1)
		return -1;
	return loss_stands(l, a, m->loss_id);
}

int
handle_loss_deadline(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_loss_deadline *m = &q->m->loss_deadline;

	if (!ledger_is_stamp(m->deadline_at))
		return answer_fail(a, "refused", "deadline_at is no stamp");
	if (sql_run(l, STMT_LOSS_SET_DEADLINE,
		WITH(v_int(m->loss_id), v_text(m->deadline_at))) == -1)
		return -1;
	return loss_stands(l, a, m->loss_id);
}

int
handle_loss_close(struct ledger *l, const struct request *q, struct answer *a)
{
	int64_t loss_id = q->m->loss_close.loss_id;

	if (sql_run(l, STMT_LOSS_GIVE_UP,
		WITH(v_int(loss_id), v_int(INT64_MAX))) == -1 ||
	    sql_run(l, STMT_LOSS_RESOLVE,
		WITH(v_int(loss_id), v_text(l->now))) == -1)
		return -1;
	return loss_stands(l, a, loss_id);
}
