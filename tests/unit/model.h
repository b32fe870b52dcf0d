/*
 * What the ledger ought to do, said a second time: plain rows in memory and
 * one function a request, written from the specification (ledger.md, the
 * outbox and lifecycle of operator.md, dispatch.md 10, design 3.1 and 4), and
 * without a look at the ledger's SQL. test_ledger_model.c asks both.
 *
 *	model.c		rows, the one write of a record's state, intents
 *	model_feed.c	what intake sends; model_loss.c of losses
 *	model_task.c	what the dispatcher sends before an attempt's end
 *	model_end.c	END: what becomes of the records
 *	model_adopt.c	replies beside outcomes that nobody reported
 *	model_worker.c	what a task's mcpd sends
 *	model_outbox.c	what the outbox sends
 *	model_person.c	what an operator decides of an event; model_hold.c and
 *			model_import.c of all, model_resolve.c of a message,
 *			model_retract.c what is posted about it
 *	model_answer.c	is that the reply which was due?
 *	model_story.c	random stories; model_say_*.c each request's words,
 *			model_pick.c dice
 *	model_table.c	are the ledger's tables these rows?
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "common/protocol.h"

#define MODEL_EVENTS 16
#define MODEL_TASKS 48
#define MODEL_ROWS 96
#define MODEL_INTENTS 128
#define MODEL_GAPS 32
#define MODEL_KEYS 8
#define MODEL_DECISIONS 64

/*
 * Texts are never freed and never changed: literals, or model_text(). A stamp
 * is NULL where the column is, and MODEL_SOME where a trigger may have asked
 * the kernel for the time.
 */
#define MODEL_SOME "*"

struct model_event {
	int64_t id;
	const char *state, *reason, *lane, *event_type, *kind, *action;
	int64_t bucket_id, creator_id;
	struct opt performed_by_id;
	int64_t recording_id;
	const char *details, *actor_type;
	struct opt visible_to_clients;
	const char *created_at, *seen_at, *updated_at;
	bool content_dropped;
	int64_t revision;
	const char *decided_at, *blocked_at, *retry_at;
	const char *trigger_name;
	bool acknowledge;
	const char *conversation_key, *reply_kind;
	int64_t reply_recording_id;
	bool routed;
	const char *route, *class, *recording_url;
	int64_t requester_id;
	const char *snapshot;
	int64_t generation;
	bool review;
	const char *authorized_at, *authorized_by;
	int64_t redispatch_decision; /* 0: NULL */
	const char *retry_since, *next_retry_at;
	int64_t quarantine;
	const char *quarantine_death;
	bool is_rerun; /* a redispatch waits for its verdict; no column */
};

struct model_task {
	int64_t id;
	const char *token, *old_token; /* texts; "" before it was read */
	int64_t rekeys;
	const char *created_at, *superseded_at;
	const char *conversation_key, *route, *work_dir, *driver;
	int64_t originating_event_id;
	const char *deadline_at, *ended_at, *taken_at;
};

/* An event on a task. */
struct model_row {
	int64_t task_id, event_id;
	const char *conversation_key, *delivery, *guard;
	const char *exposed_at, *delivered_at, *completed_at;
	struct opt ack_id;
	const char *outcome, *links;
	struct opt reply_id;
	const char *retired_at, *pulled_at, *withdrawn_at;
	const char *exposed_attempt_id;
	struct opt adopted_reply_id;
	bool uncharged;
	bool is_given_up; /* its withdrawal blocked the record; no column */
};

/* A task has one attempt: that of its launch. */
struct model_attempt {
	const char *id;
	int64_t task_id, seq;
	const char *driver, *state;
	struct opt pid, pgid, started_ticks;
	const char *session_id;
	const char *launched_at, *running_at, *ended_at, *stop_reason;
	bool spawn_failed, no_retry;
	int64_t refusals;
	const char *progress_at;
	int64_t still_running;
	const char *boot_id, *run_id, *containment;
};

