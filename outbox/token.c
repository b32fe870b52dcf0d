/*
 * The access token (feed.md 6.4): minted with the agent's own credential,
 * renewed before it ends, held back where the endpoint said so. What the
 * endpoint answers is never printed.
 */
#include <sys/queue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/json.h"
#include "common/log.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "outbox/outbox.h"
#include "outbox/secret.h"

#define MINT_TIMEOUT_MS 30000
#define MINT_ANSWER_MOST ((size_t)1024 * 1024)
#define LIFE_NORMAL_S 3600
#define LIFE_MOST_S 86400
#define HOLD_NORMAL_S 60
#define REFUSED_HOLD_S 3600
#define RENEW_AGAIN_MS 30000
/* A stored hold that ends later than this is not believed. */
#define HOLD_SANE_S 3600
#define NS_PER_S INT64_C(1000000000)

enum token_state {
	TS_NO_CREDENTIAL,
	TS_ASKING, /* the ledger: does a hold of an earlier run stand? */
	TS_EMPTY,  /* mint at the next call */
	TS_MINTING,
	TS_GOOD,
	TS_HELD /* until hold_until; no request before */
};

struct waiter {
	TAILQ_ENTRY(waiter) entry;
	token_done done;
	void *arg;
};

struct token {
	struct outbox *o;
	enum token_state state;
	char *client_id, *client_secret, *endpoint, *scope, *resource;
	char fingerprint[33];
	char *bearer;
	int64_t serial;
	int64_t renew_at;   /* monotonic ms */
	int64_t expires_at; /* monotonic ms */
	int64_t hold_until; /* wall ns; INT64_MAX: for good */
	bool hold_refused;  /* else it is a rate limit */
	int failures;       /* mints in a row that decided nothing */
	int64_t retry_at; /* monotonic ms; no mint before, after one of them */
	struct http_request *mint;
	uint64_t asked; /* RENEWAL_HOLD_OF of this credential; 0: answered */
	TAILQ_HEAD(, waiter) waiters;
};

static void token_mint(struct token *t);

struct token *
token_new(struct outbox *o)
{
	struct token *t = xcalloc(1, sizeof(*t));

	t->o = o;
	TAILQ_INIT(&t->waiters);
	return t;
}

/* ---- telling who waits -------------------------------------------------- */

static void
token_tell(struct token *t, enum token_answer answer, int64_t wait_ms)
{
	TAILQ_HEAD(, waiter) now = TAILQ_HEAD_INITIALIZER(now);
	struct waiter *w;

	TAILQ_CONCAT(&now, &t->waiters, entry);
	while ((w = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, w, entry);
		w->done(answer, t->bearer, t->serial, wait_ms, w->arg);
		free(w);
	}
}

static void
token_show(struct token *t, const char *text)
{
	role_state(&t->o->role, "credential", "%s", text);
	role_state(&t->o->role, "trouble", "%s", "");
}

/* Since when nothing is asked, and what ends that. */
static void
token_show_hold(struct token *t)
{
	char until[CLOCK_STAMP_SIZE];

	if (t->hold_until == INT64_MAX) {
		token_show(t, "refused for good");
		role_state(&t->o->role, "trouble",
		    "credentials.json needs another client_secret, then "
		    "reload");
		return;
	}
	clock_stamp_ns(t->hold_until, until);
	role_state(&t->o->role, "credential", "%s until %s",
	    t->hold_refused ? "refused" : "throttled", until);
}

/* ---- holds -------------------------------------------------------------- */

static void
token_tell_held(struct token *t)
{
	int64_t left = t->hold_until == INT64_MAX
	    ? 0
	    : (t->hold_until - clock_wall_ns()) / 1000000 + 1;

	token_tell(t, t->hold_refused ? TOKEN_REFUSED : TOKEN_THROTTLED, left);
}

/* Written down first: a restart must not ask again either. */
static void
token_hold(struct token *t, bool refused, int64_t seconds, const char *reason)
{
	struct msg m = {.type = MSG_RENEWAL_HOLD};
	char until[CLOCK_STAMP_SIZE] = "";

	t->state = TS_HELD;
	t->hold_refused = refused;
	t->hold_until = INT64_MAX;
	if (seconds != 0) {
		t->hold_until = clock_wall_ns() + seconds * NS_PER_S;
		clock_stamp_ns(t->hold_until, until);
	}
	token_show_hold(t);
	m.renewal_hold.fingerprint = t->fingerprint;
	m.renewal_hold.reason = reason;
	m.renewal_hold.until = until;
	(void)peer_request(outbox_ledger(t->o), &m, NULL, NULL);
	token_tell_held(t);
}

