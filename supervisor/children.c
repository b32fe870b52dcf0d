#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "supervisor/child.h"

/* ---- finding one --------------------------------------------------------- */

static struct child *
child_of_pid(struct supervisor *sv, pid_t pid)
{
	struct child *c;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		c = sv->children[role];
		if (c != NULL && c->pid == pid)
			return c;
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry) {
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

struct child *
child_of_peer(struct supervisor *sv, const struct peer *peer)
{
	struct child *c;

	if (peer_role(peer) != ROLE_MCPD)
		return sv->children[peer_role(peer)];
	TAILQ_FOREACH (c, &sv->mcpds, entry) {
		if (c->peer == peer)
			return c;
	}
	fatalx("a peer of no child");
}

struct child *
child_of_attempt(struct supervisor *sv, const char *attempt)
{
	struct child *c;

	TAILQ_FOREACH (c, &sv->mcpds, entry) {
		if (strcmp(c->attempt, attempt) == 0)
			return c;
	}
	return NULL;
}

struct peer *
supervisor_peer(struct supervisor *sv, enum role_id role)
{
	struct child *c = sv->children[role];

	return c != NULL && peer_is_linked(c->peer) ? c->peer : NULL;
}

/* ---- all of them --------------------------------------------------------- */

int
children_start(struct supervisor *sv, struct error *e)
{
	static const enum role_id order[] = {
	    ROLE_LEDGER, ROLE_INTAKE, ROLE_DISPATCHER, ROLE_OUTBOX};
	size_t i;

	(void)e;
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		sv->children[order[i]] = child_new(sv, order[i], "");
		sv->children[order[i]]->wanted = true;
	}
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		child_happens(sv->children[order[i]], CHILD_START);
	return 0;
}

struct child *
child_spawn_mcpd(
    struct supervisor *sv, const char *attempt, int token, struct error *e)
{
	struct child *c = child_of_attempt(sv, attempt);

	if (c != NULL) {
		(void)close(token);
		(void)error_set(
		    e, "%s: its predecessor is still there", c->name);
		return NULL;
	}
	c = child_new(sv, ROLE_MCPD, attempt);
	c->token = token;
	c->generation = sv->mcpd_lives++;
	TAILQ_INSERT_HEAD(&sv->mcpds, c, entry);
	child_happens(c, CHILD_START);
	if (c->state != CHILD_DOWN)
		return c;
	(void)error_set(e, "%s", c->last_words);
	TAILQ_REMOVE(&sv->mcpds, c, entry);
	child_free(c);
	return NULL;
}

bool
child_reaped(struct supervisor *sv, const siginfo_t *info)
{
	struct child *c = child_of_pid(sv, info->si_pid);

	if (c == NULL)
		return false;
	if (waitid(P_PID, (id_t)c->pid, &c->end, WEXITED | WNOHANG) == -1)
		log_warn("%s (pid %ld): waitid", c->name, (long)c->pid);
	child_process_ended(c);
	return true;
}

void
children_configure(struct supervisor *sv)
{
	struct child *c;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		if (sv->children[role] != NULL)
			child_configure(sv->children[role]);
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry)
		child_configure(c);
}