struct model_intent {
	int64_t id;
	const char *key; /* NULL where its wording is the ledger's own */
	const char *kind, *state;
	struct opt event_id, task_id;
	const char *attempt_id;
	int64_t occurrence;
	const char *answers_reason;
	int64_t bucket_id;
	const char *message_kind;
	int64_t recording_id;
	const char *body; /* NULL where its wording is the ledger's own */
	const char *read; /* what the ledger's own wording was seen to be */
	const char *asks; /* a notice's lines: "101? 102." */
	const char *created_at, *not_before, *sending_at, *finished_at;
	struct opt receipt_id;
	int64_t failures;
	const char *reconcile_at, *nonce, *hash, *resolved_by;
	bool refused;
	int64_t retracts; /* 0: NULL */
};

struct model_gap {
	int64_t id;
	const char *detected_at, *class;
	struct opt epoch_after_id;
	const char *entry_class, *note, *nonce;
};

struct model_key {
	const char *flat_key, *lineage, *position;
	int64_t served_id;
	const char *run_id, *updated_at;
};

struct model_renewal {
	const char *fingerprint, *reason, *until, *updated_at;
};

struct model_connection {
	int64_t id;
	const char *state, *detail, *changed_at;
	int64_t pid;
};

struct model_generation {
	int64_t id;
	const char *cause, *opened_by, *opened_at;
};

/* The marker; there is one or none. */
struct model_hold {
	int64_t id, generation;
	const char *cause, *held_by, *held_at;
};

struct model_decision {
	int64_t id;
	const char *nonce, *action;
	struct opt event_id;
	const char *decided_by, *decided_at;
	const char *from_state, *from_reason, *from_outcome, *to_state;
	struct opt superseded_task_id, intent_id;
	const char *attempt_id;
	/* No columns: what it was about, what it counted. */
	const char *resolution;
	struct model_hold hold;
	int canceled;
	struct msg_imported imported;
};

/* What ADOPTABLE said last; no row of any table. */
struct model_told {
	const char *attempt; /* NULL: nothing yet */
	int64_t event_id, as_of;
	const char *words;
};

struct model_loss {
	int64_t id;
	const char *nonce, *detected_at;
	int64_t dropped_count, repair_since;
	const char *repair_cursor, *deadline_at, *resolved_at, *filters;
};

struct model_loss_id {
	int64_t loss_id, event_id;
	const char *state;
};

struct model_retention {
	int64_t id, cleared;
	const char *ran_at;
};

struct model_route {
	int64_t project_id;
	const char *path;
};

struct model {
	const char *now;
	int64_t now_ns;
	/* The configuration. */
	int64_t generation, agent_id;
	int64_t claims; /* made so far */
	struct model_route routes[4];
	int route_count;
	const char *boot_id, *run_id;
	/* The tables. */
	struct model_event events[MODEL_EVENTS];
	struct model_task tasks[MODEL_TASKS];
	struct model_attempt attempts[MODEL_TASKS]; /* that of tasks[i] */
	struct model_row rows[MODEL_ROWS];
	struct model_intent intents[MODEL_INTENTS];
	struct model_gap gaps[MODEL_GAPS];
	struct model_key keys[MODEL_KEYS];
	struct model_renewal renewals[MODEL_KEYS];
	struct model_connection connection[1];
	struct model_generation generations[MODEL_DECISIONS];
	struct model_hold hold[1];
	struct model_decision decisions[MODEL_DECISIONS];
	struct model_loss losses[MODEL_KEYS];
	struct model_loss_id loss_ids[MODEL_ROWS];
	struct model_retention retention[1];
	struct model_told told;
	int event_count, task_count, row_count, intent_count, gap_count;
	int key_count, renewal_count, connection_count, generation_count;
	int hold_count, decision_count, loss_count, loss_id_count;
	int retention_count;
};

/* The reply that is due; fields named in `unknown` are the ledger's own. */
struct model_answer {
	struct msg m;
	const char *unknown;
};

