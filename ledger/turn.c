#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "ledger/database.h"
#include "ledger/token.h"
#include "ledger/turn.h"

/* A request on its way through a turn. */
struct waiting {
	struct msg *m;
	enum role_id from;
	char attempt[ATTEMPT_ID_LEN + 1];
	struct reply_to to;
	struct answer answer;
};

struct turn {
	struct ledger *l;
	const handler *handlers;
	const struct turn_ops *ops;
	void *arg;
	struct waiting waiting[TURN_REQUESTS];
	size_t count;
	size_t bytes;
	bool in_trouble;   /* the system refused, and has not worked since */
	bool trouble_came; /* in this turn */
};

struct turn *
turn_new(struct ledger *l, const handler *handlers, const struct turn_ops *ops,
    void *arg)
{
	struct turn *t = xcalloc(1, sizeof(*t));

	t->l = l;
	t->handlers = handlers;
	t->ops = ops;
	t->arg = arg;
	return t;
}

static void
turn_clear(struct turn *t)
{
	size_t i;

	for (i = 0; i < t->count; i++) {
		msg_free(t->waiting[i].m);
		answer_clear(&t->waiting[i].answer);
	}
	t->count = t->bytes = 0;
}

void
turn_free(struct turn *t)
{
	if (t == NULL)
		return;
	turn_clear(t);
	free(t);
}

bool
turn_is_empty(const struct turn *t)
{
	return t->count == 0;
}

/* The frame and what came beside it. */
static size_t
msg_bytes(const struct msg *m)
{
	const struct msg_info *info = msg_info(m->type);
	size_t bytes = m->size, i;

	for (i = 0; i < info->field_count; i++) {
		if (info->fields[i].kind == FIELD_LARGE)
			bytes += ((const struct blob *)((const char *)m +
				      info->fields[i].offset))
				     ->len;
	}
	return bytes;
}

void
turn_add(struct turn *t, struct msg *m, enum role_id from, const char *attempt,
    const struct reply_to *to)
{
	size_t bytes = msg_bytes(m);
	struct waiting *w;

	if (t->count == TURN_REQUESTS ||
	    (t->count != 0 && t->bytes + bytes > TURN_BYTES))
		turn_run(t);
	w = &t->waiting[t->count++];
	w->m = m;
	w->from = from;
	(void)snprintf(w->attempt, sizeof(w->attempt), "%s", attempt);
	w->to = *to;
	answer_init(&w->answer);
	t->bytes += bytes;
}

/* ---- the transaction --------------------------------------------------- */

static bool
is_constraint(int rc)
{
	return (rc & 0xff) == SQLITE_CONSTRAINT;
}

static void
turn_trouble(struct turn *t, const char *text)
{
	t->trouble_came = true;
	if (t->in_trouble)
		return;
	log_warnx("trouble: %s", text);
	t->in_trouble = true;
	t->ops->trouble(text, t->arg);
}

/* Something was written and nothing refused: it is over. */
static void
turn_untrouble(struct turn *t, int changes_before)
{
	if (!t->in_trouble || t->trouble_came ||
	    sqlite3_total_changes(t->l->db) == changes_before)
		return;
	log_info("no trouble any more");
	t->in_trouble = false;
	t->ops->trouble("", t->arg);
}

/* It stands unanswered in all but name: the requester asks again later. */
static void
waiting_postpone(struct waiting *w)
{
	answer_clear(&w->answer);
	(void)answer_fail(
	    &w->answer, "unavailable", "the ledger could not write");
}

/* What the request had written is undone; false: the whole group is gone. */
static bool
request_undo(struct ledger *l, int64_t depth)
{
	l->depth = depth;
	if (sqlite3_get_autocommit(l->db))
		return false;
	if (sql_run(l, STMT_ROLLBACK_TO, WITH_NOTHING) != -1 &&
	    sql_run(l, STMT_RELEASE, WITH_NOTHING) != -1)
		return true;
	(void)sql_run(l, STMT_ROLLBACK, WITH_NOTHING);
	return false;
}

/* The statement that failed decides what the requester hears. */
static void
request_failed(struct turn *t, struct waiting *w)
{
	const struct ledger *l = t->l;

	if (is_constraint(l->rc)) {
		answer_clear(&w->answer);
		(void)answer_fail(&w->answer, "refused", "%s", l->error.text);
		return;
	}
	turn_trouble(
	    t, l->rc == SQLITE_OK ? "a handler gave up" : l->error.text);
	waiting_postpone(w);
}

/* FAILED says why, and nothing else is told of what was undone. */
static void
answer_keep_failure(struct answer *a)
{
	char *reason = xstrdup(a->reply.failed.reason);
	char *text = xstrdup(a->reply.failed.text);

	answer_clear(a);
	(void)answer_fail(a, reason, "%s", text);
	free(reason);
	free(text);
}

static int
request_handle(struct turn *t, struct waiting *w)
{
	struct request q = {w->m, w->from, w->attempt};
	handler handle = t->handlers[w->m->type];
	int rc;

	if (sql_run(t->l, STMT_SAVEPOINT, WITH_NOTHING) == -1)
		return -1;
	rc = handle(t->l, &q, &w->answer);
	sql_reset_all(t->l);
	return rc;
}

/* One request in its savepoint; false: the whole group is gone. */
static bool
request_run(struct turn *t, struct waiting *w)
{
	struct ledger *l = t->l;
	int64_t depth = l->depth;
	int rc;

	l->rc = SQLITE_OK;
	ledger_set_now(l);
	rc = request_handle(t, w);
	if (rc == 0 && !answer_failed(&w->answer) &&
	    (rc = sql_run(l, STMT_RELEASE, WITH_NOTHING)) != -1)
		return true;
	if (rc == -1)
		request_failed(t, w);
	else
		answer_keep_failure(&w->answer);
	return request_undo(l, depth);
}

