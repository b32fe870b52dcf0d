#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger/body.h"
#include "ledger/intent.h"
#include "ledger/lifecycle.h"

/* The guard's whole text: two people who are told it are told the same. */
#define GUARD_BODY "\xf0\x9f\x91\x80 received"

/* ---- a verdict --------------------------------------------------------- */

static int
guard_write(
    struct ledger *l, struct answer *a, int64_t event_id, sqlite3_stmt *event)
{
	char key[64], not_before[CLOCK_STAMP_SIZE];

	(void)snprintf(key, sizeof(key), "guard_ack:event:%" PRId64, event_id);
	ledger_stamp_in(l, ledger_limit(l, LIMIT_guard_delay), not_before);
	return intent_write(l, a,
	    &(struct intent){.key = key,
		.kind = "guard_ack",
		.event_id = event_id,
		.bucket_id = row_int(event, 1),
		.message_kind = "boost",
		.recording_id = row_int(event, 2),
		.body = GUARD_BODY,
		.not_before = not_before});
}

static int
holding_write(
    struct ledger *l, struct answer *a, int64_t event_id, sqlite3_stmt *event)
{
	const char *kind = row_text(event, 3), *reason = row_text(event, 5);
	struct buffer text = {0};
	struct body body = body_begin(&text, kind);
	char key[128];
	int rc;

	(void)snprintf(key, sizeof(key), "holding_reply:event:%" PRId64 ":%s",
	    event_id, reason);
	body_line(&body,
	    "Nothing was started: this project is not one that "
	    "this connector works in.");
	body_line(
	    &body, "Once it is, this starts the work: " REDISPATCH, event_id);
	body_line(&body, "Event %" PRId64 " - " SIGNATURE, event_id);
	body_end(&body);
	rc = intent_write(l, a,
	    &(struct intent){.key = key,
		.kind = "holding_reply",
		.event_id = event_id,
		.answers_reason = reason,
		.bucket_id = row_int(event, 1),
		.message_kind = kind,
		.recording_id = row_int(event, 4),
		.body = text.bytes,
		.not_before = l->now});
	buffer_free(&text);
	return rc;
}

int
lifecycle_verdict(struct ledger *l, struct answer *a, int64_t event_id,
    enum record_state state)
{
	sqlite3_stmt *event;
	int rc;

	rc = sql_first(l, STMT_LIFECYCLE_EVENT, WITH(v_int(event_id)));
	if (rc != 1)
		return rc;
	event = sql_row(l, STMT_LIFECYCLE_EVENT);
	if (row_int(event, 0) == 0) /* nobody waits for a word */
		return 0;
	if (state == RECORD_ADMITTED || state == RECORD_QUEUED)
		return guard_write(l, a, event_id, event);
	if (state == RECORD_BLOCKED &&
	    strcmp(row_text(event, 5), "no_route") == 0 &&
	    intent_is_text_kind(row_text(event, 3)))
		return holding_write(l, a, event_id, event);
	return 0;
}

/* ---- an attempt at work ------------------------------------------------ */

/* Where an attempt's messages go. */
struct place {
	int64_t bucket_id;
	const char *message_kind;
	int64_t recording_id;
	int64_t task_id;
};

/* 1, 0 when there is no place for a message, -1. */
static int
place_read(
    struct ledger *l, struct answer *a, const char *attempt, struct place *p)
{
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_ATTEMPT_PLACE, WITH(v_text(attempt)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_ATTEMPT_PLACE);
	p->bucket_id = row_int(row, 0);
	p->message_kind = answer_text(a, row_text(row, 1));
	p->recording_id = row_int(row, 2);
	p->task_id = row_int(row, 3);
	return intent_is_text_kind(p->message_kind);
}

/* An intent of the attempt, to go there at once. */
static int
place_write(
    struct ledger *l, struct answer *a, const struct place *p, struct intent *i)
{
	i->task_id = p->task_id;
	i->bucket_id = p->bucket_id;
	i->message_kind = p->message_kind;
	i->recording_id = p->recording_id;
	i->not_before = l->now;
	return intent_write(l, a, i);
}

/* A stamp's hours and minutes. */
#define CLOCK_FMT "%.5s UTC"
#define CLOCK_OF(stamp) ((stamp) + strlen("2026-01-05T"))

/* As of a time of day: it is true whenever it is read. */
static int
still_running_text(struct ledger *l, const char *attempt, int64_t number,
    const char *message_kind, struct buffer *out)
{
	struct body body = body_begin(out, message_kind);
	const char *launched_at, *progress_at;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_STILL_RUNNING_FACTS, WITH(v_text(attempt))) != 1)
		return -1;
	row = sql_row(l, STMT_STILL_RUNNING_FACTS);
	launched_at = row_text(row, 1);
	progress_at = row_text(row, 2);
	body_line(&body,
	    "Task %" PRId64 ": the agent is still at work, as of " CLOCK_FMT
	    ".",
	    row_int(row, 0), CLOCK_OF(l->now));
	if (*progress_at == '\0')
		body_line(&body,
		    "It was started at " CLOCK_FMT
		    "; no progress was reported yet.",
		    CLOCK_OF(launched_at));
	else
		body_line(&body,
		    "It was started at " CLOCK_FMT
		    "; the last progress was at " CLOCK_FMT ".",
		    CLOCK_OF(launched_at), CLOCK_OF(progress_at));
	body_line(&body, "Attempt %s, notice %" PRId64 " - " SIGNATURE, attempt,
	    number);
	body_end(&body);
	return 0;
}

