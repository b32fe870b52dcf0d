#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mention.h"
#include "common/xmalloc.h"
#include "intake/decide.h"
#include "intake/members.h"
#include "intake/timer.h"

/* The steps, in their order; a step names the one that follows. */
enum step {
	STEP_GATE,      /* what needs no reading */
	STEP_PERFORMER, /* is who acted a member? */
	STEP_RECORDING, /* what was written, and by whom */
	STEP_RULES,     /* does a rule make it a request? */
	STEP_AUTHOR,    /* is who wrote it a member? */
	STEP_ROUTE,     /* admitted, if there is somewhere to do it */
	STEP_VERDICT,   /* told */
	STEPS,
	STEP_WAIT /* a read goes on; its end names the next step */
};

struct decision {
	struct api *api;
	struct lists *lists;
	struct policy *policy;
	struct pointer p; /* its texts are the decision's own */
	struct event *begin;
	struct read_budget budget;
	struct gate gate;
	struct summary summary;
	enum person_role role;
	int64_t requester_id;
	enum rule trigger;
	struct recording_read *recording;
	struct member_read *member;
	enum step after_member;
	struct verdict verdict;
	decided done;
	void *arg;
};

static void decision_go(struct decision *d, enum step step);

static const struct config *
config_of(const struct decision *d)
{
	return d->policy->config;
}

static enum step
discard(struct decision *d, const char *reason)
{
	d->verdict.state = VERDICT_DISCARDED;
	d->verdict.reason = reason;
	return STEP_VERDICT;
}

static enum step
block(struct decision *d, const char *reason)
{
	d->verdict.state = VERDICT_BLOCKED;
	d->verdict.reason = reason;
	if (strcmp(reason, "throttled") == 0)
		d->verdict.retry_at_ns = d->budget.retry_at_ns;
	return STEP_VERDICT;
}

/* What a read that did not succeed blocks a record with. */
static const char *const block_reasons[READ_OUTCOMES] = {
    [READ_FAILED] = "read_failed",
    [READ_THROTTLED] = "throttled",
    [READ_UNRESOLVED] = "read_unresolved",
    [READ_OTHER_BUCKET] = "bucket_mismatch",
    [READ_UNROUTABLE] = "unroutable",
    [READ_UNVERIFIED] = "trust_unverified",
};

/* ---- the steps ---------------------------------------------------------- */

/*
 * Without a readable file nobody knows what is routed: what depends on that
 * is blocked, and nothing is read.
 */
static enum step
step_gate(struct decision *d)
{
	const char *reason;

	d->requester_id = pointer_performer(&d->p);
	gate_pass(&d->p, config_of(d), &d->gate);
	reason = d->gate.reason;
	d->role = d->gate.role;
	if (reason != NULL &&
	    (config_of(d)->readable || strcmp(reason, "no_route") != 0))
		return discard(d, reason);
	if (!config_of(d)->readable)
		return block(d, "config_unreadable");
	return d->gate.must_confirm ? STEP_PERFORMER : STEP_RECORDING;
}

static void
member_told(enum read_outcome outcome, bool is_member, void *arg)
{
	struct decision *d = arg;
	enum step next = d->after_member;

	d->member = NULL;
	if (outcome != READ_OK)
		next = block(d, block_reasons[outcome]);
	else if (!is_member)
		next = discard(d,
		    next == STEP_RECORDING ? "untrusted_performer"
					   : "untrusted_author");
	decision_go(d, next);
}

static enum step
member_ask(struct decision *d, int64_t person, enum step next)
{
	d->after_member = next;
	d->member = member_read(d->api, d->lists, d->p.bucket_id, person,
	    d->p.seen_at_ns, config_of(d)->limits, &d->budget, member_told, d);
	return STEP_WAIT;
}

static enum step
step_performer(struct decision *d)
{
	return member_ask(d, pointer_performer(&d->p), STEP_RECORDING);
}

static void
recording_told(enum read_outcome outcome, struct summary *s, void *arg)
{
	struct decision *d = arg;
	enum step next = STEP_RULES;

	d->recording = NULL;
	if (outcome == READ_OK) {
		d->summary = *s;
		*s = (struct summary){0};
	} else {
		next = block(d, block_reasons[outcome]);
	}
	decision_go(d, next);
}

static enum step
step_recording(struct decision *d)
{
	d->recording = recording_read(d->api, d->lists, &d->p,
	    config_of(d)->limits, &d->budget, recording_told, d);
	return STEP_WAIT;
}

static bool
status_is(const struct decision *d, const char *status)
{
	return strcmp(d->summary.status.bytes, status) == 0;
}

/* Without these nobody could be asked back, or trusted. */
static bool
is_incomplete(const struct decision *d)
{
	const struct summary *s = &d->summary;

	if (s->creator.id <= 0)
		return true;
	if (strcmp(d->p.event_type, "comment.created") == 0)
		return s->parent_id <= 0;
	return strcmp(d->p.event_type, "chat.line.created") == 0 &&
	    s->campfire_id <= 0;
}

/* ---- the rules ---------------------------------------------------------- */

/* The rule does not apply: STEP_RULES says "the next one". */
#define NEXT_RULE STEP_RULES

static enum step
author_passes(struct decision *d, enum person_role role)
{
	if (role < d->role)
		d->role = role;
	if (role == PERSON_PARTICIPANT)
		d->requester_id = d->summary.creator.id;
	return STEP_ROUTE;
}

