#include <assert.h>
#include <string.h>

#include "ledger/machine.h"

const struct machine *const machines[] = {
    &record_machine,
    &task_machine,
    &attempt_machine,
    &delivery_machine,
    &guard_machine,
    &hold_machine,
    &message_machine,
    &loss_machine,
    &lost_id_machine,
    &checkpoint_machine,
};
static_assert(sizeof(machines) / sizeof(machines[0]) == MACHINE_COUNT,
    "every machine is listed");

char
machine_cell(const struct machine *m, size_t from, size_t to)
{
	return m->states[from].to[to];
}

size_t
machine_state(const struct machine *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->state_count; i++) {
		if (strcmp(m->states[i].name, name) == 0)
			break;
	}
	return i;
}

bool
machine_edge(const struct machine *m, size_t from, size_t to, enum mover by)
{
	char cell = machine_cell(m, from, to);

	return cell == '=' || cell == 'm' || cell == 'n' ||
	    (cell == 'p' && by == BY_PERSON);
}

void
machine_sources(const struct machine *m, const char *to, enum mover by,
    char out[static MACHINE_SOURCES_SIZE])
{
	size_t used = 1, target = machine_state(m, to), i;

	(void)snprintf(out, MACHINE_SOURCES_SIZE, " ");
	for (i = 1; i < m->state_count; i++) {
		if (i == target || !machine_edge(m, i, target, by))
			continue;
		used += (size_t)snprintf(out + used,
		    MACHINE_SOURCES_SIZE - used, "%s ", m->states[i].name);
	}
}

/* ---- docs/lifecycle.md ------------------------------------------------- */

static const char introduction[] =
    "# Lifecycle\n"
    "\n"
    "What every row of ledger.db can be and become, as the code has it: "
    "`connectd-ledger --print-lifecycle`\n"
    "prints this page. A cell says who may take a row from the state on the "
    "left to the one above it: `m` whoever\n"
    "has cause to, `p` a person's decision only, `t` through another state "
    "within one transaction, `n` allowed by the\n"
    "write though nobody asks for it, `=` the same again. Where there is "
    "nothing, the write path refuses it and so does\n"
    "the database, whoever writes. Names in capitals are messages of "
    "`common/protocol.def`.\n"
    "\n"
    "Rows are never deleted, but for the hold's. Decisions, generations and "
    "gaps are written once and do not change.\n";

static void
matrix_print(const struct machine *m, FILE *out)
{
	size_t from, to;

	(void)fputs("| |", out);
	for (to = 0; to < m->state_count; to++)
		(void)fprintf(out, " %s |", m->states[to].name);
	(void)fputs("\n| --- |", out);
	for (to = 0; to < m->state_count; to++)
		(void)fputs(" :-: |", out);
	(void)fputc('\n', out);
	for (from = 0; from < m->state_count; from++) {
		(void)fprintf(out, "| **%s** |", m->states[from].name);
		for (to = 0; to < m->state_count; to++)
			(void)fprintf(out, " %c |", machine_cell(m, from, to));
		(void)fputc('\n', out);
	}
}

static void
edges_print(const struct machine *m, FILE *out)
{
	const struct edge *e;

	(void)fputs("\n| from | to | who | when | what else is written |\n"
		    "| --- | --- | --- | --- | --- |\n",
	    out);
	for (e = m->edges; e < m->edges + m->edge_count; e++)
		(void)fprintf(out, "| %s | %s | %s | %s | %s |\n", e->from,
		    e->to, e->by, e->when, e->also);
}

int
machines_print(FILE *out)
{
	size_t i;

	(void)fputs(introduction, out);
	for (i = 0; i < MACHINE_COUNT; i++) {
		(void)fprintf(out, "\n## %s\n\nOf `%s`: `%s`\n\n",
		    machines[i]->name, machines[i]->table, machines[i]->state);
		matrix_print(machines[i], out);
		edges_print(machines[i], out);
	}
	return ferror(out) ? -1 : 0;
}
