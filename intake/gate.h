/*
 * Who may direct the agent, as far as that is told without reading anything
 * (admission.md 1.3, 1.4, 2, 4). Pure: a pointer and one configuration.
 */
#ifndef INTAKE_GATE_H
#define INTAKE_GATE_H

#include "common/config.h"

/* An event as the ledger has it, without any text of Basecamp's. */
struct pointer {
	int64_t event_id, revision, rerun;
	const char *event_type;
	int64_t bucket_id, recording_id, creator_id;
	struct opt performed_by_id;
	const char *actor_type;
	int64_t seen_at_ns;
	char blocked_for[65];     /* the present reason, or "" */
	int64_t blocked_since_ns; /* since when for that reason */
};

/* What can make an event a request, in no order of weight. */
enum rule {
	RULE_MENTIONED,
	RULE_SUBSCRIBED,
	RULE_ASSIGNED,
	RULE_COMPLETED,
	RULE_COUNT
};
#define RULES_OF_TYPE_MAX 2

struct rule_row {
	const char *name;
	bool is_operator_only;
	bool needs_route;
	bool acknowledges; /* a person waits: the guard is armed */
	bool checks_author;
};
extern const struct rule_row rule_rows[RULE_COUNT];

/* Lower is less: where two apply, the smaller one counts. */
enum person_role { PERSON_PARTICIPANT, PERSON_OPERATOR };

struct gate {
	const char *reason; /* of a discard; NULL: rules are open */
	enum rule rules[RULES_OF_TYPE_MAX]; /* open ones, in their order */
	size_t rule_count;
	bool must_confirm; /* that the performer is a member */
	bool is_agent;     /* an agent that agent_ids names */
	enum person_role role;
};

/* The agent that carried the act out, else its author. */
int64_t pointer_performer(const struct pointer *p);
/* Is the bucket routed, as far as the file can be read? */
const struct config_route *gate_route(const struct config *c, int64_t bucket);
void gate_pass(
    const struct pointer *p, const struct config *c, struct gate *out);

/* The person who wrote a recording, against who acted (admission.md 4.3). */
enum author_is {
	AUTHOR_OPERATOR,
	AUTHOR_PARTICIPANT,
	AUTHOR_UNCONFIRMED, /* ask whether it is a member */
	AUTHOR_AGENT,       /* discard: agent_authored */
	AUTHOR_STRANGER     /* discard: untrusted_author */
};
struct author {
	int64_t id;
	bool is_agent; /* personable_type "Agent" */
};
enum author_is gate_author(const struct config *c, const struct gate *g,
    int64_t performer, const struct author *author);

#endif
