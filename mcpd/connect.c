#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "mcpd/instruction.h"
#include "mcpd/refusal.h"
#include "mcpd/tools.h"

/*
 * The connect domain (ledger.md 6). What a report may say is the ledger's to
 * judge, after the token and the pull: a superseded worker hears that, and not
 * that its report was wrong. So what does not fit a message is passed on in a
 * shape that the ledger refuses for the same reason.
 */
#define LINKS_MAX 20
#define LINK_MAX 2048
#define OUTCOME_MAX 64

static void
answer_instruction(struct call *call, struct msg *reply)
{
	if (reply->type == MSG_FAILED)
		call_answer(call, refusal_of(&reply->failed), true);
	else
		call_answer(call,
		    instruction_json(
			&reply->instruction, call->server->agent_id),
		    false);
}

static void
answer_report(struct call *call, struct msg *reply)
{
	if (reply->type == MSG_FAILED)
		call_answer(call, refusal_of(&reply->failed), true);
	else
		call_answer(call, receipt_json(&reply->report_is), false);
}

static void
start_get(struct call *call, const struct arguments *args)
{
	struct msg m = {.type = MSG_GET_DISPATCH};

	m.get_dispatch.token = call->server->token;
	m.get_dispatch.event_id = args->event_id.value;
	call_ask(call, call->server->ledger, &m, answer_instruction);
}

static void
start_ack(struct call *call, const struct arguments *args)
{
	struct msg m = {.type = MSG_ACK_DISPATCH};

	m.ack_dispatch.token = call->server->token;
	m.ack_dispatch.event_id = args->event_id.value;
	m.ack_dispatch.ack_id = args->ack_id;
	call_ask(call, call->server->ledger, &m, answer_report);
}

/* One link too many and one byte too many say all that there is to say. */
static char *
links_text(const json_t *links)
{
	json_t *out = json_array();
	const json_t *link;
	char *text;
	size_t i, len;

	json_array_foreach (links, i, link) {
		if (i > LINKS_MAX)
			break;
		/* A character has four bytes at most: too long it stays. */
		len = utf8_cut(json_string_value(link),
		    json_string_length(link), LINK_MAX + 4);
		(void)json_array_append_new(
		    out, json_stringn(json_string_value(link), len));
	}
	text = json_dumps(out, JSON_COMPACT);
	json_decref(out);
	return text;
}

/* The outcome as a message can carry it; no outcome is cut into a valid one. */
static char *
outcome_text(const struct json_text *outcome)
{
	if (outcome->has_nul || outcome->len > OUTCOME_MAX)
		return xstrdup("unreadable");
	return xstrndup(outcome->bytes, outcome->len);
}

static void
start_complete(struct call *call, const struct arguments *args)
{
	struct msg m = {.type = MSG_COMPLETE_DISPATCH};
	char *links = links_text(args->links);
	char *outcome = outcome_text(&args->outcome);

	m.complete_dispatch.token = call->server->token;
	m.complete_dispatch.event_id = args->event_id.value;
	m.complete_dispatch.outcome = outcome;
	m.complete_dispatch.links = (struct blob){links, strlen(links)};
	m.complete_dispatch.reply_id = args->reply_id;
	call_ask(call, call->server->ledger, &m, answer_report);
	free(outcome);
	free(links);
}

static const struct param get_params[] = {
    {"event_id", PARAM_ID, JSON_MAY_BE_ABSENT, PARAM_AT(event_id)},
};
static const struct param ack_params[] = {
    {"event_id", PARAM_ID, JSON_REQUIRED, PARAM_AT(event_id)},
    {"ack_id", PARAM_ID, JSON_MAY_BE_NULL, PARAM_AT(ack_id)},
};
static const struct param complete_params[] = {
    {"event_id", PARAM_ID, JSON_REQUIRED, PARAM_AT(event_id)},
    {"outcome", PARAM_TEXT, JSON_REQUIRED, PARAM_AT(outcome)},
    {"links", PARAM_LINKS, JSON_MAY_BE_NULL, PARAM_AT(links)},
    {"reply_id", PARAM_ID, JSON_MAY_BE_NULL, PARAM_AT(reply_id)},
};

const struct action connect_actions[CONNECT_ACTIONS] = {
    {"ack_dispatch", ROWS(ack_params), start_ack},
    {"complete_dispatch", ROWS(complete_params), start_complete},
    {"get_dispatch", ROWS(get_params), start_get},
};