/* A hold that cannot be ours (too far ahead, no end) does not count. */
static bool
hold_is_sane(const struct msg_renewal_hold_is *hold, int64_t *until)
{
	if (strcmp(hold->reason, "invalid_client") == 0 &&
	    hold->until[0] == '\0') {
		*until = INT64_MAX;
		return true;
	}
	return clock_parse(hold->until, until) == 0 &&
	    *until > clock_wall_ns() &&
	    *until - clock_wall_ns() <= HOLD_SANE_S * NS_PER_S;
}

static void
on_hold_known(struct peer *peer, struct msg *m, void *arg)
{
	struct token *t = arg;

	t->asked = 0;
	t->state = TS_EMPTY;
	if (m->type == MSG_RENEWAL_HOLD_IS && m->renewal_hold_is.found &&
	    hold_is_sane(&m->renewal_hold_is, &t->hold_until)) {
		t->hold_refused =
		    strcmp(m->renewal_hold_is.reason, "throttled") != 0;
		t->state = TS_HELD;
		token_show_hold(t);
		token_tell_held(t);
	} else if (!TAILQ_EMPTY(&t->waiters)) {
		token_mint(t);
	}
}

/* ---- the credential ----------------------------------------------------- */

static void
wipe(char **secret)
{
	if (*secret != NULL)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

/* With the endpoint: what another one refused says nothing about this one. */
static void
token_fingerprint(struct token *t)
{
	char hex[DIGEST_HEX_SIZE];
	struct buffer b = {0};

	buffer_add(&b, "connectd-credential", sizeof("connectd-credential"));
	buffer_add(&b, t->endpoint, strlen(t->endpoint) + 1);
	buffer_add(&b, t->client_id, strlen(t->client_id) + 1);
	buffer_add(&b, t->client_secret, strlen(t->client_secret));
	digest_sha256_hex(b.bytes, b.len, hex);
	memcpy(t->fingerprint, hex, sizeof(t->fingerprint) - 1);
	explicit_bzero(b.bytes, b.len);
	buffer_free(&b);
}

void
token_credential(struct token *t, const struct msg_credential *c)
{
	struct msg m = {.type = MSG_RENEWAL_HOLD_OF};

	http_cancel(t->mint);
	t->mint = NULL;
	wipe(&t->client_id);
	wipe(&t->client_secret);
	wipe(&t->bearer);
	free(t->endpoint);
	free(t->scope);
	free(t->resource);
	t->client_id = xstrdup(c->client_id);
	t->client_secret = xstrdup(c->client_secret);
	t->endpoint = xstrdup(c->token_endpoint);
	t->scope = xstrdup(c->scope);
	t->resource = xstrdup(c->resource);
	token_fingerprint(t);
	t->state = TS_ASKING;
	t->failures = 0;
	t->retry_at = 0;
	/* What is known of the one before says nothing of this one. */
	if (t->asked != 0)
		peer_forget(outbox_ledger(t->o), t->asked);
	m.renewal_hold_of.fingerprint = t->fingerprint;
	t->asked = peer_request(outbox_ledger(t->o), &m, on_hold_known, t);
}

/* ---- minting ------------------------------------------------------------ */

static void
form_add(struct buffer *b, const char *name, const char *value)
{
	if (value[0] == '\0')
		return;
	buffer_printf(b, "%s%s=", b->len == 0 ? "" : "&", name);
	url_escape(b, value, strlen(value));
}

/* The endpoint's word, if it is one of the few that are known. */
static const char *
oauth_error(const struct http_answer *answer)
{
	static const char *const words[] = {"invalid_client", "invalid_grant",
	    "invalid_request", "invalid_scope", "unauthorized_client",
	    "unsupported_grant_type", "access_denied", "expired_token"};
	static const struct json_rules rules = {.max_bytes = MINT_ANSWER_MOST,
	    .max_depth = 16,
	    .max_members = 1000};
	struct error e;
	json_t *body = json_read(answer->body, answer->body_len, &rules, &e);
	const char *said = json_string_value(json_object_get(body, "error"));
	const char *word = "";
	size_t i;

	for (i = 0; said != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i], said) == 0)
			word = words[i];
	}
	json_decref(body);
	return word;
}

