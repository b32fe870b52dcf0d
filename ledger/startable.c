#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger/handlers.h"
#include "ledger/startable.h"

static bool
is_in_scope(const struct config *c, int64_t project_id)
{
	return c->scope.count == 0 || config_ids_has(&c->scope, project_id);
}

static int
routes_insert(struct ledger *l, const struct config *c)
{
	const struct config_route *r;
	size_t i;

	for (i = 0; i < c->route_count; i++) {
		r = &c->routes[i];
		if (is_in_scope(c, r->project_id) &&
		    sql_run(l, STMT_ROUTE_INSERT,
			WITH(v_int(r->project_id), v_text(r->path))) == -1)
			return -1;
	}
	for (i = 0; i < c->scope.count; i++) {
		if (sql_run(l, STMT_SCOPE_INSERT,
			WITH(v_int(c->scope.list[i]))) == -1)
			return -1;
	}
	return 0;
}

int
startable_configure(struct ledger *l)
{
	int rc = 0;

	if (sql_run(l, STMT_ROUTES_CLEAR, WITH_NOTHING) == -1 ||
	    sql_run(l, STMT_SCOPE_CLEAR, WITH_NOTHING) == -1)
		rc = -1;
	else if (l->config != NULL && l->config->readable)
		rc = routes_insert(l, l->config);
	sql_reset_all(l);
	return rc;
}

const char *
route_fault(const struct ledger *l, struct answer *a, int64_t project_id,
    const char *route)
{
	const struct config_route *is;
	char text[FAILED_TEXT_MAX + 1];

	if (l->config == NULL || !l->config->readable)
		return "connect.json does not load; until it does, nobody can "
		       "say where this may run";
	is = config_route(l->config, project_id);
	if (is != NULL && strcmp(is->path, route) == 0)
		return NULL;
	(void)snprintf(text, sizeof(text),
	    "connect.json has %s for project %" PRId64
	    "; it was to run in %s and runs nowhere else",
	    is == NULL ? "no route" : "another path", project_id, route);
	return answer_text(a, text);
}

int
handle_next_startable(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_next_startable *m = &q->m->next_startable;
	struct msg_startable *s = &a->reply.startable;
	sqlite3_stmt *row;
	int rc;

	if (l->config == NULL || l->config->generation != m->generation)
		return answer_fail(a, "stale_config", "not this generation");
	a->reply.type = MSG_STARTABLE;
	if (sql_number(l, STMT_STRANDED_COUNT, WITH_NOTHING, &s->stranded) ==
	    -1)
		return -1;
	rc = sql_first(l, STMT_STARTABLE_NEXT, WITH(v_int(m->after)));
	if (rc != 1)
		return rc;
	row = sql_row(l, STMT_STARTABLE_NEXT);
	s->found = true;
	s->event_id = row_int(row, 0);
	s->project_id = row_int(row, 1);
	return 0;
}
