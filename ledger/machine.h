/*
 * The ledger's state machines (ledger.md 3). Each is written once, as a table
 * at the top of the file that moves its rows:
 *
 *	record		record.c	message		outbox.c
 *	task		task.c		loss, lost id	loss.c
 *	attempt		attempt.c	checkpoint	feed.c
 *	delivery	worker.c	hold		hold.c
 *	guard		claim.c
 *
 * A write takes the states it may move from out of its table; the triggers of
 * schema.sql refuse what has no cell; docs/lifecycle.md is printed from here;
 * and tests try every pair, through the handlers and by raw SQL.
 */
#ifndef LEDGER_MACHINE_H
#define LEDGER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The first state of each: there is no row. */
#define MACHINE_NONE "(none)"

/*
 * A state, and a cell for each state that may come next, in the table's order:
 *	=	the same again
 *	m	whoever has cause to
 *	p	a person's decision only
 *	t	through another state, in one transaction; not at once
 *	n	the write would allow it, and nobody asks for it
 *	blank	never
 */
struct machine_state {
	const char *name;
	const char *to;
};

/* What stands behind a cell. Several FROM are parted by ", ". */
struct edge {
	const char *from;
	const char *to;
	const char *by;   /* the message, or who sends it */
	const char *when; /* "": always */
	const char *also; /* written in the same transaction; "": nothing */
};

struct machine {
	const char *name;
	const char *table;
	const char *state; /* in SQL, of a row of the table */
	const struct machine_state *states;
	size_t state_count;
	const struct edge *edges;
	size_t edge_count;
};

#define MACHINE_TABLES(s, e)                                      \
	.states = (s), .state_count = sizeof(s) / sizeof((s)[0]), \
	.edges = (e), .edge_count = sizeof(e) / sizeof((e)[0])

extern const struct machine record_machine, task_machine, attempt_machine,
    delivery_machine, guard_machine, hold_machine, message_machine,
    loss_machine, lost_id_machine, checkpoint_machine;

#define MACHINE_COUNT 10
extern const struct machine *const machines[MACHINE_COUNT];

enum mover { BY_MACHINE, BY_PERSON };

/* The cell from one state to another, by their places in the table. */
char machine_cell(const struct machine *m, size_t from, size_t to);
/* A state's place; m->state_count when it has no such state. */
size_t machine_state(const struct machine *m, const char *name);

/* May a row go at once from FROM to TO? The same again always may. */
bool machine_edge(
    const struct machine *m, size_t from, size_t to, enum mover by);

/* Room for the names of any machine's states. */
#define MACHINE_SOURCES_SIZE 96
/* " seen blocked ": what a row may be to become TO, for a write's WHERE. */
void machine_sources(const struct machine *m, const char *to, enum mover by,
    char out[static MACHINE_SOURCES_SIZE]);

/* All of them, as docs/lifecycle.md has them. -1: the stream failed. */
int machines_print(FILE *out);

#endif