/* An empty ledger at the moment NS, of which nothing is configured yet. */
void model_init(struct model *w, int64_t ns);
/* The present moment from now on. */
void model_time(struct model *w, int64_t ns);
/* What is to be done about M, sent by the holder of ATTEMPT's link or "". */
void model_ask(struct model *w, const struct msg *m, const char *attempt,
    struct model_answer *a);
/* A night's retention: what ended longer ago loses its content. */
void model_retain(struct model *w, int64_t discarded_ms, int64_t completed_ms);
/* Is there an answer for messages of this type? */
bool model_knows(enum msg_type type);
/* A message in words. */
void model_message_text(const struct msg *m, char *out, size_t size);
/*
 * Is REPLY the answer that was due, and are the ledger's tables the model's
 * rows? If not, false and what differs in WHY.
 */
bool model_answer_matches(const struct model_answer *a, const struct msg *reply,
    char *why, size_t size);
bool model_tables_match(struct model *w, sqlite3 *eye, char *why, size_t size);
/* Read the bodies that the ledger worded itself, to tell equal ones. */
void model_read_bodies(struct model *w, sqlite3 *eye);
/* The file's columns that the model neither holds nor leaves out, or "". */
void model_columns_unknown(sqlite3 *eye, char *out, size_t size);

/* A text made for keeps, until the next model_init(). */
const char *model_text(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
/* The moment NS as a stamp. */
const char *model_stamp(int64_t ns);

/* ---- what the model's own files share ----------------------------------- */

/* Equal, and both there. */
bool is(const char *a, const char *b);
/* Is A one of the words of LIST, which spaces part? */
bool is_in(const char *a, const char *list);

struct model_event *model_event(struct model *w, int64_t id);
struct model_task *model_task(struct model *w, int64_t id);
struct model_attempt *model_attempt(struct model *w, const char *id);
struct model_intent *model_intent(struct model *w, int64_t id);
/* The row of EVENT on TASK, or NULL. */
struct model_row *model_row(struct model *w, int64_t task, int64_t event);
/* The row of EVENT that no supersession retired, or NULL. */
struct model_row *model_row_live(struct model *w, int64_t event);
const char *model_route(const struct model *w, int64_t project);
int64_t model_depth(const struct model *w);
/* Milliseconds until STAMP, at least 0. */
int64_t model_ms_until(const struct model *w, const char *stamp);

/* A new event's place: the rows are in the order of their ids. */
struct model_event *model_event_place(struct model *w, int64_t id);
/* The one write of a record's state, triggers included (ledger.md 3.0). */
void model_move(struct model *w, struct model_event *e, const char *state,
    const char *reason);
/* Is another record of the conversation admitted or dispatched? */
bool model_is_live(struct model *w, const struct model_event *e);

/* Would a LAUNCH of E be taken? */
bool model_can_start(struct model *w, const struct model_event *e);

/* A new pending intent, due at DUE, unless its key is there. Or NULL. */
struct model_intent *model_intent_add(struct model *w, const char *kind,
    const char *key, const char *message_kind, int64_t bucket,
    int64_t recording, const char *due);
/* A pending intent of that event and kind ends canceled. */
int model_intent_cancel(struct model *w, int64_t event, const char *kinds);

/* An event's row on a task, with the record's move to dispatched. */
void model_row_add(
    struct model *w, const struct model_task *t, struct model_event *e);
/* Its token is over, its rows are retired, what nobody saw goes back. */
void model_supersede(struct model *w, struct model_task *t);
/* The ended task's waiting redispatches happen (the trigger of its end). */
void model_redispatch_waiting(struct model *w, const struct model_task *t);

/*
 * What the notice of an attempt says now, by event: `101? ` asks a person for
 * a redispatch, `101. ` only says what became of it. "" says nothing at all.
 */
const char *model_notice(struct model *w, const struct model_attempt *at);

/* Is RECEIPT that of another intent, of the same kind of message? */
bool model_receipt_is_owned(
    struct model *w, const struct model_intent *n, int64_t receipt);
bool model_is_stamp(const char *text);
/* The ids that losses miss and that came now. */
void model_recover(struct model *w, int64_t event);

struct model_decision *model_decision(struct model *w, const char *nonce);
struct model_decision *model_decide(
    struct model *w, const char *action, const char *nonce, const char *by);
struct model_decision *model_decide_event(struct model *w, const char *action,
    const char *nonce, const char *by, const struct model_event *e);
/* The id of the event's newest redispatch, or 0. */
int64_t model_newest_rerun(const struct model *w, int64_t event);
/* A tagged record that no person authorized is held, if it waits (I14). */
void model_review(struct model *w, struct model_event *e);
/* A hold or an import was here: E needs a person. */
void model_tag(struct model *w, struct model_event *e);
/* How many records in those states are tagged and not authorized? */
int64_t model_tagged(const struct model *w, const char *states);
/* A person has decided about E: what asked for it is answered. */
void model_retract(struct model *w, const struct model_event *e);
bool model_retraction_waits(struct model *w, const struct model_intent *r);
bool model_retraction_is_called_for(
    struct model *w, const struct model_intent *r);

/* An unknown outcome's link to the worker's own reply (design L8). */
void model_adopt_own(struct model *w, struct model_row *r);
/* The same, when N's receipt comes after the settlement. */
void model_adopt_late(struct model *w, const struct model_intent *n);

void due_failed(struct model_answer *a, const char *reason);
void due_done(struct model_answer *a, bool changed);

typedef void (*model_handler)(struct model *w, const struct msg *m,
    const char *attempt, struct model_answer *a);
#define MODEL_HANDLER(name)                                     \
	void model_##name(struct model *w, const struct msg *m, \
	    const char *attempt, struct model_answer *a)

