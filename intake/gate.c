#include <assert.h>
#include <string.h>

#include "intake/gate.h"

const struct rule_row rule_rows[RULE_COUNT] = {
    [RULE_MENTIONED] = {"mentioned", false, false, true, true},
    [RULE_SUBSCRIBED] = {"subscribed", false, true, false, true},
    [RULE_ASSIGNED] = {"assigned", true, false, true, false},
    [RULE_COMPLETED] = {"completed", false, true, false, false},
};

/* Which rules an event can meet; what is not here is never a request. */
static const struct matrix_row {
	const char *event_type;
	size_t count;
	enum rule rules[RULES_OF_TYPE_MAX];
} matrix[] = {
    {"comment.created", 2, {RULE_MENTIONED, RULE_SUBSCRIBED}},
    {"message.created", 1, {RULE_MENTIONED}},
    {"todo.created", 1, {RULE_MENTIONED}},
    {"card.created", 1, {RULE_MENTIONED}},
    {"chat.line.created", 1, {RULE_MENTIONED}},
    {"todo.assignment_changed", 1, {RULE_ASSIGNED}},
    {"card.assignment_changed", 1, {RULE_ASSIGNED}},
    {"todo.completed", 1, {RULE_COMPLETED}},
    {"card.completed", 1, {RULE_COMPLETED}},
};

/* What the checks look at. */
struct visit {
	const struct pointer *p;
	const struct config *c;
	const struct matrix_row *row; /* NULL: not in the matrix */
	int64_t performer;
};

int64_t
pointer_performer(const struct pointer *p)
{
	return p->performed_by_id.has ? p->performed_by_id.value
				      : p->creator_id;
}

const struct config_route *
gate_route(const struct config *c, int64_t bucket)
{
	return c->readable ? config_route(c, bucket) : NULL;
}

static const struct matrix_row *
matrix_find(const char *event_type)
{
	size_t i;

	for (i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++)
		if (strcmp(matrix[i].event_type, event_type) == 0)
			return &matrix[i];
	return NULL;
}

/* ---- what no trust can change ----------------------------------------- */

static bool
is_invalid(const struct visit *v)
{
	return v->p->event_id <= 0 || v->p->bucket_id <= 0 ||
	    v->p->recording_id <= 0 || v->p->creator_id <= 0;
}

static bool
is_no_matter(const struct visit *v)
{
	return v->row == NULL;
}

static bool
is_our_own(const struct visit *v)
{
	return v->p->creator_id == v->c->agent_id ||
	    v->performer == v->c->agent_id;
}

/* An agent that the operator named, acting for itself. */
static bool
is_named_agent(const struct visit *v)
{
	return !v->p->performed_by_id.has &&
	    config_ids_has(&v->c->agents, v->p->creator_id);
}

static bool
is_unnamed_agent(const struct visit *v)
{
	return !is_named_agent(v) && v->p->actor_type != NULL &&
	    strcmp(v->p->actor_type, "agent") == 0;
}

static bool
is_refused_agent(const struct visit *v)
{
	return is_unnamed_agent(v) && v->c->agents.count > 0;
}

static bool
is_delegated(const struct visit *v)
{
	return v->p->performed_by_id.has;
}

static bool
is_out_of_scope(const struct visit *v)
{
	return v->c->scope.count > 0 &&
	    !config_ids_has(&v->c->scope, v->p->bucket_id);
}

/* In this order: the first that hits names the reason. */
static const struct {
	bool (*hits)(const struct visit *v);
	const char *reason;
} checks[] = {
    {is_invalid, "invalid_pointer"},
    {is_no_matter, "not_in_matrix"},
    {is_our_own, "agent_authored"},
    {is_refused_agent, "agent_not_allowed"},
    {is_unnamed_agent, "agent_authored"},
    {is_delegated, "delegated"},
    {is_out_of_scope, "out_of_scope"},
};

/* ---- trust, for each rule --------------------------------------------- */

static bool
is_operator(const struct visit *v, const struct rule_row *rule)
{
	(void)rule;
	return v->performer == v->c->operator_id;
}

static bool
is_listed(const struct visit *v, const struct rule_row *rule)
{
	(void)rule;
	return config_ids_has(&v->c->allowlist, v->performer);
}

static bool
may_assign(const struct visit *v, const struct rule_row *rule)
{
	return rule->is_operator_only && v->c->allow_assignments &&
	    is_listed(v, rule);
}

static bool
is_for_operators(const struct visit *v, const struct rule_row *rule)
{
	(void)v;
	return rule->is_operator_only;
}

static bool
is_mode_project(const struct visit *v, const struct rule_row *rule)
{
	(void)rule;
	return strcmp(v->c->trust_mode, "project") == 0;
}

static bool
is_anybody(const struct visit *v, const struct rule_row *rule)
{
	(void)v;
	(void)rule;
	return true;
}

enum trust { TRUST_YES, TRUST_PENDING, TRUST_NO };

