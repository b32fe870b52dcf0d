#include <unistd.h>

#include "common/log.h"
#include "supervisor/attempt.h"

static void
mcpd_spawn(struct attempt *a, int token)
{
	struct error e;

	a->mcpd_ready = a->mcpd_draining = false;
	a->mcpd = child_spawn_mcpd(a->sv, a->id, token, &e);
	if (a->mcpd != NULL)
		return;
	log_warnx("%s: %s", a->id, e.text);
	asked_fail(&a->mcpd_asked, "not_started", e.text);
}

void
mcpd_forget_next(struct attempt *a)
{
	if (a->next_token != -1)
		(void)close(a->next_token);
	a->next_token = -1;
	asked_fail(&a->mcpd_asked, "cancelled", "not wanted any more");
}

/* Two of one task may not be: the present one ends first. */
void
mcpd_begin(struct attempt *a)
{
	int token = a->m->spawn_mcpd.token;

	a->m->spawn_mcpd.token = -1;
	mcpd_forget_next(a);
	asked_keep(&a->mcpd_asked, &a->to);
	if (mcpd_drain(a))
		a->next_token = token;
	else
		mcpd_spawn(a, token);
}

void
mcpd_is_ready(struct attempt *a)
{
	if (a->mcpd == NULL || a->mcpd_draining)
		return;
	a->mcpd_ready = true;
	if (a->mcpd_asked.is_open)
		peer_done(&a->mcpd_asked.to, true);
	a->mcpd_asked.is_open = false;
	if (a->listener != NULL)
		listener_serve(a->listener);
}

/* At a stop: half of what the dispatcher keeps for the settlement, at most. */
static int64_t
drain_bound_ms(const struct attempt *a)
{
	int64_t bound = attempt_limit(a, LIMIT_mcpd_drain);
	int64_t most = attempt_limit(a, LIMIT_stop_bound) / 16;

	return a->sv->stopping && bound > most ? most : bound;
}

bool
mcpd_drain(struct attempt *a)
{
	if (a->mcpd == NULL)
		return false;
	if (!a->mcpd_draining || a->sv->stopping)
		child_drain(a->mcpd, drain_bound_ms(a));
	a->mcpd_draining = true;
	a->mcpd_ready = false;
	return true;
}

void
mcpd_clear(struct attempt *a)
{
	a->mcpd = NULL;
	a->mcpd_ready = a->mcpd_draining = false;
}

static void
mcpd_tell_gone(const struct attempt *a)
{
	struct peer *dispatcher = supervisor_peer(a->sv, ROLE_DISPATCHER);
	struct msg m = {.type = MSG_MCPD_EXITED};

	m.mcpd_exited.attempt = a->id;
	if (dispatcher != NULL)
		peer_notice(dispatcher, &m);
}

void
mcpd_is_gone(struct attempt *a)
{
	int token = a->next_token;

	a->next_token = -1;
	if (token != -1)
		mcpd_spawn(a, token);
	else if (a->mcpd_asked.is_open)
		asked_fail(&a->mcpd_asked, "not_started",
		    "connectd-mcpd ended before it was ready");
	else
		mcpd_tell_gone(a);
}

bool
mcpd_connect(int stream, void *attempt)
{
	struct msg m = {.type = MSG_CONNECTED};
	struct attempt *a = attempt;

	if (a->mcpd == NULL || !a->mcpd_ready ||
	    !peer_is_linked(child_peer(a->mcpd)))
		return false;
	m.connected.stream = stream;
	peer_notice(child_peer(a->mcpd), &m);
	return true;
}
