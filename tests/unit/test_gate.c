/*
 * The gate as a table: who acted, under which trust, on which type, and what
 * follows (admission.md 1.3, 1.4, 2.2, 2.3, 4.3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "intake/gate.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

#define AGENT 52007412
#define BOSS 26909558
#define LISTED 300
#define OTHER 400
#define NAMED 500   /* of agent_ids, where it is set */
#define FOREIGN 600 /* another agent */
#define ROUTED 10
#define UNROUTED 20

enum trim {
	OPERATOR = 0,
	ALLOWLIST = 1,
	PROJECT = 2,
	MODE = 3,
	LIST = 4,        /* allowlist: LISTED */
	ASSIGN = 8,      /* allow_assignments */
	AGENTS = 16,     /* agent_ids: NAMED */
	SCOPE = 32,      /* --project ROUTED */
	UNREADABLE = 64, /* connect.json */
};

static struct config *
config_with(unsigned trim)
{
	static const char *const modes[] = {"operator", "allowlist", "project"};
	struct config *c = config_new();

	c->readable = !(trim & UNREADABLE);
	c->agent_id = AGENT;
	c->operator_id = BOSS;
	c->allow_assignments = (trim & ASSIGN) != 0;
	(void)snprintf(
	    c->trust_mode, sizeof(c->trust_mode), "%s", modes[trim & MODE]);
	config_route_add(c, ROUTED, "/srv/site", "web", false);
	if (trim & LIST)
		config_ids_add(&c->allowlist, LISTED);
	if (trim & AGENTS)
		config_ids_add(&c->agents, NAMED);
	if (trim & SCOPE)
		config_ids_add(&c->scope, ROUTED);
	return c;
}

