#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/control.h"
#include "supervisor/guests.h"
#include "supervisor/lines.h"
#include "supervisor/watchdog.h"

/* Lines of the log that a child may have printed in one second. */
#define LOG_LINES_MAX 100

/* ---- READY --------------------------------------------------------------- */

static bool
is_walled(const struct child *c)
{
#ifdef INSECURE_BUILD
	return c->no_new_privs;
#else
	return c->seccomp && c->no_new_privs && !c->dumpable;
#endif
}

static void
on_ready(struct peer *peer, struct msg *m, void *arg)
{
	struct child *c = child_of_peer(arg, peer);
	const struct msg_ready *r = &m->ready;
	enum child_event event = CHILD_SAID_READY;

	c->seccomp = r->seccomp;
	c->no_new_privs = r->no_new_privs;
	c->dumpable = r->dumpable;
	c->landlock_abi = r->landlock_abi;
	(void)snprintf(c->lacks, sizeof(c->lacks), "%s", r->lacks);
	if (r->protocol != PROTOCOL_VERSION ||
	    strcmp(r->build, build_id) != 0) {
		log_warnx("%s is of the build %s, connectd of %s: restart it",
		    c->name, log_safe(r->build), build_id);
		event = CHILD_UNFIT;
	} else if (!is_walled(c) && !c->sv->options.insecure) {
		log_warnx(
		    "%s: its walls are not complete (see --insecure)", c->name);
		supervisor_walls_missing(c->sv);
		event = CHILD_UNFIT;
	}
	msg_free(m);
	child_happens(c, event);
}

static void
on_starting(struct peer *peer, struct msg *m, void *arg)
{
	struct child *c = child_of_peer(arg, peer);

	log_info("%s: %s", c->name, log_safe(m->starting.text));
	msg_free(m);
	child_more_time(c);
}

/* ---- the log ------------------------------------------------------------- */

/* A child that writes without end costs itself its lines, not us our time. */
static bool
log_is_allowed(struct child *c)
{
	int64_t second = clock_monotonic_ms() / 1000;

	if (second != c->log_second && c->log_dropped > 0)
		log_warnx("%s: %u lines of its log were dropped", c->name,
		    c->log_dropped);
	if (second != c->log_second) {
		c->log_second = second;
		c->log_lines = c->log_dropped = 0;
	}
	if (c->log_lines < LOG_LINES_MAX) {
		c->log_lines++;
		return true;
	}
	c->log_dropped++;
	return false;
}

/* Roles that hear workers may quote what only a worker should know. */
static bool
hears_workers(enum role_id role)
{
	return role == ROLE_DISPATCHER || role == ROLE_MCPD ||
	    role == ROLE_INTAKE;
}

static void
on_log(struct peer *peer, struct msg *m, void *arg)
{
	struct child *c = child_of_peer(arg, peer);
	char *text, *line;
	size_t len;

	if (log_is_allowed(c)) {
		text = hears_workers(c->role)
		    ? attempts_redact(c->sv, m->log.text)
		    : xstrdup(m->log.text);
		line = text_single_line(text, strlen(text), &len);
		lines_log(c->name, (enum log_level)m->log.level, line);
		if (m->log.level >= LOG_LEVEL_WARN)
			(void)snprintf(
			    c->last_words, sizeof(c->last_words), "%s", line);
		free(line);
		free(text);
	}
	msg_free(m);
}

/* ---- STATE, ACCUSE, LINE ------------------------------------------------- */

static void
value_free(struct child *c, size_t i)
{
	free(c->values[i].name);
	free(c->values[i].text);
	c->values[i] = c->values[--c->value_count];
}

void
child_values_clear(struct child *c)
{
	while (c->value_count > 0)
		value_free(c, c->value_count - 1);
}

static size_t
value_find(const struct child *c, const char *name)
{
	size_t i = 0;

	while (i < c->value_count && strcmp(c->values[i].name, name) != 0)
		i++;
	return i;
}

/* Names are few: more than CHILD_VALUES_MAX are not kept. */
static void
on_state(struct peer *peer, struct msg *m, void *arg)
{
	struct child *c = child_of_peer(arg, peer);
	size_t i = value_find(c, m->state.name), len;
	const char *text = m->state.value;

	if (text[0] == '\0' && i < c->value_count) {
		value_free(c, i);
	} else if (text[0] != '\0' && i < CHILD_VALUES_MAX) {
		if (i == c->value_count) {
			c->values[i].name = xstrdup(m->state.name);
			c->value_count++;
		} else {
			free(c->values[i].text);
		}
		c->values[i].text = text_single_line(text, strlen(text), &len);
	}
	msg_free(m);
}

