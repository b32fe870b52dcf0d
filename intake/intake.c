/*
 * connectd-intake: main, its row, and what it can be asked.
 */
#include <stdlib.h>

#include "common/error.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/admission.h"
#include "intake/feed.h"
#include "intake/intake.h"
#include "intake/lists.h"
#include "intake/profile.h"
#include "intake/thread.h"

#define INTAKE_NOFILE 256

/* ---- from the ledger ---------------------------------------------------- */

/* UNDECIDED_WAITS: a record became undecided by another's hand. */
static void
undecided_waits(struct peer *ledger, struct msg *m, void *arg)
{
	struct intake *in = arg;

	(void)ledger;
	admission_offer(in->admission, m->undecided_waits.event_id);
	msg_free(m);
}

/* Its notices may be lost with a link: ask again from the start. */
static void
ledger_linked(struct peer *ledger, void *arg)
{
	struct intake *in = arg;

	(void)ledger;
	if (in->policy != NULL)
		admission_offer(in->admission, 0);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_UNDECIDED_WAITS] = undecided_waits,
};
static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = ledger_linked,
};

/* ---- from the outbox: only answers -------------------------------------- */

static const peer_handler outbox_handlers[MSG_COUNT] = {NULL};
static const struct peer_ops outbox_ops = {.handlers = outbox_handlers};

/* ---- from a task's mcpd ------------------------------------------------- */

static void
read_thread(struct peer *mcpd, struct msg *m, void *arg)
{
	struct intake *in = arg;

	thread_asked(in->threads, mcpd, m);
}

static void
mcpd_unlinked(struct peer *mcpd, void *arg)
{
	struct intake *in = arg;

	threads_forget(in->threads, mcpd);
}

static void
mcpd_broken(struct peer *mcpd, const char *text, void *arg)
{
	(void)text;
	mcpd_unlinked(mcpd, arg);
}

static const peer_handler mcpd_handlers[MSG_COUNT] = {
    [MSG_READ_THREAD] = read_thread,
};
static const struct peer_ops mcpd_ops = {
    .handlers = mcpd_handlers,
    .unlinked = mcpd_unlinked,
    .broken = mcpd_broken,
};

/* ---- from the supervisor ------------------------------------------------ */

static void
intake_configured(struct role *role)
{
	struct intake *in = role->arg;

	policy_unref(in->policy);
	in->policy = policy_new(role->config);
	in->api.account_id = role->config->account_id;
	in->api.timeout_ms = role->config->limits[LIMIT_http_timeout];
	in->backlog.pause_depth = role->config->limits[LIMIT_pause_depth];
	in->backlog.resume_depth = role->config->limits[LIMIT_resume_depth];
	feed_configure(in->feed);
	admission_configure(in->admission);
}

/* What the ledger was given stands; nothing else here outlives the process. */
static void
intake_stop(struct role *role, int64_t bound_ms)
{
	struct intake *in = role->arg;

	(void)bound_ms;
	feed_stop(in->feed);
	admission_stop(in->admission);
	role_exit(role, EXIT_OK);
}

static void
backlog_resumed(void *arg)
{
	struct intake *in = arg;

	feed_resume(in->feed);
}

static int
intake_prepare(struct role *role, struct error *e)
{
	(void)role;
	return http_prepare(e);
}

static const struct role_row intake_row = {
    .role = ROLE_INTAKE,
    .title = "connectd-intake",
    .nofile = INTAKE_NOFILE,
    .writes_files = true, /* long messages travel in memory files */
    .sandbox = &intake_profile,
    .prepare = intake_prepare,
    .peers = {[ROLE_LEDGER] = &ledger_ops,
	[ROLE_OUTBOX] = &outbox_ops,
	[ROLE_MCPD] = &mcpd_ops},
    .configured = intake_configured,
    .stop = intake_stop,
};

int
main(void)
{
	static struct role role;
	static struct intake in;
	struct error e;

	role_start(&role, &intake_row, &in);
	in.role = &role;
	in.ledger = role_peer(&role, ROLE_LEDGER, "");
	if (api_init(&in.api, &role, role.setup->setup.base_url,
		role.setup->setup.user_agent, &e) == -1) {
		log_warnx("base URL: %s", e.text);
		role_exit(&role, EXIT_CONFIG);
	}
	in.lists = lists_new(&in.api);
	in.backlog.resumed = backlog_resumed;
	in.backlog.arg = &in;
	in.feed = feed_new(&in);
	in.admission = admission_new(&in);
	in.threads = threads_new(&in);
	role_ready(&role);
	role_run(&role);
}
