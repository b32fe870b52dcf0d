#include <stdio.h>
#include <string.h>

#include "supervisor/settings.h"

static const struct place at_agent = {NULL, "agent"};
static const struct place at_identity = {&at_agent, "identity_id"};
static const struct place at_trust = {NULL, "trust"};
static const struct place at_operator = {&at_trust, "operator_id"};
static const struct place at_allowlist = {&at_trust, "allowlist_ids"};
static const struct place at_assignments = {&at_trust, "allow_assignments"};
static const struct place at_agents = {&at_trust, "agent_ids"};

#define FIELD(field) offsetof(struct draft, field)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- the keys ----------------------------------------------------------- */

static int
word_among(const struct document *d, const struct place *at,
    const char *const *words, const char *word)
{
	char known[128] = "";
	size_t i, len = 0;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], word) == 0)
			return 0;
		len += (size_t)snprintf(known + len, sizeof(known) - len,
		    "%s%s", i == 0 ? "" : ", ", words[i]);
	}
	return document_refuse(d, at, "not one of these: %s", known);
}

static int
read_kind(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	static const char *const kinds[] = {"agent", "bot_user", NULL};
	struct draft *t = target;

	if (document_string(d, at, value, key, target) == -1)
		return -1;
	return word_among(d, at, kinds, t->kind);
}

static int
read_mode(const struct document *d, const struct place *at, const json_t *value,
    const struct document_key *key, void *target)
{
	static const char *const modes[] = {
	    "operator", "allowlist", "project", NULL};
	struct draft *t = target;

	if (document_string(d, at, value, key, target) == -1)
		return -1;
	return word_among(d, at, modes, t->mode);
}

static int
read_id_into(const struct document *d, const struct place *at,
    const json_t *value, void *target)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return document_refuse(
		    d, at, "not an id: a whole number above 0");
	config_ids_add(target, json_integer_value(value));
	return 0;
}

static int
read_allowlist(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	(void)key;
	return document_array(
	    d, at, value, read_id_into, &t->settings->config->allowlist);
}

static int
read_agents(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct draft *t = target;

	(void)key;
	return document_array(
	    d, at, value, read_id_into, &t->settings->config->agents);
}

static const struct document_key agent_keys[] = {
    {"person_id", true, document_int, FIELD(agent_id), 1, INT64_MAX},
    {"kind", true, read_kind, FIELD(kind), 1, 16},
    {"identity_id", false, document_int, FIELD(identity_id), 0, INT64_MAX},
};

static const struct document_key trust_keys[] = {
    {"mode", true, read_mode, FIELD(mode), 1, 16},
    {"operator_id", true, document_int, FIELD(operator_id), 1, INT64_MAX},
    {"allowlist_ids", false, read_allowlist, 0, 0, 0},
    {"allow_assignments", false, document_bool, FIELD(allow_assignments), 0, 0},
    {"agent_ids", false, read_agents, 0, 0, 0},
    {"agent_thread_cap", false, document_int, FIELD(thread_cap), 0, 100},
    {"agent_daily_cap", false, document_int, FIELD(daily_cap), 0, 100},
};

int
settings_read_agent(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	(void)key;
	return document_object(
	    d, at, value, agent_keys, COUNT(agent_keys), target);
}

int
settings_read_trust(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	(void)key;
	return document_object(
	    d, at, value, trust_keys, COUNT(trust_keys), target);
}

/* ---- what no key shows by itself (admission.md 4.1, 5.2) ---------------- */

static int
check_identity(const struct document *d, const struct draft *t)
{
	bool is_bot = strcmp(t->kind, "bot_user") == 0;

	if (is_bot && t->identity_id == 0)
		return document_refuse(
		    d, &at_identity, "a bot_user needs its identity id");
	if (!is_bot && t->identity_id != 0)
		return document_refuse(
		    d, &at_identity, "only a bot_user has one");
	return 0;
}

static int
check_operator(const struct document *d, const struct draft *t)
{
	if (t->operator_id == t->agent_id)
		return document_refuse(d, &at_operator, "is the agent itself");
	return 0;
}

static int
check_allowlist(const struct document *d, const struct draft *t)
{
	const struct config_ids *allowed = &t->settings->config->allowlist;

	if (strcmp(t->mode, "operator") == 0 && allowed->count != 0)
		return document_refuse(d, &at_allowlist,
		    "mode operator has no list: use mode allowlist");
	if (config_ids_has(allowed, t->agent_id))
		return document_refuse(
		    d, &at_allowlist, "names the agent itself");
	return 0;
}

static int
check_assignments(const struct document *d, const struct draft *t)
{
	const struct config_ids *allowed = &t->settings->config->allowlist;
	size_t others = allowed->count;

	if (config_ids_has(allowed, t->operator_id))
		others--;
	if (t->allow_assignments && others == 0)
		return document_refuse(d, &at_assignments,
		    "needs an allowlist that names somebody besides the "
		    "operator");
	return 0;
}

static int
check_agents(const struct document *d, const struct draft *t)
{
	const struct config *c = t->settings->config;
	size_t i;

	if (config_ids_has(&c->agents, t->agent_id))
		return document_refuse(d, &at_agents, "names the agent itself");
	if (config_ids_has(&c->agents, t->operator_id))
		return document_refuse(d, &at_agents, "names the operator");
	for (i = 0; i < c->agents.count; i++) {
		if (config_ids_has(&c->allowlist, c->agents.list[i]))
			return document_refuse(d, &at_agents,
			    "%lld is on the allowlist too",
			    (long long)c->agents.list[i]);
	}
	return 0;
}

int
settings_check_trust(const struct document *d, const struct draft *t)
{
	static int (*const checks[])(
	    const struct document *d, const struct draft *t) = {check_identity,
	    check_operator, check_allowlist, check_assignments, check_agents};
	size_t i;

	for (i = 0; i < COUNT(checks); i++) {
		if (checks[i](d, t) == -1)
			return -1;
	}
	return 0;
}
