#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "outbox/outbox.h"
#include "outbox/profile.h"

static struct outbox outbox;

struct peer *
outbox_ledger(struct outbox *o)
{
	return role_peer(&o->role, ROLE_LEDGER, "");
}

int64_t
outbox_limit(const struct outbox *o, enum limit limit)
{
	return o->role.config == NULL ? limit_rows[limit].normal
				      : o->role.config->limits[limit];
}

/* ---- the ledger ---------------------------------------------------------- */

static void
on_post_waits(struct peer *peer, struct msg *m, void *arg)
{
	msg_free(m);
	work_poke(arg);
}

/* What the link before would have told: look. */
static void
on_ledger_linked(struct peer *peer, void *arg)
{
	work_poke(arg);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_POST_WAITS] = on_post_waits,
};

static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = on_ledger_linked,
};

/* ---- intake -------------------------------------------------------------- */

struct token_asked {
	struct outbox *o;
	struct reply_to to;
};

/* The reasons of FAILED, by answer. */
static const char *const reasons[] = {
    [TOKEN_THROTTLED] = "throttled",
    [TOKEN_TRANSIENT] = "transient",
    [TOKEN_REFUSED] = "credential_refused",
};

static void
on_token_known(enum token_answer answer, const char *bearer, int64_t serial,
    int64_t wait_ms, void *arg)
{
	struct token_asked *asked = arg;
	struct msg m = {.type = MSG_TOKEN_IS};

	if (answer == TOKEN_GOOD) {
		m.token_is.serial = serial;
		m.token_is.token = bearer;
		m.token_is.renew_in_ms = token_renew_in(asked->o->token);
		peer_reply(&asked->to, &m);
	} else {
		peer_fail(
		    &asked->to, reasons[answer], wait_ms, "no access token");
	}
	free(asked);
}

static void
on_token(struct peer *peer, struct msg *m, void *arg)
{
	struct token_asked *asked = xcalloc(1, sizeof(*asked));

	asked->o = arg;
	asked->to = peer_reply_to(peer, m);
	token_get(asked->o->token, m->token.refused, on_token_known, asked);
	msg_free(m);
}

static const peer_handler intake_handlers[MSG_COUNT] = {
    [MSG_TOKEN] = on_token,
};

static const struct peer_ops intake_ops = {.handlers = intake_handlers};

/* ---- the dispatcher ------------------------------------------------------ */

/* A new dispatcher waits for the start too. */
static void
on_dispatcher_linked(struct peer *peer, void *arg)
{
	struct outbox *o = arg;
	struct msg m = {.type = MSG_STARTED};

	if (!o->started)
		return;
	m.started.settled = o->settled;
	peer_notice(peer, &m);
}

static const peer_handler dispatcher_handlers[MSG_COUNT] = {
    [MSG_LIST_REPLIES] = on_list_replies,
};

static const struct peer_ops dispatcher_ops = {
    .handlers = dispatcher_handlers,
    .linked = on_dispatcher_linked,
};

/* ---- the supervisor ------------------------------------------------------ */

static void
on_credential(struct peer *peer, struct msg *m, void *arg)
{
	struct outbox *o = arg;

	token_credential(o->token, &m->credential);
	/* The frame's copy of the secret goes with it. */
	explicit_bzero(m->storage[0], m->size - FRAME_HEADER_SIZE);
	msg_free(m);
	work_poke(o);
}

static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_CREDENTIAL] = on_credential,
};

static const struct peer_ops supervisor_ops = {.handlers = supervisor_handlers};

/* ---- the row ------------------------------------------------------------- */

static int
outbox_prepare(struct role *role, struct error *e)
{
	return http_prepare(e);
}

static void
on_configured(struct role *role)
{
	work_configured(role->arg);
}

static void
on_stop(struct role *role, int64_t bound_ms)
{
	work_stop(role->arg, bound_ms);
}

static const struct role_row outbox_row = {
    .role = ROLE_OUTBOX,
    .title = "connectd-outbox",
    .nofile = 1024,
    .writes_files = true,
    .sandbox = &outbox_profile,
    .prepare = outbox_prepare,
    .peers = {[ROLE_SUPERVISOR] = &supervisor_ops,
	[ROLE_LEDGER] = &ledger_ops,
	[ROLE_DISPATCHER] = &dispatcher_ops,
	[ROLE_INTAKE] = &intake_ops},
    .configured = on_configured,
    .stop = on_stop,
};

int
main(void)
{
	struct outbox *o = &outbox;

	role_start(&o->role, &outbox_row, o);
	o->http = http_new(o->role.base, o->role.setup->setup.user_agent);
	o->token = token_new(o);
	work_init(o);
	role_ready(&o->role);
	role_run(&o->role);
}