struct minted {
	struct json_text access_token, token_type, scope;
	int64_t expires_in;
};

static int
minted_read(const json_t *body, struct minted *m, struct error *e)
{
	m->token_type = m->scope = (struct json_text){"", 0, false};
	m->expires_in = LIFE_NORMAL_S;
	if (json_member_string(body, "access_token", JSON_REQUIRED,
		&m->access_token, e) == -1 ||
	    json_member_string(body, "token_type", JSON_MAY_BE_NULL,
		&m->token_type, e) == -1 ||
	    json_member_string(body, "scope", JSON_MAY_BE_NULL, &m->scope, e) ==
		-1 ||
	    json_member_int(
		body, "expires_in", JSON_MAY_BE_NULL, &m->expires_in, e) == -1)
		return -1;
	if (m->access_token.len == 0 || m->access_token.len > 8192 ||
	    m->access_token.has_nul || m->expires_in <= 0 ||
	    (m->token_type.len != 0 &&
		strcasecmp(m->token_type.bytes, "bearer") != 0) ||
	    (m->scope.len != 0 && strcmp(m->scope.bytes, "read") != 0 &&
		strcmp(m->scope.bytes, "full") != 0))
		return error_set(e, "an answer outside the rules");
	return 0;
}

static int
token_take(struct token *t, const struct http_answer *answer)
{
	static const struct json_rules rules = {.max_bytes = MINT_ANSWER_MOST,
	    .max_depth = 16,
	    .max_members = 1000};
	struct error e;
	json_t *body = json_read(answer->body, answer->body_len, &rules, &e);
	int64_t life_ms, margin = outbox_limit(t->o, LIMIT_token_margin);
	struct minted m;
	int rc = -1;

	if (body != NULL && minted_read(body, &m, &e) == 0) {
		life_ms = 1000 *
		    (m.expires_in > LIFE_MOST_S ? LIFE_MOST_S : m.expires_in);
		if (margin > life_ms / 4)
			margin = life_ms / 4;
		wipe(&t->bearer);
		t->bearer = xstrdup(m.access_token.bytes);
		t->serial++;
		t->expires_at = clock_monotonic_ms() + life_ms;
		t->renew_at = t->expires_at - margin;
		rc = 0;
	}
	json_decref(body);
	return rc;
}

/* Full jitter over the failures in a row (feed.md 6.5). */
static int64_t
token_pause(const struct token *t)
{
	int64_t pause = outbox_limit(t->o, LIMIT_feed_retry);
	int64_t most = outbox_limit(t->o, LIMIT_feed_retry_most);
	uint64_t chance;
	int i;

	for (i = 1; i < t->failures && pause < most; i++)
		pause *= 2;
	if (pause > most)
		pause = most;
	arc4random_buf(&chance, sizeof(chance));
	return 1 + (int64_t)(chance % (uint64_t)pause);
}

static void
token_tell_failing(struct token *t)
{
	token_tell(t, TOKEN_TRANSIENT, t->retry_at - clock_monotonic_ms());
}

/*
 * The endpoint did not decide anything: a token that still lives serves on,
 * and renewing it is tried again later.
 */
static void
token_failing(struct token *t, const char *shown, int64_t wait_ms)
{
	int64_t now = clock_monotonic_ms();

	token_show(t, shown);
	if (t->bearer != NULL && now < t->expires_at) {
		t->state = TS_GOOD;
		t->renew_at = now + RENEW_AGAIN_MS;
		token_tell(t, TOKEN_GOOD, 0);
	} else {
		t->state = TS_EMPTY;
		t->failures++;
		t->retry_at = now + (wait_ms > 0 ? wait_ms : token_pause(t));
		token_tell_failing(t);
	}
}

static void
token_refused(struct token *t, const struct http_answer *answer)
{
	const char *word = oauth_error(answer);
	bool bare = answer->status == 401 || answer->status == 403;

	if (strcmp(word, "invalid_client") == 0) {
		log_warnx("the credential is refused for good: the agent was "
			  "disconnected, or connected on another computer");
		token_hold(t, true, 0, "invalid_client");
	} else if (strcmp(word, "invalid_grant") == 0 ||
	    (word[0] == '\0' && bare)) {
		log_warnx("the token endpoint refuses (HTTP %d); one try in "
			  "an hour",
		    answer->status);
		token_hold(t, true, REFUSED_HOLD_S, "refused");
	} else {
		log_warnx("the token endpoint answers HTTP %d (%s)",
		    answer->status, word[0] == '\0' ? "no word" : word);
		token_failing(t, "failing", 0);
	}
}