static const struct trust_row {
	bool (*applies)(const struct visit *v, const struct rule_row *rule);
	enum trust trust;
	const char *reason;
} trusts[] = {
    {is_operator, TRUST_YES, NULL},
    {may_assign, TRUST_YES, NULL},
    {is_for_operators, TRUST_NO, "assignment_not_operator"},
    {is_listed, TRUST_YES, NULL},
    {is_mode_project, TRUST_PENDING, NULL},
    {is_anybody, TRUST_NO, "untrusted_performer"},
};

static const struct trust_row *
trust_find(const struct visit *v, const struct rule_row *rule)
{
	size_t i;

	for (i = 0; !trusts[i].applies(v, rule); i++)
		;
	return &trusts[i];
}

/* Keep a rule, or remember why the first one was dropped. */
static void
rule_try(const struct visit *v, enum rule rule, struct gate *out)
{
	const struct trust_row *trust = trust_find(v, &rule_rows[rule]);
	const char *reason = trust->reason;

	if (reason == NULL && rule_rows[rule].needs_route &&
	    gate_route(v->c, v->p->bucket_id) == NULL)
		reason = "no_route";
	if (reason == NULL) {
		out->rules[out->rule_count++] = rule;
		out->must_confirm |= trust->trust == TRUST_PENDING;
	} else if (out->reason == NULL) {
		out->reason = reason;
	}
}

static void
gate_person(const struct visit *v, struct gate *out)
{
	size_t i;

	for (i = 0; i < v->row->count; i++)
		rule_try(v, v->row->rules[i], out);
	if (out->rule_count > 0)
		out->reason = NULL;
	if (is_operator(v, NULL) || is_listed(v, NULL))
		out->role = PERSON_OPERATOR;
}

/* A named agent may only mention, and only where somebody listens. */
static void
gate_agent(const struct visit *v, struct gate *out)
{
	size_t i;

	out->is_agent = true;
	if (gate_route(v->c, v->p->bucket_id) == NULL) {
		out->reason = "no_route";
		return;
	}
	out->reason = "not_addressed";
	for (i = 0; i < v->row->count; i++)
		if (rule_rows[v->row->rules[i]].is_operator_only)
			out->reason = "assignment_not_operator";
	for (i = 0; i < v->row->count; i++) {
		if (v->row->rules[i] != RULE_MENTIONED)
			continue;
		out->rules[out->rule_count++] = RULE_MENTIONED;
		out->reason = NULL;
	}
}

void
gate_pass(const struct pointer *p, const struct config *c, struct gate *out)
{
	struct visit v = {
	    p, c, matrix_find(p->event_type), pointer_performer(p)};
	size_t i;

	*out = (struct gate){.role = PERSON_PARTICIPANT};
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!checks[i].hits(&v))
			continue;
		out->reason = checks[i].reason;
		return;
	}
	if (is_named_agent(&v))
		gate_agent(&v, out);
	else
		gate_person(&v, out);
}

/* ---- authors ---------------------------------------------------------- */

struct writing {
	const struct config *c;
	const struct gate *g;
	int64_t performer;
	const struct author *a;
};

static bool
is_this_agent(const struct writing *w)
{
	return w->a->id == w->c->agent_id;
}

/* What a named agent is trusted with is its own words. */
static bool
is_its_own(const struct writing *w)
{
	return w->g->is_agent && w->a->id == w->performer && w->a->is_agent &&
	    config_ids_has(&w->c->agents, w->a->id);
}

static bool
is_by_gate_agent(const struct writing *w)
{
	return w->g->is_agent;
}

static bool
is_some_agent(const struct writing *w)
{
	return w->a->is_agent;
}

static bool
is_author_operator(const struct writing *w)
{
	return w->a->id == w->c->operator_id ||
	    config_ids_has(&w->c->allowlist, w->a->id);
}

static bool
is_performer(const struct writing *w)
{
	return w->a->id == w->performer;
}

static bool
is_maybe_member(const struct writing *w)
{
	return strcmp(w->c->trust_mode, "project") == 0;
}

static bool
is_stranger(const struct writing *w)
{
	(void)w;
	return true;
}

static const struct {
	bool (*applies)(const struct writing *w);
	enum author_is is;
} authors[] = {
    {is_this_agent, AUTHOR_AGENT},
    {is_its_own, AUTHOR_PARTICIPANT},
    {is_by_gate_agent, AUTHOR_STRANGER},
    {is_some_agent, AUTHOR_AGENT},
    {is_author_operator, AUTHOR_OPERATOR},
    {is_performer, AUTHOR_PARTICIPANT},
    {is_maybe_member, AUTHOR_UNCONFIRMED},
    {is_stranger, AUTHOR_STRANGER},
};

enum author_is
gate_author(const struct config *c, const struct gate *g, int64_t performer,
    const struct author *author)
{
	const struct writing w = {c, g, performer, author};
	size_t i;

	for (i = 0; !authors[i].applies(&w); i++)
		;
	return authors[i].is;
}