static bool
group_begin(struct turn *t)
{
	t->l->rc = SQLITE_OK;
	if (sql_run(t->l, STMT_BEGIN, WITH_NOTHING) != -1)
		return true;
	turn_trouble(t, t->l->error.text);
	return false;
}

/*
 * Requests in one transaction: COUNT, or fewer when their answers grow large.
 * Returns how many; 0 when it was undone as a whole, and no answer counts.
 */
static size_t
group_run(struct turn *t, struct waiting *first, size_t count)
{
	int64_t depth = t->l->depth;
	size_t i, bytes = 0;

	if (!group_begin(t)) {
		for (i = 0; i < count; i++)
			waiting_postpone(&first[i]);
		return count;
	}
	for (i = 0; i < count && bytes < TURN_ANSWER_BYTES; i++) {
		if (!request_run(t, &first[i])) {
			t->l->depth = depth;
			sql_reset_all(t->l);
			return 0;
		}
		bytes += first[i].answer.bytes;
	}
	t->l->rc = SQLITE_OK;
	if (sql_run(t->l, STMT_COMMIT, WITH_NOTHING) == -1)
		t->ops->unknown(t->l->error.text, t->arg);
	sql_reset_all(t->l);
	return i;
}

/* ---- the answers ------------------------------------------------------- */

/* The reply's descriptor field, or NULL. */
static int *
reply_fd(struct msg *m)
{
	const struct msg_info *info = msg_info(m->type);
	size_t i;

	for (i = 0; i < info->field_count; i++) {
		if (info->fields[i].kind == FIELD_FD)
			return (int *)((char *)m + info->fields[i].offset);
	}
	return NULL;
}

/* The token's hash is on the disk; now its bytes may leave. */
static void
answer_fill_pipe(struct turn *t, struct answer *a)
{
	int *fd = reply_fd(&a->reply);
	struct error e;

	if (fd == NULL)
		return;
	*fd = token_pipe(a->token, &e);
	explicit_bzero(a->token, sizeof(a->token));
	if (*fd != -1)
		return;
	turn_trouble(t, e.text);
	(void)answer_fail(a, "unavailable", "no pipe for the token");
}

static void
group_send_lines(struct turn *t, struct waiting *first, size_t count)
{
	bool any = false;
	struct line *line;
	size_t i;

	for (i = 0; i < count; i++) {
		STAILQ_FOREACH (line, &first[i].answer.lines, entry) {
			t->ops->line(line->text, t->arg);
			any = true;
		}
	}
	if (any)
		t->ops->lines_end(t->arg);
}

/* One that names an attempt says nothing of another. */
static bool
notice_is_its_own(enum msg_type type)
{
	return type == MSG_POST_SETTLED || type == MSG_ATTEMPT_OVER ||
	    type == MSG_SUPERSEDED;
}

/* Notices are level-triggered; only an mcpd's goes to one of many peers. */
static void
group_send_notices(struct turn *t, const struct answer *a, bool *told)
{
	struct notice *n;

	STAILQ_FOREACH (n, &a->notices, entry) {
		struct msg m = {.type = n->type};

		if (!notice_is_its_own(n->type) && told[n->type])
			continue;
		told[n->type] = true;
		switch (n->type) {
		case MSG_WORK_WAITS:
			m.work_waits.event_id = n->id;
			break;
		case MSG_POST_WAITS:
			m.post_waits.intent_id = n->id;
			break;
		case MSG_UNDECIDED_WAITS:
			m.undecided_waits.event_id = n->id;
			break;
		case MSG_POST_SETTLED:
			m.post_settled.intent_id = n->id;
			break;
		case MSG_SUPERSEDED:
			m.superseded.attempt = n->attempt;
			break;
		case MSG_ATTEMPT_OVER:
			m.attempt_over.attempt = n->attempt;
			break;
		default:
			fatalx("%s is no notice of ours", msg_name(n->type));
		}
		t->ops->notice(
		    n->type == MSG_POST_SETTLED ? n->attempt : "", &m, t->arg);
	}
}

static void
group_send(struct turn *t, struct waiting *first, size_t count)
{
	bool told[MSG_COUNT] = {false};
	size_t i;

	group_send_lines(t, first, count);
	for (i = 0; i < count; i++) {
		struct answer *a = &first[i].answer;

		answer_fill_pipe(t, a);
		t->ops->reply(&first[i].to, &a->reply, t->arg);
		group_send_notices(t, a, told);
	}
}

/* After a group was lost its requests run again, each by itself. */
static void
group_run_alone(struct turn *t, struct waiting *first, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		answer_clear(&first[i].answer);
		if (group_run(t, &first[i], 1) == 0)
			waiting_postpone(&first[i]);
		group_send(t, &first[i], 1);
	}
}

void
turn_run(struct turn *t)
{
	int changes = sqlite3_total_changes(t->l->db);
	size_t at, n;

	t->trouble_came = false;
	for (at = 0; at < t->count; at += n) {
		n = group_run(t, &t->waiting[at], t->count - at);
		if (n != 0) {
			group_send(t, &t->waiting[at], n);
		} else {
			n = t->count - at;
			group_run_alone(t, &t->waiting[at], n);
		}
	}
	turn_untrouble(t, changes);
	turn_clear(t);
	if (t->l->wal_bytes >= WAL_MOST)
		database_checkpoint(t->l);
}