MODEL_HANDLER(record);
MODEL_HANDLER(checkpoint);
MODEL_HANDLER(drop_position);
MODEL_HANDLER(entry);
MODEL_HANDLER(gap);
MODEL_HANDLER(verdict);
MODEL_HANDLER(next_undecided);
MODEL_HANDLER(connection);
MODEL_HANDLER(count_death);
MODEL_HANDLER(loss);
MODEL_HANDLER(loss_next);
MODEL_HANDLER(loss_cursor);
MODEL_HANDLER(loss_entry);
MODEL_HANDLER(loss_deadline);
MODEL_HANDLER(loss_close);
MODEL_HANDLER(next_startable);
MODEL_HANDLER(launch);
MODEL_HANDLER(join);
MODEL_HANDLER(expose);
MODEL_HANDLER(rekey);
MODEL_HANDLER(take_over);
MODEL_HANDLER(running);
MODEL_HANDLER(progress);
MODEL_HANDLER(refusal);
MODEL_HANDLER(still_running);
MODEL_HANDLER(tree_held);
MODEL_HANDLER(next_live);
MODEL_HANDLER(identity);
MODEL_HANDLER(end);
MODEL_HANDLER(adoptable_next);
MODEL_HANDLER(adopt);
MODEL_HANDLER(bind);
MODEL_HANDLER(check_token);
MODEL_HANDLER(get_dispatch);
MODEL_HANDLER(ack_dispatch);
MODEL_HANDLER(complete_dispatch);
MODEL_HANDLER(post);
MODEL_HANDLER(thread_of);
MODEL_HANDLER(claim);
MODEL_HANDLER(receipt);
MODEL_HANDLER(refused);
MODEL_HANDLER(defer);
MODEL_HANDLER(in_doubt);
MODEL_HANDLER(listed);
MODEL_HANDLER(next_sending);
MODEL_HANDLER(next_due);
MODEL_HANDLER(renewal_hold);
MODEL_HANDLER(renewal_hold_of);
MODEL_HANDLER(settle);
MODEL_HANDLER(resolve);
MODEL_HANDLER(redispatch);
MODEL_HANDLER(discard);
MODEL_HANDLER(hold);
MODEL_HANDLER(release);
MODEL_HANDLER(import);

#endif
