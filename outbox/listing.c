#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "outbox/listing.h"

/* A chat is read back so far and no farther. */
#define PAGES_MOST 200
#define PAGES_MOST_WHOLE 10000

struct listing {
	struct outbox *o;
	const struct message_kind *kind;
	int64_t since, until; /* wall ns; monotonic ms */
	char *text, *url, *bearer;
	int64_t serial;
	bool renewed;
	int64_t candidates[LISTING_CANDIDATES_MOST];
	size_t count;
	bool too_many;
	size_t rows;
	int pages;
	int64_t wait_ms;
	listing_filter filter; /* NULL: none */
	listing_done done;
	void *arg;
};

static void listing_page(struct listing *l);

static void
listing_end(struct listing *l, enum listing_end end, const char *why)
{
	l->done(end, l->candidates, l->count, why, l->wait_ms, l->arg);
	if (l->bearer != NULL)
		explicit_bzero(l->bearer, strlen(l->bearer));
	free(l->bearer);
	free(l->text);
	free(l->url);
	free(l);
}

/* New lines shift pages: one message may come twice. */
static void
on_found(const struct message_found *m, void *arg)
{
	struct listing *l = arg;
	size_t i;

	for (i = 0; i < l->count; i++) {
		if (l->candidates[i] == m->id)
			return;
	}
	if (l->filter != NULL && !l->filter(m, l->arg))
		return;
	if (l->count == LISTING_CANDIDATES_MOST)
		l->too_many = true;
	else
		l->candidates[l->count++] = m->id;
}

static void
on_token(enum token_answer answer, const char *bearer, int64_t serial,
    int64_t wait_ms, void *arg)
{
	struct listing *l = arg;

	if (answer != TOKEN_GOOD) {
		l->wait_ms = wait_ms;
		listing_end(l, LISTING_UNASKED, "there is no access token");
		return;
	}
	if (l->bearer != NULL)
		explicit_bzero(l->bearer, strlen(l->bearer));
	free(l->bearer);
	l->bearer = xstrdup(bearer);
	l->serial = serial;
	listing_page(l);
}

/* Fewer rows than the server says there are is no shorter answer. */
static bool
is_truncated(const struct listing *l, const struct http_answer *answer)
{
	return !l->kind->newest_first && answer->total_count >= 0 &&
	    l->rows < (size_t)answer->total_count;
}

static void
listing_next(struct listing *l, const struct http_answer *answer, size_t rows,
    bool older)
{
	bool back = l->kind->newest_first && (older || rows == 0);
	char *origin;
	struct error e;
	int ours;

	if (back || answer->next == NULL) {
		if (!back && is_truncated(l, answer))
			listing_end(l, LISTING_FAILED, "it is cut short");
		else if (l->too_many)
			listing_end(l, LISTING_UNLISTABLE,
			    "too many messages may be it");
		else
			listing_end(l, LISTING_WHOLE, "");
		return;
	}
	if (++l->pages >=
	    (l->kind->newest_first ? PAGES_MOST : PAGES_MOST_WHOLE)) {
		listing_end(l, LISTING_UNLISTABLE, "it has too many pages");
		return;
	}
	origin = NULL;
	ours = url_origin(l->url, strlen(l->url), &origin, &e) == 0 &&
	    url_check_continuation(
		answer->next, strlen(answer->next), origin, &e) == 0;
	free(origin);
	if (!ours) {
		listing_end(l, LISTING_FAILED, "its next page is elsewhere");
		return;
	}
	free(l->url);
	l->url = xstrdup(answer->next);
	listing_page(l);
}

static void
on_whole_page(struct listing *l, const struct http_answer *answer)
{
	struct error e;
	size_t rows = 0;
	bool older = false;

	if (message_page(l->kind, answer->body, answer->body_len,
		l->o->role.config->agent_id, l->since, l->text, on_found, l,
		&rows, &older, &e) == -1) {
		listing_end(l, LISTING_FAILED, "a page is none");
		return;
	}
	l->rows += rows;
	listing_next(l, answer, rows, older);
}

static void
on_page(const struct http_answer *answer, void *arg)
{
	struct listing *l = arg;

	if (answer->outcome != HTTP_ANSWERED) {
		listing_end(l, LISTING_FAILED, answer->why);
	} else if (answer->status == 401 && !l->renewed) {
		l->renewed = true;
		token_get(l->o->token, l->serial, on_token, l);
	} else if (answer->status == 403 || answer->status == 404) {
		listing_end(
		    l, LISTING_UNLISTABLE, "destination cannot be listed");
	} else if (answer->status != 200) {
		listing_end(l, LISTING_FAILED, "Basecamp does not list it");
	} else {
		on_whole_page(l, answer);
	}
}

static void
listing_page(struct listing *l)
{
	struct http_call call = {
	    .method = HTTP_GET, .url = l->url, .bearer = l->bearer};

	call.timeout_ms = l->until - clock_monotonic_ms();
	if (call.timeout_ms <= 0)
		listing_end(l, LISTING_FAILED, "it takes too long");
	else
		(void)http_send(l->o->http, &call, on_page, l);
}

void
listing_start(struct outbox *o, const struct message_kind *kind,
    int64_t recording_id, int64_t since, const char *text,
    listing_filter filter, listing_done done, void *arg)
{
	struct listing *l = xcalloc(1, sizeof(*l));

	l->o = o;
	l->kind = kind;
	l->since = since;
	l->until = clock_monotonic_ms() + outbox_limit(o, LIMIT_listing_bound);
	l->text = text == NULL ? NULL : xstrdup(text);
	l->filter = filter;
	l->url = message_url(o->role.setup->setup.base_url,
	    o->role.config->account_id, kind->list, recording_id);
	l->done = done;
	l->arg = arg;
	token_get(o->token, 0, on_token, l);
}
