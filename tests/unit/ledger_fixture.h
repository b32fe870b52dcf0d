/*
 * A real ledger in a directory of its own, asked as its peers ask it: every
 * request is encoded and decoded on the way in, every reply on the way out, so
 * that what a test sees has passed the message table. Time stands still until
 * a test moves it.
 */
#ifndef TESTS_LEDGER_FIXTURE_H
#define TESTS_LEDGER_FIXTURE_H

#include <setjmp.h>

#include "common/config.h"
#include "common/protocol.h"
#include "ledger/database.h"
#include "ledger/ledger.h"
#include "ledger/turn.h"

#define FIXTURE_MOST 1024

#define PROJECT 10
#define ROUTE "/srv/web"
#define OTHER_PROJECT 11
#define OTHER_ROUTE "/srv/api"
#define AGENT 52007412
#define OPERATOR 26909558
#define ATT_1 "att_000000000000000000000001"
#define ATT_2 "att_000000000000000000000002"
#define ATT_3 "att_000000000000000000000003"
#define ATT_4 "att_000000000000000000000004"
#define NONCE_1 "00000000000000000000000000000001"
#define NONCE_2 "00000000000000000000000000000002"
#define NONCE_3 "00000000000000000000000000000003"
#define SNAPSHOT "{\"content\":\"a secret wish\"}"

/* The recording of event N, and where its replies go. */
#define RECORDING(event) (1000 + (event))
#define REPLY_TO(event) (5000 + (event))

struct told {
	enum msg_type type;
	int64_t id;
	char attempt[29];
};

struct fixture {
	struct ledger l;
	struct turn *turn;
	struct config *config;
	char dir[64];
	struct msg *replies[FIXTURE_MOST];
	size_t reply_count;
	char *lines[FIXTURE_MOST];
	size_t line_count;
	struct told notices[FIXTURE_MOST];
	size_t notice_count;
	jmp_buf unknown; /* where a COMMIT that failed goes */
	char trouble[512];
	/* What came before what, over all three: l r n. */
	char order[FIXTURE_MOST * 2];
	size_t order_count;
};

/* For cmocka: *STATE is a new fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* The ledger process dies and comes back; replies and lines stay readable. */
void fixture_restart(struct fixture *f);
/* Forget lines, notices and order seen so far. */
void fixture_forget(struct fixture *f);
/* Wall and monotonic clock go on by MS. */
void fixture_wait(int64_t ms);
void fixture_config_changed(struct fixture *f);

/* Other handlers than the ledger's, from the next request on. */
void fixture_handlers(struct fixture *f, const handler *handlers);

/* Queue a request for the next turn; run it. */
void fixture_add(
    struct fixture *f, struct msg *m, enum role_id from, const char *attempt);
void fixture_turn(struct fixture *f);
/* One request in a turn of its own; the reply is the fixture's. */
struct msg *fixture_ask(
    struct fixture *f, struct msg *m, enum role_id from, const char *attempt);
/* The same; the reply must be of that type. */
struct msg *fixture_get(struct fixture *f, struct msg *m, enum role_id from,
    const char *attempt, enum msg_type type);

/* Raw SQL on the ledger's own handle. SQLite's primary result code. */
int sql(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sql_ok(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * The same with every trigger lifted: it puts rows where no edge leads. Keys
 * and CHECKs hold all the same.
 */
void sql_put(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* It must be refused by a trigger or a constraint. */
void sql_refused(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The first column of the first row; "" for none. One of 16 buffers. */
const char *sql_get(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int64_t sql_int(struct fixture *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

const char *state_of(struct fixture *f, int64_t id);
/* The reply is FAILED with this reason. */
void assert_failed(const struct msg *m, const char *reason);

/* ---- ledger_story.c: the story so far, step by step --------------------- */

/* RECORD of event ID, in PROJECT. Was it new? */
bool record_event(struct fixture *f, int64_t id);
/* VERDICT with KEY, acknowledged, to be replied to; the state as written. */
const char *admit_event(struct fixture *f, int64_t id, const char *key);
/* VERDICT blocked or discarded. */
const char *refuse_event(
    struct fixture *f, int64_t id, const char *state, const char *reason);
/* A verdict for a test to change before it is sent. */
struct msg verdict_of(struct fixture *f, int64_t id, const char *state);
/* LAUNCH; the token, in one of 8 buffers, or "" when refused. */
const char *launch(struct fixture *f, int64_t id, const char *attempt);
/* All the way to there: recorded, admitted with key "k", launched. */
const char *launch_new(struct fixture *f, int64_t id, const char *attempt);
struct msg launch_of(int64_t id, const char *attempt);
/* Recorded, and admitted at once, as it must be. */
void admit_new(struct fixture *f, int64_t id, const char *key);
/* LAUNCH is refused with this reason, and makes no task. */
void launch_fails(
    struct fixture *f, int64_t id, const char *attempt, const char *reason);
/* What a reply's pipe holds, without its newline; closes it. */
const char *token_read(int *fd);
void run_attempt(struct fixture *f, const char *attempt, int64_t pid);
/* The reply: INSTRUCTION, REPORT_IS or FAILED. */
struct msg *get_dispatch(
    struct fixture *f, const char *token, int64_t id, const char *attempt);
struct msg *ack_dispatch(struct fixture *f, const char *token, int64_t id,
    int64_t ack_id, const char *attempt);
struct msg *complete_dispatch(struct fixture *f, const char *token, int64_t id,
    const char *outcome, const char *attempt);
struct msg end_of(const char *attempt, const char *stop_reason);
struct msg *end_attempt(
    struct fixture *f, const char *attempt, const char *stop_reason);
struct msg *spawn_failed(struct fixture *f, const char *attempt);
/* A person's decisions, each with a nonce of its own; the reply. */
struct msg *redispatch_event(struct fixture *f, int64_t id);
struct msg *discard_event(struct fixture *f, int64_t id);
struct msg *set_hold(struct fixture *f);
struct msg *release_hold(struct fixture *f);
struct msg *claim(struct fixture *f, const char *nonce);
/* A sibling that waits on task 1, unexposed: what a join does. */
void join_event(struct fixture *f, int64_t id);
/* The event that may be launched next, or 0. */
int64_t next_startable(struct fixture *f);
const char *intent_state(struct fixture *f, int64_t id);

#endif
