#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "intake/token.h"

struct token {
	struct role *role;
	char *value; /* NULL: none */
	int64_t serial;
	int64_t ask_again_at; /* monotonic */
	int64_t refused;      /* serial, 0: none */
	bool is_asking;
	LIST_HEAD(token_waits, token_wait) waits;
};

struct token *
token_new(struct role *role)
{
	struct token *t = xcalloc(1, sizeof(*t));

	t->role = role;
	LIST_INIT(&t->waits);
	return t;
}

static void
token_drop(struct token *t)
{
	if (t->value != NULL)
		explicit_bzero(t->value, strlen(t->value));
	free(t->value);
	t->value = NULL;
}

/* Everybody who waits now; a callback may ask anew, or unask for another. */
static void
token_tell(struct token *t, const struct token_answer *a)
{
	struct token_waits now = LIST_HEAD_INITIALIZER(now);
	struct token_wait *w;

	while ((w = LIST_FIRST(&t->waits)) != NULL) {
		LIST_REMOVE(w, entry);
		LIST_INSERT_HEAD(&now, w, entry);
	}
	while ((w = LIST_FIRST(&now)) != NULL) {
		LIST_REMOVE(w, entry);
		w->is_waiting = false;
		w->ready(a, w->arg);
	}
}

static void
token_take(struct token *t, const struct msg_token_is *is)
{
	token_drop(t);
	t->value = xstrdup(is->token);
	t->serial = is->serial;
	t->ask_again_at = clock_monotonic_ms() + is->renew_in_ms;
	role_state(t->role, "token", "held");
}

static void
token_answered(struct peer *outbox, struct msg *reply, void *arg)
{
	struct token_answer a = {0};
	struct token *t = arg;

	(void)outbox;
	t->is_asking = false;
	if (reply->type == MSG_TOKEN_IS) {
		token_take(t, &reply->token_is);
		a.value = t->value;
		a.serial = t->serial;
	} else {
		a.reason = reply->failed.reason;
		a.wait_ms = reply->failed.wait_ms;
		role_state(t->role, "token", "%s", a.reason);
	}
	token_tell(t, &a);
}

void
token_ask(struct token *t, struct token_wait *w)
{
	struct token_answer a = {t->value, t->serial, NULL, 0};
	struct msg m = {.type = MSG_TOKEN};

	if (t->value != NULL && clock_monotonic_ms() < t->ask_again_at) {
		w->ready(&a, w->arg);
		return;
	}
	w->is_waiting = true;
	LIST_INSERT_HEAD(&t->waits, w, entry);
	if (t->is_asking)
		return;
	t->is_asking = true;
	m.token.refused = t->refused;
	if (t->value == NULL)
		role_state(t->role, "token", "waiting");
	(void)peer_request(
	    role_peer(t->role, ROLE_OUTBOX, ""), &m, token_answered, t);
}

void
token_unask(struct token *t, struct token_wait *w)
{
	if (!w->is_waiting)
		return;
	w->is_waiting = false;
	LIST_REMOVE(w, entry);
}

void
token_refused(struct token *t, int64_t serial)
{
	if (t->value == NULL || t->serial != serial)
		return;
	t->refused = serial;
	token_drop(t);
	role_state(t->role, "token", "refused by Basecamp");
}
