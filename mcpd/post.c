#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/digest.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "mcpd/post.h"
#include "mcpd/refusal.h"

/* The state of a call that posts; its bodies follow it in one allocation. */
struct post {
	const char *kind;
	int64_t event_id;
	char hash[DIGEST_HEX_SIZE];
	struct blob comment, line;
	int64_t until;     /* monotonic ms: waited long enough then */
	int64_t intent_id; /* 0: not known yet */
	bool is_unsettled; /* settled again while it was being asked about */
	char bytes[];
};

static void post_answered(struct call *call, struct msg *reply);

static void
post_ask(struct call *call)
{
	struct post *post = call->state;
	struct msg m = {.type = MSG_POST};

	m.post.token = call->server->token;
	m.post.event_id = post->event_id;
	m.post.kind = post->kind;
	m.post.hash = post->hash;
	m.post.comment = post->comment;
	m.post.line = post->line;
	post->is_unsettled = false;
	call_ask(call, call->server->ledger, &m, post_answered);
}

/*
 * How an intent stands, in the worker's words. What is pending is sent by and
 * by; what is in doubt is a person's to clear up.
 */
static const struct standing {
	const char *state; /* of the ledger's row */
	const char *word;
	bool is_final, is_error;
	const char *text;
} standings[] = {
    {"pending", "pending", false, false,
	"It will be posted. Ask again with the same content for its id."},
    {"sending", "pending", false, false,
	"It is being posted. Ask again with the same content for its id."},
    {"sent", "sent", true, false, NULL},
    {"indeterminate", "in_doubt", true, false,
	"It may have been posted or not; a person will look at it. Do not "
	"post it again."},
    {"abandoned", "in_doubt", true, false,
	"A person gave it up: nobody knows whether it was posted. Do not "
	"post it again."},
    {"canceled", "canceled", true, true,
	"It was not posted: it was called off."},
};

static const struct standing refused = {"canceled", "refused", true, true,
    "Basecamp refused it: it was not posted."};

static const struct standing withheld = {"canceled", "refused", true, true,
    "It holds a credential of the connector, so it was not posted. Leave that "
    "out."};

static const struct standing *
standing_of(const struct msg_post_is *is)
{
	size_t i;

	if (is->refused)
		return strcmp(is->note, NOTE_HOLDS_CREDENTIAL) == 0 ? &withheld
								    : &refused;
	for (i = 0; i < sizeof(standings) / sizeof(standings[0]); i++) {
		if (strcmp(standings[i].state, is->state) == 0)
			return &standings[i];
	}
	return &standings[0];
}

static void
post_say(struct call *call, const struct msg_post_is *is)
{
	const struct standing *standing = standing_of(is);
	json_t *json = json_pack("{s:s}", "state", standing->word);

	if (is->receipt_id.has)
		(void)json_object_set_new(
		    json, "id", json_integer(is->receipt_id.value));
	if (is->message_kind[0] != '\0')
		(void)json_object_set_new(
		    json, "kind", json_string(is->message_kind));
	if (standing->text != NULL)
		(void)json_object_set_new(
		    json, "message", json_string(standing->text));
	call_answer(call, json, standing->is_error);
}

/* It waited as long as it may: what stands is the answer. */
static void
post_late(struct call *call)
{
	struct msg_post_is is = {
	    .state = "pending", .message_kind = "", .note = ""};

	post_say(call, &is);
}

static void
post_answered(struct call *call, struct msg *reply)
{
	struct post *post = call->state;
	struct timeval tv;
	int64_t left;

	if (reply->type == MSG_FAILED) {
		call_answer(call, refusal_of(&reply->failed), true);
		return;
	}
	left = post->until - clock_monotonic_ms();
	if (standing_of(&reply->post_is)->is_final || left <= 0) {
		post_say(call, &reply->post_is);
		return;
	}
	post->intent_id = reply->post_is.intent_id;
	call->late = post_late;
	tv = (struct timeval){left / 1000, left % 1000 * 1000};
	if (event_add(call->deadline, &tv) == -1)
		fatalx("post: no timer");
	if (post->is_unsettled)
		post_ask(call);
}

void
post_settled(struct call *call, int64_t intent_id)
{
	struct post *post = call->state;

	if (call->answered != post_answered || call->stream == NULL)
		return;
	if (intent_id != 0 && intent_id != post->intent_id)
		return;
	if (call->is_asking)
		post->is_unsettled = true;
	else
		post_ask(call);
}

static struct blob
post_keep(char **at, const struct json_span *body)
{
	struct blob kept = {*at, body->len};

	memcpy(*at, body->bytes, body->len);
	*at += body->len;
	return kept;
}

void
post_start(struct call *call, const char *kind, int64_t event_id,
    const struct json_span *content, const struct json_span *comment,
    const struct json_span *line)
{
	struct server *s = call->server;
	struct post *post =
	    xcalloc(1, sizeof(*post) + comment->len + line->len);
	char *at = post->bytes;

	post->kind = kind;
	post->event_id = event_id;
	digest_sha256_hex(content->bytes, content->len, post->hash);
	post->comment = post_keep(&at, comment);
	post->line = post_keep(&at, line);
	post->until = clock_monotonic_ms() +
	    (s->post_wait_ms < s->call_deadline_ms ? s->post_wait_ms
						   : s->call_deadline_ms);
	call->state = post;
	post_ask(call);
}
