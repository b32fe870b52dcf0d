/*
 * A record's life (events.state, ledger.md 3.0 and 3.1). Every change of it
 * is a move: one UPDATE that carries its own conditions.
 */
#ifndef LEDGER_RECORD_H
#define LEDGER_RECORD_H

#include <stdbool.h>

#include "ledger/ledger.h"
#include "ledger/machine.h"

enum record_state {
	RECORD_SEEN,
	RECORD_ADMITTED,
	RECORD_QUEUED,
	RECORD_BLOCKED,
	RECORD_DISPATCHED,
	RECORD_COMPLETED,
	RECORD_DISCARDED,
	RECORD_HELD,
	RECORD_STATES
};

/* A set of states. */
#define RECORD_SET(state) (1u << (state))
#define RECORD_ANY ((1u << RECORD_STATES) - 1)

const char *record_state_name(enum record_state state);
/* RECORD_STATES when it is no state's name. */
enum record_state record_state_by_name(const char *name);

/* May a record go from FROM to TO? The same state again always may. */
bool record_edge(enum record_state from, enum record_state to, enum mover by);

struct move {
	int64_t event_id;
	enum record_state to;
	const char *reason; /* NULL: none */
	enum mover by;
	unsigned int from;    /* narrows the table's sources; 0: does not */
	struct opt revision;  /* it must still be this one */
	const char *retry_at; /* of blocked only; NULL: none */
	const char *next_retry_at; /* of blocked only; NULL: none */
};

enum move_result {
	MOVED,
	MOVE_NO_RECORD,
	MOVE_HELD_BY_WORKER,   /* handed to a worker and not reported */
	MOVE_NOT_ON_LIVE_TASK, /* dispatched needs a live task */
	MOVE_ON_LIVE_TASK,     /* a live task carries it */
	MOVE_NO_TRANSITION,    /* no such edge, or not from there */
	MOVE_INVALID,          /* reason or deadline do not fit the state */
	MOVE_ERROR             /* a statement failed */
};

/*
 * Move a record. A refusal has written nothing; why it was refused is read
 * afterwards and is for messages only. Where a trigger turned the move into
 * held, the result is MOVED all the same: read the state back.
 */
enum move_result record_move(struct ledger *l, const struct move *move);

/* The verdict's columns, written with its move (admission.md 1.12). */
enum move_result record_move_verdict(struct ledger *l, const struct move *move,
    const struct msg_verdict *verdict);

/* What a refusal is called: "held by worker", ... */
const char *move_result_text(enum move_result result);

/* The state as it stands; RECORD_STATES when there is no such record. -1. */
int record_state_of(
    struct ledger *l, int64_t event_id, enum record_state *state);

#endif
