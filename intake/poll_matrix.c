/*
 * What Basecamp's answer to a poll means: one table by status, and a reader
 * for the bodies that say more (feed.md 1.5).
 */
#include <stdio.h>
#include <string.h>

#include "intake/poll.h"

#define POSITION_PREFIX "Unrecognized position"

static const struct json_rules body_rules = {
    .max_bytes = HTTP_ERROR_BODY_MAX,
    .max_depth = 32,
    .max_members = 10000,
};

/* Sets RESULT's kind and members from an error's body. */
typedef void (*body_reader)(json_t *body, struct poll_result *result);

static void
malformed(struct poll_result *r, const char *what)
{
	r->kind = POLL_MALFORMED;
	(void)snprintf(
	    r->text, sizeof(r->text), "http %d: %s", r->status, what);
}

static bool
text_is(const struct json_text *text, const char *word)
{
	return text->len == strlen(word) &&
	    memcmp(text->bytes, word, text->len) == 0;
}

static void
read_400(json_t *body, struct poll_result *r)
{
	struct json_text reason = {0};

	if (json_member_string(
		body, "error", JSON_REQUIRED, &r->message, NULL) == -1) {
		malformed(r, "no error text");
		return;
	}
	if (json_member_string(
		body, "reason", JSON_MAY_BE_NULL, &reason, NULL) == -1) {
		malformed(r, "reason is no text");
		return;
	}
	if (reason.bytes == NULL)
		/* An older server, or none of the feed at all. */
		r->kind = r->message.len >= strlen(POSITION_PREFIX) &&
			memcmp(r->message.bytes, POSITION_PREFIX,
			    strlen(POSITION_PREFIX)) == 0
		    ? POLL_POSITION_INVALID
		    : POLL_FILTER_INVALID;
	else if (text_is(&reason, "invalid_position"))
		r->kind = POLL_POSITION_INVALID;
	else if (text_is(&reason, "invalid_filter"))
		r->kind = POLL_FILTER_INVALID;
	else
		malformed(r, "an unknown reason");
}

static bool
is_digest(const json_t *body, const char *name)
{
	struct json_text t = {0};

	return json_member_string(body, name, JSON_REQUIRED, &t, NULL) == 0 &&
	    t.len == 16 && !t.has_nul &&
	    strspn(t.bytes, "0123456789abcdef") == 16;
}

static void
read_409(json_t *body, struct poll_result *r)
{
	struct json_text error = {0};

	if (json_member_string(body, "error", JSON_REQUIRED, &error, NULL) ==
		-1 ||
	    !is_digest(body, "position_digest") ||
	    !is_digest(body, "filters_digest"))
		malformed(r, "not the digests of two filter sets");
}

/* An inbox's 410 has no epoch: it must never be resumed here. */
static void
read_410(json_t *body, struct poll_result *r)
{
	struct json_text resume = {0};

	if (json_member_int(body, "epoch_after_id", JSON_REQUIRED,
		&r->epoch_after_id, NULL) == -1 ||
	    r->epoch_after_id < 0) {
		malformed(r, "no epoch");
		return;
	}
	if (json_member_string(body, "resume", JSON_REQUIRED, &resume, NULL) ==
		-1 ||
	    resume.len == 0 || resume.has_nul ||
	    page_text_is_damaged(&resume)) {
		malformed(r, "no way to resume");
		return;
	}
	r->resume = resume.bytes;
	r->resume_len = resume.len;
}

/* The first row that has the status; what is not named is unrecoverable. */
static const struct {
	int first, last;
	enum poll_kind kind;
	bool is_retried;   /* inside the call */
	bool may_throttle; /* a Retry-After makes it POLL_THROTTLED */
	body_reader read;
} matrix[] = {
    {200, 200, POLL_PAGE, false, false, NULL},
    {300, 399, POLL_REDIRECT, false, false, NULL},
    {400, 400, POLL_MALFORMED, false, false, read_400},
    {401, 401, POLL_UNAUTHORIZED, false, false, NULL},
    {403, 403, POLL_UNAUTHORIZED, false, false, NULL},
    {409, 409, POLL_FILTER_CHANGED, false, false, read_409},
    {410, 410, POLL_GONE, false, false, read_410},
    {429, 429, POLL_TRANSIENT, true, true, NULL},
    {503, 503, POLL_TRANSIENT, true, true, NULL},
    {507, 507, POLL_UNRECOVERABLE, false, false, NULL},
    {500, 599, POLL_TRANSIENT, false, true, NULL},
    {0, 999, POLL_UNRECOVERABLE, false, false, NULL},
};

static size_t
matrix_row(int status)
{
	size_t i;

	for (i = 0; i + 1 < sizeof(matrix) / sizeof(matrix[0]); i++)
		if (status >= matrix[i].first && status <= matrix[i].last)
			break;
	return i;
}

bool
poll_is_retried(int status)
{
	return matrix[matrix_row(status)].is_retried;
}

static void
read_page(const struct http_answer *http, struct poll_result *r)
{
	struct error e;

	r->page = page_parse(http->body, http->body_len, &e);
	if (r->page == NULL) {
		r->kind = POLL_MALFORMED;
		(void)snprintf(
		    r->text, sizeof(r->text), "a foul page: %s", e.text);
	}
}

void
poll_classify(
    const struct http_answer *http, struct poll_result *r, json_t **tree)
{
	size_t row = matrix_row(http->status);

	*tree = NULL;
	r->status = http->status;
	r->kind = matrix[row].kind;
	(void)snprintf(r->text, sizeof(r->text), "http %d%s", http->status,
	    http->account_inactive ? ", the account is inactive" : "");
	if (r->kind == POLL_PAGE)
		read_page(http, r);
	if (matrix[row].may_throttle && http->retry_after > 0) {
		r->kind = POLL_THROTTLED;
		r->retry_after_ms = http->retry_after * 1000;
	}
	if (matrix[row].read == NULL)
		return;
	*tree = json_read(http->body, http->body_len, &body_rules, NULL);
	if (json_is_object(*tree))
		matrix[row].read(*tree, r);
	else
		malformed(r, "not an object");
}

const char *
poll_kind_name(enum poll_kind kind)
{
	static const char *const names[] = {
	    [POLL_PAGE] = "page",
	    [POLL_POSITION_INVALID] = "invalid_position",
	    [POLL_FILTER_INVALID] = "filter_invalid",
	    [POLL_FILTER_CHANGED] = "filter_changed",
	    [POLL_GONE] = "gone",
	    [POLL_UNAUTHORIZED] = "unauthorized",
	    [POLL_THROTTLED] = "throttled",
	    [POLL_TRANSIENT] = "transient",
	    [POLL_REDIRECT] = "redirect_refused",
	    [POLL_MALFORMED] = "malformed",
	    [POLL_UNRECOVERABLE] = "unrecoverable",
	    [POLL_NO_CREDENTIAL] = "credential_refused",
	};

	return names[kind];
}
