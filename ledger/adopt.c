#include "ledger/adopt.h"

#include <inttypes.h>
#include <string.h>

#include "common/digest.h"
#include "ledger/handlers.h"

/* The bound of ADOPTABLE.own and LIST_REPLIES.own. */
#define OWN_BYTES_MOST 8388608

int
adopt_own(struct ledger *l, int64_t task_id, int64_t event_id)
{
	return sql_run(l, STMT_ADOPT_OWN,
		   WITH(v_int(task_id), v_int(event_id))) == -1
	    ? -1
	    : 0;
}

int
adopt_posted(struct ledger *l, int64_t intent_id)
{
	sqlite3_stmt *row = sql_row(l, STMT_ADOPT_POSTED);
	int rc = sql_first(l, STMT_ADOPT_POSTED, WITH(v_int(intent_id)));

	return rc == 1 ? adopt_own(l, row_int(row, 0), row_int(row, 1)) : rc;
}

/* Where an event is answered, and which row's own replies may be it. */
struct place {
	const char *message_kind;
	int64_t recording_id;
	int64_t task_id;
	int64_t event_id;
};

/*
 * What is no reply of this row's own but may stand there, of the messages up
 * to AS_OF: 1, 0 when it is too much to be judged by, -1. WORDS is until the
 * next; SHA256 tells whether it has changed.
 *
 * No column says when a message was claimed, but the clock's. What matters is
 * that its words may be others by then: the digest shows that, whoever was
 * restarted and whatever the clock did.
 */
static int
others_words(struct ledger *l, const struct place *p, int64_t as_of,
    struct blob *words, char sha256[static DIGEST_HEX_SIZE])
{
	const struct value of[] = {v_text(p->message_kind),
	    v_int(p->recording_id), v_int(p->task_id), v_int(p->event_id),
	    v_int(as_of)};
	int64_t size;

	if (sql_number(l, STMT_ADOPT_OTHERS_SIZE, of, 5, &size) == -1)
		return -1;
	if (size > OWN_BYTES_MOST)
		return 0;
	if (sql_first(l, STMT_ADOPT_OTHERS_WORDS, of, 5) != 1)
		return -1;
	*words = row_blob(sql_row(l, STMT_ADOPT_OTHERS_WORDS), 0);
	digest_sha256_hex(words->bytes, words->len, sha256);
	return 1;
}

static void
adoptable_tell(struct answer *a, sqlite3_stmt *row, struct msg_adoptable *is)
{
	is->found = true;
	is->event_id = row_int(row, 0);
	is->bucket_id = row_int(row, 1);
	is->message_kind = answer_text(a, row_text(row, 2));
	is->recording_id = row_int(row, 3);
	is->since = answer_text(a, row_text(row, 5));
	is->before = answer_text(a, row_text(row, 6));
	is->ack_id = row_opt(row, 7);
}

/*
 * Where to look, between which moments, and what to leave out. An event of
 * which that is too much adopts nothing, and is passed over.
 */
int
handle_adoptable_next(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_adoptable_next *m = &q->m->adoptable_next;
	sqlite3_stmt *row = sql_row(l, STMT_ADOPTABLE_NEXT);
	struct msg_adoptable *is = &a->reply.adoptable;
	char sha256[DIGEST_HEX_SIZE];
	int64_t after = m->after_event;
	struct blob words;
	int rc;

	a->reply.type = MSG_ADOPTABLE;
	if (sql_number(l, STMT_ADOPT_AS_OF, WITH_NOTHING, &is->as_of) == -1)
		return -1;
	while ((rc = sql_first(l, STMT_ADOPTABLE_NEXT,
		    WITH(v_text(m->attempt), v_int(after)))) == 1) {
		const struct place p = {row_text(row, 2), row_int(row, 3),
		    row_int(row, 4), row_int(row, 0)};

		after = p.event_id;
		rc = others_words(l, &p, is->as_of, &words, sha256);
		if (rc == -1)
			return -1;
		if (rc == 0)
			continue;
		adoptable_tell(a, row, is);
		is->own = answer_blob(a, words.bytes, words.len);
		is->words = answer_text(a, sha256);
		return 0;
	}
	return rc;
}

