#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "ledger/body.h"
#include "ledger/retraction.h"

/* A posted notice that asks for the event. */
struct ask {
	int64_t notice_id;
	const char *message_kind;
	int64_t recording_id;
	const char *posted_at;
	const char *body;
	const char *retraction; /* its state, or "" */
};

struct asks {
	struct ask *list;
	size_t count;
};

/* ---- what a notice asks for --------------------------------------------- */

/* The next event asked for behind *AT, by all of its digits; 0: no more. */
static int64_t
asked_next(const char **at)
{
	const char *found = strstr(*at, REDISPATCH_ASK);
	char *end;
	int64_t id;

	if (found == NULL)
		return 0;
	id = strtoll(found + strlen(REDISPATCH_ASK), &end, 10);
	*at = end;
	return id;
}

static bool
body_asks_for(const char *body, int64_t event_id)
{
	int64_t id;

	while ((id = asked_next(&body)) != 0) {
		if (id == event_id)
			return true;
	}
	return false;
}

/* In the order of their ids. LIST is the caller's to free, also after -1. */
static int
asks_read(
    struct ledger *l, struct answer *a, int64_t event_id, struct asks *asks)
{
	sqlite3_stmt *row = sql_row(l, STMT_NOTICES_OF_EVENT);
	int rc = sql_first(l, STMT_NOTICES_OF_EVENT, WITH(v_int(event_id)));

	for (; rc == 1; rc = sql_next(l, STMT_NOTICES_OF_EVENT)) {
		if (!body_asks_for(row_text(row, 4), event_id))
			continue;
		asks->list = xreallocarray(
		    asks->list, asks->count + 1, sizeof(*asks->list));
		asks->list[asks->count++] = (struct ask){row_int(row, 0),
		    answer_text(a, row_text(row, 1)), row_int(row, 2),
		    answer_text(a, row_text(row, 3)),
		    answer_text(a, row_text(row, 4)),
		    answer_text(a, row_text(row, 5))};
	}
	return rc;
}

static const struct ask *
asks_find(const struct asks *asks, int64_t notice_id)
{
	size_t i;

	for (i = 0; i < asks->count; i++) {
		if (asks->list[i].notice_id == notice_id)
			return &asks->list[i];
	}
	return NULL;
}

/* Does another one stand at the same place, not answered yet? */
static bool
asks_twice(const struct asks *asks, const struct ask *one)
{
	const struct ask *other;
	size_t i;

	for (i = 0; i < asks->count; i++) {
		other = &asks->list[i];
		if (other != one && other->recording_id == one->recording_id &&
		    strcmp(other->message_kind, one->message_kind) == 0 &&
		    strcmp(other->retraction, "sent") != 0)
			return true;
	}
	return false;
}

/* ---- the words ----------------------------------------------------------- */

#define CLOCK_OF(stamp) 5, (strlen(stamp) > 16 ? (stamp) + 11 : "--:--")

static void
body_asked(
    struct body *b, int64_t event_id, const struct ask *ask, bool is_one_of_two)
{
	if (is_one_of_two)
		body_line(b,
		    "Event %" PRId64 ": the notice posted here at %.*s UTC "
		    "asked for its redispatch.",
		    event_id, CLOCK_OF(ask->posted_at));
	else
		body_line(b,
		    "Event %" PRId64 ": an earlier notice here asked for its "
		    "redispatch.",
		    event_id);
}

static void
body_answered(struct body *b, const char *action, const char *at)
{
	if (strcmp(action, "redispatch") == 0)
		body_line(b,
		    "A person had it run again, at %.*s UTC; that notice "
		    "stays as a record.",
		    CLOCK_OF(at));
	else
		body_line(b,
		    "A person closed it, at %.*s UTC; that notice stays as a "
		    "record.",
		    CLOCK_OF(at));
}

