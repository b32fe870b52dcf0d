/*
 * What every call of a worker begins with (ledger.md 6.3): its token, its
 * event on this task, its pull. Each refuses in the domain's own kinds.
 */
#ifndef LEDGER_WORKER_H
#define LEDGER_WORKER_H

#include "ledger/ledger.h"

/* An event on the worker's task, by its live row and its record. */
struct worker_row {
	const char *delivery;
	bool is_pulled;
	bool is_armed; /* its guard */
	struct opt ack_id;
	const char *outcome;
	const char *links;
	struct opt reply_id;
	const char *record_state;
	bool is_servable; /* finished work is not handed out for a first time */
};

/*
 * The live task that TOKEN names and that the link's attempt belongs to.
 * Returns 1; 0 with A refused; -1.
 */
int worker_task(struct ledger *l, const struct request *q, struct answer *a,
    const char *token, int64_t *task_id);
/* The event's row on the task; 1, 0 with A refused, -1. */
int worker_row_read(struct ledger *l, struct answer *a, int64_t task_id,
    int64_t event_id, struct worker_row *row);
/* Both, and the worker has pulled it; 1, 0 with A refused, -1. */
int worker_pulled(struct ledger *l, const struct request *q, struct answer *a,
    const char *token, int64_t event_id, int64_t *task_id,
    struct worker_row *row);
/* REPORT_IS, read back from the row: the receipt of a report. */
int worker_report(
    struct ledger *l, struct answer *a, int64_t task_id, int64_t event_id);

#endif