/* What came out, in one word: the reason, or the open rules. */
static const char *
outcome(const struct gate *g)
{
	static char text[64];
	size_t i;

	if (g->reason != NULL)
		return g->reason;
	*text = '\0';
	for (i = 0; i < g->rule_count; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%s", i > 0 ? "+" : "", rule_rows[g->rules[i]].name);
	if (g->must_confirm)
		(void)strncat(text, "?", 2);
	if (g->is_agent)
		(void)strncat(text, " agent", 8);
	if (g->role == PERSON_OPERATOR)
		(void)strncat(text, " op", 4);
	return text;
}

#define C "comment.created"
#define M "message.created"
#define T "todo.created"
#define L "chat.line.created"
#define A "todo.assignment_changed"
#define D "card.completed"
#define BOTH "mentioned+subscribed"

static void
test_gate(void **state)
{
	static const struct {
		const char *type;
		int64_t creator, performer; /* 0: performed_by is null */
		const char *actor;
		int64_t bucket;
		unsigned trim;
		const char *want;
	} t[] = {
	    /* The order of the checks. */
	    {"what.ever", 0, 0, "", ROUTED, 0, "invalid_pointer"},
	    {C, BOSS, 0, "", 0, 0, "invalid_pointer"},
	    {C, BOSS, 0, "", -1, 0, "invalid_pointer"},
	    {"what.ever", AGENT, 0, "", ROUTED, 0, "not_in_matrix"},
	    {"comment.content_changed", BOSS, 0, "", ROUTED, 0,
		"not_in_matrix"},
	    {"boost.created", BOSS, 0, "", ROUTED, 0, "not_in_matrix"},
	    {C, AGENT, 0, "", ROUTED, 0, "agent_authored"},
	    {C, AGENT, 0, "agent", ROUTED, AGENTS, "agent_authored"},
	    {C, AGENT, 0, "", UNROUTED, SCOPE, "agent_authored"},
	    {C, BOSS, AGENT, "", ROUTED, 0, "agent_authored"},
	    {C, BOSS, FOREIGN, "", ROUTED, 0, "delegated"},
	    {C, BOSS, FOREIGN, "", UNROUTED, SCOPE, "delegated"},
	    {C, BOSS, 0, "", UNROUTED, SCOPE, "out_of_scope"},
	    {C, OTHER, 0, "", UNROUTED, SCOPE, "out_of_scope"},
	    {C, BOSS, 0, "", ROUTED, SCOPE, BOTH " op"},
	    {C, BOSS, 0, "person", ROUTED, SCOPE, BOTH " op"},

	    /* Agents. */
	    {C, NAMED, 0, "agent", ROUTED, 0, "agent_authored"},
	    {C, NAMED, 0, "", ROUTED, 0, "untrusted_performer"},
	    {C, NAMED, 0, "agent", ROUTED, AGENTS, "mentioned agent"},
	    {C, NAMED, 0, "", ROUTED, AGENTS, "mentioned agent"},
	    {C, FOREIGN, 0, "agent", ROUTED, 0, "agent_authored"},
	    {C, FOREIGN, 0, "agent", ROUTED, AGENTS, "agent_not_allowed"},
	    {C, FOREIGN, 0, "", ROUTED, 0, "untrusted_performer"},
	    {C, FOREIGN, 0, "", ROUTED, AGENTS, "untrusted_performer"},
	    {C, BOSS, NAMED, "person", ROUTED, AGENTS, "delegated"},
	    {C, NAMED, NAMED, "", ROUTED, AGENTS, "delegated"},
	    {C, BOSS, FOREIGN, "agent", ROUTED, 0, "agent_authored"},
	    {C, BOSS, FOREIGN, "agent", ROUTED, AGENTS, "agent_not_allowed"},
	    {C, NAMED, 0, "", UNROUTED, AGENTS, "no_route"},
	    {C, NAMED, 0, "", UNROUTED, AGENTS | SCOPE, "out_of_scope"},
	    {A, NAMED, 0, "", ROUTED, AGENTS, "assignment_not_operator"},
	    {D, NAMED, 0, "", ROUTED, AGENTS, "not_addressed"},
	    {A, NAMED, 0, "", UNROUTED, AGENTS, "no_route"},

	    /* The operator: every rule, in every mode. */
	    {M, BOSS, 0, "", ROUTED, OPERATOR, "mentioned op"},
	    {T, BOSS, 0, "", ROUTED, ALLOWLIST | LIST, "mentioned op"},
	    {"card.created", BOSS, 0, "", ROUTED, PROJECT, "mentioned op"},
	    {L, BOSS, 0, "", ROUTED, OPERATOR, "mentioned op"},
	    {A, BOSS, 0, "", ROUTED, OPERATOR, "assigned op"},
	    {"card.assignment_changed", BOSS, 0, "", ROUTED, PROJECT,
		"assigned op"},
	    {D, BOSS, 0, "", ROUTED, OPERATOR, "completed op"},
	    {"todo.completed", BOSS, 0, "", ROUTED, OPERATOR, "completed op"},

	    /* Where nothing is routed. */
	    {C, BOSS, 0, "", UNROUTED, OPERATOR, "mentioned op"},
	    {A, BOSS, 0, "", UNROUTED, OPERATOR, "assigned op"},
	    {D, BOSS, 0, "", UNROUTED, OPERATOR, "no_route"},
	    {C, OTHER, 0, "", UNROUTED, OPERATOR, "untrusted_performer"},
	    {C, BOSS, 0, "", ROUTED, UNREADABLE, "mentioned op"},
	    {D, BOSS, 0, "", ROUTED, UNREADABLE, "no_route"},

	    /* The allowlist. */
	    {C, LISTED, 0, "", ROUTED, ALLOWLIST | LIST, BOTH " op"},
	    {D, LISTED, 0, "", ROUTED, ALLOWLIST | LIST, "completed op"},
	    {A, LISTED, 0, "", ROUTED, ALLOWLIST | LIST,
		"assignment_not_operator"},
	    {A, LISTED, 0, "", ROUTED, ALLOWLIST | LIST | ASSIGN,
		"assigned op"},
	    {C, LISTED, 0, "", ROUTED, PROJECT | LIST, BOTH " op"},
	    {A, LISTED, 0, "", ROUTED, PROJECT | LIST,
		"assignment_not_operator"},
	    {A, LISTED, 0, "", ROUTED, PROJECT | LIST | ASSIGN, "assigned op"},

	    /* Anyone else. */
	    {C, OTHER, 0, "", ROUTED, OPERATOR, "untrusted_performer"},
	    {C, OTHER, 0, "", ROUTED, ALLOWLIST | LIST, "untrusted_performer"},
	    {A, OTHER, 0, "", ROUTED, OPERATOR, "assignment_not_operator"},
	    {A, OTHER, 0, "", ROUTED, ALLOWLIST | LIST | ASSIGN,
		"assignment_not_operator"},
	    {C, OTHER, 0, "", ROUTED, PROJECT, BOTH "?"},
	    {C, OTHER, 0, "", UNROUTED, PROJECT, "mentioned?"},
	    {D, OTHER, 0, "", ROUTED, PROJECT, "completed?"},
	    {D, OTHER, 0, "", UNROUTED, PROJECT, "no_route"},
	    {A, OTHER, 0, "", ROUTED, PROJECT, "assignment_not_operator"},
	};
	struct config *c;
	struct gate got;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		struct pointer p = {.event_id = 1,
		    .event_type = t[i].type,
		    .bucket_id = t[i].bucket,
		    .recording_id = 5,
		    .creator_id = t[i].creator,
		    .performed_by_id = {t[i].performer != 0, t[i].performer},
		    .actor_type = t[i].actor};

		print_message("gate %zu: %s\n", i, t[i].want);
		c = config_with(t[i].trim);
		gate_pass(&p, c, &got);
		assert_string_equal(outcome(&got), t[i].want);
		config_free(c);
	}
}

