/*
 * The proof of a state machine, pair by pair (ledger.md 3). Each test says
 * itself what it expects of a machine; nothing of that is taken from the code,
 * so that a new state or edge is red until the test says so, too.
 */
#ifndef TESTS_MACHINE_PAIRS_H
#define TESTS_MACHINE_PAIRS_H

#include "ledger/machine.h"
#include "tests/unit/ledger_fixture.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

bool is(const char *a, const char *b);
/* Is STATE among NAMES, which ", " parts? */
bool names_have(const char *names, const char *state);

/* ---- rows that others hang on ------------------------------------------ */

/* The columns of a record that an INSERT of it names, and VALUES. */
#define RECORD_INSERT                                                    \
	"INSERT INTO events (id, state, reason, lane, event_type, kind," \
	" action, bucket_id, creator_id, recording_id, created_at,"      \
	" seen_at, updated_at, snapshot, content_dropped) VALUES"

/* They are put where no edge leads. Stamps are SQL: NULL, or quoted. */
void event_put(struct fixture *f, int id, const char *state);
void task_put(
    struct fixture *f, int id, const char *superseded, const char *ended);
void attempt_put(struct fixture *f, int task_id, const char *state);

/* ---- a person's words; another nonce each time -------------------------- */

struct msg *hold(struct fixture *f, const char *cause);
struct msg *release(struct fixture *f);
struct msg *redispatch(struct fixture *f, int64_t id);
struct msg *discard(struct fixture *f, int64_t id);
/* A file of one entry: DECISION is done or held. */
struct msg *import(struct fixture *f, int64_t id, const char *decision);
struct msg *resolve(struct fixture *f, int64_t intent_id,
    const char *resolution, int64_t receipt_id);

/* ---- requests that several machines meet ------------------------------- */

/* They are of event 101, and of task 1 by its attempt ATT_1. */
struct msg *ask_join(struct fixture *f);
struct msg *ask_end(struct fixture *f);
struct msg *ask_spawn_failed(struct fixture *f);
struct msg *ask_hold(struct fixture *f);
struct msg *ask_redispatch(struct fixture *f);
struct msg *ask_import_done(struct fixture *f);

/* ---- by raw SQL -------------------------------------------------------- */

/* Why the database refuses: a letter, and words of its message. */
struct kind {
	char letter;
	const char *text;
};

struct raw_state {
	const char *name;
	const char *cells; /* as the machine's: = m p t n and blank */
	/* What raw SQL meets: . it passes, ! refused, else a kind's letter. */
	const char *raw;
};

struct raw_proof {
	const struct machine *machine;
	const struct raw_state *states; /* "(none)" first */
	size_t count;
	const struct kind *kinds; /* ends with letter 0 */
	/* Put the one subject into FROM, ready to become TO. */
	void (*put)(struct fixture *f, const char *from, const char *to);
	/* The one statement that tries it. */
	void (*move)(const char *from, const char *to, char *sql, size_t size);
};

/* Compare the tables, then try every pair; print how many. */
void raw_proof_run(struct fixture *f, const struct raw_proof *p);

/* ---- through the handlers ---------------------------------------------- */

/* Where the subject may be; several places may be one state. */
struct place {
	const char *name;
	const char *state;
	void (*put)(struct fixture *f);
};

/*
 * A request that could bring the subject to AIM (several are parted by ", "),
 * and what comes of it in each place: = nothing, and it is answered; a small
 *letter: the state, as in LETTERS of the proof; a capital: FAILED with B busy
 *C report_conflict	D not_dispatchable E not_exposed	H held
 *I invalid_report N not_found	O not_on_task		R refused S stale_config
 *T task_token_refused
 */
struct request_row {
	const char *name;
	const char *aim;
	struct msg *(*ask)(struct fixture *f);
	const char *comes;
};

struct path_proof {
	const struct machine *machine;
	const char *letters; /* of the machine's states, "-" first */
	const char *where;   /* SQL: the subject's state, or no row */
	const struct place *places;
	size_t place_count;
	const struct request_row *requests;
	size_t request_count;
	/* Edges that no request here takes: "seen-held ...", or "". */
	const char *elsewhere;
};

/* The FAILED reason that a capital letter stands for, or NULL. */
const char *refusal_reason(char letter);

/* A fresh ledger for each place and request; print how many pairs. */
void path_proof_run(const struct path_proof *p);

#endif