static void
token_throttled(struct token *t, const struct http_answer *answer)
{
	int64_t seconds = answer->retry_after;

	if (seconds == 0)
		seconds = HOLD_NORMAL_S;
	if (seconds > HOLD_MOST_S)
		seconds = HOLD_MOST_S;
	log_warnx("the token endpoint limits our rate: no try for %lld s",
	    (long long)seconds);
	token_hold(t, false, seconds, "throttled");
}

static void
token_unanswered(struct token *t, const struct http_answer *answer)
{
	if (answer->outcome == HTTP_ANSWERED)
		log_warnx("the token endpoint answers HTTP %d", answer->status);
	else
		log_warnx("the token endpoint: %s", answer->why);
	token_failing(t, "no answer", 1000 * answer->retry_after);
}

static void
on_minted(const struct http_answer *answer, void *arg)
{
	struct token *t = arg;

	t->mint = NULL;
	if (answer->outcome != HTTP_ANSWERED || answer->status >= 500) {
		token_unanswered(t, answer);
	} else if (answer->status == 429) {
		token_throttled(t, answer);
	} else if (answer->status >= 400 && answer->status < 500) {
		token_refused(t, answer);
	} else if (answer->status != 200 || token_take(t, answer) == -1) {
		log_warnx("the token endpoint's answer is none (HTTP %d)",
		    answer->status);
		token_failing(t, "failing", 0);
	} else {
		t->state = TS_GOOD;
		t->failures = 0;
		t->retry_at = 0;
		token_show(t, "good");
		token_tell(t, TOKEN_GOOD, 0);
	}
}

static void
token_mint(struct token *t)
{
	struct http_call call = {.method = HTTP_POST,
	    .url = t->endpoint,
	    .content_type = "application/x-www-form-urlencoded",
	    .timeout_ms = MINT_TIMEOUT_MS,
	    .most_bytes = MINT_ANSWER_MOST};
	struct buffer form = {0};

	form_add(&form, "grant_type", "client_credentials");
	form_add(&form, "client_id", t->client_id);
	form_add(&form, "client_secret", t->client_secret);
	form_add(&form, "scope", t->scope);
	form_add(&form, "resource", t->resource);
	call.body = form.bytes;
	call.body_len = form.len;
	t->state = TS_MINTING;
	t->mint = http_send(t->o->http, &call, on_minted, t);
	explicit_bzero(form.bytes, form.len);
	buffer_free(&form);
}

/* ---- asking ------------------------------------------------------------- */

/* A hold whose time has come leaves one try. */
static void
token_release(struct token *t)
{
	if (t->state == TS_HELD && t->hold_until != INT64_MAX &&
	    t->hold_until <= clock_wall_ns())
		t->state = TS_EMPTY;
}

void
token_get(struct token *t, int64_t refused_serial, token_done done, void *arg)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	w->done = done;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&t->waiters, w, entry);
	token_release(t);
	/* Not handed out again, should a renewal that is under way fail. */
	if (refused_serial == t->serial)
		wipe(&t->bearer);
	if (t->state == TS_GOOD &&
	    (t->bearer == NULL || clock_monotonic_ms() >= t->renew_at))
		t->state = TS_EMPTY;
	if (t->state == TS_GOOD)
		token_tell(t, TOKEN_GOOD, 0);
	else if (t->state == TS_HELD)
		token_tell_held(t);
	else if (t->state == TS_EMPTY && clock_monotonic_ms() < t->retry_at)
		token_tell_failing(t);
	else if (t->state == TS_EMPTY)
		token_mint(t);
}

int64_t
token_renew_in(const struct token *t)
{
	int64_t left = t->renew_at - clock_monotonic_ms();

	return left > 0 ? left : 0;
}

bool
token_is_in(const struct token *t, const char *text, size_t len)
{
	return (t->bearer != NULL && secret_is_in(t->bearer, text, len)) ||
	    (t->client_secret != NULL &&
		secret_is_in(t->client_secret, text, len));
}