/* The row that a reply is to be linked to. */
struct adopting {
	struct place place;
	bool is_unknown;
	bool is_delivered;
	bool is_own_unsettled;
	struct opt reply_id;
	struct opt adopted_id;
	struct opt ack_id;
};

static int
adopting_read(struct ledger *l, struct answer *a, const struct msg_adopt *m,
    struct adopting *r)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(
	    l, STMT_ADOPT_ROW, WITH(v_text(m->attempt), v_int(m->event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ADOPT_ROW);
	r->place.task_id = row_int(row, 0);
	r->place.event_id = m->event_id;
	r->is_unknown = strcmp(row_text(row, 1), "unknown") == 0;
	r->is_delivered = row_int(row, 2) != 0;
	r->reply_id = row_opt(row, 3);
	r->adopted_id = row_opt(row, 4);
	r->ack_id = row_opt(row, 5);
	r->place.message_kind = answer_text(a, row_text(row, 6));
	r->is_own_unsettled = row_int(row, 7) != 0;
	r->place.recording_id = row_int(row, 8);
	return 1;
}

/* Why not; NULL: nothing about the row speaks against it. */
static const char *
row_fault(const struct adopting *r, int64_t reply_id)
{
	if (!r->is_unknown)
		return "its outcome is not unknown";
	if (!r->is_delivered)
		return "it was never acknowledged";
	if (r->reply_id.has)
		return "its worker named a reply";
	if (r->adopted_id.has)
		return "another reply is adopted";
	if (r->ack_id.has && r->ack_id.value == reply_id)
		return "that is its acknowledgement";
	if (r->is_own_unsettled)
		return "it may be its own reply, of which no receipt is known";
	return NULL;
}

/*
 * Does the ledger know more of what the connector posted there than the
 * listing left out? 1, 0, -1.
 */
static int
listing_is_stale(
    struct ledger *l, const struct place *p, const struct msg_adopt *m)
{
	char sha256[DIGEST_HEX_SIZE];
	int64_t is_written_since;
	struct blob words;
	int rc;

	if (sql_number(l, STMT_ADOPT_IS_WRITTEN_SINCE,
		WITH(v_text(p->message_kind), v_int(p->recording_id),
		    v_int(p->task_id), v_int(p->event_id), v_int(m->as_of)),
		&is_written_since) == -1)
		return -1;
	if (is_written_since)
		return 1;
	rc = others_words(l, p, m->as_of, &words, sha256);
	return rc == -1 ? -1 : rc == 0 || strcmp(sha256, m->words) != 0;
}

/* What speaks against the message in FAULT, or NULL. -1. */
static int
message_fault(struct ledger *l, const struct place *p,
    const struct msg_adopt *m, const char **fault)
{
	int64_t is_anothers;
	int rc;

	*fault = NULL;
	if (sql_number(l, STMT_ADOPT_IS_ANOTHERS,
		WITH(v_text(p->message_kind), v_int(m->reply_id),
		    v_int(p->task_id), v_int(p->event_id)),
		&is_anothers) == -1)
		return -1;
	if (is_anothers) {
		*fault = "that message answers something else";
		return 0;
	}
	if ((rc = listing_is_stale(l, p, m)) == 1)
		*fault = "it may be ours, posted since it was looked for";
	return rc == -1 ? -1 : 0;
}

int
handle_adopt(struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_adopt *m = &q->m->adopt;
	struct adopting r;
	const char *fault;
	int n, rc;

	if ((rc = adopting_read(l, a, m, &r)) == 0)
		return answer_fail(a, "not_found",
		    "event %" PRId64 " is not on this attempt's task",
		    m->event_id);
	if (rc != 1)
		return -1;
	if (r.adopted_id.has && r.adopted_id.value == m->reply_id)
		return answer_done(a, false);
	fault = row_fault(&r, m->reply_id);
	if (fault == NULL && message_fault(l, &r.place, m, &fault) == -1)
		return -1;
	if (fault != NULL)
		return answer_fail(a, "refused", "ADOPT: %s", fault);
	n = sql_run(l, STMT_ADOPT,
	    WITH(v_int(r.place.task_id), v_int(m->event_id),
		v_int(m->reply_id)));
	return n == -1 ? -1 : answer_done(a, n == 1);
}
