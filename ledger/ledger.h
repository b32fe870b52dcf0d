/*
 * The only process that opens ledger.db. What happened is a row here before
 * anybody is told, and every change of a row is one of this process's
 * transactions (design 4, ledger.md).
 *
 *	ledger.c	main, the role's row, the table of handlers
 *	turn.c		group commit: requests in, one transaction, answers out
 *	answer.c	what a handler leaves behind until its commit
 *	database.c	opening the file
 *	files.c		whether it is private; migrate.c its schema
 *	promote.c	--promote: a shadow's ledger moves in; place.c where
 *	inspect.c	--inspect and --print-schema
 *	statements.def	every statement, once; a subject's own in its .def
 *	machine.c	the machines' tables, which stand where rows are moved
 *	record.c	a record's states, and the one write that moves it
 *	feed.c		RECORD, CHECKPOINT, gaps: what intake read
 *	loss.c		LOSS and its repair: what the feed's buffer dropped
 *	quarantine.c	COUNT_DEATH: records that end whoever holds them
 *	verdict.c	VERDICT: what intake decided
 *	hold.c		HOLD, RELEASE: what a hold makes of the records
 *	decision.c	REDISPATCH, DISCARD: what a person decides of one
 *	retraction.c	a posted ask that a person has answered
 *	startable.c	NEXT_STARTABLE: what may begin now
 *	task.c		LAUNCH, REKEY, TAKE_OVER: a task; token.c its token
 *	join.c		JOIN, EXPOSE: what else is on a task, and is told of
 *	attempt.c	an attempt at work: RUNNING to NEXT_LIVE, IDENTITY
 *	settle.c	END: what an attempt's end makes of its records
 *	adopt.c		ADOPT: a reply beside an outcome that is unknown
 *	attempt.c	RUNNING, PROGRESS, REFUSAL, NEXT_LIVE, IDENTITY
 *	settle.c	END, SETTLE: what an attempt's end makes of its records
 *	worker.c	BIND, GET_DISPATCH, ACK_DISPATCH, THREAD_OF
 *	complete.c	COMPLETE_DISPATCH: the outcome a worker reports
 *	post.c		POST: what a worker asks to post
 *	intent.c	what is to be posted, written once
 *	claim.c		CLAIM: what is due and still called for
 *	outbox.c	what became of a claim; reconcile.c LISTED
 *	retention.c	the night's work: what ended long ago loses its content
 *	import.c	IMPORT: what a cutover found done; import_file.c
 *	resolve.c	RESOLVE: what a person says became of a message
 *	renewal.c	what the token endpoint forbade
 *	lifecycle.c	the connector's own messages, when and in what words
 *	body.c		how such a message is put together
 *	lines.c		the lines of stdout (operator.md 5.4)
 *	query.c		status, events, show
 *	moment.c	the request's time, limits
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <sqlite3.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/error.h"
#include "common/protocol.h"
#include "ledger/answer.h"
#include "ledger/statements.h"

#define ATTEMPT_ID_LEN 28 /* att_ and 24 hex digits */

struct ledger {
	sqlite3 *db;
	sqlite3_stmt *stmts[STMT_COUNT];
	enum stmt used[STMT_COUNT]; /* since the last sql_reset_all() */
	size_t used_count;
	bool is_used[STMT_COUNT];
	int rc;             /* of the first statement that failed, */
	struct error error; /* and what SQLite said of it */
	int64_t wal_bytes;  /* as of the last commit */
	/* Read where no lock is: how the files were then. Else NULL; owned. */
	struct files_state *alone;

	const struct config *config; /* newest whole generation, or NULL */
	char boot_id[37];
	char run_id[33];

	/* Of the request in hand. */
	int64_t now_ns;
	char now[CLOCK_STAMP_SIZE];
	int64_t depth; /* undecided records, this group's included */
};

/* Who asks. What the link says of the peer is true, not what the peer says. */
struct request {
	const struct msg *m;
	enum role_id from;
	const char *attempt; /* "" except for an mcpd */
};

/*
 * A handler reads and writes inside the request's savepoint and leaves its
 * reply, lines and notices in A. Returns 0; a FAILED reply undoes whatever the
 * request had written. Returns -1 when a statement failed: l->rc says how, and
 * A is dropped.
 */
typedef int (*handler)(
    struct ledger *l, const struct request *q, struct answer *a);

/* By message type; NULL for what is not the ledger's to answer. */
extern const handler ledger_handlers[MSG_COUNT];

/* Let the wall clock's moment be L->now. */
void ledger_set_now(struct ledger *l);
/* A limit of the present configuration, or its normal value. */
int64_t ledger_limit(const struct ledger *l, enum limit limit);
/* The request's moment MS milliseconds later, as a stamp. */
void ledger_stamp_in(
    const struct ledger *l, int64_t ms, char out[static CLOCK_STAMP_SIZE]);
/* Is this a stamp in the one form that the ledger keeps? */
bool ledger_is_stamp(const char *text);
/* Milliseconds from the request's moment to STAMP: rounded up, 0 if past. */
int64_t ledger_ms_until(const struct ledger *l, const char *stamp);

#endif