/*
 * Only downhill counts: the lower one is ended. Uphill, or of one that it has
 * no link with, the accuser is (design 3).
 */
static void
on_accuse(struct peer *peer, struct msg *m, void *arg)
{
	struct supervisor *sv = arg;
	struct child *accuser = child_of_peer(sv, peer), *accused;
	enum role_id role = (enum role_id)m->accuse.role;
	int64_t guest = m->accuse.guest;

	accused = role == ROLE_MCPD ? child_of_attempt(sv, m->accuse.attempt)
				    : sv->children[role];
	log_warnx("%s accuses %s: %s", accuser->name, role_name(role),
	    log_safe(m->accuse.text));
	msg_free(m);
	if (role < accuser->role || !links_has(role, accuser->role))
		child_happens(accuser, CHILD_WRONG);
	else if (guest != 0)
		guests_accused(sv, guest);
	else if (accused != NULL)
		child_happens(accused, CHILD_WRONG);
}

/* One transition, one line: a ledger that sends two in one is broken. */
static void
on_line(struct peer *peer, struct msg *m, void *arg)
{
	struct supervisor *sv = arg;
	bool is_one = strpbrk(m->line.text, "\r\n") == NULL;

	if (is_one) {
		lines_publish(m->line.text);
		control_publish(sv->control, m->line.text);
		watchdog_stir(sv);
	}
	msg_free(m);
	if (!is_one)
		child_happens(child_of_peer(sv, peer), CHILD_WRONG);
}

/* A token was shown by somebody who came without an attempt. */
static void
on_guest_bound(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	guests_bound(arg, &m->guest_bound);
	msg_free(m);
}

/* ---- what the dispatcher asks -------------------------------------------- */

/* An attempt is something outstanding: who is in its way must answer. */
static void
on_spawn_mcpd_awake(struct peer *peer, struct msg *m, void *arg)
{
	watchdog_wake(arg);
	on_spawn_mcpd(peer, m, arg);
}

/* Who has something in hand owes its end: a stuck one is looked for. */
static void
on_in_hand(struct peer *peer, struct msg *m, void *arg)
{
	struct child *c = child_of_peer(arg, peer);
	const struct msg_in_hand *h = &m->in_hand;
	int rc = hand_move(c, h->event_id, h->taken);

	msg_free(m);
	if (rc == -1)
		child_happens(c, CHILD_WRONG);
	else
		watchdog_wake(c->sv);
}

/* Whom it waits for is among those that are asked now. */
static void
on_waiting(struct peer *peer, struct msg *m, void *arg)
{
	(void)peer;
	msg_free(m);
	watchdog_ask(arg);
}

static void
on_unlinked(struct peer *peer, void *arg)
{
	child_link_ended(child_of_peer(arg, peer));
}

static void
on_broken(struct peer *peer, const char *text, void *arg)
{
	struct child *c = child_of_peer(arg, peer);

	log_warnx("%s: %s", c->name, log_safe(text));
	child_happens(c, CHILD_WRONG);
}

/* Which of these a role may send says the message table. */
static const peer_handler handlers[] = {
    [MSG_STARTING] = on_starting,
    [MSG_READY] = on_ready,
    [MSG_LOG] = on_log,
    [MSG_STATE] = on_state,
    [MSG_ACCUSE] = on_accuse,
    [MSG_IN_HAND] = on_in_hand,
    [MSG_WAITING] = on_waiting,
    [MSG_LINE] = on_line,
    [MSG_GUEST_BOUND] = on_guest_bound,
    [MSG_SPAWN_MCPD] = on_spawn_mcpd_awake,
    [MSG_SPAWN_WORKER] = on_spawn_worker,
    [MSG_END_TREE] = on_end_tree,
    [MSG_DROP_DECLARATION] = on_drop_declaration,
    [MSG_STOP_SERVING] = on_stop_serving,
    [MSG_RECOVERED] = on_recovered,
    [MSG_COUNT - 1] = NULL,
};
static_assert(sizeof(handlers) / sizeof(handlers[0]) == MSG_COUNT,
    "a cell for every message");

const struct peer_ops child_peer_ops = {
    .handlers = handlers,
    .unlinked = on_unlinked,
    .broken = on_broken,
};