static void
test_author(void **state)
{
	static const struct {
		int64_t performer, author;
		bool is_agent; /* the author */
		bool by_agent; /* the gate let a named agent in */
		unsigned trim;
		enum author_is want;
	} t[] = {
	    {BOSS, BOSS, false, false, OPERATOR, AUTHOR_OPERATOR},
	    {BOSS, AGENT, true, false, OPERATOR, AUTHOR_AGENT},
	    {BOSS, AGENT, false, false, OPERATOR, AUTHOR_AGENT},
	    {BOSS, FOREIGN, true, false, PROJECT, AUTHOR_AGENT},
	    {BOSS, OTHER, false, false, OPERATOR, AUTHOR_STRANGER},
	    {BOSS, OTHER, false, false, ALLOWLIST | LIST, AUTHOR_STRANGER},
	    {BOSS, LISTED, false, false, ALLOWLIST | LIST, AUTHOR_OPERATOR},
	    {LISTED, BOSS, false, false, ALLOWLIST | LIST, AUTHOR_OPERATOR},
	    {BOSS, OTHER, false, false, PROJECT, AUTHOR_UNCONFIRMED},
	    {OTHER, OTHER, false, false, PROJECT, AUTHOR_PARTICIPANT},
	    {NAMED, NAMED, true, true, AGENTS, AUTHOR_PARTICIPANT},
	    {NAMED, NAMED, false, true, AGENTS, AUTHOR_STRANGER},
	    {NAMED, BOSS, false, true, AGENTS, AUTHOR_STRANGER},
	    {NAMED, AGENT, true, true, AGENTS, AUTHOR_AGENT},
	    {NAMED, OTHER, false, true, AGENTS | PROJECT, AUTHOR_STRANGER},
	};
	struct config *c;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		const struct gate g = {.is_agent = t[i].by_agent};
		const struct author a = {t[i].author, t[i].is_agent};

		print_message("author %zu\n", i);
		c = config_with(t[i].trim);
		assert_int_equal(
		    gate_author(c, &g, t[i].performer, &a), t[i].want);
		config_free(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gate),
	    cmocka_unit_test(test_author),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
