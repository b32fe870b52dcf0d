#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "mcpd/markup.h"
#include "mcpd/post.h"
#include "mcpd/refusal.h"
#include "mcpd/tools.h"

/*
 * The thread domain (design 6): the place that a pulled event came from.
 * Whether it was pulled, and where an answer goes, the ledger knows.
 */

/*
 * Basecamp bounds a boost at 16 characters, and says so itself; this bound
 * only keeps a letter from being sent as one.
 */
#define BOOST_BYTES_MAX 64
#define REPLY_BYTES_MAX 65536
#define CURSOR_MAX 64

/* The state of a call that reads. */
struct reading {
	int64_t event_id;
	char cursor[CURSOR_MAX + 1]; /* "": the newest page */
};

static const struct json_rules page_rules = {
    .max_bytes = 1048576,
    .max_depth = 64,
    .max_members = 100000,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

static void
answer_page(struct call *call, struct msg *reply)
{
	struct error e;
	json_t *page;

	if (reply->type == MSG_FAILED) {
		call_answer(call, refusal_of(&reply->failed), true);
		return;
	}
	page = json_read(
	    reply->thread.json.bytes, reply->thread.json.len, &page_rules, &e);
	if (page == NULL) {
		log_warnx("a page of a thread cannot be read: %s", e.text);
		call_refuse(call, "unavailable",
		    "The thread could not be read. Try again.");
		return;
	}
	call_answer_whole(call, page);
}

static void
page_ask(struct call *call)
{
	const struct reading *reading = call->state;
	struct msg m = {.type = MSG_READ_THREAD};

	m.read_thread.event_id = reading->event_id;
	m.read_thread.cursor = reading->cursor;
	call_ask(call, call->server->intake, &m, answer_page);
}

/* Intake knows the attempt alone: whether it is still ours is asked first. */
static void
start_read(struct call *call, const struct arguments *args)
{
	struct reading *reading;

	if (args->cursor.has_nul || args->cursor.len > CURSOR_MAX) {
		call_refuse_params(call, "cursor is none that a page gave");
		return;
	}
	reading = xcalloc(1, sizeof(*reading));
	reading->event_id = args->event_id.value;
	if (args->cursor.len > 0)
		memcpy(reading->cursor, args->cursor.bytes, args->cursor.len);
	call->state = reading;
	call_check_token(call, page_ask);
}

static void
start_boost(struct call *call, const struct arguments *args)
{
	const struct json_span empty = {"", 0};
	struct json_span content = {args->content.bytes, args->content.len};
	struct json_span line;
	char *text = text_single_line(content.bytes, content.len, &line.len);

	line.bytes = text;
	if (line.len == 0 || line.len > BOOST_BYTES_MAX)
		call_refuse_params(call,
		    "content of a boost is %s: a few words or an emoji, at "
		    "most 16 characters",
		    line.len == 0 ? "blank" : "too long");
	else
		post_start(call, POST_ACK, args->event_id.value, &content,
		    &empty, &line);
	free(text);
}

static const struct format {
	const char *name;
	char *(*to_html)(const char *text, size_t len, size_t *out_len);
} formats[] = {
    {"markdown", markup_markdown_html}, /* when none is named */
    {"plain", markup_plain_html},
};

static const struct format *
format_find(const struct json_text *name)
{
	size_t i;

	if (name->bytes == NULL)
		return &formats[0];
	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!name->has_nul && strcmp(formats[i].name, name->bytes) == 0)
			return &formats[i];
	}
	return NULL;
}

/* Both forms go along: which one is posted hangs on the event's place. */
static void
post_reply(struct call *call, int64_t event_id, const struct format *format,
    const struct json_span *content)
{
	struct json_span comment, line;
	char *html =
	    format->to_html(content->bytes, content->len, &comment.len);
	char *text = markup_plain_text(content->bytes, content->len, &line.len);

	comment.bytes = html;
	line.bytes = text;
	if (line.len == 0)
		call_refuse_params(call, "content is blank");
	else if (comment.len > POST_BODY_MAX || line.len > POST_BODY_MAX)
		call_refuse_params(call, "content is too long once it is HTML");
	else
		post_start(
		    call, POST_REPLY, event_id, content, &comment, &line);
	free(html);
	free(text);
}

static void
start_reply(struct call *call, const struct arguments *args)
{
	struct json_span content = {args->content.bytes, args->content.len};
	const struct format *format = format_find(&args->format);

	if (format == NULL)
		call_refuse_params(
		    call, "format is neither markdown nor plain");
	else if (content.len > REPLY_BYTES_MAX)
		call_refuse_params(
		    call, "content is longer than %d bytes", REPLY_BYTES_MAX);
	else
		post_reply(call, args->event_id.value, format, &content);
}

static const struct param read_params[] = {
    {"event_id", PARAM_ID, JSON_REQUIRED, PARAM_AT(event_id)},
    {"cursor", PARAM_TEXT, JSON_MAY_BE_NULL, PARAM_AT(cursor)},
};
static const struct param boost_params[] = {
    {"event_id", PARAM_ID, JSON_REQUIRED, PARAM_AT(event_id)},
    {"content", PARAM_TEXT, JSON_REQUIRED, PARAM_AT(content)},
};
static const struct param reply_params[] = {
    {"event_id", PARAM_ID, JSON_REQUIRED, PARAM_AT(event_id)},
    {"content", PARAM_TEXT, JSON_REQUIRED, PARAM_AT(content)},
    {"format", PARAM_TEXT, JSON_MAY_BE_NULL, PARAM_AT(format)},
};

const struct action thread_actions[THREAD_ACTIONS] = {
    {"boost", ROWS(boost_params), start_boost},
    {"read", ROWS(read_params), start_read},
    {"reply", ROWS(reply_params), start_reply},
};