/* The words count as their author's, who need not be who acted. */
static enum step
author_check(struct decision *d)
{
	switch (gate_author(config_of(d), &d->gate, pointer_performer(&d->p),
	    &d->summary.creator)) {
	case AUTHOR_OPERATOR:
		return author_passes(d, PERSON_OPERATOR);
	case AUTHOR_PARTICIPANT:
		return author_passes(d, PERSON_PARTICIPANT);
	case AUTHOR_UNCONFIRMED:
		return member_ask(d, d->summary.creator.id, STEP_AUTHOR);
	case AUTHOR_AGENT:
		return discard(d, "agent_authored");
	case AUTHOR_STRANGER:
		break;
	}
	return discard(d, "untrusted_author");
}

static enum step
step_author(struct decision *d)
{
	return author_passes(d, PERSON_PARTICIPANT);
}

static enum step
try_mentioned(struct decision *d)
{
	const struct json_text *content = &d->summary.content;

	if (!mention_has(content->bytes, content->len, config_of(d)->agent_id))
		return NEXT_RULE;
	/*
	 * A named agent's mention is admitted only under the caps on agents
	 * talking to each other, which are not kept yet.
	 */
	if (d->gate.is_agent)
		return block(d, "rule_not_served");
	return author_check(d);
}

/*
 * A rule that this build does not serve yet. Whether it would have admitted
 * is not known, so the record is not discarded: it is blocked, untimed, and
 * status counts it under this reason until a person has it decided anew.
 */
static enum step
try_unserved(struct decision *d)
{
	return block(d, "rule_not_served");
}

static enum step (*const tries[])(struct decision *d) = {
    [RULE_MENTIONED] = try_mentioned,
    [RULE_SUBSCRIBED] = try_unserved,
    [RULE_ASSIGNED] = try_unserved,
    [RULE_COMPLETED] = try_unserved,
};
static_assert(
    sizeof(tries) / sizeof(tries[0]) == RULE_COUNT, "each rule is tried");

/* A mention of the agent, even a refused one, never falls to the next rule. */
static enum step
step_rules(struct decision *d)
{
	enum step next;
	size_t i;

	if (status_is(d, "drafted") || status_is(d, "trashed"))
		return discard(d, "stale");
	if (is_incomplete(d))
		return block(d, "read_failed");
	d->verdict.recording_url =
	    d->summary.app_url.has_nul ? NULL : d->summary.app_url.bytes;
	d->verdict.route = gate_route(config_of(d), d->p.bucket_id);
	for (i = 0; i < d->gate.rule_count; i++) {
		d->trigger = d->gate.rules[i];
		next = tries[d->trigger](d);
		if (next != NEXT_RULE)
			return next;
	}
	return discard(d, "not_addressed");
}

/* The operator's own words, moved by nobody else. */
static bool
is_owner(const struct decision *d)
{
	int64_t boss = config_of(d)->operator_id;

	return d->role == PERSON_OPERATOR && pointer_performer(&d->p) == boss &&
	    d->summary.creator.id == boss &&
	    (d->trigger == RULE_MENTIONED || d->trigger == RULE_ASSIGNED);
}

static enum step
step_route(struct decision *d)
{
	struct snapshot_facts facts = {
	    .summary = &d->summary,
	    .role = d->role,
	    .is_owner = is_owner(d),
	    .names_requester = d->requester_id == d->summary.creator.id,
	};

	d->verdict.trigger = rule_rows[d->trigger].name;
	d->verdict.acknowledge = rule_rows[d->trigger].acknowledges;
	verdict_place(&d->verdict, &d->p, &d->summary);
	if (d->verdict.route == NULL)
		return block(d, "no_route"); /* the rest stays, to answer it */
	d->verdict.state = VERDICT_ADMITTED;
	verdict_snapshot(&d->verdict.snapshot, &facts);
	return STEP_VERDICT;
}

/* ---- running them ------------------------------------------------------- */

static void
decision_free(struct decision *d)
{
	recording_cancel(d->recording);
	member_cancel(d->member);
	event_free(d->begin);
	summary_free(&d->summary);
	buffer_free(&d->verdict.snapshot);
	policy_unref(d->policy);
	free((char *)d->p.event_type);
	free((char *)d->p.actor_type);
	free(d);
}

static enum step
step_verdict(struct decision *d)
{
	d->verdict.requester_id = d->requester_id;
	d->done(&d->p, d->policy, &d->verdict, d->arg);
	decision_free(d);
	return STEP_WAIT;
}

static enum step (*const steps[])(struct decision *d) = {
    [STEP_GATE] = step_gate,
    [STEP_PERFORMER] = step_performer,
    [STEP_RECORDING] = step_recording,
    [STEP_RULES] = step_rules,
    [STEP_AUTHOR] = step_author,
    [STEP_ROUTE] = step_route,
    [STEP_VERDICT] = step_verdict,
};
static_assert(
    sizeof(steps) / sizeof(steps[0]) == STEPS, "each step has its function");

static void
decision_go(struct decision *d, enum step step)
{
	while (step != STEP_WAIT)
		step = steps[step](d);
}

static void
decision_begin(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	decision_go(arg, STEP_GATE);
}

struct decision *
decision_start(struct api *api, struct lists *lists, struct policy *policy,
    const struct pointer *p, decided done, void *arg)
{
	struct decision *d = xcalloc(1, sizeof(*d));

	d->api = api;
	d->lists = lists;
	d->policy = policy_ref(policy);
	d->p = *p;
	d->p.event_type = xstrdup(p->event_type);
	d->p.actor_type = xstrdup(p->actor_type);
	d->budget.left_ms = policy->config->limits[LIMIT_throttle_budget];
	d->done = done;
	d->arg = arg;
	d->begin = timer_new(api->base, decision_begin, d);
	timer_start(d->begin, 0);
	return d;
}

void
decision_cancel(struct decision *d)
{
	decision_free(d);
}

int64_t
decision_event(const struct decision *d)
{
	return d->p.event_id;
}