/* What else the notice asks for is not answered by this. */
static void
body_others(struct body *b, int64_t event_id, const char *notice)
{
	struct buffer line = {0};
	int64_t id;

	while ((id = asked_next(&notice)) != 0) {
		if (id == event_id)
			continue;
		buffer_printf(&line, "%s%" PRId64,
		    line.len == 0 ? "That notice also asks about event " : ", ",
		    id);
	}
	if (line.len != 0) {
		buffer_printf(
		    &line, "; this answers event %" PRId64 " only.", event_id);
		body_text(b, line.bytes);
	}
	buffer_free(&line);
}

static int
ask_answer(struct ledger *l, const struct asks *asks, const struct ask *ask,
    int64_t event_id, struct body *b)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_DECISION_LAST, WITH(v_int(event_id)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_DECISION_LAST);
	body_asked(b, event_id, ask, asks_twice(asks, ask));
	body_answered(b, row_text(row, 0), row_text(row, 1));
	body_others(b, event_id, ask->body);
	body_line(b, "Event %" PRId64 " - " SIGNATURE, event_id);
	body_end(b);
	return 0;
}

int
retraction_text(struct ledger *l, struct answer *a, int64_t notice_id,
    int64_t event_id, const char *message_kind, struct buffer *out)
{
	struct body b = body_begin(out, message_kind);
	struct asks asks = {0};
	const struct ask *ask;
	int rc;

	rc = asks_read(l, a, event_id, &asks);
	if (rc == 0 && (ask = asks_find(&asks, notice_id)) != NULL)
		rc = ask_answer(l, &asks, ask, event_id, &b);
	free(asks.list);
	return rc;
}

/* ---- written and woken --------------------------------------------------- */

/* One for each notice and event: the key sees to that. */
static int
retraction_write(struct ledger *l, struct answer *a, const struct asks *asks,
    const struct ask *ask, int64_t event_id)
{
	struct buffer text = {0};
	struct body b = body_begin(&text, ask->message_kind);
	char key[96];
	int rc;

	(void)snprintf(key, sizeof(key),
	    "retraction:intent:%" PRId64 ":event:%" PRId64, ask->notice_id,
	    event_id);
	rc = ask_answer(l, asks, ask, event_id, &b);
	if (rc == 0 && text.len != 0)
		rc = sql_run(l, STMT_RETRACTION_INSERT,
		    WITH(v_text(key), v_int(event_id), v_int(ask->notice_id),
			v_text(text.bytes), v_text(l->now)));
	buffer_free(&text);
	return rc == -1 ? -1 : 0;
}

int
retraction_decided(struct ledger *l, struct answer *a, int64_t event_id)
{
	struct asks asks = {0};
	size_t i;
	int rc;

	rc = asks_read(l, a, event_id, &asks);
	for (i = 0; i < asks.count && rc == 0; i++)
		rc = retraction_write(l, a, &asks, &asks.list[i], event_id);
	free(asks.list);
	return rc == -1 ? -1 : retraction_moved(l, a, event_id);
}

/* Let the outbox look again, if one of them waits. */
static int
retraction_wake(struct ledger *l, struct answer *a, enum stmt stmt, int64_t id)
{
	int64_t intent_id;

	if (sql_number(l, stmt, WITH(v_int(id)), &intent_id) == -1)
		return -1;
	if (intent_id != 0)
		answer_notice(a, MSG_POST_WAITS, intent_id, "");
	return 0;
}

int
retraction_moved(struct ledger *l, struct answer *a, int64_t event_id)
{
	return retraction_wake(l, a, STMT_RETRACTION_WAITING, event_id);
}

int
retraction_moved_task(struct ledger *l, struct answer *a, int64_t task_id)
{
	return retraction_wake(l, a, STMT_RETRACTION_WAITING_OF_TASK, task_id);
}

int
retraction_notice_settled(struct ledger *l, struct answer *a, int64_t notice_id)
{
	return retraction_wake(l, a, STMT_RETRACTION_WAITING_FOR, notice_id);
}