int
lifecycle_still_running(
    struct ledger *l, struct answer *a, const char *attempt, int64_t number)
{
	struct buffer text = {0};
	struct place place;
	char key[80];
	int rc;

	if ((rc = place_read(l, a, attempt, &place)) != 1)
		return rc;
	rc = still_running_text(l, attempt, number, place.message_kind, &text);
	(void)snprintf(key, sizeof(key), "still_running:attempt:%s:%" PRId64,
	    attempt, number);
	if (rc == 0)
		rc = place_write(l, a, &place,
		    &(struct intent){.key = key,
			.kind = "still_running",
			.attempt_id = attempt,
			.occurrence = number,
			.body = text.bytes});
	buffer_free(&text);
	return rc;
}

/* ---- an attempt's end -------------------------------------------------- */

static const char *
stop_sentence(const char *stop_reason)
{
	static const struct {
		const char *reason, *sentence;
	} sentences[] = {
	    {"finished", "the agent's turn came to its end."},
	    {"failed", "the agent stopped with an error."},
	    {"deadline", "the agent was stopped at its time limit."},
	    {"shutdown", "the agent was stopped with the connector."},
	    {"lost",
		"the agent, or what watched over it, went away "
		"in the middle of its work."},
	};
	size_t i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		if (strcmp(sentences[i].reason, stop_reason) == 0)
			return sentences[i].sentence;
	}
	return "the agent stopped.";
}

/* What a settled event has to say; NULL: nothing. */
static const char *
event_sentence(sqlite3_stmt *row, bool *asks)
{
	const char *outcome = row_text(row, 1);
	bool has_reply = row_int(row, 2) != 0;
	bool is_withdrawn = row_int(row, 3) != 0;
	bool is_withdrawn_for_good = row_int(row, 4) != 0;

	*asks = true;
	if (is_withdrawn)
		return is_withdrawn_for_good ? "the agent could not be started."
					     : NULL;
	if (strcmp(outcome, "failed") == 0)
		return "reported as failed.";
	if (strcmp(outcome, "unknown") == 0)
		return "no outcome was reported; what was done is not known.";
	*asks = false;
	if (strcmp(outcome, "succeeded") == 0 && !has_reply)
		return "reported as done, without a reply.";
	return NULL;
}

static int
completion_lines(
    struct ledger *l, const char *attempt, struct body *body, const char *head)
{
	sqlite3_stmt *row = sql_row(l, STMT_COMPLETION_EVENTS);
	const char *sentence;
	bool asks;
	int rc;

	rc = sql_first(l, STMT_COMPLETION_EVENTS, WITH(v_text(attempt)));
	for (; rc == 1; rc = sql_next(l, STMT_COMPLETION_EVENTS)) {
		int64_t id = row_int(row, 0);

		if ((sentence = event_sentence(row, &asks)) == NULL)
			continue;
		if (body->out->len == 0)
			body_line(body, "%s", head);
		if (asks && row_int(row, 5) == 0)
			body_line(body,
			    "Event %" PRId64
			    ": %s To run it again: " REDISPATCH,
			    id, sentence, id);
		else
			body_line(body, "Event %" PRId64 ": %s", id, sentence);
	}
	return rc;
}

int
lifecycle_completion(
    struct ledger *l, const char *attempt, const char *kind, struct buffer *out)
{
	struct body body = body_begin(out, kind);
	char head[BODY_LINE_MAX];
	sqlite3_stmt *row;
	int rc;

	rc = sql_first(l, STMT_COMPLETION_HEAD, WITH(v_text(attempt)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_COMPLETION_HEAD);
	(void)snprintf(head, sizeof(head), "Task %" PRId64 ": %s",
	    row_int(row, 0), stop_sentence(row_text(row, 1)));
	if (completion_lines(l, attempt, &body, head) == -1)
		return -1;
	if (out->len != 0)
		body_line(&body, "Attempt %s - " SIGNATURE, attempt);
	body_end(&body);
	return 0;
}

int
lifecycle_ended(struct ledger *l, struct answer *a, const char *attempt)
{
	struct buffer text = {0};
	struct place place;
	char key[64];
	int rc;

	if ((rc = place_read(l, a, attempt, &place)) != 1)
		return rc;
	rc = lifecycle_completion(l, attempt, place.message_kind, &text);
	(void)snprintf(key, sizeof(key), "completion:attempt:%s", attempt);
	if (rc == 0)
		rc = place_write(l, a, &place,
		    &(struct intent){.key = key,
			.kind = "completion",
			.attempt_id = attempt,
			.body = text.bytes});
	buffer_free(&text);
	return rc;
}
